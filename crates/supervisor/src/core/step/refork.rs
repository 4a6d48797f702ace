//! Reforks: a warm worker of the version that is served becomes its mold, and the other workers are replaced from it,
//! one at a time. Whatever fails on the way, the mold that there was stays, and replaces what is missing.

use super::super::app::App;
use super::super::config::HotRestart;
use super::super::ids::Process;
use super::super::reforks::{Refork, ReforkMove};
use super::super::worker::Worker;
use super::super::{AppAction, AppLog, WorkerOrder};
use crate::core::refork::{ReforkCause, ReforkStage};
use crate::core::restart::END_ROLLOUT_FIRST;
use crate::core::worker::WorkerState;
use highball_link::AppCommand;

/// Why a refork fails whose worker has gone its way before.
pub(super) const GONE: &str = "the worker that was to be promoted does not serve any more";

impl App {
    /// Begins a refork, or shares the one under way; its number.
    pub(super) fn ask_refork(&mut self, cause: ReforkCause) -> Result<u32, String> {
        if let Err(why) = self.may_refork() {
            self.out.log(AppLog::NoRefork { cause, why });
            return Err(why.into());
        }
        let (number, action) = self.reforks.ask(cause, self.now);
        self.out.act_all(action);
        Ok(number)
    }

    pub(super) fn may_refork(&self) -> Result<(), &'static str> {
        if !self.phase.is_running() {
            return Err("the server is stopping");
        }
        if self.restarts.share().is_some() {
            return Err(END_ROLLOUT_FIRST);
        }
        if !self.restarts.is_none() {
            return Err("a restart is under way: ask again when it is done");
        }
        if self.surroundings.hot_restart != HotRestart::No {
            return Err("a hot restart is under way: the new process starts with new workers");
        }
        if !self.config.preload {
            return Err("the application is not preloaded (preload = off): workers have nothing to share");
        }
        match self.current.app() {
            Some(_) if self.config.is_site() => Err("a static site has no workers"),
            Some(app) if !app.restartable => {
                Err("the application was given as an object: its process is the mold, and stays it")
            }
            None => Err("the application has not booted yet"),
            _ if self.condition.is_asleep() || !self.staff.any_serves() => {
                Err("no worker serves that could be promoted")
            }
            _ => Ok(()),
        }
    }

    /// The front names the worker that is the warmest by now.
    pub(super) fn worker_warm(&mut self, worker: u32) {
        let (by_itself, may_begin) =
            (self.config.reforks_by_itself(self.staff.wanted()), self.may_refork().is_ok());
        let Some(cause) = self.reforks.warm(worker, by_itself, may_begin, self.now) else { return };
        self.out.log(AppLog::Reforking { cause, worker });
        self.staff.keep(worker); // a mold need not share memory
        let line = self.current.line();
        let serves = |worker: &Worker| {
            worker.state == WorkerState::Serving && worker.line == line && worker.replacement.is_none()
        };
        if self.staff.get(worker).is_some_and(serves) {
            let order = WorkerOrder::MayPromote { careful: cause.is_careful() };
            self.out.act(AppAction::Tell { worker, order });
        } else {
            self.refork_failed(GONE.into());
        }
        self.out.checkpoint("refork.asking");
    }

    /// Begins what is due, and goes on with what is under way.
    pub(super) fn advance_refork(&mut self) {
        if !self.reforks.is_going() {
            self.measure_if_due();
            if self.may_refork().is_ok() {
                self.out.act_all(self.reforks.count(self.config.reforks_by_itself(self.staff.wanted())));
            }
            return;
        }
        match self.reforks.next_move(&self.tally(), self.now) {
            Some(ReforkMove::Fail(what)) => self.refork_failed(what.into()),
            Some(ReforkMove::Relieve(worker))
                if self.staff.retire(worker, self.config.retire_limit(), self.now) =>
            {
                self.reforks.relieved();
                self.out.notify(AppCommand::RetireWorker { worker }); // another serves in its place
                self.out.checkpoint("refork.retiring");
            }
            Some(ReforkMove::Relieve(_)) => self.refork_failed(GONE.into()),
            Some(ReforkMove::Succeed) => {
                self.refork_succeeded();
                self.out.checkpoint("refork.done");
            }
            None => {}
        }
    }

    /// Its requests have ended: if it is to be promoted, it receives the order now. False: it is not.
    pub(super) fn promotes(&mut self, number: u32) -> bool {
        if self.reforks.stage_about(number) != Some(ReforkStage::Retiring) {
            return false;
        }
        if let Some(order) = self.staff.promote(number, self.now + self.config.boot_timeout) {
            self.reforks.promotes();
            self.out.act(order);
        }
        true
    }

    pub(super) fn worker_fit(&mut self, worker: u32) {
        if self.reforks.fit(worker, self.now + self.config.boot_timeout) {
            self.out.checkpoint("refork.relieving");
        } else {
            self.out.out_of_turn(Process::Worker(worker), "fit");
        }
    }

    /// The worker cannot be forked from. It ends if it has stopped its threads for that.
    pub(super) fn worker_unfit(&mut self, worker: u32, why: String) {
        let asked = self.reforks.stage_about(worker);
        if !matches!(asked, Some(ReforkStage::Asking | ReforkStage::Promoting)) {
            return self.out.out_of_turn(Process::Worker(worker), "unfit");
        }
        let Some(refork) = self.reforks.refused(why.clone(), self.now) else { return };
        self.out.log(AppLog::Unfit { why, careful: refork.cause.is_careful() });
        if refork.stage == ReforkStage::Promoting {
            let until = self.now + self.config.drain_timeout;
            self.out.act_all(self.staff.drain(refork.worker, until, self.now));
        }
    }

    /// It is a mold now.
    pub(super) fn worker_promoted(&mut self, worker: u32) {
        let is_it = self.reforks.stage_about(worker) == Some(ReforkStage::Promoting);
        if !is_it || !self.staff.promoted(worker) {
            return self.out.out_of_turn(Process::Worker(worker), "promoted");
        }
        let line = self.molds.begin_line();
        let boot = self.molds.promoted(worker, line, self.now);
        self.reforks.promoted(line, self.now);
        self.staff.roll();
        self.out.act(AppAction::BecomeMold { worker, boot });
        self.out.notify(AppCommand::RemoveWorker { worker, killed: false }); // and its ring with it
        self.out.log(AppLog::Promoted { worker, boot });
        self.out.checkpoint("refork.promoted");
    }

    /// A worker has died, or cannot start. Whether it ends a refork by never having been ready.
    pub(super) fn is_end_of_refork(&mut self, number: u32, worker: &Worker, failed: bool, why: &str) -> bool {
        let Some(what) = self.reforks.fails_by(number, worker, failed, why) else { return false };
        self.refork_failed(what);
        failed && !worker.was_ready()
    }

    /// Every place is taken by a worker that was forked from the promoted mold.
    fn refork_succeeded(&mut self) {
        let Some(refork) = self.reforks.succeeded(self.now) else { return };
        let (worker, took) = (refork.worker, refork.took(self.now));
        self.out.log(AppLog::Reforked { worker, workers: self.staff.wanted(), took });
        let old_line = self.current.line();
        if let Some(line) = refork.line {
            self.current.begin_line(line);
        }
        self.boots.has_mold();
        self.boots.forget_failure();
        self.let_go(old_line);
    }

    /// The mold that there was stays. What the promoted one has forked runs the same version, and keeps serving.
    pub(super) fn refork_failed(&mut self, what: String) {
        self.out.log(AppLog::ReforkFailed { why: what.clone() });
        self.note_failure(format!("a refork failed: {what}"));
        if let Some(refork) = self.reforks.failed(what, self.now) {
            self.refork_ended(&refork);
        }
    }

    /// There is no use for another mold any more.
    pub(super) fn abandon_refork(&mut self, why: &str) {
        if let Some(refork) = self.reforks.abandoned(why.into(), self.now) {
            self.refork_ended(&refork);
        }
    }

    fn refork_ended(&mut self, refork: &Refork) {
        if refork.stage == ReforkStage::Promoting {
            self.out.act_all(self.staff.halt(refork.worker, self.now)); // it serves no requests any more
        }
        if let Some(line) = refork.line {
            self.let_go(line);
            self.staff.join_line(line, self.current.line());
        }
        self.out.go_on();
    }
}
