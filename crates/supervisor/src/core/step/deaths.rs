//! Processes that end, misbehave, or close their control sockets.

use super::super::app::{App, Condition, Phase};
use super::super::event::Process;
use super::super::mold::Mold;
use super::super::mutation::{is_mutated, Mutation};
use super::super::worker::Worker;
use super::super::{AppAction, AppLog, FrontNews};
use super::boot::died_while_booting;
use crate::core::crash_loop::{CrashLoop, Death};
use crate::core::ending::Ending;
use crate::core::restart::Stage;
use crate::core::restart_policy::{Life, RestartPolicy};
use crate::core::worker::{StartFailure, WorkerState};
use crate::facts::boot_failure::BootFailure;
use highball_link::Step;
use std::time::Instant;

impl App {
    /// The kernel reports the end of a process. One that the core has given up already is only forgotten.
    pub(super) fn process_ended(&mut self, process: Process, ending: Ending) {
        let now = self.now;
        match process {
            Process::Worker(number) => match self.staff.workers.get_mut(number) {
                Some(worker) => {
                    if let Some(ending) = worker.ended(ending, now) {
                        self.worker_gone(number, ending);
                    }
                }
                None => self.out.act(AppAction::Forget { process, ending: Some(ending) }),
            },
            Process::Mold(boot) if self.molds.get(boot).is_some() => {
                if let Some(ending) = self.molds.ended(boot, ending, now) {
                    self.mold_gone(boot, ending);
                }
            }
            Process::Mold(_) => self.out.act(AppAction::Forget { process, ending: Some(ending) }),
        }
    }

    /// A control socket was closed from the other side.
    pub(super) fn process_closed(&mut self, process: Process) {
        let now = self.now;
        match process {
            Process::Worker(number) => {
                let worker = self.staff.workers.get_mut(number);
                if let Some(ending) = worker.and_then(|worker| worker.heard_out(now)) {
                    self.worker_gone(number, ending);
                }
            }
            Process::Mold(boot) => {
                if let Some(ending) = self.molds.heard_out(boot) {
                    self.mold_gone(boot, ending);
                }
            }
        }
    }

    /// A worker that serves has closed its control socket, and has not ended: no order reaches it any more.
    pub(super) fn control_is_closed(&mut self, number: u32) {
        let is_usual = self.staff.is_crashing;
        if let Some(worker) = self.staff.workers.get_mut(number) {
            let what =
                "it has closed its control socket, by `exec` or by closing descriptors that are not its own";
            worker.failure.get_or_insert_with(|| Box::new(StartFailure::of_ours(what.into())));
        }
        self.out.log(AppLog::ControlClosed { worker: number, is_usual });
        self.halt_worker(number);
    }

    /// Kills a process after a protocol error; its end is noticed like any other.
    pub(super) fn misbehaved(&mut self, process: Process, error: &str) {
        self.out.log(AppLog::Misbehaved { process, error: error.into() });
        match process {
            Process::Worker(worker) => self.halt_worker(worker),
            Process::Mold(boot) => self.mold_misbehaved(boot, error),
        }
    }

    /// The front found a protocol error in its ring.
    pub(super) fn worker_broken(&mut self, worker: u32, why: String) {
        if self.staff.workers.get(worker).is_some() {
            self.trouble.note(format!("worker {worker} broke the rules of its ring: {why}"));
            self.out.log(AppLog::Broken { worker, why });
            self.halt_worker(worker);
        }
    }

    /// The mold could not fork it.
    pub(super) fn fork_failed(&mut self, number: u32, message: String) {
        self.trouble.note(format!("a worker could not be forked: {message}"));
        self.out.log(AppLog::NotForked { worker: number, error: message.clone() });
        let Some(worker) = self.staff.workers.get_mut(number).filter(|worker| worker.counts()) else {
            return;
        };
        worker.failure = Some(Box::new(StartFailure::of_ours(message)));
        if worker.state == WorkerState::Forking {
            self.worker_gone(number, Ending::Unknown);
        } else {
            self.halt_worker(number); // it was forked all the same, but its mold does not know of it
        }
    }

    pub(super) fn worker_gone(&mut self, number: u32, ending: Ending) {
        if is_mutated(Mutation::LoseDeath) {
            return self.forget_deadline(number);
        }
        let Some(worker) = self.staff.workers.remove(number) else { return };
        if worker.was_ready() {
            let killed = worker.state == WorkerState::Halted;
            self.out.notify(FrontNews::WorkerGone { worker: number, killed });
        }
        self.log_death(number, &worker, ending);
        self.out.act(AppAction::Forget { process: Process::Worker(number), ending: Some(ending) });
        self.worker_is_missed(number, &worker, ending);
    }

