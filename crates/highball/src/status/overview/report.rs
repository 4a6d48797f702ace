//! The report, as it is sent: in JSON.

use highball_link::{
    AppProcesses, CompanionProcess, CrashLoopReport, Diagnosis, HubReport, KernelLimitsReport, RestartReport,
    SlowRequestReport, Times,
};
use highball_text::{cut, LONGEST};
use serde::{Deserialize, Serialize};

/// The cause of a failure, where processes end soon after they were started.
const CRASH_LOOP: &str = "crash_loop";

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
    /// Why its last boot failed, unless a later one has succeeded.
    #[serde(default)]
    pub(crate) diagnosis: Option<DiagnosisOverview>,
    pub(crate) generation: u32,
    /// `restart: rolling`, while there is one; how a rollout goes; or that maintenance is on.
    pub(crate) under_way: Option<String>,
    pub(crate) workers_wanted: u16,
    pub(crate) workers: Vec<WorkerOverview>,
    /// The processes that run beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "processes")]
    pub(crate) companions: Vec<CompanionProcess>,
    /// Its hard limits, if it has any.
    #[serde(default)]
    pub(crate) kernel_limits: Option<KernelLimitsReport>,
    /// Its held responses and WebSockets, and the messages for them, once it has had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hub: Option<HubReport>,
    /// Requests that wait for a worker.
    pub(crate) queue: usize,
    /// Requests that were answered since the start.
    pub(crate) answered: u64,
    /// Requests that were answered with a status of 500 or more since the start.
    #[serde(rename = "failed")]
    pub(crate) errors: u64,
    /// Times to the first bytes of answers since the start. All are zero where requests are not measured.
    pub(crate) times: TimesOverview,
    /// The newest slow requests, oldest first.
    #[serde(default)]
    pub(crate) slow_requests: Vec<SlowRequestReport>,
    /// The oldest requests that have no answer yet.
    pub(crate) requests: Vec<RequestOverview>,
    /// The number of all others.
    pub(crate) more_requests: usize,
}

impl AppOverview {
    /// Whether somebody should look at it.
    pub(crate) fn has_failed(&self) -> bool {
        self.diagnosis.is_some() || matches!(&*self.phase, "failed" | "crashing" | "stuck")
    }

    /// Its hub, if that has clients or messages now.
    pub(crate) fn hub_in_use(&self) -> Option<&HubReport> {
        self.hub.as_ref().filter(|hub| hub.held + hub.cable_clients + hub.streams > 0)
    }

    /// Messages that were published since the start.
    pub(crate) fn published(&self) -> u64 {
        self.hub.as_ref().map_or(0, |hub| hub.published)
    }
}

impl Overview {
    /// The applications, those first that have failed.
    pub(crate) fn failed_first(&self) -> Vec<&AppOverview> {
        let (failed, others): (Vec<_>, Vec<_>) = self.apps.iter().partition(|app| app.has_failed());
        [failed, others].concat()
    }

    /// The state of the server, in words, and whether something has failed.
    pub(crate) fn headline(&self) -> (String, bool) {
        let failed = self.apps.iter().filter(|app| app.has_failed()).count();
        match (failed, self.apps.len()) {
            (0, _) => (self.phase.clone(), false),
            (_, 1) if self.phase == "serving" => {
                let diagnosis = self.apps[0].diagnosis.as_ref();
                // Its workers serve, so it is a process beside them.
                let is_crash_loop = diagnosis.is_some_and(|diagnosis| diagnosis.cause == CRASH_LOOP);
                let what =
                    if is_crash_loop { "a process is in a crash loop" } else { "the last restart failed" };
                (format!("serving, but {what}"), true)
            }
            (_, 1) => (self.phase.clone(), true),
            (failed, all) => (format!("{failed} of {all} applications failing"), true),
        }
    }
}

/// Why a boot failed, in what an operator needs to begin with. `highball status` has the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiagnosisOverview {
    /// The short name of the cause: `missing_gem`.
    pub(crate) cause: String,
    /// `loading the app failed: …`, in one sentence.
    pub(crate) summary: String,
    /// The place that the error points to: `config.ru:7`.
    pub(crate) place: Option<String>,
    /// The lines around it.
    pub(crate) source: Option<String>,
    /// What to do.
    pub(crate) remedy: Option<String>,
    /// The command that does it, to be run in the application's folder.
    pub(crate) command: Option<String>,
}

impl DiagnosisOverview {
    /// What is wrong with an application at this moment: it did not boot, its workers die, its last restart
    /// failed, or a process beside its workers is in a crash loop.
    pub(crate) fn of_app(report: &AppProcesses) -> Option<DiagnosisOverview> {
        let restart = report.restarts.last().filter(|restart| restart.state == "failed");
        let diagnosis = report.diagnosis.as_ref().map(DiagnosisOverview::of);
        if let Some(CrashLoopReport { what, remedy, .. }) = &report.crash_loop {
            let (summary, remedy) = (what.clone(), Some(remedy.clone()));
            return Some(DiagnosisOverview { cause: CRASH_LOOP.into(), summary, remedy, ..Self::default() });
        }
        match (&*report.phase, restart) {
            ("failed", _) => diagnosis,
            (_, Some(RestartReport { generation, failure, .. })) => {
                let failure = failure.as_deref().unwrap_or("no reason is known");
                let what = failure.lines().next().unwrap_or_default();
                let summary = format!("the restart to generation {generation} failed: {what}");
                let is_of_it = |diagnosis: &Self| failure.contains(&*diagnosis.summary);
                Some(Self { summary, ..diagnosis.filter(is_of_it).unwrap_or_default() })
            }
            _ => Self::of_companions(&report.companions),
        }
    }

    /// The first crash loop of a process beside the workers.
    fn of_companions(companions: &[CompanionProcess]) -> Option<DiagnosisOverview> {
        let summary = companions.iter().find_map(CompanionProcess::failure)?;
        let remedy = Some(CompanionProcess::REMEDY.into());
        Some(DiagnosisOverview { cause: CRASH_LOOP.into(), summary, remedy, ..Self::default() })
    }

    fn of(diagnosis: &Diagnosis) -> DiagnosisOverview {
        let Diagnosis { cause, remedy, command, .. } = diagnosis;
        DiagnosisOverview {
            cause: cause.clone(),
            summary: cut(&diagnosis.summary(), LONGEST).into_owned(),
            place: diagnosis.error.place(),
            source: diagnosis.source(),
            remedy: remedy.clone(),
            command: command.clone(),
        }
    }
}

/// A histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimesOverview {
    /// The limit of each bucket.
    pub(crate) limits_ms: Vec<f64>,
    /// The number of times up to each limit.
    pub(crate) counts: Vec<u64>,
    /// The number of all.
    pub(crate) count: u64,
}

impl TimesOverview {
    pub(crate) fn of(times: &Times) -> TimesOverview {
        let (limits, counts): (Vec<_>, Vec<_>) = times.fine_buckets().unzip();
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
    /// Requests whose answers go on without a thread of its pool.
    #[serde(default)]
    pub(crate) streams: usize,
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
    /// The worker that has the request.
    pub(crate) worker: Option<u32>,
    /// The number by which the worker knows the request: a text, because it is too long for a number of JavaScript.
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
