//! Time, and how long threads have waited for a processor, in nanoseconds.

use std::fs::File;

use rustix::process::Pid;
use rustix::time::ClockId;

use crate::clock::nanoseconds;
use crate::request_clock::{self, schedstat};

/// Now, by CLOCK_MONOTONIC.
pub(super) fn now_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// How long the thread with this number has waited for a processor.
pub(super) fn delayed_ns(thread: i32) -> u64 {
    schedstat_of(thread).as_ref().map_or(0, request_clock::delayed_ns)
}

fn schedstat_of(thread: i32) -> Option<File> {
    Pid::from_raw(thread).and_then(|thread| schedstat(thread).ok())
}

/// What the ticking thread keeps of another thread.
#[derive(Debug)]
pub(super) struct Ticking {
    /// Its CPU time at the last tick.
    cpu_ns: u64,
    /// Open from the first tick on before which it has computed.
    schedstat: Option<File>,
}

impl Ticking {
    pub(super) fn begin(cpu_ns: u64) -> Self {
        Ticking { cpu_ns, schedstat: None }
    }

    /// A tick, at which this is the CPU time of the thread with this number. How long it has waited for a processor, if it has
    /// computed since the last tick.
    pub(super) fn tick(&mut self, thread: i32, cpu_ns: u64) -> Option<u64> {
        if std::mem::replace(&mut self.cpu_ns, cpu_ns) == cpu_ns {
            return None;
        }
        if self.schedstat.is_none() {
            self.schedstat = schedstat_of(thread);
        }
        Some(self.schedstat.as_ref().map_or(0, request_clock::delayed_ns))
    }
}
