//! Hot restarts, as the old process sees them: a new `highball` is started beside this one and inherits its listening
//! sockets. When its workers wait for requests it is let in, and then this process accepts no more, and drains. Until
//! then, whatever fails, this one serves on.

use super::{Hall, Purpose};
use crate::checkpoint;
use crate::control_socket::ControlSocket;
use crate::departure::{Departure, LAST_WORDS_TIME};
use crate::handover::FromSuccessor;
use crate::reaper::Ending;
use crate::report::UpgradeReport;
use crate::signals::Received;
use crate::stand_in::Succession;
use crate::successor::{Heritage, Successor};
use crate::supervisor::HotRestart;
use crate::Notice;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// Time for a new process to say that it boots, beyond the time for booting that this one knows.
const START_TIME: Duration = Duration::from_secs(10);
/// Time for a new process to accept connections, once it may.
const TAKE_OVER_TIME: Duration = Duration::from_secs(10);
/// Time for a new process that is not wanted any more to end by itself.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// How far a hot restart has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits until it can begin.
    Queued,
    /// The new process boots the application and starts its workers.
    Booting,
    /// It was told to accept connections.
    TakingOver,
}

/// A hot restart that was asked for.
#[derive(Debug)]
struct Upgrade {
    number: u32,
    asked: &'static str,
    began: Instant,
    stage: Stage,
    /// When the stage has to have ended.
    deadline: Option<Instant>,
    successor: Option<Successor>,
    departure: Departure,
    version: Option<String>,
    /// HUP has come, and the new process did not listen to signals yet.
    hung_up: bool,
    /// The addresses that the new process accepts on.
    kept: Vec<String>,
}

impl Upgrade {
    fn report(&self, now: Instant) -> UpgradeReport {
        UpgradeReport {
            number: self.number,
            asked_by: self.asked.into(),
            state: match self.stage {
                Stage::Queued => "queued",
                Stage::Booting => "booting",
                Stage::TakingOver => "taking over",
            },
            took: now - self.began,
            pid: self.successor.as_ref().map(|successor| successor.pid.as_raw_pid()),
            version: self.version.clone(),
            failure: None,
        }
    }
}

/// All that there is about hot restarts.
#[derive(Debug, Default)]
pub(super) struct Upgrades {
    /// What a successor is made from. Not before this process serves, nor once it ends.
    heritage: Option<Heritage>,
    /// Where this process will hear who succeeds its successors, and the other end for them.
    stand_in: Option<(ControlSocket, OwnedFd)>,
    asked: u32,
    going: Option<Upgrade>,
    /// A process of which nothing became, until it has gone; it is killed then.
    leaving: Option<(Successor, Instant)>,
    past: Option<UpgradeReport>,
    pub(super) succession: Option<Succession>,
}

impl Upgrades {
    /// How far the one that was asked for has come.
    pub(super) fn progress(&self) -> HotRestart {
        match &self.going {
            None if self.succession.is_some() => HotRestart::Done,
            None => HotRestart::No,
            Some(upgrade) if upgrade.stage == Stage::Queued => HotRestart::Queued,
            Some(_) => HotRestart::Going,
        }
    }

    /// Whether processes that were started for it are there, and are to go.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let going = self.going.as_ref().and_then(|upgrade| upgrade.deadline);
        let leaving = self.leaving.as_ref().map(|(_, until)| *until);
        going.into_iter().chain(leaving).min()
    }

    pub(super) fn report(&self, now: Instant) -> Option<UpgradeReport> {
        self.going.as_ref().map(|upgrade| upgrade.report(now)).or_else(|| self.past.clone())
    }
}

impl Hall {
    pub(super) fn may_be_succeeded(&mut self, heritage: Heritage) {
        self.purpose = Purpose::Serve;
        self.apps.values_mut().for_each(|app| app.serves());
        if !self.stopping {
            self.upgrades.heritage = Some(heritage);
        }
    }

    /// Notes that a hot restart is wanted; its number.
    pub(super) fn ask_upgrade(&mut self, asked: &'static str, now: Instant) -> Result<u32, String> {
        if let Err(why) = self.may_upgrade() {
            warn!(by = asked, why, "no hot restart");
            return Err(why.into());
        }
        self.upgrades.asked += 1;
        let number = self.upgrades.asked;
        self.upgrades.going = Some(Upgrade {
            number,
            asked,
            began: now,
            stage: Stage::Queued,
            deadline: None,
            successor: None,
            departure: Departure::default(),
            version: None,
            hung_up: false,
            kept: Vec::new(),
        });
        Ok(number)
    }

