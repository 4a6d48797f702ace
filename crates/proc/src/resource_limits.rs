//! How many files this process may have open, and whether the kernel writes a core file of it (getrlimit(2)).

use std::io;

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// Raises the limit to this number of files, or as far as the hard limit allows; lowers nothing. Returns what it is then;
/// `u64::MAX`: there is none. Processes that are started from now on inherit it.
///
/// # Errors
/// Errors of setrlimit(2).
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

/// The number of files that this process may have open; `u64::MAX`: there is no limit.
pub fn open_files_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// From now on the kernel writes no core file of this process, or of processes that it starts, unless they ask for it: in a core
/// file is all that a process has in its memory (core(5)).
///
/// # Errors
/// Errors of setrlimit(2).
pub fn write_no_core_files() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) })?)
}
