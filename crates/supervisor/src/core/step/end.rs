//! Ending: in good order, or at once.

use super::super::app::App;
use super::super::condition::{End, Phase};
use super::super::config::FRONT_TIME;
use super::super::{AppAction, AppLog};
use crate::core::restart::Failure;
use std::time::{Duration, Instant};

/// How long a worker may go on after Ctrl-C in development.
const QUICK_DRAIN: Duration = Duration::from_millis(500);
/// How long killed processes may take to be gone at the very end.
const END_TIME: Duration = Duration::from_secs(3);

impl App {
    /// Begins to end in good order; `quick`: without waiting for requests. The front knows.
    pub(in crate::core) fn drain(&mut self, quick: bool) {
        if !self.phase.is_running() {
            return;
        }
        self.abandon_changes();
        if quick {
            self.finish(self.now + QUICK_DRAIN, true);
        } else {
            self.phase = Phase::Draining(self.now + self.config.drain_timeout + FRONT_TIME);
            self.out.go_on();
        }
    }

    /// Another process serves in the place of this one. Idle connections end when the time for draining is over; what
    /// they have asked by then has as long again.
    pub(in crate::core) fn hand_over(&mut self) {
        self.abandon_changes();
        if self.phase.is_running() {
            self.phase = Phase::Draining(self.now + 2 * self.config.drain_timeout + FRONT_TIME);
            self.out.go_on();
        }
    }

    /// Gives up what is under way, as the application, or everything, is to end.
    fn abandon_changes(&mut self) {
        let why = if self.is_removed {
            let remedy = "Add it to the configuration again: it boots what is there then.";
            Failure::new("the application was removed".into(), remedy)
        } else {
            let remedy = "Start it again: it boots what is there then.";
            Failure::new("the server was asked to stop".into(), remedy)
        };
        self.abandon_restarts(&why);
        self.abandon_refork(&why.what);
        self.boots.take_lost();
    }

    /// The configuration does not have it any more. The front routes nothing to it.
    pub(super) fn remove(&mut self) {
        self.out.log(AppLog::Removed);
        self.is_removed = true;
        self.out.act(AppAction::ReportRemoval);
        self.drain(false);
    }

    /// The front has nothing in flight any more.
    pub(in crate::core) fn drained(&mut self) {
        if let Phase::Draining(until) = self.phase {
            self.out.checkpoint("drain.front_drained");
            self.finish(until, false);
            self.out.checkpoint("drain.workers_retired");
        }
    }

    /// Tells every worker to exit.
    fn finish(&mut self, until: Instant, quick: bool) {
        // As they were asked to end with the first requests that are finished, they have their time already.
        self.advance_companions();
        let until_all = self.companions.last_deadline().map_or(until, |last| last.max(until));
        self.phase = Phase::Finishing { until: until_all, quick };
        self.advance_companions();
        self.out.go_on();
        self.out.act_all(self.staff.forget_unborn());
        self.out.act_all(self.staff.drain_all(until, self.now));
    }

    /// Kills all that is left. An end that is under way stays as it is.
    pub(in crate::core) fn end(&mut self, end: End) {
        if self.phase.is_ending() {
            return;
        }
        self.out.act_all(self.staff.forget_unborn());
        self.out.act_all(self.staff.halt_all(self.now));
        self.out.act_all(self.companions.halt_all(self.now));
        self.abandon_changes();
        self.out.act_all(self.molds.end(self.current.line(), self.now));
        self.phase = Phase::Ending(self.now + END_TIME, end);
        self.out.go_on();
    }
}
