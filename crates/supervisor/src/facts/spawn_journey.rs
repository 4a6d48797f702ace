//! The spawn journey: the named steps of booting an application, so that a failure can say where it was.

use highball_link::Step;
use std::time::{Duration, Instant};

/// How far one boot has come.
#[derive(Debug)]
pub(crate) struct Journey {
    started: Instant,
    step: Step,
    step_started: Instant,
}

impl Journey {
    pub(crate) fn begin(now: Instant) -> Self {
        Journey { started: now, step: Step::StartRuby, step_started: now }
    }

    /// Notes that `step` begins. Returns how long the one before it took.
    pub(crate) fn enter(&mut self, step: Step, now: Instant) -> Duration {
        let took = now - self.step_started;
        self.step = step;
        self.step_started = now;
        took
    }

    /// The step that is under way.
    pub(crate) fn step(&self) -> Step {
        self.step
    }

    pub(crate) fn began(&self) -> Instant {
        self.started
    }

    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        now - self.started
    }
}
