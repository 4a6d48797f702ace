//! How a running server is doing, as it answers `highball status`.

use crate::status::kernel_limits::KernelLimitsStatus;
use highball_link::{Diagnosis, Tuning};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How an instance is doing; this is also what `highball status --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) pid: i32,
    pub(crate) version: String,
    /// `serving` or `draining`; with a single application, its phase.
    pub(crate) phase: String,
    pub(crate) uptime_seconds: u64,
    /// `http://127.0.0.1:3000` or `unix:/path`.
    pub(crate) binds: Vec<String>,
    pub(crate) ports: Vec<u16>,
    /// Addresses for health checks and metrics.
    #[serde(default)]
    pub(crate) admin: Vec<String>,
    /// Addresses for agent checks.
    #[serde(default)]
    pub(crate) agent_check: Vec<String>,
    /// Open client connections, hijacked ones included.
    pub(crate) connections: usize,
    /// Connections that an application has taken over (WebSockets and the like).
    pub(crate) hijacked: usize,
    /// Bytes in spool files,
    #[serde(default)]
    pub(crate) spool_bytes: u64,
    /// and the most that there may be; 0 from versions that do not report it.
    #[serde(default)]
    pub(crate) max_spool_bytes: u64,
    /// What is wrong with the folder of spool files, if something is.
    #[serde(default)]
    pub(crate) spool_problem: Option<String>,
    /// Bytes of requests and responses in memory,
    #[serde(default)]
    pub(crate) buffer_bytes: u64,
    /// and the most that there may be; 0 from versions that do not report it.
    #[serde(default)]
    pub(crate) max_buffer_bytes: u64,
    /// The memory of all applications, once it was looked at.
    #[serde(default)]
    pub(crate) memory: Option<MachineMemoryStatus>,
    /// Why the access log of the server is not written as it should be, if so.
    #[serde(default)]
    pub(crate) log_problem: Option<String>,
    /// Addresses with HTTPS; none: there are none.
    #[serde(default)]
    pub(crate) tls: Option<TlsStatus>,
    /// The last hot restart, or the one under way.
    pub(crate) upgrade: Option<UpgradeStatus>,
    /// The process that this one has succeeded by a hot restart.
    pub(crate) predecessor: Option<i32>,
    /// The process that has succeeded this one, which only finishes what it has.
    pub(crate) successor: Option<i32>,
    /// The applications, in the order in which they were configured.
    pub(crate) apps: Vec<AppStatus>,
}

/// How clients with TLS are served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TlsStatus {
    /// What clients get; the first is for those that name no host, or an unknown one.
    pub(crate) certificates: Vec<CertificateStatus>,
    /// Why newer files are not used, if so.
    pub(crate) problem: Option<String>,
    /// Handshakes since the start,
    pub(crate) handshakes: u64,
    /// and those that failed,
    pub(crate) failed_handshakes: u64,
    /// took too long,
    pub(crate) slow_handshakes: u64,
    /// or were turned away, as too many were under way.
    pub(crate) refused_handshakes: u64,
    /// Names whose certificates are obtained from an authority.
    #[serde(default)]
    pub(crate) domains: Vec<DomainStatus>,
}

/// A name whose certificate is obtained from an authority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DomainStatus {
    pub(crate) name: String,
    /// When its certificate expires: seconds since 1970; `None`: there is none.
    pub(crate) expires_at: Option<u64>,
    /// When it is renewed, or tried again.
    pub(crate) next_at: Option<u64>,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// Why the last attempt has failed, if so,
    pub(crate) problem: Option<String>,
    /// and what to do.
    pub(crate) remedy: Option<String>,
}

/// A certificate in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CertificateStatus {
    pub(crate) file: String,
    pub(crate) hosts: Vec<String>,
    /// Seconds since 1970.
    pub(crate) expires_at: u64,
}

/// The response cache of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CacheStatus {
    /// Requests that it has answered.
    pub(crate) hits: u64,
    /// Requests that went to the application.
    pub(crate) misses: u64,
    /// Stored responses.
    pub(crate) responses: usize,
    pub(crate) bytes: u64,
    pub(crate) max_bytes: u64,
}