    /// For the mutation above: it would be overdue for ever.
    fn forget_deadline(&mut self, number: u32) {
        if let Some(worker) = self.staff.workers.get_mut(number) {
            worker.deadline = None;
        }
    }

    fn log_death(&mut self, number: u32, worker: &Worker, ending: Ending) {
        let state = worker.state;
        self.trouble.oom_kills += u64::from(ending == Ending::OutOfMemory);
        let is_usual = matches!(state, WorkerState::Draining | WorkerState::Halted) || self.is_ending();
        if is_usual {
            return self.out.log(AppLog::WorkerGone { worker: number, ending });
        }
        let is_usual = self.staff.is_crashing;
        self.out.log(AppLog::WorkerDied { worker: number, ending, state, is_usual });
        // If it has reported why, that is the failure.
        if worker.failure.is_none() {
            self.trouble.note(format!("worker {number} died: {ending}"));
        }
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
        if running && self.restarts.is_next(worker.generation) && !expected {
            self.next_worker_gone(number, worker, ending);
        } else if worker.generation == self.current.number()
            && !self.has_ordered_workers_to_exit()
            && has_failed
        {
            self.next_is_delayed(number, worker, ending);
        }
    }

    /// The worker that is forked in the place of this one may have to wait.
    fn next_is_delayed(&mut self, number: u32, worker: &Worker, ending: Ending) {
        let (now, pool, life) = (self.now, self.staff.wanted, worker.life(self.now));
        let failure = worker.failure.as_ref().map(|failure| failure.error.to_string());
        let report = self.staff.crash_loop.died(Death { worker: number, life, ending, failure }, pool, now);
        if let Some(crashes) = report {
            self.out.log(AppLog::CrashLoop(crashes));
            self.crash_loop_is(true);
        }
        if self.restarts.stage() == Some(Stage::Rolling) || is_mutated(Mutation::ForkAtOnce) {
            return; // its place is for one of the new version
        }
        match life {
            Life::NeverReady => self.postpone_fork(life),
            Life::Ready(_) => self.staff.fork_due = self.staff.fork_due.max(self.staff.crash_loop.due(pool)),
        }
    }

    /// Workers have not died for long enough.
    pub(super) fn end_crash_loop_if_over(&mut self) {
        if self.crash_loop_over().is_some_and(|over_at| self.now >= over_at) {
            self.out.log(AppLog::CrashLoopOver);
            self.crash_loop_is(false);
        }
    }

    /// When that will be, if there is a crash loop.
    pub(super) fn crash_loop_over(&self) -> Option<Instant> {
        self.staff.crash_loop.over_at().filter(|_| self.staff.is_crashing)
    }

    /// What is forked from now on has nothing to do with what has died.
    pub(super) fn forget_crashes(&mut self) {
        self.staff.crash_loop = CrashLoop::new(self.now);
        self.staff.policy = RestartPolicy::new(self.config.max_boot_failures);
        self.staff.fork_due = self.now;
        self.crash_loop_is(false);
    }

    fn crash_loop_is(&mut self, is_on: bool) {
        if std::mem::replace(&mut self.staff.is_crashing, is_on) != is_on {
            self.out.notify(FrontNews::CrashLoop { is_on });
        }
    }

    fn has_ordered_workers_to_exit(&self) -> bool {
        matches!(self.phase, Phase::Finishing { .. } | Phase::Ending(..))
    }

    /// Whether the death of this worker means that the application does not boot: when no worker has ever loaded it, which
    /// is as if its mold could not; and where people fix it, when none gets ready and no other serves.
    fn is_failed_boot(&self, worker: &Worker) -> bool {
        if !self.is_present() {
            return false;
        }
        let is_alone = !self.restarts.is_going() && !self.reforks.is_going();
        let can_fork = self.molds.of(self.current.line()).is_some_and(Mold::is_booted);
        let none_serves = self.staff.workers.in_state(WorkerState::Serving) == 0;
        let is_final = is_alone && can_fork && none_serves && !self.is_repeated();
        matches!(self.condition, Condition::Booting) || (is_final && !worker.was_ready())
    }

    /// No worker gets ready. Those that are on the way would not either.
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
        self.halt_coming(self.current.line());
        self.current.gone();
        self.condition = Condition::Booting;
        self.boots.explaining = None;
        self.boot_failed(failure);
    }
}
