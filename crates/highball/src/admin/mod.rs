//! Health checks, metrics and a dashboard, at addresses apart from those of the applications (option `admin`), and the agent checks of
//! load balancers (option `agent_check`).
//!
//! A separate thread answers them, so that they never wait for an application, and neither front nor supervisor waits
//! for them. Connections are few and short: one request each, in HTTP/1, or one line for an agent check. Only those by which
//! dashboards follow what happens are long, and have places apart from the others. Each address has its own places
//! ([`crate::control::callers`]): a flood at one does not delay answers at another.
//!
//! In reading order: [`AdminThread`] (its life), [`request`] (what is asked), [`health`] (`/livez`, `/readyz`),
//! [`metrics`] (`/metrics`, in the form that [`exposition`] writes), [`limits`] (what the kernel
//! keeps applications within), [`heaps`] (what Ruby's garbage collectors do), [`dashboard`] (`/`: its page and its orders, for which
//! there is a [`token`]), [`streams`] (`/events`: those who follow), [`last_hour`] (for its charts), [`agent`] (agent checks), [`weight`] (the share of requests that balancers should send here).

mod agent;
mod dashboard;
mod exposition;
mod health;
mod heaps;
mod last_hour;
mod limits;
mod metrics;
mod request;
mod streams;
mod token;
mod weight;

use crate::configuration::Configuration;
use crate::control::callers::{Caller, Callers, Listens};
use crate::root::at_root;
use crate::status::overview::Observer;
use crate::status::processes::Processes;
use crate::status::reports;
use agent::Agent;
pub(crate) use dashboard::Profiles;
use dashboard::View;
use heaps::Heaps;
use highball_front as front;
use highball_link::{FrontCommand, FrontReport, SupervisorReport};
use highball_supervisor::{Launcher, Order};
use highball_trace::SpanQueue;
pub(crate) use last_hour::LastHour;
use request::{Request, Response, Wrong};
use std::io;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use streams::Streams;
pub(crate) use token::Token;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{error, info};

/// Connections at a time, at each address.
const CONNECTIONS: usize = 128;
/// Time for reading a request, answering it, and writing the answer.
const EXCHANGE_TIME: Duration = Duration::from_secs(5);
/// Time that the front has for its report, and the supervisor for its own.
const REPORT_TIME: Duration = Duration::from_secs(1);
/// Time for the exchanges that are under way at the end.
const LAST_EXCHANGES_TIME: Duration = Duration::from_millis(500);

/// Whether the addresses are left; if so, to another server that accepts on these.
type Left = Option<Vec<String>>;

/// Leaves the addresses to another server.
#[derive(Debug, Clone)]
pub(crate) struct Leaver {
    left: Arc<watch::Sender<Left>>,
    addresses: Arc<Addresses>,
    launcher: Launcher,
}

impl Leaver {
    /// Logs the addresses, if there are some.
    pub(crate) fn report(&self) {
        let Addresses { health, agents } = &*self.addresses;
        if !health.is_empty() {
            info!(name: "health_checks_reachable", addresses = health.join(" "), "health checks");
        }
        if !agents.is_empty() {
            info!(
                name: "agent_checks_reachable", addresses = self.addresses.of_agents().join(" "), "agent checks"
            );
        }
    }

    /// Another server accepts connections by now, on these of the addresses.
    pub(crate) fn leave(&self, kept: &[String]) {
        self.left.send_replace(Some(kept.to_vec()));
        let Addresses { health, agents } = &*self.addresses;
        let left = health.iter().chain(agents).filter(|address| !kept.contains(address));
        left.for_each(|address| at_root::leave(address, &self.launcher));
    }
}

/// What answers need.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) configuration: Configuration,
    /// The front ends with its last sender.
    pub(crate) front: mpsc::WeakSender<FrontCommand>,
    pub(crate) supervisor: mpsc::WeakSender<Order>,
    pub(crate) tls: Option<Arc<front::Tls>>,
    pub(crate) spans: Option<Arc<SpanQueue>>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) heaps: Arc<Heaps>,
    pub(crate) agent: Arc<Agent>,
    /// What the server does, for the dashboard.
    pub(crate) observer: Arc<Observer>,
    /// What the server did in the last hour, for the dashboard.
    pub(crate) last_hour: Arc<LastHour>,
    /// What operators have profiled in the dashboard.
    pub(crate) profiles: Arc<Profiles>,
    /// Browsers that follow the dashboard.
    pub(crate) streams: Arc<Streams>,
    /// The token that orders must have.
    pub(crate) token: Arc<Token>,
}

