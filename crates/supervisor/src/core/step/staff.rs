//! Keeping as many workers as there should be.

use super::super::app::{App, Condition, Phase};
use super::super::event::Process;
use super::super::mold::{Mold, DUMP_TIME};
use super::super::mutation::{is_mutated, Mutation};
use super::super::version::Version;
use super::super::worker::Worker;
use super::super::{AppAction, AppLog, FrontNews, WorkerOrder};
use super::end::FRONT_TIME;
use crate::core::refork::ReforkStage;
use crate::core::restart::{Failure, Stage};
use crate::core::restart_policy::{Life, Verdict};
use crate::core::rolling::{Move, Tally};
use crate::core::server::SAME_SIGNAL;
use crate::core::worker::{StartFailure, WorkerState};
use highball_link::{Booted, Step};
use std::sync::Arc;
use std::time::Duration;

/// Forks under way at a time: their messages and descriptors fit into the mold's control socket.
const FORKS_AT_A_TIME: usize = 8;
/// Time for a worker to exit although a thread of it is stuck: it may come back after all.
const STUCK_EXIT_TIME: Duration = Duration::from_secs(1);
/// As many as can be asked for at the start.
const MOST_WORKERS: i32 = 512;

impl App {
    /// The line that workers are to be of.
    pub(crate) fn staying(&self) -> u32 {
        let rolls = self.restarts.stage() == Some(Stage::Rolling);
        let next = self.restarts.next().filter(|_| rolls).map(Version::line);
        next.or(self.reforks.line()).unwrap_or(self.current.line())
    }

    pub(crate) fn tally(&self) -> Tally {
        let one_is_relieved = self.reforks.stage() == Some(ReforkStage::Relieving);
        let wanted = if self.is_asleep() { 0 } else { usize::from(self.staff.wanted) };
        let wanted = wanted + usize::from(one_is_relieved) + self.reliefs();
        let mut tally = self.staff.workers.tally(self.staying(), wanted, self.staff.surge);
        tally.coming += self.places_held(); // nothing is forked for these places yet
        tally
    }

    /// Forks the workers that are missing, and retires those that are too many.
    pub(super) fn staff(&mut self) {
        loop {
            match self.tally().next_move() {
                Move::Fork if self.may_fork() => self.fork(self.staying()),
                Move::RetireOther => self.retire_one(false),
                Move::RetireSurplus => self.retire_one(true),
                Move::Fork | Move::Wait => return,
            }
        }
    }

    /// Whether all that a fork takes is there.
    fn may_fork(&self) -> bool {
        self.now >= self.staff.fork_due
            && self.is_present()
            && self.molds.of(self.staying()).is_some_and(Mold::is_booted)
            && self.staff.workers.in_state(WorkerState::Forking) < FORKS_AT_A_TIME
    }

    /// While the front finishes what is in flight one worker is enough, should all have died.
    pub(super) fn staff_for_drain(&mut self) {
        if self.staff.workers.counting() == 0 && self.may_fork() {
            self.fork(self.current.line());
        }
    }

    /// Whether a worker is missing.
    pub(super) fn waits_to_fork(&self) -> bool {
        match self.phase {
            Phase::Running => self.tally().next_move() == Move::Fork,
            Phase::Draining(_) => self.staff.workers.counting() == 0,
            Phase::Finishing { .. } | Phase::Ending(..) => false,
        }
    }

    /// One worker more or fewer than before, and never none.
    pub(super) fn want_workers(&mut self, more: i32) {
        if !self.is_running() || self.is_site() {
            return;
        }
        let wanted = i32::from(self.staff.wanted).saturating_add(more).clamp(1, MOST_WORKERS);
        self.staff.wanted = wanted as u16;
        if let Some(sizing) = &mut self.sizing {
            sizing.ordered(self.staff.wanted, self.now);
        }
        self.out.log(AppLog::WorkersWanted(self.staff.wanted));
    }

