//! Which TCP ports a process listens on, as the kernel reports it. Root asks servers of other users by their port, and what such
//! a server answers about itself may be wrong on purpose.

use crate::process::owner::parent_and_uid_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The ports that this process listens on, if it is a process of this user.
///
/// # Errors
/// The files that the process has open cannot be read.
pub(crate) fn ports_of(pid: i32, uid: u32) -> io::Result<BTreeSet<u16>> {
    if parent_and_uid_of(pid).is_none_or(|(_, found)| found != uid) {
        return Ok(BTreeSet::new()); // it has ended, or another process has this pid by now
    }
    let mut by_inode = BTreeMap::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // Without IPv6 there is no second one.
        let text = fs::read_to_string(table).unwrap_or_default();
        by_inode.extend(text.lines().filter_map(listening));
    }
    let mut ports = BTreeSet::new();
    for descriptor in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let target = fs::read_link(descriptor.path()).unwrap_or_default();
        let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
        ports.extend(inode.and_then(|inode| by_inode.get(inode)));
    }
    Ok(ports)
}

/// Inode and port, where this line of `/proc/net/tcp` is about a listening socket.
fn listening(line: &str) -> Option<(String, u16)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, LISTENING, _, _, _, _, _, inode, ..] = fields[..] else { return None };
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    Some((inode.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{geteuid, getpid};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn only_ports_that_are_listened_on_and_only_of_this_user() {
        let (pid, uid) = (getpid().as_raw_nonzero().get(), geteuid().as_raw());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let ports = ports_of(pid, uid).unwrap();
        assert!(ports.contains(&address.port()));
        assert!(!ports.contains(&client.local_addr().unwrap().port()));
        assert!(ports_of(pid, uid + 1).unwrap().is_empty());
    }
}
