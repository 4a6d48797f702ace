//! How many workers an application has, where its configuration leaves that to the load: a pure function of what was measured.
//!
//! More workers start as soon as requests wait, or threads or processors are about to be all in use. Fewer are enough only after
//! that has been true for a while, which gets longer if it turns out wrong. So a load that comes and goes finds its workers.

use highball_config::PoolRange;
use std::fmt;
use std::time::{Duration, Instant};

/// The time in which the demand that makes a pool grow covers 63 % of the way to a new one: one burst is no reason.
const FAST: Duration = Duration::from_millis(300);
/// The same, of the demand that keeps it from shrinking.
const SLOW: Duration = Duration::from_secs(10);
/// Workers are added when more than this share of their threads, or of a processor for each, is in use.
const GROW_ABOVE: f64 = 0.75;
/// Share that would then be in use.
const AIM: f64 = 0.6;
/// Workers are removed until this share would be in use. The distance from `GROW_ABOVE` keeps the number from swinging.
const SHRINK_BELOW: f64 = 0.5;
/// It also grows when requests wait for this long in the queue.
const LONG_WAIT_SECONDS: f64 = 0.020;
/// All processors count as in use from this share on: more workers than processors would not help then.
const CPUS_IN_USE: f64 = 0.9;
/// New workers show what they are good for within this time.
const GROWTH_REST: Duration = Duration::from_millis(500);
/// Time between two steps down.
const SHRINK_REST: Duration = Duration::from_secs(10);
/// For how long fewer workers have to be enough before there are fewer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest such time.
const LONGEST_PATIENCE: Duration = PATIENCE.saturating_mul(16);
/// A pool that grows so soon after it has shrunk should not have shrunk.
const REGRET: Duration = Duration::from_secs(300);
/// After this time without growth, that is forgotten.
const FORGIVENESS: Duration = Duration::from_secs(3600);
/// An operator's order is not changed for this long.
const ORDER_TIME: Duration = Duration::from_secs(60);
/// A pool that has shrunk for want of memory does not grow for this long.
const MEMORY_REST: Duration = Duration::from_secs(300);
/// The front reports nothing of an idle application. Then its demand is computed so often.
const SILENCE: Duration = Duration::from_secs(1);
/// The part of the pool that may go in one step down.
const STEP_DOWN: u16 = 4;
/// The log has a line at most so often that the same thing keeps the pool from growing.
const HINDRANCE_TIME: Duration = Duration::from_secs(600);

/// What was measured since the last time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) elapsed: Duration,
    /// Requests that workers had, on average.
    pub(crate) busy: f64,
    /// Requests that waited for one, on average.
    pub(crate) queue: f64,
    /// The longest time that one of them has waited so far.
    pub(crate) waited: Duration,
    /// Processors that the workers used, on average.
    pub(crate) cpus: f64,
    /// The memory for more workers; `None`: it has not been measured.
    pub(crate) room: Option<Room>,
}

/// How many more workers the memory suffices for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) workers: u16,
    /// What a worker takes.
    pub(crate) worker_bytes: u64,
    /// What is left.
    pub(crate) free_bytes: u64,
}

impl Room {
    /// Where there is no limit.
    pub(crate) const UNLIMITED: Room = Room { workers: u16::MAX, worker_bytes: 0, free_bytes: u64::MAX };
}

/// The pool as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    /// The wanted number of workers.
    pub(crate) size: u16,
    /// Serving threads in each.
    pub(crate) threads: u16,
    /// Whether all of them serve, and nothing else is about to change them.
    pub(crate) is_complete: bool,
}

