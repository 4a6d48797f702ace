//! Reforks: a warm worker of the version that is served becomes its mold, and the other workers are replaced from it,
//! one at a time. Whatever fails on the way, the mold that there was stays, and replaces what is missing.

use super::super::app::{App, HotRestart, Refork};
use super::super::event::Process;
use super::super::mold::Mold;
use super::super::mutation::{is_mutated, Mutation};
use super::super::worker::Worker;
use super::super::{AppAction, AppLog, FrontNews, WorkerOrder};
use super::restart::is_proven;
use crate::core::crash_loop::PROBATION;
use crate::core::ending::Ending;
use crate::core::refork::{ReforkCause, ReforkStage};
use crate::core::worker::WorkerState;
use std::time::Duration;

/// Time for choosing a worker, and for its answer whether it can be forked from: it looks for a while whether native
/// threads stay.
const ANSWER_TIME: Duration = Duration::from_secs(15);

impl App {
    /// Begins a refork; its number. One that is under way is shared.
    pub(super) fn ask_refork(&mut self, cause: ReforkCause) -> Result<u32, String> {
        if let Err(why) = self.may_refork() {
            self.log(AppLog::NoRefork { cause, why });
            return Err(why.into());
        }
        if let Some(refork) = &self.reforks.going {
            return Ok(refork.number);
        }
        self.begin_refork(cause);
        self.reforks.counts_requests = false;
        self.notify(FrontNews::NameWarmWorker { requests: 0 });
        Ok(self.reforks.count)
    }

