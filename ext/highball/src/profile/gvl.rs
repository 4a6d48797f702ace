//! Which threads wait for the GVL, by Ruby's thread events.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

use magnus::{Error, Ruby};
use rustix::thread::gettid;

use super::clocks::now_ns;

/// Ruby's numbers of the events (ruby/thread.h).
const READY: u32 = 1 << 1;
const RESUMED: u32 = 1 << 2;
const EXITED: u32 = 1 << 4;

/// Threads that are watched. Others are left out.
const PLACES: usize = 512;

/// A thread, and since when it waits.
struct Place {
    /// The kernel's number; 0: free.
    thread: AtomicI32,
    /// By CLOCK_MONOTONIC; 0: it does not wait.
    since_ns: AtomicU64,
}

static WAITING: [Place; PLACES] =
    [const { Place { thread: AtomicI32::new(0), since_ns: AtomicU64::new(0) } }; PLACES];

thread_local! {
    static OWN: Cell<Option<&'static Place>> = const { Cell::new(None) };
}

/// Ruby reports the events as long as this lives.
#[derive(Debug)]
pub(super) struct GvlWatch(*mut rb_sys::rb_internal_thread_event_hook_t);

impl GvlWatch {
    /// Begins to watch. With the GVL held.
    ///
    /// # Errors
    /// Ruby refuses.
    pub(super) fn begin(ruby: &Ruby) -> Result<Self, Error> {
        WAITING.iter().for_each(|place| place.since_ns.store(0, SeqCst));
        // SAFETY: the function lives as long as the process, and takes no data.
        let hook = unsafe {
            let events = READY | RESUMED | EXITED;
            rb_sys::rb_internal_thread_add_event_hook(Some(happened), events, std::ptr::null_mut())
        };
        if hook.is_null() {
            return Err(Error::new(
                ruby.exception_runtime_error(),
                "Ruby does not report its threads' events",
            ));
        }
        Ok(GvlWatch(hook))
    }
}

impl Drop for GvlWatch {
    fn drop(&mut self) {
        // SAFETY: Ruby's own, and not removed before.
        unsafe { rb_sys::rb_internal_thread_remove_event_hook(self.0) };
    }
}

/// Since when this thread waits for the GVL.
pub(super) fn waiting_since_ns(thread: i32) -> Option<u64> {
    let place = WAITING.iter().find(|place| place.thread.load(SeqCst) == thread)?;
    Some(place.since_ns.load(SeqCst)).filter(|since| *since > 0)
}

/// In the thread of the event, which may not hold the GVL: nothing of Ruby's is used.
unsafe extern "C" fn happened(
    event: rb_sys::rb_event_flag_t,
    _: *const rb_sys::rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    let Some(place) = OWN.get().or_else(take_place) else { return };
    place.since_ns.store(if event == READY { now_ns() } else { 0 }, SeqCst);
    if event == EXITED {
        OWN.set(None);
        place.thread.store(0, SeqCst);
    }
}

fn take_place() -> Option<&'static Place> {
    let thread = gettid().as_raw_nonzero().get();
    let free = |place: &&Place| place.thread.compare_exchange(0, thread, SeqCst, SeqCst).is_ok();
    // After a fork, the only thread of the child has another number than the place that it inherits.
    let place = WAITING
        .iter()
        .find(|place| place.thread.load(SeqCst) == thread)
        .or_else(|| WAITING.iter().find(free));
    OWN.set(place);
    place
}
