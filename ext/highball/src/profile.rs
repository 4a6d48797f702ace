//! `Native.profile`: samples of what the threads of this worker do, for some seconds, for `highball profile`.
//!
//! In reading order: this file (the life of a profile), [`sampling`] (one sample), [`stacks`] (where a thread is),
//! [`recording`] (what is kept: names, and a tree of calls with weights), [`clocks`] (CPU time of threads),
//! [`events`] (allocations), [`gvl`] (threads that wait for the GVL).
//!
//! A native thread asks the Ruby thread that runs, at each *tick*, to take the sample where it looks for interrupts. If no
//! thread has done so by the next tick, because all wait or because native code holds the GVL, a Ruby thread of Highball
//! takes it as soon as it has the GVL. So a sample is always taken at a point where Ruby allows everything. No signal is
//! sent, and no system call of the application is interrupted.
//!
//! (It takes a native thread: before Ruby 3.3, what a Ruby thread asks for, it is asked itself.)
#![allow(unsafe_code)]

mod clocks;
mod events;
#[cfg(ruby_gte_3_2)]
mod gvl;
#[cfg(not(ruby_gte_3_2))]
#[path = "profile/gvl_before_ruby32.rs"]
mod gvl;
mod recording;
mod sampling;
mod stacks;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{FromRawFd, RawFd};
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnus::typed_data::Obj;
use magnus::{function, prelude::*, Error, RModule, Ruby};
use rb_sys::VALUE;
use rustix::thread::gettid;

use crate::own_process::OwnProcess;
use crate::ring::Ring;
use crate::turns::asking::Call;
use crate::{nogvl, signals};
use clocks::now_ns;
use events::{Allocations, Tracepoint};
use gvl::GvlWatch;
use recording::Recording;
use sampling::{Known, Tick};

/// Time between two ticks.
const INTERVAL: Duration = Duration::from_millis(10);
/// Its name is known to `lib/highball/fork_safety.rb`.
const NAME: &str = "highball-ticks";
/// The longest profile.
const LONGEST: Duration = Duration::from_secs(600);

/// The profile that runs, if one does. Changed with the GVL held.
static CURRENT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Threads that compute.
    Cpu,
    /// All threads except idle ones.
    Wall,
    /// Threads that wait for the GVL.
    Gvl,
    /// Threads that allocate objects.
    Allocations,
}

impl Mode {
    fn named(name: &str) -> Option<Mode> {
        Some(match name {
            "cpu" => Mode::Cpu,
            "wall" => Mode::Wall,
            "gvl" => Mode::Gvl,
            "allocations" => Mode::Allocations,
            _ => return None,
        })
    }
}

/// A profile that runs. Used with the GVL held, but for what says otherwise.
struct Session {
    mode: Mode,
    /// The kernel's number of Highball's thread.
    sampler: i32,
    /// Threads of Highball that only wait.
    own: Vec<i32>,
    /// If samples are grouped by path: where to learn which request a thread is at.
    ring: Option<Obj<Ring>>,
    process: OwnProcess,
    recording: RefCell<Recording>,
    /// The frames of backtraces.
    #[cfg(not(ruby_gte_3_3))]
    places: RefCell<HashMap<stacks::PlaceKey, u32>>,
    /// Objects that Ruby must not free or move.
    pinned: RefCell<Vec<VALUE>>,
    allocations: Allocations,
    /// Threads as they were at the last sample, by the kernel's numbers.
    known: RefCell<HashMap<i32, Known>>,
    last_ns: Cell<u64>,
    is_sampling: Cell<bool>,
    ticks: Arc<Ticks>,
}

/// What is used without the GVL.
#[derive(Debug)]
struct Ticks {
    ends_ns: u64,
    /// The tick whose sample has not been taken.
    pending: Mutex<Option<Tick>>,
    /// The threads whose clocks are read at ticks.
    threads: Mutex<Vec<i32>>,
    state: Mutex<Woken>,
    changed: Condvar,
    call: Option<Call>,
}

/// Why the threads of a profile wake before their time.
#[derive(Debug, Default, Clone, Copy)]
struct Woken {
    /// Ruby wants its thread to look at interrupts.
    is_interrupted: bool,
    /// No thread has taken the sample of the last tick.
    is_late: bool,
    /// The profile ends now.
    has_ended: bool,
}

/// Defines the methods.
pub(crate) fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    stacks::define_pins(ruby, native)?;
    native.define_singleton_method("profile", function!(profile, 5))?;
    native.define_singleton_method("end_profile", function!(end_profile, 0))
}

/// `Native.profile(mode, milliseconds, ring, own, fd) -> nil`: samples all threads of this process for this time, on a
/// separate thread, and writes the result into the file behind the descriptor (PROTOCOL.md of the supervisor). `ring`: samples are
/// grouped by the paths of its requests, unless it is nil. `own`: the kernel's numbers of threads that only wait.
fn profile(
    ruby: &Ruby,
    mode: String,
    milliseconds: u64,
    ring: Option<Obj<Ring>>,
    own: Vec<Option<i32>>,
    descriptor: RawFd,
) -> Result<(), Error> {
    let refused = |why: String| Error::new(ruby.exception_runtime_error(), why);
    let mode = Mode::named(&mode).ok_or_else(|| refused(format!("{mode} is no mode of profiles")))?;
    if !CURRENT.load(SeqCst).is_null() {
        return Err(refused("a profile of this worker is running already".into()));
    }
    let own = own.into_iter().flatten().collect();
    let time = Duration::from_millis(milliseconds).min(LONGEST);
    let session = Session::new(mode, time, ring, own).map_err(|error| refused(error.to_string()))?;
    // SAFETY: the caller's File stays open until this returns; it is not closed here.
    let file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    let sampled = session.run(ruby);
    session.recording.borrow_mut().note_left_out(session.allocations.missed());
    let written = session.recording.borrow().write(&file);
    sampled?;
    written.map_err(|error| refused(format!("the result cannot be written: {error}")))
}

