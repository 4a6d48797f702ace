//! A client's connection: one request after the other, each read, answered and, if the client likes, followed
//! by the next. What a request is, and its outcome, is decided in [`request`](crate::request); here is what is read
//! from the client and written to it.
//!
//! In reading order: [`serve`] (the life of a connection), [`proxied`] (the client that a proxy reports), [`secured`] (the TLS
//! handshake), [`preface`] and [`http2`] (a connection that is shared by streams, each of which is a connection here),
//! [`reading`] (the head of a request), [`upload`] (its body), [`answer`] (waiting for what a worker answers), [`cached`]
//! (sending what the cache has stored), [`refusing`] (sending an error), [`output`] (what is written to the socket), [`relay`]
//! (a connection that the application has taken over), [`web_socket`] (what is known of it, if it
//! is one), [`server_close`] (how the server ends it), [`held`] (a response that goes on with published messages), [`cable`] (a
//! WebSocket that the front holds), [`passing`] (such a WebSocket on its way to the next process), [`closing`] (ending a connection).

mod answer;
mod asked_name;
mod cable;
mod cached;
mod closing;
mod held;
mod http2;
mod output;
mod passing;
mod preface;
mod proxied;
mod reading;
mod received;
mod refusing;
mod relay;
mod secured;
mod server_close;
mod upload;
mod web_socket;

use std::cell::RefCell;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;

use tokio::task::spawn_local;

use highball_config::BindProtocol;
use http::request::Parts;

use held::Held;
use http2::Running;
use output::Output;
use preface::Beginning;
use received::Received;
use secured::Secured;

use crate::cable::Cable;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, RequestHead};
use crate::protocol::http2::Http2;
use crate::protocol::Protocol;
use crate::request::client::Client;
use crate::request::steps::submit;
use crate::request::transaction::Leave;
use crate::request::{Decision, Transaction};
use crate::shared::{Counted, Shared};
use crate::transport::http2::Http2Stream;
use crate::transport::stream::{Peer, Stream};
use crate::transport::tls::Alpn;
pub(crate) use passing::serve_passed;

/// A boxed future of a rare path: a handshake, a refusal. It keeps the task of a connection small, and the code that every
/// request runs together.
type ColdFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A connection.
#[derive(Debug)]
struct Connection {
    stream: Stream,
    client: Client,
    client_side: ClientSide,
    shared: Rc<Shared>,
    counted: Counted,
    /// What was read and not used yet.
    buffer: Received,
    protocol: Protocol,
    /// The current request.
    request: Transaction,
    output: Output,
}

/// The client's side of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientSide {
    /// It may send more.
    Open,
    /// It has ended it.
    Ended,
    /// It did so before the answer to the current request had begun.
    EndedEarly,
    /// The same while the request was queued; it was sent an interim answer, which tells after a moment whether it has left.
    /// Then this deadline counts again, in milliseconds.
    Probed { before_ms: u64 },
}

/// Whether the client is reading; if not, the deadline that counts again once it does, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stalled {
    /// It is reading.
    #[default]
    No,
    /// It does not read at the moment.
    Patient { before_ms: u64 },
    /// It has not read for a while: the rest goes to a spool file.
    Spooling { before_ms: u64 },
}

/// How a connection ends.
#[derive(Debug)]
enum End {
    /// The answer is sent.
    Done,
    /// The answer is sent, but the client may still be sending: what it sends must not make the kernel reset the
    /// connection before it has read the last answer.
    Linger,
    /// The application has taken the connection over, by this socket.
    TakenOver(OwnedFd),
    /// The application has answered, and the response goes on with published messages.
    Held(Box<Held>),
    /// The application has accepted a WebSocket of Action Cable, and the front holds it.
    Cable(Box<Cable>),
    /// The front holds its WebSocket, and another process goes on with it.
    Passed,
    /// The client has gone, or sent nothing for too long.
    Gone,
    /// The answer is cut off, and the client must notice.
    CutOff,
}

