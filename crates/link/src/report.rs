//! What front, supervisor and binary report about a server. `highball status --json` prints [`ServerReport`]; the table of
//! `highball status`, metrics, `highball top` and health checks are views of the same types.
//!
//! Each field is declared in the part of who sets its value: `*Requests` are the front's, `*Processes` the supervisor's, the rest
//! is the binary's. In JSON the parts of a report are one object. Fields that are skipped there are for other views.

use crate::boot::RubyRuntime;
use crate::diagnosis::Diagnosis;
use crate::figures::{Figures, RequestCounts, Times, VersionFigures};
use crate::kernel_limits::KernelLimitsReport;
use crate::slow_request::SlowRequestReport;
use highball_config::AppId;
use highball_ring::RequestTimes;
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::path::PathBuf;
use std::time::Duration;

/// How a server is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Process id: that by which users know the server.
    pub pid: i32,
    /// The version of Highball.
    pub version: String,
    /// Time since the start, in seconds.
    pub uptime_seconds: u64,
    /// Addresses for clients: `http://127.0.0.1:3000` or `unix:/path`.
    pub binds: Vec<String>,
    /// The TCP ports of these.
    pub ports: Vec<u16>,
    /// Addresses for health checks and metrics.
    #[serde(default)]
    pub admin: Vec<String>,
    /// Addresses for agent checks.
    #[serde(default)]
    pub agent_check: Vec<String>,
    /// What the front reports.
    #[serde(flatten)]
    pub requests: ServerRequests,
    /// What the supervisor reports.
    #[serde(flatten)]
    pub processes: ServerProcesses,
    /// TLS; `None`: no address is an HTTPS address.
    #[serde(default)]
    pub tls: Option<TlsReport>,
    /// Traces of requests; `None`: no collector is named.
    #[serde(default)]
    pub traces: Option<TracesReport>,
    /// The process that this one has succeeded in a hot restart.
    pub predecessor: Option<i32>,
    /// The applications, in the order of the configuration.
    pub apps: Vec<AppReport>,
}

/// What the front reports.
#[derive(Debug, Clone, Default)]
pub struct FrontReport {
    /// About the server.
    pub server: ServerRequests,
    /// About each application, without removed ones that have finished.
    pub apps: Vec<AppRequests>,
}

/// What the supervisor reports.
#[derive(Debug, Clone)]
pub struct SupervisorReport {
    /// About the server.
    pub server: ServerProcesses,
    /// About each application.
    pub apps: Vec<AppProcesses>,
}

/// The connections of a server, and what their requests take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerRequests {
    /// Open client connections, hijacked ones included.
    pub connections: usize,
    /// Connections that applications have taken over, such as WebSockets.
    pub hijacked: usize,
    /// Size of the spool files, in bytes.
    #[serde(default)]
    pub spool_bytes: u64,
    /// Limit on that; 0 from versions that do not report it.
    #[serde(default)]
    pub max_spool_bytes: u64,
    /// What is wrong with the folder of spool files, if something is.
    #[serde(default)]
    pub spool_problem: Option<String>,
    /// Requests and answers in memory, in bytes.
    #[serde(default)]
    pub buffer_bytes: u64,
    /// Limit on that; 0 from versions that do not report it.
    #[serde(default)]
    pub max_buffer_bytes: u64,
    /// Why the server's access log is not written as it should be, if so.
    #[serde(default)]
    pub log_problem: Option<String>,
    /// Whether the server stops, or will soon, and no other serves in its place.
    #[serde(skip)]
    pub is_stopping: bool,
    /// Whether the server accepts connections. It does so also while it will stop soon.
    #[serde(skip)]
    pub accepts: bool,
    /// Client connections since the start.
    #[serde(skip)]
    pub accepted: u64,
    /// Requests for no application, and unreadable ones.
    #[serde(skip)]
    pub unrouted: RequestCounts,
}

