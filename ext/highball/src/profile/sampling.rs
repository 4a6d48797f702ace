//! One sample: what each thread does, and how much time that counts for.
#![allow(unsafe_code)]

use std::cell::RefMut;
use std::collections::HashMap;

use magnus::rb_sys::AsRawValue;
use magnus::{prelude::*, RArray, Ruby, Value};
use rb_sys::VALUE;
use rustix::thread::gettid;

use super::clocks::{delayed_ns, now_ns, Ticking};
use super::gvl::waiting_since_ns;
use super::recording::{Recording, GARBAGE_COLLECTION, ROOT};
use super::{lock, Mode, Session, Ticks, INTERVAL};
use crate::clock::cpu_ns;

/// A sample this soon after its tick is of what ran at the tick. After a longer time, the thread's clock decides.
const SOON_NS: u64 = 150_000;

/// A time at which a sample was asked for.
#[derive(Debug)]
pub(super) struct Tick {
    at_ns: u64,
    clocks: Vec<Clock>,
    /// Whether a thread collected garbage.
    is_collecting: bool,
}

/// A thread at a tick.
#[derive(Debug, Clone, Copy)]
struct Clock {
    thread: i32,
    cpu_ns: u64,
    /// How long it has waited for a processor, if it has computed since the tick before.
    delayed_ns: Option<u64>,
}

impl Tick {
    fn clock_of(&self, thread: i32) -> Option<&Clock> {
        self.clocks.iter().find(|clock| clock.thread == thread)
    }
}

/// A thread at its last sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    cpu_ns: u64,
    /// Where it was, as a node of the recording; `None`: it waited for a request.
    node: Option<u32>,
}

/// A thread of this process.
#[derive(Clone, Copy)]
struct Seen {
    value: VALUE,
    number: i32,
    cpu_ns: u64,
}

impl Ticks {
    /// A tick begins. `ticking`: the threads of the last tick.
    pub(super) fn begin_tick(&self, ticking: &mut HashMap<i32, Ticking>) -> Tick {
        let threads = lock(&self.threads).clone();
        ticking.retain(|thread, _| threads.contains(thread));
        let clock = |thread| {
            let cpu_ns = cpu_ns(thread)?;
            let delayed_ns =
                ticking.entry(thread).or_insert_with(|| Ticking::begin(cpu_ns)).tick(thread, cpu_ns);
            Some(Clock { thread, cpu_ns, delayed_ns })
        };
        let clocks = threads.into_iter().filter_map(clock).collect();
        Tick { at_ns: now_ns(), clocks, is_collecting: is_collecting() }
    }
}

impl Session {
    /// Takes the sample of a tick, if that has not been done.
    pub(super) fn sample(&self) {
        let Some(tick) = lock(&self.ticks.pending).take() else { return };
        self.sample_of(&tick);
    }

    /// Takes a sample without a tick.
    pub(super) fn sample_now(&self) {
        if self.mode != Mode::Allocations {
            self.sample_of(&Tick { at_ns: now_ns(), clocks: Vec::new(), is_collecting: false });
        }
    }

    fn sample_of(&self, tick: &Tick) {
        if self.is_sampling.replace(true) {
            return; // in the middle of another one, in which Ruby code has run
        }
        let (list, threads) = threads();
        *lock(&self.ticks.threads) = threads.iter().map(|thread| thread.number).collect();
        let (now_ns, calling) = (now_ns(), gettid().as_raw_nonzero().get());
        let passed_ns = now_ns.saturating_sub(self.last_ns.replace(now_ns));
        let collector = tick.is_collecting.then(|| self.collector(tick, &threads, calling)).flatten();
        for thread in &threads {
            let is_running = thread.number == calling;
            let weight = match self.mode {
                _ if thread.number == self.sampler => None,
                Mode::Cpu => on_cpu_ns(tick, thread, is_running, now_ns),
                _ if self.own.contains(&thread.number) => None,
                Mode::Gvl => {
                    waiting_since_ns(thread.number).filter(|since| *since <= tick.at_ns).map(|_| passed_ns)
                }
                Mode::Wall | Mode::Allocations => Some(passed_ns),
            };
            if let Some(weight) = weight {
                self.sample_thread(thread, weight, collector == Some(thread.number), is_running);
            }
        }
        let alive = |number: &i32, _: &mut Known| threads.iter().any(|thread| thread.number == *number);
        self.known.borrow_mut().retain(alive);
        std::hint::black_box(list); // it has kept the threads alive
        self.is_sampling.set(false);
    }

