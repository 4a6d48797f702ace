//! How many requests the worker may have begun at a time: its *places*. Each is a serving thread.
//!
//! The worker alone changes their number, between the two numbers of the [`Geometry`](crate::Geometry), and the front goes by
//! what it reads. A place is published after its thread has been started, and withdrawn before its thread ends, so there is
//! always a thread for each place that the front counts on.
//!
//! The front says whether it wants another place: requests wait, and every place is taken. The worker's tending thread, which
//! sleeps until then, finds out whether one more thread would help.

use crate::sync::{fence, AtomicU32, Ordering};

/// What keeps a worker from having more places, as it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeptBy {
    /// Nothing: it would get one if requests waited.
    #[default]
    Nothing,
    /// Its threads compute, so another would only wait for the GVL.
    Computing,
    /// A connection pool of the application has no more connections than that.
    Pool,
    /// Its threads wait for a connection of a pool.
    PoolWait,
    /// The system refuses to start a thread.
    System,
}

impl KeptBy {
    const ALL: [KeptBy; 5] =
        [KeptBy::Nothing, KeptBy::Computing, KeptBy::Pool, KeptBy::PoolWait, KeptBy::System];

    /// By its number; an unknown one is nothing.
    pub fn of(number: u32) -> KeptBy {
        KeptBy::ALL.get(number as usize).copied().unwrap_or_default()
    }
}

/// The words of the places.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Their number.
    pub number: &'a AtomicU32,
    /// What keeps it from growing.
    pub kept_by: &'a AtomicU32,
    /// Whether the front wants another one.
    pub wanted: &'a AtomicU32,
    /// The futex word that the tending thread sleeps on; any change of it ends its sleep.
    pub bell: &'a AtomicU32,
    /// Whether the tending thread is about to sleep or sleeps.
    pub asleep: &'a AtomicU32,
}

impl Places<'_> {
    /// Front: wants another place from now on. `true`: the tending thread must be woken by futex.
    pub fn want(self) -> bool {
        self.wanted.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.bell.fetch_add(1, Ordering::Release);
        true
    }

    /// Front: wants none any more.
    pub fn want_none(self) {
        self.wanted.store(0, Ordering::Relaxed);
    }

    /// Worker: whether the front wants another place.
    pub fn are_wanted(self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Tending thread: announces that it is about to sleep, and returns the value to sleep on. Look whether places are wanted
    /// after this; then sleep while the bell has that value, then [`Places::retract`].
    pub fn announce(self) -> u32 {
        let seen = self.bell.load(Ordering::Acquire);
        self.asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        seen
    }

    /// Tending thread: it is awake again.
    pub fn retract(self) {
        self.asleep.store(0, Ordering::Relaxed);
    }

    /// Any thread of the worker: ends the sleep of the tending thread.
    pub fn interrupt(self) {
        self.bell.fetch_add(1, Ordering::Release);
    }
}
