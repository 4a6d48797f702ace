//! Who starts, signals and reaps processes: this process itself, or, where Highball was started as root, the spawner, which
//! has stayed root. Everything that the rest of the supervisor has to know of the difference is here.

use crate::control::handover::VARIABLE;
use crate::control::watched_fd::watched;
use crate::facts::ending::Ending;
use crate::process::child::Child;
use crate::process::companion_process::{self, CompanionOrder};
use crate::process::mold_process;
use crate::process::reaper::{self, Reaped};
use crate::process::spawner_client::Client;
use highball_cgroups::Cgroups;
use highball_config::{kept_working_folder, KernelLimits, User, STARTED_IN};
use highball_spawner::exec::inherits;
use highball_spawner::message::How;
use highball_spawner::{Ended, Role};
use highball_tenant::TenantFolder;
use rustix::io::Errno;
use rustix::process::{getpid, pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::future::{pending, Future};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

/// The longest time from the end of a process, by its pidfd, until SIGCHLD or the spawner reports how it ended. A
/// worker is a child of neither this process nor the spawner as long as its intermediate process is there; a process
/// that neither has started never becomes one.
const NEWS_TIME: Duration = Duration::from_millis(300);

/// The same, where the report has to come from another process, which a busy machine may keep waiting.
const NEWS_TIME_OF_SPAWNER: Duration = Duration::from_secs(2);

/// A process of ours. Numbers are never used twice, so that late news cannot meet the wrong process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The mold of this boot, from 1.
    Mold(u32),
    /// The worker with this number, from 1.
    Worker(u32),
    /// The companion with this number, from 1.
    Companion(u32),
    /// The process that is to take our place, or has.
    Successor(Pid),
    /// The predecessors of the serving process, while this process is their PID proxy.
    Succeeded,
}

/// Starts, signals and reaps processes.
#[derive(Debug, Clone)]
pub enum Launcher {
    /// This process.
    Direct,
    /// The spawner.
    Spawner(Arc<Client>),
}

/// A process that has to be started.
#[derive(Debug)]
pub(crate) struct Launching {
    /// The application, by which the spawner knows it.
    pub(crate) app: PathBuf,
    /// What the kernel lets its processes use, if this process has made cgroups.
    pub(crate) limits: KernelLimits,
    pub(crate) child: Child,
    pub(crate) folder: Box<TenantFolder>,
    /// The pipe for its output, if it is to have one.
    pub(crate) pipe: Option<OwnedFd>,
    pub(crate) becomes: Becomes,
}

/// What such a process becomes.
#[derive(Debug)]
pub(crate) enum Becomes {
    /// A mold, with this end of its control socket.
    Mold { control: OwnedFd },
    /// A process that runs a companion, and watches over it.
    Companion(CompanionOrder),
}

impl Becomes {
    fn role(&self) -> Role {
        match self {
            Becomes::Mold { .. } => Role::Mold,
            Becomes::Companion(_) => Role::Companion,
        }
    }
}

impl Launching {
    fn here(self) -> io::Result<Launched> {
        let entrance = |cgroups: &Cgroups| cgroups.entrance(&self.app, self.limits);
        let cgroup = highball_cgroups::current().map(entrance).transpose()?;
        match self.becomes {
            Becomes::Mold { control } if self.child.user.is_none() => {
                let child = self.child.start(&self.folder.working_folder(), control, self.pipe, cgroup)?;
                let pid = Pid::from_child(&child);
                Ok(Launched { pid, pidfd: pidfd_open(pid, PidfdFlags::empty())?, socket: None })
            }
            _ => self
                .start_with_order(|user, role, theirs| highball_spawner::as_user(user, role, theirs, cgroup)),
        }
    }

    fn by(self, spawner: &Client) -> io::Result<Launched> {
        let app = self.app.clone();
        self.start_with_order(|user, role, theirs| {
            spawner.start(&app, user.map_or(0, |user| user.uid), role, theirs.as_fd())
        })
    }

    /// Starts a process that is this program at first, and gets the order what to become.
    fn start_with_order(
        self,
        start: impl FnOnce(Option<&User>, Role, OwnedFd) -> io::Result<(Pid, OwnedFd)>,
    ) -> io::Result<Launched> {
        let (ours, theirs) = highball_spawner::channel::pair()?;
        let (child, folder, pipe) = (&self.child, self.folder.as_fd(), self.pipe.as_ref());
        match &self.becomes {
            Becomes::Mold { control } => mold_process::order(&ours, child, folder, control, pipe)?,
            Becomes::Companion(order) => companion_process::order(&ours, child, folder, pipe, order)?,
        }
        let (pid, pidfd) = start(child.user.as_ref(), self.becomes.role(), theirs)?;
        Ok(Launched { pid, pidfd, socket: Some(ours) })
    }
}

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    /// The socket over which it got an order, if it did. A mold reports there why it could not begin, a companion all it has to.
    pub(crate) socket: Option<OwnedFd>,
}

