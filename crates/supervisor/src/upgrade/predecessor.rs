//! A hot restart as the new process sees it: what it inherits from the old one, and its messages to it.

use crate::control::control_socket::{receive_packet, send_packet, ControlSocket};
use crate::control::handover::{FromSuccessor, ToSuccessor, VARIABLE};
use highball_link::HubSequence;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The process that this one is to succeed.
#[derive(Debug)]
pub struct Predecessor {
    pid: i32,
    control: OwnedFd,
    listeners: Vec<(String, OwnedFd)>,
    pid_proxy: Option<OwnedFd>,
    broken: Vec<String>,
    ticket_keys: Option<String>,
    /// The socket to its front, and how messages are numbered.
    front: Option<(OwnedFd, HubSequence)>,
}

impl Predecessor {
    /// The server that has started this process; `None` if something else has. To be called before there are
    /// threads, and before anything is opened.
    ///
    /// # Errors
    /// It has gone, or sent an invalid message.
    pub fn from_environment() -> io::Result<Option<Predecessor>> {
        let Some(control) = highball_spawner::exec::take(VARIABLE)? else { return Ok(None) };
        let (mut listeners, mut pid_proxy) = (Vec::new(), None);
        loop {
            let (bytes, mut descriptors) =
                receive_packet(&control)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            match (serde_json::from_slice(&bytes)?, descriptors.pop()) {
                (ToSuccessor::Listener { bind }, Some(socket)) => listeners.push((bind, socket)),
                (ToSuccessor::PidProxy, socket) => pid_proxy = socket,
                (ToSuccessor::Begin { pid, broken, ticket_keys, hub }, front) => {
                    let front = front.zip(hub);
                    return Ok(Some(Predecessor {
                        pid,
                        control,
                        listeners,
                        pid_proxy,
                        broken,
                        ticket_keys,
                        front,
                    }));
                }
                (ToSuccessor::Listener { .. } | ToSuccessor::TakeOver, _) => {
                    return Err(io::Error::other("the old process sent a message at the wrong time"))
                }
            }
        }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether the application with this name does not serve there either.
    pub fn is_without(&self, app: &str) -> bool {
        self.broken.iter().any(|name| name == app)
    }

    /// The keys of its TLS session tickets, if it has some; once.
    pub fn take_ticket_keys(&mut self) -> Option<String> {
        self.ticket_keys.take()
    }

    /// The socket to its front, and how this process numbers messages, if it can pass on what its hubs keep; once.
    pub fn take_front(&mut self) -> Option<(OwnedFd, HubSequence)> {
        self.front.take()
    }

    /// The socket that listens on this address, as it was given; once.
    pub fn take_listener(&mut self, bind: &str) -> Option<OwnedFd> {
        let index = self.listeners.iter().position(|(address, _)| address == bind)?;
        Some(self.listeners.swap_remove(index).1)
    }

    /// The socket to the PID proxy, if there is one.
    pub fn take_pid_proxy(&mut self) -> Option<OwnedFd> {
        self.pid_proxy.take()
    }

    /// Closes the sockets that were not taken: addresses that are not listened on any more.
    pub fn drop_rest(&mut self) {
        self.listeners.clear();
    }

    /// Reports that the application boots, and when it is to be given up.
    pub fn booting(&self, version: &str, limit: Duration) {
        self.send(&FromSuccessor::Booting { version: version.into(), limit_ms: limit.as_millis() as u64 });
    }

    /// Reports that everything is there to serve, and on which addresses the old process need not accept any more.
    pub fn ready(&self, kept: Vec<String>) {
        self.send(&FromSuccessor::Ready { kept });
    }

    /// Reports that connections are accepted.
    pub fn serving(&self) {
        self.send(&FromSuccessor::Serving);
    }

    /// Reports why this process gives up.
    pub fn failed(&self, why: &str) {
        self.send(&FromSuccessor::Failed { why: why.into() });
    }

    /// Where the old process has gone, the message is lost; [`Predecessor::yields`] notices that it has gone.
    fn send(&self, message: &FromSuccessor) {
        if let Err(error) = send_packet(&self.control, message, &[]) {
            tracing::debug!(%error, "the old process cannot be reached");
        }
    }

    /// Waits until the old process, which this one has succeeded, has no companions any more, or is gone.
    pub async fn has_no_companions(&self) {
        let Ok(socket) = self.control.try_clone().and_then(ControlSocket::over) else { return };
        while let Ok(Some(_)) = socket.receive::<ToSuccessor>().await {}
    }

    /// Waits until the old process orders this one to take over. `false`: it has gone instead, or has given up.
    pub async fn yields(&self) -> bool {
        let heard = async {
            let socket = ControlSocket::over(self.control.try_clone()?)?;
            socket.receive::<ToSuccessor>().await
        };
        matches!(heard.await, Ok(Some(packet)) if packet.message == ToSuccessor::TakeOver)
    }
}
