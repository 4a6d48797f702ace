//! The one place that waits for child processes.

use crate::facts::ending::Ending;
use rustix::io::Errno;
use rustix::process::{
    getpid, set_child_subreaper, wait, waitid, Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus,
};
use std::io;
use tracing::warn;

/// Makes this process the parent of the workers, whose intermediate processes end at once.
///
/// qemu's emulation of processors, which containers for other architectures run under, does not know the system call.
/// Then only a worker's pidfd reports its end, without the exit code or signal.
///
/// # Errors
/// The system refuses it for another reason.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    match set_child_subreaper(Some(getpid())) {
        Err(Errno::INVAL | Errno::NOSYS) => warn!(
            name: "subreaper_missing",
            "the kernel has no subreapers (is this machine emulated?): the log cannot say how workers end"
        ),
        adopted => adopted?,
    }
    Ok(())
}

/// Whether there are children, also such as have ended and are not reaped yet.
pub(crate) fn has_children() -> bool {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT).is_ok()
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
        Ok(Some((pid, status))) => Some((pid, ending_of(status))),
        Ok(None) | Err(_) => None, // nothing has ended, or there are no children at all
    })
}

impl Reaped {
    /// Takes as many endings as fit into a slice.
    pub(crate) fn slice(next: impl FnMut() -> Option<(Pid, Ending)>) -> Reaped {
        let ended: Vec<_> = std::iter::from_fn(next).take(SLICE).collect();
        Reaped { may_have_left_some: ended.len() == SLICE, ended }
    }
}

fn ending_of(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Killed(signal),
        (None, None) => Ending::Unknown,
    }
}
