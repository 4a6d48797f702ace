//! Signals in threads that are not Ruby's.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Signals belong to Ruby's threads: the calling thread must never be picked to handle one.
pub(crate) fn block() {
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset sets all of it; a null pointer is for what is not wanted.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}
