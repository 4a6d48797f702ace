//! Requests for a host that the connection was not secured for (RFC 9110 section 15.5.20, RFC 9113 section 9.1.2): the client has
//! checked the certificate of another application.

use std::ops::ControlFlow::{Break, Continue};

use crate::exchange::response_head::Recipient;
use crate::message::refusal::Refusal;
use crate::message::request_head::RequestHead;
use crate::request::{Arrived, Decision, Flow, Transaction};

/// Refuses a request that the client should send on another connection.
pub(in crate::request) fn refuse(transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow {
    match is_misdirected(&transaction.head, arrived) {
        true => Break(Decision::Refuse(Refusal::Misdirected)),
        false => Continue(()),
    }
}

/// Whether the client should ask for this host on another connection. Trusted proxies choose the name of a connection for
/// themselves, and clients that name none in the handshake get a certificate in spite of that.
fn is_misdirected(head: &RequestHead, arrived: Arrived<'_>) -> bool {
    let Arrived { shared, stream, client, text, .. } = arrived;
    let (Some(https), Some(host)) = (&shared.https, head.with(text).host_name()) else { return false };
    let host = host.strip_suffix(b".").unwrap_or(host);
    stream.look_at_server_name(|name| {
        let Some(name) = name.filter(|name| !host.eq_ignore_ascii_case(name.as_bytes())) else {
            return false;
        };
        let host = String::from_utf8_lossy(host).to_ascii_lowercase();
        client.recipient(stream, &shared.settings) != Recipient::Proxy
            && https.tls.is_misdirected(name, &host)
    })
}
