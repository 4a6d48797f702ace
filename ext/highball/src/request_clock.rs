//! What requests of this worker do with their time: they compute, or they wait for something else (the database, another
//! service, a lock). `highball doctor` derives from that how many threads are of use, and [`crate::turns`] how long a thread may compute
//! while others wait.
//!
//! Before 3.2, Ruby does not tell how long a thread waits for the GVL. But then another thread has it, and computes, or would if the
//! kernel had a processor for it. So three times are kept: a request's thread computed, other threads of this worker did or were
//! about to, or none was. Time in which the request's own thread waited for a processor is none of them.
//!
//! Taking the time needs some system calls. A few requests a second are enough.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use highball_ring::RequestTimes;
use rustix::process::Pid;
use rustix::thread::gettid;
use rustix::time::ClockId;

use crate::clock::microseconds;

/// The least time between two requests whose times are taken.
const EVERY_US: u64 = 50_000;

/// Chooses the next request that begins some time after the last chosen one. How long a request takes does not change
/// whether it is chosen.
#[derive(Debug, Default)]
pub(crate) struct RequestClock {
    next_us: Cell<u64>,
}

/// When a request began, by several clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    thread: Pid,
    clocks: Clocks,
}

/// Microseconds.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    /// Time.
    now: u64,
    /// Processor time of the calling thread.
    thread: u64,
    /// Processor time of all threads of this process.
    process: u64,
    /// How long the calling thread has waited for a processor.
    delayed: u64,
    /// How long the other serving threads have waited for a processor, together.
    others_delayed: u64,
}

impl RequestClock {
    /// The calling thread begins a request. `threads`: the serving threads, which it is one of.
    pub(crate) fn begin(&self, now_us: u64, threads: impl Iterator<Item = Pid>) -> Option<Box<Begun>> {
        if now_us < self.next_us.get() {
            return None;
        }
        self.next_us.set(now_us + EVERY_US);
        let thread = gettid();
        Some(Box::new(Begun { thread, clocks: Clocks::read(thread, threads) }))
    }
}

impl Begun {
    /// The calling thread ends it. `None`: another had begun it.
    pub(crate) fn end(self, threads: impl Iterator<Item = Pid>) -> Option<RequestTimes> {
        (self.thread == gettid()).then(|| Clocks::read(self.thread, threads).since(self.clocks))
    }
}

impl Clocks {
    fn read(calling: Pid, threads: impl Iterator<Item = Pid>) -> Clocks {
        let (mut delayed, mut others_delayed) = (0, 0);
        for thread in threads {
            let sum = if thread == calling { &mut delayed } else { &mut others_delayed };
            *sum += delayed_us(thread);
        }
        Clocks {
            now: microseconds(ClockId::Monotonic),
            thread: microseconds(ClockId::ThreadCPUTime),
            process: microseconds(ClockId::ProcessCPUTime),
            delayed,
            others_delayed,
        }
    }

    fn since(self, begun: Clocks) -> RequestTimes {
        let passed = |clock: fn(&Clocks) -> u64| clock(&self).saturating_sub(clock(&begun));
        let computed_us = passed(|clocks| clocks.thread);
        let rest_us = passed(|clocks| clocks.now)
            .saturating_sub(computed_us)
            .saturating_sub(passed(|clocks| clocks.delayed));
        let others_us = passed(|clocks| clocks.process).saturating_sub(computed_us);
        let beside_us = (others_us + passed(|clocks| clocks.others_delayed)).min(rest_us);
        RequestTimes { requests: 1, computed_us, beside_us, waited_us: rest_us - beside_us }
    }
}

/// How long this thread has waited for a processor: the second number of `schedstat`, which is in nanoseconds. Where there is no such file, threads never wait for a processor.
pub(crate) fn delayed_us(thread: Pid) -> u64 {
    schedstat(thread).map_or(0, |file| delayed_ns(&file) / 1000)
}

/// Where the kernel tells how long a thread has waited for a processor (proc_pid_schedstat(5)). Opening it takes longer than
/// reading it.
pub(crate) fn schedstat(thread: Pid) -> io::Result<File> {
    File::open(format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero()))
}

/// How long the thread of this file has waited for a processor by now. 0: it has ended.
pub(crate) fn delayed_ns(schedstat: &File) -> u64 {
    let mut text = [0; 64]; // room for three numbers
    let read = schedstat.read_at(&mut text, 0).unwrap_or(0);
    let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}
