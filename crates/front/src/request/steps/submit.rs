//! The way of a request into the application's queue: what its worker gets, and from when on it waits.

use std::rc::Rc;

use crate::cache::{Fill, Watch};
use crate::clock::{now_ms, turn_us};
use crate::compression::Stage;
use crate::exchange::response_head::HeadContext;
use crate::hub::CableOffer;
use crate::message::conditions::Conditions;
use crate::message::forwarded::is_about_sending;
use crate::message::refusal::Refusal;
use crate::message::request_head::{
    append_cable_offer, append_client_certificate, append_field, known_key, patch_fiber, patch_limit,
    BodyFraming, Head, Method, RequestHead, RingContext,
};
use crate::message::request_id::RequestId;
use crate::refusals::failure::path;
use crate::request::timing;
use crate::request::{Routed, Transaction};
use crate::route::app_state::AppState;

/// Writes what a worker gets of the request, and prepares for its answer. `watch` is what the cache does with that.
pub(in crate::request) fn prepare(transaction: &mut Transaction, routed: Routed<'_>, watch: Option<Watch>) {
    let Routed { arrived, app, .. } = routed;
    let text = arrived.text;
    let generation = transaction.generation_of(app.id);
    let settings = app.settings();
    let recipient = arrived.client.recipient(arrived.stream, &arrived.shared.settings);
    let received_us = turn_us();
    if !settings.sendfile.is_empty() {
        // Highball sends the files, whatever a proxy in front could do.
        transaction.head.drop_fields(text, is_about_sending);
    }
    transaction.reports_timing = settings.server_timing;
    let moments = timing::first_moments(recipient, received_us, transaction, &settings, arrived);
    let fill = watch.as_ref().and_then(Watch::fill);
    let asked = Conditions::of(transaction.head.with(text));
    if fill.is_some_and(Fill::has_conditions) {
        transaction.head.drop_known(known_key::IF_NONE_MATCH);
        transaction.head.drop_known(known_key::IF_MODIFIED_SINCE);
    }
    transaction.compression = stage(&transaction.head, routed);
    let session = app.session_of(transaction.head.with(text));
    transaction.has_session = session.is_some();
    let head = &transaction.head;
    let mut inner = transaction.exchange.borrow();
    inner.generation = generation;
    inner.moments = moments;
    let context = ring_context(&settings.prefix, received_us, transaction, routed);
    head.encode_for_ring(text, &context, &mut inner.request.head);
    fill.iter().for_each(|fill| fill.add_conditions(&mut inner.request.head));
    if settings.client_certificates.are_asked_for() {
        let proof = arrived.client.peer.proof.as_ref();
        append_client_certificate(&mut inner.request.head, proof.and_then(|proof| proof.certificate()));
    }
    inner.response.assign_to(&app.reads, arrived.client.buffers(&app.buffers));
    inner.response.may_be_held_by(&app.hub);
    inner.request.kind = None;
    inner.request.repeatable = head.method.is_idempotent();
    inner.request.is_for_web_socket = is_for_web_socket(head.with(text));
    let cable = inner.request.is_for_web_socket && offer_cable(&mut inner.request.head, head, routed);
    inner.request.repeated = false;
    inner.request.session = session;
    inner.request.visitor = transaction.visitor.map(|visitor| visitor.number);
    inner.response.may_name_session(session.and_then(|_| app.session_field()));
    inner.request.received.clear();
    if head.may_be_for_file() && !app.knows_files() {
        inner.request.received.extend_from_slice(text);
    }
    inner.response.reset(HeadContext {
        head_method: head.method == Method::Head,
        upgrade: head.upgrade,
        recipient,
        cable,
        ..HeadContext::default()
    });
    inner.response.ask(asked);
    watch.into_iter().for_each(|watch| inner.response.watch(watch));
}

