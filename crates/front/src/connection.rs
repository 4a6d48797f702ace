//! A client's connection: one request after the other, each read, answered and, if the client likes, followed
//! by the next.
//!
//! In reading order: [`serve`] (the life of a connection), [`transaction`] (what is known of a request), [`routed`] (where it goes), [`proxied`] (the client that a proxy reports), [`secured`] (the TLS
//! handshake), [`preface`] and [`http2`] (a connection that is shared by streams, each of which is a connection here),
//! [`request`] (reading a head and deciding whose it is), [`misdirected`] (whose certificate the connection has), [`identity`] (its ids), [`health`] (health checks), [`login`] (its password), [`cached`] (answers from the
//! response cache), [`upload`] (reading a body), [`timing`] (when its wait begins, and how long things took), [`answer`] (waiting for what a worker answers),
//! [`output`] (sending it), [`relay`] (a connection that the application has taken over), [`web_socket`] (what is known of
//! it, if it is one), [`server_close`] (how the server ends it), [`closing`] (ending a connection).

mod answer;
mod asked_name;
mod cached;
mod closing;
mod forwarded;
mod health;
mod http2;
mod identity;
mod login;
mod misdirected;
mod output;
mod preface;
mod proxied;
mod received;
mod relay;
mod request;
mod routed;
mod secured;
mod server_close;
mod timing;
mod transaction;
mod upload;
mod web_socket;

use std::cell::{RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::spawn_local;

use highball_config::{AppId, BindProtocol};
use http::request::Parts;

use answer::Answered;
use cached::Kept;
use http2::{Running, Streams};
use login::Login;
use output::Output;
use preface::Beginning;
use received::Received;
use secured::Secured;
use transaction::{Again, Transaction};

use crate::access_log::{AccessLog, Entry, Outcome, CLIENT_LEFT};
use crate::budget::{Account, Holder, Joint, Origin, Share};
use crate::clock::now_us;
use crate::dispatch::Dispatcher;
use crate::exchange::response::Progress;
use crate::exchange::{Body, Exchange};
use crate::figures::Moments;
use crate::files::Pending;
use crate::message::refusal::Refusal;
use crate::message::request_head::{Method, RequestHead};
use crate::message::request_id::RequestId;
use crate::messages::AppEvent;
use crate::protocol::http2::Http2;
use crate::protocol::Protocol;
use crate::refusals::failure::DevelopmentPages;
use crate::refusals::failure::{Failure, Load};
use crate::refusals::failure_pages::{Audience, Page};
use crate::route::app_state::AppState;
use crate::shared::{Counted, Shared};
use crate::transport::http2::Http2Stream;
use crate::transport::stream::{Peer, Stream};
use crate::transport::tls::Alpn;

/// A part of a connection's life that does without the rest, and the rest without it: a handshake, a refusal. So no connection takes
/// memory for what it does not do at the moment, and the code that every request runs stays together.
type Rare<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// How long a developer's browser waits for an explanation, before it gets the public page.
const PAGES_TIME: Duration = Duration::from_secs(5);

/// A connection.
#[derive(Debug)]
struct Connection {
    stream: Stream,
    peer: Peer,
    /// Whose share of the budgets the connection takes.
    belongs: Belongs,
    shared: Rc<Shared>,
    counted: Counted,
    /// What was read and not used yet.
    buffer: Received,
    protocol: Protocol,
    /// The request at hand.
    request: Transaction,
    served_by: ServedBy,
    output: Output,
    client: Client,
}

/// Whose share of the budgets a connection takes.
#[derive(Debug)]
struct Belongs {
    /// The client by the peer's address.
    origin: Option<Origin>,
    /// What the requests on the connection share, if they come at the same time.
    streams: Option<Rc<Streams>>,
}

/// The versions of applications that have answered on a connection.
#[derive(Debug, Default)]
struct ServedBy {
    /// Application of the previous request; its generation is in the exchange.
    last_app: Option<AppId>,
    /// Per other application, the generation that last answered.
    generations: Vec<(AppId, u32)>,
}

/// The client's side of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// It may send more.
    Open,
    /// It has ended it.
    Ended,
    /// It did so before the answer to the request at hand had begun.
    EndedEarly,
    /// The same while the request was queued; it was sent an interim answer, which tells after a moment whether it has left.
    /// Then this deadline counts again, in milliseconds.
    Probed { before_ms: u64 },
}

