//! Joins the supervisor and the front, which do not know each other: translates the messages of one into commands for the
//! other, and puts their two reports together.

use crate::admin::{Addresses, Token};
use crate::configuration::Configuration;
use crate::control::messages::{heap_time, Answer, Question, RubyProcess};
use crate::development::diagnosis_page;
use crate::serve::handover::{Candidate, News};
use crate::serve::readiness::Readiness;
use crate::status::kernel_limits::{self, KernelLimitsStatus};
use crate::status::overview::{Detail, Observer};
use crate::status::report::{
    AppMemoryStatus, AppStatus, CacheStatus, CertificateStatus, CrashLoopStatus, DomainStatus,
    MachineMemoryStatus, MoldStatus, OverrunStatus, ReforkStatus, RequestTimesStatus, RestartStatus,
    SizingStatus, Status, TlsStatus, UpgradeStatus, WorkerStatus,
};
use crate::status::reports;
use highball_acme::{Keeper, NameReport};
use highball_config::{App, AppId, Settings};
use highball_front::developer_key::DeveloperKey;
use highball_front::message::refusal::Refusal;
use highball_front::refusals::failure::ReceivedRequest;
use highball_front::{
    files, AppCommand, AppEvent, AppFailure, AppLoad, CacheReport, CertificateReport, Command, Event,
    Failure, NewWorker, Report as FrontReport, RequestTimes, TimedOutRequest, Tls, TlsReport,
};
use highball_link::{AssetPipeline, Assets, Diagnosis, DigestScheme, PlainAsset, RubyHeap};
use highball_supervisor::{
    AppNotice, AppOrder, AppReport, AskedHeap, CrashLoopReport, Launcher, MachineMemory, MemoryReport,
    MoldReport, NotAsked, Notice, Order, Overrun, OverrunReport, RawRequest, ReadyWorker, ReforkReport,
    ReplacementCause, Report, ReportedLoad, RequestFailure, RestartReport, SizingReport, UpgradeReport, What,
    WorkerReport,
};
use highball_text::{cut, LONGEST};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{timeout_at, Instant as Deadline};

/// Passes the supervisor's notices on to the front, until the supervisor is gone; and to a `candidate`, as long as it
/// is one.
pub(crate) async fn tell_front(
    mut notices: mpsc::Receiver<Notice>,
    front: mpsc::Sender<Command>,
    configuration: Configuration,
    mut readiness: Readiness,
    candidate: Candidate,
) {
    readiness.begin();
    while let Some(notice) = notices.recv().await {
        let command = match notice {
            Notice::OfApp(id, notice) => {
                readiness.note(id, &notice);
                let app = configuration.app(id);
                let Some(command) = command(id, notice, app.as_deref(), &candidate) else { continue };
                Command::ToApp(id, command)
            }
            Notice::HandOver { pid, kept } => {
                readiness.handed_over(pid, &kept);
                Command::HandOver { kept }
            }
            Notice::Hangup => {
                configuration.hangup.notify_one();
                Command::ReopenLogs
            }
            Notice::StoppingSoon => {
                readiness.stopping();
                Command::AnnounceStop
            }
            Notice::Drain => {
                readiness.stopping();
                Command::Drain
            }
        };
        if front.send(command).await.is_err() {
            return; // the front has ended, and with it the run
        }
    }
}

