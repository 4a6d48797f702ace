//! What a running Highball does at this moment: its applications, their workers, and the requests that these have. One report
//! serves `highball top` and the dashboard.
//!
//! Highball makes it on demand: the front lists its requests, the supervisor its processes, and workers report what their
//! threads do. It costs no request anything. All readers within half a second get the same report.

pub(crate) mod rates;
pub(crate) mod report;
mod thread_states;
pub(crate) mod words;

use crate::configuration::Configuration;
use crate::status::kernel_limits;
use crate::status::processes::Processes;
use crate::status::reports;
use highball_config::App;
use highball_link::{
    AppProcesses, AppRequests, FrontCommand, RolloutReport, RunningRequest, RunningRequests, VersionReport,
    WorkerProcess, WorkerReport,
};
use highball_proc::process_figures;
use highball_supervisor::{Launcher, Order};
use report::{AppOverview, DiagnosisOverview, Overview, RequestOverview, TimesOverview, WorkerOverview};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub(crate) use thread_states::Key;
use thread_states::{States, ThreadStates};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Time for front and supervisor to answer.
const REPORT_TIME: Duration = Duration::from_secs(1);
/// Largest number of listed requests, in all and of each application at least.
const REQUESTS: usize = 200;
const REQUESTS_OF_APP: usize = 5;

/// What a reader wants beside the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detail {
    /// What the thread of each request does.
    pub(crate) states: bool,
    /// The backtrace of each thread.
    pub(crate) backtraces: bool,
    /// The addresses of clients.
    pub(crate) clients: bool,
}

/// Makes a report.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) configuration: Configuration,
    pub(crate) started: Instant,
    /// The front ends with its last sender.
    pub(crate) front: mpsc::WeakSender<FrontCommand>,
    pub(crate) supervisor: mpsc::WeakSender<Order>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) launcher: Launcher,
    thread_states: ThreadStates,
}

impl Observer {
    pub(crate) fn new(
        configuration: Configuration,
        started: Instant,
        front: mpsc::WeakSender<FrontCommand>,
        supervisor: mpsc::WeakSender<Order>,
        processes: Arc<Processes>,
        launcher: Launcher,
    ) -> Observer {
        let thread_states = ThreadStates::default();
        Observer { configuration, started, front, supervisor, processes, launcher, thread_states }
    }

    /// Returns everything, or `None` if the front's event loop does not answer.
    pub(crate) async fn overview(&self, detail: Detail) -> Option<Overview> {
        let front = self.front.upgrade()?;
        let front = async {
            let report = in_time(reports::of_front(front)).await?;
            Some((report, self.started.elapsed())) // rates are of this moment, however long the rest takes
        };
        let supervisor = async { in_time(reports::of_supervisor(self.supervisor.upgrade()?)).await };
        let (front, supervisor, requests) = tokio::join!(front, supervisor, self.requests());
        let ((front, counted), requests) = (front?, requests?);
        let states = if detail.states {
            self.thread_states.of(&self.supervisor, &requests).await
        } else {
            Arc::default()
        };
        let reports = supervisor.as_ref().map(|report| &*report.apps).unwrap_or_default();
        let taken = self.taken(reports).await;
        let settings = self.configuration.now();
        let limits = kernel_limits::of(&settings).await;
        let app = |load: &AppRequests| {
            let app = settings.app(load.app)?;
            let report = reports.iter().find(|report| report.id == load.app);
            let requests = requests.iter().find(|requests| requests.app == load.app);
            let requests = requests.map(|of| (of, &*states, detail));
            let phase = report.map(|report| reports::phase(report, Some(load), settings.admin.stuck_after));
            Some(AppOverview {
                phase: phase.unwrap_or("not known").into(),
                kernel_limits: limits.get(&app.id).cloned(),
                ..app_overview(app, load, report, &taken, requests)
            })
        };
        let apps: Vec<AppOverview> = front.apps.iter().filter_map(app).collect();
        let phase = match &apps[..] {
            [app] => app.phase.clone(),
            _ => supervisor.as_ref().map_or("not known", |report| &*report.server.phase).into(),
        };
        Some(Overview {
            pid: self.launcher.pid().as_raw_pid(),
            version: env!("CARGO_PKG_VERSION").into(),
            phase,
            uptime_seconds: self.started.elapsed().as_secs(),
            at_ms: counted.as_millis() as u64,
            connections: front.server.connections,
            hijacked: front.server.hijacked,
            apps,
        })
    }

    /// Returns what its worker does at a request; `None` if the worker has ended or was not asked.
    pub(crate) async fn request(&self, key: Key) -> Option<RequestOverview> {
        let requests = self.requests().await?;
        let of_app = requests.iter().find(|of| of.app == key.app)?;
        let request = of_app.oldest.iter().find(|request| Key::of(key.app, request) == Some(key))?;
        let states = self.thread_states.of(&self.supervisor, &requests).await;
        let detail = Detail { states: true, backtraces: true, clients: false };
        Some(request_overview(request, Some(key), &states, detail))
    }

    /// Returns the oldest requests of each application.
    async fn requests(&self) -> Option<Vec<RunningRequests>> {
        let most = (REQUESTS / self.configuration.now().apps.len().max(1)).max(REQUESTS_OF_APP);
        let (to, requests) = oneshot::channel();
        let listed = async {
            self.front.upgrade()?.send(FrontCommand::ListRequests { most, to }).await.ok()?;
            requests.await.ok()
        };
        in_time(listed).await
    }