/// Another number of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Decision {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) reason: Reason,
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reason {
    /// Requests wait in the queue.
    Waiting(Duration),
    /// Threads are in use, in percent; waiting requests count beyond 100.
    Threads(u32),
    /// Processors are in use, in percent of one for each worker.
    Cpu(u32),
    /// Fewer are enough, for this long.
    Enough(Duration),
    /// A limit of memory is exceeded, and new workers would not change that.
    MemoryShort,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decision { from, to, reason } = self;
        write!(f, "{from} to {to}: {reason}")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::Waiting(time) => {
                write!(f, "requests wait in the queue for {} ms", time.as_millis())
            }
            Reason::Threads(percent) => write!(f, "{percent}% of the threads are wanted"),
            Reason::Cpu(percent) => {
                write!(f, "each worker uses {percent}% of a CPU")
            }
            Reason::Enough(time) => {
                write!(f, "fewer were enough for {} s", time.as_secs())
            }
            Reason::MemoryShort => write!(f, "memory is short"),
        }
    }
}

/// What keeps the pool from growing although the load would need it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Hindrance {
    /// There are `max_workers`.
    Max(u16),
    /// All processors are in use, in percent.
    Cpus(u32),
    /// The memory does not suffice for one more worker.
    Memory(Room),
    /// It has not been measured yet.
    MemoryUnknown,
    /// The pool has shrunk for want of it.
    MemoryWasShort,
}

impl Hindrance {
    fn is_like(&self, other: &Hindrance) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hindrance::Max(most) => write!(f, "max_workers is {most}"),
            Hindrance::Cpus(percent) => write!(f, "the workers use {percent}% of all CPUs"),
            Hindrance::Memory(Room { worker_bytes, free_bytes, .. }) => {
                let (worker, free) = (worker_bytes >> 20, free_bytes >> 20);
                write!(f, "a worker takes {worker} MiB, and {free} MiB are left")
            }
            Hindrance::MemoryUnknown => f.write_str("the memory of the workers has not been measured yet"),
            Hindrance::MemoryWasShort => f.write_str("memory was short a moment ago"),
        }
    }
}

/// What a look at the load comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    Change(Decision),
    /// The log has had no line of it lately.
    Hindered(Hindrance),
}

/// What the load asks for, smoothed.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    /// Requests that workers have or that wait.
    requests: f64,
    /// Processors that they take.
    cpus: f64,
    waited_seconds: f64,
}

impl Demand {
    fn of(load: &Load) -> Demand {
        Demand {
            requests: load.busy + load.queue,
            // What threads of the application's own compute goes on whatever the number of workers.
            cpus: load.cpus.min(load.busy),
            waited_seconds: load.waited.as_secs_f64(),
        }
    }

    fn approach(&mut self, new: Demand, elapsed: Duration, smoothing: Duration) {
        let weight = 1.0 - (-elapsed.as_secs_f64() / smoothing.as_secs_f64()).exp();
        let approach = |old: &mut f64, new: f64| *old += (new - *old) * weight;
        approach(&mut self.requests, new.requests);
        approach(&mut self.cpus, new.cpus);
        approach(&mut self.waited_seconds, new.waited_seconds);
    }

    /// The number of workers of which this would use that share.
    fn workers(&self, threads: u16, share: f64) -> f64 {
        (self.requests / f64::from(threads.max(1))).max(self.cpus) / share
    }
}

/// The size of a pool that follows its load.
#[derive(Debug)]
pub(crate) struct Sizing {
    range: PoolRange,
    last: Load,
    /// The last load has not been looked at.
    is_new: bool,
    /// Up to when the demand is computed.
    seen_at: Instant,
    fast: Demand,
    slow: Demand,
    /// Since when fewer workers would be enough.
    fits_since: Option<Instant>,
    patience: Duration,
    /// Nothing changes before this time.
    rest_until: Instant,
    /// No worker is added before this time.
    no_growth_until: Instant,
    grown_at: Option<Instant>,
    shrunk_at: Option<Instant>,
    decided: Option<(Decision, Instant)>,
    hindered: Option<(Hindrance, Instant)>,
}

impl Sizing {
    pub(crate) fn new(range: PoolRange, now: Instant) -> Sizing {
        Sizing {
            range,
            last: Load::default(),
            is_new: false,
            seen_at: now,
            fast: Demand::default(),
            slow: Demand::default(),
            fits_since: None,
            patience: PATIENCE,
            rest_until: now,
            no_growth_until: now,
            grown_at: None,
            shrunk_at: None,
            decided: None,
            hindered: None,
        }
    }

