//! What the supervisor reports: processes, and what became of them.

use crate::boot::RubyRuntime;
use crate::diagnosis::Diagnosis;
use crate::slow_request::SlowRequestReport;
use crate::table::{ago, or_dash, Column, Fact};
use highball_config::AppId;
use highball_text::{counted, duration, gib, mib};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::PathBuf;

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

impl ServerProcesses {
    /// For people, without hot restarts.
    pub fn facts(&self) -> Vec<Fact> {
        let memory = self.memory.map(|MachineMemory { used_bytes, usable_bytes }| {
            format!("{} of {} that applications may have", mib(used_bytes), mib(usable_bytes))
        });
        memory.map(|memory| ("memory", memory)).into_iter().collect()
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

impl AppProcesses {
    /// For people, without what is wrong.
    pub fn facts(&self) -> Vec<Fact> {
        let restarts = match self.restartable {
            Some(false) => "not available: the application was given as an object",
            _ => "available",
        };
        let no_mold = if self.mold_rests { "none: it boots when another worker is needed" } else { "none" };
        let mut facts = vec![
            ("version", format!("generation {}; restarts {restarts}", self.generation)),
            ("mold", self.mold.as_ref().map_or(no_mold.into(), MoldReport::words)),
        ];
        match &self.sizing {
            Some(sizing) => facts.extend(sizing.facts(self.workers_wanted)),
            None => facts.push(("workers", format!("{} wanted", self.workers_wanted))),
        }
        facts
    }

    /// The last restart and refork, for people.
    pub fn changes(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        facts.extend(self.restarts.last().map(|restart| ("restart", restart.words())));
        facts.extend(self.refork.as_ref().map(|refork| ("refork", refork.words())));
        facts.extend(self.no_refork.as_ref().map(|why| ("reforks", format!("none of this version: {why}"))));
        facts
    }
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
    /// The table of them.
    pub const COLUMNS: [Column<CompanionProcess>; 7] = [
        Column::new("process", -16, |one| one.name.clone()),
        Column::new("gen", 3, |one| or_dash(one.generation)),
        Column::new("pid", 7, |one| or_dash(one.pid)),
        Column::new("state", -9, |one| one.state.clone()),
        Column::new("restarts", 8, |one| one.restarts.to_string()),
        Column::new("memory", 9, |one| or_dash(one.memory_bytes.map(mib))),
        Column::new("up", 7, |one| or_dash(one.uptime_seconds.map(duration))),
    ];

    /// What to do about a crash loop.
    pub const REMEDY: &'static str =
        "Look at what it printed in the log. Fix it, and restart: highball restart.";

    /// What has happened, if it is in a crash loop.
    pub fn failure(&self) -> Option<String> {
        let (ends, last) = (self.crash_loop?, self.last_end.as_deref()?);
        Some(format!("{} ended {ends} times soon after it was started; last it {last}", self.name))
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

impl MemoryReport {
    /// For people.
    pub fn facts(&self) -> Vec<Fact> {
        let MemoryReport { bytes, worker_limit_bytes, budget_bytes, problem, replaced, oom_kills } = self;
        let mut line = mib(*bytes);
        if let Some(budget) = budget_bytes {
            let _ = write!(line, " of {}", mib(*budget));
        }
        if let Some(limit) = worker_limit_bytes {
            let _ = write!(line, "; each worker at most {}", mib(*limit));
        }
        if *replaced > 0 {
            let _ = write!(line, "; {} replaced for their memory", counted(*replaced, "worker"));
        }
        if *oom_kills > 0 {
            let _ = write!(line, "; {} killed by the kernel, out of memory", counted(*oom_kills, "worker"));
        }
        let problem = problem.clone().map(|problem| ("", problem));
        [("memory", line)].into_iter().chain(problem).collect()
    }
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

impl SizingReport {
    /// How many workers there should be, and why, for people.
    fn facts(&self, wanted: u16) -> Vec<Fact> {
        let SizingReport { min, max, cpus, memory_bytes, decided, decided_seconds_ago, hindered } = self;
        let memory = memory_bytes.map(|bytes| format!(", {}", gib(bytes))).unwrap_or_default();
        let mut facts = vec![("workers", format!("{wanted} of {min}..{max}: {cpus}{memory}"))];
        if let Some(decided) = decided {
            let ago = duration(decided_seconds_ago.unwrap_or(0));
            facts.push(("", format!("{decided} ({ago} ago)")));
        }
        if let Some(hindered) = hindered {
            facts.push(("", format!("no more workers: {hindered}")));
        }
        facts
    }
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

impl MoldReport {
    fn words(&self) -> String {
        let MoldReport { pid, state, promoted_from } = self;
        let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let origin =
            promoted_from.map(|worker| format!(", promoted from worker {worker}")).unwrap_or_default();
        format!("{state}{pid}{origin}")
    }
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

impl OverrunReport {
    /// The request, and what its worker did, for people.
    pub fn words(&self) -> String {
        let OverrunReport { worker, request, doing, .. } = self;
        format!("{request}, worker {worker}: {doing}")
    }

    /// The same, with the backtrace if it is known.
    pub fn lines(&self) -> String {
        let backtrace = self.backtrace.iter().flat_map(|backtrace| backtrace.lines());
        self.words() + &backtrace.map(|line| format!("\n  {line}")).collect::<String>()
    }
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

impl RestartReport {
    fn words(&self) -> String {
        let RestartReport { generation, asked_by, state, seconds, ended_seconds_ago, .. } = self;
        format!(
            "to generation {generation} by {asked_by}: {state}, {seconds:.1} s{}",
            ago(*ended_seconds_ago)
        )
    }
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

impl ReforkReport {
    fn words(&self) -> String {
        let ReforkReport { number, asked_by, state, seconds, .. } = self;
        format!("number {number}, by {asked_by}: {state}, {seconds:.1} s")
    }
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

impl UpgradeReport {
    /// For people, without why it failed.
    pub fn words(&self) -> String {
        let UpgradeReport { asked_by, state, seconds, pid, ended_seconds_ago, .. } = self;
        let new = pid.map(|pid| format!(" (new process: pid {pid})")).unwrap_or_default();
        format!("by {asked_by}: {state}, {seconds:.1} s{new}{}", ago(*ended_seconds_ago))
    }
}
