//! Time, and how long threads have waited for a processor, in nanoseconds.

use rustix::process::Pid;
use rustix::time::ClockId;

use crate::clock::nanoseconds;
use crate::request_clock::delayed_us;

/// Now, by CLOCK_MONOTONIC.
pub(super) fn now_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// How long the thread with this number has waited for a processor.
pub(super) fn delayed_ns(thread: i32) -> u64 {
    Pid::from_raw(thread).map_or(0, delayed_us) * 1000
}