    pub(crate) fn range(&self) -> &PoolRange {
        &self.range
    }

    /// The last change, and when it was.
    pub(crate) fn decided(&self) -> Option<(Decision, Instant)> {
        self.decided
    }

    /// What keeps it from growing, if something has lately.
    pub(crate) fn hindered(&self, now: Instant) -> Option<Hindrance> {
        self.hindered.filter(|(_, at)| now < *at + HINDRANCE_TIME).map(|(hindrance, _)| hindrance)
    }

    /// The configuration has another range. The size within it.
    pub(crate) fn configure(&mut self, range: PoolRange, size: u16) -> u16 {
        self.range = range;
        self.fits_since = None;
        size.clamp(range.min, range.max)
    }

    /// An operator has ordered this size. It may be outside of the range, which then reaches as far.
    pub(crate) fn ordered(&mut self, size: u16, now: Instant) {
        self.range.min = self.range.min.min(size);
        self.range.max = self.range.max.max(size);
        self.fits_since = None;
        self.rest_until = now + ORDER_TIME;
    }

    /// Forgets what was measured: the set of workers has changed.
    pub(crate) fn begin(&mut self, now: Instant) {
        (self.last, self.is_new, self.seen_at) = (Load::default(), false, now);
        (self.fast, self.slow, self.fits_since) = (Demand::default(), Demand::default(), None);
    }

    /// Takes note of what was measured.
    pub(crate) fn note(&mut self, load: Load, now: Instant) {
        let began = now.checked_sub(load.elapsed).unwrap_or(now);
        self.advance(began.min(now));
        (self.last, self.is_new) = (load, true);
        self.advance(now);
    }

