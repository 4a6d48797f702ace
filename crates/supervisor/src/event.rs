//! The closed set of events that the supervisor's loop acts on, and the small tasks that watch for them.

use crate::control_socket::ControlSocket;
use crate::handover::{FromSuccessor, ToStandIn};
use crate::message::{FromMold, FromWorker};
use crate::signals::Received;
use crate::watched_fd::watched;
use crate::Order;
use rustix::process::{pidfd_send_signal, Pid, Signal};
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Everything that can happen to the supervisor.
#[derive(Debug)]
pub(crate) enum Event {
    /// A signal was sent to us.
    Signal(Received),
    /// The binary passes on what the front, or an operator, wants.
    Order(Order),
    /// A mold or worker said something, or its end of the control socket is closed.
    Said(Said),
    /// A process has ended: its pidfd is readable.
    Ended(Who),
    /// A deadline has passed.
    Deadline,
}

/// What came out of a control socket; descriptors only come with a worker's first message.
#[derive(Debug)]
pub(crate) enum Said {
    Mold {
        boot: u32,
        message: FromMold,
    },
    Worker {
        worker: u32,
        message: FromWorker,
        descriptors: Vec<OwnedFd>,
    },
    Successor(FromSuccessor),
    /// A process for which this one stands in has been succeeded by another, whose pidfd comes with it.
    Succeeded {
        pid: i32,
        descriptors: Vec<OwnedFd>,
    },
    /// Something that cannot be understood; nothing more is heard of it.
    Nonsense(Who, io::Error),
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
    /// Those that have been succeeded, while this process stands in for them.
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

/// Reads the mold's control socket until it closes.
pub(crate) fn watch_mold(socket: Arc<ControlSocket>, boot: u32, events: mpsc::Sender<Event>) -> Watch {
    let said = move |message, _descriptors| Said::Mold { boot, message };
    Watch(tokio::spawn(read_all(socket, Who::Mold(boot), events, said)))
}

/// Reads a worker's control socket until it closes.
pub(crate) fn watch_worker(socket: Arc<ControlSocket>, worker: u32, events: mpsc::Sender<Event>) -> Watch {
    let said = move |message, descriptors| Said::Worker { worker, message, descriptors };
    Watch(tokio::spawn(read_all(socket, Who::Worker(worker), events, said)))
}

/// Reads the control socket of the process that is to take our place until it closes.
pub(crate) fn watch_successor(socket: Arc<ControlSocket>, pid: Pid, events: mpsc::Sender<Event>) -> Watch {
    let said = |message, _descriptors| Said::Successor(message);
    Watch(tokio::spawn(read_all(socket, Who::Successor(pid), events, said)))
}

/// Reads who succeeds the processes that this one stands in for.
pub(crate) fn watch_succeeded(socket: Arc<ControlSocket>, events: mpsc::Sender<Event>) -> Watch {
    let said = |ToStandIn::Succeeded { pid }, descriptors| Said::Succeeded { pid, descriptors };
    Watch(tokio::spawn(read_all(socket, Who::Succeeded, events, said)))
}

async fn read_all<M: DeserializeOwned>(
    socket: Arc<ControlSocket>,
    who: Who,
    events: mpsc::Sender<Event>,
    said: impl Fn(M, Vec<OwnedFd>) -> Said,
) {
    loop {
        let event = match socket.receive::<M>().await {
            Ok(Some(packet)) => said(packet.message, packet.descriptors),
            Ok(None) => break,
            Err(error) => {
                // Whoever says what nobody understands could say it for ever.
                let _ = events.send(Event::Said(Said::Nonsense(who, error))).await;
                break;
            }
        };
        if events.send(Event::Said(event)).await.is_err() {
            return;
        }
    }
    // Nobody listens any more only when the supervisor itself is gone.
    let _ = events.send(Event::Said(Said::Closed(who))).await;
}

/// A process held by its pidfd: it can be watched and killed, and never be mistaken for another.
#[derive(Debug)]
pub(crate) struct HeldProcess {
    pidfd: Arc<AsyncFd<OwnedFd>>,
    _watch: Watch,
}

impl HeldProcess {
    /// Watches the process; one [`Event::Ended`] comes when it has ended.
    pub(crate) fn hold(pidfd: OwnedFd, who: Who, events: mpsc::Sender<Event>) -> io::Result<HeldProcess> {
        Ok(HeldProcess::watch(Arc::new(watched(pidfd, Interest::READABLE)?), who, events))
    }

    fn watch(pidfd: Arc<AsyncFd<OwnedFd>>, who: Who, events: mpsc::Sender<Event>) -> HeldProcess {
        let watched = Arc::clone(&pidfd);
        let watch = Watch(tokio::spawn(async move {
            if watched.readable().await.is_ok() {
                let _ = events.send(Event::Ended(who)).await; // as above
            }
        }));
        HeldProcess { pidfd, _watch: watch }
    }

    /// The same process, as something else from now on.
    pub(crate) fn watched_as(self, who: Who, events: mpsc::Sender<Event>) -> HeldProcess {
        HeldProcess::watch(self.pidfd, who, events)
    }

    /// Sends a signal; one that has ended meanwhile does not mind.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(self.pidfd.get_ref(), signal) {
            if error != rustix::io::Errno::SRCH {
                tracing::error!(%error, ?signal, "cannot send a signal");
            }
        }
    }
}
