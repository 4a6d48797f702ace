//! Whether a worker begins the requests that it is given. A worker does not if it is stopped, if its serving threads are
//! gone, or if a thread never gives the GVL away, and the kernel reports nothing of it.
//!
//! Only requests are evidence here: nothing is concluded from a worker that was given none ([`super::silence`] is for that). What it does not begin goes to others
//! within milliseconds ([`super::placing`]), so it is given another one from time to time, as a trial. Time counts as far as
//! the event loop ran: what happened while this process was stopped as well says nothing about its workers.

/// The most that a tick counts for.
const MOST_TICK_MS: u64 = 200;
/// For how long a worker must have begun nothing, at least and at most; in between, as long as a request may wait.
const LEAST_MS: u64 = 2000;
const MOST_MS: u64 = 15_000;
/// In development a debugger may have stopped all threads of the worker.
const IN_DEVELOPMENT_MS: u64 = 60_000;
/// What a client may lose of its time limit before its request counts as waiting.
const SLACK_MS: u64 = 300;
/// The time between two trials.
const TRIAL_MS: u64 = 1000;
/// Requests that it must not have begun, unless one has waited for a long time.
const TRIALS: u32 = 3;
/// A worker that is still there is reported again after this time: replacing it may have failed.
pub(super) const REPORT_AGAIN_MS: u64 = 15_000;

/// Time that passes only while the event loop runs.
#[derive(Debug, Default)]
pub(super) struct LoopTime {
    last_ms: u64,
    counted_ms: u64,
}

impl LoopTime {
    /// A tick, at this time.
    pub(super) fn tick(&mut self, now_ms: u64) -> u64 {
        self.counted_ms += now_ms.saturating_sub(self.last_ms).min(MOST_TICK_MS);
        self.last_ms = now_ms;
        self.counted_ms
    }
}

/// For how long a worker has to have begun nothing, where requests may wait for `limit_ms`.
pub(super) fn patience_ms(limit_ms: Option<u64>, is_development: bool) -> u64 {
    let most = if is_development { IN_DEVELOPMENT_MS } else { MOST_MS };
    limit_ms.map_or(most, |limit| limit.saturating_sub(SLACK_MS).clamp(LEAST_MS, most))
}

/// What was seen of a worker at a tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Requests in a row that it has not begun soon.
    pub(super) missed: u32,
    /// One is waiting right now.
    pub(super) waits: bool,
    /// It should have begun: a thread of it is free, and no debugger has it.
    pub(super) is_expected: bool,
}

/// What is known of a worker.
#[derive(Debug, Default)]
pub(super) struct Stall {
    missed: u32,
    /// The first request that it did not begin, and the last one, in [`LoopTime`].
    first_ms: u64,
    last_ms: u64,
    /// For how long requests have waited in its ring, together.
    waited_ms: u64,
    seen_ms: u64,
    patience_ms: u64,
    reported_ms: Option<u64>,
}

impl Stall {
    /// Takes note. Returns whether the supervisor is to replace the worker.
    pub(super) fn look(&mut self, seen: Seen, now_ms: u64, patience_ms: u64) -> bool {
        let elapsed_ms = now_ms.saturating_sub(std::mem::replace(&mut self.seen_ms, now_ms));
        if seen.missed == 0 || !seen.is_expected {
            *self = Stall {
                seen_ms: now_ms,
                missed: seen.missed,
                first_ms: now_ms,
                last_ms: now_ms,
                ..Stall::default()
            };
            return false;
        }
        if self.patience_ms == 0 {
            self.first_ms = now_ms;
        }
        self.patience_ms = patience_ms;
        if seen.missed != self.missed || seen.waits {
            self.last_ms = now_ms;
        }
        self.missed = seen.missed;
        self.waited_ms += if seen.waits { elapsed_ms } else { 0 };
        let is_due = self.reported_ms.is_none_or(|at| now_ms >= at + REPORT_AGAIN_MS);
        let reports = self.is_stalled() && is_due;
        if reports {
            self.reported_ms = Some(now_ms);
        }
        reports
    }

    /// Whether it has begun nothing for too long.
    pub(super) fn is_stalled(&self) -> bool {
        self.patience_ms > 0
            && self.last_ms - self.first_ms >= self.patience_ms
            && (self.missed >= TRIALS || self.waited_ms >= self.patience_ms / 2)
    }

    /// Whether it is to get the next request although it has not begun the last one.
    pub(super) fn is_on_trial(&self, now_ms: u64) -> bool {
        self.patience_ms > 0 && !self.is_stalled() && now_ms >= self.last_ms + TRIAL_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Seen = Seen { missed: 1, waits: true, is_expected: true };

    /// Looks each 100 ms, until the worker is reported; after how many milliseconds.
    fn reported_after(stall: &mut Stall, mut seen: impl FnMut(u64) -> Seen, patience_ms: u64) -> Option<u64> {
        (0..1200).map(|tick| tick * 100).find(|now| stall.look(seen(*now), 1000 + now, patience_ms))
    }

    #[test]
    fn patience_is_as_long_as_requests_wait_within_bounds() {
        let of = |limit| patience_ms(limit, false);
        assert_eq!([of(None), of(Some(60_000)), of(Some(3000)), of(Some(10))], [15_000, 15_000, 2700, 2000]);
        assert_eq!(patience_ms(None, true), 60_000);
    }

    #[test]
    fn a_request_that_waits_for_long_is_enough() {
        let mut stall = Stall::default();
        assert_eq!(reported_after(&mut stall, |_| WAITS, 2700), Some(2700));
        assert!(stall.is_stalled() && !stall.is_on_trial(1_000_000));
        assert_eq!(
            reported_after(&mut stall, |_| WAITS, 2700).map(|ms| ms > 5000),
            Some(true),
            "again, later"
        );
    }

    #[test]
    fn without_requests_nothing_is_concluded() {
        let idle = Seen { waits: false, ..WAITS };
        let seen = |now| if now < 200 { WAITS } else { idle };
        assert_eq!(reported_after(&mut Stall::default(), seen, 2700), None);
    }

    #[test]
    fn requests_that_others_took_over_are_enough_if_they_are_several() {
        let every = |ms: u64, most: u32| {
            move |now: u64| Seen {
                missed: (1 + (now / ms) as u32).min(most),
                waits: false,
                is_expected: true,
            }
        };
        assert_eq!(reported_after(&mut Stall::default(), every(1000, 100), 2700), Some(3000));
        assert_eq!(reported_after(&mut Stall::default(), every(10_000, 2), 2700), None, "two are too few");
    }

    #[test]
    fn one_that_begins_or_has_no_free_thread_starts_again() {
        let begins = |now| Seen { missed: u32::from(now % 2000 != 0), ..WAITS };
        assert_eq!(reported_after(&mut Stall::default(), begins, 2700), None);
        let busy = |now| Seen { is_expected: now % 2000 != 0, ..WAITS };
        assert_eq!(reported_after(&mut Stall::default(), busy, 2700), None);
    }

    #[test]
    fn a_trial_comes_once_a_second() {
        let mut stall = Stall::default();
        stall.look(Seen { waits: false, ..WAITS }, 5000, 15_000);
        assert!(!stall.is_on_trial(5900) && stall.is_on_trial(6000));
    }

    #[test]
    fn a_pause_of_this_process_counts_for_nothing() {
        let mut time = LoopTime::default();
        let begin = time.tick(1_000_000);
        assert_eq!(time.tick(1_000_100), begin + 100);
        assert_eq!(time.tick(9_000_000), begin + 100 + MOST_TICK_MS);
    }
}
