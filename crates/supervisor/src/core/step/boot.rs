//! Booting the mold, and booting it again.

use super::super::app::{App, Condition, End, Phase};
use super::super::event::{Process, Ticket};
use super::super::mold::{Mold, MoldState};
use super::super::mutation::{is_mutated, Mutation};
use super::super::{AppAction, AppLog, FrontNews};
use crate::core::ending::Ending;
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
            self.current.app.is_none() && self.boots.site.is_none()
        } else {
            self.current.mold.is_none()
        };
        has_none
            && !self.mold_rests()
            && self.is_present()
            && self.boots.explaining.is_none()
            && self.staying() == self.current.line
    }

    /// Boots the mold of the version that is served.
    pub(super) fn boot(&mut self) {
        let folder = (!self.current.follows_link).then(|| self.current.folder.clone());
        if self.is_site() {
            return self.open_site(self.current.number, folder);
        }
        self.boots.was_missed |= std::mem::take(&mut self.boots.rests);
        self.current.mold = Some(self.spawn_mold(folder));
    }

    pub(super) fn spawn_mold(&mut self, folder: Option<PathBuf>) -> Mold {
        self.boots.count += 1;
        let boot = self.boots.count;
        self.act(AppAction::SpawnMold { boot, folder });
        let is_caller = self.config.source == super::super::Source::Caller;
        let mut mold = Mold::booting(boot, is_caller, self.now, self.config.boot_timeout);
        if is_mutated(Mutation::ForgetBootDeadline) {
            mold.deadline = None;
        }
        mold
    }

    fn role_of(&self, boot: u32) -> MoldRole {
        let is_it = |mold: &Mold| mold.boot == boot;
        let next = self.restarts.going.as_ref().and_then(|restart| restart.next.mold.as_ref());
        match (self.current.mold.as_ref().is_some_and(is_it), next.is_some_and(is_it)) {
            (true, _) => MoldRole::Current,
            (false, true) => MoldRole::Next,
            (false, false) if self.promoted_mold().is_some_and(is_it) => MoldRole::Promoted,
            (false, false) => MoldRole::Leaving,
        }
    }

    /// The process exists. One that has been given up meanwhile is killed.
    pub(super) fn mold_started(&mut self, boot: u32, folder: PathBuf) {
        let role = self.role_of(boot);
        match self.mold_mut(boot) {
            Some(mold) if !mold.is_halted() => {
                mold.is_started = true;
                self.note_folder(role, folder);
            }
            _ => self.act(AppAction::Kill(Process::Mold(boot))),
        }
    }

    fn note_folder(&mut self, role: MoldRole, folder: PathBuf) {
        match (role, &mut self.restarts.going) {
            (MoldRole::Current, _) => {
                self.current.folder = folder;
                self.current.follows_link = false;
            }
            (MoldRole::Next, Some(restart)) => restart.next.folder = folder,
            _ => {}
        }
    }

    pub(super) fn mold_not_started(&mut self, boot: u32, folder: PathBuf, failure: BootFailure) {
        let role = self.role_of(boot);
        let Some(mold) = self.mold_mut(boot) else { return };
        if mold.is_started {
            return;
        }
        self.note_folder(role, folder);
        self.unstarted_failed(role, boot, failure);
    }

    /// It was not found out in time where and how to boot.
    pub(super) fn mold_overdue_unstarted(&mut self, boot: u32) {
        let failure = no_answer_of_files(&self.config.link, self.config.boot_timeout);
        self.unstarted_failed(self.role_of(boot), boot, failure);
    }

    fn unstarted_failed(&mut self, role: MoldRole, boot: u32, failure: BootFailure) {
        self.drop_mold(role, boot);
        self.act(AppAction::Forget { process: Process::Mold(boot), ending: None });
        match role {
            MoldRole::Current => self.boot_failed(failure),
            MoldRole::Next => self.next_not_booted(failure),
            MoldRole::Promoted | MoldRole::Leaving => {}
        }
    }

    /// Takes a mold that does not exist any more out of its place.
    fn drop_mold(&mut self, role: MoldRole, boot: u32) -> Option<Mold> {
        match role {
            MoldRole::Current => self.current.mold.take(),
            MoldRole::Next => self.restarts.going.as_mut().and_then(|restart| restart.next.mold.take()),
            MoldRole::Promoted => self.reforks.going.as_mut().and_then(|refork| refork.mold.take()),
            MoldRole::Leaving => {
                let place = self.boots.leaving.iter().position(|mold| mold.boot == boot)?;
                Some(self.boots.leaving.swap_remove(place))
            }
        }
    }

    pub(super) fn mold_step(&mut self, boot: u32, step: Step) {
        let now = self.now;
        match self.mold_mut(boot).map(|mold| &mut mold.state) {
            Some(MoldState::Booting(journey)) => {
                let before = journey.step();
                let took = journey.enter(step, now);
                self.log(AppLog::StepDone { step: before, took });
            }
            Some(_) => self.out_of_turn(Process::Mold(boot), "step"),
            None => {}
        }
    }

    /// A mold can be forked from; what it reports of the application, if it has loaded it.
    pub(super) fn mold_booted(&mut self, boot: u32, app: Option<Arc<Booted>>) {
        let (now, role) = (self.now, self.role_of(boot));
        let Some(mold) = self.mold_mut(boot) else { return };
        let Some(took) = mold.booted(now) else { return self.out_of_turn(Process::Mold(boot), "booted") };
        match &app {
            Some(app) => self.log(AppLog::Booted { app: Arc::clone(app), took }),
            None => self.log(AppLog::Bare { boot, took }),
        }
        match role {
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
        self.current.app = Some(Arc::clone(&app));
        self.boots.in_vain = 0;
        if self.is_present() {
            self.condition = Condition::Serving;
        }
        self.notify(FrontNews::Booted(app));
    }

    pub(super) fn mold_failed(&mut self, boot: u32, failure: BootFailure) {
        let now = self.now;
        let Some(mold) = self.mold_mut(boot) else { return };
        if mold.step().is_none() {
            return self.out_of_turn(Process::Mold(boot), "failed");
        }
        mold.halt(now); // it ends by itself
        self.boot_of_mold_failed(boot, failure);
    }

    pub(super) fn mold_asks_to_stop(&mut self, boot: u32) {
        match self.mold_mut(boot).map(|mold| mold.is_caller) {
            Some(true) => {
                self.wants_the_end = true;
                self.has_changed = true;
            }
            Some(false) => self.out_of_turn(Process::Mold(boot), "stop"),
            None => {}
        }
    }

    pub(super) fn out_of_turn(&mut self, process: Process, message: &'static str) {
        self.log(AppLog::OutOfTurn { process, message });
    }

    pub(super) fn boot_of_mold_failed(&mut self, boot: u32, failure: BootFailure) {
        match self.role_of(boot) {
            MoldRole::Current => self.boot_failed(failure),
            MoldRole::Next => self.next_not_booted(failure),
            MoldRole::Promoted | MoldRole::Leaving => {}
        }
    }

    pub(super) fn halt_mold(&mut self, boot: u32) {
        let now = self.now;
        if let Some(mold) = self.mold_mut(boot) {
            mold.halt(now);
            self.act(AppAction::Kill(Process::Mold(boot)));
        }
    }

    pub(super) fn mold_gone(&mut self, boot: u32, ending: Ending) {
        let role = self.role_of(boot);
        let Some(mold) = self.drop_mold(role, boot) else { return };
        self.act(AppAction::Forget { process: Process::Mold(boot), ending: Some(ending) });
        match role {
            MoldRole::Current => self.current_mold_gone(&mold, ending),
            MoldRole::Next => self.next_mold_gone(&mold, ending),
            MoldRole::Promoted => self.promoted_mold_gone(ending),
            MoldRole::Leaving => {}
        }
    }

    fn current_mold_gone(&mut self, mold: &Mold, ending: Ending) {
        self.forks_are_lost(self.current.line);
        if !self.is_brought_up() {
            return;
        }
        match (&mold.state, mold.step()) {
            _ if mold.is_caller => self.end(End::CallerGone),
            (_, Some(step)) => self.boot_failed(died_while_booting(step, ending)),
            (MoldState::Booted, _) => {
                self.log(AppLog::MoldDied { ending });
                self.postpone_boot(mold.life(self.now));
            }
            _ => {}
        }
    }

    /// One that boots cannot be waited for any more: its boot has failed.
    pub(super) fn mold_misbehaved(&mut self, boot: u32, error: &str) {
        let now = self.now;
        let Some(mold) = self.mold_mut(boot) else { return };
        if mold.is_halted() {
            return; // that was noticed before
        }
        let (step, life) = (mold.step(), mold.life(now));
        self.halt_mold(boot);
        match step {
            Some(step) => self.boot_of_mold_failed(boot, not_understood(step, error)),
            None if self.role_of(boot) == MoldRole::Current => self.postpone_boot(life),
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
        let mold = self.current.mold.as_ref().filter(|_| line == self.current.line).filter(stuck);
        let Some(boot) = mold.map(|mold| mold.boot) else { return };
        self.log(AppLog::MoldStuck);
        self.halt_mold(boot);
        self.postpone_boot(Life::NeverReady);
    }

    /// The first boot has to succeed; after it, boots are repeated while the workers that there are serve. What follows
    /// waits for the diagnosis.
    pub(super) fn boot_failed(&mut self, failure: BootFailure) {
        let ticket = self.explain(self.current.folder.clone(), failure);
        if !self.is_brought_up() {
            return;
        }
        if self.current.app.is_none() {
            self.condition = Condition::Explaining(ticket);
        } else {
            self.boots.explaining = Some(ticket);
        }
    }

    pub(super) fn explain(&mut self, folder: PathBuf, failure: BootFailure) -> Ticket {
        let ticket = self.next_ticket();
        self.act(AppAction::Diagnose { ticket, folder, failure: Box::new(failure) });
        ticket
    }

    pub(super) fn diagnosed(
        &mut self,
        ticket: Ticket,
        diagnosis: Arc<Diagnosis>,
        files: Option<FolderState>,
    ) {
        let is_restarts = |(of, _)| of == ticket;
        if self.restarts.going.as_ref().and_then(|restart| restart.explaining).is_some_and(is_restarts) {
            return self.restart_explained(diagnosis);
        }
        self.fails_with(diagnosis.summary());
        if matches!(self.condition, Condition::Explaining(of) if of == ticket) {
            self.condition = Condition::Booting;
            if self.is_brought_up() {
                self.log(AppLog::BootFailed(Arc::clone(&diagnosis)));
                self.not_booted(diagnosis, files);
            }
        } else if self.boots.explaining == Some(ticket) {
            self.boots.explaining = None;
            if matches!(self.phase, Phase::Running) {
                self.log(AppLog::BootFailed(Arc::clone(&diagnosis)));
                self.trouble.diagnosis = Some(Arc::clone(&diagnosis));
                self.notify(FrontNews::Failed(diagnosis));
                self.postpone_boot(Life::NeverReady);
            }
        }
        self.has_changed = true;
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
