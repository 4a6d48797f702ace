//! The process that runs a companion and watches over it. It is this program, runs as the application's user already, and receives
//! from the server the order what to run. What the companion starts can leave it, but not this process, which is its subreaper:
//! when the companion has ended, the rest is ended as well, so that the next one never runs beside what is left of this one. It ends as the
//! companion did.
//!
//! A companion that is forked from the mold is a child of this process, too: a fork of the mold forks it, and then becomes this
//! program (`lib/highball/forked_companion.rb`).

use crate::control::control_socket::ControlSocket;
use crate::facts::ending::Ending;
use crate::process::child::Child;
use crate::process::mold_process::{no_order, receive_order, send_order, ProcessOrder, Trouble};
use crate::process::reaper;
use rustix::process::{
    fchdir, getpid, kill_process, pidfd_open, set_child_subreaper, setrlimit, setsid, Pid, PidfdFlags,
    Resource, Rlimit, Signal,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::signal::unix::{signal, SignalKind};

/// The exit code where the companion could not be run: a shell's.
const NOT_RUN: i32 = 127;
/// Names the companion that this process has forked.
const FORKED: &str = "HIGHBALL_FORKED_COMPANION";
/// The pipe whose byte lets that begin.
const BEGIN: &str = "HIGHBALL_FORKED_COMPANION_FD";
/// How often what does not end is killed.
const KILL_EVERY: Duration = Duration::from_millis(20);
/// How long killed processes may take to be gone; then they are left behind.
pub(super) const KILLED_TIME: Duration = Duration::from_secs(5);

/// What such a process has to know beside the program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CompanionOrder {
    /// The working folder, below the application's folder or absolute.
    #[serde(with = "highball_text::exact")]
    pub(crate) directory: Option<PathBuf>,
    /// The time that what is left has to end.
    pub(crate) stop_timeout: Duration,
}

/// What the mold has to know of a companion that it forks.
#[derive(Debug, Serialize)]
pub(crate) struct ForkedCompanion<'a> {
    /// What people call it.
    pub(crate) label: &'a str,
    /// What it runs: a Ruby program.
    pub(crate) command: ForkedCommand<'a>,
    /// See [`CompanionOrder`].
    pub(crate) directory: Option<Cow<'a, str>>,
    /// What its environment has more than the mold's.
    pub(crate) environment: BTreeMap<String, String>,
}

/// See [`ForkedCompanion`].
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ForkedCommand<'a> {
    /// Words as in a shell.
    Line(&'a str),
    /// A program and its arguments.
    Words(&'a [String]),
}

/// Messages to such a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToCompanion {
    /// Send the companion TERM.
    End,
    /// Kill it, and all that it has started.
    Kill,
}

/// Messages from such a process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromCompanion {
    /// The mold has forked the companion, and this process; a pidfd of it comes with this message.
    Exists {
        /// Its process id.
        pid: i32,
    },
    /// The companion runs.
    Started {
        /// Its process id.
        pid: i32,
    },
    /// It could not be run; why.
    Failed { trouble: Trouble },
    /// It has ended, and has left as many processes, which are being ended.
    LeftBehind { processes: usize },
}

/// Orders the process at the other end of `socket` to run a companion in this folder.
pub(super) fn order(
    socket: &OwnedFd,
    child: &Child,
    folder: BorrowedFd<'_>,
    pipe: Option<&OwnedFd>,
    order: &CompanionOrder,
) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = [folder].into_iter().chain(pipe.map(OwnedFd::as_fd)).collect();
    send_order(socket, &(Some(ProcessOrder::of(child)), order), &descriptors)
}

/// The same, where the mold forks the companion.
pub(super) fn order_of_forked(socket: &OwnedFd, order: &CompanionOrder) -> io::Result<()> {
    send_order(socket, &(None::<ProcessOrder>, order), &[])
}

/// Runs a companion: receives the order from the server, follows it, and ends as the companion does.
pub fn run_companion(socket: OwnedFd) -> ExitCode {
    let runtime = Builder::new_current_thread().enable_all().build();
    let ending = match runtime.map(|runtime| runtime.block_on(follow(socket))) {
        Ok(Ok(ending)) => ending,
        Ok(Err(_)) | Err(_) => Ending::Exited(NOT_RUN), // the server sees that it ends
    };
    end_as(ending)
}

async fn follow(socket: OwnedFd) -> io::Result<Ending> {
    let _ = setsid(); // it is the leader of a session already where the spawner has started it
    let ((order, of_companion), mut descriptors) =
        receive_order::<(Option<ProcessOrder>, CompanionOrder)>(&socket)?;
    let control = ControlSocket::over(socket)?;
    let mut children = signal(SignalKind::child())?;
    let main = match order {
        Some(order) => {
            let folder = descriptors.next().ok_or_else(no_order)?;
            run(order, folder, descriptors.next(), &of_companion)
        }
        None => forked(&control),
    };
    match main {
        Ok(main) => {
            let _ = control.send(&FromCompanion::Started { pid: main.as_raw_pid() }, &[]); // it may have gone
            let mut watching = Watching::over(main, of_companion.stop_timeout);
            Ok(watching.until_all_have_ended(&control, &mut children).await)
        }
        Err(error) => {
            let failed = FromCompanion::Failed { trouble: Trouble::from(&error) };
            if control.send(&failed, &[]).is_ok() {
                // The end of this process would be known before the reason: the server closes the socket when it has that.
                let _ = control.receive::<ToCompanion>().await;
            }
            Ok(Ending::Exited(NOT_RUN))
        }
    }
}

