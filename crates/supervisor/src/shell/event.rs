//! The closed set of what the supervisor's loop waits for, and the small tasks that watch for them.

use crate::control::control_socket::ControlSocket;
use crate::control::handover::{FromSuccessor, ToPidProxy};
use crate::control::message::{FromMold, FromWorker};
use crate::control::watched_fd::watched;
use crate::core::event::ReceivedSignal;
use crate::facts::boot_failure::BootFailure;
use crate::process::launcher::Launcher;
use crate::process::mold_process::Trouble;
use crate::rate_limit::RateLimit;
use crate::shell::app_files::Found;
use crate::shell::load_probe::SeenLoad;
use crate::shell::memory_sampler::Measured;
use crate::Order;
use highball_config::AppId;
use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages of one process that are read in a second, after twice as many at once: far more than any process needs. One
/// that sends more has to wait; the others do not.
const MESSAGES_PER_SECOND: u64 = 500;
/// How long it waits then.
const PAUSE: Duration = Duration::from_millis(20);

/// Everything that the loop waits for.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A signal was sent to us.
    Signal(ReceivedSignal),
    /// The binary passes on an order of the front or of an operator.
    Order(Order),
    /// Something was seen of a process of this application, or, with none, of another `highball`.
    News(Option<AppId>, News),
    /// A deadline has passed.
    Deadline,
}

/// What is seen of a process, or of an application's files.
#[derive(Debug)]
pub(crate) enum News {
    /// It sent a message, or its end of the control socket is closed.
    Socket(SocketEvent),
    /// It has ended: its pidfd is readable.
    Ended(Who),
    /// Something was found out about the files of the application.
    Found(Found),
    /// The load of the application was looked at.
    Load(SeenLoad),
    /// The memory of processes was looked at.
    Measured(Box<Measured>),
}

/// Where those that watch processes put what they see; they wait when it is full.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    /// Whose processes they watch.
    app: Option<AppId>,
    news: mpsc::Sender<(Option<AppId>, News)>,
    /// Who starts and signals them.
    pub(crate) launcher: Launcher,
}

impl Inbox {
    /// One for what concerns no application, and the end where it all comes out.
    pub(crate) fn new(capacity: usize, launcher: Launcher) -> (Inbox, mpsc::Receiver<(Option<AppId>, News)>) {
        let (news, out) = mpsc::channel(capacity);
        (Inbox { app: None, news, launcher }, out)
    }

    /// The same one, for the processes of an application.
    pub(crate) fn of_app(&self, app: AppId) -> Inbox {
        Inbox { app: Some(app), ..self.clone() }
    }

    /// Something was found out about the application's files. Without a receiver everything is ending.
    pub(crate) async fn found(&self, found: Found) {
        self.put(News::Found(found)).await;
    }

    /// The memory of processes was looked at. As above.
    pub(crate) async fn measured(&self, measured: Measured) {
        self.put(News::Measured(Box::new(measured))).await;
    }

    /// The load of the application was looked at. As above.
    pub(crate) async fn load_seen(&self, load: SeenLoad) {
        self.put(News::Load(load)).await;
    }

    /// `false` without a receiver: everything is ending.
    async fn put(&self, news: News) -> bool {
        self.news.send((self.app, news)).await.is_ok()
    }
}

/// What came out of a control socket; descriptors only come with a worker's first message.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    Mold {
        boot: u32,
        message: FromMold,
    },
    Worker {
        worker: u32,
        message: FromWorker,
        descriptors: Vec<OwnedFd>,
    },
    Successor(Pid, FromSuccessor),
    /// A process for which this one is the PID proxy has been succeeded by another, whose pidfd comes with it.
    Succeeded {
        pid: i32,
        descriptors: Vec<OwnedFd>,
    },
    /// An invalid message; the socket is not read after it.
    ProtocolError(Who, io::Error),
    Closed(Who),
}

/// A process of ours. Numbers are never used twice, so that late news cannot meet the wrong process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The mold of this boot, from 1.
    Mold(u32),
    /// The worker with this number, from 1.
    Worker(u32),
    /// The process that is to take our place, or has.
    Successor(Pid),
    /// Those that have been succeeded, while this process is their PID proxy.
    Succeeded,
}

/// A watching task, which ends with its owner.
#[derive(Debug)]
pub(crate) struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads the mold's control socket until it closes; `start` is read first, where the mold begins as another program.
pub(crate) fn watch_mold(
    socket: Arc<ControlSocket>,
    boot: u32,
    start: Option<StartReport>,
    inbox: Inbox,
) -> Watch {
    let to_event = move |message, _descriptors| SocketEvent::Mold { boot, message };
    Watch(tokio::spawn(async move {
        if let Some(failure) = watch_start(start).await {
            let message = FromMold::Failed(Box::new(failure));
            inbox.put(News::Socket(SocketEvent::Mold { boot, message })).await;
        }
        read_all(socket, Who::Mold(boot), inbox, to_event).await;
    }))
}

