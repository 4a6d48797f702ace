//! Answers that have left their place: the slot is the front's again, and the rest of the body goes over a socket that the front
//! has offered. A frame is a packet, so that none is half written, whatever ends a thread; a socket that is closed without the
//! frame `END` cuts the answer off.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use highball_ring::frame::{Header, Kind, HEADER_BYTES};
use magnus::{Error, Ruby};
use rustix::io::Errno;
use rustix::net::{send, shutdown, SendFlags, Shutdown};

use crate::nogvl;

/// How an answer goes on after it has left. With the GVL held only.
#[derive(Debug)]
pub(crate) enum Left {
    /// Its body goes over this socket.
    Stream(Arc<Socket>),
    /// The application has the connection, or gets it: its thread has not received this socket.
    Connection(Option<OwnedFd>),
}

impl Left {
    fn is_of_fiber(&self) -> bool {
        matches!(self, Left::Stream(socket) if socket.is_of_fiber)
    }
}

/// The worker's end of a socket that an answer goes over.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: OwnedFd,
    /// The last frame was written: another thread of the application may still want to write.
    has_ended: AtomicBool,
    /// Whether the head was written, when the answer left or since.
    has_head: AtomicBool,
    /// Whether its request runs on a fiber.
    is_of_fiber: bool,
    /// Whether the client's method is HEAD.
    pub(crate) is_for_head: bool,
    /// Whether the application writes a line about this request itself.
    pub(crate) is_logged: AtomicBool,
}

impl Socket {
    /// Of an answer whose body is under way.
    pub(crate) fn for_rest(socket: OwnedFd) -> Self {
        Socket {
            socket,
            has_ended: AtomicBool::new(false),
            has_head: AtomicBool::new(true),
            is_of_fiber: false,
            is_for_head: false,
            is_logged: AtomicBool::new(false),
        }
    }

    /// Of an answer that has not begun, of a request that runs on a fiber.
    pub(crate) fn for_whole(socket: OwnedFd, is_for_head: bool) -> Self {
        Socket {
            has_head: AtomicBool::new(false),
            is_of_fiber: true,
            is_for_head,
            ..Socket::for_rest(socket)
        }
    }

    /// Whether the head was written.
    pub(crate) fn has_head(&self) -> bool {
        self.has_head.load(Relaxed)
    }

    /// The head is to be written next, here alone.
    pub(crate) fn takes_head(&self) -> bool {
        !self.has_head.swap(true, Relaxed)
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
        self.send_packet(ruby, &packet, kind == Kind::End)
    }

    /// Sends whole frames, with the last one of the answer or not. As `send`.
    pub(crate) fn send_packet(&self, ruby: &Ruby, packet: &[u8], ends: bool) -> Result<bool, Error> {
        loop {
            if self.has_ended.load(Relaxed) {
                let why = "the answer to this request has ended already";
                return Err(Error::new(ruby.exception_io_error(), why));
            }
            match send(&self.socket, packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) => {
                    self.has_ended.store(ends, Relaxed);
                    return Ok(true);
                }
                Err(Errno::AGAIN | Errno::NOBUFS) => nogvl::wait_writable(ruby, self.socket.as_fd())?,
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
pub(crate) struct LeftAnswers {
    answers: RefCell<HashMap<u64, Left>>,
    on_fibers: Cell<u32>,
}

impl LeftAnswers {
    pub(crate) fn add(&self, ticket: u64, left: Left) {
        self.on_fibers.set(self.on_fibers.get() + u32::from(left.is_of_fiber()));
        self.answers.borrow_mut().insert(ticket, left);
    }

    /// How many there are, and how many of those are of requests that run on fibers.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.answers.borrow().len() as u32, self.on_fibers.get())
    }

    pub(crate) fn has(&self, ticket: u64) -> bool {
        let answers = self.answers.borrow();
        !answers.is_empty() && answers.contains_key(&ticket)
    }

    /// The socket that the answer with this ticket goes over, if it has left so.
    pub(crate) fn socket(&self, ticket: u64) -> Option<Arc<Socket>> {
        match self.answers.borrow().get(&ticket) {
            Some(Left::Stream(socket)) => Some(Arc::clone(socket)),
            Some(Left::Connection(_)) | None => None,
        }
    }

    /// The socket of a connection that the application has taken over, if it had not received it when its answer left; once.
    pub(crate) fn take_connection(&self, ticket: u64) -> Option<OwnedFd> {
        match self.answers.borrow_mut().get_mut(&ticket) {
            Some(Left::Connection(socket)) => socket.take(),
            Some(Left::Stream(_)) | None => None,
        }
    }

    /// Whether the application has the connection of this request.
    pub(crate) fn is_connection(&self, ticket: u64) -> bool {
        matches!(self.answers.borrow().get(&ticket), Some(Left::Connection(_)))
    }

    /// Whether the client of this answer has gone.
    pub(crate) fn is_unread(&self, ticket: u64) -> bool {
        self.socket(ticket).is_some_and(|socket| socket.is_unread())
    }

    /// The answer has ended. `false`: it had before, or has not left.
    pub(crate) fn end(&self, ticket: u64) -> bool {
        let ended = self.answers.borrow_mut().remove(&ticket);
        if let Some(Left::Stream(socket)) = &ended {
            self.on_fibers.set(self.on_fibers.get() - u32::from(socket.is_of_fiber));
            if socket.takes_head() {
                // The front answers in its place, unless it has gone. There is room: nothing was sent.
                let abort = Header { kind: Kind::Abort, length: 0 }.encode();
                let _ = send(&socket.socket, &abort, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            }
            socket.has_ended.store(true, Relaxed);
            // Processes that the application has forked may have it, too, and another thread may wait for room in it.
            let _ = shutdown(&socket.socket, Shutdown::Both); // the front may have closed its end
        }
        ended.is_some()
    }
}