/// What a connection turns out to be.
enum Begun {
    /// One request after the other.
    Requests(Box<Connection>),
    /// Streams that share it.
    Streams(ColdFuture<'static, ()>),
}

/// The life of a connection.
pub(crate) fn serve(
    stream: Stream,
    peer: Peer,
    protocol: Protocol,
    shared: Rc<Shared>,
    counted: Counted,
) -> impl Future<Output = ()> {
    live(Box::pin(begin(stream, peer, protocol, shared, counted)))
}

/// The life of a connection with TLS.
pub(crate) fn serve_tls(
    stream: Stream,
    peer: Peer,
    shared: Rc<Shared>,
    counted: Counted,
) -> impl Future<Output = ()> {
    live(Box::pin(begin_tls(stream, peer, shared, counted)))
}

async fn live(begun: ColdFuture<'static, Option<Begun>>) {
    let mut connection = match begun.await {
        Some(Begun::Requests(connection)) => connection,
        Some(Begun::Streams(streams)) => return streams.await,
        None => return,
    };
    match connection.serve_all().await {
        // It may be open for days, and the task that reads requests takes more memory than is needed now.
        End::TakenOver(socket) => drop(spawn_local(connection.serve_taken_over(socket))),
        End::Held(held) => drop(spawn_local(connection.serve_held(held))),
        End::Cable(cable) => drop(spawn_local(connection.serve_held_cable(cable))),
        end => connection.close(end).await,
    }
}

/// Learns what comes before the first request. `None`: the connection has ended.
async fn begin(
    mut stream: Stream,
    mut peer: Peer,
    protocol: Protocol,
    shared: Rc<Shared>,
    counted: Counted,
) -> Option<Begun> {
    let mut read = match protocol {
        Protocol::Http1(_) => proxied::read(&mut stream, &mut peer, &shared, &counted.deadline).await?,
        // A web server reports its client with each request.
        Protocol::Gateway(_) | Protocol::Http2(_) => Vec::new(),
    };
    if shared.settings.http2_cleartext && matches!(protocol, Protocol::Http1(_)) {
        match preface::read(&mut stream, read, &shared, &counted).await? {
            Beginning::Http1(bytes) => read = bytes,
            Beginning::Http2(bytes) => return Some(begin_http2(stream, bytes, peer, shared, counted)),
        }
    }
    let mut connection = Connection::new(stream, Client::new(peer, None), protocol, shared, counted);
    connection.buffer = Received::of(read);
    Some(Begun::Requests(connection))
}

/// The same, for a connection with TLS.
async fn begin_tls(
    mut stream: Stream,
    mut peer: Peer,
    shared: Rc<Shared>,
    counted: Counted,
) -> Option<Begun> {
    let received = proxied::read(&mut stream, &mut peer, &shared, &counted.deadline).await?;
    Some(match secured::secure(stream, received, &mut peer, &shared, &counted).await? {
        Secured::Tls(stream, Alpn::Http2) => begin_http2(stream, Vec::new(), peer, shared, counted),
        Secured::PlainHttp(stream, received) => {
            let protocol = Protocol::of(BindProtocol::Http);
            let mut connection = Connection::new(stream, Client::new(peer, None), protocol, shared, counted);
            connection.client.peer.is_plain_http_on_tls_port = true;
            connection.buffer = Received::of(received);
            Begun::Requests(connection)
        }
        Secured::Tls(stream, Alpn::Http1) => {
            let protocol = Protocol::of(BindProtocol::Https);
            Begun::Requests(Connection::new(stream, Client::new(peer, None), protocol, shared, counted))
        }
    })
}

/// A connection that speaks HTTP/2, of which these bytes were read already.
fn begin_http2(stream: Stream, read: Vec<u8>, peer: Peer, shared: Rc<Shared>, counted: Counted) -> Begun {
    Begun::Streams(Box::pin(http2::serve(stream, read, peer, shared, counted)))
}

/// The life of a stream of HTTP/2: a connection with one request. `None`: there is no room for its head. (The head is read before
/// its task begins, which would have to keep room for all that this needs.)
fn serve_stream(
    request: &Parts,
    stream: Rc<Http2Stream>,
    socket: Rc<RefCell<Stream>>,
    peer: Peer,
    shared: Rc<Shared>,
    running: Running,
) -> Option<impl Future<Output = ()>> {
    let counted = Counted::of_stream(Rc::clone(&shared));
    let mut http2 = Http2::new(Rc::clone(&stream));
    let mut head = RequestHead::new();
    let read = http2.read_head(request, &shared.settings.limits, &mut head);
    if !running.has_room_for(read.as_ref().map_or(0, Vec::len), &shared.settings.limits) {
        stream.refuse();
        return None;
    }
    let client = Client::new(peer, Some(Rc::clone(running.streams().joints())));
    let (stream, protocol) = (Stream::Http2(stream, socket), Protocol::Http2(http2));
    let mut connection = Connection::new(stream, client, protocol, shared, counted);
    connection.request.head = head;
    connection.request.follow(running.streams().generations());
    Some(connection.serve_only(read, running))
}

impl Connection {
    /// At the beginning.
    fn new(
        stream: Stream,
        client: Client,
        protocol: Protocol,
        shared: Rc<Shared>,
        counted: Counted,
    ) -> Box<Self> {
        Box::new(Connection {
            stream,
            client,
            client_side: ClientSide::Open,
            shared,
            counted,
            buffer: Received::default(),
            protocol,
            request: Transaction::new(),
            output: Output::default(),
        })
    }

