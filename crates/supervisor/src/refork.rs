//! A refork: a warm worker becomes the mold of the version that is served, and the others are forked from it anew.

use crate::mold::Mold;
use crate::report::{MoldReport, ReforkReport};
use std::fmt;
use std::time::Instant;

/// How far a refork has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReforkStage {
    /// The front was asked for the worker that has answered the most.
    Choosing,
    /// The worker was asked whether it can be forked from.
    Asking,
    /// One worker more is on its way, to serve in its place.
    Relieving,
    /// It gets no more requests, and finishes those that it has.
    Retiring,
    /// It was told to become a mold.
    Promoting,
    /// Workers that are forked from it take the places of the others.
    Rolling,
}

impl ReforkStage {
    /// The word for it in `highball status`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReforkStage::Choosing => "choosing",
            ReforkStage::Asking => "asking",
            ReforkStage::Relieving => "relieving",
            ReforkStage::Retiring => "retiring",
            ReforkStage::Promoting => "promoting",
            ReforkStage::Rolling => "rolling",
        }
    }
}

/// Who wanted a refork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReforkCause {
    /// `highball refork`.
    Command,
    /// URG.
    Signal,
    /// A worker has answered so many requests.
    Requests(u64),
}

impl fmt::Display for ReforkCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReforkCause::Command => f.write_str("highball refork"),
            ReforkCause::Signal => f.write_str("URG"),
            ReforkCause::Requests(requests) => write!(f, "{requests} requests"),
        }
    }
}

/// The refork that is under way.
#[derive(Debug)]
pub(crate) struct Refork {
    /// The how-manieth it is, from 1.
    pub(crate) number: u32,
    pub(crate) stage: ReforkStage,
    pub(crate) cause: ReforkCause,
    pub(crate) began: Instant,
    /// When a stage in which others have to do something has to have ended.
    pub(crate) deadline: Option<Instant>,
    /// The worker that is promoted; 0 while none is chosen.
    pub(crate) worker: u32,
    /// The line of what is forked from it.
    pub(crate) line: u32,
    /// The promoted mold.
    pub(crate) mold: Option<Mold>,
}

impl Refork {
    /// Whether this worker is on its way from worker to mold.
    pub(crate) fn is_about(&self, worker: u32) -> bool {
        self.worker == worker && self.stage != ReforkStage::Rolling
    }

    /// What `highball status` says of it; `state` is what it has come to.
    pub(crate) fn report(&self, state: &'static str, failure: Option<String>, now: Instant) -> ReforkReport {
        ReforkReport {
            number: self.number,
            asked_by: self.cause.to_string(),
            worker: (self.worker > 0).then_some(self.worker),
            state,
            took: now - self.began,
            failure,
            mold: self.mold.as_ref().map(MoldReport::of),
        }
    }
}

/// After how many requests of a worker the next refork is due. The last number is repeated.
#[derive(Debug)]
pub(crate) struct Schedule {
    requests: Vec<u64>,
    reforks: usize,
}

impl Schedule {
    pub(crate) fn new(requests: Vec<u64>) -> Schedule {
        Schedule { requests, reforks: 0 }
    }

    /// So many; `None`: never.
    pub(crate) fn next(&self) -> Option<u64> {
        self.requests.get(self.reforks).or(self.requests.last()).copied()
    }

    /// One is done.
    pub(crate) fn advance(&mut self) {
        self.reforks += 1;
    }

    /// The version is new, and cold.
    pub(crate) fn restart(&mut self) {
        self.reforks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_repeats_its_last_number_and_begins_anew() {
        let mut schedule = Schedule::new(vec![50, 100, 1000]);
        let due = |schedule: &mut Schedule| {
            let next = schedule.next();
            schedule.advance();
            next
        };
        let first: Vec<_> = (0..5).filter_map(|_| due(&mut schedule)).collect();
        assert_eq!(first, [50, 100, 1000, 1000, 1000]);
        schedule.restart();
        assert_eq!(schedule.next(), Some(50));
        assert_eq!(Schedule::new(Vec::new()).next(), None);
    }
}
