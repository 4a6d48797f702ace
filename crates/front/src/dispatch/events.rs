//! What the supervisor learns of one application.

use highball_config::AppId;
use tokio::sync::mpsc::UnboundedSender;

use crate::messages::{AppEvent, Event};

/// Sends the events of one application to the supervisor.
#[derive(Debug, Clone)]
pub(crate) struct AppEvents {
    pub(crate) app: AppId,
    pub(crate) events: UnboundedSender<Event>,
}

impl AppEvents {
    pub(crate) fn send(&self, event: AppEvent) {
        // The receiver is gone when the program is ending.
        let _ = self.events.send(Event::OfApp(self.app, event));
    }
}
