//! How long a worker takes for a request, as seen from here: a moving average.

use std::time::{Duration, Instant};

/// Workers that answer faster than this get requests placed ahead.
const FAST: Duration = Duration::from_micros(200);

/// How much work may be placed ahead, by the average.
const AHEAD: Duration = Duration::from_millis(1);

/// How long an answer may wait for others, by the average.
const TOGETHER: Duration = Duration::from_micros(100);

/// The moving average of a worker's service time.
#[derive(Debug)]
pub(crate) struct ServiceTime {
    average_ns: u64,
    /// Start of the request expected to finish next.
    since: Instant,
    /// How many requests may be placed ahead: asked for each request, and several times for waiting ones.
    look_ahead: u32,
}

impl ServiceTime {
    /// A worker that is not known yet passes for a slow one.
    pub(crate) fn new(now: Instant) -> Self {
        ServiceTime { average_ns: 5 * FAST.as_nanos() as u64, since: now, look_ahead: 0 }
    }

    /// An idle worker was given something.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// This number of requests has ended since the last call, one after the other or side by side.
    pub(crate) fn ended(&mut self, requests: u32, now: Instant) {
        let elapsed = now.saturating_duration_since(self.since).as_nanos() as u64;
        self.since = now;
        self.average_ns = (3 * self.average_ns + elapsed / u64::from(requests.max(1))) / 4;
        self.look_ahead = if self.is_fast() { self.requests_within(AHEAD) } else { 0 };
    }

    /// Start of the request expected to finish next.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Whether the worker is fast enough to be given requests ahead.
    pub(crate) fn is_fast(&self) -> bool {
        self.average_ns < FAST.as_nanos() as u64
    }

    /// How many requests may be placed ahead.
    pub(crate) fn look_ahead(&self) -> u32 {
        self.look_ahead
    }

    /// For how many answers together the front is woken; at least one.
    pub(crate) fn answers_at_once(&self) -> u32 {
        self.requests_within(TOGETHER).max(1)
    }

    fn requests_within(&self, time: Duration) -> u32 {
        (time.as_nanos() as u64 / self.average_ns.max(1)).min(1000) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_answers_earn_a_look_ahead_and_slow_ones_lose_it() {
        let start = Instant::now();
        let mut time = ServiceTime::new(start);
        assert_eq!((time.look_ahead(), time.answers_at_once()), (0, 1));
        for n in 1..=60 {
            time.ended(10, start + Duration::from_micros(100 * n));
        }
        assert!(time.is_fast());
        assert!((80..=110).contains(&time.look_ahead()), "{}", time.look_ahead());
        assert!((8..=11).contains(&time.answers_at_once()), "{}", time.answers_at_once());
        time.ended(1, start + Duration::from_millis(500));
        assert_eq!((time.look_ahead(), time.answers_at_once()), (0, 1));
    }
}
