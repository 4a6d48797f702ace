//! Connections that were closed as they began with no header, in the log.

use std::cell::Cell;

use crate::clock::Seldom;

/// They are logged once in this time, as every client can cause them.
const LOG_EVERY_MS: u64 = 60_000;

/// The connections that were closed.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    since_log: Cell<u64>,
    logged: Seldom,
}

impl Refusals {
    /// Counts one, and logs it if none was logged for a while.
    pub(crate) fn note(&self, from: &str, why: &str) {
        self.since_log.set(self.since_log.get() + 1);
        if !self.logged.is_due(LOG_EVERY_MS) {
            return;
        }
        let connections = self.since_log.take();
        tracing::warn!(%from, connections, why, "a connection was closed");
    }
}
