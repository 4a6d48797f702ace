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

use super::web_socket::ServerFrames;
use super::{Client, Connection};
use crate::protocol::Protocol;
use crate::route::app_state::AppState;

/// How often one direction is read from before others get their turn.
const PIECES: u32 = 4;

/// What goes in one direction.
#[derive(Debug, Default)]
struct Way {
    /// What was read and not written yet. Most of those that are open are idle, and have nothing here.
    rest: Vec<u8>,
    /// Nothing more will be read.
    ended: bool,
    /// The other side knows.
    closed: bool,
    /// What goes to the client, where that is a WebSocket's.
    frames: ServerFrames,
    /// The time is limited: a WebSocket that ends now ends because of the server.
    is_limited: bool,
}

/// What becomes of bytes on their way.
enum Coding<'a> {
    /// They stay as they are.
    AsIs,
    /// To the client, they are the body of an answer.
    OfAnswer(&'a mut Protocol),
    /// Nothing but the answer is the application's: a web server may say that its client has left.
    Dropped(&'a mut Protocol, &'a Limits),
}

impl Coding<'_> {
    fn pass(&mut self, bytes: &[u8], rest: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Coding::AsIs => rest.extend_from_slice(bytes),
            Coding::OfAnswer(protocol) => protocol.write_bytes(bytes, rest),
            Coding::Dropped(protocol, limits) => {
                let read = protocol.read_ahead(bytes, limits);
                read.map_err(|_| io::ErrorKind::ConnectionAborted)?;
            }
        }
        Ok(())
    }

    /// The other side has ended.
    fn end(&mut self, rest: &mut Vec<u8>) {
        if let Coding::OfAnswer(protocol) = self {
            protocol.end(rest);
        }
    }
}

/// The front's end of the socket pair that the application has the other end of. Each call says for itself that it must
/// not block: nothing relies on flags of the socket.
#[derive(Debug)]
struct Application(UnixStream);

impl Connection {
    /// Relays between the client and the application's socket until both have ended.
    pub(super) async fn relay(&mut self, socket: OwnedFd) {
        self.counted.hijack();
        self.counted.deadline.set(None);
        self.stream.keep_looking_for_peer();
        if let Err(error) = self.relay_all(socket).await {
            // Either side may leave without notice; there is no answer left to send.
            tracing::debug!(%error, "a hijacked connection has ended");
        }
    }

    async fn relay_all(&mut self, socket: OwnedFd) -> io::Result<()> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let mut application = Application(UnixStream::from_std(socket)?);
        // What the client sent right behind its request.
        let rest = self.buffer.take();
        let ended = self.protocol.begin_relay() || self.client != Client::Open;
        let mut up = Way { rest, ended, ..Way::default() };
        let mut down = Way { frames: self.server_frames(), ..Way::default() };
        poll_fn(|context| self.poll_relay(context, &mut application, &mut up, &mut down)).await
    }

    fn poll_relay(
        &mut self,
        context: &mut Context<'_>,
        application: &mut Application,
        up: &mut Way,
        down: &mut Way,
    ) -> Poll<io::Result<()>> {
        self.shared.turn.step();
        self.limit_remaining_time(down);
        let mut scratch = self.shared.scratch.borrow_mut();
        let was_closed = down.closed;
        let limits = &self.shared.settings.limits;
        let mut coding = Coding::OfAnswer(&mut self.protocol);
        let from_application =
            down.poll(context, application, &mut self.stream, &mut coding, &mut scratch)?;
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
        if down.closed && !was_closed {
            // It may have gone for good, which shows only at the next byte for it. The client has this long.
            self.counted.deadline.at_most(self.shared.settings.limits.idle_timeout);
        }
        if self.counted.deadline.has_passed(context) {
            down.end();
            // As far as the client takes it now.
            let mut coding = Coding::OfAnswer(&mut self.protocol);
            let _ = down.poll(context, application, &mut self.stream, &mut coding, &mut scratch);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl Connection {
    /// Limits the time that is left, once the server, the application or the worker is to end.
    fn limit_remaining_time(&mut self, down: &mut Way) {
        if !down.is_limited && (self.shared.is_draining() || self.is_to_leave()) {
            down.is_limited = true;
            self.counted.deadline.at_most(self.shared.settings.hijacked_drain_timeout);
        }
    }

    /// Where the frames of a WebSocket begin, if it is one.
    fn server_frames(&self) -> ServerFrames {
        match (self.wants_web_socket, self.exchange.borrow().response.status) {
            (true, 101) => ServerFrames::BEGIN,
            (true, 0) => ServerFrames::HEAD,
            _ => ServerFrames::Foreign,
        }
    }

    fn is_to_leave(&self) -> bool {
        let leaves = |app: &AppState| app.is_leaving() || app.dispatcher.borrow().is_leaving(&self.exchange);
        self.visit.as_ref().is_some_and(|visit| leaves(visit))
    }
}

impl Way {
    /// Nothing more is read. A WebSocket that ends because of the server says so.
    fn end(&mut self) {
        let close = self.frames.close().filter(|_| self.is_limited && !self.ended && self.rest.is_empty());
        self.rest.extend(close.into_iter().flatten());
        self.ended = true;
    }

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
                self.end();
                coding.end(&mut self.rest);
                continue;
            }
            self.frames.follow(read.filled());
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
