//! How many files this process may have open: each connection is one.

use highball_config::Settings;
use highball_proc::allow_open_files;
use tracing::{info, warn};

/// Files that are none of connections: rings, logs, libraries, files in memory.
const OTHERS: u64 = 1000;

/// Makes room for as many connections as are allowed, and for a file of each. What this user may have is often more than
/// what a shell or a service starts with (1024). Not all of it is taken: the application inherits the limit, and some programs
/// look at every number up to it.
pub(crate) fn make_room(settings: &Settings) {
    let connections = settings.limits.connections as u64;
    let allowed = match allow_open_files(2 * connections + OTHERS) {
        Ok(allowed) => allowed,
        Err(error) => {
            return warn!(
                name: "open_files_not_raised", %error, "cannot raise the limit on open files"
            )
        }
    };
    // A developer does not need as many. In containers, the usual max_connections is often more than what is allowed.
    let are_needed = settings.apps.iter().any(|app| !app.is_development());
    if are_needed && allowed < connections + OTHERS {
        info!(
            name: "open_files_low",
            remedy = "Raise the limit (`ulimit -Hn`, or LimitNOFILE= in a systemd unit), or set max_connections to less.",
            "max_connections is {connections}, but this process may open only {allowed} files: idle connections are \
             closed for new ones before there are as many",
        );
    }
}
