//! The commands that ask a running server: `status` (also `slow_requests`), `stop`, `restart` (and `rollout`, `refork`), `upgrade`, `maintenance`. `highball memory` and `highball top`
//! fail with the same errors.

mod maintenance;
mod restart;
mod slow_requests;
mod status;
mod stop;
mod upgrade;

pub(crate) use maintenance::maintenance;
pub(crate) use restart::{refork, restart, rollout};
pub(crate) use slow_requests::slow_requests;
pub(crate) use status::status;
pub(crate) use stop::stop;
pub(crate) use upgrade::upgrade;

use crate::control::asking;
use crate::control::finding::Instance;
use crate::control::messages::{Answer, Question};
use crate::control::selection::SelectionError;
use crate::output::progress;
use crate::process::owner::user_name;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// How often a restart is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a command could not do its work.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error("cannot look for instances in {path}: {source}", path = .0.display(), source = .1)]
    Folder(PathBuf, io::Error),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Output(#[from] io::Error),
    #[error("the instance with pid {0} does not answer: {1}")]
    Silent(i32, io::Error),
    #[error("the instance with pid {0} refuses: {1}")]
    Refused(i32, String),
    #[error("the instance with pid {0} does no rollout: {1}")]
    NoRollout(i32, String),
    #[error("the rollout of generation {0} was undone; all visitors get the old version")]
    RolloutUndone(u32),
    #[error("the instance with pid {0} does not refork: {1}")]
    NoRefork(i32, String),
    #[error("the refork failed, and the workers are unchanged: {0}")]
    ReforkFailed(String),
    #[error("another refork has begun since, and the result of this one is not kept; see the log")]
    ReforkForgotten,
    #[error("the restart to generation {0} failed; the previous version is still serving.\n{1}")]
    RestartFailed(u32, String),
    #[error("the hot restart failed; the process with pid {0} is still serving.\n{1}")]
    UpgradeFailed(i32, String),
    #[error("the result of the restart to generation {0} is not kept any more; see the log")]
    Forgotten(u32),
    #[error("cannot {what} {path}, by which maintenance is switched: {source}", what = .0, path = .1.display(), source = .2)]
    Maintenance(&'static str, PathBuf, io::Error),
    #[error("{0} was switched, but the server does not follow; its log says more")]
    NotFollowed(String),
    #[error("not serving: {0}")]
    NotServing(String),
    #[error("this failed for {0} of {1} applications; see above")]
    NotForAll(usize, usize),
    #[error("the instance with pid {0} has ended before it was done")]
    Ended(i32),
    #[error("the instance with pid {0} did not end within {1} s")]
    StillRuns(i32, u64),
}

/// Asks the instance that a command is for.
fn ask(instance: &Instance, question: Question) -> Result<Answer, CommandError> {
    asking::ask(&instance.address, question).map_err(|error| CommandError::Silent(instance.status.pid, error))
}

/// The instance has answered another question than it was asked.
fn unexpected(instance: &Instance) -> CommandError {
    CommandError::Silent(instance.status.pid, io::ErrorKind::InvalidData.into())
}

/// Holds a process, so that its end is noticed.
fn process(pid: i32) -> Result<OwnedFd, CommandError> {
    Pid::from_raw(pid)
        .ok_or(io::ErrorKind::NotFound.into())
        .and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?))
        .map_err(|error| CommandError::Silent(pid, error))
}

/// Whether the process ends within this time.
fn ends_within(process: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    Ok(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit))? > 0)
}

/// Says whose server is asked, where root asks another user's.
fn announce(instance: &Instance) {
    if let Some(uid) = instance.other_user {
        progress(format_args!("the server of {} (pid {}):", user_name(uid), instance.status.pid));
    }
}
