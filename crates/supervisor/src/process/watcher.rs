//! What is seen of processes, and the small tasks that watch for it.

use crate::control::control_socket::ControlSocket;
use crate::control::handover::{FromSuccessor, ToPidProxy};
use crate::control::message::{FromMold, FromWorker};
use crate::control::watched_fd::watched;
use crate::facts::boot_failure::BootFailure;
use crate::inbox::{Inbox, Received};
use crate::process::companion_process::FromCompanion;
use crate::process::identity;
use crate::process::launcher::{Launcher, Who};
use crate::process::mold_process::Trouble;
use crate::rate_limit::RateLimit;
use highball_config::{AppId, User};
use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::task::JoinHandle;

/// Messages of one process that are read in a second, after twice as many at once: far more than any process needs. A
/// process that sends more has to wait; the others do not.
const MESSAGES_PER_SECOND: u64 = 500;
/// How long it waits then.
const PAUSE: Duration = Duration::from_millis(20);

/// What is seen of a process.
#[derive(Debug)]
pub(crate) enum News {
    /// It sent a message, or its end of the control socket is closed.
    Socket(Box<SocketEvent>),
    /// It has ended: its pidfd is readable.
    Ended(Who),
}

/// Watches the processes of an application, or another `highball`.
#[derive(Debug, Clone)]
pub(crate) struct Watcher {
    inbox: Inbox<News>,
    /// Who starts and signals them.
    pub(crate) launcher: Launcher,
}

impl Watcher {
    /// One for processes of no application, and the end where all news come out.
    pub(crate) fn new(capacity: usize, launcher: Launcher) -> (Watcher, Received<News>) {
        let (inbox, news) = Inbox::new(capacity);
        (Watcher { inbox, launcher }, news)
    }

    /// The same one, for the processes of an application.
    pub(crate) fn of_app(&self, app: AppId) -> Watcher {
        Watcher { inbox: self.inbox.of_app(app), launcher: self.launcher.clone() }
    }

    /// Reads the mold's control socket until it closes; `start` is read first, where the mold begins as another program.
    pub(crate) fn mold(&self, socket: Arc<ControlSocket>, boot: u32, start: Option<StartReport>) -> Watch {
        let inbox = self.inbox.clone();
        let to_event = move |message, _descriptors| SocketEvent::Mold { boot, message };
        Watch(tokio::spawn(async move {
            if let Some(failure) = watch_start(start).await {
                let message = FromMold::Failed(Box::new(failure));
                inbox.put(News::Socket(Box::new(SocketEvent::Mold { boot, message }))).await;
            }
            read_all(socket, Who::Mold(boot), inbox, to_event).await;
        }))
    }

    /// Reads a worker's control socket until it closes.
    pub(crate) fn worker(&self, socket: Arc<ControlSocket>, worker: u32) -> Watch {
        let to_event = move |message, descriptors| SocketEvent::Worker { worker, message, descriptors };
        Watch(tokio::spawn(read_all(socket, Who::Worker(worker), self.inbox.clone(), to_event)))
    }

    /// Reads the control socket of the process that watches over a companion until it closes.
    pub(crate) fn companion(&self, socket: Arc<ControlSocket>, companion: u32) -> Watch {
        let to_event = move |message, descriptors| SocketEvent::Companion { companion, message, descriptors };
        Watch(tokio::spawn(read_all(socket, Who::Companion(companion), self.inbox.clone(), to_event)))
    }

    /// Reads the control socket of the process that is to take our place until it closes.
    pub(crate) fn successor(&self, socket: Arc<ControlSocket>, pid: Pid) -> Watch {
        let to_event = move |message, _descriptors| SocketEvent::Successor(pid, message);
        Watch(tokio::spawn(read_all(socket, Who::Successor(pid), self.inbox.clone(), to_event)))
    }

