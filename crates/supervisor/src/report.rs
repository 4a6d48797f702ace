//! What the supervisor tells `highball status` and `highball memory`.

use crate::control::questions::{Answer, NotAsked};
use highball_config::AppId;
use highball_link::{Booted, Diagnosis, RubyHeap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The state of the server.
#[derive(Debug, Clone)]
pub struct Report {
    /// `booting`, `serving`, `draining`…: that of the application, where there is only one.
    pub phase: &'static str,
    /// Each application.
    pub apps: Vec<AppReport>,
    /// The memory of the machine or container, once it was looked at.
    pub memory: Option<MachineMemory>,
    /// The last hot restart, or the one under way.
    pub upgrade: Option<UpgradeReport>,
    /// The process that has taken this one's place.
    pub successor: Option<i32>,
}

/// The memory that all applications share.
#[derive(Debug, Clone, Copy)]
pub struct MachineMemory {
    /// What they may have together with the server, of the memory of the machine or container.
    pub usable_bytes: u64,
    /// What they have.
    pub used_bytes: u64,
}

/// The memory of an application.
#[derive(Debug, Clone)]
pub struct MemoryReport {
    /// What its processes have together.
    pub bytes: u64,
    /// What each worker may have.
    pub worker_limit: Option<u64>,
    /// What all may have together, if it is not a part of what all applications share.
    pub budget: Option<u64>,
    /// Why workers are not replaced although a limit is exceeded, and what to do.
    pub too_small: Option<String>,
    /// Its processes that the kernel has killed for lack of memory.
    pub oom_kills: u64,
}

/// What the workers of an application had to do since the last report.
#[derive(Debug, Clone, Copy)]
pub struct ReportedLoad {
    /// Time since then.
    pub elapsed: Duration,
    /// Requests that workers had, on average.
    pub busy: f64,
    /// Requests that waited for one, on average.
    pub queue: f64,
    /// The longest time that one of them has waited so far.
    pub waited: Duration,
}

/// How the number of workers follows the load.
#[derive(Debug, Clone)]
pub struct SizingReport {
    /// Its range.
    pub min: u16,
    /// As above.
    pub max: u16,
    /// The processors that it may use, such as `cpu.max 1.5`.
    pub cpus: String,
    /// The memory of the machine or container, once it was looked at.
    pub memory: Option<u64>,
    /// The last change, such as `1 to 2: requests wait in the queue for 40 ms`, and when it was.
    pub decided: Option<(String, Duration)>,
    /// What keeps it from growing although the load would need it.
    pub hindered: Option<String>,
}

/// The state of an application.
#[derive(Debug, Clone)]
pub struct AppReport {
    /// The application's number.
    pub id: AppId,
    /// `booting`, `failed` (until it is fixed), `serving`, `asleep`, `draining` or `ending`.
    pub phase: &'static str,
    /// The framework and versions, once the application was booted.
    pub app: Option<Booted>,
    /// The folder of the version that is served.
    pub folder: PathBuf,
    /// The number of that version: 1 from the start, larger after each restart.
    pub generation: u32,
    /// The mold, if there is one right now.
    pub mold: Option<MoldReport>,
    /// Whether there is none because nothing is to be forked.
    pub mold_rests: bool,
    /// The wanted number of workers.
    pub wanted: u16,
    /// How that follows the load, if it does.
    pub sizing: Option<SizingReport>,
    /// The workers, by number.
    pub workers: Vec<WorkerReport>,
    /// Its crash loop, if there is one.
    pub crash_loop: Option<CrashLoopReport>,
    /// Workers that were replaced for a cause that lies in them, by cause: `timeout`, `unresponsive`, `memory`, `operator`.
    pub replaced: Vec<(&'static str, u64)>,
    /// Its memory.
    pub memory: MemoryReport,
    /// The last requests that exceeded their time limits in a worker, oldest first.
    pub overruns: Vec<OverrunReport>,
    /// Whether the application can be booted again; unknown until it was booted once.
    pub restartable: Option<bool>,
    /// The last restarts, the one under way, and the one that waits for it, in this order.
    pub restarts: Vec<RestartReport>,
    /// The numbers of all that have ended.
    pub restart_counts: Vec<RestartCount>,
    /// The refork that is under way, or the last one.
    pub refork: Option<ReforkReport>,
    /// Why the schedule of reforks is not followed, for as long as this version is served.
    pub no_refork: Option<String>,
    /// What failed last, if anything did since the start.
    pub last_failure: Option<String>,
    /// The last boot that failed, if one did.
    pub diagnosis: Option<Diagnosis>,
}

/// The mold.
#[derive(Debug, Clone)]
pub struct MoldReport {
    /// Process id, if known.
    pub pid: Option<i32>,
    /// `booting`, `booted`, `hangs` or `halted`.
    pub state: &'static str,
    /// The number that it had as a worker, if it was promoted.
    pub promoted_from: Option<u32>,
}

/// Workers that die soon after they were started, one after the other.
#[derive(Debug, Clone)]
pub struct CrashLoopReport {
    /// Workers that died,
    pub deaths: u32,
    /// from the first death to the last.
    pub within: Duration,
    /// The same in words, with how the last one ended.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

/// One worker.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// The worker's number.
    pub worker: u32,
    /// The version of the application that it runs.
    pub generation: u32,
    /// Process id, once it has sent `hello`.
    pub pid: Option<i32>,
    /// `forking`, `starting`, `probing`, `serving`, `retiring`, `promoting`, `draining` or
    /// `halted`.
    pub state: &'static str,
    /// Why it is replaced, if it is: `timeout`, `unresponsive`, `memory` or `operator`.
    pub replaced_for: Option<&'static str>,
    /// Serving threads.
    pub threads: u16,
    /// Its memory and that of processes that it has started, once it was looked at.
    pub memory_bytes: Option<u64>,
    /// Time since it was forked.
    pub uptime: Duration,
}

/// Restarts of a kind that have ended.
#[derive(Debug, Clone, Copy)]
pub struct RestartCount {
    /// `command`, `signal`, `configuration`, `file` or `change`.
    pub asked_by: &'static str,
    /// `done` or `failed`.
    pub outcome: &'static str,
    /// Their number.
    pub count: u64,
}

/// A restart.
#[derive(Debug, Clone)]
pub struct RestartReport {
    /// The number of the version that it brings.
    pub generation: u32,
    /// `highball restart`, `USR1` or `tmp/restart.txt`.
    pub asked_by: String,
    /// `queued`, `booting`, `probing`, `rolling`, `undoing`, `done` or `failed`.
    pub state: &'static str,
    /// How long it has taken.
    pub took: Duration,
    /// Why it failed, and what to do: several lines.
    pub failure: Option<String>,
    /// The new mold, while it is under way.
    pub mold: Option<MoldReport>,
}

/// A refork.
#[derive(Debug, Clone)]
pub struct ReforkReport {
    /// The refork's number in this process, from 1.
    pub number: u32,
    /// `highball refork`, `URG`, or the number of requests.
    pub asked_by: String,
    /// The worker that is or was promoted, once one is chosen.
    pub worker: Option<u32>,
    /// `choosing`, `asking`, `relieving`, `retiring`, `promoting`, `rolling`, `done`, `refused` or `failed`.
    pub state: &'static str,
    /// How long it has taken.
    pub took: Duration,
    /// Why it came to nothing.
    pub failure: Option<String>,
    /// The promoted mold, while it is under way.
    pub mold: Option<MoldReport>,
}

/// A hot restart.
#[derive(Debug, Clone)]
pub struct UpgradeReport {
    /// The hot restart's number in this process, from 1.
    pub number: u32,
    /// `highball upgrade` or `USR2`.
    pub asked_by: String,
    /// `queued`, `booting`, `taking over`, `done` or `failed`.
    pub state: &'static str,
    /// How long it has taken.
    pub took: Duration,
    /// The new process.
    pub pid: Option<i32>,
    /// The new version, once it has reported it.
    pub version: Option<String>,
    /// Why it failed, and what to do: several lines.
    pub failure: Option<String>,
}

/// A Ruby process that was asked for its heap.
#[derive(Debug)]
pub struct AskedHeap {
    /// The application whose process it is.
    pub app: AppId,
    /// The worker's number; `None` is the mold.
    pub worker: Option<u32>,
    /// Process id, if known.
    pub pid: Option<i32>,
    /// Its state, in the words of [`MoldReport`] and [`WorkerReport`].
    pub state: &'static str,
    /// Where its answer will arrive.
    pub answer: Result<Answer<Option<RubyHeap>>, NotAsked>,
}

/// A request that exceeded its time limit, and what its worker did at it.
#[derive(Debug, Clone)]
pub struct OverrunReport {
    /// The worker's number.
    pub worker: u32,
    /// Method and path.
    pub request: String,
    /// What the thread did, in words.
    pub doing: String,
    /// The calls that led there, innermost first, one a line; none if no Ruby code of the worker ran.
    pub backtrace: Option<String>,
    /// When that was.
    pub at: Instant,
}
