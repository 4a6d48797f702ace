//! How the running thread is asked before Ruby 3.3: by one of Ruby's postponed jobs, which were made for signal handlers.
//! The documentation does not mention other threads.
//!
//! Ruby counts such a job before it has written what it is, function and data, and takes one off before it has read
//! them (Ruby bug 19991). A thread that runs jobs in just that moment takes what stood in the place before, or a mixture
//! of two jobs. Therefore
//! - the first places are filled with jobs of this kind, when there are no others: no place that is used is empty;
//! - these jobs look at no data, and each may run when it was not asked for;
//! - its data is what does no harm to the one other that looks at its own, `gc_finalize_deferred`: that returns at once
//!   where a flag in it is set. Finalizers are run after the next collection then.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::thread::nanosleep;
use rustix::time::Timespec;

use super::{is_for_this_thread, step_aside, TURNS, WAITING};

/// GC and a profiler take one each.
const PLACES: usize = 16;
/// Stands for the data of other jobs: all flags in it are set. Larger than what they look at.
static NO_DATA: [AtomicU32; 1024] = [const { AtomicU32::new(1) }; 1024];
/// The pause between looks of a yielding thread whether another has taken the GVL, and their number.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };
const LOOKS: u32 = 20;

/// What the thread does. It looks at no data, and may run when it was not asked for.
pub(crate) type Job = unsafe extern "C" fn(*mut std::ffi::c_void);

/// A job that Ruby knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call(Job);

impl Call {
    /// With the GVL held.
    #[allow(clippy::unnecessary_wraps)] // newer Rubies may have no place
    pub(crate) fn prepare(job: Job) -> Option<Self> {
        for _ in 0..PLACES {
            // SAFETY: function and data live as long as the process.
            unsafe { rb_sys::rb_postponed_job_register(0, Some(job), no_data()) };
        }
        Some(Call(job))
    }

    /// From any thread.
    pub(crate) fn make(self) {
        // SAFETY: see above. It touches the list of jobs and a flag of the running thread, both by atomic
        // operations. Where there is no place, the thread goes on until it is asked again.
        unsafe { rb_sys::rb_postponed_job_register_one(0, Some(self.0), no_data()) };
    }
}

fn no_data() -> *mut std::ffi::c_void {
    NO_DATA.as_ptr().cast_mut().cast()
}

/// In the thread that runs. A thread that releases the GVL only wakes the waiting threads, and has it again if it
/// comes back before they are there.
pub(super) unsafe extern "C" fn yield_turn(_: *mut std::ffi::c_void) {
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
