//! The clocks by which this extension measures.

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
