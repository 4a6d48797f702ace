//! Replacing one worker for a cause that lies in it: a request that does not end or is not begun, memory that does not come back, or
//! that it was forked too early. How many
//! are replaced at a time, and how often, as pure functions.

use crate::core::memory::OverMemory;
use std::fmt;
use std::time::{Duration, Instant};

/// Workers of a pool for which one is replaced at a time.
const POOL_PER_REPLACEMENT: usize = 8;
/// Time for which a place in the pool pays for one replacement: an application that causes one with every request gets new
/// workers at this rate, and no faster.
pub(crate) const REST: Duration = Duration::from_secs(10);
/// A worker that has served for so long before it had too much memory has paid for its replacement itself.
pub(crate) const SOON: Duration = Duration::from_secs(5);
/// The longest rest after a replacement for memory is this many times [`REST`].
const LONGEST_RESTS: u32 = 64;
/// Exit time of a worker retired before its replacement starts.
pub(crate) const RETIRE_FIRST_TIME: Duration = Duration::from_secs(5);

/// Why a worker is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplacementCause {
    /// One of its requests exceeded its time limit, and its thread has not come back.
    TimedOut,
    /// It does not begin the requests that it is given, or does not answer the supervisor.
    Unresponsive,
    /// It has more memory than it may have.
    OverMemory,
    /// An operator has asked for it.
    Asked,
    /// It was forked before its mold had laid out the heap, so that it served sooner. It shares less memory than others.
    ForkedEarly,
}

impl ReplacementCause {
    /// Every cause, in the order of [`Counts`].
    pub(crate) const ALL: [ReplacementCause; 5] = [
        ReplacementCause::TimedOut,
        ReplacementCause::Unresponsive,
        ReplacementCause::OverMemory,
        ReplacementCause::Asked,
        ReplacementCause::ForkedEarly,
    ];

    /// The word for it in metrics and `highball status`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReplacementCause::TimedOut => "timeout",
            ReplacementCause::Unresponsive => "unresponsive",
            ReplacementCause::OverMemory => "memory",
            ReplacementCause::Asked => "operator",
            ReplacementCause::ForkedEarly => "start",
        }
    }

    /// Whether it is a part of each start, and no sign of a fault: such replacements are not counted.
    pub(crate) fn is_usual(self) -> bool {
        self == ReplacementCause::ForkedEarly
    }
}

impl fmt::Display for ReplacementCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplacementCause::TimedOut => "a request exceeded its time limit, and its thread is still at it",
            ReplacementCause::Unresponsive => {
                "it does not begin the requests that it is given, or does not answer"
            }
            ReplacementCause::OverMemory => "it is over its memory limit",
            ReplacementCause::Asked => "an operator has asked for it",
            ReplacementCause::ForkedEarly => "it was forked before the heap was laid out",
        })
    }
}

/// A worker that is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) cause: ReplacementCause,
    /// The figures, if it has too much memory.
    pub(crate) memory: Option<OverMemory>,
    /// Once it is its turn: when another worker has to serve in its place; or, if there is no room for both, when another one
    /// is started although this one has not ended.
    pub(crate) relieved_by: Option<Instant>,
    /// The log has a line that it has to wait for its turn.
    pub(crate) is_delayed: bool,
}

impl Replacement {
    pub(crate) fn new(cause: ReplacementCause) -> Replacement {
        Replacement { cause, memory: None, relieved_by: None, is_delayed: false }
    }

    pub(crate) fn for_memory(over: OverMemory) -> Replacement {
        Replacement { memory: Some(over), ..Replacement::new(ReplacementCause::OverMemory) }
    }

    /// Whether there is no room for another worker before this one has ended.
    pub(crate) fn retires_first(&self) -> bool {
        self.memory.is_some_and(|over| !over.has_room)
    }
}

/// Workers of a pool of this size that may be replaced at a time, for one cause.
pub(crate) fn at_a_time(pool: u16, cause: ReplacementCause) -> usize {
    match cause {
        ReplacementCause::TimedOut | ReplacementCause::Unresponsive | ReplacementCause::Asked => {
            (usize::from(pool) / POOL_PER_REPLACEMENT).max(1)
        }
        // Each of them takes memory, which is scarce.
        ReplacementCause::OverMemory => 1,
        // A mold has one.
        ReplacementCause::ForkedEarly => 1,
    }
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
        self.rest(REST, now);
    }

    fn rest(&mut self, time: Duration, now: Instant) {
        self.paid_at = self.paid_at.max(now) + time;
    }
}

/// How often workers are replaced for memory. A leak takes its time: each worker serves for a while before, and there is no
/// limit to such replacements. Workers that have too much memory as soon as they serve are replaced once, and then more and
/// more rarely: new ones do not help.
#[derive(Debug)]
pub(crate) struct MemoryPace {
    pace: Pace,
    /// Workers in a row that had too much soon.
    soon: u32,
    /// The limit is too small, or the application leaks as soon as it serves; the figures. The log has a line of it.
    too_small: Option<OverMemory>,
}

