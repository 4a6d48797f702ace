//! Joins the supervisor and the front, which do not know each other: passes on what one says as what the other
//! is told, and puts their two reports together.

use crate::diagnosis_page;
use crate::instance::{
    heap_time, Answer, MoldStatus, Question, ReforkStatus, RestartStatus, RubyProcess, Status, UpgradeStatus,
    WorkerStatus,
};
use crate::service_notification::notify;
use crate::succession::{Candidate, News};
use highball_config::{App, Settings};
use highball_front::{AppCommand, AppEvent, AppReport, Command, Event, NewWorker, Report as FrontReport};
use highball_supervisor::{
    AskedHeap, MoldReport, NotAsked, Notice, Order, ReadyWorker, ReforkReport, Report, RestartReport,
    RubyHeap, UpgradeReport, WorkerReport,
};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{timeout_at, Instant as Deadline};
use tracing::info;

/// Tells the front what the supervisor says, until the supervisor is gone; and a `candidate`, as long as it is one.
pub(crate) async fn tell_front(
    mut notices: mpsc::Receiver<Notice>,
    front: mpsc::Sender<Command>,
    binds: Vec<String>,
    app: Arc<App>,
    candidate: Candidate,
) {
    let mut serving = candidate.is_one(); // that is said elsewhere then
    let mut failed = false;
    while let Some(notice) = notices.recv().await {
        if !serving && matches!(notice, Notice::WorkerReady(_) | Notice::SiteOpened { .. }) {
            serving = true;
            info!(pid = std::process::id(), "serving on {}", binds.join(" "));
            notify("READY=1");
        }
        if let Notice::HandOver { pid, .. } = notice {
            notify(&format!("MAINPID={pid}\nREADY=1"));
        }
        if !failed && !serving && matches!(notice, Notice::AppFailed(_)) {
            failed = true;
            info!("mend it and reload {}: the application then boots again", binds.join(" "));
        }
        if front.send(command(notice, &app, &candidate)).await.is_err() {
            return; // the front has ended, and with it the run
        }
    }
}

fn command(notice: Notice, app: &App, candidate: &Candidate) -> Command {
    let probe_path = || app.process.probe_path.clone();
    let command = match notice {
        Notice::AppBooted(booted) => {
            let headers = booted.public_headers.into_iter().collect();
            AppCommand::Booted { public: booted.public, headers }
        }
        Notice::AppFailed(diagnosis) => AppCommand::Failed(diagnosis_page::pages(&diagnosis, app)),
        Notice::SiteOpened { root } => {
            candidate.tell(News::SiteOpened);
            AppCommand::OpenSite { root }
        }
        Notice::WorkerReady(ready) if candidate.begins_with(ready.worker) => {
            AppCommand::AddCanary(new_worker(ready), probe_path())
        }
        Notice::WorkerReady(ready) => {
            candidate.tell(News::WorkerReady(ready.worker));
            AppCommand::AddWorker(new_worker(ready))
        }
        Notice::CanaryReady(ready) => AppCommand::AddCanary(new_worker(ready), probe_path()),
        Notice::CanaryAdmitted { worker } => AppCommand::AdmitCanary { worker },
        Notice::GenerationWithdrawn { generation } => AppCommand::WithdrawGeneration { generation },
        Notice::NameWarmWorker { requests } => AppCommand::NameWarmWorker { requests },
        Notice::WorkerRetiring { worker } => AppCommand::RetireWorker { worker },
        Notice::WorkerGone { worker } => {
            candidate.tell(News::WorkerGone(worker));
            AppCommand::RemoveWorker { worker }
        }
        Notice::HandOver { kept, .. } => return Command::HandOver { kept },
        Notice::ReopenLogs => return Command::ReopenLogs,
        Notice::Drain => return Command::Drain,
    };
    Command::ToApp(app.id, command)
}

fn new_worker(ready: ReadyWorker) -> NewWorker {
    let ReadyWorker { worker, generation, threads, ring } = ready;
    NewWorker { worker, generation, threads, ring }
}

/// Tells the supervisor what the front says, until the front is gone.
pub(crate) async fn tell_supervisor(
    mut events: mpsc::UnboundedReceiver<Event>,
    supervisor: mpsc::Sender<Order>,
    candidate: Candidate,
) {
    while let Some(event) = events.recv().await {
        let order = match event {
            Event::Drained => Order::FrontDrained,
            Event::OfApp(_, AppEvent::Wanted) => Order::AppWanted,
            Event::OfApp(_, AppEvent::WorkerBroken { worker, why }) => Order::WorkerBroken { worker, why },
            Event::OfApp(_, AppEvent::WorkerIdle { worker }) => Order::WorkerIdle { worker },
            Event::OfApp(_, AppEvent::WorkerWarm { worker }) => Order::WorkerWarm { worker },
            Event::OfApp(_, AppEvent::CanaryAnswered { worker, answer }) if candidate.is_first(worker) => {
                candidate.tell(News::FirstAnswered(worker, answer));
                continue;
            }
            Event::OfApp(_, AppEvent::CanaryAnswered { worker, answer }) => {
                Order::CanaryAnswered { worker, answer }
            }
            Event::OfApp(_, AppEvent::Idle | AppEvent::Drained) => continue,
        };
        if supervisor.send(order).await.is_err() {
            return; // the supervisor has ended, and with it the run
        }
    }
}

