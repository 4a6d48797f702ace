//! Answers from the application's response cache, and requests that may become such.

use std::convert::Infallible;
use std::ops::ControlFlow::{Break, Continue};
use std::rc::Rc;

use super::submit;
use crate::budget::Permit;
use crate::cache::{AppCache, Asking, Fill, Lookup, StoredAnswer, Watch};
use crate::clock::{now_ms, now_us};
use crate::exchange::response_head::{HeadContext, Recipient};
use crate::exchange::Exchange;
use crate::message::conditions::{self, Verdict};
use crate::message::request_head::{known_key, Method};
use crate::refusals::failure_pages::Audience;
use crate::request::cached_answer::CachedAnswer;
use crate::request::without_client;
use crate::request::{Decision, Flow, Routed, Transaction};

/// Answers a request from the cache, or has it wait for another one's answer. What the cache does not answer goes to the
/// application; the watch is then what is done with the answer.
pub(in crate::request) fn answer(transaction: &mut Transaction, routed: Routed<'_>) -> Flow<Option<Watch>> {
    let app = routed.app;
    if !app.has_cache() || is_for_some_alone(transaction, routed) {
        return Continue(None);
    }
    look_up(transaction, routed)
}

/// Whether the application is for its users alone, or knows its clients by certificates: it has no answers for all then.
fn is_for_some_alone(transaction: &Transaction, routed: Routed<'_>) -> bool {
    let app = routed.app;
    app.basic_auth().is_some()
        || transaction.user.is_some()
        || app.settings().client_certificates.are_asked_for()
}

#[inline(never)]
fn look_up(transaction: &mut Transaction, routed: Routed<'_>) -> Flow<Option<Watch>> {
    let Some(cache) = routed.app.cache() else { return Continue(None) };
    let asking = Asking {
        head: transaction.head.with(routed.text()),
        is_tls: routed.arrived.client.peer.is_tls,
        waits: transaction.waited.cache,
        now_ms: now_ms(),
    };
    // What is stored is the old version's.
    if transaction.visitor.is_some_and(|visitor| visitor.gets_new) && routed.app.holds_rollout() {
        return Continue(Some(cache.pass(&asking)));
    }
    match cache.look_up(&asking) {
        Lookup::Forward(watch) => Continue(Some(watch)),
        Lookup::Unavailable => Break(refuse_to_forward(transaction)),
        Lookup::Wait(pending) => {
            transaction.waited.cache += 1;
            routed.wait(pending)
        }
        Lookup::Hit(answer) => Break(send(&answer, &cache, transaction, routed)),
        Lookup::Refresh(answer, fill) => {
            refresh(fill, transaction, routed);
            Break(send(&answer, &cache, transaction, routed))
        }
    }
}

/// The client wants no answer but a stored one.
fn refuse_to_forward(transaction: &mut Transaction) -> Decision {
    const TEXT: &[u8] = b"504 Gateway Timeout: there is no stored response\n";
    transaction.answer_whole(504, TEXT, |fields| {
        fields.add(b"content-type", b"text/plain; charset=utf-8");
        fields.add(b"cache-control", b"no-store");
        fields.add(b"cache-status", b"highball; detail=only-if-cached");
    })
}

/// Begins to send a stored answer.
fn send(
    answer: &StoredAnswer,
    cache: &Rc<AppCache>,
    transaction: &mut Transaction,
    routed: Routed<'_>,
) -> Decision {
    let Routed { arrived, app, .. } = routed;
    let before = transaction.generation_of(app.id);
    transaction.exchange.borrow().generation = before.max(cache.generation());
    let (now_ms, is_head) = (now_ms(), transaction.head.method == Method::Head);
    let says = answer.hit(now_ms);
    let asked = transaction.head.with(arrived.text);
    let has_it =
        answer.status() == 200 && conditions::judge(&asked, answer.known_by()) == Verdict::NotModified;
    let compresses = app.settings().compress && !has_it;
    let encoded = compresses.then(|| answer.encoded(asked, cache, &app.compression)).flatten();
    transaction.compression = match encoded {
        Some(_) => None,
        None => submit::stage(&transaction.head, routed),
    };
    let Ok(head) = transaction.answer.push_head::<Infallible>(|lines| {
        Ok(match &encoded {
            Some(encoded) => answer.write_encoded_head(encoded, &says, now_ms, is_head, lines),
            None if has_it => answer.write_not_modified(&says, now_ms, lines),
            None => answer.write_head(&says, now_ms, is_head, lines),
        })
    });
    transaction.note_hit();
    let body = encoded.map_or_else(|| Rc::clone(answer.plain()), |(_, bytes)| bytes);
    let permit = Permit::new(arrived.client.buffers(&app.buffers));
    Decision::Cached(CachedAnswer::new(head.status, body, !has_it && !is_head, permit))
}

/// Asks the application for a newer answer than this client gets.
fn refresh(fill: Box<Fill>, transaction: &Transaction, routed: Routed<'_>) {
    let Routed { arrived, app, .. } = routed;
    let mut head = transaction.head.clone();
    head.drop_known(known_key::IF_NONE_MATCH);
    head.drop_known(known_key::IF_MODIFIED_SINCE);
    let exchange = Rc::new(Exchange::new());
    {
        let mut inner = exchange.borrow();
        let settings = app.settings();
        let context = submit::ring_context(&settings.prefix, now_us(), transaction, routed);
        head.encode_for_ring(arrived.text, &context, &mut inner.request.head);
        fill.add_conditions(&mut inner.request.head);
        inner.request.repeatable = true;
        inner.response.assign_to(&app.reads, arrived.client.buffers(&app.buffers));
        inner.response.reset(HeadContext { recipient: Recipient::Unknown, ..HeadContext::default() });
        inner.response.watch(Watch::Fill(fill));
    }
    arrived.shared.turn.activate(app);
    if app.submit(&exchange, Audience::Public).is_ok() {
        without_client::finish(exchange, Rc::clone(app), |exchange| exchange.borrow().response.is_recorded());
    }
}
