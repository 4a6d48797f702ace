//! How the running thread is asked to do something: by one of Ruby's postponed jobs, which it runs where it looks for
//! interrupts. The watch over turns has it yield, and a profile has it take a sample.
#![allow(unsafe_code)]

use super::{is_for_this_thread, step_aside};

/// What the thread does. It takes no data.
pub(crate) type Job = unsafe extern "C" fn(*mut std::ffi::c_void);

/// A job that Ruby knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call(rb_sys::rb_postponed_job_handle_t);

impl Call {
    /// With the GVL held. `None`: Ruby has no place left.
    pub(crate) fn prepare(job: Job) -> Option<Self> {
        // SAFETY: the function lives as long as the process, and takes no data.
        let handle = unsafe { rb_sys::rb_postponed_job_preregister(0, Some(job), std::ptr::null_mut()) };
        (handle != rb_sys::rb_postponed_job_handle_t::MAX).then_some(Call(handle))
    }

    /// From any thread.
    pub(crate) fn make(self) {
        // SAFETY: the handle is Ruby's own, and this may be called from any thread, without the GVL (debug.h).
        unsafe { rb_sys::rb_postponed_job_trigger(self.0) }
    }
}

/// In the thread that runs. The GVL is handed to the first that waits, and comes back after the others.
pub(super) unsafe extern "C" fn yield_turn(_: *mut std::ffi::c_void) {
    if is_for_this_thread() {
        step_aside(&|| {});
    }
}
