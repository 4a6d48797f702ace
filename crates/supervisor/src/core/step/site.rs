//! A static site: the front serves its files alone. There is no mold and no worker, and a restart only looks again where
//! the application's path leads.

use super::super::app::App;
use super::super::condition::Condition;
use super::super::version::Version;
use super::super::AppLog;
use super::boot::no_answer_of_files;
use crate::core::restart::Failure;
use crate::facts::boot_failure::BootFailure;
use highball_link::{AppCommand, Booted};
use std::path::PathBuf;
use std::sync::Arc;

impl App {
    pub(super) fn site_found(&mut self, generation: u32, folder: PathBuf, site: Arc<Booted>) {
        if !self.boots.site_seen(generation) || !self.phase.is_running() {
            return; // it came too late
        }
        self.restarts.ended(None, self.now);
        let root = site.public.clone().unwrap_or_else(|| folder.clone());
        self.current = Version::new(generation, self.current.line(), folder);
        self.current.booted(site);
        self.condition = Condition::Serving;
        self.out.notify(AppCommand::OpenSite { root });
    }

    pub(super) fn no_site(&mut self, generation: u32, folder: PathBuf, failure: BootFailure) {
        if !self.boots.site_seen(generation) || !self.phase.is_running() {
            return; // it came too late
        }
        if !self.restarts.is_going() {
            self.current.found_in(folder);
            return self.boot_failed(failure);
        }
        let failure = Failure {
            what: failure.account.error.message,
            at: None,
            backtrace: None,
            remedy: failure.account.remedy.unwrap_or_default(),
        };
        self.note_failure(format!("the restart to generation {generation} failed: {}", failure.what));
        self.restarts.ended(Some(&failure), self.now);
        self.out.log(AppLog::SiteNotReopened { generation, failure });
    }

    /// The folder was not read in time.
    pub(super) fn site_overdue(&mut self) {
        if !self.boots.is_site_late(self.now) || !self.phase.is_running() {
            return;
        }
        let failure = no_answer_of_files(&self.config.link, self.config.boot_timeout);
        if self.restarts.is_going() {
            self.next_not_booted(failure);
        } else {
            self.boot_failed(failure);
        }
    }
}
