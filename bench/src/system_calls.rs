//! System calls, counted by the kernel's tracepoints (`perf stat`): they cost a server a few percent, where a tracer
//! that stops it at each call would change how it sleeps and wakes.

use crate::load::Outcome;
use crate::waiting::ended_within;
use crate::{interrupt, Failure};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Every system call, as it is entered.
const EVENT: &str = "raw_syscalls:sys_enter";

/// perf has to begin, and to end, within this time.
const AT_MOST: Duration = Duration::from_secs(20);

/// The system calls of these processes, and of processes that they start meanwhile, during this load.
///
/// `None` when they cannot be counted: there is no perf (`apt-get install linux-perf`), or the kernel does not let
/// this user do so. Then the load is not run.
///
/// # Errors
/// The load fails, or perf does after it has begun.
pub fn count(
    pids: &[i32],
    during: impl FnOnce() -> Result<Outcome, Failure>,
) -> Result<Option<u64>, Failure> {
    let failure = |what: &dyn std::fmt::Display| Failure(format!("system calls cannot be counted: {what}"));
    let file = tempfile::NamedTempFile::new().map_err(|error| failure(&error))?;
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let mut command = Command::new("perf");
    command.args(["stat", "--field-separator", ",", "--event", EVENT, "--pid", &pids.join(",")]);
    command.arg("--output").arg(file.path());
    // perf counts as long as this command runs: it says that it has begun, and ends when its input does.
    command.args(["--", "sh", "-c", "echo; exec cat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(child) = command.spawn() else { return Ok(None) };
    let mut perf = Perf(child);
    if !perf.has_begun() {
        return Ok(None);
    }
    during()?;
    drop(perf.0.stdin.take());
    if !ended_within(&perf.0, AT_MOST, &interrupt::came).map_err(|error| failure(&error))? {
        return Err(failure(&"perf does not end"));
    }
    let report = std::fs::read_to_string(file.path()).map_err(|error| failure(&error))?;
    Ok(counted(&report))
}

/// It is ended and waited for when this is dropped.
struct Perf(Child);

impl Perf {
    /// Waits for the sign that it counts. It ends without one where it may not.
    fn has_begun(&mut self) -> bool {
        let Some(output) = &mut self.0.stdout else { return false };
        let at_most = Timespec { tv_sec: AT_MOST.as_secs() as i64, tv_nsec: 0 };
        let is_ready = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&at_most)).is_ok_and(|n| n > 0);
        is_ready && output.read(&mut [0; 1]).is_ok_and(|bytes| bytes == 1)
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        drop(self.0.stdin.take()); // ends the command that it runs
        let _ = self.0.kill(); // fails where it has ended
        let _ = self.0.wait();
    }
}

/// The count in perf's report; `None`: the kernel did not count.
fn counted(report: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains(EVENT))?;
    line.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        assert_eq!(counted("# started on\n\n4711,,raw_syscalls:sys_enter,12,100.00,,\n"), Some(4711));
        assert_eq!(counted("<not supported>,,raw_syscalls:sys_enter,0,100.00,,\n"), None);
        assert_eq!(counted(""), None);
    }
}
