//! How many files this process may have open (getrlimit(2), RLIMIT_NOFILE).

use std::io;

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// Raises the limit to this number of files, or as far as the hard limit allows; lowers nothing. Returns what it is then;
/// `u64::MAX`: there is none. Processes that are started from now on inherit it.
///
/// # Errors
/// Those of setrlimit(2).
pub fn allow_open_files(wanted: u64) -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(wanted, |most| most.min(wanted));
    match limit.current {
        Some(current) if current < wanted => {
            setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit })?;
            Ok(wanted)
        }
        current => Ok(current.unwrap_or(u64::MAX)),
    }
}
