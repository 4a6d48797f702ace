//! Health checks of an application at the addresses for clients (option `health_path`): the front answers them, also while
//! all threads of the application are busy.

use std::ops::ControlFlow::{Break, Continue};

use crate::message::request_head::{Head, Method};
use crate::request::{Decision, Flow, Routed, Transaction};
use crate::route::app_state::AppState;

/// Answers a health check: whether this application should get requests. It is for everybody, so it says no more than that,
/// and why not.
pub(in crate::request) fn answer(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    match is_asked(routed.app, transaction.head.with(routed.text()), routed.prefix_bytes) {
        true => Break(answer_check(transaction, routed)),
        false => Continue(()),
    }
}

/// Whether this is a health check of the application.
pub(super) fn is_asked(app: &AppState, head: Head<'_>, prefix_bytes: usize) -> bool {
    let settings = app.settings();
    let Some(path) = &settings.health_path else { return false };
    let reads = matches!(head.method, Method::Get | Method::Head);
    reads && &head.path()[prefix_bytes..] == path.as_bytes()
}

#[cold]
fn answer_check(transaction: &mut Transaction, routed: Routed<'_>) -> Decision {
    let shared = routed.arrived.shared;
    let (state, is_ready) = routed.app.state(shared.settings.admin.stuck_after);
    let (status, text) = match (is_ready, shared.is_stopping()) {
        (_, true) => (503, "not ready: stopping\n".to_owned()),
        (false, false) => (503, format!("not ready: {state}\n")),
        (true, false) => (200, "ready\n".to_owned()),
    };
    transaction.answer_whole(status, text.as_bytes(), |fields| {
        fields.add(b"content-type", b"text/plain; charset=utf-8");
        fields.add(b"cache-control", b"no-store");
    })
}
