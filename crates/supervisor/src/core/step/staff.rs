//! Keeping as many workers as there should be.

use super::super::app::App;
use super::super::condition::{Condition, Phase};
use super::super::ids::Process;
use super::super::mold::Mold;
use super::super::version::Version;
use super::super::worker::Worker;
use super::super::{AppAction, AppLog};
use super::refork::GONE;
use crate::core::refork::ReforkStage;
use crate::core::restart::{Failure, Stage};
use crate::core::restart_policy::Life;
use crate::core::rolling::{Move, Tally};
use crate::core::worker::{StartFailure, WorkerState};
use highball_link::{AppCommand, Booted, NewWorker, Step};
use std::sync::Arc;
use std::time::Duration;

/// Time for a worker to exit although a thread of it is stuck: it may come back after all.
const STUCK_EXIT_TIME: Duration = Duration::from_secs(1);

impl App {
    /// The line that workers are to be of.
    pub(crate) fn staying(&self) -> u32 {
        let rolls = self.restarts.stage() == Some(Stage::Rolling);
        let next = self.restarts.next().filter(|_| rolls).map(Version::line);
        next.or(self.reforks.line()).unwrap_or(self.current.line())
    }

    pub(crate) fn tally(&self) -> Tally {
        let one_is_relieved = self.reforks.stage() == Some(ReforkStage::Relieving);
        let wanted = if self.condition.is_asleep() { 0 } else { usize::from(self.staff.wanted()) };
        let wanted = self.wanted_of_old(wanted) + usize::from(one_is_relieved);
        let apart = self.restarts.holding().map(|restart| restart.next.line());
        self.staff.tally(self.staying(), apart, wanted, self.may_replace(), self.now)
    }

    /// Forks missing workers, and retires surplus ones. While the front finishes what is in flight, one worker is enough,
    /// should all have died.
    pub(super) fn staff(&mut self) {
        if !self.phase.is_running() {
            if self.waits_to_fork() && self.may_fork() {
                self.fork(self.current.line());
            }
            return;
        }
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
        self.staff.may_fork(self.now)
            && self.condition.is_present()
            && self.molds.of(self.staying()).is_some_and(Mold::is_booted)
    }

    /// Whether a worker is missing.
    pub(super) fn waits_to_fork(&self) -> bool {
        match self.phase {
            Phase::Running => self.tally().next_move() == Move::Fork,
            Phase::Draining(_) => self.staff.workers().counting() == 0,
            Phase::Finishing { .. } | Phase::Ending(..) => false,
        }
    }

    /// One worker more or fewer than before, and never none.
    pub(super) fn want_workers(&mut self, more: i32) {
        if !self.phase.is_running() || self.config.is_site() {
            return;
        }
        let wanted = self.staff.order(more, self.now);
        self.out.log(AppLog::WorkersWanted(wanted));
    }

    fn retire_one(&mut self, of_staying: bool) {
        let Some(worker) = self.staff.workers().to_retire(self.staying(), of_staying) else { return };
        if self.staff.retire(worker, self.config.retire_limit(), self.now) {
            self.out.log(AppLog::Retires { worker });
            self.out.notify(AppCommand::RetireWorker { worker });
            let is_last = self.tally().is_settled();
            if is_last && self.restarts.stage() == Some(Stage::Rolling) {
                self.out.checkpoint("restart.last_retired");
            } else if is_last && self.reforks.line().is_some() {
                self.out.checkpoint("refork.last_retired");
            }
        }
    }

    /// Asks the mold of a line for a worker of it.
    pub(super) fn fork(&mut self, line: u32) {
        let Some(boot) = self.molds.of(line).map(|mold| mold.boot) else { return };
        let generation = self.restarts.version_of(line).unwrap_or(&self.current).number();
        self.out.act(self.staff.fork(boot, (generation, line), self.config.boot_timeout, self.now));
    }

    /// The order could not be given: the system refused a ring or a socket, or the mold's socket is full or closed.
    pub(super) fn not_forked(&mut self, number: u32, error: String) {
        let Some(worker) = self.staff.gone(number) else { return };
        self.out.act(AppAction::Forget { process: Process::Worker(number), ending: None });
        self.out.log(AppLog::NotForked { worker: number, error: error.clone() });
        self.note_failure(format!("a worker could not be forked: {error}"));
        if worker.line != self.current.line() && !self.restarts.is_going() && !self.reforks.is_going() {
            return;
        }
        if self.restarts.is_next(worker.generation) {
            let remedy = "The system refused it; see the message. Make room, and restart again.";
            self.restart_failed(&Failure::new(format!("forking a worker failed: {error}"), remedy));
        } else if !self.is_end_of_refork(number, &worker, true, &error) && self.now >= self.staff.fork_due() {
            self.delay_next_fork(Life::NeverReady); // several that were refused together count once
        }
    }