/// The processes of a server that belong to no application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerProcesses {
    /// `serving` or `draining`; with a single application, its phase.
    pub phase: String,
    /// The memory of all applications, once measured.
    #[serde(default)]
    pub memory: Option<MachineMemory>,
    /// The last hot restart, or the one under way.
    pub upgrade: Option<UpgradeReport>,
    /// The process that has succeeded this one, which only finishes its requests.
    pub successor: Option<i32>,
}

/// How an application is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AppReport {
    /// Its name in the configuration.
    pub name: String,
    /// The host names that it is reached by; none: every one.
    pub hosts: Vec<String>,
    /// The path that it is reached below; empty: all paths.
    pub prefix: String,
    /// Where to look at it.
    pub url: String,
    /// In development, the link that lets a browser see what went wrong.
    #[serde(default)]
    pub browser_link: Option<String>,
    /// The folder as it was given, with its symbolic links.
    #[serde(with = "highball_text::shown")]
    pub link: PathBuf,
    /// The file that is there during maintenance.
    #[serde(with = "highball_text::shown", default)]
    pub maintenance_file: PathBuf,
    /// `production`, `development`…
    pub environment: String,
    /// The user that it runs as; empty from versions that do not report it.
    #[serde(default)]
    pub user: String,
    /// What the front reports.
    #[serde(flatten)]
    pub requests: AppRequests,
    /// What the supervisor reports.
    #[serde(flatten)]
    pub processes: AppProcesses,
    /// The workers, by number.
    pub workers: Vec<WorkerReport>,
    /// The hard limits, if there are any.
    #[serde(default)]
    pub kernel_limits: Option<KernelLimitsReport>,
}

/// The requests of an application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AppRequests {
    /// The application's number.
    #[serde(skip)]
    pub app: AppId,
    /// Requests that wait for a worker.
    pub queue: usize,
    /// Size of its spool files, in bytes.
    #[serde(default)]
    pub spool_bytes: u64,
    /// Its response cache, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheReport>,
    /// Its real-time hub, if it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubReport>,
    /// Requests of sessions that stay with their workers, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsReport>,
    /// Its rollout, if one is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutReport>,
    /// How its workers' threads have spent their time with requests.
    #[serde(default)]
    pub request_times: RequestTimesReport,
    /// Why its own access log is not written as it should be, if so.
    #[serde(default)]
    pub log_problem: Option<String>,
    /// Maintenance, if its visitors get a page instead of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceReport>,
    /// Whether it answers.
    #[serde(skip)]
    pub availability: Availability,
    /// Whether it has answered, or could have, since the start.
    #[serde(skip)]
    pub has_served: bool,
    /// Time since it last had a worker with a free thread, or ended an answer; zero, if it has one.
    #[serde(skip)]
    pub busy_for: Duration,
    /// Its workers.
    #[serde(skip)]
    pub workers: Vec<WorkerRequests>,
    /// What was counted since the start.
    #[serde(skip)]
    pub figures: Figures,
}

/// Maintenance of an application: its visitors get a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceReport {
    /// Message on the page, if there is one.
    pub message: Option<String>,
    /// When it was switched on, in milliseconds since 1970; 0: not known.
    pub since_ms: u64,
    /// When they are asked to come back.
    pub retry_after_seconds: u32,
    /// Clients that reach the application.
    pub allow: Vec<String>,
    /// What is wrong with the file, if something is.
    pub problem: Option<String>,
}

/// A rollout that is under way: some visitors get the new version, the others the old one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutReport {
    /// The number of the new version.
    pub generation: u32,
    /// Its share of the visitors, in percent.
    pub share_percent: f64,
    /// Whether all other visitors get the old version: not while the new one takes its place.
    pub holds: bool,
    /// Requests of visitors of the old version since the rollout began.
    pub old: VersionReport,
    /// Requests of visitors of the new version since then.
    pub new: VersionReport,
}

/// The requests of one version in a rollout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionReport {
    /// Requests for its workers.
    pub requests: u64,
    /// Requests that were answered with a status of 500 or more.
    pub errors: u64,
    /// Half of the answers began within this time, in milliseconds. None before the first answer.
    pub p50_ms: Option<f64>,
    /// 99% of them did.
    pub p99_ms: Option<f64>,
    /// The same, in full.
    #[serde(skip)]
    pub figures: VersionFigures,
}