/// `None`: it is no news for the front; for an application that was removed, it makes no difference any more.
fn command(id: AppId, notice: AppNotice, app: Option<&App>, candidate: &Candidate) -> Option<AppCommand> {
    Some(match notice {
        AppNotice::Removed => {
            candidate.tell(id, News::Removed);
            return None; // the front gets it with the rest of the configuration
        }
        AppNotice::AppBooted(booted) => AppCommand::Booted {
            public: booted.public,
            headers: booted.public_headers.into_iter().collect(),
            assets: booted.assets.map(|reported| Box::new(assets(*reported))),
        },
        AppNotice::AppFailed(diagnosis) => AppCommand::Failed(AppFailure {
            development: app?.is_development().then(|| diagnosis_page::pages(&diagnosis)),
            public: diagnosis.folder.join("public"),
        }),
        AppNotice::Abandoned => AppCommand::Abandon,
        AppNotice::SiteOpened { root } => {
            candidate.tell(id, News::SiteOpened);
            AppCommand::OpenSite { root }
        }
        AppNotice::WorkerReady(ready) if candidate.begins_with(id, ready.worker) => {
            AppCommand::AddCanary(new_worker(ready))
        }
        AppNotice::WorkerReady(ready) => {
            candidate.tell(id, News::WorkerReady(ready.worker));
            AppCommand::AddWorker(new_worker(ready))
        }
        AppNotice::CanaryReady(ready) => AppCommand::AddCanary(new_worker(ready)),
        AppNotice::CanaryAdmitted { worker } => AppCommand::AdmitCanary { worker },
        AppNotice::GenerationWithdrawn { generation } => AppCommand::WithdrawGeneration { generation },
        AppNotice::NameWarmWorker { requests } => AppCommand::NameWarmWorker { requests },
        AppNotice::CrashLoop { is_on } => AppCommand::CrashLoop { is_on },
        AppNotice::SignOfLife { worker, answers, is_stopped } => {
            AppCommand::SignOfLife { worker, answers, is_stopped }
        }
        AppNotice::WorkerRetiring { worker } => {
            candidate.tell(id, News::WorkerRetires(worker));
            AppCommand::RetireWorker { worker }
        }
        AppNotice::WorkerGone { worker, killed } => {
            candidate.tell(id, News::WorkerGone(worker));
            AppCommand::RemoveWorker { worker, killed }
        }
    })
}

fn assets(assets: Assets) -> files::Assets {
    let pipeline = assets.pipeline.map(|AssetPipeline { scheme, version, folders, types, plain }| {
        let plain = plain
            .into_iter()
            .map(|(extension, PlainAsset { text, unless })| (extension, files::PlainAsset { text, unless }));
        files::AssetPipeline {
            digest: match scheme {
                DigestScheme::Sprockets => files::AssetDigest::Sprockets { version },
                DigestScheme::Propshaft => files::AssetDigest::Propshaft { version },
            },
            folders,
            types: types.into_iter().collect(),
            plain: plain.collect(),
        }
    });
    files::Assets { prefix: assets.prefix, pipeline }
}

fn new_worker(ready: ReadyWorker) -> NewWorker {
    let ReadyWorker { worker, generation, threads, ring } = ready;
    NewWorker { worker, generation, threads, ring }
}

/// Passes the front's events on to the supervisor, until the front is gone.
pub(crate) async fn tell_supervisor(
    mut events: mpsc::UnboundedReceiver<Event>,
    supervisor: mpsc::Sender<Order>,
    candidate: Candidate,
) {
    while let Some(event) = events.recv().await {
        let order = match event {
            Event::Drained => Order::FrontDrained,
            Event::OfApp(id, AppEvent::CanaryAnswered { worker, answer })
                if candidate.is_first(id, worker) =>
            {
                candidate.tell(id, News::FirstAnswered(worker, answer));
                continue;
            }
            Event::OfApp(id, event) => Order::ToApp(id, order(event)),
        };
        if supervisor.send(order).await.is_err() {
            return; // the supervisor has ended, and with it the run
        }
    }
}

fn overrun_status(report: OverrunReport) -> OverrunStatus {
    let OverrunReport { worker, request, doing, backtrace, at } = report;
    OverrunStatus { worker, request, doing, backtrace, seconds_ago: at.elapsed().as_secs() }
}

