//! What a client whose request is refused gets beside the reason: facts for a developer, or the application's page.

use std::rc::Rc;
use std::time::Duration;

use highball_link::{Diagnosis, FrontAppEvent, QueueLoad};
use tokio::sync::oneshot;

use super::transaction::Transaction;
use crate::message::refusal::Refusal;
use crate::refusals::failure::Failure;
use crate::refusals::failure_pages::{Audience, Page};
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// How long a developer's browser waits for an explanation, before it gets the public page.
const PAGES_TIME: Duration = Duration::from_secs(5);

/// The page for a refusal, which is logged. `None`: the reason in words is all that there is.
pub(crate) async fn page_of(
    refusal: Refusal,
    transaction: &Transaction,
    shared: &Shared,
) -> Option<Rc<Page>> {
    if matches!(refusal, Refusal::Maintenance { .. }) {
        return transaction.visit.as_ref()?.maintenance_page().await;
    }
    let app = transaction.visit.as_ref().filter(|_| refusal.is_of_the_application())?;
    let failure = (refusal != Refusal::AppFailed).then(|| failure(app, refusal, transaction));
    if let Some(failure) = &failure {
        app.log(failure, transaction.limit, shared.apps.borrow().is_one());
    }
    let page = match (transaction.audience, failure) {
        (Audience::Public, _) => None,
        (Audience::Unproven(form), _) => Some(Page::of_link(&refusal.in_words(), form)),
        (Audience::Developer(form), None) => app.page_of_failure(form),
        (Audience::Developer(form), Some(failure)) => {
            explain(app, failure).await.map(|diagnosis| Page::of(&(shared.pages)(&diagnosis), form))
        }
    };
    match page {
        Some(page) => Some(Rc::new(page)),
        None => app.public_page(refusal.status()).await,
    }
}

fn failure(app: &AppState, refusal: Refusal, transaction: &Transaction) -> Failure {
    let is_full = matches!(refusal, Refusal::QueueFull { .. });
    let load = if is_full { app.dispatcher.borrow().load() } else { QueueLoad::default() };
    let id = transaction.request_id.as_ref().map(|id| id.as_str().to_owned());
    let trace_id = transaction.trace.as_ref().map(|trace| trace.id().to_owned());
    Failure { request_id: id, trace_id, ..Failure::of(refusal, &mut transaction.exchange.borrow(), load) }
}

/// Asks the supervisor for a diagnosis.
async fn explain(app: &AppState, failure: Failure) -> Option<Diagnosis> {
    let (to, diagnosis) = oneshot::channel();
    app.send(FrontAppEvent::DiagnosisWanted(Box::new(failure.for_supervisor()), to));
    tokio::time::timeout(PAGES_TIME, diagnosis).await.ok()?.ok()
}
