//! Crash loops: workers that die soon after they were started, one after the other. How soon the next one is forked, and when
//! there is something to report, as pure functions of the deaths.
//!
//! Each place in the pool pays for one death in [`REST`]; a few are free. So the worker that a bad request has ended is replaced
//! at once, and an application whose workers all die costs the machine a few forks a minute. A worker that lives long has paid
//! for its death. There is no lifetime from which on deaths do not count, and so none with which a loop goes on unnoticed.

use crate::core::restart_policy::Life;
use crate::facts::ending::Ending;
use std::fmt;
use std::time::{Duration, Instant};

/// Time in which a place in the pool pays for one death.
const REST: Duration = Duration::from_secs(5);
/// A death costs no less than this, however large the pool is.
const LEAST_REST: Duration = Duration::from_millis(500);
/// The longest wait for the next worker.
const LONGEST_REST: Duration = Duration::from_secs(10);
/// A worker that lived longer than this has not died soon.
const SOON: Duration = Duration::from_secs(60);
/// Deaths that make a crash loop.
const MANY: u32 = 3;
/// Time without a death after which a crash loop is over.
const OVER: Duration = Duration::from_secs(60);
/// How long workers have to live before they are a success: of a new version, or of a promoted mold.
pub const PROBATION: Duration = Duration::from_secs(2);
/// The shortest and the longest time between two reports of the same loop.
const REPORT_AGAIN: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(16 * 60));

/// Whether what is new has lived for long enough to be a success.
pub(crate) fn is_proven(proven_at: Option<Instant>, now: Instant) -> bool {
    proven_at.is_some_and(|at| now >= at)
}

/// A worker that has died without having been asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Death {
    pub(crate) worker: u32,
    pub(crate) life: Life,
    pub(crate) ending: Ending,
    /// Why it could not start, if it has reported that; or why it was killed.
    pub(crate) failure: Option<String>,
}

/// What there is to say of a crash loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Crashes {
    /// Workers that died.
    pub(crate) deaths: u32,
    /// Time from the first death to the last.
    pub(crate) within: Duration,
    pub(crate) last: Death,
}

impl fmt::Display for Crashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Crashes { deaths, within, last } = self;
        let Death { worker, ending, failure, .. } = last;
        write!(f, "{deaths} workers died in {} s; the last one, worker {worker}, ", within.as_secs().max(1))?;
        match failure {
            Some(failure) if last.life == Life::NeverReady => write!(f, "could not start: {failure}"),
            Some(failure) => write!(f, "was killed: {failure}"),
            None => write!(f, "{}", ending.of_process()),
        }
    }
}

impl Crashes {
    /// What to do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match (self.last.ending, &self.last.failure) {
            (_, Some(_)) if self.last.life == Life::NeverReady => {
                "Fix what keeps workers from starting, and restart: highball restart."
            }
            (_, Some(_)) => "Look for `exec`, and for code that closes all descriptors. Fix it, and restart: highball restart.",
            (Ending::Exited(_), None) => {
                "Something in the application ends its processes: look for `exit!`, `abort` and `exec`, also in threads that it \
                 starts, in gems and in hooks, and at what it printed above. Fix it, and restart: highball restart."
            }
            (Ending::OutOfMemory, None) => {
                "Its workers need more memory than they may have: give the machine or container more, or have fewer workers."
            }
            (Ending::Killed(9), None) => {
                "Find out what kills its workers: the kernel, when memory is exhausted (journalctl -k), or another program."
            }
            (Ending::Killed(_) | Ending::Unknown, None) => {
                "Ruby or a native extension crashes: what Ruby printed above says where. Build the gems again for this Ruby \
                 (bundle pristine), and restart: highball restart."
            }
        }
    }
}

/// The deaths of the workers of one version.
#[derive(Debug)]
pub(crate) struct CrashLoop {
    /// When all deaths are paid for.
    paid_at: Instant,
    /// Early deaths without a long pause between them.
    deaths: u32,
    first_at: Instant,
    last_at: Instant,
    last: Option<Death>,
    /// When the loop was reported, and the time after which it is reported again.
    reported: Option<(Instant, Duration)>,
}

impl CrashLoop {
    pub(crate) fn new(now: Instant) -> CrashLoop {
        CrashLoop { paid_at: now, deaths: 0, first_at: now, last_at: now, last: None, reported: None }
    }

    /// Notes a death in a pool of this size. Returns what is to be reported now, if anything is.
    pub(crate) fn died(&mut self, death: Death, pool: u16, now: Instant) -> Option<Crashes> {
        let is_early = match death.life {
            Life::NeverReady => true, // it is delayed by the restart policy
            Life::Ready(lived) => {
                let most = now + credit(pool) + LONGEST_REST;
                self.paid_at = (self.paid_at.max(now) + cost(pool)).min(most);
                lived < SOON
            }
        };
        if !is_early {
            return None;
        }
        if self.deaths == 0 || now >= self.last_at + OVER {
            (self.deaths, self.first_at, self.reported) = (0, now, None);
        }
        self.deaths = self.deaths.saturating_add(1);
        (self.last_at, self.last) = (now, Some(death));
        let next = match self.reported {
            None if self.deaths >= MANY => REPORT_AGAIN.0,
            Some((at, after)) if now >= at + after => (after * 2).min(REPORT_AGAIN.1),
            None | Some(_) => return None,
        };
        self.reported = Some((now, next));
        self.crashes(now)
    }

