//! What is done in a hot restart: starting the new process, talking with it, and becoming its PID proxy.

use super::Supervisor;
use crate::control::control_socket::ControlSocket;
use crate::control::handover::FromSuccessor;
use crate::core::action::SuccessorSignal;
use crate::core::event::ReceivedSignal;
use crate::core::{Event, SuccessorEvent};
use crate::facts::ending::Ending;
use crate::process::launcher::Who;
use crate::process::watcher::{SocketEvent, Watcher};
use crate::upgrade::pid_proxy::ServingProcess;
use crate::upgrade::successor::{Successor, UpgradeContext};
use crate::Notice;
use highball_config::AppId;
use highball_link::FrontCommand;
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

/// What is held for hot restarts.
#[derive(Debug, Default)]
pub(super) struct Upgrading {
    /// What a successor is made from. Not before this process serves, nor once it ends.
    pub(super) context: Option<UpgradeContext>,
    /// The socket on which this process, as the PID proxy, hears of its successors' successors; and the other end, for
    /// them.
    pid_proxy: Option<(ControlSocket, OwnedFd)>,
    /// New processes, by the number of the hot restart.
    successors: BTreeMap<u32, Successor>,
    /// The control socket of the process that has taken over. It closes when no companion of this one is left.
    waits_for_companions: Option<Arc<ControlSocket>>,
    /// The process that has taken over.
    pub(super) serving: Option<ServingProcess>,
    /// Its process id, and the number of the hot restart.
    taken_over: Option<(u32, Pid)>,
}

impl Upgrading {
    pub(super) fn pid_of(&self, upgrade: u32) -> Option<i32> {
        let taken_over = self.taken_over.filter(|(number, _)| *number == upgrade).map(|(_, pid)| pid);
        let pid = self.successors.get(&upgrade).map(|successor| successor.pid).or(taken_over);
        pid.map(Pid::as_raw_pid)
    }

    /// The process that has taken this one's place.
    pub(super) fn serving_pid(&self) -> Option<i32> {
        self.serving.as_ref().map(|serving| serving.pid().as_raw_pid())
    }

    pub(super) fn program(&self) -> Option<String> {
        self.context.as_ref().map(|context| context.program.display().to_string())
    }

    fn upgrade_of(&self, pid: Pid) -> Option<u32> {
        self.successors.iter().find(|(_, successor)| successor.pid == pid).map(|(number, _)| *number)
    }

    pub(super) fn signal(&self, upgrade: u32, signal: SuccessorSignal) {
        if let Some(successor) = self.successors.get(&upgrade) {
            successor.signal(match signal {
                SuccessorSignal::Reread => Signal::HUP,
                SuccessorSignal::End => Signal::TERM,
                SuccessorSignal::Kill => Signal::KILL,
            });
        }
    }

    pub(super) fn forget(&mut self, upgrade: u32) {
        self.successors.remove(&upgrade);
        self.pid_proxy = None; // the next process gets another pair
    }

    /// The process that has taken over may start its companions.
    pub(super) fn no_companions(&mut self) {
        self.waits_for_companions = None;
    }

    pub(super) fn pass_on(&self, signal: ReceivedSignal) {
        if let Some(serving) = &self.serving {
            serving.pass_on(signal);
        }
    }

    fn spawn(&mut self, failed: Vec<String>, watcher: &Watcher) -> io::Result<(Successor, OwnedFd)> {
        let Upgrading { context: Some(context), pid_proxy, .. } = self else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if context.pid_proxy.is_none() && pid_proxy.is_none() {
            *pid_proxy = Some(ControlSocket::pair()?);
        }
        let theirs = context.pid_proxy.as_ref().or(pid_proxy.as_ref().map(|(_, theirs)| theirs));
        Successor::spawn(context, theirs, failed, watcher)
    }
}

impl Supervisor {
    fn successor_happens(&mut self, upgrade: u32, event: SuccessorEvent) {
        self.happened.push_back(Event::Successor(upgrade, event));
    }

    pub(super) async fn spawn_successor(&mut self, upgrade: u32, failed: &[AppId]) {
        let program = self.upgrading.program().unwrap_or_default();
        let name = |id| self.apps.get(id).map(|app| app.app.name.clone());
        let failed = failed.iter().filter_map(name).collect();
        match self.upgrading.spawn(failed, &self.watcher) {
            Ok((successor, front)) => {
                self.upgrading.successors.insert(upgrade, successor);
                self.notify(Notice::ToFront(FrontCommand::NewProcess(front))).await;
            }
            Err(error) => {
                let why = cannot_start(&program, &error);
                self.successor_happens(upgrade, SuccessorEvent::NotStarted { why });
            }
        }
    }