impl Sources {
    /// The front's report; `None`, where its event loop does not answer.
    async fn front(&self) -> Option<FrontReport> {
        timeout(REPORT_TIME, reports::of_front(self.front.upgrade()?)).await.ok()?
    }

    /// The supervisor's report; `None`, where it does not answer.
    async fn supervisor(&self) -> Option<SupervisorReport> {
        timeout(REPORT_TIME, reports::of_supervisor(self.supervisor.upgrade()?)).await.ok()?
    }

    async fn respond(&self, request: &Request) -> Response {
        match request.path.as_str() {
            "/metrics" => metrics::metrics(self, request.wants_open_metrics).await,
            "/livez" => health::live(self, request).await,
            "/readyz" => health::ready(self, request, None).await,
            path => match path.strip_prefix("/readyz/") {
                Some(app) => health::ready(self, request, Some(app)).await,
                None => dashboard::respond(self, path).await.unwrap_or_else(|| {
                    Response::text(
                        404,
                        "not found; there are /, /livez, /readyz, /readyz/APPLICATION and /metrics\n",
                    )
                }),
            },
        }
    }
}

/// The sockets on which it is asked.
#[derive(Debug)]
pub(crate) struct Listeners {
    /// For health checks and metrics.
    pub(crate) health: Vec<front::Listener>,
    /// For agent checks.
    pub(crate) agents: Vec<front::Listener>,
}

impl Listeners {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &front::Listener> {
        self.health.iter().chain(&self.agents)
    }
}

/// Their addresses, as URLs.
#[derive(Debug)]
pub(crate) struct Addresses {
    pub(crate) health: Vec<String>,
    agents: Vec<String>,
}

impl Addresses {
    /// IP addresses with ports: agent checks are not HTTP.
    pub(crate) fn of_agents(&self) -> Vec<String> {
        self.agents.iter().map(|url| url.trim_start_matches("http://").to_owned()).collect()
    }
}

/// The thread that answers.
#[derive(Debug)]
pub(crate) struct AdminThread {
    thread: Option<JoinHandle<()>>,
    left: Arc<watch::Sender<Left>>,
    pub(crate) addresses: Arc<Addresses>,
}

impl AdminThread {
    /// Answers on these sockets from when the server serves.
    ///
    /// # Errors
    /// There can be no other thread, or event loop.
    pub(crate) fn start(
        listeners: Listeners,
        sources: Sources,
        serving: watch::Receiver<bool>,
    ) -> io::Result<AdminThread> {
        let (left, leaving) = watch::channel(None);
        let addresses_of =
            |listeners: &[front::Listener]| listeners.iter().map(front::Listener::address).collect();
        let addresses =
            Addresses { health: addresses_of(&listeners.health), agents: addresses_of(&listeners.agents) };
        let is_asked = listeners.iter().next().is_some();
        let thread = is_asked.then(|| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            std::thread::Builder::new().name("admin".into()).spawn(move || {
                let life = live(listeners, sources, serving, leaving);
                if let Err(error) = runtime.block_on(life) {
                    error!(name: "health_checks_unavailable", %error, "cannot answer health checks");
                }
                runtime.shutdown_background();
            })
        });
        Ok(AdminThread { thread: thread.transpose()?, left: Arc::new(left), addresses: Arc::new(addresses) })
    }

    pub(crate) fn leaver(&self, launcher: Launcher) -> Leaver {
        Leaver { left: Arc::clone(&self.left), addresses: Arc::clone(&self.addresses), launcher }
    }

    /// Ends it.
    pub(crate) fn end(mut self) {
        self.left.send_modify(|left| {
            left.get_or_insert_default();
        });
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            error!(name: "health_checks_panicked", "the thread for health checks has panicked");
        }
    }
}

/// Accepts from when the server serves until the addresses are left.
async fn live(
    listeners: Listeners,
    sources: Sources,
    mut serving: watch::Receiver<bool>,
    mut leaving: watch::Receiver<Left>,
) -> io::Result<()> {
    let health = listeners.health.into_iter().map(|listener| Socket::of(listener, Kind::Http));
    let agents = listeners.agents.into_iter().map(|listener| Socket::of(listener, Kind::Agent));
    let (sockets, mut paths): (Vec<Socket>, Vec<_>) =
        health.chain(agents).collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
    let addresses: Vec<String> = sockets.iter().map(|socket| socket.address.clone()).collect();
    let all_callers: Vec<Callers> = sockets.iter().map(|socket| socket.callers.clone()).collect();
    let accepting = async {
        if serving.wait_for(|serving| *serving).await.is_err() {
            return std::future::pending().await; // the server gives up
        }
        paths.iter_mut().flatten().for_each(|path: &mut front::SocketPath| path.stays(false));
        let mut loops = JoinSet::new();
        loops.spawn(LastHour::keep(sources.clone()));
        for socket in sockets {
            loops.spawn(socket.accept_all(sources.clone()));
        }
        loops.join_all().await;
    };
    let left = tokio::select! {
        () = accepting => Vec::new(),
        left = leaving.wait_for(Option::is_some) => left.ok().and_then(|left| left.clone()).unwrap_or_default(),
    };
    for (address, path) in addresses.iter().zip(paths) {
        path.iter().for_each(|path| path.stays(left.contains(address)));
    }
    let ended = async {
        for callers in all_callers {
            callers.finish().await;
        }
    };
    let _ = timeout(LAST_EXCHANGES_TIME, ended).await; // a client is slow
    Ok(())
}

