//! Looking without changing what is seen. The pages of a program are shared by all who run it: were this process
//! to run the file that a server runs, that server's PSS would be smaller while it is looked at.

use rustix::fs::{memfd_create, MemfdFlags};
use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Goes on from the beginning in a copy of this program that no other process runs. Returns in that copy, and where the
/// system does not run copies: then the figures are a little less exact.
pub(crate) fn run_from_own_copy() {
    let program = fs::read_link("/proc/self/exe").unwrap_or_default();
    if !program.to_string_lossy().starts_with("/memfd:") {
        let _ = execute_copy();
    }
}

fn execute_copy() -> io::Result<Infallible> {
    let mut written = File::from(memfd_create("highball-memory", MemfdFlags::CLOEXEC)?);
    io::copy(&mut File::open("/proc/self/exe")?, &mut written)?;
    // A file that is open for writing cannot be run.
    let copy = File::open(format!("/proc/self/fd/{}", written.as_raw_fd()))?;
    drop(written);
    let mut arguments = std::env::args_os();
    let mut command = Command::new(format!("/proc/self/fd/{}", copy.as_raw_fd()));
    command.arg0(arguments.next().unwrap_or_default()).args(arguments);
    Err(command.exec())
}