    pub(super) fn let_take_over(&mut self, upgrade: u32) {
        let sent = self.upgrading.successors.get(&upgrade).map(Successor::take_over);
        if let Some(Err(error)) = sent {
            self.successor_happens(upgrade, SuccessorEvent::Unreachable { error: error.to_string() });
        }
    }

    /// The new process accepts connections.
    pub(super) async fn hand_over(&mut self, upgrade: u32, kept: Vec<String>, restart: bool) {
        let Some(successor) = self.upgrading.successors.remove(&upgrade) else { return };
        let pid = successor.pid;
        if let Some(context) = self.upgrading.context.take() {
            context.report_to_pid_proxy(pid);
        }
        if restart {
            successor.signal(Signal::USR1);
        }
        let reports = self.upgrading.pid_proxy.take().map(|(ours, _)| ours);
        self.upgrading.taken_over = Some((upgrade, pid));
        let (process, control) = successor.into_process();
        self.upgrading.waits_for_companions = Some(control);
        self.upgrading.serving = Some(ServingProcess::new((pid, process), reports, &self.watcher));
        self.notify(Notice::HandOver { pid: pid.as_raw_pid(), kept }).await;
    }

    /// Another `highball` has sent a message.
    pub(super) fn successor_sent(&mut self, event: SocketEvent) {
        let (pid, event) = match event {
            SocketEvent::Successor(pid, message) => (pid, event_of(message)),
            SocketEvent::ProtocolError(Who::Successor(pid), error) => {
                tracing::error!(
                    name: "hot_restart_unexpected_message", pid = pid.as_raw_pid(), %error, "the new process sent an invalid message"
                );
                (pid, SuccessorEvent::Closed)
            }
            SocketEvent::Closed(Who::Successor(pid)) => (pid, SuccessorEvent::Closed),
            SocketEvent::Succeeded { pid, descriptors } => {
                if let Some(serving) = &mut self.upgrading.serving {
                    serving.succeeded(pid, descriptors, &self.watcher);
                }
                return;
            }
            SocketEvent::ProtocolError(..)
            | SocketEvent::Closed(_)
            | SocketEvent::Mold { .. }
            | SocketEvent::Worker { .. }
            | SocketEvent::Companion { .. } => return,
        };
        if let Some(upgrade) = self.upgrading.upgrade_of(pid) {
            self.successor_happens(upgrade, event);
        }
    }

    /// A process was reaped: our successor, or a predecessor of the serving process.
    pub(super) fn successor_reaped(&mut self, pid: Pid, ending: Ending) {
        if let Some(upgrade) = self.upgrading.upgrade_of(pid) {
            self.successor_happens(upgrade, SuccessorEvent::Ended(ending));
        } else if let Some(serving) = &mut self.upgrading.serving {
            serving.reaped(pid, ending);
        }
    }

    /// Such a process ended a moment ago.
    pub(super) fn successor_gone(&mut self, pid: Pid) {
        if let Some(upgrade) = self.upgrading.upgrade_of(pid) {
            self.successor_happens(upgrade, SuccessorEvent::Ended(Ending::Unknown));
        } else if let Some(ending) = self.upgrading.serving.as_mut().and_then(|serving| serving.gone(pid)) {
            tracing::warn!(
                name: "new_process_ended", pid = pid.as_raw_pid(), %ending, "the process that took over has ended"
            );
            self.happened.push_back(Event::ServingProcessEnded);
        }
    }
}

fn event_of(message: FromSuccessor) -> SuccessorEvent {
    match message {
        FromSuccessor::Booting { version, limit_ms } => {
            SuccessorEvent::Booting { version, limit: Duration::from_millis(limit_ms) }
        }
        FromSuccessor::Ready { kept } => SuccessorEvent::Ready { kept },
        FromSuccessor::Serving => SuccessorEvent::Serving,
        FromSuccessor::Failed { why } => SuccessorEvent::Failed { why },
    }
}

/// Logs that the new process serves.
pub(super) fn log_handed_over(pid: Option<i32>, took: Duration) {
    let took_ms = took.as_millis() as u64;
    info!(
        name: "hot_restart_handed_over",
        pid, took_ms, "hot restart: the new process serves; this one finishes its requests"
    );
}

fn cannot_start(program: &str, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "Install Highball there again; this process was started from that path.",
        io::ErrorKind::PermissionDenied => "Make it a program that this user may run (chmod +x).",
        _ => "The system refused it; see the message.",
    };
    format!("cannot run {program}: {error}.\n{remedy}")
}
