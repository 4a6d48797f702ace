//! The limit on bodies, as far as the head says how long one is.

use std::ops::ControlFlow::{Break, Continue};

use crate::message::refusal::Refusal;
use crate::request::{Decision, Flow, Routed, Transaction};

/// Refuses a body that is longer than the application allows.
pub(in crate::request) fn limit(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let most_bytes = routed.app.settings().limits.body_bytes;
    match transaction.head.framing.is_beyond(most_bytes) {
        true => Break(Decision::Refuse(Refusal::BodyTooLarge)),
        false => Continue(()),
    }
}
