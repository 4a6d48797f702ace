//! The system calls behind sleep and wake: futex and eventfd.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::{preadv2, Errno, IoSliceMut, ReadWriteFlags};
use rustix::thread::futex;

use crate::sync::AtomicU32;

/// Sleeps while `word` has the value `seen`. May return early.
pub(crate) fn futex_wait(word: &AtomicU32, seen: u32, timeout: Option<Duration>) {
    let timeout = timeout.and_then(|t| rustix::time::Timespec::try_from(t).ok());
    match futex::wait(word, futex::Flags::empty(), seen, timeout.as_ref()) {
        // Rung, changed before the wait, a signal, or time is up: the caller looks again.
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
        Err(error) => debug_assert!(false, "futex wait: {error}"),
    }
}

/// Wakes up to `threads` that sleep on `word`, in whichever process.
pub(crate) fn futex_wake(word: &AtomicU32, threads: u32) {
    // It fails only for a bad address, and this one is mapped.
    let _ = futex::wake(word, futex::Flags::empty(), threads.min(i32::MAX as u32));
}

/// Makes the eventfd readable.
pub(crate) fn signal(eventfd: &OwnedFd) {
    // Full means that a wake-up is pending already.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

/// Empties the eventfd. Never blocks, also if the other side, whose copy shares the file's flags, has
/// made it a blocking one and was faster to read.
pub(crate) fn clear(eventfd: &OwnedFd) {
    let mut count = [0; 8];
    // It has no offset to read at; nothing to read is as good as something read.
    let _ = preadv2(eventfd, &mut [IoSliceMut::new(&mut count)], u64::MAX, ReadWriteFlags::NOWAIT);
}
