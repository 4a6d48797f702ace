//! The request by which the first worker of a new release has to show that it answers, before clients' requests go
//! to it.

use std::rc::Rc;

use crate::messages::AppEvent;
use crate::own_request::{self, Asked};
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// Sends a canary its request, waits for the head of its answer, and says what it was. How long that may take is for
/// others to say: when the canary is retired or gone, the request fails.
pub(crate) async fn ask(worker: u32, path: String, app: Rc<AppState>, shared: Rc<Shared>) {
    let answer = answer_of(worker, &path, &app, &shared).await;
    app.send(AppEvent::CanaryAnswered { worker, answer });
}

async fn answer_of(worker: u32, path: &str, app: &Rc<AppState>, shared: &Shared) -> Result<u16, String> {
    // The first host that leads to the application: one that it does not know it may turn away before it has done anything.
    let host = app.settings().hosts.first().map_or_else(|| "localhost".into(), String::clone);
    let exchange = own_request::get(Asked { path, host: &host, https: false }, app, shared)?;
    shared.turn.activate(app);
    if !app.dispatcher.borrow_mut().submit_to_canary(worker, &exchange) {
        return Err("it was gone before it could be asked".into());
    }
    own_request::status(&exchange, app).await
}
