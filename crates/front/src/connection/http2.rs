//! A connection that speaks HTTP/2: each of its streams is a [`Connection`] with one request, in a separate task, which
//! passes the same stages as one of HTTP/1. Here is what the streams share: the socket, the time that it may be idle, and the
//! end.

mod arrival;

use std::cell::{Cell, RefCell};
use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use highball_config::{AppId, Limits};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::spawn_local;

use super::{closing, serve_stream};
use crate::budget::Joint;
use crate::clock::{now_ms, Deadline};
use crate::message::request_head::MAX_FIELDS;
use crate::request::client::Joints;
use crate::shared::{Counted, Shared};
use crate::transport::http2::{Http2Stream, Piece, Unsent, PIECE_BYTES};
use crate::transport::stream::{Peer, Stream};
use arrival::Arrival;

/// What a client may send of the body of a request, and of all bodies on a connection, before it was read. Bodies are read at
/// once, unless a disk is slow: so a connection holds this much of memory at most. An upload over a line of 100 ms gets 2.5 MB
/// a second.
const WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;

/// What the bodies and answers of a connection may hold in memory together: as much as this number of answers. Beyond it, they go
/// to spool files. A client can open a hundred streams with one packet, and take nothing of any answer.
const ANSWERS_IN_MEMORY: u64 = 4;

/// What the encoders of a connection may hold together. Beyond it, answers are sent uncompressed.
const ENCODER_BYTES: u64 = 8 << 20;

/// What the heads of the streams of a connection may have together: a hundred of two kilobytes several times over, and a few of the
/// largest. A stream beyond it is refused, so that the client repeats it.
const HEAD_BYTES: usize = 1 << 20;
const HEADS_AT_LEAST: usize = 4;

/// What a field costs beside its name and value (RFC 9113 section 6.5.2).
const FIELD_BYTES: usize = 32;

/// Streams that the client may reset before they are answered: this many at once, and this many per second. Each costs the server
/// more than the client. (Those of nghttp2, and so of Apache.)
const RESETS: u32 = 1000;
const RESETS_PER_SECOND: u64 = 33;

/// How long a client may take to confirm that it sends no more requests.
const GOODBYE: Duration = Duration::from_secs(2);

/// What the streams of a connection share.
#[derive(Debug)]
pub(super) struct Streams {
    /// How many streams are served, and the bytes of their heads.
    running: Cell<usize>,
    head_bytes: Cell<usize>,
    /// How often the client may still reset one, at this time in milliseconds.
    resets: Cell<(u32, u64)>,
    /// The generation of each application that answered last on this connection, the last of all at the end.
    generations: RefCell<Vec<(AppId, u32)>>,
    unsent: Rc<Unsent>,
    joints: Rc<Joints>,
    deadline: Rc<Deadline>,
}

/// A stream that is served, while this lives.
#[derive(Debug)]
pub(super) struct Running {
    streams: Rc<Streams>,
    head_bytes: Cell<usize>,
}

/// A connection.
struct Http2Connection {
    h2: h2::server::Connection<Socket, Piece>,
    socket: Rc<RefCell<Stream>>,
    peer: Peer,
    shared: Rc<Shared>,
    counted: Counted,
    streams: Rc<Streams>,
    activity: Activity,
    arrival: Rc<Arrival>,
    /// The deadline as it is but for a head on its way.
    without_head_ms: Option<u64>,
    /// The client knows that it can send no more requests.
    is_leaving: bool,
}

/// What it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It serves requests.
    Serving,
    /// It has served all, and this number of bytes is not sent yet.
    Sending(usize),
    /// It waits for a request.
    Idle,
}

/// The client's socket, with what was read of it before.
struct Socket {
    stream: Rc<RefCell<Stream>>,
    read: Vec<u8>,
    arrival: Rc<Arrival>,
}

/// The life of a connection. `read`: what was read of it already.
pub(super) async fn serve(stream: Stream, read: Vec<u8>, peer: Peer, shared: Rc<Shared>, counted: Counted) {
    let socket = Rc::new(RefCell::new(stream));
    counted.work();
    counted.deadline.set(Some(shared.settings.limits.head_timeout));
    let arrival = Rc::new(Arrival::new());
    let io = Socket { stream: Rc::clone(&socket), read, arrival: Rc::clone(&arrival) };
    let Some(h2) = greet(io, &shared.settings.limits, &counted.deadline).await else { return };
    let streams = Rc::new(Streams {
        running: Cell::new(0),
        head_bytes: Cell::new(0),
        resets: Cell::new((RESETS, now_ms())),
        generations: RefCell::default(),
        unsent: Rc::default(),
        joints: Rc::new(Joints {
            buffers: Joint::new(ANSWERS_IN_MEMORY * shared.settings.limits.response_buffer_bytes as u64),
            encoders: Joint::new(ENCODER_BYTES),
        }),
        deadline: Rc::clone(&counted.deadline),
    });
    let mut connection = Http2Connection {
        h2,
        socket,
        peer,
        shared,
        counted,
        streams,
        activity: Activity::Serving,
        arrival,
        without_head_ms: None,
        is_leaving: false,
    };
    poll_fn(|context| connection.poll(context)).await;
    connection.close().await;
}

