//! Booting the mold, and booting it again.

use super::super::app::App;
use super::super::condition::{Condition, End};
use super::super::ids::{Process, Receipt};
use super::super::mold::Mold;
use super::super::molds::Late;
use super::super::{AppAction, AppLog};
use super::restart::TRY_AGAIN;
use crate::core::restart::Failure;
use crate::core::restart_policy::Life;
use crate::facts::boot_failure::BootFailure;
use crate::facts::ending::Ending;
use crate::facts::folder_state::FolderState;
use highball_link::{AppCommand, Booted, Diagnosis, Step};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const TOO_SLOW: &str = "See where it is, in the backtrace. If it really needs longer, raise --boot-timeout.";

/// Which mold it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoldRole {
    /// Of the version that is served.
    Current,
    /// Of the version that a restart brings.
    Next,
    /// It was a worker until a moment ago, and is to become the mold of the served version.
    Promoted,
    /// Of none any more.
    Leaving,
}

impl App {
    /// Whether the version that is served needs a mold. (Not while it is being replaced: what would boot in its folder
    /// by now may be the new version.)
    pub(super) fn needs_mold(&self) -> bool {
        let has_none = if self.config.is_site() {
            !self.current.has_booted() && self.boots.site().is_none()
        } else {
            self.molds.of(self.current.line()).is_none()
        };
        has_none
            && (!self.boots.rests() || self.waits_to_fork())
            && self.condition.is_present()
            && self.boots.explaining().is_none()
            && self.staying() == self.current.line()
    }

    /// Boots the mold of the version that is served.
    pub(super) fn boot(&mut self) {
        let folder = self.current.boots_in();
        if self.config.is_site() {
            let until = self.now + self.config.boot_timeout;
            return self.out.act(self.boots.open_site(self.current.number(), folder, until));
        }
        self.boots.begin();
        self.out.act(self.molds.boot(self.current.line(), folder, &self.config, self.now));
    }

    /// The role of a mold, by the line that is forked from it.
    pub(super) fn role_of(&self, line: Option<u32>) -> MoldRole {
        match line {
            Some(line) if line == self.current.line() => MoldRole::Current,
            Some(line) if self.restarts.version_of(line).is_some() => MoldRole::Next,
            Some(line) if self.reforks.line() == Some(line) => MoldRole::Promoted,
            _ => MoldRole::Leaving,
        }
    }

    /// The process exists. It is killed if its boot has been given up meanwhile.
    pub(super) fn mold_started(&mut self, boot: u32, folder: PathBuf) {
        if self.molds.started(boot) {
            self.found_in(self.role_of(self.molds.line_of(boot)), folder);
        } else {
            self.out.act(AppAction::Kill(Process::Mold(boot)));
        }
    }

    fn found_in(&mut self, role: MoldRole, folder: PathBuf) {
        match role {
            MoldRole::Current => self.current.found_in(folder),
            MoldRole::Next => self.restarts.found_in(folder),
            MoldRole::Promoted | MoldRole::Leaving => {}
        }
    }

    /// It could not be started in this folder, or it was not found out in which.
    pub(super) fn mold_not_started(&mut self, boot: u32, folder: Option<PathBuf>, failure: BootFailure) {
        let Some(mold) = self.molds.not_started(boot) else { return };
        let role = self.role_of(mold.line);
        if let Some(folder) = folder {
            self.found_in(role, folder);
        }
        self.out.act(AppAction::Forget { process: Process::Mold(boot), ending: None });
        self.boot_failed_as(role, failure);
    }

    pub(super) fn boot_failed_as(&mut self, role: MoldRole, failure: BootFailure) {
        match role {
            MoldRole::Current => self.boot_failed(failure),
            MoldRole::Next => self.next_not_booted(failure),
            MoldRole::Promoted | MoldRole::Leaving => {}
        }
    }

