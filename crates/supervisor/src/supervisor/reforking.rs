//! Reforks: a warm worker of the version that is served becomes its mold, and the other workers are replaced from it,
//! one at a time. Whatever fails on the way, the mold that there was keeps, and replaces what is missing.

use super::ending::FRONT_TIME;
use super::{HotRestart, Phase, Supervisor};
use crate::checkpoint;
use crate::message::FromWorker;
use crate::mold::Mold;
use crate::reaper::Ending;
use crate::refork::{Refork, ReforkCause, ReforkStage};
use crate::report::ReforkReport;
use crate::worker_handle::WorkerState;
use crate::AppNotice;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// Time for choosing a worker, and for its answer whether it can be forked from: it looks for a while whether native
/// threads stay.
const ANSWER_TIME: Duration = Duration::from_secs(15);

impl Supervisor {
    /// Begins a refork, and says its number. Whoever asks while one is under way shares it.
    pub(crate) async fn ask_refork(&mut self, cause: ReforkCause, now: Instant) -> Result<u32, String> {
        if let Err(why) = self.may_refork() {
            warn!(asked = %cause, why, "no refork");
            return Err(why.into());
        }
        if let Some(refork) = &self.refork {
            return Ok(refork.number);
        }
        self.begin_refork(cause, now);
        self.counts_requests = false;
        self.notify(AppNotice::NameWarmWorker { requests: 0 }).await;
        Ok(self.reforks)
    }