fn order(event: AppEvent) -> AppOrder {
    match event {
        AppEvent::Wanted => AppOrder::Wanted,
        AppEvent::PagesWanted(failure, to) => {
            let (answer, diagnosis) = oneshot::channel();
            tokio::spawn(async move {
                if let Ok(diagnosis) = diagnosis.await {
                    let _ = to.send(diagnosis_page::pages(&diagnosis)); // the one who asked may have lost patience
                }
            });
            AppOrder::Diagnose(Box::new(request_failure(*failure)), answer)
        }
        AppEvent::Idle => AppOrder::Idle,
        AppEvent::Drained => AppOrder::Drained,
        AppEvent::WorkerBroken { worker, why } => AppOrder::WorkerBroken { worker, why },
        AppEvent::RingEndsSoon { worker } => AppOrder::RingEndsSoon { worker },
        AppEvent::Load(load) => {
            let highball_front::ReportedLoad { elapsed, busy, queue, waited } = load;
            AppOrder::Load(ReportedLoad { elapsed, busy, queue, waited })
        }
        AppEvent::RequestTimedOut(request) => {
            let TimedOutRequest { worker, ticket, request } = *request;
            AppOrder::RequestTimedOut(Overrun { worker, ticket, request })
        }
        AppEvent::WorkerStuck { worker } => {
            AppOrder::ReplaceWorker { worker, cause: ReplacementCause::TimedOut }
        }
        AppEvent::WorkerUnresponsive { worker } => {
            AppOrder::ReplaceWorker { worker, cause: ReplacementCause::Unresponsive }
        }
        AppEvent::WorkerIdle { worker, is_stuck } => AppOrder::WorkerIdle { worker, is_stuck },
        AppEvent::WorkerWarm { worker } => AppOrder::WorkerWarm { worker },
        AppEvent::CanaryAnswered { worker, answer } => AppOrder::CanaryAnswered { worker, answer },
    }
}

fn request_failure(failure: Failure) -> RequestFailure {
    let Failure { refusal, exception, repeated, load, request, request_id: _ } = failure; // the id is among the fields
    let what = match refusal {
        Refusal::AppRaised => What::Raised(exception),
        Refusal::WorkerDied { worker } => What::WorkerDied { worker },
        Refusal::BadResponse { why } => What::BadAnswer { why },
        Refusal::QueueFull { .. } => {
            What::QueueFull { waiting: load.waiting, oldest: load.oldest, workers: load.workers }
        }
        Refusal::WorkerTimeout { worker } => What::TimedOut { worker },
        other => What::Other(other.why()),
    };
    let ReceivedRequest { method, target, fields, body } = request;
    let request = RawRequest { method, target, fields, body };
    RequestFailure { status: refusal.status(), what, repeated, request }
}

/// Answers `highball status`, `highball restart`, `highball refork`, `highball stop`, `highball memory` and `highball top`.
#[derive(Debug)]
pub(crate) struct ControlHandler {
    pub(crate) configuration: Configuration,
    pub(crate) started: Instant,
    pub(crate) binds: Vec<String>,
    pub(crate) key: Arc<DeveloperKey>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) keeper: Option<Keeper>,
    pub(crate) ports: Vec<u16>,
    /// Addresses for health checks and agent checks.
    pub(crate) admin: Arc<Addresses>,
    /// The process that this one has succeeded.
    pub(crate) predecessor: Option<i32>,
    pub(crate) supervisor: mpsc::Sender<Order>,
    pub(crate) front: mpsc::Sender<Command>,
    pub(crate) launcher: Launcher,
    pub(crate) observer: Arc<Observer>,
    /// The token of the dashboard.
    pub(crate) token: Arc<Token>,
}

impl ControlHandler {
    /// The public process id of Highball.
    fn pid(&self) -> i32 {
        self.launcher.pid().as_raw_pid()
    }

    /// `None` when the run is ending and the parts to ask are gone.
    pub(crate) async fn respond(&self, question: Question) -> Option<Answer> {
        match question {
            Question::Stop => {
                self.supervisor.send(Order::Stop).await.ok()?;
                let settings = self.configuration.now();
                let drain_seconds = (settings.drain_grace + settings.drain_timeout).as_secs();
                Some(Answer::Stopping { pid: self.pid(), drain_seconds })
            }
            Question::Restart { app } => {
                let asked = self.ask(|to| Order::ToApp(AppId(app), AppOrder::Restart(to))).await?;
                Some(match asked {
                    Ok(generation) => Answer::Restarting { pid: self.pid(), generation },
                    Err(why) => Answer::Refused { why },
                })
            }
            Question::Refork { app } => {
                let asked = self.ask(|to| Order::ToApp(AppId(app), AppOrder::Refork(to))).await?;
                Some(match asked {
                    Ok(number) => Answer::Reforking { pid: self.pid(), number },
                    Err(why) => Answer::Refused { why },
                })
            }
            Question::Upgrade => Some(match self.ask(Order::Upgrade).await? {
                Ok(number) => Answer::Upgrading { pid: self.pid(), number },
                Err(why) => Answer::Refused { why },
            }),
            Question::Status => Some(Answer::Status(Box::new(self.status().await?))),
            Question::Memory { gc } => Some(Answer::Memory { ruby: self.ruby_processes(gc).await? }),
            Question::Overview { states } => {
                let detail = Detail { states, backtraces: true, clients: true };
                Some(Answer::Overview(Box::new(self.observer.overview(detail).await?)))
            }
            Question::Act { app, action } => {
                Some(match action.perform(AppId(app), &self.supervisor).await? {
                    Ok(what) => Answer::Begun { what },
                    Err(why) => Answer::Refused { why },
                })
            }
            Question::DashboardToken => {
                let token = self.token.for_operators(&self.configuration.now());
                Some(Answer::DashboardToken { token })
            }
        }
    }

