//! Ending: in good order, or at once.

use super::{Outcome, Phase, Supervisor, SAME_SIGNAL};
use crate::checkpoint;
use crate::signals::Received;
use crate::Notice;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// How long a worker may go on after Ctrl-C in development.
const CURT_DRAIN: Duration = Duration::from_millis(500);
/// What the front may take to close what it closes itself at a time limit.
pub(super) const FRONT_TIME: Duration = Duration::from_millis(500);
/// How long killed processes may take to be gone at the very end.
const END_TIME: Duration = Duration::from_secs(3);

impl Supervisor {
    pub(super) async fn signalled(&mut self, signal: Received, now: Instant) {
        match self.phase {
            Phase::Running => {
                let curt = signal == Received::Interrupt && self.app.is_development();
                self.drain(curt, now).await;
            }
            Phase::Draining(_) | Phase::Finishing { .. } => {
                if self.signalled_at.is_some_and(|first| now >= first + SAME_SIGNAL) {
                    warn!("a second signal: halting");
                    self.end(Outcome::Halted, now);
                }
            }
            Phase::Ending(..) => {}
        }
        self.signalled_at.get_or_insert(now);
    }

    /// Begins to end in good order; `curt`: without waiting for requests.
    pub(super) async fn drain(&mut self, curt: bool, now: Instant) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        info!("stopping");
        self.abandon_restarts(now);
        self.abandon_refork(now);
        self.abandon_upgrades(now);
        if self.current.app.is_none() {
            return self.end(Outcome::Stopped, now); // there is nothing yet to answer requests with
        }
        self.notify(Notice::Drain).await;
        if curt {
            self.finish(now + CURT_DRAIN, true);
        } else {
            self.phase = Phase::Draining(now + self.settings.drain_timeout + FRONT_TIME);
            checkpoint::pass("drain.begun").await;
        }
    }

    /// Tells every worker to exit.
    pub(super) fn finish(&mut self, until: Instant, curt: bool) {
        self.phase = Phase::Finishing { until, curt };
        self.workers.forget_unborn();
        for (_, handle) in self.workers.iter_mut() {
            handle.drain(until);
        }
    }

    /// Ends, because what is started does not come up.
    pub(super) fn give_up(&mut self, what: &str, failures: u32, now: Instant) {
        let last = self.last_failure.clone().unwrap_or_default();
        self.end(Outcome::BootLoop(format!("{failures} {what} in a row have failed; {last}")), now);
    }

    /// Kills whatever is left.
    pub(super) fn end(&mut self, outcome: Outcome, now: Instant) {
        self.workers.forget_unborn();
        for (_, handle) in self.workers.iter_mut() {
            handle.halt(now);
        }
        self.abandon_restarts(now);
        self.abandon_refork(now);
        self.abandon_upgrades(now);
        self.kill_leaving_successor();
        match &mut self.current.mold {
            Some(mold) if mold.is_caller() => self.current.mold = None,
            Some(mold) => mold.halt(now),
            None => {}
        }
        self.phase = Phase::Ending(now + END_TIME, outcome);
    }
}
