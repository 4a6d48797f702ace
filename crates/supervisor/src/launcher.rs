//! Who starts, signals and reaps processes: this process itself, or, where Highball was started as root, the spawner, which
//! has stayed root. Everything that the rest of the supervisor has to know of the difference is here.

use crate::child::Child;
use crate::mold_process;
use crate::reaper::{self, Ending, Reaped};
use crate::spawner_client::Client;
use crate::successor::Heritage;
use crate::watched_fd::watched;
use highball_config::App;
use highball_spawner::message::How;
use highball_spawner::{Ended, Role};
use highball_tenant::TenantFolder;
use rustix::io::{fcntl_setfd, FdFlags};
use rustix::process::{getpid, pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};
use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

/// The spawner tells of the end of a process; one that is not below it ends without that, and this is waited for.
const NEWS_TIME: Duration = Duration::from_millis(300);

/// Who does it.
#[derive(Debug, Clone)]
pub enum Launcher {
    /// This process.
    Direct,
    /// The spawner.
    Spawner(Arc<Client>),
}

/// A Ruby process that was started.
pub(crate) struct Launched {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    /// Where it says why it could not begin, if it does not say that at once.
    pub(crate) trouble: Option<OwnedFd>,
}

impl Launcher {
    /// The process id that people know Highball by.
    pub fn pid(&self) -> Pid {
        match self {
            Launcher::Direct => getpid(),
            Launcher::Spawner(spawner) => spawner.pid(),
        }
    }

    /// Starts the mold of an application in its folder. `control` is its end of the control socket.
    pub(crate) fn start_mold(
        &self,
        app: &App,
        child: &Child,
        folder: &TenantFolder,
        control: OwnedFd,
        pipe: Option<OwnedFd>,
    ) -> io::Result<Launched> {
        match self {
            Launcher::Direct => {
                // Not by its path: this process, which may be root, enters it before it becomes the user.
                let started = child.start(&folder.working_folder(), control, pipe)?;
                let pid = Pid::from_child(&started);
                Ok(Launched { pid, pidfd: pidfd_open(pid, PidfdFlags::empty())?, trouble: None })
            }
            Launcher::Spawner(spawner) => {
                let (ours, theirs) = highball_spawner::channel::pair()?;
                mold_process::order(&ours, child, folder.as_fd(), &control, pipe.as_ref())?;
                let uid = child.user.as_ref().map_or(0, |user| user.uid);
                let (pid, pidfd) = spawner.start(&app.path(), uid, Role::Mold, theirs.as_fd())?;
                Ok(Launched { pid, pidfd, trouble: Some(ours) })
            }
        }
    }

    /// Starts the process that takes over in a hot restart, and gives it `socket`.
    pub(crate) fn start_successor(&self, heritage: &Heritage, socket: OwnedFd) -> io::Result<(Pid, OwnedFd)> {
        match self {
            Launcher::Direct => {
                // The only descriptor that the child inherits. Nothing else is spawned while it is open here.
                fcntl_setfd(&socket, FdFlags::empty())?;
                let mut command = Command::new(&heritage.program);
                if let [name, arguments @ ..] = &heritage.arguments[..] {
                    command.arg0(name).args(arguments);
                }
                let child = command.env(crate::handover::VARIABLE, socket.as_raw_fd().to_string()).spawn()?;
                let pid = Pid::from_child(&child);
                Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
            }
            Launcher::Spawner(spawner) => spawner.start_successor(socket.as_fd()),
        }
    }

    /// Sends a signal to a process; one that has ended meanwhile is no error.
    pub(crate) fn signal(&self, pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
        let sent = match self {
            Launcher::Direct => pidfd_send_signal(pidfd, signal).map_err(io::Error::from),
            Launcher::Spawner(spawner) => spawner.signal(pidfd, signal),
        };
        let has_ended = |error: &io::Error| io::Error::from(rustix::io::Errno::SRCH).kind() == error.kind();
        match sent {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(()),
            Err(error) if matches!(self, Launcher::Spawner(_)) && has_ended(&error) => Ok(()),
            other => other,
        }
    }

    /// Whether there are children, also such as have ended and are not reaped yet.
    pub(crate) fn has_children(&self) -> bool {
        match self {
            Launcher::Direct => reaper::has_children(),
            Launcher::Spawner(spawner) => spawner.has_children(),
        }
    }

    /// Waits until it is known how a process has ended whose pidfd says that it has.
    pub(crate) async fn settle(&self) {
        if matches!(self, Launcher::Spawner(_)) {
            tokio::time::sleep(NEWS_TIME).await;
        }
    }

    /// Where the ends of processes are heard of.
    pub(crate) fn endings(&self) -> io::Result<Endings> {
        Ok(match self {
            Launcher::Direct => Endings::Direct,
            Launcher::Spawner(spawner) => {
                let socket = watched(spawner.news().try_clone_to_owned()?, Interest::READABLE)?;
                Endings::Spawner { client: Arc::clone(spawner), socket, heard: VecDeque::new() }
            }
        })
    }
}

/// Where the ends of processes are heard of.
#[derive(Debug)]
pub(crate) enum Endings {
    /// They are this process's children, and SIGCHLD tells.
    Direct,
    /// They are the spawner's, which tells.
    Spawner {
        client: Arc<Client>,
        socket: AsyncFd<OwnedFd>,
        /// Those that were heard of, and not reaped yet.
        heard: VecDeque<(Pid, Ending)>,
    },
}

impl Endings {
    /// Waits until there is one that SIGCHLD does not tell of.
    pub(crate) async fn changed(&mut self) {
        let Endings::Spawner { client, socket, heard } = self else { return pending().await };
        loop {
            let Ok(mut ready) = socket.readable().await else { return pending().await };
            match ready.try_io(|_| client.next_ended()) {
                Ok(Ok(ended)) => return heard.push_back(ending(ended)),
                // The spawner has gone, and this process is about to.
                Ok(Err(_)) => return pending().await,
                Err(_would_block) => {}
            }
        }
    }

    /// A slice of those that have ended.
    pub(crate) fn reap(&mut self) -> Reaped {
        match self {
            Endings::Direct => reaper::reap(),
            Endings::Spawner { client, heard, .. } => {
                Reaped::slice(|| heard.pop_front().or_else(|| client.next_ended().ok().map(ending)))
            }
        }
    }
}

fn ending(ended: Ended) -> (Pid, Ending) {
    let how = match ended.how {
        How::Exited(code) => Ending::Exited(code),
        How::Killed(signal) => Ending::Killed(signal),
    };
    (ended.pid, how)
}
