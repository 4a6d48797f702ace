//! What certificates and the way to HTTPS need, before the request is routed.

use std::ops::ControlFlow::{Break, Continue};
use std::rc::Rc;

use super::{health, redirect};
use crate::https::Https;
use crate::message::request_head::Method;
use crate::protocol::Protocol;
use crate::request::{Arrived, Decision, Flow, Transaction};

/// The status of a redirect to the same address over HTTPS.
const STATUS: u16 = 308;

/// Answers authorities that check a name, and clients that should use HTTPS.
pub(in crate::request) fn answer(transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow {
    match &arrived.shared.https {
        Some(https) => answer_with(https, transaction, arrived),
        None => Continue(()),
    }
}

#[inline(never)]
fn answer_with(https: &Https, transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow {
    if arrived.client.peer.is_plain_http_on_tls_port {
        return Break(lead_back(https, transaction, arrived));
    }
    answer_challenge(https, transaction, arrived)?;
    send_to_https(https, transaction, arrived)
}

/// An authority that looks whether a name is ours.
fn answer_challenge(https: &Https, transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow {
    let (head, text) = (&transaction.head, arrived.text);
    if !head.method.is_idempotent() {
        return Continue(());
    }
    let Some(content) = https.tls.challenges().answer(head.with(text).path()) else { return Continue(()) };
    transaction.note(None, arrived.text, arrived.shared);
    Break(transaction.answer_whole(200, &content, |fields| {
        fields.add(b"content-type", b"application/octet-stream");
    }))
}

/// A client of an address for HTTP, where all are to use HTTPS.
fn send_to_https(https: &Https, transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow {
    let peer = &arrived.client.peer;
    let is_web_server = matches!(arrived.protocol, Protocol::Gateway(_));
    if !https.redirects || peer.is_tls || !arrived.stream.is_tcp() || is_web_server {
        return Continue(());
    }
    let head = transaction.head.with(arrived.text);
    let found = {
        let apps = arrived.shared.apps.borrow();
        apps.route(head.host_name(), head.path()).map(|(app, prefix_bytes)| (Rc::clone(app), prefix_bytes))
    };
    if found.as_ref().is_some_and(|(app, prefix_bytes)| health::is_asked(app, head, *prefix_bytes)) {
        return Continue(());
    }
    // To where the application's redirects lead at once, if they do.
    let moved = found.and_then(|(app, prefix_bytes)| redirect::moved(&app.settings(), head, prefix_bytes));
    let (status, to) = match moved {
        Some(moved) => (moved.status, moved.over_https(https, head, &peer.server_name)),
        None => (STATUS, https.url_of(head, &peer.server_name)),
    };
    transaction.note(None, arrived.text, arrived.shared);
    Break(transaction.answer_whole(status, b"", |fields| fields.add(b"location", &to)))
}

/// A client that speaks HTTP at an address for HTTPS. A browser is sent to the same address with https://, by status 307, because
/// another server may use this port later. What else a client may have sent was readable on the way, so it gets an error.
#[cold]
fn lead_back(https: &Https, transaction: &mut Transaction, arrived: Arrived<'_>) -> Decision {
    const WRONG: &[u8] = b"This address is for HTTPS: write https:// instead of http://.\n";
    let to = https.url_of(transaction.head.with(arrived.text), &arrived.client.peer.server_name);
    transaction.note(None, arrived.text, arrived.shared);
    if matches!(transaction.head.method, Method::Get | Method::Head) {
        return transaction.answer_whole(307, b"", |fields| fields.add(b"location", &to));
    }
    transaction.answer_whole(400, WRONG, |fields| {
        fields.add(b"content-type", b"text/plain; charset=utf-8");
    })
}