/// Tells the application that the front would hold its WebSocket, if it is one of Action Cable. (The body of what a worker is asked
/// about it is the front's, so the request has none.)
#[cold]
fn offer_cable(block: &mut Vec<u8>, head: &RequestHead, routed: Routed<'_>) -> bool {
    let Routed { arrived, app, .. } = routed;
    let may_be_held = head.framing == BodyFraming::None
        && !head.has(known_key::CONTENT_LENGTH)
        && arrived.protocol.can_be_taken_over_whole();
    let newest = app.dispatcher.borrow().newest_generation();
    let offer = app.hub.cable_offer(newest).filter(|_| may_be_held);
    match offer {
        Some(CableOffer::Held) => append_cable_offer(block, b"held"),
        Some(CableOffer::Full) => append_cable_offer(block, b"full"),
        None => {}
    }
    offer.is_some()
}

fn is_for_web_socket(head: Head<'_>) -> bool {
    let is_web_socket = |protocol: &[u8]| protocol.eq_ignore_ascii_case(b"websocket");
    head.upgrade && head.field(known_key::UPGRADE).is_some_and(is_web_socket)
}

/// The compression of an answer of the application, if the client accepts one.
pub(super) fn stage(head: &RequestHead, routed: Routed<'_>) -> Option<Box<Stage>> {
    let app = routed.app;
    let is_on = app.settings().compress;
    let client = || routed.arrived.client.encoders();
    is_on.then(|| Stage::new(head.with(routed.text()), &app.compression, client())).flatten()
}

/// What a worker gets of a request beside its head.
pub(super) fn ring_context<'a>(
    prefix: &'a str,
    received_us: u64,
    transaction: &'a Transaction,
    routed: Routed<'a>,
) -> RingContext<'a> {
    let peer = &routed.arrived.client.peer;
    RingContext {
        remote_addr: &peer.remote_addr,
        server_name: &peer.server_name,
        server_port: peer.server_port,
        script_name: prefix,
        prefix_bytes: routed.prefix_bytes,
        remote_user: transaction.user.as_deref(),
        request_id: transaction.request_id.as_ref().and_then(RequestId::made),
        https: peer.is_tls,
        takeover: routed.arrived.protocol.can_be_taken_over_whole(),
        received_us,
        content_length: None,
    }
}

/// Puts a request, whose body is there, into the application's queue.
///
/// # Errors
/// The application does not take it.
pub(crate) fn submit(transaction: &mut Transaction, app: &Rc<AppState>) -> Result<(), Refusal> {
    timing::begin_wait(transaction, app);
    begin_limit(transaction, app);
    choose_fiber(transaction, app);
    if let Some(trace) = &mut transaction.trace {
        trace.note_queued();
        let mut inner = transaction.exchange.borrow();
        append_field(&mut inner.request.head, known_key::TRACEPARENT, trace.traceparent());
    }
    app.submit(&transaction.exchange, transaction.audience)
}

/// Its path may be one of `fibers`. (A WebSocket's application gets the connection itself, and only one descriptor
/// comes with a request: the socket of a fiber, or the file of a large body.)
fn choose_fiber(transaction: &Transaction, app: &AppState) {
    let settings = app.settings();
    let mut inner = transaction.exchange.borrow();
    let request = &mut inner.request;
    let may = !settings.fibers.is_empty() && !request.is_for_web_socket && !request.is_spooled();
    request.on_fiber = may && {
        let path = path(&request.head);
        settings.fibers.iter().any(|pattern| pattern.fits(&path).is_some())
    };
    if request.on_fiber {
        patch_fiber(&mut request.head);
    }
}

/// The time for the answer begins: how long it is depends on the path.
fn begin_limit(transaction: &mut Transaction, app: &AppState) {
    let settings = app.settings();
    let mut inner = transaction.exchange.borrow();
    // Until its body was there.
    let waited_ms = inner.moments.queued_us.saturating_sub(inner.moments.received_us) / 1000;
    let head = &mut inner.request.head;
    transaction.limit = settings.limits.time_for(|| path(head));
    if let Some(limit) = transaction.limit {
        let limit_ms = limit.as_millis() as u64;
        patch_limit(head, u32::try_from(waited_ms.saturating_add(limit_ms)).unwrap_or(u32::MAX));
        inner.limit_ms = Some(now_ms().saturating_add(limit_ms));
    } else {
        inner.limit_ms = None;
    }
}