    fn may_refork(&self) -> Result<(), &'static str> {
        if !matches!(self.phase, Phase::Running) {
            return Err("the server is stopping");
        }
        if self.restart.is_some() || self.wish.is_some() {
            return Err("a restart is under way: ask again when it is done");
        }
        if self.hot_restart != HotRestart::No {
            return Err("a hot restart is under way: the new process begins with workers of its own");
        }
        if !self.app.process.preload {
            return Err("the application is not preloaded (preload = off): workers have nothing to share");
        }
        match &self.current.app {
            Some(_) if self.is_site() => Err("a static site has no workers"),
            Some(app) if !app.restartable => {
                Err("the application was given as an object: its process is the mold, and stays it")
            }
            None => Err("the application has not booted yet"),
            _ if self.workers.in_state(WorkerState::Serving) == 0 => {
                Err("no worker serves that could be promoted")
            }
            _ => Ok(()),
        }
    }

    fn begin_refork(&mut self, cause: ReforkCause, now: Instant) {
        self.reforks += 1;
        self.last_line += 1;
        self.refork = Some(Refork {
            number: self.reforks,
            stage: ReforkStage::Choosing,
            cause,
            began: now,
            deadline: Some(now + ANSWER_TIME),
            worker: 0,
            line: self.last_line,
            mold: None,
        });
    }

    /// The front names the worker that is the warmest by now.
    pub(super) async fn worker_warm(&mut self, worker: u32, now: Instant) {
        let scheduled = std::mem::replace(&mut self.counts_requests, false);
        if self.refork.is_none() && scheduled && self.may_refork().is_ok() {
            let requests = self.schedule.next().unwrap_or_default();
            self.begin_refork(ReforkCause::Requests(requests), now);
        }
        let chooses = |refork: &&mut Refork| refork.stage == ReforkStage::Choosing;
        let Some(refork) = self.refork.as_mut().filter(chooses) else {
            return; // not now; the count begins anew when nothing is in the way any more
        };
        refork.worker = worker;
        refork.stage = ReforkStage::Asking;
        info!(asked = %refork.cause, worker, "reforking");
        let asked = self.workers.get_mut(worker).is_some_and(|handle| handle.ask_fit());
        if !asked {
            self.refork_failed("the worker that was to be promoted does not serve any more".into(), now)
                .await;
        }
        checkpoint::pass("refork.asking").await;
    }

    /// Begins what is due, and goes on with what is under way.
    pub(super) async fn advance_refork(&mut self, now: Instant) {
        let Some(refork) = &self.refork else { return self.count_requests().await };
        let (stage, worker) = (refork.stage, refork.worker);
        if refork.deadline.is_some_and(|at| now >= at) {
            let what = match stage {
                ReforkStage::Relieving => "no worker started that could serve in its place",
                _ => "the worker that was to be promoted does not answer",
            };
            return self.refork_failed(what.into(), now).await;
        }
        let tally = self.tally();
        match stage {
            ReforkStage::Relieving if tally.serving >= tally.wanted => self.relieve(worker, now).await,
            ReforkStage::Rolling if tally.is_settled() => {
                self.refork_succeeded(now);
                checkpoint::pass("refork.done").await;
            }
            _ => {}
        }
    }

    /// Lets the front count towards the next refork of the schedule.
    async fn count_requests(&mut self) {
        let Some(requests) = self.schedule.next() else { return };
        if !self.counts_requests && self.unfit.is_none() && self.may_refork().is_ok() {
            self.counts_requests = true;
            self.notify(AppNotice::NameWarmWorker { requests }).await;
        }
    }

    /// Another serves in its place: the worker gets no more requests.
    async fn relieve(&mut self, worker: u32, now: Instant) {
        let limit = self.settings.drain_timeout + FRONT_TIME;
        let serves = self.workers.get_mut(worker).is_some_and(|handle| handle.retire(now, limit));
        if !serves {
            let what = "the worker that was to be promoted does not serve any more";
            return self.refork_failed(what.into(), now).await;
        }
        if let Some(refork) = &mut self.refork {
            refork.stage = ReforkStage::Retiring;
            refork.deadline = None; // the worker's own hold from here on
        }
        self.notify(AppNotice::WorkerRetiring { worker }).await;
        checkpoint::pass("refork.retiring").await;
    }

    /// Its requests have ended: if it is to be promoted, it is told so now.
    pub(super) fn promotes(&mut self, worker: u32, now: Instant) -> bool {
        let limit = self.app.process.boot_timeout;
        let Some(refork) = &mut self.refork else { return false };
        if !refork.is_about(worker) || refork.stage != ReforkStage::Retiring {
            return false;
        }
        refork.stage = ReforkStage::Promoting;
        if let Some(handle) = self.workers.get_mut(worker) {
            handle.promote(now, limit);
        }
        true
    }

    /// What a worker says about being promoted. `false`: it was not asked.
    pub(super) async fn said_of_promotion(&mut self, worker: u32, said: FromWorker, now: Instant) -> bool {
        let about = self.refork.as_mut().filter(|refork| refork.is_about(worker));
        let Some(refork) = about else { return false };
        match (said, refork.stage) {
            (FromWorker::Fit, ReforkStage::Asking) => {
                refork.stage = ReforkStage::Relieving;
                refork.deadline = Some(now + self.app.process.boot_timeout);
                checkpoint::pass("refork.relieving").await;
            }
            (FromWorker::Unfit { why }, ReforkStage::Asking | ReforkStage::Promoting) => {
                self.refork_refused(why, now).await;
            }
            (FromWorker::Promoted, ReforkStage::Promoting) => self.promoted(worker, now).await,
            _ => return false,
        }
        true
    }

    /// It is a mold now.
    async fn promoted(&mut self, worker: u32, now: Instant) {
        let Some(handle) = self.workers.remove(worker) else { return };
        self.boots += 1;
        let mold = handle.into_mold(self.boots, worker, &self.inbox);
        self.notify(AppNotice::WorkerGone { worker, killed: false }).await; // and its ring with it
        match (mold, &mut self.refork) {
            (Some(mold), Some(refork)) => {
                info!(worker, pid = mold.raw_pid(), "the worker was promoted to mold");
                refork.mold = Some(mold);
                refork.stage = ReforkStage::Rolling;
                checkpoint::pass("refork.promoted").await;
            }
            _ => {
                self.refork_failed("the worker became a mold before it had said who it is".into(), now).await
            }
        }
    }

    /// A worker has died, or cannot start. Whether that ends the refork: it was to be promoted, or it is one of those
    /// that the promoted mold cannot bring to serve.
    pub(super) async fn is_end_of_refork(
        &mut self,
        worker: u32,
        line: u32,
        never_ready: bool,
        why: &str,
        now: Instant,
    ) -> bool {
        let Some(refork) = &self.refork else { return false };
        let what = if refork.is_about(worker) {
            format!("the worker that was to be promoted died: {why}")
        } else if refork.line == line && never_ready {
            format!("worker {worker}, forked from the promoted mold, did not come to serve: {why}")
        } else {
            return false;
        };
        self.refork_failed(what, now).await;
        never_ready
    }

    pub(super) async fn promoted_mold_gone(&mut self, ending: Ending, now: Instant) {
        let Some(refork) = &mut self.refork else { return };
        refork.mold = None;
        let line = refork.line;
        self.forks_are_lost(line, now);
        self.refork_failed(format!("the promoted mold died: {ending}"), now).await;
    }

    /// The worker cannot be forked from, nor will another of this version. One that has left its threads for it ends.
    async fn refork_refused(&mut self, why: String, now: Instant) {
        warn!(why, "no refork: the workers of this version cannot be forked from");
        let Some(refork) = self.refork.take() else { return };
        if refork.stage == ReforkStage::Promoting {
            let until = now + self.settings.drain_timeout;
            if let Some(handle) = self.workers.get_mut(refork.worker) {
                handle.drain(until);
            }
        }
        self.last_refork = Some(refork.report("refused", Some(why.clone()), now));
        self.unfit = Some(why);
    }

    /// Every place is taken by a worker that was forked from the promoted mold.
    fn refork_succeeded(&mut self, now: Instant) {
        let Some(mut refork) = self.refork.take() else { return };
        let took_ms = (now - refork.began).as_millis() as u64;
        info!(worker = refork.worker, workers = self.wanted, took_ms, "reforked");
        self.last_refork = Some(refork.report("done", None, now));
        let old = std::mem::replace(&mut self.current.mold, refork.mold.take());
        let old_line = std::mem::replace(&mut self.current.line, refork.line);
        self.schedule.advance();
        self.unfit = None;
        self.mold_policy.ready();
        self.let_go(old_line, old, now);
    }

    /// The mold that there was keeps. What the promoted one has forked runs the same version, and serves on.
    pub(super) async fn refork_failed(&mut self, what: String, now: Instant) {
        error!(why = what, "the refork failed; the mold that there was keeps");
        self.last_failure = Some(format!("a refork failed: {what}"));
        self.end_refork(what, now);
    }

    /// There is no use for another mold any more.
    pub(super) fn abandon_refork(&mut self, why: &str, now: Instant) {
        self.end_refork(why.into(), now);
    }

    fn end_refork(&mut self, what: String, now: Instant) {
        let Some(mut refork) = self.refork.take() else { return };
        self.last_refork = Some(refork.report("failed", Some(what), now));
        if refork.stage == ReforkStage::Promoting {
            if let Some(handle) = self.workers.get_mut(refork.worker) {
                handle.halt(now); // it serves nobody any more
            }
        }
        self.let_go(refork.line, refork.mold.take(), now);
        self.workers.join_line(refork.line, self.current.line);
    }

    pub(super) fn promoted_mold(&self) -> Option<&Mold> {
        self.refork.as_ref().and_then(|refork| refork.mold.as_ref())
    }

    /// The refork that is under way, or the last one.
    pub(super) fn refork_report(&self, now: Instant) -> Option<ReforkReport> {
        let going = self.refork.as_ref().map(|refork| refork.report(refork.stage.name(), None, now));
        going.or_else(|| self.last_refork.clone())
    }
}
