//! Joins the supervisor and the front, which do not know each other: passes commands and events on, and puts their two reports
//! together.

use crate::admin::{Addresses, Token};
use crate::configuration::Configuration;
use crate::control::messages::{heap_time, Answer, HubPlace, Question, RubyProcess};
use crate::profile::taking;
use crate::serve::handover::{Candidate, News};
use crate::serve::readiness::Readiness;
use crate::serve::traces;
use crate::serve::waiting::Waiting;
use crate::status::kernel_limits;
use crate::status::overview::{Detail, Observer};
use crate::status::reports;
use highball_acme::{Keeper, NameReport};
use highball_config::{App, AppId, Settings};
use highball_front::developer_key::DeveloperKey;
use highball_front::Tls;
use highball_link::{
    AppProcesses, AppReport, AppRequests, DomainReport, FrontAppEvent, FrontCommand, FrontEvent, FrontReport,
    HubAddress, KernelLimitsReport, ServerReport, SupervisorReport, TlsReport,
};
use highball_supervisor::{AppOrder, Launcher, Notice, Order, ProfileOrder};
use highball_trace::SpanQueue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::sync::{mpsc, oneshot};

/// The parts that learn from the supervisor's notices, beside the front.
pub(crate) struct Followers {
    pub(crate) readiness: Readiness,
    pub(crate) candidate: Candidate,
    pub(crate) waiting: Waiting,
}

/// Passes the supervisor's notices on to the front, until the supervisor is gone; and to a `candidate`, as long as it
/// is one.
pub(crate) async fn tell_front(
    mut notices: mpsc::Receiver<Notice>,
    front: mpsc::Sender<FrontCommand>,
    configuration: Configuration,
    Followers { mut readiness, candidate, waiting }: Followers,
) {
    readiness.begin();
    while let Some(notice) = notices.recv().await {
        let command = match notice {
            Notice::ToFront(FrontCommand::ToApp(id, command)) => {
                readiness.note(id, &command);
                FrontCommand::ToApp(id, candidate.note(id, command))
            }
            Notice::ToFront(command) => {
                if matches!(command, FrontCommand::AnnounceStop | FrontCommand::Drain) {
                    readiness.stopping();
                }
                command
            }
            Notice::AppRemoved(id) => {
                readiness.has_come(id);
                candidate.tell(id, News::Removed);
                continue; // the front gets it with the rest of the configuration
            }
            Notice::HandOver { pid, kept } => {
                readiness.handed_over(pid, &kept);
                FrontCommand::HandOver { kept }
            }
            Notice::Hangup => {
                configuration.hangup.notify_one();
                FrontCommand::ReopenLogs
            }
        };
        let drains = matches!(command, FrontCommand::Drain);
        if front.send(command).await.is_err() {
            return; // the front has ended, and with it the run
        }
        if drains {
            tokio::spawn(waiting.clone().report());
        }
    }
}

/// Passes the front's events on to the supervisor, until the front is gone.
pub(crate) async fn tell_supervisor(
    mut events: mpsc::UnboundedReceiver<FrontEvent>,
    supervisor: mpsc::Sender<Order>,
    candidate: Candidate,
) {
    while let Some(event) = events.recv().await {
        let event = match event {
            FrontEvent::OfApp(id, FrontAppEvent::CanaryAnswered { worker, answer })
                if candidate.is_first(id, worker) =>
            {
                candidate.tell(id, News::FirstAnswered(worker, answer));
                continue;
            }
            event => event,
        };
        if supervisor.send(Order::FromFront(event)).await.is_err() {
            return; // the supervisor has ended, and with it the run
        }
    }
}