impl From<&VersionFigures> for VersionReport {
    fn from(figures: &VersionFigures) -> VersionReport {
        // A time that is beyond all limits is reported as the largest one.
        let most = Duration::from_secs(66);
        let quantile = |share| {
            let time = figures.first_byte_time.quantile_since(&Times::default(), share)?;
            Some(time.min(most).as_secs_f64() * 1000.0)
        };
        VersionReport {
            requests: figures.requests,
            errors: figures.errors,
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            figures: figures.clone(),
        }
    }
}

/// The processes of an application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AppProcesses {
    /// The application's number, which no other application of this process has had.
    pub id: AppId,
    /// `booting`, `failed` (until it is fixed), `serving`, `asleep`, `stuck` (its workers take no requests), `crashing` (they
    /// die soon after they were started), `draining` or `ending`.
    pub phase: String,
    /// The folder of the version that is served.
    #[serde(rename = "app", with = "highball_text::shown")]
    pub folder: PathBuf,
    /// `Rails 6.1.7`, once booted.
    pub framework: Option<String>,
    /// Its Ruby, once booted.
    #[serde(flatten)]
    pub runtime: RubyRuntime,
    /// The number of the version that is served: 1 from the start, larger after each restart.
    pub generation: u32,
    /// Whether it can be booted again: not if it was given as an object. Unknown before the first boot.
    pub restartable: Option<bool>,
    /// The mold, if there is one.
    pub mold: Option<MoldReport>,
    /// Whether there is no mold because nothing is to be forked.
    #[serde(default)]
    pub mold_rests: bool,
    /// The wanted number of workers.
    pub workers_wanted: u16,
    /// How that follows the load, if it does.
    #[serde(default)]
    pub sizing: Option<SizingReport>,
    /// The last restarts, the restart under way, and the waiting one, in this order.
    pub restarts: Vec<RestartReport>,
    /// The refork under way, or the last one.
    pub refork: Option<ReforkReport>,
    /// Why the schedule of reforks is not followed, for as long as this version is served.
    pub no_refork: Option<String>,
    /// Its memory.
    #[serde(default)]
    pub memory: MemoryReport,
    /// Its crash loop, if there is one.
    #[serde(default)]
    pub crash_loop: Option<CrashLoopReport>,
    /// The last requests that exceeded their time limits in a worker, oldest first.
    #[serde(default)]
    pub overruns: Vec<OverrunReport>,
    /// The newest slow requests, oldest first.
    #[serde(default)]
    pub slow_requests: Vec<SlowRequestReport>,
    /// What failed last, if anything did since the start.
    pub last_failure: Option<String>,
    /// Time since then, in seconds.
    #[serde(default)]
    pub last_failure_seconds_ago: Option<u64>,
    /// The last boot that failed, if one did since the start.
    pub diagnosis: Option<Diagnosis>,
    /// Its workers, by number.
    #[serde(skip)]
    pub workers: Vec<WorkerProcess>,
    /// The processes that run beside the workers.
    #[serde(default, rename = "processes")]
    pub companions: Vec<CompanionProcess>,
    /// Workers that were replaced for a cause that lies in them, by cause: `timeout`, `unresponsive`, `memory`, `operator`.
    #[serde(skip)]
    pub replaced: Vec<(&'static str, u64)>,
    /// The numbers of restarts that have ended.
    #[serde(skip)]
    pub restart_counts: Vec<RestartCount>,
}

/// A worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// What the supervisor reports.
    #[serde(flatten)]
    pub process: WorkerProcess,
    /// What the front reports.
    #[serde(flatten)]
    pub requests: WorkerRequests,
}

