//! Finding out where and how to boot, before a boot. It takes a moment, or for ever; the loop goes on meanwhile.

use super::booting::no_answer_of_files;
use super::failing::Failing;
use super::Supervisor;
use crate::app_files::{Found, Work};
use crate::boot_plan::{BootPlan, NotStarted, Start};
use crate::restart::Stage;
use highball_config::App;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Which version is to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// The one that is served.
    Current,
    /// The one that a restart brings, of this generation.
    Next(u32),
}

/// What is being found out.
#[derive(Debug)]
pub(super) struct Planning {
    ticket: u32,
    version: Version,
    /// For which configuration.
    app: Arc<App>,
    pub(super) began: Instant,
}

impl Supervisor {
    /// Looks for restart files, if it is time to.
    pub(super) fn look_at_restart_files(&mut self, now: Instant) {
        if let Some(look) = self.restart_files.look(now) {
            self.files.begin(Work::Restart, move || Found::Restart(look.done()));
        }
    }

    /// Begins to find out where and how this version boots.
    pub(super) fn plan(&mut self, version: Version, now: Instant) {
        let is_current = version == Version::Current;
        let path = if is_current && !self.folder_is_due { &self.current.folder } else { &self.app.link };
        let app = Arc::clone(&self.app);
        let plan = BootPlan { path: path.clone(), boot_file: self.source.boot_file(), app: Arc::clone(&app) };
        let ticket = self.next_ticket();
        self.planning = Some(Planning { ticket, version, app, began: now });
        self.files.begin(Work::Plan, move || {
            let (folder, start) = plan.made();
            Found::Plan { ticket, folder, start }
        });
    }

    pub(super) fn next_ticket(&mut self) -> u32 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// It is known where and how to boot. What has changed meanwhile is planned again, by whoever needs it then.
    pub(super) async fn planned(
        &mut self,
        ticket: u32,
        folder: PathBuf,
        start: Result<Start, NotStarted>,
        now: Instant,
    ) {
        let Some(planning) = self.planning.take_if(|planning| planning.ticket == ticket) else { return };
        let is_valid = Arc::ptr_eq(&planning.app, &self.app);
        match planning.version {
            Version::Current if is_valid && self.needs_mold() && self.is_brought_up() => {
                self.folder_is_due = false;
                self.current.folder = folder;
                self.boot_as_planned(start, now).await;
            }
            Version::Next(generation) if self.waits_for_plan(generation) => {
                if is_valid {
                    self.restart_as_planned(folder, start, now).await;
                } else {
                    self.plan(Version::Next(generation), now);
                }
            }
            Version::Current | Version::Next(_) => {}
        }
    }

    fn waits_for_plan(&self, generation: u32) -> bool {
        let booting = self.restart.as_ref().filter(|restart| restart.stage == Stage::Booting);
        booting.is_some_and(|restart| restart.next.number == generation && restart.next.mold.is_none())
    }

    pub(super) fn next_deadline_of_files(&self) -> Option<Instant> {
        let limit = self.app.process.boot_timeout;
        let planning = self.planning.as_ref().map(|planning| planning.began + limit);
        planning.into_iter().chain(self.failing.iter().map(Failing::deadline)).min()
    }

    /// Goes on without what the file system does not answer.
    pub(super) async fn enforce_deadlines_of_files(&mut self, now: Instant) {
        self.diagnose_without_files(now).await;
        let limit = self.app.process.boot_timeout;
        let Some(planning) = self.planning.take_if(|planning| now >= planning.began + limit) else { return };
        let failure = no_answer_of_files(&self.app.link, limit);
        match planning.version {
            Version::Current if self.needs_mold() => self.boot_failed(failure, now),
            Version::Next(generation) if self.waits_for_plan(generation) => {
                self.next_not_booted(failure, now)
            }
            Version::Current | Version::Next(_) => {}
        }
    }
}