fn run(
    order: ProcessOrder,
    folder: OwnedFd,
    pipe: Option<OwnedFd>,
    of_companion: &CompanionOrder,
) -> io::Result<Pid> {
    set_child_subreaper(Some(getpid()))?;
    fchdir(folder)?;
    let mut command = order.into_child().command(of_companion.directory.as_deref(), None, pipe)?;
    highball_spawner::exec::dies_with_this_process(&mut command);
    command.process_group(0); // what it does to its group does not reach this process
    Ok(Pid::from_child(&command.spawn()?))
}

/// The companion that this process has forked before it became this program. It begins when the server knows this process: a
/// server that doesn't wait for it any more may have started another one.
fn forked(control: &ControlSocket) -> io::Result<Pid> {
    let _ = rustix::thread::set_name(c"highball"); // it was started by the number of a descriptor
    set_child_subreaper(Some(getpid()))?;
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())?;
    control.send(&FromCompanion::Exists { pid: getpid().as_raw_pid() }, &[pidfd.as_fd()])?;
    let pid = std::env::var(FORKED).ok().and_then(|text| Pid::from_raw(text.parse().ok()?));
    let begin = highball_spawner::exec::take(BEGIN)?.ok_or_else(no_order)?;
    rustix::io::write(&begin, b"1")?;
    pid.ok_or_else(no_order)
}

/// What such a process knows of the companion.
struct Watching {
    main: Pid,
    stop_timeout: Duration,
    /// How it ended, if it has.
    ending: Option<Ending>,
    /// When it was asked to end, or has ended.
    ends_since: Option<Instant>,
    /// It was asked to end.
    is_asked: bool,
    /// What is left was sent TERM.
    has_told_rest: bool,
    /// When everything is killed; only what is left of it gets a time here, the server has one for the companion itself.
    kill_at: Option<Instant>,
    /// When what cannot be killed is left behind.
    give_up_at: Option<Instant>,
}

impl Watching {
    fn over(main: Pid, stop_timeout: Duration) -> Watching {
        Watching {
            main,
            stop_timeout,
            ending: None,
            ends_since: None,
            is_asked: false,
            has_told_rest: false,
            kill_at: None,
            give_up_at: None,
        }
    }

    async fn until_all_have_ended(
        &mut self,
        control: &ControlSocket,
        children: &mut tokio::signal::unix::Signal,
    ) -> Ending {
        let mut is_open = true;
        loop {
            self.reap();
            if let Some(ending) = self.ending {
                let is_left_behind = self.give_up_at.is_some_and(|at| at <= Instant::now());
                if is_left_behind || !reaper::has_children() {
                    return ending;
                }
                self.tell_rest(control);
            }
            let next = self.kill_if_due();
            tokio::select! {
                _ = children.recv() => {}
                message = control.receive::<ToCompanion>(), if is_open => match message {
                    Ok(Some(packet)) if packet.message == ToCompanion::End => self.end(),
                    Ok(Some(_)) => self.kill(),
                    Ok(None) | Err(_) => {
                        is_open = false; // the server has gone
                        self.kill();
                    }
                },
                () = sleep_until(next) => {}
            }
        }
    }

    fn reap(&mut self) {
        loop {
            let reaped = reaper::reap();
            let main = reaped.ended.iter().find(|(pid, _)| *pid == self.main);
            if let Some((_, ending)) = main {
                self.ending = Some(*ending);
                self.ends_since.get_or_insert_with(Instant::now);
            }
            if !reaped.may_have_left_some {
                return;
            }
        }
    }

    /// Asks the companion to end. It passes that on to what it has started.
    fn end(&mut self) {
        self.is_asked = true;
        self.ends_since.get_or_insert_with(Instant::now);
        if self.ending.is_none() {
            let _ = kill_process(self.main, Signal::TERM); // it is not reaped: the number is still its own
        }
    }

    fn kill(&mut self) {
        self.is_asked = true;
        self.kill_at = Some(Instant::now());
    }

    /// Asks what the companion has left to end, once.
    fn tell_rest(&mut self, control: &ControlSocket) {
        if std::mem::replace(&mut self.has_told_rest, true) {
            return;
        }
        let since = self.ends_since.unwrap_or_else(Instant::now);
        self.kill_at.get_or_insert(since + self.stop_timeout);
        let processes = signal_children(Signal::TERM);
        if !self.is_asked {
            let _ = control.send(&FromCompanion::LeftBehind { processes }, &[]);
            // it may have gone
        }
    }

    /// Kills everything, if it is time. The children of those become this process's, and their turn comes next. Returns when to look
    /// again.
    fn kill_if_due(&mut self) -> Option<Instant> {
        let (now, at) = (Instant::now(), self.kill_at?);
        if now < at {
            return Some(at);
        }
        self.give_up_at.get_or_insert(now + KILLED_TIME);
        signal_children(Signal::KILL);
        Some(now + KILL_EVERY)
    }
}

/// Signals every child of this process; their number. None is reaped meanwhile, so the numbers are their own.
fn signal_children(signal: Signal) -> usize {
    let children = highball_spawner::descent::children().unwrap_or_default();
    for child in &children {
        let _ = kill_process(*child, signal); // it may have ended
    }
    children.len()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Ends this process as another has ended.
fn end_as(ending: Ending) -> ExitCode {
    if let Ending::Killed(number) = ending {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let _ = setrlimit(Resource::Core, none); // the companion's is enough
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = kill_process(getpid(), signal);
        }
    }
    ExitCode::from(ending.exit_code())
}
