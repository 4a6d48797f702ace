//! Turns at the GVL: CPU-bound threads yield to requests that wait.
//!
//! Ruby lets a thread that computes go on for 100 ms while others wait for the GVL, its time slice. So a request of two
//! milliseconds takes fifty times as long where the worker computes something else, and where every worker does, all
//! requests do. Here a serving thread that looks for a request waits for its turn no longer than about two usual
//! requests of this worker compute; then the running thread is asked to yield. It does so where Ruby switches threads
//! anyway, and has the GVL again after those that waited.
//!
//! A native thread watches the time, and sleeps while no thread waits. Workers with one thread have none.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{park, park_timeout, JoinHandle, Thread};
use std::time::{Duration, Instant};

use rustix::process::{getpid, Pid};
use rustix::thread::gettid;
use rustix::time::ClockId;

use crate::clock::microseconds;
use crate::{nogvl, signals};

/// Its name is known to `lib/highball/fork_safety.rb`.
const NAME: &str = "highball-turns";
/// The shortest wait for a turn: switching costs something, too.
const LEAST_PATIENCE: Duration = Duration::from_millis(5);
/// And the longest: Ruby's own time slice.
const MOST_PATIENCE: Duration = Duration::from_millis(100);
/// One of this number of requests is timed: asking for the time is a system call.
const SAMPLE: u32 = 16;
/// The least step by which the usual time changes, in microseconds.
const LEAST_STEP_US: u64 = 100;

/// Serving threads of this process that wait for the GVL in order to claim a request.
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
    /// Whether this thread is one of those that wait.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// The watch over the turns of a worker's threads, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turns {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: forks of it have not.
    process: Pid,
    /// Requests that were begun.
    begun: Cell<u32>,
}

impl Turns {
    /// Begins to watch. With the GVL held. `None`: Ruby has no room for it, and keeps to its own time slice.
    ///
    /// # Errors
    /// What the system refused.
    pub(crate) fn begin() -> io::Result<Option<Self>> {
        let Some(call) = asking::Call::prepare() else { return Ok(None) };
        let ended = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name(NAME.into()).stack_size(64 * 1024);
        let thread = thread.spawn(move || watch(&watched, call))?;
        *lock_watch() = Some(thread.thread().clone());
        Ok(Some(Turns { ended, thread: Some(thread), process: getpid(), begun: Cell::new(0) }))
    }

    /// The calling thread begins a request. What it has computed so far in microseconds, if the time of this request
    /// is to be taken.
    pub(crate) fn request_begins(&self) -> Option<u64> {
        let number = self.begun.get();
        self.begun.set(number.wrapping_add(1));
        (number % SAMPLE == 0).then(computed_us)
    }

