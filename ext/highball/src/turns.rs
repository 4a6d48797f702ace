//! Turns at the GVL: CPU-bound threads yield to requests that wait.
//!
//! Ruby lets a thread that computes go on for 100 ms while others wait for the GVL, its time slice. So a request of two
//! milliseconds takes fifty times as long where the worker computes something else, and where every worker does, all
//! requests do. Here a serving thread that looks for a request waits for its turn no longer than about two usual
//! requests of this worker compute; then the running thread is asked to yield. It does so where Ruby switches threads
//! anyway, and has the GVL again after the waiting threads.
//!
//! A native thread watches the time, and sleeps while no thread waits. Before Ruby 3.3, workers with one thread have none.

#[cfg(ruby_gte_3_3)]
pub(crate) mod asking;
#[cfg(not(ruby_gte_3_3))]
#[path = "turns/asking_before_ruby33.rs"]
pub(crate) mod asking;

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{park, park_timeout, JoinHandle, Thread};
use std::time::{Duration, Instant};

use rustix::process::{getpid, Pid};
use rustix::thread::gettid;

use crate::{nogvl, signals};

/// Its name is known to `lib/highball/fork_safety.rb`.
const NAME: &str = "highball-turns";
/// The shortest wait for a turn: switching costs something, too.
const LEAST_PATIENCE: Duration = Duration::from_millis(5);
/// And the longest: Ruby's own time slice.
const MOST_PATIENCE: Duration = Duration::from_millis(100);
/// The least step by which the usual time changes, in microseconds.
const LEAST_STEP_US: u64 = 100;

/// Threads of this process that wait for the GVL in order to claim a request, or to sample slow ones.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// How often one of them has got it.
static TURNS: AtomicU32 = AtomicU32::new(0);
/// What [`TURNS`] was when a thread was asked to yield.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// How long a request usually computes, in microseconds: about the median.
static USUAL_US: AtomicU64 = AtomicU64::new(0);
/// The thread that watches, and whether it sleeps until another waits.
static WATCH: Mutex<Option<Thread>> = Mutex::new(None);
static DOZES: AtomicBool = AtomicBool::new(false);
/// The threads that let others compute for a while. Ruby says that they sleep. (The GVL is held where this is read or
/// changed, so no thread waits for the lock.)
static ASIDE: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this thread waits.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// The watch over the turns of a worker's threads, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turns {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: forks of it have not.
    process: Pid,
}

impl Turns {
    /// Begins to watch. With the GVL held. `None`: Ruby has no room for it, and keeps to its own time slice.
    ///
    /// # Errors
    /// What the system refused.
    pub(crate) fn begin() -> io::Result<Option<Self>> {
        let Some(call) = asking::Call::prepare(asking::yield_turn) else { return Ok(None) };
        let ended = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name(NAME.into()).stack_size(64 * 1024);
        let thread = thread.spawn(move || watch(&watched, call))?;
        *lock_watch() = Some(thread.thread().clone());
        Ok(Some(Turns { ended, thread: Some(thread), process: getpid() }))
    }

    /// How long a request has computed. Called for the requests that [`crate::request_clock`] chooses.
    pub(crate) fn note(computed_us: u64) {
        let usual = USUAL_US.load(Relaxed);
        let step = (usual / 8).max(LEAST_STEP_US);
        USUAL_US.store(if computed_us > usual { usual + step } else { usual.saturating_sub(step) }, Relaxed);
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != getpid() {
            return std::mem::forget(thread); // there is nothing to wait for
        }
        lock_watch().take_if(|watch| watch.id() == thread.thread().id());
        self.ended.store(true, Relaxed);
        thread.thread().unpark();
        let _ = thread.join(); // it does not panic
    }
}

/// `Native.steps_aside?(tid) -> bool`: whether the thread with this number (`Thread#native_thread_id`) would go on with its
/// Ruby code, but lets others compute.
pub(crate) fn is_aside(thread: Option<i32>) -> bool {
    lock_aside().iter().any(|aside| Some(aside.as_raw_nonzero().get()) == thread)
}

/// The calling thread lets others have the GVL for as long as `wait` takes and until they are done.
fn step_aside<W: Fn()>(wait: &W) {
    let thread = gettid();
    lock_aside().push(thread);
    nogvl::step_aside(wait);
    lock_aside().retain(|aside| *aside != thread);
}

fn lock_aside() -> MutexGuard<'static, Vec<Pid>> {
    ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock_watch() -> MutexGuard<'static, Option<Thread>> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread waits for the GVL as long as this lives, or has it for a moment ([`crate::ages::Ages::wait`]).
#[derive(Debug)]
pub(crate) struct Wait(());

impl Wait {
    /// It waits from now on. It need not hold the GVL.
    pub(crate) fn begin() -> Self {
        WAITS.set(true);
        WAITING.fetch_add(1, SeqCst);
        // Looked at first, so that the usual case writes nothing that others read.
        if DOZES.load(SeqCst) && DOZES.swap(false, SeqCst) {
            if let Some(thread) = &*lock_watch() {
                thread.unpark();
            }
        }
        Wait(())
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        WAITS.set(false);
        TURNS.fetch_add(1, Relaxed);
        WAITING.fetch_sub(1, SeqCst);
    }
}

/// The life of the native thread.
fn watch(ended: &AtomicBool, call: asking::Call) {
    signals::block();
    while !ended.load(Relaxed) {
        if WAITING.load(SeqCst) == 0 {
            doze();
            continue;
        }
        let before = TURNS.load(Relaxed);
        sleep(patience(), ended);
        if WAITING.load(SeqCst) > 0 && TURNS.load(Relaxed) == before {
            ASKED.store(before, Relaxed);
            call.make();
        }
    }
}

/// Sleeps until a thread waits. A thread that begins to wait after the second look finds it dozing, and wakes it.
fn doze() {
    DOZES.store(true, SeqCst);
    if WAITING.load(SeqCst) == 0 {
        park();
    }
    DOZES.store(false, SeqCst);
}

fn patience() -> Duration {
    Duration::from_micros(2 * USUAL_US.load(Relaxed)).clamp(LEAST_PATIENCE, MOST_PATIENCE)
}

/// Sleeps for a time, or until the end.
fn sleep(time: Duration, ended: &AtomicBool) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|_| !ended.load(Relaxed)) {
        park_timeout(left);
    }
}

/// Whether this thread still blocks a waiter. It may have got the GVL since it was asked, after the others or as one of
/// the waiters.
fn is_for_this_thread() -> bool {
    WAITING.load(Relaxed) > 0 && TURNS.load(Relaxed) == ASKED.load(Relaxed) && !WAITS.get()
}
