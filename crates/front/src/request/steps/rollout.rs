//! The visitor of a request, while a rollout gives some visitors another version of the application.

use crate::request::{Routed, Transaction};
use crate::rollout::Visitor;

/// Finds out who the visitor is, if that makes a difference.
pub(in crate::request) fn know(transaction: &mut Transaction, routed: Routed<'_>) {
    if routed.app.has_rollout() {
        find(transaction, routed);
    }
}

#[cold]
fn find(transaction: &mut Transaction, routed: Routed<'_>) {
    let Some(rule) = routed.app.visitor_rule() else { return };
    // A request that has waited keeps its number.
    transaction.visitor = Some(match transaction.visitor {
        Some(visitor) => visitor.by(rule),
        None => {
            let head = transaction.head.with(routed.text());
            Visitor::of(head, rule, || routed.app.new_visitor_number())
        }
    });
}
