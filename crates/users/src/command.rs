//! Running a program as another user.
#![allow(unsafe_code)]

use crate::User;
use rustix::io::{fcntl_setfd, FdFlags};
use rustix::process::{setsid, Gid, Uid};
use rustix::thread::{set_no_new_privs, set_thread_gid, set_thread_groups, set_thread_uid};
use std::ffi::OsStr;
use std::fs::read_dir;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

impl User {
    /// The variables that a login sets.
    pub fn variables(&self) -> [(&'static str, &OsStr); 4] {
        let (name, home) = (OsStr::new(&self.name), self.home.as_os_str());
        [("HOME", home), ("LOGNAME", name), ("SHELL", self.shell.as_os_str()), ("USER", name)]
    }

    /// Makes the command run as this user, with this user's rights alone. Its environment is left as it is.
    ///
    /// It gets a session of its own, as `login` has it: whoever shares a terminal could type into it, as root.
    /// It still reads and writes what it inherits.
    ///
    /// Of this process's descriptors it inherits standard input, output and error, and `also`: what whoever started
    /// this process has left open may be root's.
    ///
    /// This process has to be one that [may change users](crate::may_change_users); else starting the command fails.
    ///
    /// # Errors
    /// The descriptors of this process cannot be listed.
    pub fn becomes(&self, command: &mut Command, also: &[RawFd]) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        let open = descriptors()?.into_iter().filter(|fd| *fd > 2 && !also.contains(fd));
        let others: Vec<RawFd> = open.collect();
        // In this order: each needs rights that the last one takes away, for good (setuid(2) as root). Between fork and
        // exec there is one thread, so that what is the thread's is the process's.
        let become_user = move || {
            others.iter().copied().for_each(close_on_exec);
            setsid()?;
            set_thread_groups(&groups)?;
            set_thread_gid(gid)?;
            set_thread_uid(uid)?;
            Ok(())
        };
        // SAFETY: it runs in a copy of this process that has but one thread, where others may have held locks; it makes
        // system calls, and takes no lock and allocates nothing.
        unsafe { command.pre_exec(become_user) };
        Ok(())
    }
}

/// Makes the command run a program that gets no more rights than it begins with, nor does what that runs (prctl(2),
/// `PR_SET_NO_NEW_PRIVS`).
pub fn without_new_privileges(command: &mut Command) {
    // SAFETY: it makes one system call in the new process, and takes no lock and allocates nothing.
    unsafe { command.pre_exec(|| Ok(set_no_new_privs(true)?)) };
}

/// The numbers of all open descriptors.
fn descriptors() -> io::Result<Vec<RawFd>> {
    let numbers =
        read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.file_name().to_string_lossy().parse().ok()));
    Ok(numbers.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn close_on_exec(number: RawFd) {
    // SAFETY: it is borrowed for one call, which does nothing to a number that is not open any more.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC); // it fails only for such
}