/// Whether a client takes what it is sent; if not, the deadline that counts again once it does, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stalled {
    /// It does.
    #[default]
    No,
    /// Not at the moment.
    Patient { before_ms: u64 },
    /// It has not for a while: the rest goes to a spool file.
    Spooling { before_ms: u64 },
}

/// What becomes of an answer that comes for others, too, when its request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    /// It comes in to its end.
    MayFinish,
    /// Nothing runs any more.
    AtOnce,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The answer is sent.
    Done,
    /// The answer is sent, but the client may still be sending: what it sends must not make the kernel reset the
    /// connection before it has read the last answer.
    Linger,
    /// The application has taken the connection over.
    TakenOver,
    /// The client has gone, or sent nothing for too long.
    Gone,
    /// The answer is cut off, and the client must notice.
    CutOff,
}

/// The next step of a request.
#[derive(Debug)]
enum Step {
    /// It is refused; the connection ends.
    Refuse(Refusal),
    /// The front answers it: with a static file, the list of applications, or a developer's cookie. The answer is in
    /// `events`.
    Answer,
    /// Something has to be found out before it can be routed, again.
    Wait(Pending),
    /// The cache answers it.
    Kept(Kept),
    /// It is for this application.
    Application(Rc<AppState>),
}

/// What a connection turns out to be.
enum Begun {
    /// One request after the other.
    Requests(Box<Connection>),
    /// Streams that share it.
    Streams(Rare<'static, ()>),
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

async fn live(begun: Rare<'static, Option<Begun>>) {
    match begun.await {
        Some(Begun::Requests(connection)) => connection.serve().await,
        Some(Begun::Streams(streams)) => streams.await,
        None => {}
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
    let mut connection = Connection::new(stream, peer, protocol, shared, counted);
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
            let mut connection = Connection::new(stream, peer, protocol, shared, counted);
            connection.peer.is_plain_http_on_tls_port = true;
            connection.buffer = Received::of(received);
            Begun::Requests(connection)
        }
        Secured::Tls(stream, Alpn::Http1) => {
            let protocol = Protocol::of(BindProtocol::Https);
            Begun::Requests(Connection::new(stream, peer, protocol, shared, counted))
        }
    })
}

/// A connection that speaks HTTP/2, of which these bytes were read already.
fn begin_http2(stream: Stream, read: Vec<u8>, peer: Peer, shared: Rc<Shared>, counted: Counted) -> Begun {
    Begun::Streams(Box::pin(http2::serve(stream, read, peer, shared, counted)))
}

