//! The PID proxy. A container, a service manager or a shell that has started a server in the foreground waits for this
//! one process and sends its signals to it. So the first process stays after a hot restart, when it has answered its
//! last request. It passes signals on, reaps children, and ends when the process that serves ends, with its exit code.
//!
//! Only the first process does so. Later processes report their successor to it, and end. As a subreaper it becomes
//! the parent of the following ones.

use crate::control::control_socket::ControlSocket;
use crate::core::event::ReceivedSignal;
use crate::facts::ending::Ending;
use crate::inbox::Received;
use crate::process::launcher::Endings;
use crate::process::launcher::Who;
use crate::process::watcher::{HeldProcess, News, SocketEvent, Watch, Watcher};
use crate::signals::{to_pass_on, Signals};
use rustix::process::{Pid, Signal};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tracing::{debug, info, warn};

/// How long processes that have been succeeded may take to be gone, beyond their time for draining.
const END_TIME: Duration = Duration::from_secs(10);

/// The process that serves in the place of this one.
#[derive(Debug)]
pub(crate) struct ServingProcess {
    pid: Pid,
    process: HeldProcess,
    /// Its predecessors, which may wait for the last requests of idle clients; only in the PID proxy.
    before: Vec<(Pid, HeldProcess)>,
    has_ended: bool,
    /// How it ended, or how one before it did that passed its exit code on.
    ending: Option<Ending>,
    /// Where processes that are succeeded report by which one; only in the PID proxy.
    reports: Option<Watch>,
}

impl ServingProcess {
    /// `reports`: the socket on which this process, as the PID proxy, hears of its successors' successors.
    pub(crate) fn new(
        (pid, process): (Pid, HeldProcess),
        reports: Option<ControlSocket>,
        watcher: &Watcher,
    ) -> ServingProcess {
        let reports = reports.map(|socket| watcher.succeeded(Arc::new(socket)));
        ServingProcess { pid, process, before: Vec::new(), has_ended: false, ending: None, reports }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether this process is the PID proxy.
    pub(crate) fn is_proxied(&self) -> bool {
        self.reports.is_some()
    }

    /// Passes a signal on to the process that serves.
    pub(crate) fn pass_on(&self, signal: ReceivedSignal) {
        if let Some(signal) = to_pass_on(signal).filter(|_| self.is_proxied()) {
            debug!(?signal, pid = self.pid.as_raw_pid(), "a signal is passed on");
            self.process.signal(signal);
        }
    }

    /// Another process has succeeded the serving one.
    pub(crate) fn succeeded(&mut self, pid: i32, mut pidfd: Vec<OwnedFd>, watcher: &Watcher) {
        let (Some(pid), Some(pidfd)) = (Pid::from_raw(pid), pidfd.pop()) else { return };
        match watcher.hold(pidfd, Who::Successor(pid)) {
            Ok(process) => {
                info!(
                    name: "pid_proxy_adopted", pid = pid.as_raw_pid(), "this is the PID proxy of the new process now"
                );
                let before = std::mem::replace(&mut self.process, process);
                self.before.push((std::mem::replace(&mut self.pid, pid), before));
                (self.has_ended, self.ending) = (false, None);
            }
            Err(error) => warn!(name: "pid_proxy_blind", %error, "cannot watch the process that serves now"),
        }
    }

    /// A process was reaped, and has ended like this. Whether another one serves in its place may not have been read yet: see
    /// [`ServingProcess::gone`].
    pub(crate) fn reaped(&mut self, pid: Pid, ending: Ending) {
        self.before.retain(|(before, _)| *before != pid);
        // The exit code of a predecessor is its successor's.
        let counts = pid == self.pid || self.has_ended;
        if counts && self.ending.is_none_or(|known| known == Ending::Unknown) {
            self.ending = Some(ending);
        }
    }

    /// A process ended a moment ago, and what it sent was read. Returns how it ended, if it served and no other process does.
    pub(crate) fn gone(&mut self, pid: Pid) -> Option<Ending> {
        self.before.retain(|(before, _)| *before != pid);
        if pid != self.pid || self.has_ended {
            return None;
        }
        self.has_ended = true;
        let ending = *self.ending.get_or_insert(Ending::Unknown);
        self.before.iter().for_each(|(_, process)| process.signal(Signal::TERM));
        // Only the PID proxy learns whether another one has succeeded it. If it was stopped, TERM follows.
        Some(ending).filter(|ending| self.is_proxied() || *ending != Ending::Exited(0))
    }
}

/// A process that has been succeeded, and stays for its successor.
#[derive(Debug)]
pub struct PidProxy {
    pub(crate) serving: ServingProcess,
    pub(crate) signals: Signals,
    pub(crate) endings: Endings,
    pub(crate) news: Received<News>,
    pub(crate) watcher: Watcher,
    /// How long its successors may be at their last requests when they end.
    pub(crate) drain_time: Duration,
}

impl PidProxy {
    /// Is the PID proxy of the process that serves, where another process waits for this one. Returns the exit code.
    pub async fn stay(mut self) -> u8 {
        if !self.serving.is_proxied() {
            return 0;
        }
        info!(
            name: "pid_proxy_begun",
            pid = self.serving.pid().as_raw_pid(),
            "this process is now the PID proxy: it forwards signals to the serving process, and ends with it"
        );
        self.reap().await;
        while !self.serving.has_ended {
            self.next().await;
        }
        let limit = self.drain_time + END_TIME;
        let left = async {
            while self.watcher.launcher.has_children() {
                self.next().await;
            }
        };
        if timeout(limit, left).await.is_err() {
            warn!(
                name: "old_processes_left", "older processes still run after the hot restart: leaving them behind"
            );
        }
        self.serving.ending.map_or(1, Ending::exit_code)
    }

    async fn next(&mut self) {
        tokio::select! {
            signal = self.signals.next() => match signal {
                ReceivedSignal::ChildEnded => self.reap().await,
                signal => self.serving.pass_on(signal),
            },
            () = self.endings.changed() => self.reap().await,
            Some((_, news)) = self.news.recv() => match news {
                News::Socket(event) => {
                    if let SocketEvent::Succeeded { pid, descriptors } = *event {
                        self.serving.succeeded(pid, descriptors, &self.watcher);
                    }
                }
                News::Ended(Who::Successor(pid)) => {
                    self.reap().await;
                    self.serving.gone(pid);
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
                self.serving.reaped(pid, ending);
            }
            if !reaped.may_have_left_some {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}
