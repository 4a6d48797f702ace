//! How old the requests of this worker are: an old one is sampled, so that a slow one can say where its time went
//! (`lib/highball/slow_requests.rb`).
//!
//! A fast request pays for two stores and two comparisons, and is not looked at. The thread that samples sleeps without the
//! GVL until a request is old, and for good while none comes. When it wakes, it reads the clocks of the threads before it asks
//! for the GVL: a thread that does not let the others run is known by the time that it computes from there on.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{
    fence, AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst,
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use magnus::Error;
use rustix::process::Pid;
use rustix::time::ClockId;

use crate::clock::{cpu_ns, microseconds, nanoseconds};
use crate::nogvl;
use crate::request_clock::delayed_us;
use crate::turns::Wait;

/// Age from which a request is old.
const OLD_US: u64 = 200_000;
/// Time between two looks while requests come.
const LOOK: Duration = Duration::from_micros(OLD_US);
/// Looks that find no request, before the thread sleeps until one comes.
const IDLE_LOOKS: u32 = 10;
/// In the time at which a request began: it is watched.
const WATCHED: u64 = 1 << 63;

/// The request in a slot.
#[derive(Debug, Default)]
struct Age {
    /// When it began, by CLOCK_MONOTONIC in microseconds, with [`WATCHED`]; 0: there is none. Changed with the GVL held.
    began_us: AtomicU64,
    /// The kernel's number of its thread.
    thread: AtomicI32,
    /// CPU time of this thread when the GVL was asked for; 0: not known.
    cpu_ns: AtomicU64,
    /// How long it had waited for a CPU by then.
    delayed_us: AtomicU64,
}

/// The requests of a worker. Used with the GVL held, but for what says otherwise.
#[derive(Debug)]
pub(crate) struct Ages {
    slots: Box<[Age]>,
    /// Requests that run on fibers. They are not in slots, and looked at with the GVL.
    on_fibers: AtomicU32,
    /// Watched requests that have ended, and when.
    ended: RefCell<Vec<(u64, u64)>>,
    /// Whether the sampling thread sleeps until a request comes.
    is_idle: AtomicBool,
    woken: Mutex<Woken>,
    changed: Condvar,
    /// What has threads that compute yield to the sampling thread, while it does not sleep.
    turn: RefCell<Option<Wait>>,
    asked_us: AtomicU64,
    process_cpu_ns: AtomicU64,
}

/// Why the sampling thread wakes before its time.
#[derive(Debug, Default)]
struct Woken {
    /// A request has come.
    looks: bool,
    /// A watched request has ended, the worker stops, or Ruby wants the thread to look at interrupts.
    returns: bool,
}

/// A request that has become old, with the clocks when the GVL was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Old {
    pub(crate) slot: usize,
    pub(crate) began_us: u64,
    pub(crate) asked_us: u64,
    /// CPU time of its thread; 0: not known.
    pub(crate) cpu_ns: u64,
    pub(crate) process_cpu_ns: u64,
    /// How long its thread has waited for a CPU.
    pub(crate) delayed_us: u64,
}

impl Ages {
    pub(crate) fn new(slots: u32) -> Self {
        Ages {
            slots: (0..slots).map(|_| Age::default()).collect(),
            on_fibers: AtomicU32::new(0),
            ended: RefCell::default(),
            is_idle: AtomicBool::new(false),
            woken: Mutex::default(),
            changed: Condvar::new(),
            turn: RefCell::default(),
            asked_us: AtomicU64::new(0),
            process_cpu_ns: AtomicU64::new(0),
        }
    }

    /// The thread with this number begins a request.
    pub(crate) fn begin(&self, slot: usize, now_us: u64, thread: i32) {
        let age = &self.slots[slot];
        age.thread.store(thread, Relaxed);
        age.began_us.store(now_us, Relaxed);
        if self.is_idle.load(Relaxed) {
            self.is_idle.store(false, Relaxed);
            self.wake(|woken| woken.looks = true);
        }
    }

    /// The request in this slot has ended.
    pub(crate) fn end(&self, slot: usize, ticket: u64) {
        let began_us = &self.slots[slot].began_us;
        let was_watched = began_us.load(Relaxed) & WATCHED != 0;
        began_us.store(0, Relaxed);
        if was_watched {
            self.ended.borrow_mut().push((ticket, microseconds(ClockId::Monotonic)));
            self.stop_waiting();
        }
    }

    /// This number of requests runs on fibers.
    pub(crate) fn set_on_fibers(&self, requests: u32) {
        self.on_fibers.store(requests, Relaxed);
        if requests > 0 && self.is_idle.load(Relaxed) {
            self.is_idle.store(false, Relaxed);
            self.wake(|woken| woken.looks = true);
        }
    }

    /// Watched requests that have ended since this was asked last, and when.
    pub(crate) fn take_ended(&self) -> Vec<(u64, u64)> {
        self.ended.take()
    }