/// Answers `highball status`, `highball restart`, `highball refork`, `highball stop` and `highball memory`.
#[derive(Debug)]
pub(crate) struct Spokesman {
    pub(crate) settings: Arc<Settings>,
    pub(crate) app: Arc<App>,
    pub(crate) started: Instant,
    pub(crate) binds: Vec<String>,
    pub(crate) ports: Vec<u16>,
    /// The process that this one has succeeded.
    pub(crate) predecessor: Option<i32>,
    pub(crate) supervisor: mpsc::Sender<Order>,
    pub(crate) front: mpsc::Sender<Command>,
}

impl Spokesman {
    /// `None` when the run is ending and nobody is left to ask.
    pub(crate) async fn respond(&self, question: Question) -> Option<Answer> {
        match question {
            Question::Stop => {
                self.supervisor.send(Order::Stop).await.ok()?;
                let drain_seconds = self.settings.drain_timeout.as_secs();
                Some(Answer::Stopping { pid: pid(), drain_seconds })
            }
            Question::Restart => {
                let (to, answer) = oneshot::channel();
                self.supervisor.send(Order::Restart(to)).await.ok()?;
                Some(match answer.await.ok()? {
                    Ok(generation) => Answer::Restarting { pid: pid(), generation },
                    Err(why) => Answer::Refused { why },
                })
            }
            Question::Refork => {
                let (to, answer) = oneshot::channel();
                self.supervisor.send(Order::Refork(to)).await.ok()?;
                Some(match answer.await.ok()? {
                    Ok(number) => Answer::Reforking { pid: pid(), number },
                    Err(why) => Answer::Refused { why },
                })
            }
            Question::Upgrade => {
                let (to, answer) = oneshot::channel();
                self.supervisor.send(Order::Upgrade(to)).await.ok()?;
                Some(match answer.await.ok()? {
                    Ok(number) => Answer::Upgrading { pid: pid(), number },
                    Err(why) => Answer::Refused { why },
                })
            }
            Question::Status => Some(Answer::Status(Box::new(self.status().await?))),
            Question::Memory { gc } => Some(Answer::Memory { ruby: self.ruby_processes(gc).await? }),
        }
    }

    async fn status(&self) -> Option<Status> {
        let (to, processes) = oneshot::channel();
        self.supervisor.send(Order::Report(to)).await.ok()?;
        let (to, requests) = oneshot::channel();
        self.front.send(Command::Report(to)).await.ok()?;
        let (processes, requests) = (processes.await.ok()?, requests.await.ok()?);
        Some(self.together(processes, &requests))
    }

    /// All processes are asked at once and have the same time, however many they are.
    async fn ruby_processes(&self, gc: bool) -> Option<Vec<RubyProcess>> {
        let deadline = Deadline::now() + heap_time(gc);
        let (to, asked) = oneshot::channel();
        self.supervisor.send(Order::AskHeaps { gc, to }).await.ok()?;
        let mut processes = Vec::new();
        for AskedHeap { worker, pid, state, answer } in asked.await.ok()? {
            let heap = match answer {
                Err(why) => Err(not_asked(why, state)),
                Ok(answer) => match timeout_at(deadline, answer).await {
                    Ok(told) => heap_told(told.ok()),
                    Err(_) => Err(format!("did not answer within {} s", heap_time(gc).as_secs())),
                },
            };
            processes.push(RubyProcess { worker, pid, state: state.into(), heap });
        }
        Some(processes)
    }

    fn together(&self, processes: Report, requests: &FrontReport) -> Status {
        let app = requests.apps.iter().find(|app| app.app == self.app.id);
        let workers = processes.workers.iter().map(|worker| worker_status(worker, app)).collect();
        Status {
            pid: pid(),
            version: env!("CARGO_PKG_VERSION").into(),
            phase: processes.phase.into(),
            uptime_seconds: self.started.elapsed().as_secs(),
            app: processes.folder,
            environment: self.app.environment.clone(),
            framework: processes.app.as_ref().map(|app| app.framework.clone()),
            ruby: processes.app.and_then(|app| app.ruby),
            binds: self.binds.clone(),
            ports: self.ports.clone(),
            generation: processes.generation,
            restartable: processes.restartable,
            mold: processes.mold.map(mold_status),
            workers_wanted: processes.wanted,
            workers,
            restarts: processes.restarts.into_iter().map(restart_status).collect(),
            queue: app.map_or(0, |app| app.queue),
            connections: requests.connections,
            hijacked: requests.hijacked,
            refork: processes.refork.map(refork_status),
            no_refork: processes.no_refork,
            upgrade: processes.upgrade.map(upgrade_status),
            predecessor: self.predecessor,
            successor: processes.successor,
            last_failure: processes.last_failure,
            diagnosis: processes.diagnosis,
        }
    }
}

/// What the supervisor knows of a worker, and what the front does, if it knows it at all.
fn worker_status(worker: &WorkerReport, app: Option<&AppReport>) -> WorkerStatus {
    let load = app.and_then(|app| app.workers.iter().find(|load| load.worker == worker.worker));
    WorkerStatus {
        worker: worker.worker,
        generation: worker.generation,
        pid: worker.pid,
        state: worker.state.into(),
        threads: worker.threads,
        uptime_seconds: worker.uptime.as_secs(),
        in_flight: load.map_or(0, |load| load.in_flight),
        served: load.map_or(0, |load| load.served),
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
        failure: restart.failure,
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
        failure: refork.failure,
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
        failure: upgrade.failure,
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
fn heap_told(told: Option<Option<RubyHeap>>) -> Result<RubyHeap, String> {
    let heap = told.ok_or("ended before it answered")?;
    Ok(heap.ok_or("its garbage collector does not tell")?)
}

fn pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
