//! Processes that end, misbehave, or close their control sockets.

use super::super::app::App;
use super::super::condition::Condition;
use super::super::ids::Process;
use super::super::mold::Mold;
use super::super::worker::Worker;
use super::super::{AppAction, AppLog};
use super::boot::{died_while_booting, not_understood, MoldRole};
use crate::core::restart::Stage;
use crate::core::worker::{StartFailure, WorkerState};
use crate::facts::boot_failure::BootFailure;
use crate::facts::ending::Ending;
use highball_link::{AppCommand, Step};

impl App {
    /// The kernel reports the end of a process. If the core has given it up already, it only forgets it.
    pub(super) fn process_ended(&mut self, process: Process, ending: Ending) {
        let (is_known, gone) = match process {
            Process::Worker(number) => {
                (self.staff.get(number).is_some(), self.staff.ended(number, ending, self.now))
            }
            Process::Mold(boot) => (self.molds.get(boot).is_some(), self.molds.ended(boot, ending, self.now)),
            Process::Companion(number) => return self.companion_ended(number, ending),
        };
        match gone {
            Some(ending) => self.process_gone(process, ending),
            None if is_known => {}
            None => self.out.act(AppAction::Forget { process, ending: Some(ending) }),
        }
    }

    /// A control socket was closed from the other side.
    pub(super) fn process_closed(&mut self, process: Process) {
        let gone = match process {
            Process::Worker(number) => self.staff.heard_out(number, self.now),
            Process::Mold(boot) => self.molds.heard_out(boot),
            Process::Companion(number) => {
                self.companions.closed(number, self.now);
                return self.out.go_on();
            }
        };
        if let Some(ending) = gone {
            self.process_gone(process, ending);
        }
    }

    fn process_gone(&mut self, process: Process, ending: Ending) {
        match process {
            Process::Worker(number) => self.worker_gone(number, ending),
            Process::Mold(boot) => self.mold_gone(boot, ending),
            Process::Companion(number) => self.companion_ended(number, ending),
        }
    }

    /// Kills a process after a protocol error; its end is noticed like any other. A mold that boots cannot be waited for any
    /// more: its boot has failed.
    pub(super) fn misbehaved(&mut self, process: Process, error: &str) {
        self.out.log(AppLog::Misbehaved { process, error: error.into() });
        let boot = match process {
            Process::Worker(worker) => return self.out.act_all(self.staff.halt(worker, self.now)),
            Process::Companion(number) => {
                return self.out.act_all(self.companions.halt(number, self.now));
            }
            Process::Mold(boot) => boot,
        };
        let Some(mold) = self.molds.get(boot).filter(|mold| !mold.is_halted()) else {
            return; // that was noticed before
        };
        let (role, step, life) = (self.role_of(mold.line), mold.step(), mold.life(self.now));
        self.out.act_all(self.molds.halt(boot, self.now));
        match step {
            Some(step) => self.boot_failed_as(role, not_understood(step, error)),
            None if role == MoldRole::Current => self.postpone_boot(life),
            None => {}
        }
    }

    /// The front found a protocol error in its ring.
    pub(super) fn worker_broken(&mut self, worker: u32, why: String) {
        if self.staff.get(worker).is_some() {
            self.note_failure(format!("worker {worker} broke the rules of its ring: {why}"));
            self.out.log(AppLog::Broken { worker, why });
            self.out.act_all(self.staff.halt(worker, self.now));
        }
    }

    /// The mold could not fork it.
    pub(super) fn fork_failed(&mut self, number: u32, message: String) {
        self.note_failure(format!("a worker could not be forked: {message}"));
        self.out.log(AppLog::NotForked { worker: number, error: message.clone() });
        match self.staff.fork_failed(number, message) {
            Some(WorkerState::Forking) => self.worker_gone(number, Ending::Unknown),
            // It was forked all the same, but its mold does not know of it.
            Some(_) => self.out.act_all(self.staff.halt(number, self.now)),
            None => {}
        }
    }