/// Exchanges the first frames. `None`: the client does not speak HTTP/2, or not in time.
async fn greet(
    socket: Socket,
    limits: &Limits,
    deadline: &Deadline,
) -> Option<h2::server::Connection<Socket, Piece>> {
    let fields = limits.header_fields.min(MAX_FIELDS);
    let head_bytes = limits.head_bytes + fields * FIELD_BYTES;
    let mut handshake = pin!(Builder::new()
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(limits.http2_streams)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .max_send_buffer_size(PIECE_BYTES)
        .enable_connect_protocol()
        .handshake::<Socket, Piece>(socket));
    let greeted = poll_fn(|context| {
        if deadline.has_passed(context) {
            return Poll::Ready(None);
        }
        handshake.as_mut().poll(context).map(Some)
    });
    match greeted.await? {
        Ok(connection) => Some(connection),
        Err(error) => {
            tracing::debug!(%error, "a connection of HTTP/2 did not begin");
            None
        }
    }
}

impl Http2Connection {
    /// Serves requests until the connection has ended.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_leaving && self.shared.ends_connections() {
            self.say_goodbye();
        }
        loop {
            match self.h2.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => self.begin(request, respond),
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "a connection of HTTP/2 has ended");
                    return Poll::Ready(());
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        if self.streams.resets.get().0 == 0 && !self.is_leaving {
            self.is_leaving = true;
            self.h2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            context.waker().wake_by_ref();
        }
        self.look_at_activity();
        self.look_at_head();
        self.poll_time(context)
    }

    fn begin(&mut self, request: Request<RecvStream>, respond: SendResponse<Piece>) {
        self.streams.running.set(self.streams.running.get() + 1);
        let running = Running { streams: Rc::clone(&self.streams), head_bytes: Cell::new(0) };
        let (request, body) = request.into_parts();
        let stream = Rc::new(Http2Stream::new(body, respond, Rc::clone(&self.streams.unsent)));
        let (socket, peer) = (Rc::clone(&self.socket), self.peer.clone());
        let life = serve_stream(&request, stream, socket, peer, Rc::clone(&self.shared), running);
        if let Some(life) = life {
            spawn_local(life);
        }
    }

    /// The time of a connection is limited while it serves no request: a request has limits itself.
    fn look_at_activity(&mut self) {
        let activity = match (self.streams.running.get(), self.streams.unsent.bytes()) {
            (0, 0) => Activity::Idle,
            (0, bytes) => Activity::Sending(bytes),
            _ => Activity::Serving,
        };
        if activity == self.activity {
            return;
        }
        self.activity = activity;
        self.without_head_ms = None;
        let limits = &self.shared.settings.limits;
        match activity {
            Activity::Idle if self.is_leaving => self.limit_goodbye(),
            Activity::Idle => return self.counted.rest(limits.idle_timeout),
            Activity::Sending(_) => self.counted.deadline.set(Some(limits.send_timeout)),
            Activity::Serving => self.counted.deadline.set(None),
        }
        self.counted.work();
    }

    /// A head has as long to arrive as over HTTP/1, whatever else the connection does.
    fn look_at_head(&mut self) {
        let deadline = &self.counted.deadline;
        if let Some(at_ms) = self.head_until_ms() {
            let before_ms = *self.without_head_ms.get_or_insert(deadline.at_ms());
            deadline.put_back(before_ms.min(at_ms));
        } else if let Some(before_ms) = self.without_head_ms.take() {
            deadline.put_back(before_ms);
        }
    }

    fn head_until_ms(&self) -> Option<u64> {
        let timeout_ms = self.shared.settings.limits.head_timeout.as_millis() as u64;
        self.arrival.since_ms().map(|since_ms| since_ms.saturating_add(timeout_ms))
    }

    fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let has_passed = self.counted.deadline.has_passed(context);
        if has_passed && self.head_until_ms().is_some_and(|at_ms| at_ms <= now_ms()) {
            // What follows cannot be read without it.
            self.shared.note_unanswered(|unanswered| unanswered.incomplete += 1);
            return self.end_at_once(Reason::ENHANCE_YOUR_CALM, context);
        }
        match self.activity {
            // Another connection has its place.
            Activity::Idle if self.counted.is_dismissed() => self.end_at_once(Reason::NO_ERROR, context),
            _ if !has_passed => Poll::Pending,
            Activity::Idle if !self.is_leaving => {
                self.say_goodbye();
                context.waker().wake_by_ref();
                Poll::Pending
            }
            // A client that has confirmed nothing learns which of its requests were served.
            Activity::Idle => self.end_at_once(Reason::NO_ERROR, context),
            Activity::Sending(_) => Poll::Ready(()),
            Activity::Serving => Poll::Pending,
        }
    }

    /// The client learns, as far as it can be sent now, what was not served.
    fn end_at_once(&mut self, why: Reason, context: &mut Context<'_>) -> Poll<()> {
        self.h2.abrupt_shutdown(why);
        let _ = self.h2.poll_accept(context);
        Poll::Ready(())
    }

    /// Tells the client to send its next requests on another connection. Requests on their way are served.
    fn say_goodbye(&mut self) {
        self.is_leaving = true;
        self.h2.graceful_shutdown();
        if self.activity == Activity::Idle {
            self.limit_goodbye();
            self.counted.work();
        }
    }

    fn limit_goodbye(&mut self) {
        self.without_head_ms = None;
        self.counted.deadline.set(Some(GOODBYE.min(self.shared.time_for_last_request())));
    }

    /// Closes the socket so that the client gets everything that was sent.
    async fn close(self) {
        let Http2Connection { h2, socket, shared, counted, .. } = self;
        drop(h2);
        if counted.is_dismissed() {
            return;
        }
        let deadline = &counted.deadline;
        closing::begin_linger(&mut socket.borrow_mut(), &shared, deadline);
        // The client reads while it sends.
        let until_ms = now_ms() + GOODBYE.as_millis() as u64;
        // Streams that are still served use the socket too.
        let poll = |context: &mut Context<'_>| {
            closing::poll_linger(context, &mut socket.borrow_mut(), &shared, deadline, until_ms)
        };
        poll_fn(poll).await;
    }
}

