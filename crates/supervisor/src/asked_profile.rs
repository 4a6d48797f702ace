//! A worker that was asked for a profile, for `highball profile`.

use crate::control::questions::{Answer, NotAsked};
use highball_config::ProfileMode;
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// The size of a file that a worker writes its profile into. (Its own limits are lower.)
pub const PROFILE_BYTES: u64 = 8 << 20;

/// What a worker is asked for.
#[derive(Debug, Clone, Copy)]
pub struct ProfileOrder {
    /// What is sampled.
    pub mode: ProfileMode,
    /// For how long.
    pub milliseconds: u64,
    /// Whether samples are grouped by the paths of requests.
    pub by_path: bool,
}

/// A worker that was asked for a profile.
#[derive(Debug)]
pub struct AskedProfile {
    /// The worker's number.
    pub worker: u32,
    /// In memory. The worker has it, too, and may change it at any time.
    pub(crate) file: OwnedFd,
    /// Where its answer will arrive.
    pub(crate) answer: Result<Answer<Option<String>>, NotAsked>,
}

impl AskedProfile {
    /// Waits until the worker is done, until `time` has passed since `asked`. Returns its file, of [`PROFILE_BYTES`] bytes, or
    /// why there is none.
    pub async fn result(self, asked: Instant, time: Duration) -> Result<File, String> {
        let answer = match self.answer {
            Ok(answer) => timeout_at((asked + time).into(), answer).await,
            Err(NotAsked::NotServing) => return Err("does not serve".into()),
            Err(NotAsked::Busy | NotAsked::Unreachable) => return Err("could not be asked".into()),
        };
        let answer = answer.map_err(|_| "did not answer in time")?;
        match answer.map_err(|_| "ended before it answered")? {
            Some(problem) => Err(problem),
            None => Ok(self.file.into()),
        }
    }
}

/// A file in memory. It has its size for ever: reading it never waits, and never takes more memory than this.
pub(crate) fn profile_file() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(c"highball-profile", flags)?;
    ftruncate(&file, PROFILE_BYTES)?;
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}
