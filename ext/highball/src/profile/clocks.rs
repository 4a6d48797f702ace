//! Time, and the CPU time of threads, in nanoseconds.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use rustix::process::Pid;
use rustix::time::ClockId;

use crate::clock::nanoseconds;
use crate::request_clock::delayed_us;

/// Now, by CLOCK_MONOTONIC.
pub(super) fn now_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// The CPU time that the thread of this process with this number of the kernel has had. `None`: it has ended.
pub(super) fn cpu_ns(thread: i32) -> Option<u64> {
    // CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED, as the kernel's headers and pthread_getcpuclockid(3) have it. (That wants a
    // pthread_t, and must not be called for a thread that has ended.)
    let clock = (!thread << 3) | 6;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel checks the clock, and fills in the time.
    let time = unsafe { (libc::clock_gettime(clock, time.as_mut_ptr()) == 0).then(|| time.assume_init()) }?;
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How long the thread with this number has waited for a processor.
pub(super) fn delayed_ns(thread: i32) -> u64 {
    Pid::from_raw(thread).map_or(0, delayed_us) * 1000
}