/// The process of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerProcess {
    /// The worker's number.
    pub worker: u32,
    /// The version of the application that it runs.
    pub generation: u32,
    /// Process id, once the worker has reported it.
    pub pid: Option<i32>,
    /// `forking`, `starting`, `probing`, `serving`, `stuck` (it takes no requests), `retiring`, `promoting`, `draining` or
    /// `halted`.
    pub state: String,
    /// Serving threads.
    pub threads: u16,
    /// Time since it was forked, in seconds.
    pub uptime_seconds: u64,
    /// The memory of it and of the processes that it has started, in bytes, once measured.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Why it is replaced, if it is: `timeout`, `unresponsive`, `memory` or `operator`.
    #[serde(skip)]
    pub replaced_for: Option<&'static str>,
}

/// A process that runs beside the workers of an application (`[[process]]`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CompanionProcess {
    /// Its name in the configuration; where there are several copies, with the number of the copy: `jobs.2`.
    pub name: String,
    /// `starting`, `running`, `stopping`, `halted`, `waiting` (until it starts) or `ended` (until the next version starts it).
    pub state: String,
    /// The version of the application that it belongs to, while there is a process.
    pub generation: Option<u32>,
    /// Process id, once it runs.
    pub pid: Option<i32>,
    /// Time since it was started, in seconds, while there is a process.
    pub uptime_seconds: Option<u64>,
    /// The memory of it and of the processes that it has started, in bytes, once measured.
    pub memory_bytes: Option<u64>,
    /// How often it was started again after it had ended unasked.
    pub restarts: u64,
    /// Ends in a row soon after it was started, if it is in a crash loop.
    pub crash_loop: Option<u32>,
    /// How it ended last unasked, if it did.
    pub last_end: Option<String>,
    /// Time since then, in seconds.
    pub last_end_seconds_ago: Option<u64>,
}

impl CompanionProcess {
    /// What to do about a crash loop.
    pub const REMEDY: &'static str =
        "Look at what it printed in the log. Fix it, and restart: highball restart.";

    /// What has happened, if it is in a crash loop.
    pub fn failure(&self) -> Option<String> {
        let (ends, last) = (self.crash_loop?, self.last_end.as_deref()?);
        Some(format!("{} ended {ends} times soon after it was started; last it {last}", self.name))
    }
}

/// The requests of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerRequests {
    /// The worker's number.
    #[serde(skip)]
    pub worker: u32,
    /// Requests that it has begun.
    pub in_flight: usize,
    /// Requests whose answers go on without a thread of its pool; 0 from versions that do not report it.
    #[serde(default)]
    pub streams: usize,
    /// Requests that it has answered.
    pub served: u64,
    /// Requests that were placed in its ring, and that it has not begun.
    #[serde(skip)]
    pub placed: usize,
    /// Serving threads.
    #[serde(skip)]
    pub threads: usize,
    /// The smallest number of threads.
    #[serde(default)]
    pub threads_least: usize,
    /// The largest number of threads.
    #[serde(default)]
    pub threads_most: usize,
    /// Where that is a range, what keeps it from having more of them: `demand` (no request waits for one), `computing`, `pool`,
    /// `pool_wait`, `system` or `limit`.
    #[serde(default)]
    pub threads_kept_by: Option<String>,
    /// Whether it gets requests of clients, and begins them; in a crash loop, it has lived for longer than others.
    #[serde(skip)]
    pub serves: bool,
    /// Whether it gets requests, and does not begin them.
    #[serde(skip)]
    pub is_stuck: bool,
}

/// Whether an application answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Availability {
    /// A worker takes requests, and begins them.
    Serving,
    /// Its workers die soon after they were started, and none has lived for longer.
    Crashing,
    /// Its workers do not begin the requests that they are given.
    Stuck,
    /// It boots, and will serve or fail.
    #[default]
    Booting,
    /// It did not boot.
    Failed,
    /// The next request boots it.
    Asleep,
}

