//! A connection that the application has taken over: bytes go to and fro, and mean nothing here.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use highball_ring::descriptors::receive_bytes;
use rustix::net::{send, SendFlags};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;

use highball_config::Limits;

use super::server_close::{moment, ServerClose};
use super::web_socket::{ServerFrames, RESTART};
use super::{ClientSide, Connection, End};
use crate::clock::{now_ms, Deadline};
use crate::exchange::{Place, Request};
use crate::message::request_head::RequestHead;
use crate::protocol::Protocol;
use crate::request::transaction::{Leave, Transaction};
use crate::route::app_state::AppState;

/// How often one direction is read from before others get their turn.
const PIECES: u32 = 4;

/// What goes in one direction.
#[derive(Debug, Default)]
struct Way {
    /// What was read and not written yet. Most open relays are idle, and have nothing here.
    rest: Vec<u8>,
    /// Nothing more will be read.
    ended: bool,
    /// The other side knows.
    closed: bool,
}

/// A connection between its client and the application.
#[derive(Debug)]
struct Relay {
    application: Application,
    /// From the client to the application.
    up: Way,
    /// From the application to the client.
    down: Way,
    /// What goes down, where that is a WebSocket's.
    frames: ServerFrames,
    close: ServerClose,
}

/// What to do with bytes on their way.
enum Coding<'a> {
    /// They stay as they are.
    AsIs,
    /// To the client, they are the body of an answer, which may end as a WebSocket does.
    OfAnswer { protocol: &'a mut Protocol, frames: &'a mut ServerFrames, close: &'a mut ServerClose },
    /// Nothing but the answer is the application's: a web server may say that its client has left.
    Dropped(&'a mut Protocol, &'a Limits),
}

impl Coding<'_> {
    fn pass(&mut self, bytes: &[u8], rest: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Coding::AsIs => rest.extend_from_slice(bytes),
            Coding::OfAnswer { close, .. } if !close.passes() => {}
            Coding::OfAnswer { protocol, frames, close: ServerClose::Due { .. } } => {
                let length = frames.follow_to_end_of_frame(bytes);
                protocol.write_bytes(&bytes[..length], rest);
                self.close_between_frames(rest);
            }
            Coding::OfAnswer { protocol, frames, .. } => {
                frames.follow(bytes);
                protocol.write_bytes(bytes, rest);
            }
            Coding::Dropped(protocol, limits) => {
                let read = protocol.read_ahead(bytes, limits);
                read.map_err(|_| io::ErrorKind::ConnectionAborted)?;
            }
        }
        Ok(())
    }

    /// A close frame comes next, where it may.
    fn close_between_frames(&mut self, rest: &mut Vec<u8>) {
        if let Coding::OfAnswer { frames, close, .. } = self {
            if frames.are_complete() && close.passes() && **close != ServerClose::NotDue {
                rest.extend_from_slice(&RESTART);
                **close = ServerClose::Sent;
            }
        }
    }

    /// The other side has ended. A WebSocket that ends because of the server says so.
    fn end(&mut self, rest: &mut Vec<u8>) {
        self.close_between_frames(rest);
        if let Coding::OfAnswer { protocol, .. } = self {
            protocol.end(rest);
        }
    }
}

/// The front's end of the socket pair that the application has the other end of. Each call says for itself that it must
/// not block: nothing relies on flags of the socket.
#[derive(Debug)]
struct Application(UnixStream);

impl Connection {
    /// Relays between the client and the application's socket until both have ended. Returns the connection's end.
    pub(super) async fn relay(&mut self, socket: OwnedFd) -> End {
        self.counted.hijack();
        self.counted.deadline.set(None);
        self.stream.keep_looking_for_peer();
        if let Err(error) = self.relay_all(socket).await {
            // Either side may leave without notice; there is no answer left to send.
            tracing::debug!(%error, "a hijacked connection has ended");
        }
        self.request.leave_app(Leave::MayFinish, &self.shared);
        End::Linger
    }

