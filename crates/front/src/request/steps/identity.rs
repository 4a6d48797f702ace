//! The ids of a request: its own, and its trace.

use crate::exchange::response_head::Recipient;
use crate::message::request_head::known_key;
use crate::message::request_id::RequestId;
use crate::request::{Arrived, Transaction};
use crate::shared::Shared;
use crate::trace::Tracer;

/// Gives the request its id, unless it has one: the id that came with its head, or a new one.
pub(in crate::request) fn identify(transaction: &mut Transaction, arrived: Arrived<'_>) {
    match &arrived.shared.tracer {
        Some(tracer) => trace(transaction, arrived, tracer),
        None => transaction.head.drop_invalid_trace(arrived.text),
    }
    if arrived.shared.settings.request_id && transaction.request_id.is_none() {
        take_id(transaction, arrived);
    }
}

/// Begins the trace of a request, unless that has waited and has one. The application gets another parent than the caller's span.
#[inline(never)]
fn trace(transaction: &mut Transaction, arrived: Arrived<'_>, tracer: &Tracer) {
    let Arrived { shared, client, stream, .. } = arrived;
    if transaction.trace.is_none() {
        transaction.head.drop_invalid_trace(arrived.text);
        if client.recipient(stream, &shared.settings) == Recipient::Client {
            // Visitors could decide which requests are sampled.
            transaction.head.drop_known(known_key::TRACEPARENT);
            transaction.head.drop_known(known_key::TRACESTATE);
        }
        let head = transaction.head.with(arrived.text);
        transaction.trace = Some(tracer.begin(Some(head), &mut shared.random.borrow_mut()));
        transaction.head.drop_known(known_key::TRACEPARENT);
    }
}

#[inline(never)]
fn take_id(transaction: &mut Transaction, arrived: Arrived<'_>) {
    let head = &mut transaction.head;
    let kept = RequestId::kept(head.with(arrived.text).values_of(known_key::X_REQUEST_ID));
    if kept.is_none() {
        head.drop_known(known_key::X_REQUEST_ID);
    }
    transaction.request_id = Some(kept.unwrap_or_else(|| new_id(arrived.shared)));
}

/// Gives an id and a trace to a request whose head could not be read, too: visitors and the log name it.
pub(crate) fn identify_unread(transaction: &mut Transaction, shared: &Shared) {
    if shared.settings.request_id && transaction.request_id.is_none() {
        transaction.request_id = Some(new_id(shared));
    }
    if let Some(tracer) = shared.tracer.as_ref().filter(|_| transaction.trace.is_none()) {
        transaction.trace = Some(tracer.begin(None, &mut shared.random.borrow_mut()));
    }
}

fn new_id(shared: &Shared) -> RequestId {
    RequestId::new(&mut shared.random.borrow_mut())
}
