//! What front, supervisor and binary report about a server. `highball status --json` prints [`ServerReport`]; the table of
//! `highball status`, metrics, `highball top` and health checks are views of the same types.
//!
//! Each field is declared in the part of who sets its value: `*Requests` are the front's, `*Processes` the supervisor's, the rest
//! is the binary's. In JSON the parts of a report are one object. Fields that are skipped there are for other views.
//! How people read them in `highball status` is beside their declarations: `facts`, `words`, and `COLUMNS` of tables.

mod processes;
mod requests;

pub use processes::{
    AppProcesses, CompanionProcess, CrashLoopReport, MachineMemory, MemoryReport, MoldReport, OverrunReport,
    ReforkReport, RestartCount, RestartReport, ServerProcesses, SizingReport, UpgradeReport, WorkerProcess,
};
pub use requests::{
    AppRequests, Availability, CacheReport, HubReport, MaintenanceReport, RequestTimesReport, RolloutReport,
    ServerRequests, SessionsReport, VersionReport, WorkerRequests,
};

use crate::kernel_limits::KernelLimitsReport;
use crate::table::{or_dash, Column, Fact};
use highball_text::{duration, mib};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::SystemTime;

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

impl WorkerReport {
    /// The table of workers.
    pub const COLUMNS: [Column<WorkerReport>; 9] = [
        Column::new("worker", 6, |one| one.process.worker.to_string()),
        Column::new("gen", 3, |one| one.process.generation.to_string()),
        Column::new("pid", 7, |one| or_dash(one.process.pid)),
        Column::new("state", -9, |one| one.process.state.clone()),
        Column::new("threads", 8, WorkerReport::threads),
        Column::new("busy", 4, |one| one.requests.in_flight.to_string()),
        Column::new("served", 9, |one| one.requests.served.to_string()),
        Column::new("memory", 9, |one| or_dash(one.process.memory_bytes.map(mib))),
        Column::new("up", 7, |one| duration(one.process.uptime_seconds)),
    ];

    /// Its serving threads, and between which numbers that follows the requests.
    fn threads(&self) -> String {
        let WorkerRequests { threads_least, threads_most, .. } = self.requests;
        match threads_least < threads_most {
            true => format!("{}/{threads_least}..{threads_most}", self.process.threads),
            false => self.process.threads.to_string(),
        }
    }
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

impl TracesReport {
    /// For people.
    pub fn facts(&self) -> Vec<Fact> {
        let TracesReport { exported, dropped, waiting, problem } = self;
        let spans = format!("{exported} spans exported, {dropped} dropped, {waiting} waiting");
        let problem =
            problem.as_ref().map(|problem| ("", format!("the collector does not take them: {problem}")));
        [("traces", spans)].into_iter().chain(problem).collect()
    }
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

impl TlsReport {
    /// For people.
    pub fn facts(&self) -> Vec<Fact> {
        let TlsReport { handshakes, failed_handshakes, slow_handshakes, refused_handshakes, .. } = self;
        let figures = format!(
            "{handshakes} handshakes; {failed_handshakes} failed, {slow_handshakes} timed out, {refused_handshakes} turned away"
        );
        let mut facts = vec![("TLS", figures)];
        facts.extend(self.certificates.iter().map(|certificate| ("certificate", certificate.words())));
        let problem = self.problem.as_ref();
        facts.extend(problem.map(|problem| ("", format!("newer files are not used: {problem}"))));
        facts.extend(self.domains.iter().flat_map(DomainReport::facts));
        facts
    }
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

impl CertificateReport {
    fn words(&self) -> String {
        let hosts = if self.hosts.is_empty() { "no host".into() } else { self.hosts.join(" ") };
        format!("{}, for {hosts}, {}", self.file, expiry(self.expires_at, SystemTime::now()))
    }
}

/// When a certificate expires, for people.
fn expiry(at: u64, now: SystemTime) -> String {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    match at.checked_sub(now) {
        Some(left) if left >= 2 * 86400 => format!("expires in {} days", left / 86400),
        Some(left) => format!("expires in {} h", left / 3600),
        None => "has expired: renew it".into(),
    }
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

impl DomainReport {
    fn facts(&self) -> Vec<Fact> {
        let DomainReport { name, expires_at, failures, problem, remedy, .. } = self;
        let has = if expires_at.is_some() { "has a certificate" } else { "has no certificate" };
        let Some(problem) = problem else { return vec![("domain", format!("{name}: {has}"))] };
        let what = format!("{name}: {has}; {problem} (failures in a row: {failures})");
        vec![("domain", what), ("", remedy.clone().unwrap_or_default())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::AppId;

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