    /// Gives an order that is answered with a number, or with why it is not followed.
    async fn ask(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<u32, String>>) -> Order,
    ) -> Option<Result<u32, String>> {
        let (to, answer) = oneshot::channel();
        self.supervisor.send(order(to)).await.ok()?;
        answer.await.ok()
    }

    async fn status(&self) -> Option<Status> {
        let processes = reports::of_supervisor(self.supervisor.clone());
        let (processes, requests) = tokio::join!(processes, reports::of_front(self.front.clone()));
        let settings = self.configuration.now();
        let limits = kernel_limits::of(&settings).await;
        Some(self.together(&settings, processes?, &requests?, &limits))
    }

    /// All processes are asked at once and have the same time, however many they are.
    async fn ruby_processes(&self, gc: bool) -> Option<Vec<RubyProcess>> {
        let deadline = Deadline::now() + heap_time(gc);
        let (to, asked) = oneshot::channel();
        self.supervisor.send(Order::AskHeaps { gc, to }).await.ok()?;
        let mut processes = Vec::new();
        for AskedHeap { app, worker, pid, state, answer } in asked.await.ok()? {
            let heap = match answer {
                Err(why) => Err(not_asked(why, state)),
                Ok(answer) => match timeout_at(deadline, answer).await {
                    Ok(answer) => heap_answer(answer.ok()),
                    Err(_) => Err(format!("did not answer within {} s", heap_time(gc).as_secs())),
                },
            };
            processes.push(RubyProcess { app: app.0, worker, pid, state: state.into(), heap });
        }
        Some(processes)
    }

    fn together(
        &self,
        settings: &Settings,
        processes: Report,
        requests: &FrontReport,
        limits: &BTreeMap<AppId, KernelLimitsStatus>,
    ) -> Status {
        let app = |report: AppReport| {
            let app = settings.apps.iter().find(|app| app.id == report.id)?;
            let requests = requests.apps.iter().find(|requests| requests.app == report.id);
            let kernel_limits = limits.get(&app.id).cloned();
            let phase = reports::phase(&report, requests, settings.admin.stuck_after).into();
            let status = app_status(app, report, requests, (&self.binds, &self.key), &self.launcher);
            Some(AppStatus { phase, kernel_limits, ..status })
        };
        let phase = processes.phase;
        let apps: Vec<AppStatus> = processes.apps.into_iter().filter_map(app).collect();
        Status {
            pid: self.pid(),
            version: env!("CARGO_PKG_VERSION").into(),
            phase: if let [app] = &apps[..] { app.phase.clone() } else { phase.into() },
            uptime_seconds: self.started.elapsed().as_secs(),
            binds: self.binds.clone(),
            ports: self.ports.clone(),
            admin: self.admin.health.clone(),
            agent_check: self.admin.of_agents(),
            connections: requests.connections,
            hijacked: requests.hijacked,
            spool_bytes: requests.spool_bytes,
            max_spool_bytes: requests.max_spool_bytes,
            spool_problem: requests.spool_problem.clone(),
            buffer_bytes: requests.buffer_bytes,
            max_buffer_bytes: requests.max_buffer_bytes,
            log_problem: requests.log_problem.clone(),
            tls: self.tls.as_ref().map(|tls| tls_status(tls.report(), self.keeper.as_ref())),
            memory: processes.memory.map(machine_memory_status),
            upgrade: processes.upgrade.map(upgrade_status),
            predecessor: self.predecessor,
            successor: processes.successor,
            apps,
        }
    }
}

