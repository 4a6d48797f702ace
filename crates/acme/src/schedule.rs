//! When a certificate is to be obtained or renewed. Pure: the time is an argument.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime};

use crate::validity::Validity;

/// The wait after a first failure. It triples with each further one: five failures an hour are what Let's Encrypt has a name have.
const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_BACKOFF: Duration = Duration::from_secs(86_400);
/// The longest wait that an authority may ask for: the longest period that limits are known to have.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(7 * 86_400);
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

    /// Until then an authority may put a renewal off: then a tenth of its life is left.
    pub(crate) fn latest_renewal(self) -> SystemTime {
        self.from + self.until.duration_since(self.from).unwrap_or_default().mul_f64(0.9)
    }
}

/// The wait after this number of failures in a row, at least 1, where the authority has `asked` for one. `jitter` (0 to 1) makes it up
/// to a quarter longer.
pub(crate) fn wait_after(failures: u32, asked: Option<Duration>, is_at_limit: bool, jitter: f64) -> Duration {
    let tripled = FIRST_WAIT.saturating_mul(3_u32.pow(failures.saturating_sub(1).min(10)));
    let least = if is_at_limit { LEAST_WAIT_AT_LIMIT } else { FIRST_WAIT };
    let longer = 1.0 + jitter.clamp(0.0, 1.0) / 4.0;
    let own = tripled.max(asked.map_or(least, |_| FIRST_WAIT)).mul_f64(longer).min(LONGEST_BACKOFF);
    own.max(asked.unwrap_or_default().min(LONGEST_WAIT))
}

/// What may be done a number of times within a span: at once, or one after the other.
#[derive(Debug)]
pub(crate) struct Allowance {
    most: f64,
    span: Duration,
    /// What is left, and since when.
    left: Cell<(f64, Option<Instant>)>,
}

impl Allowance {
    pub(crate) fn of(most: u32, span: Duration) -> Self {
        let most = f64::from(most);
        Allowance { most, span, left: Cell::new((most, None)) }
    }

    /// Whether it may be done again.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let (left, since) = self.left.get();
        let passed = since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let left = (left + self.most * passed.div_duration_f64(self.span)).min(self.most);
        let may = left >= 1.0;
        self.left.set((if may { left - 1.0 } else { left }, Some(now)));
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_comes_back_with_time() {
        let (allowance, begin) = (Allowance::of(100, Duration::from_secs(3600)), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!((0..200).filter(|_| allowance.take(begin)).count(), 100);
        assert!(!allowance.take(after(35)));
        assert!(allowance.take(after(37)) && !allowance.take(after(38)));
        assert_eq!((0..200).filter(|_| allowance.take(after(86_400))).count(), 100);
    }

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
    fn waits_triple_up_to_a_day() {
        let after = |failures| wait_after(failures, None, false, 0.0).as_secs();
        let waits: Vec<u64> = (1..=13).map(after).collect();
        assert_eq!(waits[..4], [60, 180, 540, 1620]);
        assert_eq!(waits[12], 86_400);
        assert!(waits.is_sorted());
        assert_eq!(wait_after(u32::MAX, None, false, 1.0).as_secs(), 86_400);
        let in_first_hour = waits.iter().scan(0, |at, wait| Some(std::mem::replace(at, *at + wait)));
        assert_eq!(in_first_hour.filter(|at| *at < 3600).count(), 5);
    }

    #[test]
    fn an_authority_may_ask_for_another_wait() {
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(wait_after(1, None, true, 0.0).as_secs(), 3600);
        assert_eq!(wait_after(1, asked(600), true, 0.0).as_secs(), 600);
        assert_eq!(wait_after(1, asked(0), true, 0.0).as_secs(), 60);
        assert_eq!(wait_after(9, asked(7 * 86_400), true, 1.0).as_secs(), 7 * 86_400);
        assert_eq!(wait_after(1, asked(u64::MAX), true, 0.0), LONGEST_WAIT);
    }
}