    /// Its life, as a stream.
    async fn serve_only(mut self: Box<Self>, read: Result<Vec<u8>, Refusal>, running: Running) {
        let end = self.serve_read(read).await;
        running.end(self.request.answered_by(), matches!(end, End::Gone));
        self.close(end).await;
    }

    /// The rest of its life, once the application has taken it over.
    async fn serve_taken_over(mut self: Box<Self>, socket: OwnedFd) {
        let end = self.relay(socket).await;
        self.close(end).await;
    }

    /// The rest of its life, once its response is held.
    async fn serve_held(mut self: Box<Self>, held: Box<Held>) {
        let end = self.hold(held).await;
        self.close(end).await;
    }

    /// The rest of its life, once its WebSocket is held.
    async fn serve_held_cable(mut self: Box<Self>, mut cable: Box<Cable>) {
        let end = self.serve_cable(&mut cable).await;
        if matches!(end, End::Passed) {
            return self.pass_on(cable).await;
        }
        self.close(end).await;
        self.leave_cable(cable).await;
    }

    /// The same for a stream, whose task need not have room for that.
    fn serve_cable_of_stream(&mut self, mut cable: Box<Cable>) -> ColdFuture<'_, End> {
        Box::pin(async move {
            let end = self.serve_cable(&mut cable).await;
            self.leave_cable(cable).await;
            end
        })
    }

    /// Serves its requests. Returns its end.
    async fn serve_all(&mut self) -> End {
        loop {
            let served = self.serve_one(None).await;
            if let Err(end) = self.end_request(served) {
                return end;
            }
        }
    }

    /// Serves its only request, whose head has been read. Returns its end.
    async fn serve_read(&mut self, read: Result<Vec<u8>, Refusal>) -> End {
        let served = match read {
            Ok(text) => self.serve_one(Some(&text)).await,
            Err(refusal) => self.refuse(refusal, false).await,
        };
        match self.end_request(served) {
            Ok(()) => End::Done,
            Err(End::TakenOver(socket)) => self.relay(socket).await,
            Err(End::Held(held)) => self.hold(held).await,
            Err(End::Cable(cable)) => self.serve_cable_of_stream(cable).await,
            Err(end) => end,
        }
    }