    async fn relay_all(&mut self, socket: OwnedFd) -> io::Result<()> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        // What the client sent right behind its request.
        let rest = self.buffer.take();
        let ended = self.protocol.begin_relay() || self.client_side != ClientSide::Open;
        let mut relay = Relay {
            application: Application(UnixStream::from_std(socket)?),
            up: Way { rest, ended, ..Way::default() },
            down: Way::default(),
            frames: server_frames(&self.request),
            close: ServerClose::NotDue,
        };
        poll_fn(|context| self.poll_relay(context, &mut relay)).await
    }

    fn poll_relay(&mut self, context: &mut Context<'_>, relay: &mut Relay) -> Poll<io::Result<()>> {
        self.shared.turn.step();
        self.forget_request(context);
        self.limit_remaining_time(relay);
        let is_over = self.counted.deadline.has_passed(context) && !relay.begin_close(&self.counted.deadline);
        let Relay { application, up, down, frames, close } = relay;
        down.ended |= is_over;
        let mut scratch = self.shared.scratch.borrow_mut();
        let (was_closed, had_passed) = (down.closed, close.passes());
        let answer_time = close.answer_time();
        let mut coding = Coding::OfAnswer { protocol: &mut self.protocol, frames, close };
        if let Coding::OfAnswer { close: ServerClose::Due { .. }, .. } = &coding {
            coding.close_between_frames(&mut down.rest);
        }
        let from_application = down.poll(context, application, &mut self.stream, &mut coding, &mut scratch);
        if is_over {
            // The client has got what it takes now.
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let from_application = from_application?;
        let limits = &self.shared.settings.limits;
        let mut coding = match &mut self.protocol {
            protocol if protocol.can_be_taken_over_whole() => Coding::AsIs,
            protocol => Coding::Dropped(protocol, limits),
        };
        let from_client = match up.poll(context, &mut self.stream, application, &mut coding, &mut scratch) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                // The application has left; what it sent before is still on its way.
                *up = Way { ended: true, closed: true, ..Way::default() };
                Poll::Ready(())
            }
            polled => polled?,
        };
        if from_application.is_ready() && from_client.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if had_passed && !close.passes() {
            self.counted.deadline.set(Some(answer_time));
        }
        if down.closed && !was_closed {
            // It may have gone for good, which shows only at the next byte for it. The client has this long.
            self.counted.deadline.at_most(limits.idle_timeout);
        }
        Poll::Pending
    }

    /// Once the worker has ended its answer, nothing needs the request, and the connection may be open for days.
    fn forget_request(&mut self, context: &Context<'_>) {
        let mut inner = self.request.exchange.borrow();
        if inner.place != Place::Connection {
            inner.waker = Some(context.waker().clone());
        } else if !inner.request.head.is_empty() {
            inner.waker = None;
            inner.request = Request::default();
            self.request.head = RequestHead::new();
            self.request.request_id = None;
            self.request.user = None;
        }
    }

    /// Limits the time that is left, once the server, the application or the worker is to end.
    fn limit_remaining_time(&mut self, relay: &mut Relay) {
        if relay.close == ServerClose::NotDue && (self.shared.is_draining() || is_to_leave(&self.request)) {
            let time = self.shared.settings.hijacked_drain_timeout;
            relay.close = ServerClose::plan(time);
            let is_web_socket = relay.frames.may_be_closed() && !relay.down.ended;
            let moment = || moment(&self.shared.close_moments, time);
            self.counted.deadline.at_most(if is_web_socket { moment() } else { time });
        }
    }
}

impl Relay {
    /// The deadline has passed. `true`: that was the moment of a close frame, and the end of the time is the next.
    fn begin_close(&mut self, deadline: &Deadline) -> bool {
        let ServerClose::Planned { until_ms } = self.close else { return false };
        if self.down.ended {
            return false; // the application has ended the connection, and nothing may follow
        }
        if self.frames.may_be_closed() {
            self.close = ServerClose::Due { until_ms };
        } else if until_ms <= now_ms() {
            return false;
        }
        deadline.put_back(until_ms);
        true
    }
}

/// Where the frames of a WebSocket begin, if it is one.
fn server_frames(request: &Transaction) -> ServerFrames {
    let inner = request.exchange.borrow();
    match (inner.request.is_for_web_socket, inner.response.status) {
        (true, 101) => ServerFrames::BEGIN,
        (true, 0) => ServerFrames::HEAD,
        _ => ServerFrames::Foreign,
    }
}

/// Whether the application or the worker is to end.
fn is_to_leave(request: &Transaction) -> bool {
    let leaves = |app: &AppState| app.is_leaving() || app.dispatcher.borrow().is_leaving(&request.exchange);
    request.visit.as_ref().is_some_and(|visit| leaves(visit))
}

impl Way {
    /// Passes on what comes `from` one side `to` the other, until it has ended.
    fn poll<R, W>(
        &mut self,
        context: &mut Context<'_>,
        from: &mut R,
        to: &mut W,
        coding: &mut Coding<'_>,
        scratch: &mut [u8],
    ) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        for _ in 0..PIECES {
            while !self.rest.is_empty() {
                let written = ready!(Pin::new(&mut *to).poll_write(context, &self.rest))?;
                self.rest.drain(..written);
            }
            self.rest = Vec::new();
            if self.closed {
                return Poll::Ready(Ok(()));
            }
            if self.ended {
                ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                self.closed = true;
                return Poll::Ready(Ok(()));
            }
            let mut read = ReadBuf::new(scratch);
            ready!(Pin::new(&mut *from).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                self.ended = true;
                coding.end(&mut self.rest);
                continue;
            }
            coding.pass(read.filled(), &mut self.rest)?;
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncRead for Application {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = &self.0;
        loop {
            ready!(socket.poll_read_ready(context))?;
            let free = buffer.initialize_unfilled();
            let read = || receive_bytes(socket, free);
            match socket.try_io(Interest::READABLE, read) {
                Ok(length) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Application {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let socket = &self.0;
        loop {
            ready!(socket.poll_write_ready(context))?;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let write = || send(socket, bytes, flags).map_err(io::Error::from);
            match socket.try_io(Interest::WRITABLE, write) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
