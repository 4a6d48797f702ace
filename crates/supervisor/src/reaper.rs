//! The one place that waits for child processes, and the words for how they ended.

use rustix::process::{wait, waitid, Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use std::fmt;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal with this number killed it.
    Killed(i32),
    /// It is gone, but it was not our child to ask.
    Unknown,
}

impl Ending {
    fn of(status: WaitStatus) -> Ending {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Killed(signal),
            (None, None) => Ending::Unknown,
        }
    }

    /// The exit code by which a shell tells of it.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Ending::Exited(code) => code as u8,
            Ending::Killed(signal) => 128 + signal as u8,
            Ending::Unknown => 1,
        }
    }
}

/// Whether there are children, also such as have ended and are not reaped yet.
pub(crate) fn has_children() -> bool {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT).is_ok()
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(code) => write!(f, "exited with code {code}"),
            Ending::Killed(9) => f.write_str(
                "killed by SIGKILL: if nobody sent it, by the kernel for lack of memory (see dmesg)",
            ),
            Ending::Killed(6) => f.write_str("killed by SIGABRT: the interpreter or an extension aborted"),
            Ending::Killed(11) => {
                f.write_str("killed by SIGSEGV: a crash in the interpreter or an extension")
            }
            Ending::Killed(7) => f.write_str("killed by SIGBUS: a crash in the interpreter or an extension"),
            Ending::Killed(15) => f.write_str("killed by SIGTERM"),
            Ending::Killed(signal) => write!(f, "killed by signal {signal}"),
            Ending::Unknown => f.write_str("ended"),
        }
    }
}

/// Children reaped at a time, so that a storm of short-lived orphans cannot hold up the event loop.
const SLICE: usize = 128;

/// Children that have ended, ours and the orphans that came to us as their subreaper.
#[derive(Debug)]
pub(crate) struct Reaped {
    pub(crate) ended: Vec<(Pid, Ending)>,
    /// There may be more. No signal comes for them: the kernel sends one SIGCHLD for many that end together.
    pub(crate) may_have_left_some: bool,
}

/// Reaps a slice of the children that have ended.
pub(crate) fn reap() -> Reaped {
    Reaped::slice(|| match wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => Some((pid, Ending::of(status))),
        Ok(None) | Err(_) => None, // nothing has ended, or there are no children at all
    })
}

impl Reaped {
    /// As many as fit into a slice of those that there are.
    pub(crate) fn slice(next: impl FnMut() -> Option<(Pid, Ending)>) -> Reaped {
        let ended: Vec<_> = std::iter::from_fn(next).take(SLICE).collect();
        Reaped { may_have_left_some: ended.len() == SLICE, ended }
    }
}