impl Streams {
    /// What they may hold together.
    pub(super) fn joints(&self) -> &Rc<Joints> {
        &self.joints
    }

    /// The generation of each application that answered last on this connection, the last of all at the end.
    pub(super) fn generations(&self) -> Vec<(AppId, u32)> {
        self.generations.borrow().clone()
    }

    /// This generation of an application has answered.
    fn note_generation(&self, app: AppId, generation: u32) {
        let mut generations = self.generations.borrow_mut();
        let known = generations.iter().position(|(other, _)| *other == app);
        let before = known.map_or(0, |at| generations.remove(at).1);
        generations.push((app, generation.max(before)));
    }

    /// The client has reset a stream before it was answered. (The connection ends when it has done so too often.)
    fn note_reset(&self) {
        let (left, since_ms) = self.resets.get();
        let now_ms = now_ms();
        let regained = (now_ms - since_ms) * RESETS_PER_SECOND / 1000;
        let left = u64::from(left).saturating_add(regained).min(u64::from(RESETS)) as u32;
        self.resets.set((left.saturating_sub(1), if regained > 0 { now_ms } else { since_ms }));
    }
}

impl Running {
    pub(super) fn streams(&self) -> &Rc<Streams> {
        &self.streams
    }

    /// Whether a head of this length has room beside the other streams' heads. By HPACK, a client sends the same one again with a
    /// few bytes.
    pub(super) fn has_room_for(&self, head_bytes: usize, limits: &Limits) -> bool {
        let all = self.streams.head_bytes.get() + head_bytes;
        if all > HEAD_BYTES.max(HEADS_AT_LEAST * limits.head_bytes) {
            return false;
        }
        self.streams.head_bytes.set(all);
        self.head_bytes.set(head_bytes);
        true
    }

    /// The stream has ended; what answered it last, and whether its client has left before.
    pub(super) fn end(self, answered: Option<(AppId, u32)>, has_left: bool) {
        if let Some((app, generation)) = answered {
            self.streams.note_generation(app, generation);
        }
        if has_left {
            self.streams.note_reset();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let streams = &self.streams;
        let running = streams.running.get() - 1;
        streams.running.set(running);
        streams.head_bytes.set(streams.head_bytes.get() - self.head_bytes.get());
        if running == 0 || streams.resets.get().0 == 0 {
            streams.deadline.nudge();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        if self.read.is_empty() {
            ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_read(context, buffer))?;
        } else {
            let length = self.read.len().min(buffer.remaining());
            buffer.put_slice(&self.read[..length]);
            self.read.drain(..length);
        }
        self.arrival.note(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.borrow().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(context)
    }
}
