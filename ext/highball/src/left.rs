//! Answers that have left their place: the slot is the front's again, and the rest of the body goes over a socket that the front
//! has offered. A frame is a packet, so that none is half written, whatever ends a thread; a socket that is closed without the
//! frame `END` cuts the answer off.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use highball_ring::frame::{Header, Kind, HEADER_BYTES};
use magnus::{Error, Ruby};
use rustix::io::Errno;
use rustix::net::{send, shutdown, SendFlags, Shutdown};

use crate::nogvl;

/// What becomes of an answer that has left. With the GVL held only.
#[derive(Debug)]
pub(crate) enum Left {
    /// Its body goes over this socket.
    Stream(Arc<Socket>),
    /// The application has the connection, or gets it: its thread has not received this socket.
    Connection(Option<OwnedFd>),
}

/// The worker's end of a socket that an answer goes over.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: OwnedFd,
    /// The last frame was written: another thread of the application may still want to write.
    has_ended: AtomicBool,
}

impl Socket {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Socket { socket, has_ended: AtomicBool::new(false) }
    }

    /// Sends one frame, and waits until there is room, with the GVL released. `false`: the client has gone, or the front has
    /// given the answer up.
    ///
    /// # Errors
    /// What an interrupt raised, or `IOError`: another thread has ended the answer.
    pub(crate) fn send(&self, ruby: &Ruby, kind: Kind, payload: &[u8]) -> Result<bool, Error> {
        let mut packet = Vec::with_capacity(HEADER_BYTES + payload.len());
        packet.extend_from_slice(&Header { kind, length: payload.len() }.encode());
        packet.extend_from_slice(payload);
        loop {
            if self.has_ended.load(Relaxed) {
                let why = "the answer to this request has ended already";
                return Err(Error::new(ruby.exception_io_error(), why));
            }
            match send(&self.socket, &packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) => {
                    self.has_ended.store(kind == Kind::End, Relaxed);
                    return Ok(true);
                }
                Err(Errno::AGAIN | Errno::NOBUFS) => nogvl::wait_writable(self.socket.as_fd())?,
                Err(Errno::INTR) => {}
                Err(_) => return Ok(false),
            }
        }
    }

    /// Whether the front has closed the other end.
    fn is_unread(&self) -> bool {
        use rustix::event::{poll, PollFd, PollFlags, Timespec};
        let mut socket = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        poll(&mut socket, Some(&now)).is_ok_and(|ready| ready > 0) && socket[0].revents().intersects(gone)
    }
}

/// The answers of a worker that have left and not ended, by ticket.
#[derive(Debug, Default)]
pub(crate) struct LeftAnswers(RefCell<HashMap<u64, Left>>);

impl LeftAnswers {
    pub(crate) fn add(&self, ticket: u64, left: Left) {
        self.0.borrow_mut().insert(ticket, left);
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.borrow().len() as u32
    }

    pub(crate) fn has(&self, ticket: u64) -> bool {
        let answers = self.0.borrow();
        !answers.is_empty() && answers.contains_key(&ticket)
    }

    /// The socket that the answer with this ticket goes over, if it has left so.
    pub(crate) fn socket(&self, ticket: u64) -> Option<Arc<Socket>> {
        match self.0.borrow().get(&ticket) {
            Some(Left::Stream(socket)) => Some(Arc::clone(socket)),
            Some(Left::Connection(_)) | None => None,
        }
    }

    /// The socket of a connection that the application has taken over, if it had not received it when its answer left; once.
    pub(crate) fn take_connection(&self, ticket: u64) -> Option<OwnedFd> {
        match self.0.borrow_mut().get_mut(&ticket) {
            Some(Left::Connection(socket)) => socket.take(),
            Some(Left::Stream(_)) | None => None,
        }
    }

    /// Whether the application has the connection of this request.
    pub(crate) fn is_connection(&self, ticket: u64) -> bool {
        matches!(self.0.borrow().get(&ticket), Some(Left::Connection(_)))
    }

    /// Whether the client of this answer has gone.
    pub(crate) fn is_unread(&self, ticket: u64) -> bool {
        self.socket(ticket).is_some_and(|socket| socket.is_unread())
    }

    /// The answer has ended. `false`: it had before, or has not left.
    pub(crate) fn end(&self, ticket: u64) -> bool {
        let ended = self.0.borrow_mut().remove(&ticket);
        if let Some(Left::Stream(socket)) = &ended {
            socket.has_ended.store(true, Relaxed);
            // Processes that the application has forked may have it, too, and another thread may wait for room in it.
            let _ = shutdown(&socket.socket, Shutdown::Both); // the front may have closed its end
        }
        ended.is_some()
    }
}