fn tls_status(report: TlsReport, keeper: Option<&Keeper>) -> TlsStatus {
    let TlsReport { certificates, problem, completed, failed, timed_out, refused } = report;
    let certificate =
        |CertificateReport { file, hosts, expires_at, .. }| CertificateStatus { file, hosts, expires_at };
    TlsStatus {
        certificates: certificates.into_iter().map(certificate).collect(),
        problem,
        handshakes: completed,
        failed_handshakes: failed,
        slow_handshakes: timed_out,
        refused_handshakes: refused,
        domains: keeper.map(Keeper::report).unwrap_or_default().into_iter().map(domain_status).collect(),
    }
}

fn domain_status(report: NameReport) -> DomainStatus {
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (problem, remedy) = report.problem.unzip();
    DomainStatus {
        name: report.host,
        expires_at: report.expires.map(seconds),
        next_at: report.next.map(seconds),
        failures: report.failures,
        problem,
        remedy,
    }
}

fn app_status(
    app: &App,
    report: AppReport,
    requests: Option<&AppLoad>,
    (binds, key): (&[String], &DeveloperKey),
    launcher: &Launcher,
) -> AppStatus {
    let none = Vec::new();
    let load = requests.map_or(&none, |requests| &requests.workers);
    AppStatus {
        id: app.id.0,
        name: app.name.clone(),
        phase: String::new(), // put together from both reports
        hosts: app.hosts.clone(),
        prefix: app.prefix.clone(),
        url: crate::serve::readiness::url(app, binds),
        browser_link: crate::serve::readiness::browser_link(app, binds, key),
        app: report.folder,
        link: app.link.clone(),
        environment: app.environment.clone(),
        user: user(app, launcher),
        framework: report.app.as_ref().map(|app| app.framework.clone()),
        jit: report.app.as_ref().and_then(|app| app.jit.clone()),
        gc: report.app.as_ref().and_then(|app| app.gc.clone()),
        allocator: report.app.as_ref().and_then(|app| app.allocator.clone()),
        boot_cache: report.app.as_ref().and_then(|app| app.boot_cache.clone()),
        ruby: report.app.and_then(|app| app.ruby),
        generation: report.generation,
        restartable: report.restartable,
        mold: report.mold.map(mold_status),
        mold_rests: report.mold_rests,
        workers_wanted: report.wanted,
        sizing: report.sizing.map(sizing_status),
        workers: report.workers.iter().map(|worker| worker_status(worker, load)).collect(),
        request_times: request_times(load),
        queue: requests.map_or(0, |requests| requests.queue),
        spool_bytes: requests.map_or(0, |requests| requests.spool_bytes),
        cache: requests.and_then(|requests| requests.cache).map(cache_status),
        restarts: report.restarts.into_iter().map(restart_status).collect(),
        refork: report.refork.map(refork_status),
        no_refork: report.no_refork.map(short),
        log_problem: requests.and_then(|requests| requests.log_problem.clone()),
        memory: memory_status(report.memory, &report.replaced),
        kernel_limits: None, // read aside
        crash_loop: report.crash_loop.map(crash_loop_status),
        overruns: report.overruns.into_iter().map(overrun_status).collect(),
        last_failure: report.last_failure.map(short),
        diagnosis: report.diagnosis.map(shortened),
    }
}

fn crash_loop_status(report: CrashLoopReport) -> CrashLoopStatus {
    let CrashLoopReport { deaths, within, what, remedy } = report;
    CrashLoopStatus { deaths, seconds: within.as_secs(), what, remedy: remedy.into() }
}

/// What an application says may be long: all applications share one answer.
fn short(text: String) -> String {
    cut(&text, LONGEST).into_owned()
}

fn shortened(mut diagnosis: Diagnosis) -> Diagnosis {
    for error in std::iter::once(&mut diagnosis.error).chain(&mut diagnosis.causes) {
        error.message = short(std::mem::take(&mut error.message));
    }
    diagnosis
}

fn sizing_status(report: SizingReport) -> SizingStatus {
    let SizingReport { min, max, cpus, memory, decided, hindered } = report;
    let (decided, decided_at) = decided.unzip();
    let decided_seconds_ago = decided_at.map(|ago| ago.as_secs());
    SizingStatus { min, max, cpus, memory_bytes: memory, decided, decided_seconds_ago, hindered }
}

fn machine_memory_status(memory: MachineMemory) -> MachineMemoryStatus {
    let MachineMemory { usable_bytes, used_bytes } = memory;
    MachineMemoryStatus { usable_bytes, used_bytes }
}

