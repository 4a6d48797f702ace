//! When a certificate is to be obtained or renewed. Pure: the time is an argument.

use std::time::{Duration, SystemTime};

use crate::validity::Validity;

/// The wait after a first failure. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);
/// The least wait where the authority limits the rate: its limits hold for an hour at least.
const LEAST_WAIT_AT_LIMIT: Duration = Duration::from_secs(3600);
/// Renewals are spread over this share of a certificate's life, after two thirds of it.
const SPREAD: f64 = 0.05;

impl Validity {
    /// When it is to be renewed: after two thirds of its life, and `jitter` (0 to 1) of the spread behind that.
    pub(crate) fn renewal_at(self, jitter: f64) -> SystemTime {
        let life = self.until.duration_since(self.from).unwrap_or_default();
        self.from + life.mul_f64(2.0 / 3.0 + SPREAD * jitter.clamp(0.0, 1.0))
    }
}

/// The wait after this number of failures in a row, at least 1. `jitter` (0 to 1) makes it up to a quarter longer.
pub(crate) fn wait_after(failures: u32, is_at_limit: bool, jitter: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let least = if is_at_limit { LEAST_WAIT_AT_LIMIT } else { FIRST_WAIT };
    doubled.max(least).mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 4.0).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn renewals_come_after_two_thirds_of_the_life() {
        let from = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let validity = Validity { from, until: from + 90 * DAY };
        assert_eq!(validity.renewal_at(0.0), from + 60 * DAY);
        assert!(validity.renewal_at(1.0) > from + 64 * DAY && validity.renewal_at(9.0) < from + 65 * DAY);
        let short = Validity { from, until: from + DAY };
        assert!(short.renewal_at(1.0) < short.until);
        let wrong = Validity { from: from + DAY, until: from };
        assert_eq!(
            wrong.renewal_at(0.5),
            from + DAY,
            "a certificate that was never valid is due at once or later"
        );
    }

    #[test]
    fn waits_double_up_to_a_day() {
        let waits: Vec<u64> = (1..=13).map(|failures| wait_after(failures, false, 0.0).as_secs()).collect();
        assert_eq!(waits[..4], [60, 120, 240, 480]);
        assert_eq!(waits[12], 86_400);
        assert!(waits.is_sorted());
        assert_eq!(wait_after(u32::MAX, false, 1.0).as_secs(), 86_400);
        assert_eq!(wait_after(1, true, 0.0).as_secs(), 3600);
    }
}
