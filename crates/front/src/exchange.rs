//! One request and its answer, between the connection that has them and the dispatcher that brings them
//! together with a worker.
//!
//! In reading order: this file (a request and its place at a worker); [`kind`] (requests that differ only by keys); [`sink`], [`spool`] and [`spool_room`] (where a
//! body goes as it arrives); [`response`] (the answer, from frames to events), [`frame_reader`] and [`response_head`]
//! (what a worker wrote, checked), [`sent_file`] (an answer that is a file), [`answer_stream`] (an answer that goes on without a place
//! at its worker).

pub(crate) mod answer_stream;
pub mod frame_reader;
mod kind;
pub mod response;
pub mod response_head;
pub mod sent_file;
pub(crate) mod sink;
pub mod spool;
pub mod spool_room;

use std::cell::{RefCell, RefMut};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::Waker;

use highball_ring::Ticket;

use crate::affinity::Session;
use crate::exchange::answer_stream::AnswerStream;
use crate::exchange::kind::kind_of;
use crate::exchange::response::Response;
use crate::exchange::sink::Buffered;
use crate::exchange::spool::SpoolFile;
use crate::moments::Moments;

/// A request's body, all of it.
#[derive(Debug, Default)]
pub(crate) enum Body {
    /// There is none.
    #[default]
    None,
    /// Small enough for the slot.
    Memory(Buffered),
    /// Larger.
    Spooled(Rc<SpoolFile>),
}

/// A request as it is placed: kept by the front until its answer begins, so that it can be given to another
/// worker.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The encoded head block.
    pub(crate) head: Vec<u8>,
    /// The body.
    pub(crate) body: Body,
    /// Whether it may be given to a second worker although a first had begun it.
    pub(crate) repeatable: bool,
    /// Whether it was.
    pub(crate) repeated: bool,
    /// Whether it asks for a WebSocket, which may outlast all other requests.
    pub(crate) is_for_web_socket: bool,
    /// Its [`kind`], once asked for.
    pub(crate) kind: Option<u64>,
    /// Whether it runs on a fiber.
    pub(crate) on_fiber: bool,
    /// The session that it belongs to, where those stay with their workers.
    pub(crate) session: Option<Session>,
    /// The number of its visitor, in a rollout.
    pub(crate) visitor: Option<u16>,
    /// Its head as it was received, if it may turn out to be for a file: where those are is known when the application
    /// has booted. Empty otherwise.
    pub(crate) received: Vec<u8>,
}

impl Request {
    /// Whether its body is in a file.
    pub(crate) fn is_spooled(&self) -> bool {
        matches!(self.body, Body::Spooled(_))
    }

    /// Whether it stays where it is placed: what comes with it, a file or a socket, has gone already when it is taken back.
    pub(crate) fn stays(&self) -> bool {
        self.on_fiber || self.is_spooled()
    }
}

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// With its connection.
    Connection,
    /// In the request queue.
    Queue,
    /// With a worker, until that has ended its answer.
    Worker(u32, Ticket),
    /// Its answer has left its place at this worker, and goes on.
    Stream(u32, Ticket),
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct Exchange(RefCell<Inner>);

/// What connection and dispatcher both work on.
#[derive(Debug)]
pub(crate) struct Inner {
    /// The request.
    pub(crate) request: Request,
    /// The answer.
    pub(crate) response: Response,
    /// Where the request is.
    pub(crate) place: Place,
    /// The generation of the application that answered last on this connection, 0 before its first answer: an older
    /// one never does again.
    pub(crate) generation: u32,
    /// When its steps were.
    pub(crate) moments: Moments,
    /// When the time limit for the beginning of the answer passes, if there is one.
    pub(crate) limit_ms: Option<u64>,
    /// The worker whose application has taken the connection over.
    pub(crate) taken_over_by: Option<u32>,
    /// When the head of an answer that goes on was seen, and when its last bytes were, in milliseconds.
    pub(crate) head_ms: u64,
    pub(crate) body_ms: u64,
    /// Whether the worker has been asked to free its place.
    pub(crate) is_to_leave: bool,
    /// The socket that the rest of the answer may come over.
    pub(crate) offered: Option<OwnedFd>,
    /// The socket that the rest of it comes over.
    pub(crate) stream: Option<Box<AnswerStream>>,
    /// The connection's task, to be woken when there is something to do.
    pub(crate) waker: Option<Waker>,
}

impl Exchange {
    /// An exchange of nothing yet.
    pub(crate) fn new() -> Self {
        Exchange::after(0)
    }

    /// An exchange of nothing yet, where this generation of the application answered last.
    pub(crate) fn after(generation: u32) -> Self {
        Exchange(RefCell::new(Inner {
            request: Request::default(),
            response: Response::new(),
            place: Place::Connection,
            generation,
            moments: Moments::default(),
            limit_ms: None,
            taken_over_by: None,
            head_ms: 0,
            body_ms: 0,
            is_to_leave: false,
            offered: None,
            stream: None,
            waker: None,
        }))
    }

    /// The state. Never held while anything else is called that could ask for it.
    pub(crate) fn borrow(&self) -> RefMut<'_, Inner> {
        self.0.borrow_mut()
    }

    /// The kind of its request.
    pub(crate) fn kind(&self) -> u64 {
        let mut inner = self.borrow();
        let request = &mut inner.request;
        *request.kind.get_or_insert_with(|| kind_of(&request.head))
    }

    /// Whether its request belongs to a session that stays with a worker.
    pub(crate) fn is_bound(&self) -> bool {
        self.borrow().request.session.is_some_and(|session| session.is_known)
    }

    /// Wakes the connection's task.
    pub(crate) fn wake(&self) {
        // A task that is woken runs later, so that nothing asks for the state here.
        if let Some(waker) = &self.borrow().waker {
            waker.wake_by_ref();
        }
    }
}