/// The life of a stream of HTTP/2: a connection with one request.
async fn serve_stream(
    request: Parts,
    stream: Rc<Http2Stream>,
    socket: Rc<RefCell<Stream>>,
    peer: Peer,
    shared: Rc<Shared>,
    running: Running,
) {
    let counted = Counted::of_stream(Rc::clone(&shared));
    let mut http2 = Http2::new(Rc::clone(&stream));
    let mut head = RequestHead::new();
    let read = http2.read_head(&request, &shared.settings.limits, &mut head);
    drop(request);
    if !running.has_room_for(read.as_ref().map_or(0, Vec::len), &shared.settings.limits) {
        return stream.refuse();
    }
    let (stream, protocol) = (Stream::Http2(stream, socket), Protocol::Http2(http2));
    let mut connection = Connection::new(stream, peer, protocol, shared, counted);
    connection.request.head = head;
    connection.served_by.generations = running.streams().generations();
    connection.belongs.streams = Some(Rc::clone(running.streams()));
    if let Some((app, generation)) = connection.served_by.generations.pop() {
        connection.served_by.last_app = Some(app);
        connection.request.exchange = Rc::new(Exchange::after(generation));
    }
    let end = match read.and_then(|text| connection.learn_client(&text).map(|()| text)) {
        Ok(text) => {
            connection.request.again = Some(Again { text, waits: 0 });
            match connection.serve_all().await {
                End::TakenOver => connection.relay().await,
                end => end,
            }
        }
        Err(refusal) => connection.refuse(refusal, false).await.err().unwrap_or(End::Done),
    };
    let generation = connection.request.exchange.borrow().generation;
    let answered = connection.served_by.last_app.map(|app| (app, generation)).filter(|_| generation > 0);
    running.end(answered, end == End::Gone);
    connection.close(end).await;
}

impl Connection {
    /// At the beginning.
    fn new(
        stream: Stream,
        peer: Peer,
        protocol: Protocol,
        shared: Rc<Shared>,
        counted: Counted,
    ) -> Box<Self> {
        Box::new(Connection {
            stream,
            belongs: Belongs { origin: Origin::of(&peer.remote_addr), streams: None },
            peer,
            shared,
            counted,
            buffer: Received::default(),
            protocol,
            request: Transaction::new(),
            served_by: ServedBy::default(),
            output: Output::default(),
            client: Client::Open,
        })
    }

    /// The life of the connection.
    async fn serve(mut self: Box<Self>) {
        match self.serve_all().await {
            // It may be open for days, and the task that reads requests takes more memory than is needed now.
            End::TakenOver => drop(spawn_local(self.serve_taken_over())),
            end => self.close(end).await,
        }
    }

    /// The rest of its life, once the application has taken it over.
    async fn serve_taken_over(mut self: Box<Self>) {
        let end = self.relay().await;
        self.close(end).await;
    }

    /// Serves its requests. Returns its end.
    async fn serve_all(&mut self) -> End {
        loop {
            let served = self.serve_one().await;
            if let Err(end) = served {
                self.note_end_of_request(end);
            }
            if self.request.taken_over.is_some() {
                return End::TakenOver;
            }
            self.leave_app(Leave::MayFinish);
            match served {
                Ok(true) => {}
                // A client that wanted to go on may have sent its next request already.
                Ok(false) if self.request.head.keep_alive || self.protocol.ends_requests_late() => {
                    return End::Linger;
                }
                Ok(false) => return End::Done,
                Err(end) => return end,
            }
        }
    }

    /// The life of one request. `true`: the connection can be kept.
    async fn serve_one(&mut self) -> Result<bool, End> {
        match self.next_request().await? {
            Step::Refuse(refusal) => self.refuse(refusal, false).await,
            Step::Answer => {
                self.shared.turn.step();
                let (status, body_bytes) = self.output.events.summary();
                self.send_events().await?;
                self.log(status, body_bytes);
                Ok(self.protocol.keep_alive())
            }
            Step::Kept(kept) => self.send_kept(kept).await,
            Step::Wait(pending) => {
                pending.await;
                Ok(true)
            }
            Step::Application(app) => {
                if app.is_failed_for(self.request.audience) {
                    return self.refuse(Refusal::AppFailed, false).await;
                }
                if let Some(refusal) = self.upload(&app).await? {
                    return self.refuse(refusal, false).await;
                }
                self.shared.turn.activate(&app);
                self.begin_wait(&app);
                self.begin_limit(&app);
                let submitted = app.submit(&self.request.exchange, self.request.audience);
                if let Err(refusal) = submitted {
                    return self.refuse(refusal, self.may_be_kept()).await;
                }
                self.shared.turn.step();
                self.answer(&app).await
            }
        }
    }