    pub(super) fn worker_gone(&mut self, number: u32, ending: Ending) {
        let Some(worker) = self.staff.gone(number) else { return };
        if worker.was_ready() {
            let killed = worker.state == WorkerState::Halted;
            self.out.notify(AppCommand::RemoveWorker { worker: number, killed });
        }
        let state = worker.state;
        if matches!(state, WorkerState::Draining | WorkerState::Halted) || self.phase.is_ending() {
            self.out.log(AppLog::WorkerGone { worker: number, ending });
        } else {
            let is_usual = self.staff.is_crashing();
            self.out.log(AppLog::WorkerDied { worker: number, ending, state, is_usual });
            // If it has reported why, that is the failure.
            if worker.failure.is_none() {
                self.note_failure(format!("worker {number} died: {ending}"));
            }
        }
        self.trouble.oom_kills += u64::from(ending == Ending::OutOfMemory);
        self.out.act(AppAction::Forget { process: Process::Worker(number), ending: Some(ending) });
        self.worker_is_missed(number, &worker, ending);
    }

    /// What follows from the death of a worker.
    fn worker_is_missed(&mut self, number: u32, worker: &Worker, ending: Ending) {
        let expected = worker.state == WorkerState::Draining && ending == Ending::Exited(0);
        let running = self.is_brought_up();
        let is_changing = self.restarts.is_going() || self.reforks.is_going();
        if running && worker.line != self.current.line() && !is_changing {
            return; // it is of a time before the application fell asleep, or did not boot
        }
        if matches!(self.condition, Condition::Explaining(_)) {
            return; // that the application does not boot is known
        }
        if running && !expected && self.is_failed_boot(worker) {
            return self.not_staffed(worker.failure.as_deref().cloned(), ending);
        }
        let why = worker.failure.as_ref().map_or(ending.to_string(), |failure| failure.error.to_string());
        let has_failed = !expected && !worker.is_retired();
        if running && self.is_end_of_refork(number, worker, has_failed, &why) {
            return;
        }
        let is_next = running && self.restarts.is_next(worker.generation) && !expected;
        if is_next && self.restarts.holding().is_some() {
            self.died_beside(number, worker, ending);
        } else if is_next {
            self.next_worker_gone(number, worker, ending);
        } else if worker.generation == self.current.number() && !self.phase.is_last() && has_failed {
            self.next_is_delayed(number, worker, ending);
        }
    }

    /// The worker that is forked in the place of this one may have to wait.
    fn next_is_delayed(&mut self, number: u32, worker: &Worker, ending: Ending) {
        if let Some(crashes) = self.staff.died(number, worker, ending, self.now) {
            self.out.log(AppLog::CrashLoop(crashes));
            if self.staff.crash_loop_begins() {
                self.out.notify(AppCommand::CrashLoop { is_on: true });
            }
        }
        // While a new version rolls, its place is for one of that.
        if self.restarts.stage() != Some(Stage::Rolling) {
            self.delay_next_fork(worker.life(self.now));
        }
    }

    /// Whether the death of this worker means that the application does not boot: when no worker has ever loaded it, which
    /// is as if its mold could not; and where people fix it, when none gets ready and no other serves.
    fn is_failed_boot(&self, worker: &Worker) -> bool {
        if !self.condition.is_present() {
            return false;
        }
        let is_alone = !self.restarts.is_going() && !self.reforks.is_going();
        let can_fork = self.molds.of(self.current.line()).is_some_and(Mold::is_booted);
        let none_serves = !self.staff.any_serves();
        let is_final = is_alone && can_fork && none_serves && !self.surroundings.repeat_boots(&self.config);
        matches!(self.condition, Condition::Booting) || (is_final && !worker.was_ready())
    }

    /// No worker gets ready. Workers on the way would not either.
    fn not_staffed(&mut self, failure: Option<StartFailure>, ending: Ending) {
        let step = if self.current.has_booted() { Step::StartWorker } else { Step::LoadApp };
        let failure = match failure {
            Some(StartFailure { boot: Some(failure), .. }) => *failure,
            Some(StartFailure { error, boot: None }) => {
                let remedy = "The system refused it; see the message. Make room, and try again.";
                BootFailure::of_ours(step, "fork_failed", error.message, remedy.into())
            }
            None => died_while_booting(step, ending),
        };
        self.out.act_all(self.staff.halt_coming(self.current.line(), self.now));
        self.current.gone();
        self.condition = Condition::Booting;
        self.boots.forget_failure();
        self.boot_failed(failure);
    }
}
