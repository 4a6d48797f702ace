//! Whether a process is who it claims to be.
//!
//! Workers send pidfds of themselves. An application that runs as another user could send the pidfd of any process, and
//! Highball, as root, would signal it.

use highball_config::User;
use std::fs::read_to_string;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Checks whether this pidfd refers to the process `pid`, and whether that process is this user's.
///
/// # Errors
/// It is another process, or has ended.
pub(crate) fn check(pidfd: BorrowedFd<'_>, pid: i32, user: &User) -> io::Result<()> {
    let is_of_pid = || pid_of(pidfd).is_ok_and(|of| of == pid);
    let users = uids(pid)?;
    // The last check proves that the process was there all the time, and that no other was looked at.
    if users.iter().all(|uid| *uid == user.uid) && is_of_pid() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the application, which runs as {user}, has sent a pidfd of another process than its process {pid}"
        ),
    ))
}

/// See proc(5), `/proc/pid/fdinfo`.
#[allow(clippy::disallowed_methods)] // what the kernel says
fn pid_of(pidfd: BorrowedFd<'_>) -> io::Result<i32> {
    let text = read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    field(&text, "Pid:").and_then(|pid| pid.parse().ok()).ok_or_else(|| io::Error::other("it is not a pidfd"))
}

/// The real, effective, saved and file system user of a process.
#[allow(clippy::disallowed_methods)] // what the kernel says
fn uids(pid: i32) -> io::Result<Vec<u32>> {
    let text = read_to_string(format!("/proc/{pid}/status"))?;
    let uids = field(&text, "Uid:").unwrap_or_default().split_whitespace().map(str::parse);
    let uids: Vec<u32> = uids.collect::<Result<_, _>>().map_err(io::Error::other)?;
    if uids.is_empty() {
        Err(io::Error::other("the kernel does not say whose process it is"))
    } else {
        Ok(uids)
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, getppid, getuid, pidfd_open, PidfdFlags};
    use std::os::fd::AsFd;

    #[test]
    fn only_the_process_that_is_named_passes_and_only_as_its_user() {
        let user = User::with_uid(getuid().as_raw(), 0);
        let another = User::with_uid(user.uid + 1, 0);
        let own = getpid();
        let pidfd = pidfd_open(own, PidfdFlags::empty()).unwrap();
        let pid = own.as_raw_pid();
        assert!(check(pidfd.as_fd(), pid, &user).is_ok());
        assert!(check(pidfd.as_fd(), pid, &another).unwrap_err().to_string().contains("another process"));
        let parent = getppid().unwrap();
        assert!(check(pidfd.as_fd(), parent.as_raw_pid(), &user).is_err());
        let of_parent = pidfd_open(parent, PidfdFlags::empty()).unwrap();
        assert!(check(of_parent.as_fd(), pid, &user).is_err());
        let no_pidfd = std::fs::File::open("/dev/null").unwrap();
        assert!(check(no_pidfd.as_fd(), pid, &user).is_err());
    }
}