/// How an application is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppStatus {
    /// The application's number, which no other application of this process has had.
    pub(crate) id: u32,
    pub(crate) name: String,
    /// `booting`, `failed` (until it is fixed), `serving`, `asleep`, `stuck` (its workers take no requests), `crashing` (they die
    /// soon after they were started), `draining` or `ending`.
    pub(crate) phase: String,
    /// The host names that it is reached by; none: every one.
    pub(crate) hosts: Vec<String>,
    /// The path that it is reached below; `` is none.
    pub(crate) prefix: String,
    /// Where to look at it.
    pub(crate) url: String,
    /// The link that lets a developer's browser see what went wrong, in development.
    #[serde(default)]
    pub(crate) browser_link: Option<String>,
    /// The folder of the version that is served.
    #[serde(with = "highball_text::shown")]
    pub(crate) app: PathBuf,
    /// The folder as it was given, with its symbolic links.
    #[serde(with = "highball_text::shown")]
    pub(crate) link: PathBuf,
    pub(crate) environment: String,
    /// The user that it runs as; empty from versions that do not report it.
    #[serde(default)]
    pub(crate) user: String,
    /// `Rails 6.1.7`, once the application was booted.
    pub(crate) framework: Option<String>,
    pub(crate) ruby: Option<String>,
    /// Ruby's compiler, once the application was booted.
    #[serde(default)]
    pub(crate) jit: Option<Box<Tuning>>,
    /// How Ruby collects garbage.
    #[serde(default)]
    pub(crate) gc: Option<Box<Tuning>>,
    /// What serves its malloc.
    #[serde(default)]
    pub(crate) allocator: Option<Box<Tuning>>,
    /// What its boot cache had.
    #[serde(default)]
    pub(crate) boot_cache: Option<Box<Tuning>>,
    /// The version of the application that is served: 1 from the start, larger after each restart.
    pub(crate) generation: u32,
    /// False where the application was given as an object; unknown before the first boot.
    pub(crate) restartable: Option<bool>,
    pub(crate) mold: Option<MoldStatus>,
    /// Whether there is none because nothing is to be forked.
    #[serde(default)]
    pub(crate) mold_rests: bool,
    /// How many workers there should be.
    pub(crate) workers_wanted: u16,
    /// How that follows the load, if it does.
    #[serde(default)]
    pub(crate) sizing: Option<SizingStatus>,
    pub(crate) workers: Vec<WorkerStatus>,
    /// What requests of these workers did with their time.
    #[serde(default)]
    pub(crate) request_times: RequestTimesStatus,
    /// Requests that wait for a worker.
    pub(crate) queue: usize,
    /// Bytes in its spool files.
    #[serde(default)]
    pub(crate) spool_bytes: u64,
    /// Its response cache, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheStatus>,
    /// The last restarts, the one under way, and the one that waits for it, in this order.
    pub(crate) restarts: Vec<RestartStatus>,
    /// The refork that is under way, or the last one.
    pub(crate) refork: Option<ReforkStatus>,
    /// Why the schedule of reforks is not followed, for as long as this version is served.
    pub(crate) no_refork: Option<String>,
    /// Why the application's own access log is not written as it should be, if so.
    #[serde(default)]
    pub(crate) log_problem: Option<String>,
    /// Its memory.
    #[serde(default)]
    pub(crate) memory: AppMemoryStatus,
    /// The limits that the kernel keeps, if it has any.
    #[serde(default)]
    pub(crate) kernel_limits: Option<KernelLimitsStatus>,
    /// Its crash loop, if there is one.
    #[serde(default)]
    pub(crate) crash_loop: Option<CrashLoopStatus>,
    /// The last requests that exceeded their time limits in a worker, oldest first.
    #[serde(default)]
    pub(crate) overruns: Vec<OverrunStatus>,
    /// What failed last, if anything did.
    pub(crate) last_failure: Option<String>,
    /// The last boot that failed, if one did since the start.
    pub(crate) diagnosis: Option<Diagnosis>,
}

/// Workers that die soon after they were started, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CrashLoopStatus {
    /// Workers that died,
    pub(crate) deaths: u32,
    /// from the first death to the last.
    pub(crate) seconds: u64,
    /// `32 workers died in 25 s; the last one, worker 32, exited with code 1`
    pub(crate) what: String,
    /// What to do.
    pub(crate) remedy: String,
}

/// How the number of workers follows the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SizingStatus {
    /// Its range.
    pub(crate) min: u16,
    /// As above.
    pub(crate) max: u16,
    /// The processors that it may use, such as `cpu.max 1.5`.
    pub(crate) cpus: String,
    /// The memory of the machine or container, once it was looked at.
    pub(crate) memory_bytes: Option<u64>,
    /// The last change and its reason,
    pub(crate) decided: Option<String>,
    /// and when that was.
    pub(crate) decided_seconds_ago: Option<u64>,
    /// What keeps it from growing although the load would need it.
    pub(crate) hindered: Option<String>,
}

