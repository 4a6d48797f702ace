//! Connections that were closed as they began with no header, in the log.

use crate::clock::Tally;

/// They are logged once in this time, as every client can cause them.
const LOG_EVERY_MS: u64 = 60_000;

/// The connections that were closed.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Tally);

impl Refusals {
    /// Counts one, and logs it if none was logged for a while.
    pub(crate) fn note(&self, from: &str, why: &str) {
        if let Some(connections) = self.0.note(LOG_EVERY_MS) {
            tracing::warn!(
                name: "proxy_connection_closed", %from, connections, why, "a connection was closed"
            );
        }
    }
}
