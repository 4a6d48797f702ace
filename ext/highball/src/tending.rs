//! How many threads serve: the work of the thread that tends a worker's places.
//!
//! The front says that requests wait for another place. One more thread helps them only if the others wait for something else
//! than the GVL. That is looked at here, from a thread that is none of them: in two short windows of time the process takes hardly
//! any processor time, and then the GVL is free. Each alone would not do. A worker whose requests compute has moments in which the
//! GVL is free, such as while it writes a line of its log; and a thread that has the GVL may wait for a processor, or for a page
//! of its memory, and takes no processor time meanwhile.
//!
//! If they compute, it looks again later and later, up to ten times a second: so this costs a worker that computes nothing to speak
//! of. A thread is started at once if all wait, so a burst of requests gets one thread after the other within some milliseconds
//! each.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use highball_ring::{KeptBy, WorkerRing};
use magnus::Error;
use rustix::time::ClockId;

use crate::clock::microseconds;
use crate::nogvl;

/// How long the processor time is looked at, and how often in a row.
const WINDOW: Duration = Duration::from_millis(1);
const WINDOWS: u32 = 2;
/// A window that took less or more time says nothing: it was ended by a signal, or this thread waited for a processor.
const WINDOW_US: RangeInclusive<u64> = 900..=4000;
/// The part of a window that threads which wait may take for themselves.
const PART: u64 = 4;
/// A thread that has the GVL after this time has found it free.
const FREE: Duration = Duration::from_millis(1);
/// The pause after a look in vain, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const MOST_PAUSE: Duration = Duration::from_millis(100);

/// How often idle threads are looked for.
const LOOK: Duration = Duration::from_secs(3);
/// Looks in a row that have to find some, before any end.
const IDLE_LOOKS: u32 = 5;
/// Looks in a row at which a worker with threads beyond its least number has computed all the time, before any end.
const BUSY_LOOKS: u32 = 2;
/// The part of the time that counts as all of it, in percent.
const BUSY_PERCENT: u64 = 90;

/// What is known of the places. Used with the GVL held, but for [`Tending::watch`].
#[derive(Debug)]
pub(crate) struct Tending {
    pause: Cell<Duration>,
    refused_at: Cell<Option<Instant>>,
    /// Threads that have no place any more, and have not ended yet.
    surplus: Cell<u32>,
    /// The most requests at a time since the last look.
    peak: Cell<u32>,
    last: Cell<Looked>,
}

/// What the looks have found.
#[derive(Debug, Clone, Copy)]
struct Looked {
    at: Instant,
    cpu_us: u64,
    /// Looks in a row that have found idle threads, and the most requests at a time in all of them.
    idle: u32,
    most: u32,
    /// Looks in a row at which it computed.
    busy: u32,
}

impl Default for Tending {
    fn default() -> Self {
        Tending {
            pause: Cell::default(),
            refused_at: Cell::default(),
            surplus: Cell::default(),
            peak: Cell::default(),
            last: Cell::new(Looked { at: Instant::now(), cpu_us: process_us(), idle: 0, most: 0, busy: 0 }),
        }
    }
}

impl Tending {
    /// This number of requests is being served.
    pub(crate) fn note_serving(&self, serving: u32) {
        if serving > self.peak.get() {
            self.peak.set(serving);
        }
    }

    /// Whether the calling thread has no place any more: it ends.
    pub(crate) fn ends_thread(&self) -> bool {
        self.take_back()
    }

    /// A thread that was to end may stay. `false`: there is none.
    pub(crate) fn take_back(&self) -> bool {
        let surplus = self.surplus.get();
        self.surplus.set(surplus.saturating_sub(1));
        surplus > 0
    }

    /// What has kept the worker from getting another place, if anything did: then it is looked again a little later.
    pub(crate) fn keep(&self, ring: &WorkerRing, by: KeptBy) {
        ring.set_kept_by(by);
        if by == KeptBy::Nothing {
            self.pause.set(Duration::ZERO);
        } else {
            self.pause.set((self.pause.get() * 2).clamp(FIRST_PAUSE, MOST_PAUSE));
            self.refused_at.set(Some(Instant::now()));
        }
    }