    /// Whether the connection can be kept after an answer that ends well.
    fn may_be_kept(&self) -> bool {
        self.request.head.keep_alive && !self.shared.ends_connections()
    }

    /// What a client whose request is refused gets beside the reason: facts for a developer, or the application's page.
    async fn page_of(&self, refusal: Refusal) -> Option<Rc<Page>> {
        let app = self.request.visit.as_ref().filter(|_| refusal.is_of_the_application())?;
        let failure = (refusal != Refusal::AppFailed).then(|| self.failure(app, refusal));
        if let Some(failure) = &failure {
            app.log(failure, self.request.limit, self.shared.apps.borrow().is_one());
        }
        let page = match (self.request.audience, failure) {
            (Audience::Public, _) => None,
            (Audience::Unproven(form), _) => Some(Page::of_link(&refusal.in_words(), form)),
            (Audience::Developer(form), None) => app.page_of_failure(form),
            (Audience::Developer(form), Some(failure)) => {
                self.explain(app, failure).await.map(|pages| Page::of(&pages, form))
            }
        };
        match page {
            Some(page) => Some(Rc::new(page)),
            None => app.public_page(refusal.status()).await,
        }
    }

    fn failure(&self, app: &AppState, refusal: Refusal) -> Failure {
        let is_full = matches!(refusal, Refusal::QueueFull { .. });
        let load = if is_full { app.dispatcher.borrow().load() } else { Load::default() };
        let id = self.request.request_id.as_ref().map(|id| id.as_str().to_owned());
        Failure { request_id: id, ..Failure::of(refusal, &mut self.request.exchange.borrow(), load) }
    }

    /// What those know who know more, for a developer.
    async fn explain(&self, app: &AppState, failure: Failure) -> Option<DevelopmentPages> {
        let (to, pages) = oneshot::channel();
        app.send(AppEvent::PagesWanted(Box::new(failure), to));
        tokio::time::timeout(PAGES_TIME, pages).await.ok()?.ok()
    }

