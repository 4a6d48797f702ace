//! The ids of a request: its own, and the id of its trace.

use crate::message::request_head::known_key;
use crate::message::request_id::RequestId;
use crate::request::{Arrived, Transaction};
use crate::shared::Shared;

/// Gives the request its id, unless it has one: the id that came with its head, or a new one.
pub(in crate::request) fn identify(transaction: &mut Transaction, arrived: Arrived<'_>) {
    transaction.head.drop_invalid_trace(arrived.text);
    if arrived.shared.settings.request_id && transaction.request_id.is_none() {
        take_id(transaction, arrived);
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

/// Gives an id to a request whose head could not be read, too: visitors and the log name it.
pub(crate) fn identify_unread(transaction: &mut Transaction, shared: &Shared) {
    if shared.settings.request_id && transaction.request_id.is_none() {
        transaction.request_id = Some(new_id(shared));
    }
}

fn new_id(shared: &Shared) -> RequestId {
    shared.request_ids.borrow_mut().make()
}