    /// The demand until now: it has gone on as it was last.
    fn advance(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.seen_at);
        self.seen_at = self.seen_at.max(now);
        let demand = Demand::of(&self.last);
        self.fast.approach(demand, elapsed, FAST);
        self.slow.approach(demand, elapsed, SLOW);
    }

    /// The next step, if there is one.
    pub(crate) fn look(&mut self, pool: Pool, now: Instant) -> Option<Outcome> {
        self.advance(now);
        let is_new = std::mem::take(&mut self.is_new);
        if !pool.is_complete {
            self.fits_since = None;
            return None;
        }
        if is_new {
            if let Some(outcome) = self.grow(pool, now) {
                return Some(outcome);
            }
        }
        self.shrink(pool, now).map(Outcome::Change)
    }

    /// Why the pool is too small, if it is.
    fn reason_to_grow(&self, pool: Pool) -> Option<Reason> {
        let percent = |share: f64| (share * 100.0).round() as u32;
        let size = f64::from(pool.size);
        let threads = self.fast.requests / (size * f64::from(pool.threads.max(1)));
        let cpus = self.fast.cpus / size;
        if self.fast.waited_seconds >= LONG_WAIT_SECONDS {
            return Some(Reason::Waiting(Duration::from_secs_f64(self.fast.waited_seconds)));
        }
        if threads > GROW_ABOVE {
            return Some(Reason::Threads(percent(threads)));
        }
        (cpus > GROW_ABOVE).then_some(Reason::Cpu(percent(cpus)))
    }

    fn grow(&mut self, pool: Pool, now: Instant) -> Option<Outcome> {
        let reason = self.reason_to_grow(pool)?;
        if now < self.rest_until {
            return None;
        }
        let more = match self.room_to_grow(pool, now) {
            Ok(most) => {
                let needed = self.fast.workers(pool.threads, AIM).ceil().min(f64::from(u16::MAX)) as u16;
                needed.saturating_sub(pool.size).clamp(1, pool.size).min(most)
            }
            Err(hindrance) => return self.is_hindered(hindrance, now),
        };
        if self.shrunk_at.is_some_and(|at| now < at + REGRET) {
            self.patience = (self.patience * 2).min(LONGEST_PATIENCE);
            self.shrunk_at = None; // one mistake counts once
        }
        self.grown_at = Some(now);
        self.fast.waited_seconds = 0.0; // the new workers are not to blame for earlier waits
        Some(self.decide(pool, pool.size + more, reason, GROWTH_REST, now))
    }

    /// How many more workers there may be, at least one.
    fn room_to_grow(&self, pool: Pool, now: Instant) -> Result<u16, Hindrance> {
        let PoolRange { max, cpus, .. } = self.range;
        if pool.size >= max {
            return Err(Hindrance::Max(max));
        }
        let used = self.fast.cpus / cpus.count;
        if used >= CPUS_IN_USE && f64::from(pool.size) >= cpus.count {
            return Err(Hindrance::Cpus((used * 100.0).round() as u32));
        }
        if now < self.no_growth_until {
            return Err(Hindrance::MemoryWasShort);
        }
        let room = self.last.room.ok_or(Hindrance::MemoryUnknown)?;
        if room.workers == 0 {
            return Err(Hindrance::Memory(room));
        }
        Ok(max.saturating_sub(pool.size).max(1).min(room.workers))
    }

    fn is_hindered(&mut self, hindrance: Hindrance, now: Instant) -> Option<Outcome> {
        let is_known =
            |(known, at): (Hindrance, Instant)| known.is_like(&hindrance) && now < at + HINDRANCE_TIME;
        if self.hindered.is_some_and(is_known) {
            return None;
        }
        self.hindered = Some((hindrance, now));
        Some(Outcome::Hindered(hindrance))
    }

    fn shrink(&mut self, pool: Pool, now: Instant) -> Option<Decision> {
        // At no moment may the smaller pool have had a reason to grow again.
        let steady = self.slow.workers(pool.threads, SHRINK_BELOW);
        let enough = steady.max(self.fast.workers(pool.threads, GROW_ABOVE)).ceil().min(f64::from(u16::MAX));
        let enough = (enough as u16).max(self.range.min);
        if enough >= pool.size || self.reason_to_grow(pool).is_some() {
            self.fits_since = None;
            return None;
        }
        let since = *self.fits_since.get_or_insert(now);
        if now < (since + self.patience).max(self.rest_until) {
            return None;
        }
        if self.grown_at.is_none_or(|at| at + FORGIVENESS <= now) {
            self.patience = PATIENCE;
        }
        let to = enough.max(pool.size - (pool.size / STEP_DOWN).max(1));
        self.shrunk_at = Some(now);
        match self.decide(pool, to, Reason::Enough(now - since), SHRINK_REST, now) {
            Outcome::Change(decision) => Some(decision),
            Outcome::Hindered(_) => None,
        }
    }

    /// A limit of memory is exceeded, and new workers would not change that: one fewer, if there may be.
    pub(crate) fn give_memory_back(&mut self, pool: Pool, now: Instant) -> Option<Decision> {
        if pool.size <= self.range.min || !pool.is_complete || now < self.rest_until {
            return None;
        }
        self.no_growth_until = now + MEMORY_REST;
        match self.decide(pool, pool.size - 1, Reason::MemoryShort, SHRINK_REST, now) {
            Outcome::Change(decision) => Some(decision),
            Outcome::Hindered(_) => None,
        }
    }

    /// Whether fewer workers would be a remedy for want of memory.
    pub(crate) fn may_shrink(&self, size: u16) -> bool {
        size > self.range.min
    }

    fn decide(&mut self, pool: Pool, to: u16, reason: Reason, rest: Duration, now: Instant) -> Outcome {
        let decision = Decision { from: pool.size, to, reason };
        self.rest_until = now + rest;
        self.hindered = None;
        self.decided = Some((decision, now));
        Outcome::Change(decision)
    }

    /// When to look again, if nothing is reported.
    pub(crate) fn due(&self, pool: Pool) -> Option<Instant> {
        if !pool.is_complete || pool.size <= self.range.min {
            return None;
        }
        let due = self.fits_since.map(|since| (since + self.patience).max(self.rest_until));
        Some(due.unwrap_or(self.seen_at + SILENCE))
    }
}

#[cfg(test)]
mod tests;
