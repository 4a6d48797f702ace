//! Becoming another user, and running programs that get no more rights.
#![allow(unsafe_code)]

use crate::User;
use rustix::process::{set_dumpable_behavior, DumpableBehavior, Gid, Uid};
use rustix::thread::{set_no_new_privs, set_thread_gid, set_thread_groups, set_thread_uid};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

impl User {
    /// The variables that a login sets.
    pub fn variables(&self) -> [(&'static str, &OsStr); 4] {
        let (name, home) = (OsStr::new(&self.name), self.home.as_os_str());
        [("HOME", home), ("LOGNAME", name), ("SHELL", self.shell.as_os_str()), ("USER", name)]
    }
}

/// This process becomes the user with these numbers, for good. It has to be a process that [may change
/// users](crate::may_change_users), and to have one thread.
///
/// Until it runs another program, other processes of that user cannot look into it, and take what it has open.
///
/// # Errors
/// The system refuses it.
pub fn become_user(uid: u32, gid: u32, groups: &[u32]) -> io::Result<()> {
    let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
    // In this order: each needs rights that the last one takes away, for good (setuid(2) as root).
    set_thread_groups(&groups)?;
    set_thread_gid(Gid::from_raw(gid))?;
    // The kernel does the same with setuid, unless `fs.suid_dumpable` is 1.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(set_thread_uid(Uid::from_raw(uid))?)
}

/// Makes the command run a program that gets no more rights than it begins with, nor does what that runs (prctl(2),
/// `PR_SET_NO_NEW_PRIVS`).
pub fn without_new_privileges(command: &mut Command) {
    // SAFETY: it makes one system call in the new process, and takes no lock and allocates nothing.
    unsafe { command.pre_exec(|| Ok(set_no_new_privs(true)?)) };
}
