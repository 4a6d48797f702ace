//! The requests that a worker has to answer before clients' requests go to it, if it is of a new release or takes the place of a worker
//! that serves until then, in a refork. By the first of them it shows that it answers. The others prepare it: the first request of a worker takes
//! longer.

use std::rc::Rc;
use std::time::{Duration, Instant};

use highball_link::FrontAppEvent;
use tokio::time::timeout;

use crate::request::own_request::{self, Asked};
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// Most time for the requests that prepare a worker. It then serves, even if one of them goes on.
const WARM_UP_TIME: Duration = Duration::from_secs(10);
/// Their part of what is left of `probe_timeout`, at whose end the worker is killed.
const WARM_UP_PART: u32 = 2;

/// Sends a canary its requests, and reports the head of its answer to the first. How long that may take is for others to decide:
/// when the canary is retired or gone, the request fails.
pub(crate) async fn ask(worker: u32, app: Rc<AppState>, shared: Rc<Shared>) {
    let began = Instant::now();
    let process = app.settings().process.clone();
    let answer = answer_of(worker, &process.probe_path, false, &app, &shared).await;
    if answer.is_ok() {
        let warm_up = async {
            for path in &process.warm_up {
                // As by HTTPS: most applications in production answer everything else with a redirect. The answer does not matter.
                let _ = answer_of(worker, path, true, &app, &shared).await;
            }
        };
        let rest = process.probe_timeout.saturating_sub(began.elapsed());
        let _ = timeout(WARM_UP_TIME.min(rest / WARM_UP_PART), warm_up).await;
    }
    app.send(FrontAppEvent::CanaryAnswered { worker, answer });
}

async fn answer_of(
    worker: u32,
    path: &str,
    https: bool,
    app: &Rc<AppState>,
    shared: &Shared,
) -> Result<u16, String> {
    // The first host that leads to the application: it may turn away a host that it does not know before it has done anything.
    let host = app.settings().hosts.first().map_or_else(|| "localhost".into(), String::clone);
    let exchange = own_request::get(Asked { path, host: &host, https }, app, shared)?;
    shared.turn.activate(app);
    if !app.dispatcher.borrow_mut().submit_to_canary(worker, &exchange) {
        return Err("it ended before it could be asked".into());
    }
    own_request::status(&exchange, app).await
}
