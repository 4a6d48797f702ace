//! Which processes descend from this one: its children, their children, and the orphans that it has become the parent
//! of. The server may have signals sent to these and no others.

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getpid, getuid, Pid};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The most generations that are looked at.
const GENERATIONS: usize = 64;

/// Whether the process of this pidfd is below this one, and has not ended.
///
/// A process that is once below stays there, as this one is a subreaper. Parents are read twice: a number that was given
/// to another process in between would show.
pub fn is_below(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    let pid = pid_of(pidfd)?;
    let ancestors = ancestors(pid)?;
    let is_below = ancestors.last() == Some(&getpid().as_raw_pid());
    Ok(is_below && self::ancestors(pid)? == ancestors && !has_ended(pidfd)?)
}

/// The children of this process.
///
/// # Errors
/// There is no `/proc`.
pub fn children() -> io::Result<Vec<Pid>> {
    let own = getpid().as_raw_pid();
    let numbers = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let children = numbers.filter(|pid| parent(*pid).is_ok_and(|parent| parent == own));
    Ok(children.filter_map(Pid::from_raw).collect())
}

/// Whether a child runs as another user than this process. (By its status: the owner of its files in `/proc` may be
/// hidden.)
pub fn is_of_another_user(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).unwrap_or_default();
    let real = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    real.is_some_and(|uid| uid.parse() != Ok(getuid().as_raw()))
}

/// Parents from the nearest on, up to this process or the first one.
fn ancestors(pid: i32) -> io::Result<Vec<i32>> {
    let own = getpid().as_raw_pid();
    let mut found = Vec::new();
    let mut next = pid;
    while found.len() < GENERATIONS && next > 1 && found.last() != Some(&own) {
        next = parent(next)?;
        found.push(next);
    }
    Ok(found)
}

/// See proc(5), `/proc/pid/stat`: the name may contain anything, and ends with the last parenthesis.
fn parent(pid: i32) -> io::Result<i32> {
    let text = fs::read(format!("/proc/{pid}/stat"))?;
    let after_name = text.iter().rposition(|byte| *byte == b')').unwrap_or_default();
    let text = String::from_utf8_lossy(&text[after_name..]).into_owned();
    let parent = text.split_whitespace().nth(2).and_then(|parent| parent.parse().ok());
    parent.ok_or_else(|| io::Error::other("the kernel does not say the parent"))
}

/// See proc(5), `/proc/pid/fdinfo`.
fn pid_of(pidfd: BorrowedFd<'_>) -> io::Result<i32> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:")).and_then(|pid| pid.trim().parse().ok());
    pid.filter(|pid| *pid > 0).ok_or_else(|| io::Error::other("it is not the pidfd of a running process"))
}

fn has_ended(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut watched = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    Ok(poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getppid, pidfd_open, PidfdFlags};
    use std::os::fd::AsFd;
    use std::process::{Child, Command, Stdio};

    fn pidfd(pid: Pid) -> std::os::fd::OwnedFd {
        pidfd_open(pid, PidfdFlags::empty()).unwrap()
    }

    fn start(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_child_and_a_grandchild_are_below() {
        let mut child = start("cat; true"); // a shell with a child
        let pid = Pid::from_child(&child);
        assert!(is_below(pidfd(pid).as_fd()).unwrap());
        assert!(children().unwrap().contains(&pid));
        let is_grandchild = |other: &i32| parent(*other).is_ok_and(|parent| parent == pid.as_raw_pid());
        let all =
            || fs::read_dir("/proc").unwrap().filter_map(|e| e.unwrap().file_name().to_str()?.parse().ok());
        let grandchild = loop {
            if let Some(found) = all().find(is_grandchild) {
                break found;
            }
        };
        assert!(is_below(pidfd(Pid::from_raw(grandchild).unwrap()).as_fd()).unwrap());
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn others_are_not() {
        assert!(!is_below(pidfd(getpid()).as_fd()).unwrap());
        assert!(!is_below(pidfd(getppid().unwrap()).as_fd()).unwrap());
        assert!(!is_below(pidfd(Pid::INIT).as_fd()).unwrap());
        assert!(is_below(fs::File::open("/dev/null").unwrap().as_fd()).is_err());
    }

    #[test]
    fn one_that_has_ended_is_not() {
        let mut child = start("exit 0");
        let held = pidfd(Pid::from_child(&child));
        while !has_ended(held.as_fd()).unwrap() {}
        assert!(!is_below(held.as_fd()).unwrap());
        child.wait().unwrap();
        assert!(is_below(held.as_fd()).is_err());
    }
}
