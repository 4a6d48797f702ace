//! Booting the mold, and booting it again.

use super::super::app::{App, Condition, End, Phase, Source};
use super::super::event::{Process, Ticket};
use super::super::mold::{Mold, MoldState};
use super::super::molds::{Heard, Late};
use super::super::{AppAction, AppLog, FrontNews};
use crate::core::ending::Ending;
use crate::core::restart::Failure;
use crate::core::restart_policy::{Life, Verdict};
use crate::core::worker::WorkerState;
use crate::facts::boot_failure::BootFailure;
use crate::facts::folder_state::FolderState;
use highball_link::{Booted, Diagnosis, Step};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const TOO_SLOW: &str = "See where it is, in the backtrace. If it really needs longer, raise --boot-timeout.";

/// Which mold it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MoldRole {
    /// Of the version that is served.
    Current,
    /// Of the version that a restart brings.
    Next,
    /// A worker until a moment ago, it is to become that of the version that is served.
    Promoted,
    /// Of none any more.
    Leaving,
}

impl App {
    /// Whether the version that is served needs a mold. (Not while it is being replaced: what would boot in its folder
    /// by now may be the new version.)
    pub(super) fn needs_mold(&self) -> bool {
        let has_none = if self.is_site() {
            !self.current.has_booted() && self.boots.site.is_none()
        } else {
            self.molds.of(self.current.line()).is_none()
        };
        has_none
            && !self.mold_rests()
            && self.is_present()
            && self.boots.explaining.is_none()
            && self.staying() == self.current.line()
    }

    /// Boots the mold of the version that is served.
    pub(super) fn boot(&mut self) {
        let folder = self.current.boots_in();
        if self.is_site() {
            return self.open_site(self.current.number(), folder);
        }
        self.boots.was_missed |= std::mem::take(&mut self.boots.rests);
        self.boot_mold(self.current.line(), folder);
    }

    /// Boots a mold for this line.
    pub(super) fn boot_mold(&mut self, line: u32, folder: Option<PathBuf>) {
        let (is_caller, limit) = (self.config.source == Source::Caller, self.config.boot_timeout);
        self.out.act(self.molds.boot(line, folder, is_caller, limit, self.now));
    }

    fn role_of(&self, mold: &Mold) -> MoldRole {
        match mold.line {
            Some(line) if line == self.current.line() => MoldRole::Current,
            Some(line) if self.restarts.version_of(line).is_some() => MoldRole::Next,
            Some(line) if self.reforks.line() == Some(line) => MoldRole::Promoted,
            _ => MoldRole::Leaving,
        }
    }

    fn role_of_boot(&self, boot: u32) -> MoldRole {
        self.molds.get(boot).map_or(MoldRole::Leaving, |mold| self.role_of(mold))
    }