    /// A mold can be forked from; what it reports of the application, if it has loaded it.
    pub(super) fn mold_booted(&mut self, boot: u32, app: Option<Arc<Booted>>) {
        let took = match self.molds.booted(boot, self.now) {
            Ok(took) => took,
            Err(action) => return self.out.act_all(action),
        };
        match &app {
            Some(app) => self.out.log(AppLog::Booted { app: Arc::clone(app), took }),
            None => self.out.log(AppLog::Bare { boot, took }),
        }
        match self.role_of(self.molds.line_of(boot)) {
            MoldRole::Current => {
                self.boots.has_mold();
                if let Some(app) = app {
                    self.current_booted(app);
                }
            }
            MoldRole::Next if self.restarts.booted(app) => self.out.checkpoint("restart.booted"),
            MoldRole::Next | MoldRole::Promoted | MoldRole::Leaving => {}
        }
    }

    /// The version that is served is there. If a worker has failed to load it meanwhile, it is not: the mold may say what it
    /// likes.
    pub(super) fn current_booted(&mut self, app: Arc<Booted>) {
        if !self.condition.is_present() {
            return;
        }
        self.current.booted(Arc::clone(&app));
        self.boots.was_not_in_vain();
        self.condition = Condition::Serving;
        self.adopt_companions();
        self.out.notify(AppCommand::Booted(app));
    }

    pub(super) fn mold_failed(&mut self, boot: u32, failure: BootFailure) {
        match self.molds.failed(boot, self.now) {
            Ok(()) => self.boot_failed_as(self.role_of(self.molds.line_of(boot)), failure),
            Err(action) => self.out.act_all(action),
        }
    }

    pub(super) fn mold_asks_to_stop(&mut self, boot: u32) {
        match self.molds.asks_to_stop(boot) {
            Ok(()) => self.wants_the_end = true,
            Err(action) => self.out.act_all(action),
        }
    }

    pub(super) fn mold_overdue(&mut self, boot: u32) {
        let limit = self.config.boot_timeout;
        match self.molds.is_late(boot, self.now) {
            Late::NotStarted => {
                self.mold_not_started(boot, None, no_answer_of_files(&self.config.link, limit));
            }
            Late::Gone(ending) => self.mold_gone(boot, ending),
            Late::Hangs(step) => {
                self.out.log(AppLog::BootsTooLong { step });
                self.out.act(AppAction::DumpThreads(Process::Mold(boot)));
            }
            Late::TooSlow(step) => {
                self.out.act_all(self.molds.halt(boot, self.now));
                self.boot_failed_as(self.role_of(self.molds.line_of(boot)), too_slow(step, limit));
            }
            Late::Unkillable => {
                self.out.log(AppLog::MoldUnkillable);
                self.mold_gone(boot, Ending::Unknown);
            }
            Late::InTime => {}
        }
    }

    pub(super) fn mold_gone(&mut self, boot: u32, ending: Ending) {
        let Some(mold) = self.molds.gone(boot) else { return };
        self.out.act(AppAction::Forget { process: Process::Mold(boot), ending: Some(ending) });
        if let Some(line) = mold.line {
            self.staff.mold_gone(line, self.now);
        }
        match (self.role_of(mold.line), mold.step()) {
            (MoldRole::Current, _) if !self.is_brought_up() => {}
            (MoldRole::Current, _) if mold.is_caller => self.end(End::CallerGone),
            (MoldRole::Current, None) if mold.is_booted() => {
                self.out.log(AppLog::MoldDied { ending });
                self.postpone_boot(mold.life(self.now));
            }
            (MoldRole::Next, None) => {
                let what = format!("the new mold died after it had booted: {ending}");
                self.restart_failed(&Failure::new(what, TRY_AGAIN));
            }
            (MoldRole::Promoted, _) => self.refork_failed(format!("the promoted mold died: {ending}")),
            (role, Some(step)) => self.boot_failed_as(role, died_while_booting(step, ending)),
            (MoldRole::Current | MoldRole::Leaving, None) => {}
        }
    }

    /// It was asked for a worker, and nothing came of it. (A caller is never killed; it may recover.) The mold of a
    /// restart or refork has ended with it.
    pub(super) fn mold_is_stuck(&mut self, line: u32) {
        let stuck = |mold: &&Mold| mold.is_booted() && !mold.is_caller;
        let mold = self.molds.of(line).filter(|_| line == self.current.line()).filter(stuck);
        let Some(boot) = mold.map(|mold| mold.boot) else { return };
        self.out.log(AppLog::MoldStuck);
        self.out.act_all(self.molds.halt(boot, self.now));
        self.postpone_boot(Life::NeverReady);
    }

