//! `highball serve`: listen, build, run, drain.
//!
//! In reading order: [`listen`] (checks and sockets, before there are threads), this file (the parts, and how long each of them
//! lives), [`front_thread`] (the thread of the front), [`wiring`] (how the front and the supervisor are joined), [`readiness`] (when the
//! server reports that it serves), [`banner`] (what a terminal then shows), [`handover`] (taking over from an older process, in a hot restart),
//! [`reload`] (of the configuration), [`traces`] (of requests, for a collector), [`watchdog`] (signs of life for systemd), [`waiting`] (the requests that a stop waits for), [`ending`] (what is logged at
//! the end, and the exit code).

mod banner;
mod ending;
mod front_thread;
mod handover;
mod listen;
mod readiness;
mod reload;
mod traces;
mod waiting;
mod watchdog;
mod wiring;

use crate::development::diagnosis_page;
use highball_link::{FrontCommand, FrontEvent, HubAddress};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use highball_config::{AppId, Settings};
use highball_front as front;
use highball_front::developer_key::DeveloperKey;
use highball_front::{Developers, Opening};
use highball_supervisor::{
    AppBlueprint, Blueprint, Launcher, Notice, Order, Outcome, Predecessor, Purpose, Supervisor,
    UpgradeContext,
};
use highball_trace::SpanQueue;
use tokio::sync::{mpsc, watch};
use tracing::{error, warn};

use crate::admin::AdminThread;
use crate::apps::cgroups;
use crate::certificates::acme;
use crate::configuration::Configuration;
use crate::process::event_loop::event_loop;
use crate::process::pidfile::Pidfile;
use crate::root::{at_root, certificate_watch, openers};
use crate::serve::handover::{Candidate, Handover, News};
use crate::serve::readiness::Readiness;
use crate::serve::waiting::Waiting;
use crate::serve::wiring::{tell_front, tell_supervisor, ControlHandler, Followers};
use crate::status::overview::Observer;
use crate::{admin, log};
use ending::{conclude, why_not};
use front_thread::{start_front, FrontThread};
use highball_acme::Keeping;
use listen::ListeningServer;
use traces::Traces;

/// The capacity of the channels between the parts: far more messages than a run's workers send at once.
const CHANNEL_CAPACITY: usize = 1024;
/// Time for the last messages between front and supervisor at the end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The life of a server. The error that keeps a successor from taking over goes to its predecessor as well.
pub(crate) fn serve(
    settings: Settings,
    mut predecessor: Option<Predecessor>,
    launcher: Launcher,
) -> Result<ExitCode, Box<dyn Error>> {
    let server = ListeningServer::listen(settings, predecessor.as_mut(), launcher.clone());
    let predecessor = predecessor.map(Arc::new);
    let done = server.and_then(|server| Server::build(server, predecessor.clone())?.run());
    cgroups::end(&launcher);
    if let (Err(error), Some(predecessor)) = (&done, predecessor) {
        predecessor.failed(&error.to_string());
    }
    done
}

/// What the parts of a server have in common.
struct Common {
    configuration: Configuration,
    started: Instant,
    /// Addresses, as they are shown.
    binds: Vec<String>,
    key: Arc<DeveloperKey>,
    /// Where processes of applications publish messages.
    hub: Arc<HubAddress>,
    tls: Option<Arc<front::Tls>>,
    launcher: Launcher,
    front: mpsc::Sender<FrontCommand>,
    supervisor: mpsc::Sender<Order>,
    /// Spans that wait to be exported.
    spans: Option<Arc<SpanQueue>>,
}

/// The parts of a server that look at the others: for operators and load balancers.
struct Watchers {
    admin: AdminThread,
    observer: Arc<Observer>,
    token: Arc<admin::Token>,
}

/// A server with all its parts: its front waits for connections, its supervisor for its run.
struct Server {
    common: Common,
    front: FrontThread,
    supervisor: Supervisor,
    admin: AdminThread,
    control: Arc<ControlHandler>,
    handover: Handover,
    readiness: Readiness,
    candidate: Candidate,
    keeping: Option<Keeping>,
    traces: Traces,
    pidfile: Option<Pidfile>,
    predecessor: Option<Arc<Predecessor>>,
    /// True when connections are accepted.
    serving: watch::Receiver<bool>,
    orders: mpsc::Receiver<Order>,
    notices: mpsc::Receiver<Notice>,
    events: mpsc::UnboundedReceiver<FrontEvent>,
}