impl Launcher {
    /// The process id that people know Highball by.
    pub fn pid(&self) -> Pid {
        match self {
            Launcher::Direct => getpid(),
            Launcher::Spawner(spawner) => spawner.pid(),
        }
    }

    /// Starts a process. What comes of it is known at once, or when the spawner has replied.
    pub(crate) fn start(
        &self,
        launching: Launching,
    ) -> Result<io::Result<Launched>, impl Future<Output = io::Result<Launched>> + Send + 'static> {
        match self {
            Launcher::Direct => Ok(launching.here()),
            Launcher::Spawner(spawner) => Err(spawner.aside(|spawner| launching.by(spawner))),
        }
    }

    /// Starts the process that takes over in a hot restart, and gives it `socket`.
    pub(crate) fn start_successor(
        &self,
        (program, arguments): (&Path, &[OsString]),
        socket: OwnedFd,
    ) -> io::Result<(Pid, OwnedFd)> {
        match self {
            Launcher::Direct => {
                let mut command = Command::new(program);
                if let [name, arguments @ ..] = arguments {
                    command.arg0(name).args(arguments);
                }
                inherits(&mut command, VARIABLE, socket);
                if let Some(folder) = kept_working_folder() {
                    command.env(STARTED_IN, folder);
                }
                let child = command.spawn()?;
                let pid = Pid::from_child(&child);
                Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
            }
            Launcher::Spawner(spawner) => spawner.start_successor(socket.as_fd()),
        }
    }

    /// Sends a signal to a process. It is no error if it has ended meanwhile. Signals arrive in the order in which they were
    /// sent; the spawner's reply is not waited for here.
    pub(crate) fn signal(&self, pidfd: &Arc<AsyncFd<OwnedFd>>, signal: Signal) {
        match self {
            Launcher::Direct => {
                let sent = pidfd_send_signal(pidfd.get_ref(), signal);
                note_signal(signal, sent.map_err(io::Error::from));
            }
            Launcher::Spawner(spawner) => {
                let pidfd = Arc::clone(pidfd);
                drop(spawner.aside(move |spawner| {
                    note_signal(signal, spawner.signal(pidfd.get_ref().as_fd(), signal));
                    Ok(())
                }));
            }
        }
    }

    /// How long to wait for the report of how a process ended, once it has.
    pub(crate) fn news_time(&self, who: Who) -> Duration {
        match (self, who) {
            // The PID proxy ends with it, and what has started that waits.
            (Launcher::Direct, _) | (_, Who::Successor(_)) => NEWS_TIME,
            (Launcher::Spawner(_), _) => NEWS_TIME_OF_SPAWNER,
        }
    }

    /// Whether there are children, also such as have ended and are not reaped yet.
    pub(crate) fn has_children(&self) -> bool {
        match self {
            Launcher::Direct => reaper::has_children(),
            Launcher::Spawner(spawner) => spawner.has_children(),
        }
    }

    /// Where the ends of processes are reported.
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

fn note_signal(signal: Signal, sent: io::Result<()>) {
    // The spawner's refusals keep the kind of an error, and not its number.
    let has_ended = |error: &io::Error| error.kind() == io::Error::from(Errno::SRCH).kind();
    if let Some(error) = sent.err().filter(|error| !has_ended(error)) {
        tracing::error!(name: "signal_not_sent", %error, ?signal, "cannot send a signal");
    }
}

/// Where the ends of processes are reported.
#[derive(Debug)]
pub(crate) enum Endings {
    /// They are this process's children, and SIGCHLD reports them.
    Direct,
    /// They are the spawner's, which reports them.
    Spawner {
        client: Arc<Client>,
        socket: AsyncFd<OwnedFd>,
        /// Endings that were reported, and not reaped yet.
        heard: VecDeque<(Pid, Ending)>,
    },
}

impl Endings {
    /// Waits for an ending that SIGCHLD does not report.
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

    /// A slice of the ended processes.
    pub(crate) fn reap(&mut self) -> Reaped {
        match self {
            Endings::Direct => {
                let reaped = reaper::reap();
                highball_cgroups::current().inspect(|cgroups| cgroups.child_ended());
                reaped
            }
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
