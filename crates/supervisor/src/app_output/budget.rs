//! The part of an application's output that is logged, and a count of what was dropped beyond that. Pure: the time is
//! an argument.

use crate::rate_limit::RateLimit;
use std::time::{Duration, Instant};

/// The seconds whose budget may be spent at once.
const BURST_SECONDS: u64 = 4;
/// The least cost of a line in bytes: it takes more than its text.
const LEAST_LINE_BYTES: u64 = 64;
/// How often dropped lines are reported.
const NOTICE_EVERY: Duration = Duration::from_secs(1);

/// Lines that were not logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

/// The budget of one application.
#[derive(Debug)]
pub(crate) struct Budget {
    /// `None`: without limit.
    bytes: Option<RateLimit>,
    dropped: Dropped,
    noticed_at: Option<Instant>,
}

impl Budget {
    /// A budget in bytes per second.
    pub(crate) fn new(per_second: Option<u64>, now: Instant) -> Budget {
        let limit = |bytes: u64| RateLimit::new(bytes, bytes.saturating_mul(BURST_SECONDS), now);
        Budget { bytes: per_second.map(limit), dropped: Dropped::default(), noticed_at: None }
    }

    /// Whether a line of this size is logged; if not, it counts as dropped.
    pub(crate) fn takes(&mut self, bytes: usize, now: Instant) -> bool {
        let Some(limit) = &mut self.bytes else { return true };
        let takes = limit.allows(now);
        if takes {
            limit.spend((bytes as u64).max(LEAST_LINE_BYTES));
        } else {
            self.drop_line(bytes);
        }
        takes
    }

    /// A line is dropped for another reason.
    pub(crate) fn drop_line(&mut self, bytes: usize) {
        self.dropped.lines += 1;
        self.dropped.bytes += bytes as u64;
    }

    /// The dropped lines that have not been reported, if it is time for a report.
    pub(crate) fn notice(&mut self, now: Instant) -> Option<Dropped> {
        let is_due = self.noticed_at.is_none_or(|at| now.saturating_duration_since(at) >= NOTICE_EVERY);
        if !is_due || !self.owes_notice() {
            return None;
        }
        self.noticed_at = Some(now);
        Some(std::mem::take(&mut self.dropped))
    }

    /// Whether there are dropped lines that have not been reported.
    pub(crate) fn owes_notice(&self) -> bool {
        self.dropped.lines > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_budget_is_counted_and_reported_once_a_second() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut budget = Budget::new(Some(1000), start);
        let taken = (0..100).filter(|_| budget.takes(100, start)).count();
        assert_eq!(taken, 40, "four seconds' worth at once");
        assert_eq!(budget.notice(start), Some(Dropped { lines: 60, bytes: 6000 }));
        assert_eq!(budget.notice(after(5000)), None);
        assert!((0..50).any(|_| !budget.takes(100, after(100))));
        assert!(budget.notice(after(500)).is_none() && budget.owes_notice());
        assert!(budget.notice(after(1000)).is_some() && !budget.owes_notice());
    }

    #[test]
    fn empty_lines_are_not_free() {
        let start = Instant::now();
        let mut budget = Budget::new(Some(640), start);
        assert_eq!((0..1000).filter(|_| budget.takes(0, start)).count(), 40);
    }

    #[test]
    fn without_a_limit_everything_is_taken() {
        let start = Instant::now();
        let mut budget = Budget::new(None, start);
        assert!((0..1000).all(|_| budget.takes(1 << 20, start)));
    }
}
