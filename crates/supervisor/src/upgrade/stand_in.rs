//! The PID proxy. A container, a service manager or a shell that has started a server in the foreground waits for this
//! one process and sends its signals to it. So the first process stays after a hot restart, when it has answered its
//! last request. It passes signals on, reaps children, and ends when the process that serves ends, with its exit code.
//!
//! Only the first process does so. Those that come later report to it which process succeeds them, and end. As a
//! subreaper it becomes the parent of the ones after them.

use crate::core::ending::Ending;
use crate::core::event::Received;
use crate::process::launcher::Endings;
use crate::shell::control_socket::ControlSocket;
use crate::shell::event::{watch_succeeded, HeldProcess, Inbox, News, Said, Watch, Who};
use crate::shell::signals::{to_pass_on, Signals};
use highball_config::AppId;
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{debug, info, warn};

/// What is left of the processes that have been succeeded may take to be gone, beyond their time for draining.
const END_TIME: Duration = Duration::from_secs(10);

/// The process that serves in the place of this one.
#[derive(Debug)]
pub(crate) struct Succession {
    pid: Pid,
    process: HeldProcess,
    has_ended: bool,
    /// How it ended, or how one before it did that passed its exit code on.
    ending: Option<Ending>,
    /// Where processes that are succeeded report by which one; only in the PID proxy.
    stand_in: Option<Watch>,
}

impl Succession {
    /// `stand_in`: the socket on which this process, as the PID proxy, hears of its successors' successors.
    pub(crate) fn new(
        (pid, process): (Pid, HeldProcess),
        stand_in: Option<ControlSocket>,
        inbox: &Inbox,
    ) -> Succession {
        let stand_in = stand_in.map(|socket| watch_succeeded(Arc::new(socket), inbox.clone()));
        Succession { pid, process, has_ended: false, ending: None, stand_in }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn stands_in(&self) -> bool {
        self.stand_in.is_some()
    }

    /// Passes a signal on to the one that serves.
    pub(crate) fn pass_on(&self, signal: Received) {
        if let Some(signal) = to_pass_on(signal).filter(|_| self.stands_in()) {
            debug!(?signal, pid = self.pid.as_raw_pid(), "a signal is passed on");
            self.process.signal(signal);
        }
    }

    /// The one that served has been succeeded by another.
    pub(crate) fn succeeded(&mut self, pid: i32, mut pidfd: Vec<OwnedFd>, inbox: &Inbox) {
        let (Some(pid), Some(pidfd)) = (Pid::from_raw(pid), pidfd.pop()) else { return };
        match HeldProcess::hold(pidfd, Who::Successor(pid), inbox.clone()) {
            Ok(process) => {
                info!(pid = pid.as_raw_pid(), "this is the PID proxy of the new process now");
                (self.pid, self.process) = (pid, process);
                (self.has_ended, self.ending) = (false, None);
            }
            Err(error) => warn!(%error, "the process that serves now cannot be watched"),
        }
    }

    /// A process has ended. `true`: the one that serves.
    pub(crate) fn ended(&mut self, pid: Pid, ending: Ending) -> bool {
        if pid != self.pid {
            // One that was succeeded, and ended as its successor did.
            if self.ending.is_none_or(|known| known == Ending::Unknown) && self.has_ended {
                self.ending = Some(ending);
            }
            return false;
        }
        let is_news = !self.has_ended;
        self.has_ended = true;
        if self.ending.is_none_or(|known| known == Ending::Unknown) {
            self.ending = Some(ending);
        }
        is_news
    }
}

/// A process that has been succeeded, and stays for its successor.
#[derive(Debug)]
pub struct StandIn {
    pub(crate) succession: Succession,
    pub(crate) signals: Signals,
    pub(crate) endings: Endings,
    pub(crate) news: mpsc::Receiver<(Option<AppId>, News)>,
    pub(crate) inbox: Inbox,
    /// How long its successors may be at their last requests when they end.
    pub(crate) drain_time: Duration,
}

impl StandIn {
    /// Is the PID proxy of the process that serves, where another process waits for this one. Returns the exit code.
    pub async fn stay(mut self) -> u8 {
        if !self.succession.stands_in() {
            return 0;
        }
        info!(
            pid = self.succession.pid().as_raw_pid(),
            "this is now the PID proxy of the process that serves: it passes signals on, and ends when that ends"
        );
        self.reap().await;
        while !self.succession.has_ended {
            self.next().await;
        }
        let limit = self.drain_time + END_TIME;
        let left = async {
            while self.inbox.launcher.has_children() {
                self.next().await;
            }
        };
        if timeout(limit, left).await.is_err() {
            warn!("processes that have been succeeded are still there, and are left to themselves");
        }
        self.succession.ending.map_or(1, Ending::exit_code)
    }

    async fn next(&mut self) {
        tokio::select! {
            signal = self.signals.next() => match signal {
                Received::ChildEnded => self.reap().await,
                signal => self.succession.pass_on(signal),
            },
            () = self.endings.changed() => self.reap().await,
            Some((_, news)) = self.news.recv() => match news {
                News::Said(Said::Succeeded { pid, descriptors }) => {
                    self.succession.succeeded(pid, descriptors, &self.inbox);
                }
                News::Ended(Who::Successor(pid)) => {
                    self.reap().await;
                    self.succession.ended(pid, Ending::Unknown);
                }
                _ => {} // late news of workers
            },
        }
    }

    /// Until there is none left: no signal comes for those of a later slice.
    async fn reap(&mut self) {
        loop {
            let reaped = self.endings.reap();
            for (pid, ending) in reaped.ended {
                self.succession.ended(pid, ending);
            }
            if !reaped.may_have_left_some {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}
