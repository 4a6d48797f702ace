//! Answers from the application's response cache, and requests that may become such.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{ready, Poll};

use tokio::task::spawn_local;
use tokio::time::{timeout, Duration};

use super::routed::Routed;
use super::{Answered, Connection, End, Rare, Step};
use crate::budget::Permit;
use crate::cache::{AppCache, Asking, Bytes, Fill, Lookup, StoredAnswer, Watch};
use crate::clock::{now_ms, now_us};
use crate::compression::Stage;
use crate::exchange::response_head::{HeadContext, Recipient};
use crate::exchange::Exchange;
use crate::message::answer::{AnswerEvent, AnswerEvents};
use crate::message::conditions::{self, Received, Verdict};
use crate::message::request_head::{known_key, Method};
use crate::refusals::failure_pages::Audience;
use crate::route::app_state::AppState;

/// The bytes of a body that each connection may have in memory, also where buffers are full, and the most that it has.
const FREE_BYTES: usize = 16 * 1024;
const PIECE_BYTES: usize = 256 * 1024;

/// How long an answer may take that no client has asked for, or whose client has left.
const TIME_WITHOUT_CLIENT: Duration = Duration::from_secs(60);

/// An answer from the cache, while it is sent.
#[derive(Debug)]
pub(super) struct Kept {
    body: Rc<Bytes>,
    /// What of the body was sent; none: there is nothing to send of it.
    sent: Option<usize>,
    permit: Permit,
    status: u16,
}

impl Connection {
    /// The next step of a request that the cache answers, or that waits for another one's answer. If there is none, the request
    /// goes to the application; `watch` is then what is done with the answer.
    pub(super) fn ask_cache(&mut self, routed: Routed<'_>) -> Result<Option<Watch>, Step> {
        let app = routed.app;
        // An application for its users alone has no answers for all.
        if !app.has_cache() || app.basic_auth().is_some() || self.request.user.is_some() {
            return Ok(None);
        }
        self.look_up(routed)
    }

    #[inline(never)]
    fn look_up(&mut self, routed: Routed<'_>) -> Result<Option<Watch>, Step> {
        let Routed { app, bytes, .. } = routed;
        let Some(cache) = app.cache() else { return Ok(None) };
        let asking = Asking {
            head: &self.request.head,
            buffer: bytes,
            is_tls: self.peer.is_tls,
            waits: self.request.cache_waits,
            now_ms: now_ms(),
        };
        match cache.look_up(&asking) {
            Lookup::Forward(watch) => Ok(Some(watch)),
            Lookup::Unavailable => Err(self.refuse_to_forward()),
            Lookup::Wait(pending) => {
                self.request.cache_waits += 1;
                Err(Step::Wait(pending))
            }
            Lookup::Hit(answer) => Err(self.keep(app, &answer, &cache, bytes)),
            Lookup::Refresh(answer, fill) => {
                self.refresh(routed, fill);
                Err(self.keep(app, &answer, &cache, bytes))
            }
        }
    }

    /// The client wants no answer but a stored one.
    fn refuse_to_forward(&mut self) -> Step {
        let is_head = self.request.head.method == Method::Head;
        self.output.events.push_whole(
            504,
            is_head,
            b"504 Gateway Timeout: there is no stored response\n",
            |fields| {
                fields.add(b"content-type", b"text/plain; charset=utf-8");
                fields.add(b"cache-control", b"no-store");
                fields.add(b"cache-status", b"highball; detail=only-if-cached");
            },
        );
        Step::Answer
    }

    /// Begins to send a stored answer.
    fn keep(&mut self, app: &AppState, answer: &StoredAnswer, cache: &Rc<AppCache>, bytes: &[u8]) -> Step {
        let before = self.generation_of(app.id);
        self.request.exchange.borrow().generation = before.max(cache.generation());
        let (now_ms, is_head) = (now_ms(), self.request.head.method == Method::Head);
        let says = answer.hit(now_ms);
        let asked = Received { head: &self.request.head, buffer: bytes };
        let has_it =
            answer.status() == 200 && conditions::judge(&asked, answer.known_by()) == Verdict::NotModified;
        let compresses = app.settings().compress && !has_it;
        let encoded =
            compresses.then(|| answer.encoded(&self.request.head, bytes, cache, &app.compression)).flatten();
        self.request.compression = if encoded.is_some() { None } else { self.stage_of(app, bytes) };
        let Ok(head) = self.output.events.push_head::<std::convert::Infallible>(|lines| {
            Ok(match &encoded {
                Some(encoded) => answer.write_encoded_head(encoded, &says, now_ms, is_head, lines),
                None if has_it => answer.write_not_modified(&says, now_ms, lines),
                None => answer.write_head(&says, now_ms, is_head, lines),
            })
        });
        let body = encoded.map_or_else(|| Rc::clone(answer.plain()), |(_, bytes)| bytes);
        let sent = (!has_it && !is_head).then_some(0);
        self.request.entry.iter_mut().for_each(|entry| entry.is_hit = true);
        let permit = Permit::new(self.buffers(app));
        Step::Kept(Kept { body, sent, permit, status: head.status })
    }

    pub(super) fn stage_of(&self, app: &AppState, bytes: &[u8]) -> Option<Box<Stage>> {
        let is_on = app.settings().compress;
        let client = || self.holder(|streams| &streams.encoders);
        is_on.then(|| Stage::new(&self.request.head, bytes, &app.compression, client())).flatten()
    }

