//! The one file that releases the GVL.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::from_ref;

use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Error, KwArgs, Ruby, Value};
use rb_sys::VALUE;

/// Runs `wait` with the GVL released, so that other Ruby threads run meanwhile. `interrupt` is called
/// from another thread, possibly at once, when this thread has to stop waiting (`Thread#kill`, `Timeout`,
/// a signal); it must make `wait` return soon.
///
/// `wait` must not touch Ruby, and whatever it looks at must have been read before the call, with the
/// GVL held: an interrupt can arrive before `wait` runs.
///
/// # Errors
/// What the interrupt raised in this thread (also a kill, as a jump to be passed on).
pub(crate) fn without_gvl<W: Fn(), I: Fn()>(wait: &W, interrupt: &I) -> Result<(), Error> {
    magnus::rb_sys::protect(|| {
        // SAFETY: both pointers live until the call returns or jumps (they belong to our caller's
        // frame, below `protect`), and the functions get the type they were made from.
        unsafe {
            rb_sys::rb_thread_call_without_gvl(
                Some(call::<W>),
                from_ref(wait).cast_mut().cast(),
                Some(unblock::<I>),
                from_ref(interrupt).cast_mut().cast(),
            );
        }
        rb_sys::Qnil.into()
    })
    .map(drop)
}

unsafe extern "C" fn call<F: Fn()>(closure: *mut c_void) -> *mut c_void {
    // SAFETY: `without_gvl` passed a pointer to an `F` that is still alive.
    unsafe { (*closure.cast::<F>())() };
    std::ptr::null_mut()
}

unsafe extern "C" fn unblock<F: Fn()>(closure: *mut c_void) {
    // SAFETY: as in `call`.
    unsafe { (*closure.cast::<F>())() };
}

/// Runs `wait` with the GVL released, or not at all where the thread has any interrupt to look at, which it then still
/// has: none is looked at here, and nothing is raised. `wait` cannot be interrupted, and must be short.
pub(crate) fn step_aside<W: Fn()>(wait: &W) {
    // SAFETY: as for `without_gvl`; this one does not raise (thread.h, `rb_thread_call_without_gvl2`).
    unsafe {
        let wait = from_ref(wait).cast_mut().cast();
        rb_sys::rb_thread_call_without_gvl2(Some(call::<W>), wait, None, std::ptr::null_mut());
    }
}

/// Waits until something can be sent on a socket, with the GVL released.
///
/// # Errors
/// As for [`without_gvl`].
pub(crate) fn wait_writable(ruby: &Ruby, socket: BorrowedFd<'_>) -> Result<(), Error> {
    let descriptor = socket.as_raw_fd();
    // SAFETY: called with the GVL held, on a Ruby thread.
    let scheduler = unsafe { rb_sys::rb_fiber_scheduler_current() };
    if scheduler != rb_sys::Qnil as VALUE {
        return wait_in_fiber(ruby, scheduler, descriptor);
    }
    magnus::rb_sys::protect(|| {
        // SAFETY: as above. The descriptor is open until this returns: its owner is borrowed.
        unsafe { rb_sys::rb_thread_fd_writable(descriptor) };
        rb_sys::Qnil.into()
    })
    .map(drop)
}

/// The other fibers of this thread run meanwhile.
fn wait_in_fiber(ruby: &Ruby, scheduler: VALUE, descriptor: RawFd) -> Result<(), Error> {
    let not_closed = ruby.hash_new();
    not_closed.aset(ruby.to_symbol("autoclose"), false)?;
    let io: Value = ruby.class_io().funcall("for_fd", (descriptor, "w", KwArgs(not_closed)))?;
    magnus::rb_sys::protect(|| {
        // SAFETY: called with the GVL held; both are live: one is the thread's, the other on this stack.
        unsafe { rb_sys::rb_fiber_scheduler_io_wait_writable(scheduler, io.as_raw()) };
        rb_sys::Qnil.into()
    })
    .map(drop)
}

/// Lets other Ruby threads of this process run, if any is ready.
///
/// # Errors
/// As for [`without_gvl`].
pub(crate) fn yield_gvl() -> Result<(), Error> {
    magnus::rb_sys::protect(|| {
        // SAFETY: called with the GVL held, on a Ruby thread.
        unsafe { rb_sys::rb_thread_schedule() };
        rb_sys::Qnil.into()
    })
    .map(drop)
}
