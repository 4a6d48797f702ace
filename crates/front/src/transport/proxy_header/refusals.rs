//! Connections that were closed as they began with no header, in the log.

use std::cell::Cell;

use crate::clock::now_ms;

/// They are logged once in this time, as every client can cause them.
const LOG_EVERY_MS: u64 = 60_000;

/// The connections that were closed.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    since_log: Cell<u64>,
    next_log_ms: Cell<u64>,
}

impl Refusals {
    /// Counts one, and logs it if none was logged for a while.
    pub(crate) fn note(&self, from: &str, why: &str) {
        self.since_log.set(self.since_log.get() + 1);
        let now = now_ms();
        if now < self.next_log_ms.get() {
            return;
        }
        self.next_log_ms.set(now + LOG_EVERY_MS);
        let connections = self.since_log.take();
        tracing::warn!(%from, connections, "a connection was closed: {why}");
    }
}