    /// The life of one request, whose head was read, or is still to come. `Ok`: the connection is kept.
    async fn serve_one(&mut self, read: Option<&[u8]>) -> Result<(), End> {
        let mut decision = match read {
            Some(text) => self.route(text),
            None => self.next_request().await?,
        };
        loop {
            let text = match decision {
                Decision::Refuse(refusal) => return self.refuse(refusal, false).await,
                Decision::Answer => return self.send_answer().await,
                Decision::Cached(cached) => return self.send_cached(cached).await,
                Decision::Wait { pending, text } => {
                    pending.await;
                    text
                }
                Decision::Application(app) => {
                    if app.is_failed_for(self.request.audience) {
                        return self.refuse(Refusal::AppFailed, false).await;
                    }
                    if let Some(refusal) = self.upload(&app).await? {
                        return self.refuse(refusal, false).await;
                    }
                    self.shared.turn.activate(&app);
                    if let Err(refusal) = submit::submit(&mut self.request, &app) {
                        return self.refuse(refusal, self.may_be_kept()).await;
                    }
                    self.shared.turn.step();
                    match self.answer(&app).await? {
                        Some(text) => text,
                        None => return Ok(()),
                    }
                }
            };
            self.request.leave_app(Leave::MayFinish, &self.shared);
            decision = self.route_again(&text);
        }
    }

    /// Sends an answer of the front's own, all of which is there.
    async fn send_answer(&mut self) -> Result<(), End> {
        let has_body = self.request.head.framing != BodyFraming::None; // it would stand before the next request
        if has_body || self.client.peer.is_plain_http_on_tls_port {
            self.protocol.end_connection();
        }
        self.shared.turn.step();
        let (status, body_bytes) = self.request.answer.summary();
        self.send_events().await?;
        self.record(status, body_bytes);
        self.end_answer()
    }

    /// Whether the connection can be kept after an answer that ends well.
    fn may_be_kept(&self) -> bool {
        self.request.head.keep_alive && !self.shared.ends_connections()
    }

    /// An answer has been sent. `Ok`: the connection is kept.
    fn end_answer(&self) -> Result<(), End> {
        match self.protocol.keep_alive() {
            true => Ok(()),
            // A client that wanted to go on may have sent its next request already.
            false if self.request.head.keep_alive || self.protocol.ends_requests_late() => Err(End::Linger),
            false => Err(End::Done),
        }
    }

    /// Counts and logs the current request.
    fn record(&mut self, status: u16, body_bytes: u64) {
        self.request.record(status, body_bytes, &self.client.peer, &self.shared);
    }

    /// The current request, if there is one, has ended so.
    fn end_request(&mut self, served: Result<(), End>) -> Result<(), End> {
        if let Err(end) = &served {
            self.note_end_of_request(end);
        }
        if !matches!(served, Err(End::TakenOver(_) | End::Held(_) | End::Cable(_))) {
            self.request.leave_app(Leave::MayFinish, &self.shared);
        }
        served
    }

    #[cold]
    fn note_end_of_request(&mut self, end: &End) {
        match end {
            End::Gone => {
                if self.request.visit.is_some() {
                    self.shared.note_unanswered(|unanswered| unanswered.left += 1);
                }
                self.request.record_departure(&self.client.peer, &self.shared);
            }
            End::CutOff => self.shared.note_unanswered(|unanswered| unanswered.cut_off += 1),
            End::Done | End::Linger | End::TakenOver(_) | End::Held(_) | End::Cable(_) | End::Passed => {}
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.request.leave_app(Leave::AtOnce, &self.shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of what an async function returns, without a call.
    fn future_bytes<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_connection_is_small() {
        assert_sizes("connection", size_of::<Connection>(), 992);
        assert_sizes("task", future_bytes(live), 336);
        let relay = |(connection, socket)| Connection::serve_taken_over(connection, socket);
        assert_sizes("task after a takeover", future_bytes(relay), 216);
    }

    fn assert_sizes(what: &str, bytes: usize, most_bytes: usize) {
        eprintln!("{what}: {bytes} bytes");
        assert!(bytes <= most_bytes, "{what}: {bytes} bytes, more than {most_bytes}");
    }
}
