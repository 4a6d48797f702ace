//! Replacing one worker for a cause that lies in it: a request that does not end, memory that does not come back. How many
//! are replaced at a time, and how often, as pure functions.

use std::fmt;
use std::time::{Duration, Instant};

/// Workers of a pool for which one is replaced at a time.
const POOL_PER_REPLACEMENT: usize = 8;
/// Time for which a place in the pool pays for one replacement: an application that causes one with every request gets new
/// workers at this rate, and no faster.
pub(crate) const REST: Duration = Duration::from_secs(10);

/// Why a worker is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplacementCause {
    /// One of its requests exceeded its time limit, and its thread has not come back.
    TimedOut,
    /// It has more memory than it may have.
    OverMemory,
    /// An operator has asked for it.
    Asked,
}

impl ReplacementCause {
    /// Every cause, in the order of [`Counts`].
    pub(crate) const ALL: [ReplacementCause; 3] =
        [ReplacementCause::TimedOut, ReplacementCause::OverMemory, ReplacementCause::Asked];

    /// The word for it in metrics and `highball status`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReplacementCause::TimedOut => "timeout",
            ReplacementCause::OverMemory => "memory",
            ReplacementCause::Asked => "operator",
        }
    }
}

impl fmt::Display for ReplacementCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplacementCause::TimedOut => "a request exceeded its time limit, and its thread is still at it",
            ReplacementCause::OverMemory => "it is over its memory limit",
            ReplacementCause::Asked => "an operator has asked for it",
        })
    }
}

/// A worker that is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) cause: ReplacementCause,
    /// Once it is its turn: when another worker has to serve in its place.
    pub(crate) relieved_by: Option<Instant>,
    /// The log has a line that it has to wait for its turn.
    pub(crate) is_delayed: bool,
}

impl Replacement {
    pub(crate) fn new(cause: ReplacementCause) -> Replacement {
        Replacement { cause, relieved_by: None, is_delayed: false }
    }
}

/// Workers of a pool of this size that may be replaced at a time, for one cause.
pub(crate) fn at_a_time(pool: u16) -> usize {
    (usize::from(pool) / POOL_PER_REPLACEMENT).max(1)
}

/// How often workers are replaced: each one of the pool once without a pause, and then one in each [`REST`].
#[derive(Debug)]
pub(crate) struct Pace {
    /// When all replacements that were begun are paid for.
    paid_at: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Pace {
        Pace { paid_at: now }
    }

    /// When the next replacement may begin, in a pool of this size.
    pub(crate) fn due(&self, pool: u16) -> Instant {
        let credit = REST.saturating_mul(u32::from(pool.max(1)) - 1);
        self.paid_at.checked_sub(credit).unwrap_or(self.paid_at)
    }

    /// A replacement begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.paid_at = self.paid_at.max(now) + REST;
    }
}

/// Replacements that were done, by cause.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts([u64; ReplacementCause::ALL.len()]);

impl Counts {
    pub(crate) fn add(&mut self, cause: ReplacementCause) {
        self.0[cause as usize] += 1;
    }

    /// The numbers, with the word for each cause.
    pub(crate) fn by_name(self) -> Vec<(&'static str, u64)> {
        ReplacementCause::ALL.iter().map(|cause| (cause.name(), self.0[*cause as usize])).collect()
    }
}

/// Everything that an application has to remember of it.
#[derive(Debug)]
pub(crate) struct Replacements {
    pub(crate) pace: Pace,
    pub(crate) done: Counts,
}

impl Replacements {
    pub(crate) fn new(now: Instant) -> Replacements {
        Replacements { pace: Pace::new(now), done: Counts::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_more_of_large_pools() {
        assert_eq!([0, 1, 2, 15, 16, 64].map(at_a_time), [1, 1, 1, 1, 2, 8]);
    }

    #[test]
    fn each_worker_is_replaced_at_once_and_then_one_in_each_rest() {
        let start = Instant::now() + REST * 100;
        let mut pace = Pace::new(start);
        for _ in 0..4 {
            assert!(pace.due(4) <= start);
            pace.begin(start);
        }
        assert_eq!(pace.due(4), start + REST);
        pace.begin(start + REST);
        assert_eq!(pace.due(4), start + REST * 2);
        assert!(pace.due(4) <= start + REST * 50, "time pays");
        for _ in 0..4 {
            assert!(pace.due(4) <= start + REST * 50);
            pace.begin(start + REST * 50);
        }
        assert!(pace.due(4) > start + REST * 50, "and does not save up more than the pool");
    }

    #[test]
    fn counts_are_by_cause() {
        let mut counts = Counts::default();
        counts.add(ReplacementCause::OverMemory);
        assert_eq!(counts.by_name(), [("timeout", 0), ("memory", 1), ("operator", 0)]);
    }
}
