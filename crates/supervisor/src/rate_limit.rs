//! A limit on what happens in a second, and at once. Pure: the time is an argument.

use std::time::Instant;

/// A budget that is refilled evenly.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_second: f64,
    /// The most that is saved up.
    burst: f64,
    /// What is left; below zero after something large, as otherwise that would never fit.
    left: f64,
    filled_at: Instant,
}

impl RateLimit {
    pub(crate) fn new(per_second: u64, burst: u64, now: Instant) -> RateLimit {
        let burst = burst as f64;
        RateLimit { per_second: per_second as f64, burst, left: burst, filled_at: now }
    }

    /// Whether there is anything left.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.left = (self.left + elapsed * self.per_second).min(self.burst);
        self.filled_at = self.filled_at.max(now);
        self.left > 0.0
    }

    /// Spends this much.
    pub(crate) fn spend(&mut self, cost: u64) {
        self.left -= cost as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_is_followed_by_the_rate() {
        let start = Instant::now();
        let mut limit = RateLimit::new(10, 20, start);
        let mut spent = |at: Duration| {
            let mut count = 0;
            while limit.allows(start + at) {
                limit.spend(1);
                count += 1;
            }
            count
        };
        assert_eq!(spent(Duration::ZERO), 20);
        assert_eq!(spent(Duration::from_millis(500)), 5);
        assert_eq!(spent(Duration::from_millis(400)), 0, "a clock that goes back adds nothing");
        assert_eq!(spent(Duration::from_secs(60)), 20);
    }

    #[test]
    fn what_is_larger_than_the_burst_is_paid_for_later() {
        let start = Instant::now();
        let mut limit = RateLimit::new(10, 20, start);
        assert!(limit.allows(start));
        limit.spend(100);
        assert!(!limit.allows(start + Duration::from_secs(7)));
        assert!(limit.allows(start + Duration::from_secs(9)));
    }
}