/// What is asked on a socket.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Health and metrics, in HTTP.
    Http,
    /// Agent checks.
    Agent,
}

impl Kind {
    /// Serves a connection. If it turns into a stream, it has a place among the streams from then on.
    async fn serve(
        self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        checks_host: bool,
        caller: Caller,
        sources: &Sources,
    ) {
        let exchange = async {
            match self {
                Kind::Http => tokio::select! {
                    next = exchange(&mut stream, checks_host, &caller, sources) => next,
                    () = caller.dismissed() => Ok(Next::End),
                },
                Kind::Agent => agent::exchange(&mut stream, &caller, sources).await.map(|()| Next::End),
            }
        };
        let exchanged = timeout(EXCHANGE_TIME, exchange).await;
        let source = caller.source();
        drop(caller);
        if let Ok(Ok(Next::Follow(view))) = exchanged {
            streams::serve(stream, source, view, sources).await;
        }
    }
}

/// What a connection does after its request.
enum Next {
    End,
    /// It follows what happens, for this page.
    Follow(View),
}

/// Answers the request of a connection. A client that leaves, or sends nothing, gets no answer.
async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    checks_host: bool,
    caller: &Caller,
    sources: &Sources,
) -> io::Result<Next> {
    let Some(read) = caller.hear(stream, &mut Vec::new(), request::read).await else {
        return Ok(Next::End);
    };
    let request = match read {
        Ok(request) => request,
        Err(Wrong(status, why)) => {
            let bytes = Response::text(status, why).bytes(false);
            return caller.answer(stream, &bytes).await.map(|()| Next::End);
        }
    };
    let is_refused =
        checks_host && !request::is_host_allowed(&request, &sources.configuration.now().admin.hosts);
    let response = match (request.method.as_str(), is_refused) {
        (_, true) => Response::text(
            421,
            "this host name is not known here; use an IP address or localhost, or name the host with the option admin_host\n",
        ),
        ("GET", false) => match dashboard::followed(&request.path) {
            Some(view) => return Ok(Next::Follow(view)),
            None => sources.respond(&request).await,
        },
        ("HEAD", false) => sources.respond(&request).await,
        ("POST", false) => dashboard::obey(sources, &request).await,
        _ => Response::text(405, "only GET and HEAD\n").with("allow", "GET, HEAD"),
    };
    caller.answer(stream, &response.bytes(request.method == "HEAD")).await.map(|()| Next::End)
}

/// A listening socket.
struct Socket {
    address: String,
    kind: Kind,
    accepting: Accepting,
    callers: Callers,
}

enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Socket {
    /// The socket, and its path.
    fn of(listener: front::Listener, kind: Kind) -> io::Result<(Socket, Option<front::SocketPath>)> {
        let address = listener.address();
        let (socket, path) = listener.into_parts();
        let accepting = match path {
            Some(_) => Accepting::Unix(UnixListener::from_std(StdUnixListener::from(socket))?),
            None => Accepting::Tcp(TcpListener::from_std(socket.into())?),
        };
        let what = match kind {
            Kind::Http => "health checks",
            Kind::Agent => "agent checks",
        };
        Ok((Socket { address, kind, accepting, callers: Callers::new(what, CONNECTIONS) }, path))
    }

    async fn accept_all(self, sources: Sources) {
        match &self.accepting {
            Accepting::Tcp(listener) => self.accept_from(listener, true, &sources).await,
            Accepting::Unix(listener) => self.accept_from(listener, false, &sources).await,
        }
    }

    async fn accept_from(&self, listener: &impl Listens, checks_host: bool, sources: &Sources) {
        let kind = self.kind;
        let serve = |stream, caller| {
            let sources = sources.clone();
            tokio::spawn(async move { kind.serve(stream, checks_host, caller, &sources).await });
        };
        self.callers.accept_all(listener, serve).await;
    }
}
