//! The reforks of an application: a warm worker becomes the mold, and the others are forked from it. When one begins, how far
//! it has come, and how it ends.

use super::action::AppAction;
use super::auto_refork::{AppMemory, AutoRefork, Verdict};
use super::crash_loop::{is_proven, PROBATION};
use super::ids::Receipt;
use super::refork::{ReforkCause, ReforkStage, Schedule};
use super::rolling::Tally;
use super::worker::Worker;
use highball_config::ReforkAfter;
use highball_link::{AppCommand, ReforkReport};
use std::time::{Duration, Instant};

/// Time for choosing a worker, and for its answer whether it can be forked from: it looks for a while whether native
/// threads stay.
const ANSWER_TIME: Duration = Duration::from_secs(15);

/// The refork that is under way.
#[derive(Debug)]
pub(crate) struct Refork {
    /// From 1.
    pub(crate) number: u32,
    pub(crate) stage: ReforkStage,
    pub(crate) cause: ReforkCause,
    began: Instant,
    /// When a stage in which others have to do something has to have ended.
    pub(crate) deadline: Option<Instant>,
    /// Once the worker is a mold: when what is forked from it can have lived for long enough to be a success.
    proven_at: Option<Instant>,
    /// The worker that is promoted; 0 while none is chosen.
    pub(crate) worker: u32,
    /// The line of what is forked from it, once it is a mold.
    pub(crate) line: Option<u32>,
}

impl Refork {
    /// Whether this worker is on its way from worker to mold.
    fn is_about(&self, worker: u32) -> bool {
        self.worker == worker && self.stage != ReforkStage::Rolling
    }

    pub(crate) fn took(&self, now: Instant) -> Duration {
        now - self.began
    }

    /// What `highball status` reports of it, without the mold; `state` is what it has come to.
    fn report(&self, state: &str, failure: Option<String>, now: Instant) -> ReforkReport {
        ReforkReport {
            number: self.number,
            asked_by: self.cause.to_string(),
            worker: (self.worker > 0).then_some(self.worker),
            state: state.into(),
            seconds: self.took(now).as_secs_f64(),
            failure,
            mold: None,
        }
    }
}

/// The next step of a refork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReforkMove {
    /// Others have not done what they had to do in time.
    Fail(&'static str),
    /// Another worker serves in the place of this one, which is to be promoted.
    Relieve(u32),
    /// Every place is taken by a worker that was forked from the promoted mold.
    Succeed,
}

#[derive(Debug)]
pub(crate) struct Reforks {
    going: Option<Refork>,
    /// Reforks that were started.
    count: u32,
    last: Option<ReforkReport>,
    schedule: Schedule,
    /// Instead of a schedule.
    auto: AutoRefork,
    /// Whether the front counts requests for the next refork or measurement.
    counts_requests: bool,
    /// Why workers of this version cannot be forked from.
    unfit: Option<String>,
}

impl Reforks {
    pub(crate) fn new(after: &ReforkAfter, now: Instant) -> Reforks {
        Reforks {
            going: None,
            count: 0,
            last: None,
            schedule: Schedule::new(after),
            auto: AutoRefork::new(now),
            counts_requests: false,
            unfit: None,
        }
    }

    // --- what there is

    #[cfg(test)]
    pub(crate) fn going(&self) -> Option<&Refork> {
        self.going.as_ref()
    }

    pub(crate) fn is_going(&self) -> bool {
        self.going.is_some()
    }

    pub(crate) fn stage(&self) -> Option<ReforkStage> {
        self.going.as_ref().map(|refork| refork.stage)
    }

    /// The line of what is forked from the promoted mold.
    pub(crate) fn line(&self) -> Option<u32> {
        self.going.as_ref()?.line
    }

    /// How far a refork has come with this worker, which is to be promoted.
    pub(crate) fn stage_about(&self, worker: u32) -> Option<ReforkStage> {
        self.going.as_ref().filter(|refork| refork.is_about(worker)).map(|refork| refork.stage)
    }

    /// Why workers of this version cannot be forked from.
    pub(crate) fn unfit(&self) -> Option<&str> {
        self.unfit.as_deref()
    }

