//! A configuration that has changed, and what the rest of the hall has to know of an application.

use super::{watched, Phase, Supervisor};
use crate::hall::{AppBlueprint, Purpose};
use crate::mold::MoldSource;
use crate::refork::Schedule;
use crate::restart::Asked;
use crate::restart_file::RestartFiles;
use crate::restart_policy::RestartPolicy;
use highball_config::App;
use highball_ring::Geometry;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, Instrument};

impl Supervisor {
    /// From now on it is configured like this. Its processes are replaced if they would be others.
    pub(crate) async fn change(&mut self, blueprint: AppBlueprint, now: Instant) {
        let AppBlueprint { app, source, geometry, .. } = blueprint;
        if self.app.fault.is_some() {
            return self.begin_again(app, source, geometry, now);
        }
        let is_as_before = app.has_processes_of(&self.app);
        if app.workers != self.app.workers && !self.is_site() {
            self.wanted = app.workers;
        }
        if app.link != self.app.link || app.runs_as != self.app.runs_as {
            self.restart_files = RestartFiles::of(watched(&app), now);
        }
        if app.process != self.app.process {
            self.schedule = Schedule::new(app.process.refork_after.clone());
            self.mold_policy = RestartPolicy::new(app.process.max_boot_failures);
            self.worker_policy = RestartPolicy::new(app.process.max_boot_failures);
            self.counts_requests = false;
        }
        if (&app.name, app.max_output_bytes) != (&self.app.name, self.app.max_output_bytes) {
            self.output.change(&app);
        }
        (self.app, self.geometry) = (app, geometry);
        info!(app = self.app.name, restarts = !is_as_before, "the application is configured anew");
        if !is_as_before {
            let span = self.span.clone();
            async { self.replace_processes(now) }.instrument(span).await;
        }
    }

    /// It has never had processes, as its own configuration could not be used; that may have changed.
    fn begin_again(&mut self, app: Arc<App>, source: MoldSource, geometry: Geometry, now: Instant) {
        let is_site = matches!(source, MoldSource::Site);
        self.wanted = if is_site { 0 } else { app.workers };
        self.restart_files = RestartFiles::of(watched(&app), now);
        self.schedule = Schedule::new(app.process.refork_after.clone());
        self.mold_policy = RestartPolicy::new(app.process.max_boot_failures);
        self.worker_policy = RestartPolicy::new(app.process.max_boot_failures);
        (self.app, self.source, self.geometry) = (app, source, geometry);
        self.broken = None;
        self.forget_failures();
        self.folder_is_due = true;
        self.begin_line(now);
    }

    /// Replaces its processes by a restart; those that have not come up yet, and may not, at once.
    fn replace_processes(&mut self, now: Instant) {
        let boots = matches!(self.phase, Phase::Running) && self.current.app.is_none();
        let is_of_folder = matches!(self.source, MoldSource::Folder { .. });
        if !boots || !is_of_folder || self.asleep || self.broken.is_some() {
            let _ = self.ask_restart(Asked::Configuration); // what speaks against it is in the log
            return;
        }
        let mold = self.current.mold.take();
        self.let_go(self.current.line, mold, now);
        self.folder_is_due = true;
        self.begin_line(now);
    }

    /// The server of this process serves: an application that does not boot is no reason any more for its end.
    pub(crate) fn serves(&mut self) {
        self.purpose = Purpose::Serve;
    }

    pub(crate) fn name(&self) -> String {
        self.app.name.clone()
    }

    pub(crate) fn boot_timeout(&self) -> Duration {
        self.app.process.boot_timeout
    }

    /// Whether it has booted, and there may be requests to be answered.
    pub(crate) fn has_booted(&self) -> bool {
        self.current.app.is_some()
    }

    /// Whether there is, or was until a moment ago, somebody to answer its requests.
    pub(crate) fn can_answer(&self) -> bool {
        self.has_booted() && !self.asleep
    }

    /// Whether it waits to be mended.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    pub(crate) fn is_of_a_caller(&self) -> bool {
        self.source.is_caller()
    }

    /// Whether USR1 has asked for a restart that has not begun.
    pub(crate) fn was_told_to_restart(&self) -> bool {
        self.wish.is_some_and(|wish| wish.asked == Asked::Signal)
    }

    /// Whether it serves, sleeps, or waits to be mended, and nothing is about to change that.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_up = self.current.app.is_some() || self.asleep || self.broken.is_some();
        let is_leaving = self.removed || !matches!(self.phase, Phase::Running);
        is_leaving || (is_up && self.restart.is_none() && self.wish.is_none() && self.refork.is_none())
    }
}
