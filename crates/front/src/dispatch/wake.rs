//! A ring's eventfd in the front's event loop. (The only unsafe code of the data path, with `heap`.)

use std::io;
use std::os::fd::OwnedFd;

use highball_ring::FrontRing;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

/// Keeps the eventfd of `ring` in epoll for as long as the result lives. A write to it ends the event loop's
/// sleep, and nothing else has to happen: it is not even read, as each write is an edge.
///
/// # Errors
/// No descriptor is left, or epoll does not take it.
#[allow(unsafe_code)]
pub(crate) fn watch(ring: &FrontRing) -> io::Result<AsyncFd<OwnedFd>> {
    let wake = ring.wake_fd().try_clone_to_owned()?;
    // SAFETY: an `OwnedFd` names the same open description until it is dropped, and the `AsyncFd` owns it;
    // no code calls `get_mut`, by which it could be exchanged.
    let watched = unsafe { AsyncFd::register_with_interest(wake, Interest::READABLE) };
    watched.map_err(io::Error::from)
}