    fn retire_one(&mut self, of_staying: bool) {
        let Some(worker) = self.staff.workers.to_retire(self.staying(), of_staying) else { return };
        if self.retire(worker) {
            self.out.log(AppLog::Retires { worker });
            self.out.notify(FrontNews::WorkerRetiring { worker });
            if self.tally().is_settled() {
                self.last_retired();
            }
        }
    }

    /// The front is to give it nothing more. False: it does not serve.
    pub(super) fn retire(&mut self, worker: u32) -> bool {
        let (now, limit) = (self.now, self.config.drain_timeout + FRONT_TIME);
        self.staff.workers.get_mut(worker).is_some_and(|worker| worker.retire(now, limit))
    }

    /// Where one version, or what was forked from one mold, has taken every place of another.
    fn last_retired(&mut self) {
        if self.restarts.stage() == Some(Stage::Rolling) {
            self.out.checkpoint("restart.last_retired");
        } else if self.reforks.line().is_some() {
            self.out.checkpoint("refork.last_retired");
        }
    }

    /// The version of the application that this line runs.
    fn generation_of(&self, line: u32) -> u32 {
        self.restarts.version_of(line).unwrap_or(&self.current).number()
    }

    /// Asks the mold of a line for a worker of it.
    pub(super) fn fork(&mut self, line: u32) {
        let Some(boot) = self.molds.of(line).map(|mold| mold.boot) else { return };
        let of = (self.generation_of(line), line);
        let worker = self.staff.workers.add(Worker::forking(of, self.now, self.config.boot_timeout));
        self.out.act(AppAction::Fork { boot, worker });
    }

    /// The order could not be given: the system refused a ring or a socket, or the mold's socket is full or closed.
    pub(super) fn not_forked(&mut self, number: u32, error: String) {
        let Some(worker) = self.staff.workers.remove(number) else { return };
        self.out.act(AppAction::Forget { process: Process::Worker(number), ending: None });
        self.out.log(AppLog::NotForked { worker: number, error: error.clone() });
        self.trouble.note(format!("a worker could not be forked: {error}"));
        if worker.line != self.current.line() && !self.restarts.is_going() && !self.reforks.is_going() {
            return;
        }
        if self.restarts.is_next(worker.generation) {
            let remedy = "The system refused it; see the message. Make room, and restart again.";
            self.restart_failed(&Failure::new(format!("forking a worker failed: {error}"), remedy));
        } else if !self.is_end_of_refork(number, &worker, true, &error) && self.now >= self.staff.fork_due {
            self.postpone_fork(Life::NeverReady); // several that were refused together count once
        }
    }

    pub(super) fn worker_hello(&mut self, worker: u32) {
        let deadline = self.now + self.config.boot_timeout;
        match self.staff.workers.get_mut(worker) {
            Some(worker) => worker.exists(deadline),
            None => self.out.act(AppAction::Kill(Process::Worker(worker))),
        }
    }

    /// An order to it could not be sent.
    pub(super) fn unreachable(&mut self, worker: u32) {
        let obeys = |worker: &Worker| matches!(worker.state, WorkerState::Draining | WorkerState::Promoting);
        if self.reforks.stage_about(worker) == Some(ReforkStage::Asking) {
            self.refork_failed("the worker that was to be promoted does not serve any more".into());
        } else if self.staff.workers.get(worker).is_some_and(obeys) {
            self.halt_worker(worker);
        }
    }

    /// It could not start, or not become a mold, and says why.
    pub(super) fn worker_failed(&mut self, number: u32, failure: StartFailure) {
        let Some(worker) = self.staff.workers.get_mut(number) else { return };
        let promoting = worker.state == WorkerState::Promoting;
        worker.failure = Some(Box::new(failure.clone()));
        let what = if promoting { "a worker could not become a mold" } else { "a worker could not start" };
        self.trouble.note(format!("{what}: {}", failure.error));
        self.out.log(AppLog::WorkerFailed { worker: number, promoting, failure });
    }

