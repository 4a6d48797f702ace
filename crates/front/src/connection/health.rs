//! Health checks of an application at the addresses for clients (option `health_path`): the front answers them by itself, also
//! while all threads of the application are busy.

use super::routed::Routed;
use super::{Connection, Step};
use crate::message::request_head::{BodyFraming, Method};
use crate::route::app_state::AppState;

impl Connection {
    /// The answer to a health check, if this is one: whether this application should get requests. It is for everybody, so it
    /// says no more than that, and why not.
    pub(super) fn check_health(&mut self, routed: Routed<'_>) -> Option<Step> {
        let is_asked = {
            let settings = routed.app.settings();
            let path = settings.health_path.as_ref()?;
            routed.path(&self.request.head) == path.as_bytes()
        };
        let reads = matches!(self.request.head.method, Method::Get | Method::Head);
        (is_asked && reads).then(|| self.answer_health(routed.app))
    }

    #[cold]
    fn answer_health(&mut self, app: &AppState) -> Step {
        if self.request.head.framing != BodyFraming::None {
            self.protocol.end_connection(); // the body would stand before the next request
        }
        let (state, is_ready) = app.state(self.shared.settings.admin.stuck_after);
        let (status, text) = match (is_ready, self.shared.is_stopping()) {
            (_, true) => (503, "not ready: stopping\n".to_owned()),
            (false, false) => (503, format!("not ready: {state}\n")),
            (true, false) => (200, "ready\n".to_owned()),
        };
        self.output.events.push_whole(
            status,
            self.request.head.method == Method::Head,
            text.as_bytes(),
            |fields| {
                fields.add(b"content-type", b"text/plain; charset=utf-8");
                fields.add(b"cache-control", b"no-store");
            },
        );
        Step::Answer
    }
}
