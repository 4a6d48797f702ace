//! The report, as it is sent: in JSON.

use highball_link::KernelLimitsReport;
use highball_link::Times;
use serde::{Deserialize, Serialize};

/// How a server is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overview {
    pub(crate) pid: i32,
    pub(crate) version: String,
    pub(crate) phase: String,
    pub(crate) uptime_seconds: u64,
    /// The same in milliseconds: rates are differences between two reports.
    pub(crate) at_ms: u64,
    pub(crate) connections: usize,
    pub(crate) hijacked: usize,
    pub(crate) apps: Vec<AppOverview>,
}

/// An application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppOverview {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) phase: String,
    /// `32 workers died in 25 s; …`, where workers die soon after they were started.
    #[serde(default)]
    pub(crate) crash_loop: Option<String>,
    pub(crate) generation: u32,
    /// `restart: rolling`, while there is one.
    pub(crate) under_way: Option<String>,
    pub(crate) workers_wanted: u16,
    pub(crate) workers: Vec<WorkerOverview>,
    /// The limits that the kernel keeps, if it has any.
    #[serde(default)]
    pub(crate) kernel_limits: Option<KernelLimitsReport>,
    /// Requests that wait for a worker.
    pub(crate) queue: usize,
    /// Requests that were answered since the start,
    pub(crate) answered: u64,
    /// and those of them with a status from 500 on.
    pub(crate) failed: u64,
    /// Times to the first bytes of answers since the start. All are zero where requests are not measured.
    pub(crate) times: TimesOverview,
    /// The oldest requests that have no answer yet.
    pub(crate) requests: Vec<RequestOverview>,
    /// The number of all others.
    pub(crate) more_requests: usize,
}

/// A histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimesOverview {
    /// The limit of each bucket,
    pub(crate) limits_ms: Vec<f64>,
    /// and the number up to it.
    pub(crate) counts: Vec<u64>,
    /// The number of all.
    pub(crate) count: u64,
}

impl TimesOverview {
    pub(crate) fn of(times: &Times) -> TimesOverview {
        let (limits, counts): (Vec<_>, Vec<_>) = times.buckets().unzip();
        let limits_ms = limits.iter().map(|limit| limit.as_secs_f64() * 1000.0).collect();
        TimesOverview { limits_ms, counts, count: times.count() }
    }
}

/// A worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerOverview {
    pub(crate) worker: u32,
    pub(crate) pid: Option<i32>,
    pub(crate) state: String,
    /// Why it is replaced, if it is.
    pub(crate) replaced_for: Option<String>,
    pub(crate) generation: u32,
    pub(crate) threads: u16,
    /// Requests that it has.
    pub(crate) in_flight: usize,
    /// Requests that it has answered.
    pub(crate) served: u64,
    pub(crate) uptime_seconds: u64,
    /// What it shares with others is divided by their number, where that can be read; else what is resident.
    pub(crate) memory_bytes: Option<u64>,
    /// Processor time since its start.
    pub(crate) cpu_ms: Option<u64>,
}

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RequestOverview {
    /// The worker that has it,
    pub(crate) worker: Option<u32>,
    /// and the number by which the worker knows it: too long for a number of JavaScript.
    pub(crate) ticket: Option<String>,
    /// `queued`, `placed`, `running`, `answering` or `abandoned` (no client waits any more).
    pub(crate) stage: String,
    pub(crate) method: String,
    /// The path. A query is only `?…`.
    pub(crate) path: String,
    /// The address of its client, for operators who may see it.
    pub(crate) client: Option<String>,
    pub(crate) age_ms: u64,
    pub(crate) body_bytes: u64,
    /// Bytes of its answer that have come.
    pub(crate) answer_bytes: u64,
    /// What its thread does, in words: `sleeps`.
    pub(crate) doing: Option<String>,
    /// The calls that led there, innermost first, one a line.
    pub(crate) backtrace: Option<String>,
}
