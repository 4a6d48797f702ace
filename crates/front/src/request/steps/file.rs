//! Static files.

use std::ops::ControlFlow::{Break, Continue};
use std::rc::Rc;

use crate::clock::now_ms;
use crate::files::{StaticAnswer, StaticFiles, StaticRequest};
use crate::request::{Decision, Flow, Routed, Transaction};

/// Number of times that a request waits until more is known of a file: once for the file that it names, and once for the page
/// that says that there is none; in a rollout, as often for the files of the other version.
const MOST_WAITS: u8 = 4;

/// Answers a request for a file.
pub(in crate::request) fn answer(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    if transaction.visitor.is_some() {
        return of_two_versions(transaction, routed);
    }
    let statics = routed.app.statics.borrow().as_ref().map(Rc::clone);
    match statics {
        Some(statics) => find(&statics, transaction, routed),
        None => Continue(()),
    }
}

/// The files of the visitor's version come first. A request without the visitor's cookie, such as a cache's, finds the files of
/// either.
#[cold]
fn of_two_versions(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let (old, new) = (routed.app.statics.borrow().as_ref().map(Rc::clone), routed.app.statics_of_rollout());
    let gets_new = transaction.visitor.is_some_and(|visitor| visitor.gets_new);
    let statics = if gets_new { [new, old] } else { [old, new] };
    statics.into_iter().flatten().try_for_each(|statics| find(&statics, transaction, routed))
}

#[inline(never)]
fn find(statics: &StaticFiles, transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let Transaction { head, answer: events, waited, .. } = transaction;
    let (path, may_wait) = (routed.path(head), waited.files < MOST_WAITS);
    let request = StaticRequest { head: head.with(routed.text()), path, now_ms: now_ms(), may_wait };
    let answer = match statics.lookup(&request, events) {
        StaticAnswer::NotMine => match statics.not_found(&request, events) {
            None => return Continue(()),
            Some(Ok(answer)) => answer,
            Some(Err(refusal)) => return Break(Decision::Refuse(refusal)),
        },
        answer => answer,
    };
    match answer {
        StaticAnswer::Pending(pending) => {
            waited.files += 1;
            routed.wait(pending)
        }
        StaticAnswer::NotMine => Continue(()),
        StaticAnswer::Given => Break(Decision::Answer),
    }
}