impl Availability {
    /// The state of an application in a word, and whether it should get requests. `has_served`: it has come up before;
    /// `is_stuck`: it has had no free thread for long.
    #[must_use]
    pub fn state(self, has_served: bool, is_stuck: bool) -> (&'static str, bool) {
        match self {
            Availability::Booting if !has_served => ("booting", false),
            Availability::Failed => ("failed", false),
            Availability::Crashing => ("crashing", false),
            Availability::Stuck => ("stuck", false),
            Availability::Serving | Availability::Booting if is_stuck => ("stuck", false),
            Availability::Serving => ("serving", true),
            // Its workers are being replaced; requests wait meanwhile.
            Availability::Booting => ("booting", true),
            Availability::Asleep => ("asleep", true),
        }
    }
}

impl AppRequests {
    /// The state of the application in a word, and whether it should get requests. Without a free thread for `stuck_after`, it
    /// is stuck.
    #[must_use]
    pub fn state(&self, stuck_after: Option<Duration>) -> (&'static str, bool) {
        let is_stuck = stuck_after.is_some_and(|limit| self.busy_for >= limit);
        self.availability.state(self.has_served, is_stuck)
    }
}

/// The response cache of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Requests that it has answered.
    pub hits: u64,
    /// Requests that went to the application.
    pub misses: u64,
    /// Stored responses.
    pub responses: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Limit on that.
    pub max_bytes: u64,
}

/// What became of the requests of sessions that stay with their workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsReport {
    /// Requests for the worker of their session.
    pub kept: u64,
    /// Requests whose worker had ended, or was not known.
    pub moved: u64,
    /// Requests that began a session.
    pub begun: u64,
}

/// The real-time hub of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubReport {
    /// Held responses.
    pub held: usize,
    /// Held WebSockets of Action Cable.
    #[serde(default)]
    pub cable_clients: usize,
    /// Questions about them that workers got.
    #[serde(default)]
    pub cable_commands: u64,
    /// Streams of messages that have subscribers or kept messages.
    pub streams: usize,
    /// Messages that were published.
    pub published: u64,
    /// Messages that are kept.
    pub kept: usize,
    /// Memory of streams and kept messages, in bytes.
    pub bytes: u64,
    /// Limit on that.
    pub max_bytes: u64,
    /// Held responses and WebSockets that were closed because their clients fell too far behind.
    pub slow_closed: u64,
}

/// How threads have spent their time with requests. Measured for a few requests a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTimesReport {
    /// The requests that were measured.
    pub requests: u64,
    /// Their threads computed, in ms.
    pub computed_ms: u64,
    /// Other threads of the same worker computed, in ms.
    pub beside_ms: u64,
    /// They waited for something else, in ms.
    pub waited_ms: u64,
}

impl From<RequestTimes> for RequestTimesReport {
    fn from(times: RequestTimes) -> RequestTimesReport {
        let RequestTimes { requests, computed_us, beside_us, waited_us } = times;
        let [computed_ms, beside_ms, waited_ms] = [computed_us, beside_us, waited_us].map(|us| us / 1000);
        RequestTimesReport { requests, computed_ms, beside_ms, waited_ms }
    }
}

impl Add for RequestTimesReport {
    type Output = RequestTimesReport;

    fn add(self, more: RequestTimesReport) -> RequestTimesReport {
        RequestTimesReport {
            requests: self.requests.saturating_add(more.requests),
            computed_ms: self.computed_ms.saturating_add(more.computed_ms),
            beside_ms: self.beside_ms.saturating_add(more.beside_ms),
            waited_ms: self.waited_ms.saturating_add(more.waited_ms),
        }
    }
}

/// The memory that all applications share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MachineMemory {
    /// Limit for applications and server together, of the memory of the machine or container, in bytes.
    pub usable_bytes: u64,
    /// Memory of the applications, in bytes.
    pub used_bytes: u64,
}

/// The memory of an application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// Memory of its processes together, in bytes.
    pub bytes: u64,
    /// Limit for each worker, in bytes.
    pub worker_limit_bytes: Option<u64>,
    /// Limit for all its processes together, in bytes, unless it is a part of what all applications share.
    pub budget_bytes: Option<u64>,
    /// Why workers are not replaced although a limit is exceeded, and what to do.
    pub problem: Option<String>,
    /// Workers that were replaced for their memory.
    pub replaced: u64,
    /// Processes that the kernel has killed for lack of memory.
    pub oom_kills: u64,
}