fn memory_status(memory: MemoryReport, replaced: &[(&'static str, u64)]) -> AppMemoryStatus {
    let MemoryReport { bytes, worker_limit, budget, too_small, oom_kills } = memory;
    AppMemoryStatus {
        bytes,
        worker_limit_bytes: worker_limit,
        budget_bytes: budget,
        problem: too_small,
        replaced: replaced.iter().filter(|(cause, _)| *cause == "memory").map(|(_, count)| count).sum(),
        oom_kills,
    }
}

fn cache_status(cache: CacheReport) -> CacheStatus {
    let CacheReport { hits, misses, answers, bytes, max_bytes } = cache;
    CacheStatus { hits, misses, responses: answers, bytes, max_bytes }
}

/// The name of the user that it runs as.
fn user(app: &App, launcher: &Launcher) -> String {
    let starter = match launcher {
        Launcher::Direct => rustix::process::geteuid().as_raw(),
        Launcher::Spawner(_) => 0,
    };
    let own = || highball_users::name_of(starter).unwrap_or_default();
    app.runs_as.another().map_or_else(own, |user| user.name.clone())
}

/// What the supervisor knows of a worker, and what the front does, if it knows it at all.
fn worker_status(worker: &WorkerReport, load: &[highball_front::WorkerReport]) -> WorkerStatus {
    let load = load.iter().find(|load| load.worker == worker.worker);
    WorkerStatus {
        worker: worker.worker,
        generation: worker.generation,
        pid: worker.pid,
        state: reports::worker_state(worker, load.is_some_and(|load| load.is_stuck)).into(),
        threads: worker.threads,
        memory_bytes: worker.memory_bytes,
        uptime_seconds: worker.uptime.as_secs(),
        in_flight: load.map_or(0, |load| load.in_flight),
        served: load.map_or(0, |load| load.served),
    }
}

/// Of all workers that there are.
fn request_times(load: &[highball_front::WorkerReport]) -> RequestTimesStatus {
    let RequestTimes { requests, computed_us, beside_us, waited_us } =
        load.iter().fold(RequestTimes::default(), |sum, worker| sum + worker.times);
    let ms = |us: u64| us / 1000;
    RequestTimesStatus {
        requests,
        computed_ms: ms(computed_us),
        beside_ms: ms(beside_us),
        waited_ms: ms(waited_us),
    }
}

fn mold_status(mold: MoldReport) -> MoldStatus {
    MoldStatus { pid: mold.pid, state: mold.state.into(), promoted_from: mold.promoted_from }
}

fn restart_status(restart: RestartReport) -> RestartStatus {
    RestartStatus {
        generation: restart.generation,
        asked_by: restart.asked_by,
        state: restart.state.into(),
        seconds: restart.took.as_secs_f64(),
        failure: restart.failure.map(short),
        mold: restart.mold.map(mold_status),
    }
}

fn refork_status(refork: ReforkReport) -> ReforkStatus {
    ReforkStatus {
        number: refork.number,
        asked_by: refork.asked_by,
        worker: refork.worker,
        state: refork.state.into(),
        seconds: refork.took.as_secs_f64(),
        failure: refork.failure.map(short),
        mold: refork.mold.map(mold_status),
    }
}

fn upgrade_status(upgrade: UpgradeReport) -> UpgradeStatus {
    UpgradeStatus {
        number: upgrade.number,
        asked_by: upgrade.asked_by,
        state: upgrade.state.into(),
        seconds: upgrade.took.as_secs_f64(),
        pid: upgrade.pid,
        version: upgrade.version,
        failure: upgrade.failure.map(short),
    }
}

fn not_asked(why: NotAsked, state: &str) -> String {
    match why {
        NotAsked::NotServing => format!("was not asked, as it is {state}"),
        NotAsked::Busy => "did not answer earlier questions".into(),
        NotAsked::Unreachable => "could not be asked".into(),
    }
}

/// The answer of a process; `None` when it ended instead.
fn heap_answer(answer: Option<Option<RubyHeap>>) -> Result<RubyHeap, String> {
    let heap = answer.ok_or("ended before it answered")?;
    Ok(heap.ok_or("its garbage collector does not report it")?)
}