    /// It has loaded the application, which its mold has not.
    pub(super) fn worker_booted(&mut self, number: u32, app: Arc<Booted>) {
        let worker = self.staff.workers.get(number).filter(|worker| worker.state == WorkerState::Starting);
        let Some(worker) = worker else { return }; // it was ordered to exit meanwhile
        let (generation, line) = (worker.generation, worker.line);
        if self.restarts.is_next(generation) {
            self.restarts.worker_booted(app);
        } else if line == self.current.line()
            && generation == self.current.number()
            && !self.current.has_booted()
            && matches!(self.condition, Condition::Booting)
        {
            self.out.log(AppLog::WorkerBooted { worker: number, app: Arc::clone(&app) });
            self.current_booted(app);
        }
    }

    /// Its time for getting ready is over: where it hangs is printed, and then it is killed.
    pub(super) fn worker_starts_too_long(&mut self, number: u32) {
        let (now, limit) = (self.now, self.config.boot_timeout);
        let Some(worker) = self.staff.workers.get_mut(number) else { return };
        if worker.dump(now, DUMP_TIME) {
            self.out.log(AppLog::StartsTooLong { worker: number });
            return self.out.act(AppAction::DumpThreads(Process::Worker(number)));
        }
        self.halt_worker(number);
        let step = if self.config.preload { Step::StartWorker } else { Step::LoadApp };
        self.worker_failed(number, super::boot::too_slow(step, limit).into());
    }

    pub(super) fn worker_ready(&mut self, number: u32) {
        let (now, probe_until) = (self.now, self.now + self.config.probe_timeout);
        if !self.has_loaded(number) {
            let error = "it is ready, and has not reported which application it has loaded";
            return self.misbehaved(Process::Worker(number), error);
        }
        let Some(generation) = self.staff.workers.get(number).map(|worker| worker.generation) else { return };
        let is_new = self.restarts.is_next(generation);
        let is_probed = is_new || self.is_spare();
        let (state, deadline) = if is_probed {
            let deadline = (!is_mutated(Mutation::ForgetProbeDeadline)).then_some(probe_until);
            (WorkerState::Probing, deadline)
        } else {
            (WorkerState::Serving, None)
        };
        let Some(worker) = self.staff.workers.get_mut(number) else { return };
        if !worker.becomes(state, deadline, now) {
            return;
        }
        let took = now - worker.forked_at;
        let is_usual = self.staff.is_crashing && !is_new;
        self.out.log(AppLog::WorkerReady { worker: number, took, is_usual });
        if is_probed {
            self.out.notify(FrontNews::CanaryReady { worker: number, generation });
            if self.restarts.is_probing(generation) {
                self.out.checkpoint("restart.canary_ready");
            }
            return;
        }
        self.staff.policy.ready();
        self.out.notify(FrontNews::WorkerReady { worker: number, generation });
    }

    /// Whether a worker that is ready may be prepared before it serves: in a refork it takes the place of one that serves until
    /// then. (One that is replaced for what is wrong with it may serve nothing at all.)
    fn is_spare(&self) -> bool {
        let tally = self.tally();
        self.reforks.is_going() && tally.serving + tally.others_serving >= usize::from(self.staff.wanted)
    }

    /// Whether it is known which application this worker has loaded: its mold has reported it, or a worker.
    fn has_loaded(&self, number: u32) -> bool {
        let Some(worker) = self.staff.workers.get(number) else { return true };
        match self.restarts.version_of(worker.line) {
            Some(next) => next.has_booted(),
            None => worker.line != self.current.line() || self.current.has_booted(),
        }
    }

    /// Not retired at once: a TERM to the whole group reaches the workers before it has reached us, and then they are
    /// needed to answer what is in flight.
    pub(super) fn worker_leaving(&mut self, worker: u32) {
        let at = self.now + SAME_SIGNAL;
        if let Some(worker) = self.staff.workers.get_mut(worker) {
            worker.leaves_at = Some(at);
        }
    }