impl Server {
    fn build(
        listening: ListeningServer,
        predecessor: Option<Arc<Predecessor>>,
    ) -> Result<Server, Box<dyn Error>> {
        let ListeningServer {
            settings,
            started,
            apps,
            pidfile,
            entrances,
            admin,
            tls,
            upgrade_context,
            launcher,
        } = listening;
        let binds: Vec<String> = entrances.listeners.iter().map(front::Listener::address).collect();
        let ports = entrances.listeners.iter().filter_map(front::Listener::port).collect();
        let kept = inherited(&entrances, &admin);
        let configuration = Configuration::new(Arc::clone(&settings));
        let hub = Arc::clone(entrances.publishers.address());
        let keeping = acme::keep_certificates(&configuration, tls.as_ref(), predecessor.is_some())?;
        let key = Arc::new(at_root::developer_key(&settings, &launcher)?);
        let traces = Traces::begin(&settings, &launcher)?;
        let (to_front, commands) = mpsc::channel(CHANNEL_CAPACITY);
        let (events_out, events) = mpsc::unbounded_channel();
        let front = start_front(
            Arc::clone(&settings),
            Developers { key: Arc::clone(&key), pages: diagnosis_page::pages },
            tls.clone(),
            entrances,
            if predecessor.is_some() { Opening::OnCommand } else { Opening::AtOnce },
            (commands, events_out),
            traces.spans.clone(),
        )?;
        let (notify, notices) = mpsc::channel(CHANNEL_CAPACITY);
        let (to_supervisor, orders) = mpsc::channel(CHANNEL_CAPACITY);
        let common = Common {
            configuration,
            started,
            binds,
            key,
            hub,
            tls,
            launcher,
            front: to_front,
            supervisor: to_supervisor,
            spans: traces.spans.clone(),
        };
        let supervisor = Supervisor::new(common.blueprint(&settings, apps, predecessor.is_some()), notify);
        let (serving_in, serving) = watch::channel(false);
        let watchers = common.watch(admin, serving.clone())?;
        let control =
            Arc::new(common.control_handler(&watchers, keeping.as_ref(), ports, predecessor.as_deref()));
        let (candidate, news) = Candidate::of(predecessor.as_ref(), &settings.apps);
        let readiness = common.readiness(&candidate, &watchers.admin);
        let handover = common.handover(settings, kept, upgrade_context, serving_in, (&candidate, news));
        Ok(Server {
            common,
            front,
            supervisor,
            admin: watchers.admin,
            control,
            handover,
            readiness,
            candidate,
            keeping,
            traces,
            pidfile,
            predecessor,
            serving,
            orders,
            notices,
            events,
        })
    }

    /// Boot, serve, drain.
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let Server { common, front, supervisor, admin, control, mut handover, readiness, candidate, .. } =
            self;
        let Server { keeping, traces, mut pidfile, predecessor, serving, orders, notices, events, .. } = self;
        let Common { configuration, tls, launcher, front: to_front, supervisor: to_supervisor, .. } = &common;
        let runtime = event_loop()?;
        let waiting = Waiting::new(to_front.downgrade(), configuration.clone());
        if predecessor.is_none() {
            banner::announce(&configuration.now());
        }
        let outcome = runtime.block_on(async {
            tokio::spawn(watchdog::keep_alive(to_front.downgrade(), launcher.clone()));
            tokio::spawn(openers::end_idle());
            let followers = Followers { readiness, candidate: candidate.clone(), waiting: waiting.clone() };
            let telling = tokio::spawn(tell_front(notices, to_front.clone(), configuration.clone(), followers));
            let outcome = tokio::select! {
                outcome = supervisor.run(orders) => outcome,
                () = tell_supervisor(events, to_supervisor.clone(), candidate) => {
                    error!(
                        name: "front_ended", "the front ended unexpectedly"
                    ); // workers end when their control sockets close
                    Ok(Outcome::Halted)
                }
                () = handover.take_over(predecessor.as_deref(), &mut pidfile) => unreachable!("it waits for ever"),
                () = serve_control(&control, serving.clone(), predecessor.as_deref()) => unreachable!("it answers for ever"),
                () = reload::reload_on_hangup(&common) => unreachable!("it waits for ever"),
                () = certificate_watch::follow_files(configuration, tls.as_ref(), launcher) => unreachable!("it looks for ever"),
            };
            let _ = tokio::time::timeout(EXIT_TIMEOUT, telling).await; // for the supervisor's last messages
            outcome
        })?;
        // This process may stay, to pass signals on.
        let to_front = to_front.clone();
        drop((control, handover, common, keeping));
        admin.end();
        let unanswered = front.end(&to_front);
        traces.end();
        if let Some(predecessor) = predecessor.filter(|_| !*serving.borrow()) {
            predecessor.failed(&why_not(&outcome));
        }
        drop(pidfile);
        let code = conclude(outcome, unanswered, &waiting, &runtime);
        // A look at files that does not come to an end is not waited for.
        runtime.shutdown_background();
        Ok(code)
    }
}

