//! The front's clocks and deadlines, and what is done only once in a while.
//!
//! A timer per request would cost more than the request. So each connection has one [`Deadline`], which a ticker
//! looks at a few times a second; deadlines are late by up to [`TICK`]. [`spread`] spreads moments over a time.

pub(crate) mod spread;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{clock_gettime, ClockId};

/// How often deadlines are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(100);

thread_local! {
    /// When this turn of the event loop was begun, in microseconds; 0 on a thread without turns.
    static TURN_US: Cell<u64> = const { Cell::new(0) };
}

/// A turn of the event loop begins, or has taken long: for [`turn_us`] and [`now_ms`], time goes on.
pub(crate) fn look() {
    TURN_US.set(now_us());
}

/// Microseconds of CLOCK_MONOTONIC: on the event loop, at the last [`look`]. What a turn reads from a socket had come by
/// then, or a little later.
pub(crate) fn turn_us() -> u64 {
    match TURN_US.get() {
        0 => now_us(),
        us => us,
    }
}

/// Milliseconds of a clock that only goes forward, the clock of [`turn_us`].
pub(crate) fn now_ms() -> u64 {
    turn_us() / 1000
}

/// Microseconds of CLOCK_MONOTONIC.
#[inline(never)]
pub(crate) fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// The time since 1970, by the machine's calendar clock.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Something that is done only once in a while, however often there is a reason to: a line in the log, above all.
#[derive(Debug, Default)]
pub struct Seldom {
    next_ms: AtomicU64,
}

impl Seldom {
    /// It is due.
    pub const fn new() -> Seldom {
        Seldom { next_ms: AtomicU64::new(0) }
    }

    /// Whether it is to be done now; if so, not again for this number of milliseconds. (Two threads that ask at the same
    /// moment may both do it.)
    pub fn is_due(&self, every_ms: u64) -> bool {
        let now = now_ms();
        let is_due = now >= self.next_ms.load(Relaxed);
        if is_due {
            self.next_ms.store(now + every_ms, Relaxed);
        }
        is_due
    }

    /// It is due, whenever it was done last.
    pub(crate) fn forget(&self) {
        self.next_ms.store(0, Relaxed);
    }
}

/// What is counted, and logged only once in a while: each line has the number since the last one.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    logged: Seldom,
    count: Cell<u64>,
}

impl Tally {
    /// Counts one more. The number since the last line, if a line is due, and none was for this number of milliseconds.
    pub(crate) fn note(&self, every_ms: u64) -> Option<u64> {
        self.count.set(self.count.get() + 1);
        self.logged.is_due(every_ms).then(|| self.count.take())
    }
}

/// The idle connections that are found in one look at all of them.
const FOUND_AT_ONCE: usize = 64;

/// Whether a connection has something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It has a request, or a part of one.
    Busy,
    /// It waits for a request, until its deadline.
    Idle,
    /// It was idle, and another has its place: it ends, unless a request is there already.
    Dismissed,
}

/// One connection's deadline.
#[derive(Debug)]
pub(crate) struct Deadline {
    at_ms: Cell<u64>,
    /// What the connection does until then.
    pub(crate) now: Cell<Use>,
    /// Whether the task was woken for it.
    fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Deadline {
    const NEVER: u64 = u64::MAX;

    /// From now on, `after` from now; `None`: never.
    pub(crate) fn set(&self, after: Option<Duration>) {
        self.put_back(after.map_or(Self::NEVER, |after| now_ms().saturating_add(after.as_millis() as u64)));
    }

    /// From now on no later than `after` from now.
    pub(crate) fn at_most(&self, after: Duration) {
        let at_ms = now_ms().saturating_add(after.as_millis() as u64);
        if at_ms < self.at_ms.get() {
            self.put_back(at_ms);
        }
    }

    /// What it is, for [`Deadline::put_back`].
    pub(crate) fn at_ms(&self) -> u64 {
        self.at_ms.get()
    }

    /// It is again what it was.
    pub(crate) fn put_back(&self, at_ms: u64) {
        self.at_ms.set(at_ms);
        self.fired.set(false);
    }

    /// Whether it has passed. If not, the task is woken when it does.
    pub(crate) fn has_passed(&self, context: &Context<'_>) -> bool {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        self.at_ms.get() != Self::NEVER && self.at_ms.get() <= now_ms()
    }

    /// Wakes the task, so that it looks around.
    pub(crate) fn nudge(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// The deadlines of all connections.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    all: RefCell<BTreeMap<u64, Rc<Deadline>>>,
    next: Cell<u64>,
    /// Connections that were idle at the last look, and their deadlines then; the one with the first deadline is the last.
    idle: RefCell<Vec<(u64, u64)>>,
}

impl Deadlines {
    /// A deadline for a new connection, under a key for [`Deadlines::remove`].
    pub(crate) fn add(&self) -> (u64, Rc<Deadline>) {
        let key = self.next.get();
        self.next.set(key + 1);
        let deadline = Rc::new(Deadline {
            at_ms: Cell::new(Deadline::NEVER),
            now: Cell::new(Use::Busy),
            fired: Cell::new(false),
            waker: RefCell::new(None),
        });
        self.all.borrow_mut().insert(key, Rc::clone(&deadline));
        (key, deadline)
    }

    /// The connection has ended.
    pub(crate) fn remove(&self, key: u64) {
        self.all.borrow_mut().remove(&key);
    }

    /// The connection that has been idle for the longest time: its deadline is the first. Costs a look at all connections,
    /// but only every [`FOUND_AT_ONCE`] times, and nothing for connections that become idle.
    pub(crate) fn longest_idle(&self) -> Option<Rc<Deadline>> {
        let all = self.all.borrow();
        let mut idle = self.idle.borrow_mut();
        let next_idle = |idle: &mut Vec<(u64, u64)>| loop {
            let (key, at_ms) = idle.pop()?;
            // It may have ended since, or served a request: then its deadline is another.
            let is_idle = |one: &&Rc<Deadline>| one.now.get() == Use::Idle && one.at_ms.get() == at_ms;
            if let Some(found) = all.get(&key).filter(is_idle) {
                return Some(Rc::clone(found));
            }
        };
        next_idle(&mut idle).or_else(|| {
            let is_idle = all.iter().filter(|(_, one)| one.now.get() == Use::Idle);
            *idle = is_idle.map(|(key, one)| (*key, one.at_ms.get())).collect();
            if idle.len() > FOUND_AT_ONCE {
                idle.select_nth_unstable_by_key(FOUND_AT_ONCE, |(key, at_ms)| (*at_ms, *key));
                idle.truncate(FOUND_AT_ONCE);
                idle.shrink_to_fit();
            }
            idle.sort_unstable_by_key(|(key, at_ms)| Reverse((*at_ms, *key)));
            next_idle(&mut idle)
        })
    }

    /// Wakes the connections whose deadlines have passed; each once, as not all of them are waited for.
    pub(crate) fn tick(&self) {
        let now = now_ms();
        for deadline in self.all.borrow().values() {
            if deadline.at_ms.get() <= now && !deadline.fired.replace(true) {
                deadline.nudge();
            }
        }
    }

    /// Wakes all connections.
    pub(crate) fn nudge_all(&self) {
        self.all.borrow().values().for_each(|deadline| deadline.nudge());
    }
}