impl MemoryPace {
    fn new(now: Instant) -> MemoryPace {
        MemoryPace { pace: Pace::new(now), soon: 0, too_small: None }
    }

    /// Replacing a worker begins that has served for this long.
    fn begin(&mut self, served: Duration, pool: u16, now: Instant) {
        if served >= SOON {
            self.soon = 0;
            return;
        }
        self.soon += 1;
        let times = 1 << self.soon.saturating_sub(u32::from(pool)).min(LONGEST_RESTS.ilog2());
        self.pace.rest(REST * times, now);
    }
}

/// Replacements that were done, by cause.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts([u64; ReplacementCause::ALL.len()]);

impl Counts {
    pub(crate) fn add(&mut self, cause: ReplacementCause) {
        self.0[cause as usize] += 1;
    }

    pub(crate) fn of(self, cause: ReplacementCause) -> u64 {
        self.0[cause as usize]
    }

    /// The numbers, with the word for each cause.
    pub(crate) fn by_name(self) -> Vec<(&'static str, u64)> {
        let counted = ReplacementCause::ALL.into_iter().filter(|cause| !cause.is_usual());
        counted.map(|cause| (cause.name(), self.0[cause as usize])).collect()
    }
}

/// Everything that an application has to remember of it.
#[derive(Debug)]
pub(crate) struct Replacements {
    pace: Pace,
    memory: MemoryPace,
    done: Counts,
}

impl Replacements {
    pub(crate) fn new(now: Instant) -> Replacements {
        Replacements { pace: Pace::new(now), memory: MemoryPace::new(now), done: Counts::default() }
    }

    /// How many replacements were done.
    pub(crate) fn counts(&self) -> Counts {
        self.done
    }

    /// One begins, of a worker that has served for this long, in a pool of this size.
    pub(crate) fn begin(&mut self, cause: ReplacementCause, served: Duration, pool: u16, now: Instant) {
        match cause {
            ReplacementCause::TimedOut | ReplacementCause::Unresponsive | ReplacementCause::Asked => {
                self.pace.begin(now);
            }
            ReplacementCause::OverMemory => self.memory.begin(served, pool, now),
            ReplacementCause::ForkedEarly => {}
        }
    }

    /// One is done.
    pub(crate) fn done(&mut self, cause: ReplacementCause) {
        self.done.add(cause);
    }

    /// The limit of memory that is too small for the application, if one is.
    pub(crate) fn too_small(&self) -> Option<OverMemory> {
        self.memory.too_small
    }

    /// A limit of memory is too small. False: that is known.
    pub(crate) fn limit_is_too_small(&mut self, over: OverMemory) -> bool {
        self.memory.too_small.replace(over).is_none()
    }

    /// The limit of memory, or what is limited, may be another one.
    pub(crate) fn forget_limit(&mut self) {
        self.memory.too_small = None;
    }

    /// When the next replacement for this cause may begin, in a pool of this size; `None`: at once.
    pub(crate) fn due(&self, cause: ReplacementCause, pool: u16) -> Option<Instant> {
        match cause {
            ReplacementCause::TimedOut | ReplacementCause::Unresponsive | ReplacementCause::Asked => {
                Some(self.pace.due(pool))
            }
            ReplacementCause::OverMemory => Some(self.memory.pace.due(pool)),
            ReplacementCause::ForkedEarly => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_more_of_large_pools() {
        let for_time_outs = |pool| at_a_time(pool, ReplacementCause::TimedOut);
        assert_eq!([0, 1, 2, 15, 16, 64].map(for_time_outs), [1, 1, 1, 1, 2, 8]);
        assert_eq!(at_a_time(64, ReplacementCause::OverMemory), 1);
    }

    #[test]
    fn a_leak_that_takes_its_time_is_not_paced() {
        let start = Instant::now() + REST * 100;
        let mut replacements = Replacements::new(start);
        for _ in 0..1000 {
            replacements.memory.begin(SOON, 2, start);
            assert!(replacements.due(ReplacementCause::OverMemory, 2) <= Some(start));
        }
    }

    #[test]
    fn workers_that_have_too_much_at_once_are_replaced_more_and_more_rarely() {
        let mut now = Instant::now() + REST * 1000;
        let mut replacements = Replacements::new(now);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            let due = replacements.due(ReplacementCause::OverMemory, 2).map_or(now, |due| due.max(now));
            pauses.push((due - now).as_secs());
            now = due;
            replacements.memory.begin(Duration::from_secs(1), 2, now);
        }
        assert_eq!(pauses[..3], [0, 0, 10], "each of the pool once");
        assert_eq!(pauses[11], 640);
        assert!(pauses.windows(2).all(|two| two[0] <= two[1]), "{pauses:?}");
        replacements.memory.begin(SOON, 2, now);
        replacements.memory.begin(Duration::ZERO, 2, now);
        assert!(
            replacements.due(ReplacementCause::OverMemory, 2) > Some(now),
            "what was begun has to be paid"
        );
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
        assert_eq!(counts.by_name(), [("timeout", 0), ("unresponsive", 0), ("memory", 1), ("operator", 0)]);
    }
}
