//! When a process that has died is started again: pure functions of what happened, without clock or I/O.

use std::time::Duration;

/// A process that lived this long after it was ready has not failed to start.
const STEADY: Duration = Duration::from_secs(60);
/// The first delay; each further quick death doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// The longest delay.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// How far a process came before it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It died before it was ready.
    NeverReady,
    /// It died this long after it had become ready.
    Ready(Duration),
}

/// What follows from a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Start the next one after this time.
    StartAfter(Duration),
    /// Nothing serves and nothing starts: end with a message instead of looping.
    GiveUp,
}

/// Counts deaths in a row for one kind of process: molds, and workers that do not get ready. (For workers that were ready see
/// [`super::crash_loop`].)
#[derive(Debug)]
pub(crate) struct RestartPolicy {
    max_boot_failures: u32,
    boot_failures: u32,
    quick_deaths: u32,
}

impl RestartPolicy {
    pub(crate) fn new(max_boot_failures: u32) -> Self {
        RestartPolicy { max_boot_failures, boot_failures: 0, quick_deaths: 0 }
    }

    /// What has died so far does not count any more.
    pub(crate) fn begin_again(&mut self) {
        *self = RestartPolicy::new(self.max_boot_failures);
    }

    /// A process has become ready: it is not a boot loop.
    pub(crate) fn ready(&mut self) {
        self.boot_failures = 0;
    }

    /// A process has died. `others_serve`: whether requests are answered all the same, in which case it is
    /// never right to give up.
    pub(crate) fn died(&mut self, life: Life, others_serve: bool) -> Verdict {
        match life {
            Life::Ready(lived) if lived >= STEADY => {
                self.quick_deaths = 0;
                return Verdict::StartAfter(Duration::ZERO);
            }
            Life::Ready(_) => {}
            Life::NeverReady => self.boot_failures += 1,
        }
        if self.boot_failures >= self.max_boot_failures && !others_serve {
            return Verdict::GiveUp;
        }
        let delay = delay_after(self.quick_deaths);
        self.quick_deaths = self.quick_deaths.saturating_add(1);
        Verdict::StartAfter(delay)
    }

    /// Processes in a row that died before they were ready.
    pub(crate) fn boot_failures(&self) -> u32 {
        self.boot_failures
    }
}

/// The delay after `quick_deaths` earlier quick deaths in a row: none, then 0.25 s, doubling up to 10 s.
fn delay_after(quick_deaths: u32) -> Duration {
    match quick_deaths {
        0 => Duration::ZERO,
        n => FIRST_DELAY.saturating_mul(1 << (n - 1).min(16)).min(LONGEST_DELAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Life = Life::Ready(Duration::from_millis(10));
    const STEADY_LIFE: Life = Life::Ready(Duration::from_secs(60));

    #[test]
    fn the_first_death_is_answered_at_once_and_then_ever_later() {
        let millis: Vec<u128> = (0..8).map(|n| delay_after(n).as_millis()).collect();
        assert_eq!(millis, [0, 250, 500, 1000, 2000, 4000, 8000, 10000]);
        assert_eq!(delay_after(u32::MAX), LONGEST_DELAY);
    }

    #[test]
    fn a_worker_that_served_is_replaced_at_once_however_often() {
        let mut policy = RestartPolicy::new(3);
        for _ in 0..10 {
            assert_eq!(policy.died(STEADY_LIFE, false), Verdict::StartAfter(Duration::ZERO));
        }
    }

    #[test]
    fn a_boot_loop_ends_at_the_cap() {
        let mut policy = RestartPolicy::new(3);
        assert!(matches!(policy.died(Life::NeverReady, false), Verdict::StartAfter(_)));
        assert!(matches!(policy.died(Life::NeverReady, false), Verdict::StartAfter(_)));
        assert_eq!(policy.died(Life::NeverReady, false), Verdict::GiveUp);
    }

    #[test]
    fn a_boot_loop_beside_serving_workers_goes_on_slowly() {
        let mut policy = RestartPolicy::new(2);
        let last = (0..20).map(|_| policy.died(Life::NeverReady, true)).last();
        assert_eq!(last, Some(Verdict::StartAfter(LONGEST_DELAY)));
    }

    #[test]
    fn one_that_gets_ready_ends_the_count_but_quick_deaths_still_slow_down() {
        let mut policy = RestartPolicy::new(2);
        policy.died(Life::NeverReady, false);
        policy.ready();
        assert_eq!(policy.died(QUICK, false), Verdict::StartAfter(FIRST_DELAY));
        assert_eq!(policy.died(QUICK, false), Verdict::StartAfter(FIRST_DELAY * 2));
        assert_eq!(policy.died(STEADY_LIFE, false), Verdict::StartAfter(Duration::ZERO));
        assert_eq!(policy.died(QUICK, false), Verdict::StartAfter(Duration::ZERO));
    }
}