    /// Sends a stored answer. `true`: the connection can be kept.
    #[inline(never)]
    pub(super) fn send_kept(&mut self, kept: Kept) -> Rare<'_, Result<bool, End>> {
        Box::pin(self.send_pieces(kept))
    }

    async fn send_pieces(&mut self, mut kept: Kept) -> Result<bool, End> {
        self.shared.turn.step();
        kept.push_next(&mut self.output.events);
        let mut is_all = kept.is_at_end();
        if let Some(stage) = &mut self.request.compression {
            stage.take_in(&mut self.output.events);
        }
        let answered = poll_fn(|context| loop {
            if let Some(answered) = ready!(self.poll_events(context))? {
                return Poll::Ready(Ok(answered));
            }
            if let Some(stage) = &mut self.request.compression {
                if ready!(stage.poll_next(context, &mut self.output.events)) {
                    continue;
                }
            }
            if is_all {
                return Poll::Ready(Ok(Answered::CutOff)); // the end was sent before
            }
            kept.push_next(&mut self.output.events);
            is_all = kept.is_at_end();
            if let Some(stage) = &mut self.request.compression {
                stage.take_in(&mut self.output.events);
            }
        })
        .await?;
        let whole = (kept.status, kept.sent.unwrap_or(0) as u64);
        let compressed = self.request.compression.take().and_then(|stage| stage.sent());
        let (status, body_bytes) = compressed.unwrap_or(whole);
        self.log(status, body_bytes);
        match answered {
            Answered::Whole => Ok(self.protocol.keep_alive()),
            _ => Err(End::CutOff),
        }
    }

    /// Asks the application for a newer answer than the one that this client gets.
    fn refresh(&mut self, routed: Routed<'_>, fill: Box<Fill>) {
        let Routed { app, prefix_bytes, bytes } = routed;
        let mut head = self.request.head.clone();
        head.drop_known(known_key::IF_NONE_MATCH);
        head.drop_known(known_key::IF_MODIFIED_SINCE);
        let exchange = Rc::new(Exchange::new());
        {
            let mut inner = exchange.borrow();
            head.encode_for_ring(
                bytes,
                &self.ring_context(&app.settings().prefix, prefix_bytes, now_us()),
                &mut inner.request.head,
            );
            fill.add_conditions(&mut inner.request.head);
            inner.request.repeatable = true;
            inner.response.assign_to(&app.reads, self.buffers(app));
            inner.response.reset(HeadContext { recipient: Recipient::Unknown, ..HeadContext::default() });
            inner.response.watch(Watch::Fill(fill));
        }
        self.shared.turn.activate(app);
        if app.submit(&exchange, Audience::Public).is_ok() {
            finish_without_client(exchange, Rc::clone(app), |exchange| {
                exchange.borrow().response.is_recorded()
            });
        }
    }

    /// Has the answer to the request at hand come in to the end, for those that wait for it, although its client has left.
    /// `false`: none waits.
    pub(super) fn leave_to_others(&self, app: &Rc<AppState>) -> bool {
        let is_awaited = self.request.exchange.borrow().response.is_awaited();
        if is_awaited {
            self.shared.turn.activate(app);
            let exchange = Rc::clone(&self.request.exchange);
            finish_without_client(exchange, Rc::clone(app), |exchange| {
                exchange.borrow().response.is_awaited()
            });
        }
        is_awaited
    }
}

impl Kept {
    /// Adds the next of the body to the events, and the end behind all of it.
    fn push_next(&mut self, events: &mut AnswerEvents) {
        if let Some(sent) = &mut self.sent {
            let missing = self.body.length() - *sent;
            let wanted = missing.min(PIECE_BYTES);
            self.permit.set(0);
            let has_room = wanted <= FREE_BYTES || self.permit.grow((wanted - FREE_BYTES) as u64).is_ok();
            let piece = self.body.piece(*sent, if has_room { wanted } else { FREE_BYTES });
            events.push_bytes(piece);
            *sent += piece.len();
        }
        if self.is_at_end() {
            events.push(AnswerEvent::End);
        }
    }

    fn is_at_end(&self) -> bool {
        self.sent.is_none_or(|sent| sent == self.body.length())
    }
}

/// Takes the rest of an answer in, and drops it: what is recorded of it is in the cache. It ends early when it is of no use.
fn finish_without_client(
    exchange: Rc<Exchange>,
    app: Rc<AppState>,
    is_of_use: impl Fn(&Exchange) -> bool + 'static,
) {
    spawn_local(async move {
        let mut events = AnswerEvents::default();
        let finished = poll_fn(|context| loop {
            if !is_of_use(&exchange) {
                return Poll::Ready(());
            }
            let mut inner = exchange.borrow();
            inner.response.take_events(&mut events);
            let news = !events.is_empty() || inner.response.caught_up();
            events.clear();
            inner.response.forget_taken();
            inner.waker = Some(context.waker().clone());
            drop(inner);
            if !news {
                return Poll::Pending;
            }
            app.dispatcher.borrow_mut().pull(&exchange);
        });
        let _ = timeout(TIME_WITHOUT_CLIENT, finished).await; // what has not come by then is not wanted any more
        app.dispatcher.borrow_mut().cancel(&exchange);
        exchange.borrow().response.settle();
    });
}
