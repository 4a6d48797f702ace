//! The process that is to take this one's place in a hot restart, as the old one sees it.

use crate::control::control_socket::ControlSocket;
use crate::control::handover::{ToPidProxy, ToSuccessor};
use crate::process::launcher::Who;
use crate::process::watcher::{HeldProcess, Watch, Watcher};
use highball_link::HubSequence;
use highball_ring::descriptors::stream_pair;
use rustix::process::{pidfd_open, Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// The keys of TLS session tickets at the time of the call.
#[derive(Clone)]
pub struct TicketKeys(pub Arc<dyn Fn() -> String + Send + Sync>);

impl fmt::Debug for TicketKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TicketKeys")
    }
}

/// What a process needs to have a successor.
#[derive(Debug)]
pub struct UpgradeContext {
    /// The path that it was started by: the program of the next one is what stands there by then.
    pub program: PathBuf,
    /// Its arguments, its own name first.
    pub arguments: Vec<OsString>,
    /// What it listens on: the address as it was given, and the socket.
    pub listeners: Vec<(String, OwnedFd)>,
    /// The socket to the PID proxy, if that is another process. Without one, this process becomes the PID proxy of its
    /// successors.
    pub pid_proxy: Option<OwnedFd>,
    /// For clients with TLS.
    pub ticket_keys: Option<TicketKeys>,
    /// How this process numbers the messages of applications.
    pub hub: HubSequence,
}

impl UpgradeContext {
    /// Reports the successor of this process to the PID proxy. `false`: there is none.
    pub(crate) fn report_to_pid_proxy(&self, pid: Pid) -> bool {
        let Some(socket) = &self.pid_proxy else { return false };
        let sent = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from).and_then(|pidfd| {
            let message = ToPidProxy::Succeeded { pid: pid.as_raw_pid() };
            crate::control::control_socket::send_packet(socket, &message, &[pidfd.as_fd()])
        });
        if let Err(error) = &sent {
            tracing::debug!(%error, "the PID proxy has gone");
        }
        sent.is_ok()
    }
}

/// The new process.
#[derive(Debug)]
pub(crate) struct Successor {
    pub(crate) pid: Pid,
    process: HeldProcess,
    control: Arc<ControlSocket>,
    _watch: Watch,
}

impl Successor {
    /// Starts it, and hands it what it inherits. `pid_proxy` is the socket to its PID proxy; `broken` are the names of
    /// the applications that it need not bring up. Also returns the front's end of the socket to its front.
    pub(crate) fn spawn(
        context: &UpgradeContext,
        pid_proxy: Option<&OwnedFd>,
        broken: Vec<String>,
        watcher: &Watcher,
    ) -> io::Result<(Successor, OwnedFd)> {
        let (control, theirs) = ControlSocket::pair()?;
        for (bind, socket) in &context.listeners {
            control.send(&ToSuccessor::Listener { bind: bind.clone() }, &[socket.as_fd()])?;
        }
        if let Some(socket) = pid_proxy {
            control.send(&ToSuccessor::PidProxy, &[socket.as_fd()])?;
        }
        let own = watcher.launcher.pid().as_raw_pid();
        let ticket_keys = context.ticket_keys.as_ref().map(|TicketKeys(now)| now());
        let (front, their_front) = stream_pair().map_err(io::Error::other)?;
        let hub = Some(context.hub.of_next_process());
        control.send(&ToSuccessor::Begin { pid: own, broken, ticket_keys, hub }, &[their_front.as_fd()])?;
        let (pid, pidfd) =
            watcher.launcher.start_successor((&context.program, &context.arguments), theirs)?;
        let process = watcher.hold(pidfd, Who::Successor(pid))?;
        let control = Arc::new(control);
        let watch = watcher.successor(Arc::clone(&control), pid);
        Ok((Successor { pid, process, control, _watch: watch }, front))
    }

    /// Lets it accept connections.
    pub(crate) fn take_over(&self) -> io::Result<()> {
        self.control.send(&ToSuccessor::TakeOver, &[])
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Only the process, and its control socket: messages are not read any more.
    pub(crate) fn into_process(self) -> (HeldProcess, Arc<ControlSocket>) {
        (self.process, self.control)
    }
}