/// `Native.end_profile -> nil`: the profile ends now, if one runs.
fn end_profile() {
    if let Some(session) = current() {
        session.ticks.wake(|woken| woken.has_ended = true);
    }
}

/// The profile of this process. With the GVL held, and used only until Ruby code can run.
fn current() -> Option<&'static Session> {
    // SAFETY: it is there until `run` has ended, which changes this with the GVL held, as the caller has it.
    unsafe { CURRENT.load(SeqCst).as_ref() }.filter(|session| session.process.is_here())
}

impl Session {
    fn new(mode: Mode, time: Duration, ring: Option<Obj<Ring>>, own: Vec<i32>) -> std::io::Result<Session> {
        let now_ns = now_ns();
        Ok(Session {
            mode,
            sampler: gettid().as_raw_nonzero().get(),
            own,
            ring,
            process: OwnProcess::mark()?,
            recording: RefCell::new(Recording::new()),
            #[cfg(not(ruby_gte_3_3))]
            places: RefCell::default(),
            pinned: RefCell::default(),
            allocations: Allocations::new(mode == Mode::Allocations),
            known: RefCell::default(),
            last_ns: Cell::new(now_ns),
            is_sampling: Cell::new(false),
            ticks: Arc::new(Ticks {
                ends_ns: now_ns + time.as_nanos() as u64,
                pending: Mutex::default(),
                threads: Mutex::default(),
                state: Mutex::default(),
                changed: Condvar::default(),
                call: Call::prepare(take_sample),
            }),
        })
    }

    /// Takes samples until the time is over. Whatever ends it, nothing of it goes on.
    fn run(&self, ruby: &Ruby) -> Result<(), Error> {
        let _gvl = if self.mode == Mode::Gvl { Some(GvlWatch::begin(ruby)?) } else { None };
        CURRENT.store(std::ptr::from_ref(self).cast_mut(), SeqCst);
        let traced = (self.mode == Mode::Allocations).then(Tracepoint::begin).transpose();
        let sampled = traced.and_then(|tracepoint| {
            let sampled = self.take_samples(ruby);
            tracepoint.map_or(Ok(()), Tracepoint::end).and(sampled)
        });
        self.drain_allocations();
        // Another thread may be in the middle of a sample, if the application has changed methods that are called there.
        while self.is_sampling.get() && nogvl::yield_gvl().is_ok() {}
        CURRENT.store(std::ptr::null_mut(), SeqCst);
        sampled
    }

    fn take_samples(&self, ruby: &Ruby) -> Result<(), Error> {
        self.sample_now(); // so that the clocks of all threads are known
        let ticks = Arc::clone(&self.ticks);
        let is_ticking = self.mode != Mode::Allocations;
        let thread = std::thread::Builder::new().name(NAME.into()).stack_size(64 * 1024);
        let thread = is_ticking.then(|| thread.spawn(move || ticks.tick())).transpose();
        let refused =
            |error| Error::new(ruby.exception_runtime_error(), format!("cannot start a thread: {error}"));
        let thread = thread.map_err(refused)?;
        let sampled = self.take_late_samples();
        self.ticks.wake(|woken| woken.has_ended = true);
        let _ = thread.map(std::thread::JoinHandle::join); // it does not panic, and needs no GVL
        sampled
    }

    /// Until the time is over.
    fn take_late_samples(&self) -> Result<(), Error> {
        let ticks = &self.ticks;
        while !ticks.are_over() {
            let needs_the_gvl = |woken: &Woken| woken.is_interrupted || woken.is_late || woken.has_ended;
            let wait = || ticks.wait(ticks.left(), needs_the_gvl);
            nogvl::without_gvl(&wait, &|| ticks.wake(|woken| woken.is_interrupted = true))?;
            ticks.wake(|woken| (woken.is_interrupted, woken.is_late) = (false, false));
            self.sample();
        }
        Ok(())
    }
}

impl Ticks {
    /// The life of the native thread.
    fn tick(&self) {
        signals::block();
        let (mut random, mut ticking) = (now_ns() | 1, HashMap::new());
        while !self.are_over() {
            // Ticks must not keep time with what the application does regularly.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let pause = INTERVAL / 2 + Duration::from_nanos(random % INTERVAL.as_nanos() as u64);
            self.wait(pause.min(self.left()), |woken| woken.has_ended);
            if lock(&self.pending).is_some() {
                self.wake(|woken| woken.is_late = true);
                continue;
            }
            *lock(&self.pending) = Some(self.begin_tick(&mut ticking));
            if let Some(call) = self.call {
                call.make();
            }
        }
    }

    fn are_over(&self) -> bool {
        lock(&self.state).has_ended || now_ns() >= self.ends_ns
    }

    fn left(&self) -> Duration {
        Duration::from_nanos(self.ends_ns.saturating_sub(now_ns()))
    }

    fn wake(&self, change: impl FnOnce(&mut Woken)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }

    /// Waits for this time, or until it is woken for such a reason.
    fn wait(&self, time: Duration, is_reason: impl Fn(&Woken) -> bool) {
        let waited = self.changed.wait_timeout_while(lock(&self.state), time, |woken| !is_reason(woken));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In the thread that runs, which was asked; or at any time, and then there is nothing to do.
unsafe extern "C" fn take_sample(_: *mut c_void) {
    if let Some(session) = current() {
        session.sample();
        session.drain_allocations();
    }
}
