//! What is remembered of a name whose certificate could not be obtained. It outlives the server, so that a
//! server that restarts all the time asks the authority no more often than a running one.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::schedule::{wait_after, LONGEST_WAIT};

/// Attempts that came to no end, as the server ended, before the next one has to wait.
const FREE_ATTEMPTS: u32 = 3;

/// Attempts since the last success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Backoff {
    /// Failures in a row.
    pub(crate) failures: u32,
    /// Attempts in a row that came to no end.
    unfinished: u32,
    /// When the next one is due: seconds since 1970.
    next_at: u64,
    /// Why the last attempt failed.
    pub(crate) problem: Option<String>,
    /// What to do about it.
    pub(crate) remedy: Option<String>,
}

impl Backoff {
    /// What a file says; `None`: it is damaged.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// When the next attempt is due. A time that no wait could have led to comes from another clock, and does not count.
    pub(crate) fn next(&self, now: SystemTime) -> SystemTime {
        SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_secs(self.next_at))
            .filter(|next| next.duration_since(now).unwrap_or_default() <= LONGEST_WAIT)
            .unwrap_or(now)
    }

    /// An attempt begins.
    pub(crate) fn begin(&mut self, now: SystemTime, jitter: f64) {
        self.unfinished = self.unfinished.saturating_add(1);
        let in_excess = self.unfinished.saturating_sub(FREE_ATTEMPTS - 1);
        let wait = if in_excess == 0 { Duration::ZERO } else { wait_after(in_excess, None, false, jitter) };
        self.set_next(now, wait);
        if in_excess > 0 {
            let what = format!("the server has ended during each of the last {} attempts", self.unfinished);
            self.problem = Some(what);
            self.remedy = Some("The log says why it ends".into());
        }
    }

    /// It has failed. Returns the wait.
    pub(crate) fn fail(&mut self, problem: &Problem, now: SystemTime, jitter: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.unfinished = 0;
        let asked = problem.retry_at.map(|time| time.duration_since(now).unwrap_or_default());
        let wait = wait_after(self.failures, asked, problem.is_at_limit, jitter);
        self.set_next(now, wait);
        (self.problem, self.remedy) = (Some(problem.what.clone()), Some(problem.remedy.clone()));
        wait
    }

    fn set_next(&mut self, now: SystemTime, wait: Duration) {
        self.next_at = (now + wait).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn left(backoff: &Backoff) -> u64 {
        backoff.next(NOW).duration_since(NOW).expect("later").as_secs()
    }

    #[test]
    fn failures_are_remembered() {
        let mut backoff = Backoff::default();
        backoff.begin(NOW, 0.0);
        assert_eq!(backoff.fail(&Problem::new("what", "do"), NOW, 0.0).as_secs(), 60);
        let read = Backoff::read(&backoff.bytes()).expect("whole");
        assert_eq!(read, backoff);
        assert_eq!((read.failures, left(&read)), (1, 60));
        assert_eq!(read.problem.as_deref(), Some("what"));
    }

    #[test]
    fn an_authority_that_names_a_time_is_asked_then() {
        let mut problem = Problem::new("limit", "wait");
        (problem.is_at_limit, problem.retry_at) = (true, Some(NOW + Duration::from_secs(7200)));
        let mut backoff = Backoff::default();
        backoff.fail(&problem, NOW, 0.0);
        assert_eq!(left(&backoff), 7200);
        problem.retry_at = Some(NOW + Duration::from_secs(1 << 31));
        backoff.fail(&problem, NOW, 0.0);
        assert_eq!(left(&backoff), LONGEST_WAIT.as_secs());
    }

    #[test]
    fn a_server_that_ends_again_and_again_has_to_wait() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..6)
            .map(|_| {
                backoff.begin(NOW, 0.0);
                left(&backoff)
            })
            .collect();
        assert_eq!(waits, [0, 0, 60, 180, 540, 1620]);
        assert!(backoff.problem.as_deref().is_some_and(|what| what.contains("last 6 attempts")));
    }

    #[test]
    fn what_cannot_be_is_not_followed() {
        assert_eq!(Backoff::read(b"{}"), None);
        assert_eq!(Backoff::read(&[0xff; 100]), None);
        let far = Backoff { next_at: u64::MAX, ..Backoff::default() };
        assert_eq!(far.next(NOW), NOW);
        let set_back = Backoff { next_at: LONGEST_WAIT.as_secs() + 1, ..Backoff::default() };
        assert_eq!(set_back.next(NOW), NOW);
    }
}