    /// The calling thread ends a request that had begun then. (If another has begun it, this is not its time; one
    /// request does not change much.)
    pub(crate) fn request_ends(begun_us: u64) {
        let Some(took) = computed_us().checked_sub(begun_us) else { return };
        let usual = USUAL_US.load(Relaxed);
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

/// The processor time of the calling thread: what it has waited for does not count, the GVL least of all.
fn computed_us() -> u64 {
    microseconds(ClockId::ThreadCPUTime)
}

/// The calling thread waits for the GVL as long as this lives.
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

/// Sleeps until a thread waits. One that begins to wait after the second look finds it dozing, and wakes it.
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

/// How the running thread is asked: by one of Ruby's postponed jobs, which it runs where it looks for interrupts.
#[cfg(ruby_gte_3_3)]
mod asking {
    use super::{is_for_this_thread, step_aside};

    /// A job that Ruby knows.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Call(rb_sys::rb_postponed_job_handle_t);

    impl Call {
        /// With the GVL held. `None`: Ruby has no place left.
        pub(super) fn prepare() -> Option<Self> {
            // SAFETY: the function lives as long as the process, and takes no data.
            let handle =
                unsafe { rb_sys::rb_postponed_job_preregister(0, Some(yield_turn), std::ptr::null_mut()) };
            (handle != rb_sys::rb_postponed_job_handle_t::MAX).then_some(Call(handle))
        }

        /// From any thread.
        pub(super) fn make(self) {
            // SAFETY: the handle is Ruby's own, and this may be called from any thread, without the GVL (debug.h).
            unsafe { rb_sys::rb_postponed_job_trigger(self.0) }
        }
    }

    /// In the thread that runs. The GVL is handed to the first that waits, and comes back after the others.
    unsafe extern "C" fn yield_turn(_: *mut std::ffi::c_void) {
        if is_for_this_thread() {
            step_aside(&|| {});
        }
    }
}

/// The same before 3.3, where postponed jobs were made for signal handlers, and the documentation does not mention
/// other threads.
///
/// Ruby counts such a job before it has written what it is, function and data, and takes one off before it has read
/// them (Ruby bug 19991). A thread that runs jobs in just that moment takes what stood in the place before, or a mixture
/// of two jobs. Therefore
/// - the first places are filled with this very job, when there is no other: no place that is used is empty;
/// - the job looks at no data;
/// - its data is what does no harm to the one other that looks at its own, `gc_finalize_deferred`: that returns at once
///   where a flag in it is set. Finalizers are run after the next collection then.
#[cfg(not(ruby_gte_3_3))]
mod asking {
    use super::{is_for_this_thread, step_aside, AtomicU32, Relaxed, TURNS, WAITING};
    use rustix::thread::nanosleep;
    use rustix::time::Timespec;

    /// GC and a profiler take one each.
    const PLACES: usize = 16;
    /// Stands for the data of other jobs: all flags in it are set. Larger than what they look at.
    static NO_DATA: [AtomicU32; 1024] = [const { AtomicU32::new(1) }; 1024];
    /// The pause between looks of a yielding thread whether another has taken the GVL, and their number.
    const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };
    const LOOKS: u32 = 20;

    /// A job that Ruby knows.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Call(());

    impl Call {
        /// With the GVL held.
        #[allow(clippy::unnecessary_wraps)] // newer Rubies may have no place
        pub(super) fn prepare() -> Option<Self> {
            for _ in 0..PLACES {
                // SAFETY: function and data live as long as the process.
                unsafe { rb_sys::rb_postponed_job_register(0, Some(yield_turn), no_data()) };
            }
            Some(Call(()))
        }

        /// From any thread.
        pub(super) fn make(self) {
            // SAFETY: see above. It touches the list of jobs and a flag of the running thread, both by atomic
            // operations. Where there is no place, the thread goes on until it is asked again.
            unsafe { rb_sys::rb_postponed_job_register_one(0, Some(yield_turn), no_data()) };
        }
    }

    fn no_data() -> *mut std::ffi::c_void {
        NO_DATA.as_ptr().cast_mut().cast()
    }

    /// In the thread that runs. A thread that releases the GVL only wakes those that wait, and has it again if it comes
    /// back before they are there.
    unsafe extern "C" fn yield_turn(_: *mut std::ffi::c_void) {
        if !is_for_this_thread() {
            return;
        }
        let before = TURNS.load(Relaxed);
        let is_taken = || TURNS.load(Relaxed) != before || WAITING.load(Relaxed) == 0;
        step_aside(&|| {
            for _ in 0..LOOKS {
                if is_taken() {
                    return;
                }
                let _ = nanosleep(&LOOK_EVERY); // cut short by a signal, it looks sooner
            }
        });
    }
}

/// Whether the running thread is in the way of one that has waited long enough. It may have got the GVL since it was
/// asked, after the others or as one of those that waited.
fn is_for_this_thread() -> bool {
    WAITING.load(Relaxed) > 0 && TURNS.load(Relaxed) == ASKED.load(Relaxed) && !WAITS.get()
}