/// Answers `highball status`, `highball restart`, `highball rollout`, `highball refork`, `highball stop`, `highball memory` and `highball top`.
#[derive(Debug)]
pub(crate) struct ControlHandler {
    pub(crate) configuration: Configuration,
    pub(crate) started: Instant,
    pub(crate) binds: Vec<String>,
    pub(crate) key: Arc<DeveloperKey>,
    /// Where processes of applications publish messages.
    pub(crate) hub: Arc<HubAddress>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) keeper: Option<Keeper>,
    /// Spans that wait to be exported.
    pub(crate) spans: Option<Arc<SpanQueue>>,
    pub(crate) ports: Vec<u16>,
    /// Addresses for health checks and agent checks.
    pub(crate) admin: Arc<Addresses>,
    /// The process that this one has succeeded.
    pub(crate) predecessor: Option<i32>,
    pub(crate) supervisor: mpsc::Sender<Order>,
    pub(crate) front: mpsc::Sender<FrontCommand>,
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
            Question::Rollout { app, order } => {
                let asked = self.ask(|to| Order::ToApp(AppId(app), AppOrder::Rollout(order, to))).await?;
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
            Question::Profile { app, worker, mode, milliseconds, by_path } => {
                let order = ProfileOrder { mode, milliseconds, by_path };
                Some(match taking::take(&self.supervisor, AppId(app), worker, order).await? {
                    Ok(report) => Answer::Profile(Box::new(report)),
                    Err(why) => Answer::Refused { why },
                })
            }
            Question::EndProfile { app } => {
                self.supervisor.send(Order::EndProfile(AppId(app))).await.ok()?;
                Some(Answer::Begun { what: "the profile ends".into() })
            }
            Question::SlowRequests { app } => {
                let (to, requests) = oneshot::channel();
                self.supervisor.send(Order::SlowRequests { app: AppId(app), to }).await.ok()?;
                Some(Answer::SlowRequests { requests: requests.await.ok()? })
            }
            Question::Hub => Some(Answer::Hub { apps: self.hubs() }),
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

    /// Where processes of each application publish messages.
    fn hubs(&self) -> Vec<HubPlace> {
        let settings = self.configuration.now();
        let place = |app: &Arc<App>| HubPlace { folder: app.link.clone(), address: self.hub.of(app.id) };
        settings.apps.iter().map(place).collect()
    }

    async fn status(&self) -> Option<ServerReport> {
        let processes = reports::of_supervisor(self.supervisor.clone());
        let (processes, requests) = tokio::join!(processes, reports::of_front(self.front.clone()));
        let settings = self.configuration.now();
        let limits = kernel_limits::of(&settings).await;
        let mut report = self.together(&settings, processes?, requests?, &limits);
        reports::shorten(&mut report);
        Some(report)
    }

    /// All processes are asked at once and have the same time, however many they are.
    async fn ruby_processes(&self, gc: bool) -> Option<Vec<RubyProcess>> {
        let (began, time) = (Instant::now(), heap_time(gc));
        let (to, asked) = oneshot::channel();
        self.supervisor.send(Order::AskHeaps { gc, to }).await.ok()?;
        let mut processes = Vec::new();
        for asked in asked.await.ok()? {
            let (app, worker, pid, state) = (asked.app.0, asked.worker, asked.pid, asked.state.into());
            processes.push(RubyProcess { app, worker, pid, state, heap: asked.heap(began, time).await });
        }
        Some(processes)
    }

    fn together(
        &self,
        settings: &Settings,
        supervisor: SupervisorReport,
        front: FrontReport,
        limits: &kernel_limits::Known,
    ) -> ServerReport {
        let SupervisorReport { server: mut processes, apps } = supervisor;
        let mut requests: BTreeMap<AppId, AppRequests> =
            front.apps.into_iter().map(|requests| (requests.app, requests)).collect();
        let app = |processes: AppProcesses| {
            let app = settings.app(processes.id)?;
            let requests = requests.remove(&app.id);
            let phase = reports::phase(&processes, requests.as_ref(), settings.admin.stuck_after).to_owned();
            let processes = AppProcesses { phase, ..processes };
            let limits = limits.get(&app.id).cloned();
            Some(self.app_report(app, processes, requests.unwrap_or_default(), limits))
        };
        let apps: Vec<AppReport> = apps.into_iter().filter_map(app).collect();
        if let [app] = &apps[..] {
            processes.phase.clone_from(&app.processes.phase);
        }
        ServerReport {
            pid: self.pid(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.started.elapsed().as_secs(),
            binds: self.binds.clone(),
            ports: self.ports.clone(),
            admin: self.admin.health.clone(),
            agent_check: self.admin.of_agents(),
            requests: front.server,
            processes,
            tls: self.tls.as_ref().map(|tls| tls_report(tls, self.keeper.as_ref())),
            traces: self.spans.as_deref().map(traces::report),
            predecessor: self.predecessor,
            apps,
        }
    }

    fn app_report(
        &self,
        app: &App,
        processes: AppProcesses,
        requests: AppRequests,
        kernel_limits: Option<KernelLimitsReport>,
    ) -> AppReport {
        AppReport {
            name: app.name.clone(),
            hosts: app.hosts.clone(),
            prefix: app.prefix.clone(),
            url: crate::serve::readiness::url(app, &self.binds),
            browser_link: crate::serve::readiness::browser_link(app, &self.binds, &self.key),
            link: app.link.clone(),
            maintenance_file: app.link.join(&app.maintenance_file),
            environment: app.environment.clone(),
            user: user(app, &self.launcher),
            workers: processes.workers.iter().map(|one| reports::worker(one, &requests.workers)).collect(),
            kernel_limits,
            requests,
            processes,
        }
    }
}

fn tls_report(tls: &Tls, keeper: Option<&Keeper>) -> TlsReport {
    let domains = keeper.map(Keeper::report).unwrap_or_default();
    TlsReport { domains: domains.into_iter().map(domain_report).collect(), ..tls.report() }
}

fn domain_report(report: NameReport) -> DomainReport {
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (problem, remedy) = report.problem.unzip();
    DomainReport {
        name: report.host,
        expires_at: report.expires.map(seconds),
        next_at: report.next.map(seconds),
        failures: report.failures,
        problem,
        remedy,
    }
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
