//! A static site: the front serves its files alone. There is no mold and no worker, and a restart only looks again where
//! the application's path leads.

use super::super::app::{App, Condition};
use super::super::{AppAction, AppLog, FrontNews};
use super::boot::no_answer_of_files;
use crate::core::restart::{Failure, Wish};
use crate::facts::boot_failure::BootFailure;
use highball_link::Booted;
use std::path::PathBuf;
use std::sync::Arc;

impl App {
    pub(super) fn open_site(&mut self, generation: u32, folder: Option<PathBuf>) {
        self.boots.site = Some((generation, self.now + self.config.boot_timeout));
        self.act(AppAction::OpenSite { generation, folder });
    }

    /// An answer that came too late is none any more.
    fn is_awaited(&mut self, generation: u32) -> bool {
        let awaited = self.boots.site.take_if(|(of, _)| *of == generation).is_some();
        self.has_changed |= awaited;
        awaited && self.is_running()
    }

    pub(super) fn site_found(&mut self, generation: u32, folder: PathBuf, site: Arc<Booted>) {
        if !self.is_awaited(generation) {
            return;
        }
        if let Some(restart) = self.restarts.going.take() {
            let wish = Wish { generation, asked: restart.asked };
            self.past_restart(wish, self.now - restart.began, None);
        }
        self.current.number = generation;
        self.current.folder = folder;
        self.current.follows_link = false;
        let root = site.public.clone().unwrap_or_else(|| self.current.folder.clone());
        self.current.app = Some(site);
        self.condition = Condition::Serving;
        self.notify(FrontNews::SiteOpened { root });
    }

    pub(super) fn no_site(&mut self, generation: u32, folder: PathBuf, failure: BootFailure) {
        if !self.is_awaited(generation) {
            return;
        }
        let Some(restart) = self.restarts.going.take() else {
            self.current.folder = folder;
            self.current.follows_link = false;
            return self.boot_failed(failure);
        };
        let failure = Failure {
            what: failure.account.error.message,
            at: None,
            backtrace: None,
            remedy: failure.account.remedy.unwrap_or_default(),
        };
        self.fails_with(format!("the restart to generation {generation} failed: {}", failure.what));
        let wish = Wish { generation, asked: restart.asked };
        self.past_restart(wish, self.now - restart.began, Some(&failure));
        self.log(AppLog::SiteNotReopened { generation, failure });
    }

    /// The folder was not read in time.
    pub(super) fn site_overdue(&mut self) {
        let now = self.now;
        if self.boots.site.take_if(|(_, until)| now >= *until).is_none() || !self.is_running() {
            return;
        }
        let failure = no_answer_of_files(&self.config.link, self.config.boot_timeout);
        if self.restarts.going.is_some() {
            self.next_not_booted(failure);
        } else {
            self.boot_failed(failure);
        }
    }
}
