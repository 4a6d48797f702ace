//! What the supervisor tells `highball status` and `highball memory`.

use crate::heap_questions::{HeapAnswer, NotAsked};
use crate::message::Booted;
use serde::Serialize;
use std::time::Duration;

/// How things are right now.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `booting`, `serving`, `draining` or `ending`.
    pub phase: &'static str,
    /// The framework and versions, once the application was booted.
    #[serde(skip)]
    pub app: Option<Booted>,
    /// The mold, if there is one right now.
    pub mold: Option<MoldReport>,
    /// The workers, by number.
    pub workers: Vec<WorkerReport>,
    /// Whether the application can be booted again; unknown until it was booted once.
    pub restartable: Option<bool>,
    /// What failed last, if anything did since the start.
    pub last_failure: Option<String>,
}

/// The mold.
#[derive(Debug, Clone, Serialize)]
pub struct MoldReport {
    /// Process id, if known.
    pub pid: Option<i32>,
    /// `booting`, `booted`, `hangs` or `halted`.
    pub state: &'static str,
}

/// One worker.
#[derive(Debug, Clone, Serialize)]
pub struct WorkerReport {
    /// Its number.
    pub worker: u32,
    /// Process id, once it has said hello.
    pub pid: Option<i32>,
    /// `forking`, `starting`, `serving`, `retiring`, `draining` or `halted`.
    pub state: &'static str,
    /// Serving threads.
    pub threads: u16,
    /// Time since it was forked.
    #[serde(rename = "uptime_seconds", serialize_with = "seconds")]
    pub uptime: Duration,
}

/// A Ruby process that was asked for its heap.
#[derive(Debug)]
pub struct AskedHeap {
    /// Its number; `None` is the mold.
    pub worker: Option<u32>,
    /// Process id, if known.
    pub pid: Option<i32>,
    /// Its state, in the words of [`MoldReport`] and [`WorkerReport`].
    pub state: &'static str,
    /// Where its answer will arrive.
    pub answer: Result<HeapAnswer, NotAsked>,
}

fn seconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(time.as_secs())
}
