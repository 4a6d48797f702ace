//! Futex and eventfd as loom sees them. A model has one futex word with sleepers and one eventfd at most.

use std::os::fd::OwnedFd;
use std::time::Duration;

use loom::sync::{Condvar, Mutex};

use crate::sync::{AtomicU32, Ordering};

loom::lazy_static! {
    /// The kernel compares and falls asleep under a lock that the waker takes too.
    static ref FUTEX: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    static ref EVENTFD: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
}

pub(crate) fn futex_wait(word: &AtomicU32, seen: u32, _timeout: Option<Duration>) {
    let guard = FUTEX.0.lock().unwrap();
    if word.load(Ordering::Relaxed) == seen {
        drop(FUTEX.1.wait(guard).unwrap());
    }
}

pub(crate) fn futex_wake(_word: &AtomicU32, threads: u32) {
    let _guard = FUTEX.0.lock().unwrap();
    if threads == 1 {
        FUTEX.1.notify_one();
    } else {
        FUTEX.1.notify_all();
    }
}

pub(crate) fn signal(_eventfd: &OwnedFd) {
    *EVENTFD.0.lock().unwrap() = true;
    EVENTFD.1.notify_one();
}

pub(crate) fn clear(_eventfd: &OwnedFd) {
    *EVENTFD.0.lock().unwrap() = false;
}

/// Waits as epoll does: until the eventfd is readable.
pub fn poll() {
    let mut readable = EVENTFD.0.lock().unwrap();
    while !*readable {
        readable = EVENTFD.1.wait(readable).unwrap();
    }
}