/// The words for why a process could not become a mold.
type ToBootFailure = Box<dyn Fn(io::Error) -> BootFailure + Send + Sync>;

/// Where a process reports why it could not become a mold.
pub(crate) struct StartReport {
    socket: ControlSocket,
    failure: ToBootFailure,
}

impl StartReport {
    pub(crate) fn on(
        socket: OwnedFd,
        failure: impl Fn(io::Error) -> BootFailure + Send + Sync + 'static,
    ) -> io::Result<StartReport> {
        Ok(StartReport { socket: ControlSocket::over(socket)?, failure: Box::new(failure) })
    }
}

/// Waits until a process has become a mold; why, if it could not.
async fn watch_start(start: Option<StartReport>) -> Option<BootFailure> {
    let StartReport { socket, failure } = start?;
    // Closed, or not a message of this kind: the process has become something else, and has its control socket.
    let packet = socket.receive::<Trouble>().await.ok()??;
    Some(failure(packet.message.into()))
}

/// Reads a worker's control socket until it closes.
pub(crate) fn watch_worker(socket: Arc<ControlSocket>, worker: u32, inbox: Inbox) -> Watch {
    let to_event = move |message, descriptors| SocketEvent::Worker { worker, message, descriptors };
    Watch(tokio::spawn(read_all(socket, Who::Worker(worker), inbox, to_event)))
}

/// Reads the control socket of the process that is to take our place until it closes.
pub(crate) fn watch_successor(socket: Arc<ControlSocket>, pid: Pid, inbox: Inbox) -> Watch {
    let to_event = move |message, _descriptors| SocketEvent::Successor(pid, message);
    Watch(tokio::spawn(read_all(socket, Who::Successor(pid), inbox, to_event)))
}

/// Reads which process succeeds those for which this one is the PID proxy.
pub(crate) fn watch_succeeded(socket: Arc<ControlSocket>, inbox: Inbox) -> Watch {
    let to_event = |ToPidProxy::Succeeded { pid }, descriptors| SocketEvent::Succeeded { pid, descriptors };
    Watch(tokio::spawn(read_all(socket, Who::Succeeded, inbox, to_event)))
}

async fn read_all<M: DeserializeOwned>(
    socket: Arc<ControlSocket>,
    who: Who,
    inbox: Inbox,
    to_event: impl Fn(M, Vec<OwnedFd>) -> SocketEvent,
) {
    let mut pace = RateLimit::new(MESSAGES_PER_SECOND, 2 * MESSAGES_PER_SECOND, Instant::now());
    loop {
        while !pace.allows(Instant::now()) {
            tokio::time::sleep(PAUSE).await;
        }
        pace.spend(1);
        let event = match socket.receive::<M>().await {
            Ok(Some(packet)) => to_event(packet.message, packet.descriptors),
            Ok(None) => break,
            Err(error) => {
                // A process that sends invalid messages could do so for ever.
                inbox.put(News::Socket(SocketEvent::ProtocolError(who, error))).await;
                break;
            }
        };
        if !inbox.put(News::Socket(event)).await {
            return;
        }
    }
    inbox.put(News::Socket(SocketEvent::Closed(who))).await;
}

/// A process held by its pidfd: it can be watched and killed, and never be mistaken for another.
#[derive(Debug)]
pub(crate) struct HeldProcess {
    pidfd: Arc<AsyncFd<OwnedFd>>,
    launcher: Launcher,
    _watch: Watch,
}

impl HeldProcess {
    /// Watches the process; one [`News::Ended`] comes when it has ended.
    pub(crate) fn hold(pidfd: OwnedFd, who: Who, inbox: Inbox) -> io::Result<HeldProcess> {
        Ok(HeldProcess::watch(Arc::new(watched(pidfd, Interest::READABLE)?), who, inbox))
    }

    fn watch(pidfd: Arc<AsyncFd<OwnedFd>>, who: Who, inbox: Inbox) -> HeldProcess {
        let watched = Arc::clone(&pidfd);
        let launcher = inbox.launcher.clone();
        let news_time = launcher.news_time(who);
        let watch = Watch(tokio::spawn(async move {
            if watched.readable().await.is_ok() {
                tokio::time::sleep(news_time).await;
                inbox.put(News::Ended(who)).await;
            }
        }));
        HeldProcess { pidfd, launcher, _watch: watch }
    }

    /// The same process, as something else from now on.
    pub(crate) fn watched_as(self, who: Who, inbox: Inbox) -> HeldProcess {
        HeldProcess::watch(self.pidfd, who, inbox)
    }

    /// Sends a signal; nothing happens if it has ended meanwhile.
    pub(crate) fn signal(&self, signal: Signal) {
        self.launcher.signal(&self.pidfd, signal);
    }
}