    /// An order to it could not be sent.
    pub(super) fn unreachable(&mut self, worker: u32) {
        let obeys = |worker: &Worker| matches!(worker.state, WorkerState::Draining | WorkerState::Promoting);
        if self.reforks.stage_about(worker) == Some(ReforkStage::Asking) {
            self.refork_failed(GONE.into());
        } else if self.staff.get(worker).is_some_and(obeys) {
            self.out.act_all(self.staff.halt(worker, self.now));
        }
    }

    /// It could not start, or not become a mold, and says why.
    pub(super) fn worker_failed(&mut self, number: u32, failure: StartFailure) {
        let Some(promoting) = self.staff.failed_to_start(number, failure.clone()) else { return };
        let what = if promoting { "a worker could not become a mold" } else { "a worker could not start" };
        self.note_failure(format!("{what}: {}", failure.error));
        self.out.log(AppLog::WorkerFailed { worker: number, promoting, failure });
    }

    /// It has loaded the application, which its mold has not.
    pub(super) fn worker_booted(&mut self, number: u32, app: Arc<Booted>) {
        let worker = self.staff.get(number).filter(|worker| worker.state == WorkerState::Starting);
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
        if self.staff.starts_too_long(number, self.now) {
            self.out.log(AppLog::StartsTooLong { worker: number });
            return self.out.act(AppAction::DumpThreads(Process::Worker(number)));
        }
        self.out.act_all(self.staff.halt(number, self.now));
        let step = if self.config.preload { Step::StartWorker } else { Step::LoadApp };
        self.worker_failed(number, super::boot::too_slow(step, self.config.boot_timeout).into());
    }

    pub(super) fn worker_ready(&mut self, number: u32) {
        let Some(worker) = self.staff.get(number) else { return };
        let (generation, line) = (worker.generation, worker.line);
        let version = self.restarts.version_of(line).unwrap_or(&self.current);
        if version.line() == line && !version.has_booted() {
            let error = "it is ready, and has not reported which application it has loaded";
            return self.misbehaved(Process::Worker(number), error);
        }
        let is_new = self.restarts.is_next(generation);
        // In a refork the old worker serves until then, so the new one may be prepared before it serves. (A worker that is
        // replaced for a fault may serve nothing at all.)
        let tally = self.tally();
        let all_serve = tally.serving + tally.others_serving >= usize::from(self.staff.wanted());
        let is_probed = is_new || (self.reforks.is_going() && all_serve);
        let probed_until = is_probed.then_some(self.now + self.config.probe_timeout);
        let Some(took) = self.staff.ready(number, probed_until, self.now) else { return };
        let is_usual = self.staff.is_crashing() && !is_new;
        self.out.log(AppLog::WorkerReady { worker: number, took, is_usual });
        if !is_probed {
            return self.out.notify(AppCommand::AddWorker(NewWorker {
                worker: number,
                generation,
                ring: (),
            }));
        }
        self.out.notify(AppCommand::AddCanary(NewWorker { worker: number, generation, ring: () }));
        if self.restarts.is_probing(generation) {
            self.out.checkpoint("restart.canary_ready");
        }
    }

    /// Another worker takes this one's place, if it serves.
    pub(super) fn replace(&mut self, worker: u32, why: AppLog) {
        if self.phase.is_running() && self.staff.retire(worker, self.config.retire_limit(), self.now) {
            self.out.log(why);
            self.out.notify(AppCommand::RetireWorker { worker });
        }
    }

    /// It exists, and has to be ready in time.
    pub(super) fn worker_hello(&mut self, worker: u32) {
        let ready_by = self.now + self.config.boot_timeout;
        self.out.act_all(self.staff.said_hello(worker, ready_by));
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
        if self.staff.get(number).is_some_and(retires) {
            self.out.act_all(self.staff.drain(number, self.now + limit, self.now));
        }
    }

    /// One has died, or was not forked: the next one may have to wait.
    pub(super) fn delay_next_fork(&mut self, life: Life) {
        if let Some(failures) = self.staff.delay_next(life, self.now) {
            self.give_up("workers", failures);
        }
    }
}