    pub(super) fn may_refork(&self) -> Result<(), &'static str> {
        if !self.is_running() {
            return Err("the server is stopping");
        }
        if self.restarts.going.is_some() || self.restarts.wish.is_some() {
            return Err("a restart is under way: ask again when it is done");
        }
        if self.surroundings.hot_restart != HotRestart::No {
            return Err("a hot restart is under way: the new process starts with new workers");
        }
        if !self.config.preload {
            return Err("the application is not preloaded (preload = off): workers have nothing to share");
        }
        match &self.current.app {
            Some(_) if self.is_site() => Err("a static site has no workers"),
            Some(app) if !app.restartable => {
                Err("the application was given as an object: its process is the mold, and stays it")
            }
            None => Err("the application has not booted yet"),
            _ if self.is_asleep() || self.staff.workers.in_state(WorkerState::Serving) == 0 => {
                Err("no worker serves that could be promoted")
            }
            _ => Ok(()),
        }
    }

    fn begin_refork(&mut self, cause: ReforkCause) {
        self.reforks.count += 1;
        self.restarts.last_line += 1;
        self.reforks.going = Some(Refork {
            number: self.reforks.count,
            stage: ReforkStage::Choosing,
            cause,
            began: self.now,
            deadline: Some(self.now + ANSWER_TIME),
            proven_at: None,
            worker: 0,
            line: self.restarts.last_line,
            mold: None,
        });
        self.has_changed = true;
    }

    /// The front names the worker that is the warmest by now.
    pub(super) fn worker_warm(&mut self, worker: u32) {
        let scheduled = std::mem::replace(&mut self.reforks.counts_requests, false);
        if self.reforks.going.is_none() && scheduled && self.reforks_by_itself() {
            return self.reforks.auto.warm(self.now);
        }
        if self.reforks.going.is_none() && scheduled && self.may_refork().is_ok() {
            let requests = self.reforks.schedule.next().unwrap_or_default();
            self.begin_refork(ReforkCause::Requests(requests));
        }
        let chooses = |refork: &&mut Refork| refork.stage == ReforkStage::Choosing;
        let Some(refork) = self.reforks.going.as_mut().filter(chooses) else {
            return; // not now; the count begins again when nothing is in the way any more
        };
        refork.worker = worker;
        refork.stage = ReforkStage::Asking;
        let cause = refork.cause;
        self.log(AppLog::Reforking { cause, worker });
        let (line, number) = (self.current.line, worker);
        let serves = |worker: &Worker| {
            worker.state == WorkerState::Serving && worker.line == line && worker.replacement.is_none()
        };
        if self.staff.workers.get(worker).is_some_and(serves) {
            let order = WorkerOrder::MayPromote { careful: cause.is_careful() };
            self.act(AppAction::Tell { worker: number, order });
        } else {
            self.refork_failed("the worker that was to be promoted does not serve any more".into());
        }
        self.checkpoint("refork.asking");
    }

    /// Begins what is due, and goes on with what is under way.
    pub(super) fn advance_refork(&mut self) {
        let Some(refork) = &self.reforks.going else {
            self.advance_measurement();
            return self.count_requests();
        };
        let (stage, worker) = (refork.stage, refork.worker);
        if refork.deadline.is_some_and(|at| self.now >= at) {
            let what = match stage {
                ReforkStage::Relieving => "no worker started that could serve in its place",
                _ => "the worker that was to be promoted does not answer",
            };
            return self.refork_failed(what.into());
        }
        let tally = self.tally();
        match stage {
            ReforkStage::Relieving if tally.serving >= tally.wanted || is_mutated(Mutation::RelieveEarly) => {
                self.relieve(worker);
            }
            ReforkStage::Rolling if tally.is_settled() && is_proven(refork.proven_at, self.now) => {
                self.refork_succeeded();
                self.checkpoint("refork.done");
            }
            _ => {}
        }
    }

    /// Lets the front count towards the next refork of the schedule.
    fn count_requests(&mut self) {
        let next = match self.reforks_by_itself() {
            true => self.reforks.auto.counts(),
            false => self.reforks.schedule.next(),
        };
        let Some(requests) = next else { return };
        if !self.reforks.counts_requests && self.reforks.unfit.is_none() && self.may_refork().is_ok() {
            self.reforks.counts_requests = true;
            self.notify(FrontNews::NameWarmWorker { requests });
        }
    }

    /// Another serves in its place: the worker gets no more requests.
    fn relieve(&mut self, worker: u32) {
        if !self.retire(worker) {
            let what = "the worker that was to be promoted does not serve any more";
            return self.refork_failed(what.into());
        }
        if let Some(refork) = &mut self.reforks.going {
            refork.stage = ReforkStage::Retiring;
            refork.deadline = None; // the worker has its own from here on
        }
        self.notify(FrontNews::WorkerRetiring { worker });
        self.checkpoint("refork.retiring");
    }

    /// Its requests have ended: if it is to be promoted, it receives the order now. False: it is not.
    pub(super) fn promotes(&mut self, number: u32) -> bool {
        let deadline = self.now + self.config.boot_timeout;
        let Some(refork) = &mut self.reforks.going else { return false };
        if !refork.is_about(number) || refork.stage != ReforkStage::Retiring {
            return false;
        }
        let retires = |worker: &&mut Worker| worker.state == WorkerState::Retiring;
        let Some(worker) = self.staff.workers.get_mut(number).filter(retires) else { return true };
        refork.stage = ReforkStage::Promoting;
        worker.state = WorkerState::Promoting;
        worker.deadline = Some(deadline);
        self.act(AppAction::Tell { worker: number, order: WorkerOrder::Promote });
        true
    }

    /// A thread of this worker is stuck. If it is to be promoted, its threads would never end.
    pub(super) fn refork_meets_stuck(&mut self, number: u32) {
        if self.stage_about(number) == Some(ReforkStage::Retiring) {
            self.refork_failed("a request of the worker that was to be promoted does not end".into());
        }
    }

    fn stage_about(&self, worker: u32) -> Option<ReforkStage> {
        let refork = self.reforks.going.as_ref().filter(|refork| refork.is_about(worker))?;
        Some(refork.stage)
    }

    pub(super) fn worker_fit(&mut self, worker: u32) {
        let deadline = self.now + self.config.boot_timeout;
        match (self.stage_about(worker), &mut self.reforks.going) {
            (Some(ReforkStage::Asking), Some(refork)) => {
                refork.stage = ReforkStage::Relieving;
                refork.deadline = Some(deadline);
                self.checkpoint("refork.relieving");
            }
            _ => self.out_of_turn(Process::Worker(worker), "fit"),
        }
    }

    pub(super) fn worker_unfit(&mut self, worker: u32, why: String) {
        match self.stage_about(worker) {
            Some(ReforkStage::Asking | ReforkStage::Promoting) => self.refork_refused(why),
            _ => self.out_of_turn(Process::Worker(worker), "unfit"),
        }
    }

    pub(super) fn worker_promoted(&mut self, worker: u32) {
        let promotes = |worker: &Worker| worker.state == WorkerState::Promoting;
        match self.stage_about(worker) {
            Some(ReforkStage::Promoting) if self.staff.workers.get(worker).is_some_and(promotes) => {
                self.promoted(worker);
            }
            _ => self.out_of_turn(Process::Worker(worker), "promoted"),
        }
    }

    /// It is a mold now.
    fn promoted(&mut self, worker: u32) {
        self.staff.workers.remove(worker);
        self.boots.count += 1;
        let boot = self.boots.count;
        self.act(AppAction::BecomeMold { worker, boot });
        self.notify(FrontNews::WorkerGone { worker, killed: false }); // and its ring with it
        self.log(AppLog::Promoted { worker, boot });
        if let Some(refork) = &mut self.reforks.going {
            refork.mold = Some(Mold::promoted(boot, worker, self.now));
            refork.stage = ReforkStage::Rolling;
            refork.proven_at = Some(self.now + PROBATION);
            self.set_surge();
        }
        self.checkpoint("refork.promoted");
    }

    /// A worker has died, or cannot start. Whether that ends the refork: it was to be promoted, or it is one of those
    /// that the promoted mold cannot bring to serve.
    pub(super) fn is_end_of_refork(&mut self, number: u32, worker: &Worker, failed: bool, why: &str) -> bool {
        let Some(refork) = &self.reforks.going else { return false };
        let never_ready = failed && !worker.was_ready();
        let what = if refork.is_about(number) {
            format!("the worker that was to be promoted died: {why}")
        } else if refork.line == worker.line && never_ready {
            format!("worker {number}, forked from the promoted mold, did not come to serve: {why}")
        } else if refork.line == worker.line && failed {
            format!("worker {number}, forked from the promoted mold, died: {why}")
        } else {
            return false;
        };
        self.refork_failed(what);
        never_ready
    }

    pub(super) fn promoted_mold_gone(&mut self, ending: Ending) {
        let Some(refork) = &self.reforks.going else { return };
        self.forks_are_lost(refork.line);
        if is_mutated(Mutation::IgnorePromotedDeath) {
            return;
        }
        self.refork_failed(format!("the promoted mold died: {ending}"));
    }

    /// The worker cannot be forked from, nor will another of this version. One that has left its threads for it ends.
    fn refork_refused(&mut self, why: String) {
        let Some(refork) = self.reforks.going.take() else { return };
        self.log(AppLog::Unfit { why: why.clone(), careful: refork.cause.is_careful() });
        self.reforks.auto.failed();
        if refork.stage == ReforkStage::Promoting {
            self.drain_worker(refork.worker, self.now + self.config.drain_timeout);
        }
        self.reforks.last = Some(refork.report("refused", Some(why.clone()), self.now));
        self.reforks.unfit = Some(why);
    }

    /// Every place is taken by a worker that was forked from the promoted mold.
    fn refork_succeeded(&mut self) {
        let Some(mut refork) = self.reforks.going.take() else { return };
        let took = self.now - refork.began;
        self.log(AppLog::Reforked { worker: refork.worker, workers: self.staff.wanted, took });
        self.reforks.last = Some(refork.report("done", None, self.now));
        let old = std::mem::replace(&mut self.current.mold, refork.mold.take());
        let old_line = std::mem::replace(&mut self.current.line, refork.line);
        self.reforks.schedule.advance();
        self.reforks.auto.reforked(self.now);
        self.reforks.unfit = None;
        self.boots.policy.ready();
        self.boots.explaining = None;
        self.let_go(old_line, old);
    }

    /// The mold that there was stays. What the promoted one has forked runs the same version, and keeps serving.
    pub(super) fn refork_failed(&mut self, what: String) {
        self.log(AppLog::ReforkFailed { why: what.clone() });
        self.fails_with(format!("a refork failed: {what}"));
        self.reforks.auto.failed();
        self.end_refork(what);
    }

    /// There is no use for another mold any more.
    pub(super) fn abandon_refork(&mut self, why: &str) {
        self.reforks.auto.abandoned(self.now);
        self.end_refork(why.into());
    }

    fn end_refork(&mut self, what: String) {
        let Some(mut refork) = self.reforks.going.take() else { return };
        self.reforks.last = Some(refork.report("failed", Some(what), self.now));
        if refork.stage == ReforkStage::Promoting {
            self.halt_worker(refork.worker); // it serves no requests any more
        }
        let mold = refork.mold.take();
        self.let_go(refork.line, mold);
        self.staff.workers.join_line(refork.line, self.current.line);
        self.has_changed = true;
    }
}
