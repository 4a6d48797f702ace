//! An owned descriptor in tokio's event loop. The only unsafe line of this crate stands here.

use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

/// Registers `fd`, which has to be non-blocking if it is read or written.
#[allow(unsafe_code)]
pub(crate) fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open description from here to its drop, and the `AsyncFd` owns it. This crate
    // does not call `get_mut`, by which it could be exchanged.
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    registered.map_err(io::Error::from)
}