    /// The refork that is under way, or the last one; without its mold.
    pub(crate) fn report(&self, now: Instant) -> Option<ReforkReport> {
        let going = self.going.as_ref().map(|refork| refork.report(refork.stage.name(), None, now));
        going.or_else(|| self.last.clone())
    }

    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        match &self.going {
            Some(refork) => refork.deadline.into_iter().chain(refork.proven_at.filter(|at| *at > now)).min(),
            None => self.auto.deadline(),
        }
    }

    // --- when one begins

    /// The configuration says something else of when one begins.
    pub(crate) fn configure(&mut self, after: &ReforkAfter, now: Instant) {
        self.schedule = Schedule::new(after);
        self.auto.restart(now);
        self.counts_requests = false;
    }

    /// A new version serves: it is cold.
    pub(crate) fn new_version(&mut self, now: Instant) {
        self.schedule.restart();
        self.auto.restart(now);
        self.unfit = None;
        self.counts_requests = false; // those of the old version do not count
    }

    /// Lets the front count towards the next refork or measurement, unless it does.
    pub(crate) fn count(&mut self, by_itself: bool) -> Option<AppAction> {
        let next = if by_itself { self.auto.counts() } else { self.schedule.next() };
        let requests = next.filter(|_| !self.counts_requests && self.unfit.is_none())?;
        self.counts_requests = true;
        Some(AppAction::Notify(AppCommand::NameWarmWorker { requests }))
    }

    /// There is nothing to be counted any more.
    pub(crate) fn stop_counting(&mut self) {
        self.counts_requests = false;
    }

    /// Whether the memory has to be measured. A measurement that takes too long is given up.
    pub(crate) fn is_measurement_due(&mut self, now: Instant) -> bool {
        if self.auto.is_overdue(now) {
            self.auto.postpone(now);
        }
        self.auto.is_due(now)
    }

    pub(crate) fn measures(&mut self, receipt: Receipt, now: Instant) {
        self.auto.measure(receipt, now);
    }

    /// The memory cannot be measured now, or no refork may begin.
    pub(crate) fn postpone_measurement(&mut self, now: Instant) {
        self.auto.postpone(now);
    }

    /// Whether this is the answer to the measurement that is under way.
    pub(crate) fn awaits(&self, receipt: Receipt) -> bool {
        self.auto.awaits(receipt)
    }

    pub(crate) fn measured(&mut self, memory: AppMemory, now: Instant) -> Verdict {
        self.auto.judge(memory, now)
    }

    /// Begins a refork, or shares the one under way. Returns its number, and what the front has to do for it.
    pub(crate) fn ask(&mut self, cause: ReforkCause, now: Instant) -> (u32, Option<AppAction>) {
        if let Some(refork) = &self.going {
            return (refork.number, None);
        }
        self.begin(cause, now);
        self.counts_requests = false;
        (self.count, Some(AppAction::Notify(AppCommand::NameWarmWorker { requests: 0 })))
    }

    fn begin(&mut self, cause: ReforkCause, now: Instant) {
        self.count += 1;
        self.going = Some(Refork {
            number: self.count,
            stage: ReforkStage::Choosing,
            cause,
            began: now,
            deadline: Some(now + ANSWER_TIME),
            proven_at: None,
            worker: 0,
            line: None,
        });
    }

    // --- how far it has come

    /// The front names the worker that is the warmest by now. The cause of the refork for which it is chosen, if it is.
    /// (Where one may not begin now, the count begins again when nothing is in the way any more.)
    pub(crate) fn warm(
        &mut self,
        worker: u32,
        by_itself: bool,
        may_begin: bool,
        now: Instant,
    ) -> Option<ReforkCause> {
        let was_counted = std::mem::take(&mut self.counts_requests) && self.going.is_none();
        if was_counted && by_itself {
            self.auto.warm(now);
            return None;
        }
        if was_counted && may_begin {
            self.begin(ReforkCause::Requests(self.schedule.next().unwrap_or_default()), now);
        }
        let refork = self.going.as_mut().filter(|refork| refork.stage == ReforkStage::Choosing)?;
        refork.worker = worker;
        refork.stage = ReforkStage::Asking;
        Some(refork.cause)
    }

    /// The chosen worker can be forked from. Another has to serve in its place by then. False: it was not asked.
    pub(crate) fn fit(&mut self, worker: u32, relieved_by: Instant) -> bool {
        let asked = |refork: &&mut Refork| refork.is_about(worker) && refork.stage == ReforkStage::Asking;
        let refork = self.going.as_mut().filter(asked);
        refork
            .map(|refork| (refork.stage, refork.deadline) = (ReforkStage::Relieving, Some(relieved_by)))
            .is_some()
    }

    /// What is due, if something is.
    pub(crate) fn next_move(&self, tally: &Tally, now: Instant) -> Option<ReforkMove> {
        let refork = self.going.as_ref()?;
        if refork.deadline.is_some_and(|at| now >= at) {
            return Some(ReforkMove::Fail(match refork.stage {
                ReforkStage::Relieving => "no worker started that could serve in its place",
                _ => "the worker that was to be promoted does not answer",
            }));
        }
        match refork.stage {
            ReforkStage::Relieving if tally.serving >= tally.wanted => {
                Some(ReforkMove::Relieve(refork.worker))
            }
            ReforkStage::Rolling if tally.is_settled() && is_proven(refork.proven_at, now) => {
                Some(ReforkMove::Succeed)
            }
            _ => None,
        }
    }

    /// The worker gets no more requests, and finishes its last ones.
    pub(crate) fn relieved(&mut self) {
        if let Some(refork) = &mut self.going {
            refork.stage = ReforkStage::Retiring;
            refork.deadline = None; // the worker has its own from here on
        }
    }

    /// The worker was ordered to become a mold.
    pub(crate) fn promotes(&mut self) {
        if let Some(refork) = &mut self.going {
            refork.stage = ReforkStage::Promoting;
        }
    }

    /// The worker is now the mold of this line.
    pub(crate) fn promoted(&mut self, line: u32, now: Instant) {
        if let Some(refork) = &mut self.going {
            refork.line = Some(line);
            refork.stage = ReforkStage::Rolling;
            refork.proven_at = Some(now + PROBATION);
        }
    }

    // --- how it ends

    /// A worker has died, or cannot start. Why that ends the refork, if it does: it was to be promoted, or the promoted
    /// mold cannot bring its workers to serve.
    pub(crate) fn fails_by(&self, number: u32, worker: &Worker, failed: bool, why: &str) -> Option<String> {
        let refork = self.going.as_ref()?;
        if refork.is_about(number) {
            return Some(format!("the worker that was to be promoted died: {why}"));
        }
        if refork.line != Some(worker.line) || !failed {
            return None;
        }
        Some(if worker.was_ready() {
            format!("worker {number}, forked from the promoted mold, died: {why}")
        } else {
            format!("worker {number}, forked from the promoted mold, did not come to serve: {why}")
        })
    }

    /// The worker cannot be forked from, nor will another of this version.
    pub(crate) fn refused(&mut self, why: String, now: Instant) -> Option<Refork> {
        let refork = self.going.take()?;
        self.auto.failed();
        self.last = Some(refork.report("refused", Some(why.clone()), now));
        self.unfit = Some(why);
        Some(refork)
    }

    pub(crate) fn succeeded(&mut self, now: Instant) -> Option<Refork> {
        let refork = self.going.take()?;
        self.last = Some(refork.report("done", None, now));
        self.schedule.advance();
        self.auto.reforked(now);
        self.unfit = None;
        Some(refork)
    }

    pub(crate) fn failed(&mut self, what: String, now: Instant) -> Option<Refork> {
        self.auto.failed();
        self.end(what, now)
    }

    /// There is no use for another mold any more.
    pub(crate) fn abandoned(&mut self, why: String, now: Instant) -> Option<Refork> {
        self.auto.abandoned(now);
        self.end(why, now)
    }

    fn end(&mut self, what: String, now: Instant) -> Option<Refork> {
        let refork = self.going.take()?;
        self.last = Some(refork.report("failed", Some(what), now));
        Some(refork)
    }
}
