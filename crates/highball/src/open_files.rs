//! How many files this process may have open: each connection is one.

use highball_config::Settings;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use tracing::{info, warn};

/// Files that are none of connections: rings, logs, libraries, files in memory.
const OTHERS: u64 = 1000;

/// Makes room for as many connections as are allowed, and for a file of each. What this user may have is often more than
/// what a shell or a service starts with (1024). Not all of it is taken: the application inherits the limit, and some programs
/// look at every number up to it.
pub(crate) fn make_room(settings: &Settings) {
    let connections = settings.limits.connections as u64;
    let limit = getrlimit(Resource::Nofile);
    let wanted = most(&limit, 2 * connections + OTHERS);
    if limit.current.is_some_and(|current| current < wanted) {
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }) {
            warn!(%error, "the limit on open files could not be raised");
        }
    }
    // A developer does not need as many. In containers, the usual max_connections is often more than what is allowed.
    let are_needed = settings.apps.iter().any(|app| !app.is_development());
    let has_too_few = |limit: Rlimit| limit.current.is_some_and(|current| current < connections + OTHERS);
    if are_needed && has_too_few(getrlimit(Resource::Nofile)) {
        info!(
            remedy = "Raise the limit (`ulimit -Hn`, or LimitNOFILE= in a systemd unit), or set max_connections to less.",
            "max_connections is {connections}, but this process may open only {wanted} files: idle connections are \
             closed for new ones before there are as many",
        );
    }
}

/// What of this number is allowed.
fn most(limit: &Rlimit, wanted: u64) -> u64 {
    limit.maximum.map_or(wanted, |maximum| maximum.min(wanted))
}
