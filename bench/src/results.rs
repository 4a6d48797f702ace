//! All that was measured. Every report is made of this, and `--json` writes it as it is.
#![allow(missing_docs)] // where a name and its unit say all

use serde::{Deserialize, Serialize};

/// The form of the JSON, raised by every change that a reader could notice.
pub const FORMAT: u32 = 1;

/// One run of the benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// See [`FORMAT`].
    pub format: u32,
    /// What people see first, such as "Ways to deploy a Ruby application".
    pub title: String,
    /// The command line that makes it again.
    pub command: String,
    /// When it began: seconds since 1970 (UTC).
    pub started_unix: u64,
    /// How long it took, in seconds.
    pub took_seconds: f64,
    pub machine: Machine,
    pub method: Method,
    /// What was measured, in the order of the turns.
    pub schemes: Vec<SchemeInfo>,
    pub workloads: Vec<WorkloadInfo>,
    /// What was not, and why.
    pub skipped: Vec<Skipped>,
    /// Saturation: as many requests as the connections carry.
    pub samples: Vec<Sample>,
    /// The most throughput within a latency, where that was searched.
    pub bounds: Vec<Bound>,
    /// The answer in a sentence or two, where there is one question (`--app`, `--compare`).
    pub answer: Option<String>,
    /// The run was ended early.
    pub interrupted: bool,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: u32,
    pub memory_mib: u64,
    pub kernel: String,
    pub system: String,
    pub ruby: String,
}

/// How it was measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Method {
    pub rounds: u32,
    pub warm_up_seconds: f64,
    pub seconds: f64,
    /// Worker processes and threads in each that every scheme was given.
    pub workers: u32,
    pub threads: u32,
    /// The load generators and their versions.
    pub generators: Vec<String>,
}

/// A way to deploy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SchemeInfo {
    /// Its file's name without `.toml`.
    pub name: String,
    pub title: String,
    /// The server that calls the application, such as "Puma"; what a chart colours by.
    pub server: String,
    /// The program in front of it, such as "nginx".
    pub front: Option<String>,
    /// The scheme of 2006 that it is today's equivalent of.
    pub stands_for: Option<String>,
    /// Versions of all programs, such as "Puma 5.6.5, nginx 1.22.1".
    pub version: String,
    /// A floor: it runs no Ruby.
    pub floor: bool,
    /// The other release of Debian that it runs on, with its own Ruby, such as "trixie".
    #[serde(default)]
    pub release: Option<String>,
}

/// What was asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkloadInfo {
    pub name: String,
    pub title: String,
}

/// What was not measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Skipped {
    pub scheme: String,
    /// `None`: all workloads.
    pub workload: Option<String>,
    pub why: String,
    /// Debian packages that would bring what is missing.
    pub packages: Vec<String>,
}

/// The load of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub connections: u32,
    /// Open loop: the requests sent per second, whatever comes back. `None`: a connection sends its next request when
    /// it has the answer to the last.
    pub rate: Option<f64>,
    pub keep_alive: bool,
}

/// One scheme under one load in one round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    pub scheme: String,
    pub workload: String,
    pub load: Load,
    /// From 1.
    pub round: u32,
    pub requests: u64,
    pub requests_per_second: f64,
    /// CPU time of all processes of the scheme per request, in µs.
    pub cpu_user_us: f64,
    pub cpu_system_us: f64,
    pub latency: Latency,
    pub errors: Errors,
    pub memory: Memory,
    pub context_switches_per_request: f64,
    /// Where the kernel lets them be counted.
    pub system_calls_per_request: Option<f64>,
    /// From the start of its processes to its first answer.
    pub cold_start_ms: f64,
    /// Share of the machine's CPU time that the hypervisor kept, 0 to 1.
    pub stolen: f64,
    /// Share that other processes than the scheme and the load generator used, 0 to 1.
    pub others: f64,
    /// Of the workers' Ruby, where it could be asked.
    pub ruby: Option<RubyWork>,
}

/// What a request costs inside Ruby.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct RubyWork {
    pub objects_per_request: f64,
    pub gc_us_per_request: f64,
}

/// Latencies in ms.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Latency {
    pub mean: f64,
    pub deviation: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Requests that failed, by kind. A sample with any is marked, and never averaged away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// No connection.
    pub connect: u64,
    /// The connection broke before the answer was whole.
    pub reset: u64,
    /// No answer in time.
    pub time_out: u64,
    /// Another status than was expected.
    pub status: u64,
    /// A body that is too short or too long.
    pub length: u64,
    /// A body of the right length and other bytes.
    pub content: u64,
}

impl Errors {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.connect + self.reset + self.time_out + self.status + self.length + self.content
    }

    /// The errors of both.
    #[must_use]
    pub fn plus(&self, other: &Errors) -> Errors {
        Errors {
            connect: self.connect + other.connect,
            reset: self.reset + other.reset,
            time_out: self.time_out + other.time_out,
            status: self.status + other.status,
            length: self.length + other.length,
            content: self.content + other.content,
        }
    }
}

/// Memory of all processes of a scheme, in MiB.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Without the rings.
    pub private_dirty_mib: f64,
    pub pss_mib: f64,
    /// Resident pages of Highball's rings, counted once.
    pub ring_mib: f64,
    pub processes: u32,
}

impl Memory {
    /// What the processes share with no others: their private dirty pages, and the rings.
    pub fn own_mib(&self) -> f64 {
        self.private_dirty_mib + self.ring_mib
    }
}

/// The most throughput within a latency.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bound {
    pub scheme: String,
    pub workload: String,
    /// The bound, in ms.
    pub p99_ms: f64,
    /// What stayed within it; `None`: nothing did.
    pub requests_per_second: Option<f64>,
    /// Every step of the search: what was offered, and what latency came of it.
    pub steps: Vec<BoundStep>,
}

/// A step of the search for a bound.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct BoundStep {
    pub load: Load,
    pub requests_per_second: f64,
    pub p99_ms: f64,
    pub errors: u64,
}
