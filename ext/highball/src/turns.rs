//! Turns at the GVL: a thread that computes gives way to a request.
//!
//! Ruby lets a thread that computes go on for 100 ms while others wait for the GVL, its time slice. So a request of two
//! milliseconds takes fifty times as long where the worker computes something else, and where every worker does, all
//! requests do. Here a serving thread that has something to claim waits for its turn no longer than about two usual
//! requests of this worker take; then the thread that runs is asked to give way. It does so where Ruby switches threads
//! anyway, and has the GVL again after those that waited.
//!
//! A native thread watches the time, and sleeps where nobody waits. Workers with one thread have none.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{park, park_timeout, JoinHandle, Thread};
use std::time::{Duration, Instant};

use rustix::process::{getpid, Pid};
use rustix::thread::nanosleep;
use rustix::time::{clock_gettime, ClockId, Timespec};

use crate::{native, nogvl};

/// Its name is known to `lib/highball/fork_safety.rb`.
const NAME: &str = "highball-turns";
/// A turn is waited for so long at least: switching costs something, too.
const LEAST_PATIENCE: Duration = Duration::from_millis(5);
/// And so long at most: then Ruby would switch by itself.
const MOST_PATIENCE: Duration = Duration::from_millis(100);
/// How long a thread that gives way looks whether another has taken the GVL, and how often.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };
const LOOKS: u32 = 20;
/// The least step by which the usual time changes, in microseconds.
const LEAST_STEP_US: u64 = 100;

/// Serving threads of this process that wait for the GVL and have something to claim, or look for it.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// How often one of them has got it.
static TURNS: AtomicU32 = AtomicU32::new(0);
/// How long a request usually takes, in microseconds: about the median.
static USUAL_US: AtomicU64 = AtomicU64::new(0);
/// The thread that watches.
static WATCH: Mutex<Option<Thread>> = Mutex::new(None);

/// The watch over the turns of a worker's threads, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turns {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: forks of it have not.
    process: Pid,
}

impl Turns {
    /// Begins to watch. With the GVL held.
    ///
    /// # Errors
    /// What the system refused.
    pub(crate) fn begin() -> io::Result<Self> {
        let request = Request::prepare();
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name(NAME.into()).stack_size(64 * 1024);
        let thread = thread.spawn(move || watch(&told, request))?;
        set_watch(Some(thread.thread().clone()));
        Ok(Turns { ended, thread: Some(thread), process: getpid() })
    }

    /// Now, as the time that [`Turns::ended`] takes, in microseconds.
    pub(crate) fn now_us() -> u64 {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
    }

    /// A request has ended that had begun then. With the GVL held.
    pub(crate) fn ended(begun_us: u64) {
        let (took, usual) = (Self::now_us().saturating_sub(begun_us), USUAL_US.load(Relaxed));
        let step = (usual / 8).max(LEAST_STEP_US);
        USUAL_US.store(if took > usual { usual + step } else { usual.saturating_sub(step) }, Relaxed);
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != getpid() {
            return std::mem::forget(thread); // there is nothing to wait for
        }
        set_watch(None);
        self.ended.store(true, Relaxed);
        thread.thread().unpark();
        let _ = thread.join(); // it does not panic
    }
}

fn set_watch(thread: Option<Thread>) {
    *WATCH.lock().unwrap_or_else(PoisonError::into_inner) = thread;
}

/// A serving thread waits for the GVL as long as this lives.
#[derive(Debug)]
pub(crate) struct Wait(());

impl Wait {
    /// The calling thread waits from now on. It need not hold the GVL.
    pub(crate) fn begin() -> Self {
        if WAITING.fetch_add(1, Relaxed) == 0 {
            if let Some(thread) = &*WATCH.lock().unwrap_or_else(PoisonError::into_inner) {
                thread.unpark();
            }
        }
        Wait(())
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        TURNS.fetch_add(1, Relaxed);
        WAITING.fetch_sub(1, Relaxed);
    }
}

/// The life of the native thread.
fn watch(ended: &AtomicBool, request: Request) {
    native::block_signals();
    while !ended.load(Relaxed) {
        if WAITING.load(Relaxed) == 0 {
            park();
            continue;
        }
        let before = TURNS.load(Relaxed);
        sleep(patience(), ended);
        if WAITING.load(Relaxed) > 0 && TURNS.load(Relaxed) == before {
            request.make();
        }
    }
}

fn patience() -> Duration {
    Duration::from_micros(2 * USUAL_US.load(Relaxed)).clamp(LEAST_PATIENCE, MOST_PATIENCE)
}

/// Sleeps, however often it is told that another waits, until the end.
fn sleep(time: Duration, ended: &AtomicBool) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|_| !ended.load(Relaxed)) {
        park_timeout(left);
    }
}

/// What the running thread is asked by: one of Ruby's postponed jobs, which run where Ruby looks for interrupts.
#[derive(Debug, Clone, Copy)]
struct Request {
    #[cfg(ruby_gte_3_3)]
    handle: rb_sys::rb_postponed_job_handle_t,
}

impl Request {
    /// With the GVL held.
    #[cfg(ruby_gte_3_3)]
    fn prepare() -> Self {
        // SAFETY: the function lives as long as the process, and takes no data.
        Request {
            handle: unsafe { rb_sys::rb_postponed_job_preregister(0, Some(give_way), std::ptr::null_mut()) },
        }
    }

    /// From any thread.
    #[cfg(ruby_gte_3_3)]
    fn make(self) {
        // SAFETY: the handle is Ruby's own; `rb_postponed_job_trigger` may be called from any thread (debug.h).
        unsafe { rb_sys::rb_postponed_job_trigger(self.handle) }
    }

    /// With the GVL held.
    ///
    /// Before 3.3 Ruby counts a job a moment before it writes what the job is. A thread that runs jobs in that moment
    /// takes what stood in the place before: that must never be nothing, so the first places are filled here.
    #[cfg(not(ruby_gte_3_3))]
    fn prepare() -> Self {
        const PLACES: usize = 16; // GC and profilers take one or two
        for _ in 0..PLACES {
            // SAFETY: the function lives as long as the process, and takes no data.
            unsafe { rb_sys::rb_postponed_job_register(0, Some(give_way), std::ptr::null_mut()) };
        }
        Request {}
    }

    /// From any thread.
    #[cfg(not(ruby_gte_3_3))]
    fn make(self) {
        // SAFETY: as in `prepare`; it may be called from signal handlers and any thread (debug.h), see there. Where
        // there is no place for it, the thread goes on until it is asked again.
        unsafe { rb_sys::rb_postponed_job_register_one(0, Some(give_way), std::ptr::null_mut()) };
    }
}

/// In the thread that runs: leaves the GVL to one that waits for it. Without looking for what others want of this thread
/// (`Thread#raise`, `Timeout`): Ruby drops exceptions that are raised in a postponed job.
unsafe extern "C" fn give_way(_: *mut std::ffi::c_void) {
    if WAITING.load(Relaxed) == 0 {
        return;
    }
    let before = TURNS.load(Relaxed);
    let is_taken = || TURNS.load(Relaxed) != before || WAITING.load(Relaxed) == 0;
    nogvl::step_aside(&|| {
        for _ in 0..LOOKS {
            if is_taken() {
                return;
            }
            let _ = nanosleep(&LOOK_EVERY); // cut short by a signal, it looks sooner
        }
    });
}
