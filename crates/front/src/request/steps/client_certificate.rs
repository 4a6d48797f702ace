//! Certificates of clients (option `tls_client_ca`): a request reaches an application if its connection's client was asked for what
//! the application demands, and has shown it.

use std::ops::ControlFlow::{Break, Continue};

use crate::message::refusal::Refusal;
use crate::request::{Decision, Flow, Routed};

/// Refuses a request whose client has not shown what the application demands.
pub(in crate::request) fn require(routed: Routed<'_>) -> Flow {
    match routed.app.settings().client_certificates.are_asked_for() {
        true => judge(routed),
        false => Continue(()),
    }
}

/// A client chooses the host of a connection and that of each request. Where it was asked for something else, it is to ask again on
/// another connection.
#[inline(never)]
fn judge(routed: Routed<'_>) -> Flow {
    let settings = routed.app.settings();
    let rule = &settings.client_certificates;
    let proof = routed.arrived.client.peer.proof.as_ref();
    let is_secured = routed.arrived.stream.is_secured();
    match () {
        () if proof.is_some_and(|proof| proof.is_for(rule)) => Continue(()),
        () if is_secured => Break(Decision::Refuse(Refusal::Misdirected)),
        () if rule.are_required() => Break(Decision::Refuse(Refusal::ClientCertificateNeeded)),
        () => Continue(()),
    }
}