    /// The process exists. One that has been given up meanwhile is killed.
    pub(super) fn mold_started(&mut self, boot: u32, folder: PathBuf) {
        if self.molds.started(boot) {
            self.found_in(self.role_of_boot(boot), folder);
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

    pub(super) fn mold_not_started(&mut self, boot: u32, folder: PathBuf, failure: BootFailure) {
        if self.molds.get(boot).is_some_and(|mold| !mold.is_started) {
            self.found_in(self.role_of_boot(boot), folder);
            self.unstarted_failed(boot, failure);
        }
    }

    fn unstarted_failed(&mut self, boot: u32, failure: BootFailure) {
        let Some(mold) = self.molds.gone(boot) else { return };
        self.out.act(AppAction::Forget { process: Process::Mold(boot), ending: None });
        self.boot_failed_as(self.role_of(&mold), failure);
    }

    fn boot_failed_as(&mut self, role: MoldRole, failure: BootFailure) {
        match role {
            MoldRole::Current => self.boot_failed(failure),
            MoldRole::Next => self.next_not_booted(failure),
            MoldRole::Promoted | MoldRole::Leaving => {}
        }
    }

    /// What a mold has sent, if it may send that now.
    fn heard<T>(&mut self, boot: u32, message: &'static str, heard: Heard<T>) -> Option<T> {
        match heard {
            Heard::InTurn(what) => return Some(what),
            Heard::OutOfTurn => self.out.out_of_turn(Process::Mold(boot), message),
            Heard::FromNone => {}
        }
        None
    }

    pub(super) fn mold_step(&mut self, boot: u32, step: Step) {
        let heard = self.molds.step_begins(boot, step, self.now);
        if let Some((step, took)) = self.heard(boot, "step", heard) {
            self.out.log(AppLog::StepDone { step, took });
        }
    }

    /// A mold can be forked from; what it reports of the application, if it has loaded it.
    pub(super) fn mold_booted(&mut self, boot: u32, app: Option<Arc<Booted>>) {
        let heard = self.molds.booted(boot, self.now);
        let Some(took) = self.heard(boot, "booted", heard) else { return };
        match &app {
            Some(app) => self.out.log(AppLog::Booted { app: Arc::clone(app), took }),
            None => self.out.log(AppLog::Bare { boot, took }),
        }
        match self.role_of_boot(boot) {
            MoldRole::Current => {
                self.boots.policy.ready();
                if let Some(app) = app {
                    self.current_booted(app);
                }
            }
            MoldRole::Next => self.next_booted(app),
            MoldRole::Promoted | MoldRole::Leaving => {}
        }
    }

    /// The version that is served is there.
    pub(super) fn current_booted(&mut self, app: Arc<Booted>) {
        self.current.booted(Arc::clone(&app));
        self.boots.in_vain = 0;
        if self.is_present() {
            self.condition = Condition::Serving;
        }
        self.out.notify(FrontNews::Booted(app));
    }

    pub(super) fn mold_failed(&mut self, boot: u32, failure: BootFailure) {
        let heard = self.molds.failed(boot, self.now);
        if self.heard(boot, "failed", heard).is_some() {
            self.boot_failed_as(self.role_of_boot(boot), failure);
        }
    }

    pub(super) fn mold_asks_to_stop(&mut self, boot: u32) {
        let heard = self.molds.asks_to_stop(boot);
        if self.heard(boot, "stop", heard).is_some() {
            self.wants_the_end = true;
            self.out.go_on();
        }
    }

    pub(super) fn mold_overdue(&mut self, boot: u32) {
        let limit = self.config.boot_timeout;
        match self.molds.is_late(boot, self.now) {
            Late::NotStarted => {
                self.unstarted_failed(boot, no_answer_of_files(&self.config.link, limit));
            }
            Late::Gone(ending) => self.mold_gone(boot, ending),
            Late::Hangs(step) => {
                self.out.log(AppLog::BootsTooLong { step });
                self.out.act(AppAction::DumpThreads(Process::Mold(boot)));
            }
            Late::TooSlow(step) => {
                self.out.act_all(self.molds.halt(boot, self.now));
                self.boot_failed_as(self.role_of_boot(boot), too_slow(step, limit));
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
            self.forks_are_lost(line);
        }
        match self.role_of(&mold) {
            MoldRole::Current => self.current_mold_gone(&mold, ending),
            MoldRole::Next => self.next_mold_gone(&mold, ending),
            MoldRole::Promoted => self.promoted_mold_gone(ending),
            MoldRole::Leaving => {}
        }
    }

    fn current_mold_gone(&mut self, mold: &Mold, ending: Ending) {
        if !self.is_brought_up() {
            return;
        }
        match (&mold.state, mold.step()) {
            _ if mold.is_caller => self.end(End::CallerGone),
            (_, Some(step)) => self.boot_failed(died_while_booting(step, ending)),
            (MoldState::Booted, _) => {
                self.out.log(AppLog::MoldDied { ending });
                self.postpone_boot(mold.life(self.now));
            }
            _ => {}
        }
    }

    /// One that boots cannot be waited for any more: its boot has failed.
    pub(super) fn mold_misbehaved(&mut self, boot: u32, error: &str) {
        let Some(mold) = self.molds.get(boot).filter(|mold| !mold.is_halted()) else {
            return; // that was noticed before
        };
        let (role, step, life) = (self.role_of(mold), mold.step(), mold.life(self.now));
        self.out.act_all(self.molds.halt(boot, self.now));
        match step {
            Some(step) => self.boot_failed_as(role, not_understood(step, error)),
            None if role == MoldRole::Current => self.postpone_boot(life),
            None => {}
        }
    }

    /// What a line's mold was asked for and has not forked will not come.
    pub(super) fn forks_are_lost(&mut self, line: u32) {
        let now = self.now;
        for worker in self.staff.workers.values_mut().filter(|worker| worker.line == line) {
            worker.mold_gone(now);
        }
    }

    /// It was asked for a worker, and nothing came of it. (A caller is never killed; it may recover.) That of a restart
    /// or refork has been ended with it.
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
        let ticket = self.out.diagnose(self.current.folder().into(), failure);
        if !self.is_brought_up() {
            return;
        }
        if self.current.has_booted() {
            self.boots.explaining = Some(ticket);
        } else {
            self.condition = Condition::Explaining(ticket);
        }
    }

    pub(super) fn diagnosed(
        &mut self,
        ticket: Ticket,
        diagnosis: Arc<Diagnosis>,
        files: Option<FolderState>,
    ) {
        if let Some(was) = self.restarts.explained(ticket) {
            let failure = Failure::of_diagnosis(&diagnosis);
            self.trouble.diagnosis = Some(diagnosis);
            return self.report_failed_restart(was, &failure);
        }
        self.trouble.note(diagnosis.summary());
        if matches!(self.condition, Condition::Explaining(of) if of == ticket) {
            self.condition = Condition::Booting;
            if self.is_brought_up() {
                self.out.log(AppLog::BootFailed(Arc::clone(&diagnosis)));
                self.not_booted(diagnosis, files);
            }
        } else if self.boots.explaining == Some(ticket) {
            self.boots.explaining = None;
            if matches!(self.phase, Phase::Running) {
                self.out.log(AppLog::BootFailed(Arc::clone(&diagnosis)));
                self.trouble.diagnosis = Some(Arc::clone(&diagnosis));
                self.out.notify(FrontNews::Failed(diagnosis));
                self.postpone_boot(Life::NeverReady);
            }
        }
        self.out.go_on();
    }

    pub(super) fn postpone_boot(&mut self, life: Life) {
        let others_serve = self.staff.workers.in_state(WorkerState::Serving) > 0;
        match self.boots.policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => self.boots.due = self.now + delay,
            Verdict::GiveUp => self.give_up("boots", self.boots.policy.boot_failures()),
        }
    }
}

fn not_understood(step: Step, error: &str) -> BootFailure {
    let message = format!("the application's process sent an invalid message: {error}");
    let remedy =
        "Highball's program and its Ruby code (lib/highball) may be of different versions: build or install \
                  both together.";
    BootFailure::of_ours(step, "not_understood", message, remedy.into()).with_command("bin/setup")
}

pub(super) fn too_slow(step: Step, limit: Duration) -> BootFailure {
    let message = format!("it was not done after {} s", limit.as_secs());
    BootFailure::of_ours(step, "boot_timeout", message, TOO_SLOW.into())
}

/// The supervisor could not find out where and how to boot.
pub(super) fn no_answer_of_files(link: &Path, limit: Duration) -> BootFailure {
    let message = format!("its files could not be looked at within {} s", limit.as_secs());
    let place = link.display();
    let remedy = format!("The file system of {place} does not answer: look whether `ls {place}` does.");
    BootFailure::of_ours(Step::StartRuby, "boot_timeout", message, remedy)
}

pub(super) fn died_while_booting(step: Step, ending: Ending) -> BootFailure {
    let message = format!("Ruby ended without an error message: {ending}");
    match ending {
        Ending::Killed(9) => {
            let remedy =
                "It was killed: most likely by the kernel, because memory had run out. Look into its log, \
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