/// What requests do with the time in which a thread is at them. The time of a few requests a second is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestTimesStatus {
    /// The requests whose time was taken.
    pub(crate) requests: u64,
    /// Their threads computed.
    pub(crate) computed_ms: u64,
    /// Other threads of the same worker computed.
    pub(crate) beside_ms: u64,
    /// They waited for something else.
    pub(crate) waited_ms: u64,
}

impl RequestTimesStatus {
    /// Of both.
    pub(crate) fn plus(self, more: RequestTimesStatus) -> RequestTimesStatus {
        RequestTimesStatus {
            requests: self.requests.saturating_add(more.requests),
            computed_ms: self.computed_ms.saturating_add(more.computed_ms),
            beside_ms: self.beside_ms.saturating_add(more.beside_ms),
            waited_ms: self.waited_ms.saturating_add(more.waited_ms),
        }
    }
}

/// The memory of an application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppMemoryStatus {
    /// What its processes have together.
    pub(crate) bytes: u64,
    /// What each worker may have.
    pub(crate) worker_limit_bytes: Option<u64>,
    /// What all may have together, if it is not a part of what all applications share.
    pub(crate) budget_bytes: Option<u64>,
    /// Why workers are not replaced although a limit is exceeded, and what to do.
    pub(crate) problem: Option<String>,
    /// Workers that were replaced for their memory.
    pub(crate) replaced: u64,
    /// Workers that the kernel has killed for lack of memory.
    pub(crate) oom_kills: u64,
}

/// The memory that all applications share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MachineMemoryStatus {
    /// What they may have together with the server, of the memory of the machine or container.
    pub(crate) usable_bytes: u64,
    /// What they have.
    pub(crate) used_bytes: u64,
}

/// A request that exceeded its time limit in a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OverrunStatus {
    pub(crate) worker: u32,
    /// Method and path.
    pub(crate) request: String,
    /// What the worker did at it.
    pub(crate) doing: String,
    /// The calls that led there, innermost first, one a line.
    pub(crate) backtrace: Option<String>,
    pub(crate) seconds_ago: u64,
}

/// The mold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MoldStatus {
    pub(crate) pid: Option<i32>,
    pub(crate) state: String,
    /// The number that it had as a worker, if it was promoted.
    pub(crate) promoted_from: Option<u32>,
}

/// A refork.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReforkStatus {
    /// The refork's number, from 1.
    pub(crate) number: u32,
    /// `highball refork`, `URG`, or a number of requests.
    pub(crate) asked_by: String,
    /// The worker that is or was promoted, once one is chosen.
    pub(crate) worker: Option<u32>,
    /// `choosing`, `asking`, `relieving`, `retiring`, `promoting`, `rolling`, `done`, `refused` or `failed`.
    pub(crate) state: String,
    /// How long it has taken.
    pub(crate) seconds: f64,
    /// Why it came to nothing.
    pub(crate) failure: Option<String>,
    /// The promoted mold, while it is under way.
    pub(crate) mold: Option<MoldStatus>,
}

/// A restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RestartStatus {
    /// The version that it brings.
    pub(crate) generation: u32,
    /// `highball restart`, `USR1` or `tmp/restart.txt`.
    pub(crate) asked_by: String,
    /// `queued`, `booting`, `probing`, `rolling`, `undoing`, `done` or `failed`.
    pub(crate) state: String,
    /// How long it has taken.
    pub(crate) seconds: f64,
    /// Why it failed, and what to do.
    pub(crate) failure: Option<String>,
    /// The new mold, while it is under way.
    pub(crate) mold: Option<MoldStatus>,
}

/// A hot restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct UpgradeStatus {
    /// The hot restart's number in this process, from 1.
    pub(crate) number: u32,
    /// `highball upgrade` or `USR2`.
    pub(crate) asked_by: String,
    /// `queued`, `booting`, `taking over`, `done` or `failed`.
    pub(crate) state: String,
    /// How long it has taken.
    pub(crate) seconds: f64,
    /// The new process.
    pub(crate) pid: Option<i32>,
    /// Its version.
    pub(crate) version: Option<String>,
    /// Why it failed, and what to do.
    pub(crate) failure: Option<String>,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerStatus {
    pub(crate) worker: u32,
    /// The version of the application that it runs.
    pub(crate) generation: u32,
    pub(crate) pid: Option<i32>,
    pub(crate) state: String,
    pub(crate) threads: u16,
    pub(crate) uptime_seconds: u64,
    /// Requests that it has begun, or that are placed ahead in its ring.
    pub(crate) in_flight: usize,
    /// Requests that it has answered.
    pub(crate) served: u64,
    /// Its memory and that of processes that it has started, once it was looked at.
    #[serde(default)]
    pub(crate) memory_bytes: Option<u64>,
}