    /// The thread that collected garbage at the tick. It had the GVL, and most often it still has.
    fn collector(&self, tick: &Tick, threads: &[Seen], calling: i32) -> Option<i32> {
        if calling != self.sampler {
            return Some(calling);
        }
        let computed = |thread: &&Seen| {
            tick.clock_of(thread.number).map(|clock| thread.cpu_ns.saturating_sub(clock.cpu_ns))
        };
        threads
            .iter()
            .filter(|thread| thread.number != self.sampler)
            .max_by_key(computed)
            .map(|thread| thread.number)
    }

    /// Where this thread is counts for this weight. A thread that has had no CPU time since the last sample is where it was.
    fn sample_thread(&self, thread: &Seen, weight: u64, is_collecting: bool, is_running: bool) {
        let known = self.known.borrow().get(&thread.number).copied();
        let known = known.filter(|known| known.cpu_ns == thread.cpu_ns && !is_running);
        let node = match known {
            Some(known) => known.node,
            None => {
                let Ok(node) = self.node_of(thread, is_collecting, is_running) else { return };
                // The next sample is not to find a collection there, which has ended.
                if !is_collecting {
                    let known = Known { cpu_ns: thread.cpu_ns, node };
                    self.known.borrow_mut().insert(thread.number, known);
                }
                node
            }
        };
        let mut recording: RefMut<'_, Recording> = self.recording.borrow_mut();
        match node {
            Some(node) => recording.add(node, weight),
            None => recording.add_idle(weight),
        }
    }

    /// Where this thread is; `None`: it waits for a request. It fails only for lack of memory.
    fn node_of(&self, thread: &Seen, is_collecting: bool, is_running: bool) -> Result<Option<u32>, ()> {
        let mut frames = match is_running {
            true => self.frames_of_calling_thread(),
            false => self.frames_of(thread.value).map_err(drop)?,
        };
        if frames.is_empty() {
            return Ok(None); // it has only begun, or runs nothing but Ruby's own code
        }
        if !is_running && self.recording.borrow().is_claim(frames[0]) {
            return Ok(None);
        }
        if is_collecting {
            frames.insert(0, GARBAGE_COLLECTION);
        }
        let mut recording = self.recording.borrow_mut();
        if let Some(ring) = &self.ring {
            let group = ring.route_of(thread.number).unwrap_or_else(|| "(no request)".into());
            frames.push(recording.group(&group));
        }
        let node = recording.node(&frames);
        Ok((node != ROOT).then_some(node))
    }
}

/// Whether garbage is collected at this moment; also without the GVL. (Ruby's events would say which thread does it. But on Ruby 3.1
/// every new object takes longer while anything waits for them.)
fn is_collecting() -> bool {
    // SAFETY: Ruby's function reads a flag, of an object that lives as long as Ruby does, which is longer than the threads of a profile.
    // The flag may change meanwhile: the answer is as good as one a moment before or after.
    unsafe { rb_sys::rb_during_gc() != 0 }
}

/// The time that counts for a thread that computed at the tick; `None`: it did not.
fn on_cpu_ns(tick: &Tick, thread: &Seen, is_running: bool, now_ns: u64) -> Option<u64> {
    let late_ns = now_ns.saturating_sub(tick.at_ns);
    let clock = tick.clock_of(thread.number)?;
    let computed_ns = thread.cpu_ns.saturating_sub(clock.cpu_ns);
    // On a busy machine, other processes may have run since the tick. A thread that waited for a processor meanwhile, and for
    // nothing else, was computing.
    let was_delayed = || {
        let delayed_ns =
            clock.delayed_ns.map_or(0, |before| delayed_ns(thread.number).saturating_sub(before));
        (computed_ns + delayed_ns) * 5 >= late_ns * 4
    };
    let computes = match is_running {
        true => late_ns < SOON_NS || was_delayed(),
        false => computed_ns > 0 && computed_ns * 2 >= late_ns,
    };
    let interval_ns = INTERVAL.as_nanos() as u64;
    // While native code holds the GVL, there are no ticks.
    computes.then(|| interval_ns * (1 + late_ns / interval_ns))
}

/// The threads of this process, and the array that keeps them alive. With the GVL held.
fn threads() -> (Option<RArray>, Vec<Seen>) {
    let list = || {
        let class: Value = Ruby::get().ok()?.class_object().const_get("Thread").ok()?;
        class.funcall::<_, _, RArray>("list", ()).ok()
    };
    let seen = |thread: Value| {
        let number = thread.funcall::<_, _, Option<i32>>("native_thread_id", ()).ok()??;
        Some(Seen { value: thread.as_raw(), number, cpu_ns: cpu_ns(number)? })
    };
    let list = list();
    let seen = list.into_iter().flatten().filter_map(seen).collect();
    (list, seen)
}