    /// Replaces the workers that were sent TERM.
    pub(super) fn retire_leaving(&mut self) {
        let now = self.now;
        for worker in self.staff.workers.which(|worker| worker.leaves_at.is_some_and(|at| at <= now)) {
            self.replace(worker, AppLog::ReplacedAfterTerm { worker });
        }
    }

    /// The front has placed nearly as many requests as the worker's ring has positions for.
    pub(super) fn ring_ends_soon(&mut self, worker: u32) {
        if matches!(self.phase, Phase::Running) {
            self.replace(worker, AppLog::ReplacedForRing { worker });
        }
    }

    /// Another worker takes this one's place, if it serves.
    fn replace(&mut self, worker: u32, why: AppLog) {
        if self.retire(worker) {
            self.out.log(why);
            self.out.notify(FrontNews::WorkerRetiring { worker });
        }
    }

    /// A retiring worker has nothing in flight; or, if it is stuck, only requests for which no client waits.
    pub(super) fn worker_idle(&mut self, number: u32, is_stuck: bool) {
        if is_stuck {
            // Its threads would never end for a promotion.
            if self.reforks.stage_about(number) == Some(ReforkStage::Retiring) {
                self.refork_failed("a request of the worker that was to be promoted does not end".into());
            }
        } else if self.promotes(number) {
            return;
        }
        let usual = self.config.drain_timeout;
        let limit = if is_stuck { usual.min(STUCK_EXIT_TIME) } else { usual };
        let retires = |worker: &Worker| worker.state == WorkerState::Retiring;
        if self.staff.workers.get(number).is_some_and(retires) {
            self.drain_worker(number, self.now + limit);
        }
    }

    /// Orders it to exit, where it has got far enough to receive that; else kills it.
    pub(super) fn drain_worker(&mut self, number: u32, until: std::time::Instant) {
        let Some(worker) = self.staff.workers.get_mut(number) else { return };
        if worker.hears() {
            worker.state = WorkerState::Draining;
            worker.deadline = Some(until);
            self.out.act(AppAction::Tell { worker: number, order: WorkerOrder::Drain });
        } else if worker.state != WorkerState::Draining {
            self.halt_worker(number);
        }
    }

    pub(super) fn halt_worker(&mut self, number: u32) {
        let now = self.now;
        if let Some(worker) = self.staff.workers.get_mut(number) {
            worker.halt(now);
            self.out.act(AppAction::Kill(Process::Worker(number)));
        }
    }

    pub(super) fn halt_workers(&mut self) {
        for worker in self.staff.workers.which(|_| true) {
            self.halt_worker(worker);
        }
    }

    /// Forgets the workers that do not exist yet. Should one be forked all the same, it finds its control socket closed
    /// and ends.
    pub(super) fn forget_unborn(&mut self, which: impl Fn(&Worker) -> bool) {
        let unborn = |worker: &Worker| worker.state == WorkerState::Forking && which(worker);
        for worker in self.staff.workers.which(unborn) {
            self.staff.workers.remove(worker);
            self.out.act(AppAction::Forget { process: Process::Worker(worker), ending: None });
        }
    }

    /// Ends the workers of a line that do not serve yet.
    pub(super) fn halt_coming(&mut self, line: u32) {
        self.forget_unborn(|worker| worker.line == line);
        let coming = |worker: &Worker| {
            worker.line == line && matches!(worker.state, WorkerState::Starting | WorkerState::Probing)
        };
        for worker in self.staff.workers.which(coming) {
            self.halt_worker(worker);
        }
    }

    pub(super) fn postpone_fork(&mut self, life: Life) {
        let others_serve = self.staff.workers.in_state(WorkerState::Serving) > 0;
        match self.staff.policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => {
                self.staff.fork_due = self.staff.fork_due.max(self.now + delay);
            }
            Verdict::GiveUp => self.give_up("workers", self.staff.policy.boot_failures()),
        }
    }
}
