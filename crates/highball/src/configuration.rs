//! The settings that the server follows at this moment.

use highball_config::{App, AppId, Settings};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The current settings. A clone is the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    settings: Arc<Mutex<Arc<Settings>>>,
    /// HUP has come.
    pub(crate) hangup: Arc<Notify>,
    /// The certificates were read again.
    pub(crate) reloaded: Arc<Notify>,
}

impl Configuration {
    pub(crate) fn new(settings: Arc<Settings>) -> Configuration {
        let (hangup, reloaded) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        Configuration { settings: Arc::new(Mutex::new(settings)), hangup, reloaded }
    }

    pub(crate) fn now(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The application with this number, unless it was removed.
    pub(crate) fn app(&self, id: AppId) -> Option<Arc<App>> {
        self.now().app(id).map(Arc::clone)
    }

    /// Follows these settings from here on.
    pub(crate) fn follow(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }
}