    /// The first boot has to succeed; after it, boots are repeated while the workers that there are serve. What follows
    /// waits for the diagnosis.
    pub(super) fn boot_failed(&mut self, failure: BootFailure) {
        let receipt = self.out.diagnose(self.current.folder().into(), failure);
        if !self.is_brought_up() {
            return;
        }
        if self.current.has_booted() {
            self.boots.explains(receipt);
        } else {
            self.condition = Condition::Explaining(receipt);
        }
    }

    pub(super) fn diagnosed(
        &mut self,
        receipt: Receipt,
        diagnosis: Arc<Diagnosis>,
        files: Option<FolderState>,
    ) {
        if let Some(was) = self.restarts.explained(receipt) {
            let failure = Failure::of_diagnosis(&diagnosis);
            self.trouble.diagnosis = Some(diagnosis);
            return self.report_failed_restart(was, &failure);
        }
        self.note_failure(diagnosis.summary());
        if matches!(self.condition, Condition::Explaining(of) if of == receipt) {
            self.condition = Condition::Booting;
            if self.is_brought_up() {
                self.out.log(AppLog::BootFailed(Arc::clone(&diagnosis)));
                self.not_booted(diagnosis, files);
            }
        } else if self.boots.explained(receipt) && self.phase.is_running() {
            self.out.log(AppLog::BootFailed(Arc::clone(&diagnosis)));
            self.trouble.diagnosis = Some(Arc::clone(&diagnosis));
            self.out.notify(AppCommand::Failed(diagnosis));
            self.postpone_boot(Life::NeverReady);
        }
    }

    pub(super) fn postpone_boot(&mut self, life: Life) {
        if let Some(failures) = self.boots.failed(life, self.staff.any_serves(), self.now) {
            self.give_up("boots", failures);
        }
    }
}

pub(super) fn not_understood(step: Step, error: &str) -> BootFailure {
    let message = format!("the application's process sent an invalid message: {error}");
    let remedy =
        "Highball's program and its Ruby code (lib/highball) may be of different versions: build or install \
                  both together.";
    BootFailure::of_ours(step, "not_understood", message, remedy.into()).with_command("bin/setup")
}

pub(super) fn too_slow(step: Step, limit: Duration) -> BootFailure {
    let message = format!("the boot takes longer than boot_timeout ({} s)", limit.as_secs());
    BootFailure::of_ours(step, "boot_timeout", message, TOO_SLOW.into())
}

/// The supervisor could not find out where and how to boot.
pub(super) fn no_answer_of_files(link: &Path, limit: Duration) -> BootFailure {
    let message = format!("its files could not be looked at within {} s", limit.as_secs());
    let place = link.display();
    let remedy = format!("The file system of {place} does not answer: check whether `ls {place}` does.");
    BootFailure::of_ours(Step::StartRuby, "boot_timeout", message, remedy)
}

pub(super) fn died_while_booting(step: Step, ending: Ending) -> BootFailure {
    let message = format!("Ruby ended without an error message: {ending}");
    match ending {
        Ending::Killed(9) => {
            let remedy =
                "It was killed: most likely by the kernel, because memory had run out. See its log, \
                          and give the machine or container more memory.";
            BootFailure::of_ours(step, "killed", message, remedy.into())
                .with_command("journalctl -k | grep -i 'killed process'")
        }
        Ending::Killed(_) => {
            let remedy =
                "It crashed, most likely in the native extension of a gem; what Ruby printed above says in \
                          which. Build the gems again for this Ruby.";
            BootFailure::of_ours(step, "crashed", message, remedy.into()).with_command("bundle pristine")
        }
        _ if step == Step::StartRuby => {
            let remedy =
                "Look at what was printed above, by Ruby or by the version manager that chooses it (--ruby \
                          names another).";
            BootFailure::of_ours(step, "ruby_did_not_start", message, remedy.into())
        }
        _ => {
            let remedy =
                "Look at what was printed above; the application may have ended the process itself (`exit!`).";
            BootFailure::of_ours(step, "exit_called", message, remedy.into())
        }
    }
}