    /// Waits, with the GVL released, until there may be something to do. `true`: requests wait, and one more thread helps them.
    ///
    /// # Errors
    /// What an interrupt raised in this thread.
    pub(crate) fn wait(&self, ring: &WorkerRing) -> Result<bool, Error> {
        let calm_at = Cell::new(None);
        let pause =
            self.refused_at.get().filter(|at| at.elapsed() < 2 * MOST_PAUSE).map(|_| self.pause.get());
        let timeout = (ring.places() > ring.geometry().least_threads).then_some(LOOK);
        // While the GVL is held: whatever stops the ring or interrupts this thread from now on, also before it sleeps, changes
        // the bell.
        let announced = ring.announce_tending_sleep();
        let bell = announced.unwrap_or_else(|| ring.tending_bell());
        let wait = || match announced {
            Some(seen) => ring.sleep_tending(seen, timeout),
            None => calm_at.set(watch(ring, bell, pause.unwrap_or_default()).then(Instant::now)),
        };
        let waited = nogvl::without_gvl(&wait, &|| ring.interrupt_tending());
        if announced.is_some() {
            ring.awake_tending();
        }
        waited?;
        if announced.is_some() || !ring.is_place_wanted() {
            return Ok(false);
        }
        let is_free = calm_at.get().is_some_and(|at: Instant| at.elapsed() < FREE);
        if !is_free {
            self.keep(ring, KeptBy::Computing);
        }
        Ok(is_free)
    }

    /// Withdraws the places of threads that have been idle for a while, or that only take turns. `serving`: requests that are
    /// being served.
    pub(crate) fn look(&self, ring: &WorkerRing, serving: u32) {
        let (places, least) = (ring.places(), ring.geometry().least_threads);
        let before = self.last.get();
        let elapsed = before.at.elapsed();
        if elapsed < LOOK {
            return;
        }
        let cpu_us = process_us();
        let percent = cpu_us.saturating_sub(before.cpu_us) * 100 / (elapsed.as_micros() as u64).max(1);
        let most = before.most.max(self.peak.replace(serving));
        let (is_idle, is_busy) = (most < places, percent >= BUSY_PERCENT);
        let mut now = Looked {
            at: Instant::now(),
            cpu_us,
            idle: if is_idle { before.idle + 1 } else { 0 },
            most: if is_idle { most } else { 0 },
            busy: if is_busy { before.busy + 1 } else { 0 },
        };
        let enough = if now.busy >= BUSY_LOOKS {
            least
        } else if now.idle >= IDLE_LOOKS {
            (now.idle, now.most) = (IDLE_LOOKS - 1, serving);
            most.max(least)
        } else {
            places
        };
        self.last.set(now);
        let fewer = places.saturating_sub(enough).div_ceil(2);
        if fewer > 0 {
            // First the places, so that the front counts on none whose thread ends.
            ring.set_places(places - fewer);
            self.surplus.set(self.surplus.get() + fewer);
            ring.interrupt();
        }
    }
}

/// Whether threads of this process hardly compute, after this pause. It ends early once the bell is no longer what was `seen`.
fn watch(ring: &WorkerRing, seen: u32, pause: Duration) -> bool {
    if !pause.is_zero() {
        ring.sleep_tending(seen, Some(pause));
    }
    (0..WINDOWS).all(|_| {
        let began_us = (microseconds(ClockId::Monotonic), process_us());
        ring.sleep_tending(seen, Some(WINDOW));
        let elapsed_us = microseconds(ClockId::Monotonic) - began_us.0;
        let used_us = process_us().saturating_sub(began_us.1);
        ring.tending_bell() == seen && WINDOW_US.contains(&elapsed_us) && used_us * PART < elapsed_us
    })
}

fn process_us() -> u64 {
    microseconds(ClockId::ProcessCPUTime)
}
