//! Maintenance: visitors get a page instead of the application. Health checks and people with the link reach the application.

use std::ops::ControlFlow::{Break, Continue};

use highball_config::Network;

use crate::basic_auth::is_open;
use crate::location;
use crate::maintenance::{Notice, Now};
use crate::message::refusal::Refusal;
use crate::message::request_head::known_key;
use crate::request::{Decision, Flow, Routed, Transaction};

/// Refuses a visitor's request during maintenance.
pub(in crate::request) fn refuse(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    match routed.app.maintenance().now() {
        Now::Off => Continue(()),
        Now::Unknown(pending) => routed.wait(pending),
        Now::On(notice) => judge(&notice, transaction, routed),
    }
}

#[cold]
fn judge(notice: &Notice, transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let Routed { arrived, app, prefix_bytes } = routed;
    let head = transaction.head.with(arrived.text);
    if let Some(query) = notice.without_key(head.query()) {
        return Break(welcome(notice, &location::of_same_origin(head.path(), &query), transaction, routed));
    }
    let passes = Network::any_contains(&notice.allowed, arrived.client.address())
        || head.values_of(known_key::COOKIE).any(|cookies| notice.is_in_cookies(cookies))
        || is_open(head, prefix_bytes, &app.settings().process.probe_path);
    match passes {
        true => Continue(()),
        false => {
            let retry_after_seconds = notice.shown.retry_after_seconds;
            Break(Decision::Refuse(Refusal::Maintenance { retry_after_seconds }))
        }
    }
}

/// Answers the link with the key: sets the cookie, and redirects to the address without the key. The log gets no key either.
fn welcome(notice: &Notice, to: &[u8], transaction: &mut Transaction, routed: Routed<'_>) -> Decision {
    let arrived = routed.arrived;
    transaction.note(Some(to), arrived.text, arrived.shared);
    let cookie = notice.set_cookie(arrived.client.peer.is_tls);
    transaction.answer_link(to, cookie.as_deref())
}
