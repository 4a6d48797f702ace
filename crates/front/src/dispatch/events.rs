//! What the supervisor learns of one application.

use highball_config::AppId;
use highball_link::{FrontAppEvent, FrontEvent};
use tokio::sync::mpsc::UnboundedSender;

/// Sends the events of one application to the supervisor.
#[derive(Debug, Clone)]
pub(crate) struct AppEvents {
    pub(crate) app: AppId,
    pub(crate) events: UnboundedSender<FrontEvent>,
}

impl AppEvents {
    pub(crate) fn send(&self, event: FrontAppEvent) {
        // The receiver is gone when the program is ending.
        let _ = self.events.send(FrontEvent::OfApp(self.app, event));
    }
}
