//! Routes the request to an application.

use std::ops::ControlFlow::{Break, Continue};
use std::rc::Rc;

use super::developer;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, Method};
use crate::refusals::failure_pages::{Audience, Page};
use crate::request::{Arrived, Decision, Flow, Transaction};
use crate::route::app_list;
use crate::route::app_state::{AppState, Visit};

/// An application, and the length of its prefix in the path.
type Found = (Rc<AppState>, usize);

/// Finds the application, which the request visits from now on.
pub(in crate::request) fn find(transaction: &mut Transaction, arrived: Arrived<'_>) -> Option<Found> {
    let head = transaction.head.with(arrived.text);
    let apps = arrived.shared.apps.borrow();
    let found =
        apps.route(head.host_name(), head.path()).map(|(app, prefix_bytes)| (Rc::clone(app), prefix_bytes));
    transaction.visit = found.as_ref().map(|(app, _)| Visit::new(Rc::clone(app)));
    found
}

/// Passes a request on for which there is an application.
pub(in crate::request) fn require(
    found: Option<Found>,
    transaction: &mut Transaction,
    arrived: Arrived<'_>,
) -> Flow<Found> {
    match found {
        Some(found) => Continue(found),
        None => Break(answer_without(transaction, arrived)),
    }
}

/// There is no application for this host and path. Developers get a list of the applications: names and folders are for
/// them alone, so the rule is a diagnosis's, and the strictest application counts.
#[cold]
fn answer_without(transaction: &mut Transaction, arrived: Arrived<'_>) -> Decision {
    let apps = arrived.shared.apps.borrow();
    let is_development = apps.reached().any(|app| app.settings().is_development());
    let rule = apps.reached().map(|app| app.settings().show_diagnosis).max().unwrap_or_default();
    let audience =
        if is_development { developer::audience(rule, &transaction.head, arrived) } else { Audience::Public };
    let Transaction { head, answer, .. } = transaction;
    if head.framing != BodyFraming::None {
        return Decision::Refuse(Refusal::NoApp);
    }
    match audience {
        Audience::Public => Decision::Refuse(Refusal::NoApp),
        Audience::Unproven(form) => {
            let page = Page::of_link(&Refusal::NoApp.in_words(), form);
            Refusal::NoApp.answer_with(&page.content(), head.method == Method::Head, answer);
            Decision::Answer
        }
        Audience::Developer(form) => {
            let listed = apps.reached().map(|app| &**app);
            let list = app_list::Answer::new(listed, form, &arrived.shared.key, head.with(arrived.text));
            list.push(head.method == Method::Head, answer);
            Decision::Answer
        }
    }
}