/// How the number of workers follows the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizingReport {
    /// The fewest workers.
    pub min: u16,
    /// The most workers.
    pub max: u16,
    /// The CPUs that it may use: `cpu.max 1.5`.
    pub cpus: String,
    /// Memory of the machine or container, in bytes, once measured.
    pub memory_bytes: Option<u64>,
    /// The last change: `1 to 2: requests wait in the queue for 40 ms`.
    pub decided: Option<String>,
    /// Time since then, in seconds.
    pub decided_seconds_ago: Option<u64>,
    /// What keeps it from growing although the load needs it.
    pub hindered: Option<String>,
}

/// The mold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoldReport {
    /// Process id, if known.
    pub pid: Option<i32>,
    /// `booting`, `booted`, `hangs` or `halted`.
    pub state: String,
    /// The number that it had as a worker, if it was promoted.
    pub promoted_from: Option<u32>,
}

/// A crash loop: workers that die soon after they were started, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashLoopReport {
    /// Workers that died.
    pub deaths: u32,
    /// Time from the first death to the last, in seconds.
    pub seconds: u64,
    /// `32 workers died in 25 s; the last one, worker 32, exited with code 1`
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// A request that exceeded its time limit, and what its worker did with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverrunReport {
    /// The worker's number.
    pub worker: u32,
    /// Method and path.
    pub request: String,
    /// What the thread did, in words.
    pub doing: String,
    /// The calls that led there, innermost first, one a line; `None`: no Ruby code of the worker ran.
    pub backtrace: Option<String>,
    /// Time since then, in seconds.
    pub seconds_ago: u64,
}

/// A restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestartReport {
    /// The number of the version that it brings.
    pub generation: u32,
    /// `highball restart`, `highball rollout`, `USR1` or `tmp/restart.txt`.
    pub asked_by: String,
    /// `queued`, `booting`, `probing`, `holding`, `rolling`, `undoing`, `done`, `failed` or `undone`.
    pub state: String,
    /// How long it has taken, in seconds.
    pub seconds: f64,
    /// Why it failed, and what to do: several lines.
    pub failure: Option<String>,
    /// The new mold, while it is under way.
    pub mold: Option<MoldReport>,
    /// Time since it ended, in seconds.
    #[serde(default)]
    pub ended_seconds_ago: Option<u64>,
}

/// Restarts of one kind that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartCount {
    /// `command`, `signal`, `configuration`, `file`, `change` or `rollout`.
    pub asked_by: &'static str,
    /// `done`, `failed` or `undone`.
    pub outcome: &'static str,
    /// Their number.
    pub count: u64,
}

/// A refork.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReforkReport {
    /// The refork's number in this process, from 1.
    pub number: u32,
    /// `highball refork`, `URG`, or a number of requests.
    pub asked_by: String,
    /// The worker that is or was promoted, once chosen.
    pub worker: Option<u32>,
    /// `choosing`, `asking`, `relieving`, `retiring`, `promoting`, `rolling`, `done`, `refused` or `failed`.
    pub state: String,
    /// How long it has taken, in seconds.
    pub seconds: f64,
    /// Why it came to nothing.
    pub failure: Option<String>,
    /// The promoted mold, while it is under way.
    pub mold: Option<MoldReport>,
}

/// A hot restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpgradeReport {
    /// The hot restart's number in this process, from 1.
    pub number: u32,
    /// `highball upgrade` or `USR2`.
    pub asked_by: String,
    /// `queued`, `booting`, `taking over`, `done` or `failed`.
    pub state: String,
    /// How long it has taken, in seconds.
    pub seconds: f64,
    /// The new process.
    pub pid: Option<i32>,
    /// The new version, once reported.
    pub version: Option<String>,
    /// Why it failed, and what to do: several lines.
    pub failure: Option<String>,
    /// Time since it ended, in seconds.
    #[serde(default)]
    pub ended_seconds_ago: Option<u64>,
}

