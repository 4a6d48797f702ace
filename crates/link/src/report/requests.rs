//! What the front reports: connections, requests, and what became of them.

use crate::figures::{Figures, RequestCounts, Times, VersionFigures};
use crate::table::Fact;
use highball_config::AppId;
use highball_ring::RequestTimes;
use highball_text::{counted, mib};
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;

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

impl ServerRequests {
    /// For people, without what is wrong with the access log.
    pub fn facts(&self) -> Vec<Fact> {
        let ServerRequests { connections, hijacked, spool_bytes, max_spool_bytes, .. } = self;
        let of = |used: u64, most: u64| format!("{} of at most {}", mib(used), mib(most));
        let mut facts = vec![("connections", format!("{connections}, {hijacked} of them hijacked"))];
        if *spool_bytes > 0 {
            facts.push(("spool files", of(*spool_bytes, *max_spool_bytes)));
        }
        facts.extend(self.spool_problem.clone().map(|problem| ("spool folder", problem)));
        if self.buffer_bytes > 1 << 20 {
            facts.push(("buffers", of(self.buffer_bytes, self.max_buffer_bytes)));
        }
        facts
    }
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

impl AppRequests {
    /// The state of the application in a word, and whether it should get requests. Without a free thread for `stuck_after`, it
    /// is stuck.
    #[must_use]
    pub fn state(&self, stuck_after: Option<Duration>) -> (&'static str, bool) {
        let is_stuck = stuck_after.is_some_and(|limit| self.busy_for >= limit);
        self.availability.state(self.has_served, is_stuck)
    }

    /// The line of its requests, for people; `streams`: answers of its workers that go on without a thread.
    pub fn load(&self, streams: usize) -> String {
        let mut text = format!("{} in the queue", self.queue);
        if streams > 0 {
            text += &format!(", {streams} streaming");
        }
        if self.spool_bytes > 0 {
            text += &format!(", {} in spool files", mib(self.spool_bytes));
        }
        text
    }

    /// For people, without what is wrong.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        facts.extend(self.cache.map(|cache| ("cache", cache.words())));
        facts.extend(self.sessions.map(|sessions| ("sessions", sessions.words())));
        facts.extend(self.hub.map(|hub| ("hub", hub.words())));
        facts
    }
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

impl MaintenanceReport {
    /// For people.
    pub fn words(&self) -> String {
        let MaintenanceReport { message, allow, problem, .. } = self;
        let message = message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
        let allowed = if allow.is_empty() { String::new() } else { format!("; {} pass", allow.join(", ")) };
        let problem =
            problem.as_ref().map(|problem| format!("\nits file is malformed: {problem}")).unwrap_or_default();
        format!("visitors get 503{message}{allowed}; highball maintenance off ends it{problem}")
    }
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

impl RolloutReport {
    /// For people; `old` is the number of the old version.
    pub fn facts(&self, old: u32) -> [Fact; 3] {
        let RolloutReport { generation, share_percent, holds, .. } = self;
        let goes_on = if *holds { "" } else { "; it is replacing the old version" };
        let rollout = format!("generation {generation} serves {share_percent}% of the visitors{goes_on}");
        let version =
            |generation, report: &VersionReport| format!("generation {generation}: {}", report.words());
        [
            ("rollout", rollout),
            ("old version", version(old, &self.old)),
            ("new version", version(*generation, &self.new)),
        ]
    }
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

impl VersionReport {
    fn words(&self) -> String {
        let VersionReport { requests, errors, p50_ms, p99_ms, .. } = self;
        let times = p50_ms.zip(*p99_ms).map(|(p50, p99)| format!("; p50 {p50:.1} ms, p99 {p99:.1} ms"));
        let (requests, errors) = (counted(*requests, "request"), counted(*errors, "error"));
        format!("{requests}, {errors}{}", times.unwrap_or_default())
    }
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

impl CacheReport {
    fn words(self) -> String {
        let CacheReport { hits, misses, responses, bytes, max_bytes } = self;
        let (used, most) = (mib(bytes), mib(max_bytes));
        let [hits, misses, responses] = [(hits, "hit"), (misses, "miss"), (responses as u64, "response")]
            .map(|(number, noun)| counted(number, noun));
        format!("{hits}, {misses}; {responses} stored, {used} of {most}")
    }
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

impl SessionsReport {
    fn words(self) -> String {
        let SessionsReport { kept, moved, begun } = self;
        let kept = counted(kept, "request");
        format!("{kept} at the worker of its session, {moved} moved, {begun} new")
    }
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

impl HubReport {
    fn words(self) -> String {
        let HubReport {
            held, cable_clients, streams, published, kept, bytes, max_bytes, slow_closed, ..
        } = self;
        let (used, most) = (mib(bytes), mib(max_bytes));
        let held = counted(held as u64, "response");
        let cables = counted(cable_clients as u64, "WebSocket");
        let streams = counted(streams as u64, "stream");
        let published = counted(published, "message");
        let slow = counted(slow_closed, "slow client");
        format!(
            "{held} and {cables} held, {streams}; {published} published, {kept} kept, {used} of {most}; {slow} disconnected"
        )
    }
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