    /// Reads which process succeeds those for which this one is the PID proxy.
    pub(crate) fn succeeded(&self, socket: Arc<ControlSocket>) -> Watch {
        let to_event =
            |ToPidProxy::Succeeded { pid }, descriptors| SocketEvent::Succeeded { pid, descriptors };
        Watch(tokio::spawn(read_all(socket, Who::Succeeded, self.inbox.clone(), to_event)))
    }

    /// Holds the process, and watches it; one [`News::Ended`] comes when it has ended.
    pub(crate) fn hold(&self, pidfd: OwnedFd, who: Who) -> io::Result<HeldProcess> {
        Ok(self.hold_watched(Arc::new(watched(pidfd, Interest::READABLE)?), who))
    }

    /// Holds the process `pid` of this user (`None`: the server's), which its mold has forked, and which has sent this pidfd.
    ///
    /// # Errors
    /// The pidfd is missing, or belongs to a process that cannot be this one.
    pub(crate) fn hold_forked(
        &self,
        pidfd: Option<OwnedFd>,
        pid: i32,
        user: Option<&User>,
        who: Who,
    ) -> io::Result<HeldProcess> {
        let pidfd = pidfd.ok_or_else(|| io::Error::other("no pidfd came with it"))?;
        if let Some(user) = user {
            identity::check(pidfd.as_fd(), pid, user)?;
        }
        self.hold(pidfd, who)
    }

    /// Holds the same process, as something else from now on.
    pub(crate) fn hold_as(&self, process: HeldProcess, who: Who) -> HeldProcess {
        self.hold_watched(process.pidfd, who)
    }

    fn hold_watched(&self, pidfd: Arc<AsyncFd<OwnedFd>>, who: Who) -> HeldProcess {
        let (watched, inbox) = (Arc::clone(&pidfd), self.inbox.clone());
        let (launcher, news_time) = (self.launcher.clone(), self.launcher.news_time(who));
        let watch = Watch(tokio::spawn(async move {
            if watched.readable().await.is_ok() {
                tokio::time::sleep(news_time).await;
                inbox.put(News::Ended(who)).await;
            }
        }));
        HeldProcess { pidfd, launcher, _watch: watch }
    }
}

/// What came out of a control socket; descriptors only come with the first message of a process that was forked.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// From a mold.
    Mold { boot: u32, message: FromMold },
    /// From a worker.
    Worker { worker: u32, message: FromWorker, descriptors: Vec<OwnedFd> },
    /// From the process that watches over a companion.
    Companion { companion: u32, message: FromCompanion, descriptors: Vec<OwnedFd> },
    /// From the process that is to take the place of this one.
    Successor(Pid, FromSuccessor),
    /// A process for which this one is the PID proxy has been succeeded by another, whose pidfd comes with it.
    Succeeded { pid: i32, descriptors: Vec<OwnedFd> },
    /// An invalid message; the socket is not read after it.
    ProtocolError(Who, io::Error),
    /// The other end is closed.
    Closed(Who),
}

/// A watching task, which ends with its owner.
#[derive(Debug)]
pub(crate) struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
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

async fn read_all<M: DeserializeOwned>(
    socket: Arc<ControlSocket>,
    who: Who,
    inbox: Inbox<News>,
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
                inbox.put(News::Socket(Box::new(SocketEvent::ProtocolError(who, error)))).await;
                break;
            }
        };
        if !inbox.put(News::Socket(Box::new(event))).await {
            return;
        }
    }
    inbox.put(News::Socket(Box::new(SocketEvent::Closed(who)))).await;
}

/// A process held by its pidfd: it can be watched and killed, and never be mistaken for another.
#[derive(Debug)]
pub(crate) struct HeldProcess {
    pidfd: Arc<AsyncFd<OwnedFd>>,
    launcher: Launcher,
    _watch: Watch,
}

impl HeldProcess {
    /// Sends a signal; nothing happens if it has ended meanwhile.
    pub(crate) fn signal(&self, signal: Signal) {
        self.launcher.signal(&self.pidfd, signal);
    }
}