/// What has become of the spans of requests since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TracesReport {
    /// Spans that the collector has.
    pub exported: u64,
    /// Lost ones: the collector has not taken them in time.
    pub dropped: u64,
    /// Spans that wait to be exported.
    pub waiting: u64,
    /// Why the collector did not take the last ones, if so.
    pub problem: Option<String>,
}

/// How clients with TLS are served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsReport {
    /// The certificates. Clients that name no host, or an unknown one, get the first.
    pub certificates: Vec<CertificateReport>,
    /// Why newer files are not used, if so.
    pub problem: Option<String>,
    /// Handshakes since the start that were completed.
    pub handshakes: u64,
    /// Failed handshakes.
    pub failed_handshakes: u64,
    /// Handshakes that took too long.
    pub slow_handshakes: u64,
    /// Handshakes that were turned away because too many were under way.
    pub refused_handshakes: u64,
    /// The names whose certificates come from an authority.
    #[serde(default)]
    pub domains: Vec<DomainReport>,
}

/// A certificate in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertificateReport {
    /// Its file.
    pub file: String,
    /// The host names that it is for.
    pub hosts: Vec<String>,
    /// When it expires, in seconds since 1970.
    pub expires_at: u64,
}

/// A name whose certificate comes from an authority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DomainReport {
    /// The host name.
    pub name: String,
    /// When its certificate expires, in seconds since 1970; `None`: there is none.
    pub expires_at: Option<u64>,
    /// When it is renewed, or the next attempt is made, in seconds since 1970.
    pub next_at: Option<u64>,
    /// Failures in a row.
    pub failures: u32,
    /// Why the last attempt failed, if so.
    pub problem: Option<String>,
    /// What to do about that.
    pub remedy: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an answer had before any field came to be optional.
    const OLDEST: &str = r#"{"pid":7,"version":"0.1.0","phase":"serving","uptime_seconds":1,"binds":[],"ports":[],"connections":2,
        "hijacked":0,"upgrade":null,"predecessor":null,"successor":null,"apps":[{"id":1,"name":"blog","phase":"serving",
        "hosts":[],"prefix":"","url":"","app":"/srv/blog","link":"/srv/blog","environment":"production","framework":"Rack",
        "ruby":"3.1.2","generation":3,"restartable":true,"mold":null,"workers_wanted":1,"workers":[{"worker":4,"generation":3,
        "pid":8,"state":"serving","threads":5,"uptime_seconds":1,"in_flight":1,"served":6}],"queue":2,"restarts":[],
        "refork":null,"no_refork":null,"last_failure":null,"diagnosis":null}]}"#;

    #[test]
    fn the_answer_of_an_old_server_can_be_read() {
        let report: ServerReport = serde_json::from_str(OLDEST).unwrap();
        let [app] = &report.apps[..] else { panic!("one application") };
        let [worker] = &app.workers[..] else { panic!("one worker") };
        assert_eq!((report.requests.connections, report.processes.phase.as_str()), (2, "serving"));
        assert_eq!((app.processes.id, app.requests.queue), (AppId(1), 2));
        assert_eq!(app.processes.runtime.ruby.as_deref(), Some("3.1.2"));
        assert_eq!((worker.process.pid, worker.requests.served), (Some(8), 6));
    }

    #[test]
    fn the_parts_of_a_report_are_one_object_in_json() {
        let report: ServerReport = serde_json::from_str(OLDEST).unwrap();
        let json: serde_json::Value = serde_json::to_value(&report).unwrap();
        let app = &json["apps"][0];
        assert_eq!((&json["connections"], &json["phase"]), (&2.into(), &"serving".into()));
        assert_eq!(
            (&app["queue"], &app["app"], app["jit"].is_null()),
            (&2.into(), &"/srv/blog".into(), true)
        );
        assert_eq!(app["workers"][0]["in_flight"], 1);
        assert_eq!(serde_json::from_value::<ServerReport>(json).unwrap(), report);
    }
}