/// The addresses of the sockets that this process has inherited.
fn inherited(entrances: &front::Entrances, admin: &admin::Listeners) -> Vec<String> {
    let all = entrances.listeners.iter().chain(admin.iter());
    all.filter(|listener| listener.is_inherited()).map(front::Listener::address).collect()
}

impl Common {
    fn blueprint(&self, settings: &Arc<Settings>, apps: Vec<AppBlueprint>, succeeds: bool) -> Blueprint {
        Blueprint {
            settings: Arc::clone(settings),
            apps,
            purpose: if succeeds { Purpose::Succeed } else { Purpose::Serve },
            output: log::app_output(settings.log.format),
            launcher: self.launcher.clone(),
            hub: Some(Arc::clone(&self.hub)),
        }
    }

    fn watch(
        &self,
        listeners: admin::Listeners,
        serving: watch::Receiver<bool>,
    ) -> Result<Watchers, Box<dyn Error>> {
        let processes = Arc::default();
        let observer = Arc::new(Observer::new(
            self.configuration.clone(),
            self.started,
            self.front.downgrade(),
            self.supervisor.downgrade(),
            Arc::clone(&processes),
            self.launcher.clone(),
        ));
        let token = Arc::new(admin::Token::new()?);
        let sources = admin::Sources {
            configuration: self.configuration.clone(),
            front: self.front.downgrade(),
            supervisor: self.supervisor.downgrade(),
            tls: self.tls.clone(),
            spans: self.spans.clone(),
            processes,
            heaps: Arc::default(),
            agent: Arc::default(),
            observer: Arc::clone(&observer),
            token: Arc::clone(&token),
            last_hour: Arc::default(),
            profiles: Arc::default(),
            streams: Arc::default(),
        };
        Ok(Watchers { admin: AdminThread::start(listeners, sources, serving)?, observer, token })
    }

    fn control_handler(
        &self,
        watchers: &Watchers,
        keeping: Option<&Keeping>,
        ports: Vec<u16>,
        predecessor: Option<&Predecessor>,
    ) -> ControlHandler {
        ControlHandler {
            configuration: self.configuration.clone(),
            started: self.started,
            binds: self.binds.clone(),
            key: Arc::clone(&self.key),
            hub: Arc::clone(&self.hub),
            tls: self.tls.clone(),
            keeper: keeping.map(|keeping| keeping.keeper.clone()),
            spans: self.spans.clone(),
            ports,
            admin: Arc::clone(&watchers.admin.addresses),
            predecessor: predecessor.map(Predecessor::pid),
            supervisor: self.supervisor.clone(),
            front: self.front.clone(),
            launcher: self.launcher.clone(),
            observer: Arc::clone(&watchers.observer),
            token: Arc::clone(&watchers.token),
        }
    }

    fn readiness(&self, candidate: &Candidate, admin: &AdminThread) -> Readiness {
        Readiness::new(
            self.configuration.clone(),
            self.binds.clone(),
            Arc::clone(&self.key),
            candidate.is_one(), // it reports in the handover that it serves
            self.launcher.clone(),
            admin.leaver(self.launcher.clone()),
            self.supervisor.downgrade(),
        )
    }

    fn handover(
        &self,
        settings: Arc<Settings>,
        kept: Vec<String>,
        upgrade_context: Option<UpgradeContext>,
        serving: watch::Sender<bool>,
        (candidate, news): (&Candidate, Option<mpsc::Receiver<(AppId, News)>>),
    ) -> Handover {
        Handover {
            settings,
            binds: self.binds.clone(),
            kept,
            front: self.front.clone(),
            supervisor: self.supervisor.clone(),
            upgrade_context,
            serving,
            news,
            awaited: candidate.awaited(),
            launcher: self.launcher.clone(),
        }
    }
}

/// Answers `highball status` and its like for ever, from when connections are accepted. A server without them still
/// serves.
async fn serve_control(
    control: &Arc<ControlHandler>,
    mut serving: watch::Receiver<bool>,
    predecessor: Option<&Predecessor>,
) {
    if serving.wait_for(|serving| *serving).await.is_err() {
        return std::future::pending().await; // it has given up, and is ending
    }
    let socket = at_root::control_socket(&control.launcher, predecessor.map(Predecessor::pid)).await;
    if let Some(predecessor) = predecessor {
        predecessor.serving(); // from here on commands find us
    }
    match socket {
        Ok(socket) => {
            let control = Arc::clone(control);
            let respond = move |question| {
                let control = Arc::clone(&control);
                async move { control.respond(question).await }
            };
            socket.answer(respond).await;
        }
        Err(error) => {
            warn!(
                name: "control_socket_missing",
                %error, "no control socket: `highball status`, `highball restart` and `highball stop` cannot find this server"
            );
            std::future::pending().await
        }
    }
}
