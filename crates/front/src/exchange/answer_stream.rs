//! The rest of an answer that has left its place: its frames come over a socket, one in each packet. A mistake there concerns
//! this answer alone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{ready, Context, Poll};

use highball_ring::descriptors::receive_message;
use highball_ring::RingError;
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::clock::now_us;
use crate::exchange::response::Descriptors;
use crate::exchange::{Exchange, Inner};
use crate::message::refusal::Refusal;

/// Bytes of a stream that wait in this process for its client, beside the last packet. About as many wait in the socket. Then
/// the writer waits.
pub(crate) const STREAM_BUFFER: usize = 16 * 1024;

/// Number of packets to take before others get their turn.
const PACKETS: u32 = 8;

/// The front's end of the socket.
#[derive(Debug)]
pub(crate) struct AnswerStream {
    socket: Socket,
    worker: u32,
    /// Whether the worker has died. What it sent before is still good.
    pub(crate) worker_has_died: bool,
}

/// The socket, watched by the event loop from the first read on, in the task of its connection.
#[derive(Debug)]
enum Socket {
    Unwatched(Option<OwnedFd>),
    /// Carries packets, for which tokio has no type; only [`receive`] reads from it.
    Watched(UnixStream),
}

/// State of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamNews {
    /// Nothing has come, or there is no room for it.
    None,
    /// A part of the body has come.
    Some,
    /// The answer is complete, or cannot be completed.
    Ended,
}

impl AnswerStream {
    pub(crate) fn new(socket: OwnedFd, worker: u32) -> Self {
        AnswerStream { socket: Socket::Unwatched(Some(socket)), worker, worker_has_died: false }
    }

    /// Returns whether nothing was read yet.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.socket, Socket::Unwatched(_))
    }

    /// Receives a packet. Returns its length; 0 at the end.
    fn poll_packet(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Socket::Unwatched(socket) = &mut self.socket {
            let socket = socket.take().ok_or(io::ErrorKind::NotConnected)?;
            self.socket = Socket::Watched(UnixStream::from_std(socket.into())?);
        }
        let Socket::Watched(socket) = &self.socket else { return Poll::Pending };
        if self.worker_has_died {
            return Poll::Ready(match receive(socket, buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                received => received,
            });
        }
        loop {
            ready!(socket.poll_read_ready(context))?;
            match socket.try_io(Interest::READABLE, || receive(socket, buffer)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return Poll::Ready(received),
            }
        }
    }
}

fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let message = receive_message(socket, buffer, RecvFlags::DONTWAIT)?;
    match message.is_cut_off {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "a packet that is larger than any frame")),
        false => Ok(message.length),
    }
}

impl Exchange {
    /// Takes what has come over the socket, as far as there is room for it.
    pub(crate) fn poll_stream(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> StreamNews {
        let mut inner = self.borrow();
        let mut news = StreamNews::None;
        for _ in 0..PACKETS {
            if inner.stream.is_none() || inner.response.room(STREAM_BUFFER, 0) == 0 {
                return news;
            }
            let Some(stream) = &mut inner.stream else { return news };
            let Poll::Ready(received) = stream.poll_packet(context, buffer) else { return news };
            news = StreamNews::Some;
            inner.take_packet(received.map(|length| &buffer[..length]));
            if inner.stream.is_none() {
                return StreamNews::Ended;
            }
        }
        context.waker().wake_by_ref();
        news
    }
}

impl Inner {
    fn take_packet(&mut self, received: io::Result<&[u8]>) {
        let Some(stream) = &self.stream else { return };
        let worker = stream.worker;
        let fed = match received {
            Ok([]) => {
                self.response.fail(Refusal::WorkerDied { worker });
                self.stream = None;
                return;
            }
            Ok(packet) => self.response.feed(packet, &mut NoDescriptors).map_err(io::Error::other),
            Err(error) => Err(error),
        };
        if let Err(error) = fed {
            tracing::error!(
                name: "stream_broken",
                worker, %error, "a streamed answer is cut off: what came over its socket is not of Highball's protocol"
            );
            self.response.fail(Refusal::BadResponse { why: "is not of Highball's protocol" });
            self.stream = None;
        } else if self.response.worker_is_done() {
            self.stream = None;
            if self.moments.are_measured {
                self.moments.ended_us = now_us();
            }
        }
    }
}

/// No frame over such a socket announces a descriptor.
struct NoDescriptors;

impl Descriptors for NoDescriptors {
    fn receive_file(&mut self) -> Result<OwnedFd, RingError> {
        Err(RingError::Breach("a file in an answer that has left its place"))
    }

    fn connect(&mut self) -> Result<OwnedFd, RingError> {
        Err(RingError::Breach("a hijack in an answer that has left its place"))
    }

    fn may_stream(&mut self) -> bool {
        false
    }
}
