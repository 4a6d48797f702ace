//! A refork: a warm worker becomes the mold of the version that is served, and forks of it replace the other workers.

use highball_config::ReforkAfter;
use std::fmt;

/// How far a refork has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReforkStage {
    /// The front was asked for the worker that has answered the most.
    Choosing,
    /// The worker was asked whether it can be forked from.
    Asking,
    /// One worker more is on its way, to serve in its place.
    Relieving,
    /// It gets no more requests, and finishes its last ones.
    Retiring,
    /// It was ordered to become a mold.
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
    /// A worker has answered this number of requests.
    Requests(u64),
    /// Highball's own measurement (`refork_after = auto`).
    Memory {
        /// Workers, and what each does not share, on average.
        workers: u64,
        private_kib: u64,
        /// What the refork is expected to save.
        expected_kib: u64,
    },
}

impl ReforkCause {
    /// Whether it is forked from only if every check is passed, and by means that are safe with every native extension:
    /// for automatic reforks.
    pub(crate) fn is_careful(self) -> bool {
        matches!(self, ReforkCause::Memory { .. })
    }
}

impl fmt::Display for ReforkCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReforkCause::Command => f.write_str("highball refork"),
            ReforkCause::Signal => f.write_str("URG"),
            ReforkCause::Requests(requests) => write!(f, "{requests} requests"),
            ReforkCause::Memory { workers, private_kib, expected_kib } => write!(
                f,
                "refork_after = auto: each of {workers} workers has {} MiB that it does not share, and a refork is expected to save {} MiB",
                private_kib / 1024,
                expected_kib / 1024
            ),
        }
    }
}

/// Requests of a worker after which the next refork is due. The last number is repeated.
#[derive(Debug)]
pub(crate) struct Schedule {
    requests: Vec<u64>,
    reforks: usize,
}

impl Schedule {
    pub(crate) fn new(after: &ReforkAfter) -> Schedule {
        let requests = match after {
            ReforkAfter::Requests(requests) => requests.clone(),
            ReforkAfter::Never | ReforkAfter::Auto => Vec::new(),
        };
        Schedule { requests, reforks: 0 }
    }

    /// The next number; `None`: never.
    pub(crate) fn next(&self) -> Option<u64> {
        self.requests.get(self.reforks).or(self.requests.last()).copied()
    }

    /// A refork has succeeded: the next number is due.
    pub(crate) fn advance(&mut self) {
        self.reforks += 1;
    }

    /// A new version is cold: the first number is due again.
    pub(crate) fn restart(&mut self) {
        self.reforks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_repeats_its_last_number_and_starts_again() {
        let mut schedule = Schedule::new(&ReforkAfter::Requests(vec![50, 100, 1000]));
        let due = |schedule: &mut Schedule| {
            let next = schedule.next();
            schedule.advance();
            next
        };
        let first: Vec<_> = (0..5).filter_map(|_| due(&mut schedule)).collect();
        assert_eq!(first, [50, 100, 1000, 1000, 1000]);
        schedule.restart();
        assert_eq!(schedule.next(), Some(50));
        assert_eq!(Schedule::new(&ReforkAfter::Never).next(), None);
    }
}
