//! The clocks by which this extension measures.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use rustix::time::{clock_gettime, ClockId};

/// Microseconds of this clock. The front measures by CLOCK_MONOTONIC, too.
pub(crate) fn microseconds(clock: ClockId) -> u64 {
    nanoseconds(clock) / 1000
}

/// Nanoseconds of this clock.
pub(crate) fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU time that the thread of this process with this number of the kernel has had. `None`: it has ended.
pub(crate) fn cpu_ns(thread: i32) -> Option<u64> {
    // CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED, as the kernel's headers and pthread_getcpuclockid(3) have it. (That wants a
    // pthread_t, and must not be called for a thread that has ended.)
    let clock = (!thread << 3) | 6;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel checks the clock, and fills in the time.
    let time = unsafe { (libc::clock_gettime(clock, time.as_mut_ptr()) == 0).then(|| time.assume_init()) }?;
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