    /// Sends a refusal. `true`: the connection can be kept.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, refusal: Refusal, keep_alive: bool) -> Rare<'_, Result<bool, End>> {
        Box::pin(self.send_refusal(refusal, keep_alive))
    }

    async fn send_refusal(&mut self, refusal: Refusal, keep_alive: bool) -> Result<bool, End> {
        self.identify_unread();
        self.request.is_uncounted = true;
        if let (Some(app), Refusal::QueueFull { .. }) = (&self.request.visit, refusal) {
            app.figures.borrow_mut().shed += 1;
        }
        if self.request.entry.is_none() && self.access_log().is_some() {
            self.request.entry = Some(Entry::unreadable());
        }
        if matches!(refusal, Refusal::HeadTimeout | Refusal::BodyTimeout) {
            self.shared.note_unanswered(|unanswered| unanswered.incomplete += 1);
        }
        let page = self.page_of(refusal).await;
        self.request.exchange.borrow().request.body = Body::None;
        if !keep_alive {
            self.protocol.end_connection();
        }
        self.output.events.clear();
        let is_head_method = self.request.head.method == Method::Head;
        match page {
            Some(page) => refusal.answer_with(&page.content(), is_head_method, &mut self.output.events),
            None => {
                let id = self.request.request_id.as_ref().map(RequestId::as_str);
                refusal.answer_in_words(id, is_head_method, &mut self.output.events);
            }
        }
        let (status, body_bytes) = self.output.events.summary();
        self.send_events().await?;
        self.log(status, body_bytes);
        if keep_alive {
            Ok(true)
        } else {
            Err(End::Linger)
        }
    }

    /// Where the request at hand is logged, if it is.
    fn access_log(&self) -> Option<Rc<AccessLog>> {
        match &self.request.visit {
            Some(visit) => visit.access_log(),
            None => self.shared.access_log.as_ref().map(Rc::clone),
        }
    }

    fn log(&mut self, status: u16, body_bytes: u64) {
        let moments = self.count(status);
        if let (Some(log), Some(entry)) = (self.access_log(), self.request.entry.take()) {
            let settings = self.request.visit.as_ref().map(|app| app.settings());
            let outcome = Outcome {
                address: &self.peer.remote_addr,
                user: self.request.user.as_deref(),
                is_tls: self.peer.is_tls,
                app: settings.as_ref().map(|settings| &*settings.name),
                status,
                body_bytes,
                moments,
                id: self.request.request_id.as_ref().map(RequestId::as_str),
                now_us: now_us(),
            };
            log.add(&entry, &outcome, &self.shared.key);
        }
    }

    /// Counts the request at hand, once. Returns when its steps were.
    fn count(&mut self, status: u16) -> Moments {
        let moments = std::mem::take(&mut self.request.exchange.borrow().moments);
        if !std::mem::take(&mut self.request.is_uncounted) {
            return moments;
        }
        let method = self.request.head.method;
        match &self.request.visit {
            Some(app) => app.figures.borrow_mut().add(method, status, moments),
            None => self.shared.unrouted.borrow_mut().add(method, status),
        }
        moments
    }

    /// The request at hand, if there is one, has ended the connection in this way.
    #[cold]
    fn note_end_of_request(&mut self, end: End) {
        match end {
            End::Gone => {
                if self.request.visit.is_some() {
                    self.shared.note_unanswered(|unanswered| unanswered.left += 1);
                }
                self.log_departure();
            }
            End::CutOff => self.shared.note_unanswered(|unanswered| unanswered.cut_off += 1),
            End::Done | End::Linger | End::TakenOver => {}
        }
    }

    /// The client has left. If that was during a request, the access log has it.
    fn log_departure(&mut self) {
        let body_bytes = {
            let response = &self.request.exchange.borrow().response;
            if response.progress() == Progress::Streaming {
                response.body_bytes
            } else {
                0
            }
        };
        self.log(CLIENT_LEFT, body_bytes);
    }

    /// The dispatcher of the application that the request at hand is for.
    fn dispatcher(&self) -> Option<RefMut<'_, Dispatcher>> {
        self.request.visit.as_ref().map(|visit| visit.dispatcher.borrow_mut())
    }

    /// What the client at hand may hold of an application's share.
    fn account(&self, share: &Arc<Share>) -> Account {
        Account::new(share, self.belongs.origin)
    }

    /// The same of memory, which the requests that share a connection have together.
    fn buffers(&self, app: &AppState) -> Account {
        Account::new(&app.buffers, self.holder(|streams| &streams.buffers))
    }

    fn holder(&self, joint: impl Fn(&Streams) -> &Arc<Joint>) -> Holder {
        let joint = self.belongs.streams.as_ref().map(|streams| Arc::clone(joint(streams)));
        Holder { origin: self.belongs.origin, joint }
    }

    /// The request at hand has ended: its worker or its place in the queue is released, whatever the reason.
    fn leave_app(&mut self, leave: Leave) {
        let Some(visit) = self.request.visit.take() else { return };
        if leave == Leave::AtOnce || !self.leave_to_others(&visit) {
            visit.dispatcher.borrow_mut().cancel(&self.request.exchange);
            self.request.exchange.borrow().response.settle();
        }
        if Rc::strong_count(&self.request.exchange) > 1 {
            self.leave_exchange();
        }
    }

    /// A worker still has it, and the next request may be for an application where its place is another's.
    #[cold]
    fn leave_exchange(&mut self) {
        let generation = {
            let mut inner = self.request.exchange.borrow();
            inner.waker = None; // what comes of that answer is no news here
            inner.generation
        };
        self.request.exchange = Rc::new(Exchange::after(generation));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave_app(Leave::AtOnce);
    }
}