    /// When the next worker may be forked, in a pool of this size.
    pub(crate) fn due(&self, pool: u16) -> Instant {
        self.paid_at.checked_sub(credit(pool)).unwrap_or(self.paid_at)
    }

    /// The loop, if there is one.
    pub(crate) fn crashes(&self, now: Instant) -> Option<Crashes> {
        self.over_at().filter(|over_at| now < *over_at)?;
        let last = self.last.clone()?;
        Some(Crashes { deaths: self.deaths, within: self.last_at - self.first_at, last })
    }

    /// When the loop is over, if there is one and no worker dies until then.
    pub(crate) fn over_at(&self) -> Option<Instant> {
        self.reported.map(|_| self.last_at + OVER)
    }
}

/// What a death costs in a pool of this size.
fn cost(pool: u16) -> Duration {
    (REST / u32::from(pool.max(1))).max(LEAST_REST)
}

/// All workers of the pool may die at once, and one more.
fn credit(pool: u16) -> Duration {
    cost(pool).saturating_mul(u32::from(pool.max(1)) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(lived: Duration) -> Death {
        Death { worker: 1, life: Life::Ready(lived), ending: Ending::Exited(1), failure: None }
    }

    /// The deaths within this time of a pool whose workers all live for `lived`, and what was reported.
    fn play(pool: u16, lived: Duration, time: Duration) -> (usize, Vec<u32>) {
        let began = Instant::now() + Duration::from_secs(1000);
        let (mut crash_loop, mut now) = (CrashLoop::new(began), began);
        let (mut ends, mut deaths, mut reports) = (vec![began + lived; usize::from(pool)], 0, Vec::new());
        loop {
            let next = ends.iter_mut().min().unwrap();
            now = now.max(*next);
            if now > began + time {
                return (deaths, reports);
            }
            deaths += 1;
            reports.extend(crash_loop.died(death(lived), pool, now).map(|crashes| crashes.deaths));
            *next = crash_loop.due(pool).max(now) + lived;
        }
    }

    #[test]
    fn a_loop_is_slow_however_long_its_workers_live() {
        let minute = Duration::from_secs(60);
        for pool in [1, 2, 4, 16, 64, 512] {
            let paid = (minute.as_millis() / cost(pool).as_millis()) as usize;
            let most = usize::from(pool) * 2 + 1 + paid.max(usize::from(pool) * 6);
            for lived_ms in [0, 10, 999, 1000, 1500, 3000, 10_000] {
                let (deaths, _) = play(pool, Duration::from_millis(lived_ms), minute);
                assert!(deaths <= most, "{pool} workers that live for {lived_ms} ms: {deaths} deaths");
            }
        }
        let (deaths, reports) = play(2, Duration::from_millis(1500), Duration::from_secs(25));
        assert!((8..=15).contains(&deaths), "{deaths}");
        assert_eq!(reports, [3], "one report");
    }

    #[test]
    fn what_is_rare_is_replaced_at_once() {
        let began = Instant::now() + Duration::from_secs(1000);
        for pool in [1, 2, 16] {
            let mut crash_loop = CrashLoop::new(began);
            for second in 0..1000 {
                let now = began + Duration::from_secs(second * 6);
                assert!(crash_loop.due(pool) <= now);
                crash_loop.died(death(Duration::from_secs(6)), pool, now);
                assert!(crash_loop.due(pool) <= now);
            }
        }
    }

    #[test]
    fn all_of_a_pool_may_die_at_once() {
        let now = Instant::now() + Duration::from_secs(1000);
        for pool in [1, 2, 16, 512] {
            let mut crash_loop = CrashLoop::new(now);
            for _ in 0..=pool {
                assert!(crash_loop.due(pool) <= now);
                assert_eq!(crash_loop.died(death(SOON), pool, now), None, "none has died soon");
            }
        }
    }

    #[test]
    fn a_loop_is_reported_rarely_and_ends() {
        let (_, reports) = play(1, Duration::from_millis(1500), Duration::from_secs(3600));
        assert!((5..=9).contains(&reports.len()), "{reports:?}");
        let began = Instant::now();
        let mut crash_loop = CrashLoop::new(began);
        let mut die = |now| crash_loop.died(death(Duration::ZERO), 1, now);
        assert_eq!((die(began), die(began)), (None, None));
        let crashes = die(began + Duration::from_secs(4)).unwrap();
        assert_eq!((crashes.deaths, crashes.within), (3, Duration::from_secs(4)));
        assert_eq!(crash_loop.over_at(), Some(began + Duration::from_secs(4) + OVER));
        assert_eq!(crash_loop.crashes(began + Duration::from_secs(4) + OVER), None);
        assert_eq!(crash_loop.died(death(Duration::ZERO), 1, began + OVER * 2), None, "the first of another");
        assert_eq!(crash_loop.crashes(began + OVER * 2), None);
    }
}