    /// Requests that have become old. They are watched from now on.
    pub(crate) fn take_old(&self) -> Vec<Old> {
        let (asked_us, process_cpu_ns) = (self.asked_us.load(Relaxed), self.process_cpu_ns.load(Relaxed));
        let began = self.began().enumerate().filter(|(_, began_us)| is_old(*began_us, asked_us));
        let watch = |(slot, began_us): (usize, u64)| {
            self.slots[slot].began_us.store(began_us | WATCHED, Relaxed);
            let cpu_ns = self.slots[slot].cpu_ns.load(Relaxed);
            let delayed_us = self.slots[slot].delayed_us.load(Relaxed);
            Old { slot, began_us, asked_us, cpu_ns, process_cpu_ns, delayed_us }
        };
        began.map(watch).collect()
    }

    /// Waits until a request is old that is not watched yet, until a watched one has ended, or for `pause`.
    ///
    /// Until [`Ages::rest`], threads that compute are then asked to yield, if turns are watched: in Ruby 3.3 a time slice ends
    /// only when its thread has looked for interrupts ten times, and native code that rarely looks would keep the GVL for
    /// seconds.
    ///
    /// # Errors
    /// What an interrupt raised.
    pub(crate) fn wait(&self, pause: Option<Duration>, has_turns: bool) -> Result<(), Error> {
        let until = pause.map(|pause| Instant::now() + pause);
        let for_turn = Cell::new(None);
        let wait = || {
            self.sleep(until);
            self.note_clocks();
            for_turn.set(has_turns.then(Wait::begin));
        };
        let waited = nogvl::without_gvl(&wait, &|| self.stop_waiting());
        self.turn.replace(for_turn.take());
        waited
    }

    /// The sampling thread, which calls this, needs the GVL no more.
    pub(crate) fn rest(&self) {
        self.turn.take();
    }

    /// The thread that waits goes on.
    pub(crate) fn stop_waiting(&self) {
        self.wake(|woken| woken.returns = true);
    }

    /// Without the GVL.
    fn sleep(&self, until: Option<Instant>) {
        let mut idle_looks = 0;
        loop {
            let (now_us, now) = (microseconds(ClockId::Monotonic), Instant::now());
            let oldest = self.began().filter(|began_us| is_unwatched(*began_us)).min();
            let old_at_us = oldest.map(|began_us| began_us + OLD_US);
            if old_at_us.is_some_and(|at_us| at_us <= now_us) || until.is_some_and(|until| until <= now) {
                return;
            }
            let has_fibers = self.on_fibers.load(Relaxed) > 0;
            let has_slept = idle_looks > IDLE_LOOKS && !self.is_idle.load(Relaxed);
            let is_busy = oldest.is_some() || has_fibers || has_slept;
            idle_looks = if is_busy { 0 } else { idle_looks + 1 };
            let until_old = old_at_us.map(|at_us| Duration::from_micros(at_us - now_us));
            let until_end = until.map(|until| until - now);
            let is_idle = idle_looks > IDLE_LOOKS;
            let longest = (!is_idle).then_some(LOOK);
            if idle_looks == IDLE_LOOKS {
                // The next look finds a request that has not seen this.
                self.is_idle.store(true, SeqCst);
                fence(SeqCst);
            }
            let time = [until_old, until_end, longest].into_iter().flatten().min();
            if self.wait_for(time) || (has_fibers && until.is_none()) {
                return;
            }
        }
    }

    /// Waits for this time. `true`: the thread is to go on.
    fn wait_for(&self, time: Option<Duration>) -> bool {
        let waits = |woken: &mut Woken| !(woken.looks || woken.returns);
        let woken = lock(&self.woken);
        let mut woken = match time {
            Some(time) => {
                let waited = self.changed.wait_timeout_while(woken, time, waits);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait_while(woken, waits).unwrap_or_else(PoisonError::into_inner),
        };
        woken.looks = false;
        std::mem::take(&mut woken.returns)
    }

    /// The clocks of this moment, before the GVL is waited for.
    fn note_clocks(&self) {
        let now_us = microseconds(ClockId::Monotonic);
        for age in self.slots.iter().filter(|age| is_old(age.began_us.load(Relaxed), now_us)) {
            let thread = age.thread.load(Relaxed);
            age.cpu_ns.store(cpu_ns(thread).unwrap_or(0), Relaxed);
            age.delayed_us.store(Pid::from_raw(thread).map_or(0, delayed_us), Relaxed);
        }
        self.process_cpu_ns.store(nanoseconds(ClockId::ProcessCPUTime), Relaxed);
        self.asked_us.store(now_us, Relaxed);
    }

    fn began(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().map(|age| age.began_us.load(Relaxed))
    }

    fn wake(&self, change: impl FnOnce(&mut Woken)) {
        change(&mut lock(&self.woken));
        self.changed.notify_all();
    }
}

/// Whether there is a request, which is not watched yet.
fn is_unwatched(began_us: u64) -> bool {
    began_us != 0 && began_us & WATCHED == 0
}

/// Whether it is old at this time.
fn is_old(began_us: u64, now_us: u64) -> bool {
    is_unwatched(began_us) && began_us + OLD_US <= now_us
}

fn lock(woken: &Mutex<Woken>) -> MutexGuard<'_, Woken> {
    woken.lock().unwrap_or_else(PoisonError::into_inner)
}
