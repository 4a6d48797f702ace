//! A descriptor that the process which started this one has left open, and whose number stands in the environment.

use rustix::io::{fcntl_setfd, FdFlags};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Takes the descriptor whose number stands in this variable, and the variable out of the environment: nobody who is
/// started from here on inherits either. To be called before there are threads, and before anything is opened.
///
/// # Errors
/// The variable holds something else.
pub(crate) fn take(variable: &str) -> io::Result<Option<OwnedFd>> {
    let Some(text) = std::env::var_os(variable) else { return Ok(None) };
    std::env::remove_var(variable);
    let number: Option<RawFd> = text.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 2);
    let number =
        number.ok_or_else(|| io::Error::other(format!("{variable} holds no descriptor's number")))?;
    let fd = owned(number);
    if let Err(error) = fcntl_setfd(&fd, FdFlags::CLOEXEC) {
        std::mem::forget(fd); // it is not open: nothing may close this number
        return Err(io::Error::other(format!("{variable} names descriptor {number}: {error}")));
    }
    Ok(Some(fd))
}

#[allow(unsafe_code)]
fn owned(number: RawFd) -> OwnedFd {
    // SAFETY: the number was inherited, so nothing in this process has opened it; it is taken once, since the
    // variable that names it is gone, and it is given up again by `take` where it is not open.
    unsafe { OwnedFd::from_raw_fd(number) }
}