    /// Returns memory and processor time of the processes. Memory is read every few seconds, because that takes the kernel
    /// milliseconds.
    async fn taken(&self, reports: &[AppProcesses]) -> BTreeMap<i32, (Option<u64>, u64)> {
        let pids: Vec<i32> =
            reports.iter().flat_map(|app| app.workers.iter().filter_map(|worker| worker.pid)).collect();
        let memory = self.processes.of(pids.clone()).await;
        let read = move || {
            let figures = pids.into_iter().filter_map(|pid| Some((pid, process_figures(pid).ok()?)));
            figures.collect::<Vec<_>>()
        };
        let figures = spawn_blocking(read).await.unwrap_or_default();
        let with_memory = figures.into_iter().map(|(pid, figures)| {
            let proportional = memory.get(&pid).and_then(|taken| taken.proportional_bytes);
            (pid, (proportional.or(Some(figures.resident_bytes)), figures.cpu_ms))
        });
        with_memory.collect()
    }
}

async fn in_time<T>(answer: impl Future<Output = Option<T>>) -> Option<T> {
    timeout(REPORT_TIME, answer).await.ok()?
}

fn app_overview(
    app: &App,
    load: &AppRequests,
    report: Option<&AppProcesses>,
    taken: &BTreeMap<i32, (Option<u64>, u64)>,
    requests: Option<(&RunningRequests, &States, Detail)>,
) -> AppOverview {
    let worker = |process: &WorkerProcess| {
        let WorkerReport { process, requests } = reports::worker(process, &load.workers);
        let taken = process.pid.and_then(|pid| taken.get(&pid));
        WorkerOverview {
            worker: process.worker,
            pid: process.pid,
            state: process.state,
            replaced_for: process.replaced_for.map(Into::into),
            generation: process.generation,
            threads: process.threads,
            in_flight: requests.in_flight + requests.placed,
            streams: requests.streams,
            served: requests.served,
            uptime_seconds: process.uptime_seconds,
            memory_bytes: taken.and_then(|(memory, _)| *memory),
            cpu_ms: taken.map(|(_, cpu_ms)| *cpu_ms),
        }
    };
    let (oldest, more) = requests.map_or((Vec::new(), 0), |(requests, states, detail)| {
        let of = |request| request_overview(request, Key::of(app.id, request), states, detail);
        (requests.oldest.iter().map(of).collect(), requests.more)
    });
    AppOverview {
        id: app.id.0,
        name: app.name.clone(),
        phase: String::new(), // set by the caller, as are the limits
        crash_loop: report.and_then(|report| Some(report.crash_loop.as_ref()?.what.clone())),
        diagnosis: report.and_then(DiagnosisOverview::of_app),
        generation: report.map_or(0, |report| report.generation),
        under_way: load
            .rollout
            .as_ref()
            .map(rollout)
            .or_else(|| report.and_then(under_way))
            .or_else(|| load.maintenance.as_ref().map(|_| "maintenance: visitors get 503".into())),
        workers_wanted: report.map_or(0, |report| report.workers_wanted),
        workers: report.map_or_else(Vec::new, |report| report.workers.iter().map(worker).collect()),
        companions: report.map_or_else(Vec::new, |report| report.companions.clone()),
        kernel_limits: None,
        hub: load.hub,
        queue: load.queue,
        answered: load.figures.requests.all(),
        errors: load.figures.requests.errors(),
        times: TimesOverview::of(&load.figures.first_byte_time),
        slow_requests: report.map_or_else(Vec::new, |report| report.slow_requests.clone()),
        requests: oldest,
        more_requests: more,
    }
}

/// `rollout: generation 3 has 5% of the visitors, and 1 of 120 requests failed, p99 12.3 ms; before: 0 of 2400, p99 11.0 ms`.
fn rollout(report: &RolloutReport) -> String {
    let p99 =
        |version: &VersionReport| version.p99_ms.map(|ms| format!(", p99 {ms:.1} ms")).unwrap_or_default();
    let RolloutReport { generation, share_percent, old, new, .. } = report;
    format!(
        "rollout: generation {generation} has {share_percent}% of the visitors, and {} of {} requests failed{}; before: {} of {}{}",
        new.errors,
        new.requests,
        p99(new),
        old.errors,
        old.requests,
        p99(old)
    )
}

/// The restart or refork that is under way: `restart: rolling`.
fn under_way(report: &AppProcesses) -> Option<String> {
    let is_open = |state: &str| !matches!(state, "done" | "failed" | "refused");
    let restart = report.restarts.last().filter(|restart| is_open(&restart.state));
    let refork = report.refork.as_ref().filter(|refork| is_open(&refork.state));
    let restart = restart.map(|restart| format!("restart: {}", restart.state));
    restart.or_else(|| refork.map(|refork| format!("refork: {}", refork.state)))
}

fn request_overview(
    request: &RunningRequest,
    key: Option<Key>,
    states: &States,
    detail: Detail,
) -> RequestOverview {
    let state = key.and_then(|key| states.get(&key));
    RequestOverview {
        worker: key.map(|key| key.worker),
        ticket: key.map(|key| key.ticket.to_string()),
        stage: request.stage.name().into(),
        method: request.method.clone(),
        path: request.path.clone(),
        client: detail.clients.then(|| request.client.clone()),
        age_ms: request.age.as_millis() as u64,
        body_bytes: request.body_bytes,
        answer_bytes: request.answer_bytes,
        doing: state.map(|state| state.doing.strip_prefix("it ").unwrap_or(&state.doing).to_owned()),
        backtrace: state.and_then(|state| state.backtrace.clone()).filter(|_| detail.backtraces),
    }
}
