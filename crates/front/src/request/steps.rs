//! The steps of a request, a file each, and their order.

pub(super) mod application;
pub(super) mod body_size;
pub(super) mod cache;
pub(super) mod client_certificate;
pub(super) mod developer;
pub(super) mod file;
pub(super) mod headers;
pub(super) mod health;
pub(super) mod https;
pub(crate) mod identity;
pub(super) mod login;
pub(super) mod maintenance;
pub(super) mod misdirected;
pub(super) mod rate;
pub(super) mod redirect;
pub(super) mod rollout;
pub(crate) mod submit;

use std::ops::ControlFlow::{Break, Continue};
use std::rc::Rc;

use super::flow::{Decision, Flow};
use super::routed::{Arrived, Routed};
use super::transaction::Transaction;
use crate::route::app_state::AppState;

/// Outcome of a request, whose head is in the transaction: the first step that does not pass it on decides. Without
/// one, an application gets it.
pub(crate) fn route(transaction: &mut Transaction, arrived: Arrived<'_>) -> Decision {
    match pass(transaction, arrived) {
        Continue(app) => Decision::Application(app),
        Break(decision) => decision,
    }
}

fn pass(transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow<Rc<AppState>> {
    identity::identify(transaction, arrived);
    transaction.open();
    https::answer(transaction, arrived)?;
    let found = application::find(transaction, arrived);
    developer::follow(transaction, arrived)?;
    transaction.note(None, arrived.text, arrived.shared); // from here on its target has no key of a developer
    misdirected::refuse(transaction, arrived)?;
    let (app, prefix_bytes) = application::require(found, transaction, arrived)?;
    let routed = Routed { arrived, app: &app, prefix_bytes };
    headers::choose(transaction, routed);
    health::answer(transaction, routed)?;
    client_certificate::require(routed)?;
    redirect::answer(transaction, routed)?;
    rate::limit(transaction, routed)?;
    maintenance::refuse(transaction, routed)?;
    developer::know(transaction, routed);
    login::check(transaction, routed)?;
    body_size::limit(transaction, routed)?;
    rollout::know(transaction, routed);
    file::answer(transaction, routed)?;
    let watch = cache::answer(transaction, routed)?;
    submit::prepare(transaction, routed, watch);
    Continue(app)
}
