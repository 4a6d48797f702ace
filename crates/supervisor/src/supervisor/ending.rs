//! Ending: in good order, or at once.

use super::{Outcome, Phase, Supervisor};
use crate::checkpoint;
use crate::restart::Failure;
use crate::AppNotice;
use std::time::{Duration, Instant};
use tracing::info;

/// How long a worker may go on after Ctrl-C in development.
const CURT_DRAIN: Duration = Duration::from_millis(500);
/// What the front may take to close what it closes itself at a time limit.
pub(crate) const FRONT_TIME: Duration = Duration::from_millis(500);
/// How long killed processes may take to be gone at the very end.
const END_TIME: Duration = Duration::from_secs(3);

impl Supervisor {
    /// What its processes have printed is in the log.
    pub(crate) async fn has_printed(&self) {
        self.output.settle().await;
    }

    /// Begins to end in good order; `curt`: without waiting for requests. The front has been told.
    pub(crate) fn drain(&mut self, curt: bool, now: Instant) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        self.abandon_changes(now);
        if curt {
            self.finish(now + CURT_DRAIN, true);
        } else {
            self.phase = Phase::Draining(now + self.settings.drain_timeout + FRONT_TIME);
        }
    }

    /// Another process serves in the place of this one. Idle connections end when the time for draining is over; what
    /// they have asked by then has as long again.
    pub(crate) fn hand_over(&mut self, now: Instant) {
        self.abandon_changes(now);
        if matches!(self.phase, Phase::Running) {
            self.phase = Phase::Draining(now + 2 * self.settings.drain_timeout + FRONT_TIME);
        }
    }

    /// Gives up what is under way, as the application, or everything, is to end.
    fn abandon_changes(&mut self, now: Instant) {
        let why = if self.removed {
            let remedy = "Add it to the configuration again: it boots what is there then.";
            Failure::new("the application was removed".into(), remedy)
        } else {
            let remedy = "Start it again: it boots what is there then.";
            Failure::new("the server was told to stop".into(), remedy)
        };
        self.abandon_restarts(&why, now);
        self.abandon_refork(&why.what, now);
    }

    /// It is an application of this server no more. The front routes nothing to it any more, and nobody waits for it.
    pub(crate) async fn remove(&mut self, now: Instant) {
        info!(app = self.app.name, "the application is removed");
        self.removed = true;
        self.notify(AppNotice::Removed).await;
        self.drain(false, now);
    }

    /// The front has nothing in flight any more.
    pub(crate) async fn drained(&mut self) {
        if let Phase::Draining(until) = self.phase {
            checkpoint::pass("drain.front_drained").await;
            self.finish(until, false);
            checkpoint::pass("drain.workers_told").await;
        }
    }

    /// Tells every worker to exit.
    fn finish(&mut self, until: Instant, curt: bool) {
        self.phase = Phase::Finishing { until, curt };
        self.workers.forget_unborn();
        for (_, handle) in self.workers.iter_mut() {
            handle.drain(until);
        }
    }

    /// Kills whatever is left. An end that has begun stays as it is.
    pub(crate) fn end(&mut self, outcome: Outcome, now: Instant) {
        if self.is_ending() {
            return;
        }
        self.workers.forget_unborn();
        for (_, handle) in self.workers.iter_mut() {
            handle.halt(now);
        }
        self.abandon_changes(now);
        match &mut self.current.mold {
            Some(mold) if mold.is_caller() => self.current.mold = None,
            Some(mold) => mold.halt(now),
            None => {}
        }
        self.phase = Phase::Ending(now + END_TIME, outcome);
    }

    /// Whether it was taken out of the configuration.
    pub(crate) fn is_removed(&self) -> bool {
        self.removed
    }

    /// Whether its process wants everything to end.
    pub(crate) fn wants_the_end(&self) -> bool {
        self.wants_the_end
    }

    /// Whether whatever it has was killed.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending(..))
    }

    /// Whether it has ended, or what is left of it is left to itself.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        let Phase::Ending(until, _) = self.phase else { return false };
        (self.workers.is_empty() && self.molds().next().is_none()) || now >= until
    }

    /// How it ended.
    pub(crate) fn outcome(self) -> Outcome {
        match self.phase {
            Phase::Ending(_, outcome) => outcome,
            _ => Outcome::Halted,
        }
    }
}