    fn may_upgrade(&self) -> Result<(), &'static str> {
        if self.stopping {
            return Err("the server is stopping");
        }
        if self.apps.values().any(|app| app.is_of_a_caller()) {
            return Err("the application was given as an object, by a process that cannot be replaced: stop it, and start it");
        }
        if self.apps.values().all(|app| app.is_broken()) {
            return Err("the application has not booted yet: mend it first, and reload its page");
        }
        if self.upgrades.going.is_some() {
            return Err("a hot restart is under way already: wait for its outcome (highball status)");
        }
        if self.upgrades.heritage.is_none() {
            return Err("this process does not serve yet: wait until it does");
        }
        Ok(())
    }

    /// Begins what was asked for, once nothing is under way in any application.
    pub(super) fn advance_upgrade(&mut self, now: Instant) {
        let can_begin = self.apps.values().all(|app| app.is_at_rest()) && self.upgrades.leaving.is_none();
        let boot_times = self.apps.values().map(|app| app.boot_timeout());
        let boot_time = boot_times.max().unwrap_or_default();
        let queued = |upgrade: &&mut Upgrade| upgrade.stage == Stage::Queued && can_begin;
        let Some(upgrade) = self.upgrades.going.as_mut().filter(queued) else { return };
        let Some(heritage) = &self.upgrades.heritage else { return };
        info!(by = upgrade.asked, program = %heritage.program.display(), "hot restart: starting the new process");
        upgrade.stage = Stage::Booting;
        upgrade.deadline = Some(now + boot_time + START_TIME);
        let program = heritage.program.display().to_string();
        match self.spawn_successor() {
            Ok(successor) => {
                if let Some(upgrade) = &mut self.upgrades.going {
                    upgrade.successor = Some(successor);
                }
            }
            Err(error) => self.upgrade_failed(&cannot_start(&program, &error), now),
        }
    }

    fn spawn_successor(&mut self) -> io::Result<Successor> {
        let Upgrades { heritage: Some(heritage), stand_in, .. } = &mut self.upgrades else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if heritage.is_waited_for && heritage.stand_in.is_none() && stand_in.is_none() {
            *stand_in = Some(ControlSocket::pair()?);
        }
        let broken = self.apps.values().filter(|app| app.is_broken()).map(|app| app.name());
        let theirs = heritage.stand_in.as_ref().or(stand_in.as_ref().map(|(_, theirs)| theirs));
        Successor::spawn(heritage, theirs, broken.collect(), &self.inbox)
    }

    pub(super) async fn successor_said(&mut self, message: FromSuccessor, now: Instant) {
        let Some(upgrade) = &mut self.upgrades.going else { return };
        match (upgrade.stage, message) {
            (Stage::Booting, FromSuccessor::Booting { version, limit_ms }) => {
                info!(version, "hot restart: the new process boots the application");
                upgrade.version = Some(version);
                upgrade.deadline = Some(now + Duration::from_millis(limit_ms));
                if std::mem::take(&mut upgrade.hung_up) {
                    self.hang_up_successor();
                }
            }
            (Stage::Booting, FromSuccessor::Ready { kept }) => {
                upgrade.kept = kept;
                upgrade.stage = Stage::TakingOver;
                upgrade.deadline = Some(now + TAKE_OVER_TIME);
                let told = upgrade.successor.as_ref().map(Successor::take_over);
                if let Some(Err(error)) = told {
                    self.upgrade_failed(
                        &format!("the new process cannot be told to take over: {error}"),
                        now,
                    );
                }
                checkpoint::pass("upgrade.taking_over").await;
            }
            (Stage::TakingOver, FromSuccessor::Serving) => self.hand_over(now).await,
            (_, FromSuccessor::Failed { why }) => self.upgrade_failed(&why, now),
            (_, message) => warn!(?message, "the new process said this at the wrong time"),
        }
    }

    /// HUP has come: the new process may have read its configuration before what has changed, and may wait for an
    /// application that is gone by now.
    pub(super) fn hang_up_successor(&mut self) {
        let Some(Upgrade { successor: Some(successor), version, hung_up, .. }) = &mut self.upgrades.going
        else {
            return; // what is still to be started reads what there is by then
        };
        if version.is_some() {
            successor.signal(Signal::HUP);
        } else {
            *hung_up = true;
        }
    }

    /// Its control socket is closed, or nothing that comes from it can be understood.
    pub(super) fn successor_heard_out(&mut self, pid: Pid, now: Instant) {
        let Some(upgrade) = self.going_with(pid) else { return };
        upgrade.departure.heard_out();
        if let Some(ending) = upgrade.departure.complete() {
            return self.upgrade_failed(&ended_early(ending), now);
        }
        upgrade.deadline = Some(now + LAST_WORDS_TIME); // it cannot serve any more: it ends, or is killed
    }

    /// A process has ended that was to take our place, or has, or is one of those that have been succeeded.
    pub(super) async fn successor_ended(&mut self, pid: Pid, ending: Ending, now: Instant) {
        if let Some(upgrade) = self.going_with(pid) {
            upgrade.departure.ended(ending);
            match upgrade.departure.complete() {
                Some(ending) => self.upgrade_failed(&ended_early(ending), now),
                None => upgrade.deadline = Some(now + LAST_WORDS_TIME),
            }
        } else if self.upgrades.leaving.as_ref().is_some_and(|(successor, _)| successor.pid == pid) {
            self.upgrades.leaving = None;
        } else if self.upgrades.succession.as_mut().is_some_and(|succession| succession.ended(pid, ending)) {
            warn!(pid = pid.as_raw_pid(), %ending, "the process that has taken over has ended");
            self.notify(Notice::Drain).await; // there is nobody left to whom idle clients could turn
        }
    }

    fn going_with(&mut self, pid: Pid) -> Option<&mut Upgrade> {
        let is_it = |successor: &Successor| successor.pid == pid;
        self.upgrades.going.as_mut().filter(|upgrade| upgrade.successor.as_ref().is_some_and(is_it))
    }

    pub(super) fn enforce_upgrade_deadlines(&mut self, now: Instant) {
        if let Some((successor, until)) = &mut self.upgrades.leaving {
            if now >= *until {
                successor.signal(Signal::KILL);
                *until = now + LEAVE_TIME;
            }
        }
        let Some(upgrade) = &self.upgrades.going else { return };
        if upgrade.deadline.is_none_or(|at| now < at) {
            return;
        }
        let why = match (upgrade.departure.ending(), upgrade.stage) {
            (Some(ending), _) => ended_early(ending),
            (None, Stage::TakingOver) => "the new process was told to accept connections, and did not say in time that it does".into(),
            (None, _) => format!(
                "the new process did not serve within {:.0?}.\nLook at what it logged above. If it really needs longer, raise --boot-timeout.",
                now - upgrade.began
            ),
        };
        self.upgrade_failed(&why, now);
    }

    /// Ends the new process, and tells why. This one serves on.
    fn upgrade_failed(&mut self, why: &str, now: Instant) {
        let Some(mut upgrade) = self.upgrades.going.take() else { return };
        error!(error = why, "the hot restart failed; this process serves on");
        let report = upgrade.report(now);
        self.upgrades.past = Some(UpgradeReport { state: "failed", failure: Some(why.into()), ..report });
        self.upgrades.stand_in = None; // the next process gets a pair of its own
        let has_ended = upgrade.departure.ending().is_some();
        if let Some(successor) = upgrade.successor.take().filter(|_| !has_ended) {
            successor.signal(Signal::TERM);
            // One that was let in may have requests to answer.
            let grace = match upgrade.stage {
                Stage::TakingOver => self.settings.drain_timeout,
                Stage::Queued | Stage::Booting => LEAVE_TIME,
            };
            self.upgrades.leaving = Some((successor, now + grace));
        }
    }

    /// The new process accepts connections: from now on this one only finishes what it has.
    async fn hand_over(&mut self, now: Instant) {
        let Some(heritage) = self.upgrades.heritage.take() else { return };
        let Some(mut upgrade) = self.upgrades.going.take() else { return };
        let report = upgrade.report(now);
        let Some(successor) = upgrade.successor.take() else { return };
        let (pid, took_ms) = (successor.pid, report.took.as_millis() as u64);
        info!(
            pid = pid.as_raw_pid(),
            took_ms, "hot restart: the new process serves; this one finishes what it has"
        );
        self.upgrades.past = Some(UpgradeReport { state: "done", ..report });
        heritage.tell_stand_in(pid);
        if self.apps.values().any(|app| app.was_told_to_restart()) {
            successor.signal(Signal::USR1); // it was asked for after the new process had begun to boot
        }
        let stand_in = self.upgrades.stand_in.take().map(|(ours, _)| ours);
        let succession = Succession::new(successor.into_process(), stand_in, &self.inbox);
        self.upgrades.succession = Some(succession);
        for app in self.apps.values_mut() {
            app.hand_over(now);
        }
        self.notify(Notice::HandOver { pid: pid.as_raw_pid(), kept: upgrade.kept }).await;
        checkpoint::pass("upgrade.handed_over").await;
    }

    /// The server stops: nobody takes its place.
    pub(super) fn abandon_upgrades(&mut self, now: Instant) {
        self.upgrades.heritage = None; // and with it the sockets, on which nobody would accept any more
        self.upgrade_failed("the server was told to stop.\nStart it again: it is the new version then.", now);
    }

    /// Does not wait for a process that is not wanted any more.
    pub(super) fn kill_leaving_successor(&mut self) {
        if let Some((successor, _)) = &self.upgrades.leaving {
            successor.signal(Signal::KILL);
        }
    }

    /// A signal that came after another process has taken over. `true`: it is none of our business.
    pub(super) async fn pass_on(&mut self, signal: Received, now: Instant) -> bool {
        let Some(succession) = &self.upgrades.succession else { return false };
        succession.pass_on(signal);
        match signal {
            Received::ChildEnded => return false,
            Received::Terminate | Received::Interrupt => self.told_to_end(signal, now).await,
            _ => {}
        }
        true
    }
}

fn cannot_start(program: &str, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "Install Highball there again; this process was started from that path.",
        io::ErrorKind::PermissionDenied => "Make it a program that this user may run (chmod +x).",
        _ => "The system refused it; see the message.",
    };
    format!("cannot run {program}: {error}.\n{remedy}")
}

fn ended_early(ending: Ending) -> String {
    format!(
        "the new process ended before it served: {ending}.\nLook at what it printed above. A version of Highball \
         that knows no hot restarts has to be started by itself."
    )
}
