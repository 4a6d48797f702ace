//! Hot restarts, as the old process decides about them: a new `highball` is started beside this one and inherits its
//! listening sockets. When its workers wait for requests it is let in, and then this process accepts no more, and drains.
//! Until then, whatever fails, this one keeps serving.

use super::{Server, ServerPhase};
use crate::core::action::{Action, SuccessorSignal};
use crate::core::app::App;
use crate::core::config::{HotRestart, Source};
use crate::core::departure::{Departure, LAST_MESSAGES_TIME};
use crate::core::event::SuccessorEvent;
use crate::core::log::ServerLog;
use crate::core::restart::END_ROLLOUT_FIRST;
use crate::facts::ending::Ending;
use highball_link::UpgradeReport;
use std::time::{Duration, Instant};

/// Time for a new process to report that it boots, beyond the time for booting that this one knows.
const START_TIME: Duration = Duration::from_secs(10);
/// Time for a new process to accept connections, once it may.
const TAKE_OVER_TIME: Duration = Duration::from_secs(10);
/// Time for an unwanted new process to exit before it is killed.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// How far a hot restart has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpgradeStage {
    /// It waits until it can begin.
    Queued,
    /// The new process boots the application and starts its workers.
    Booting,
    /// It was ordered to accept connections.
    TakingOver,
}

/// A hot restart that was asked for.
#[derive(Debug)]
pub(crate) struct Upgrade {
    /// From 1.
    pub(crate) number: u32,
    asked: &'static str,
    began: Instant,
    pub(crate) stage: UpgradeStage,
    /// When the stage has to have ended.
    pub(crate) deadline: Option<Instant>,
    departure: Departure,
    version: Option<String>,
    /// HUP has come, and the new process did not listen to signals yet.
    hung_up: bool,
    /// The addresses that the new process accepts on.
    kept: Vec<String>,
}

impl Upgrade {
    /// What `highball status` reports of it, without the process id.
    fn report(&self, now: Instant) -> UpgradeReport {
        UpgradeReport {
            number: self.number,
            asked_by: self.asked.into(),
            state: match self.stage {
                UpgradeStage::Queued => "queued",
                UpgradeStage::Booting => "booting",
                UpgradeStage::TakingOver => "taking over",
            }
            .into(),
            seconds: (now - self.began).as_secs_f64(),
            pid: None,
            version: self.version.clone(),
            failure: None,
            ended_seconds_ago: None,
        }
    }
}

/// A new process of a hot restart that has failed, until it has gone.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) upgrade: u32,
    /// When it is killed, or killed again.
    pub(crate) until: Instant,
    is_killed: bool,
}

/// The state of hot restarts.
#[derive(Debug, Default)]
pub(crate) struct Upgrades {
    /// Whether this process serves, and is not about to end.
    pub(crate) may_be_asked: bool,
    asked: u32,
    pub(crate) going: Option<Upgrade>,
    pub(crate) leaving: Option<Leaving>,
    /// The last hot restart that has ended, and when.
    past: Option<(UpgradeReport, Instant)>,
    /// The hot restart that has succeeded.
    pub(crate) done: Option<u32>,
}

impl Upgrades {
    /// How far the hot restart has come that was asked for.
    pub(crate) fn progress(&self) -> HotRestart {
        match &self.going {
            None if self.done.is_some() => HotRestart::Done,
            None => HotRestart::No,
            Some(upgrade) if upgrade.stage == UpgradeStage::Queued => HotRestart::Queued,
            Some(_) => HotRestart::Going,
        }
    }

    /// Whether a process that was started for one is there, and is to go.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let going = self.going.as_ref().and_then(|upgrade| upgrade.deadline);
        let leaving = self.leaving.as_ref().map(|leaving| leaving.until);
        going.into_iter().chain(leaving).min()
    }

    pub(crate) fn report(&self, now: Instant) -> Option<UpgradeReport> {
        let past = || {
            let (report, ended) = self.past.clone()?;
            let ended_seconds_ago = Some(now.saturating_duration_since(ended).as_secs());
            Some(UpgradeReport { ended_seconds_ago, ..report })
        };
        self.going.as_ref().map(|upgrade| upgrade.report(now)).or_else(past)
    }
}

impl Server {
    /// Notes that a hot restart is wanted; its number.
    pub(super) fn ask_upgrade(&mut self, asked: &'static str) -> Result<u32, String> {
        if let Err(why) = self.may_upgrade() {
            self.log(ServerLog::NoHotRestart { by: asked, why });
            return Err(why.into());
        }
        self.upgrades.asked += 1;
        let number = self.upgrades.asked;
        self.upgrades.going = Some(Upgrade {
            number,
            asked,
            began: self.now,
            stage: UpgradeStage::Queued,
            deadline: None,
            departure: Departure::default(),
            version: None,
            hung_up: false,
            kept: Vec::new(),
        });
        Ok(number)
    }

    fn may_upgrade(&self) -> Result<(), &'static str> {
        if self.phase == ServerPhase::Stopping || self.phase == ServerPhase::Ended {
            return Err("the server is stopping");
        }
        if self.apps.values().any(|app| app.config.source == Source::Caller) {
            return Err("the application was given as an object, by a process that cannot be replaced: stop it, and start it");
        }
        if self.apps.values().all(|app| app.condition.is_failed()) {
            return Err("the application has not booted yet: fix it first, and reload its page");
        }
        if self.apps.values().any(|app| app.restarts.share().is_some()) {
            return Err(END_ROLLOUT_FIRST);
        }
        if self.upgrades.going.is_some() {
            return Err("a hot restart is under way already: wait for its outcome (highball status)");
        }
        if !self.upgrades.may_be_asked {
            return Err("this process does not serve yet: wait until it does");
        }
        Ok(())
    }

    /// Begins what was asked for, once nothing is under way in any application.
    pub(super) fn advance_upgrade(&mut self) {
        let queued = |upgrade: &&mut Upgrade| upgrade.stage == UpgradeStage::Queued;
        let Some(upgrade) = self.upgrades.going.as_mut().filter(queued) else { return };
        if self.upgrades.leaving.is_some() || !self.apps.values().all(App::is_at_rest) {
            return;
        }
        let boot_time = self.apps.values().map(|app| app.config.boot_timeout).max().unwrap_or_default();
        upgrade.stage = UpgradeStage::Booting;
        upgrade.deadline = Some(self.now + boot_time + START_TIME);
        let (number, by) = (upgrade.number, upgrade.asked);
        let failed =
            self.apps.iter().filter(|(_, app)| app.condition.is_failed()).map(|(id, _)| *id).collect();
        self.log(ServerLog::HotRestart { by });
        self.act(Action::SpawnSuccessor { upgrade: number, failed });
    }

    /// Something has happened to a process that is, was or has been to take this one's place.
    pub(super) fn successor(&mut self, number: u32, event: SuccessorEvent) {
        if self.upgrades.going.as_ref().is_some_and(|upgrade| upgrade.number == number) {
            return self.successor_going(event);
        }
        if self.upgrades.leaving.as_ref().is_some_and(|leaving| leaving.upgrade == number)
            && matches!(event, SuccessorEvent::Ended(_) | SuccessorEvent::NotStarted { .. })
        {
            self.upgrades.leaving = None;
            self.act(Action::ForgetSuccessor { upgrade: number });
        }
    }

    fn successor_going(&mut self, event: SuccessorEvent) {
        let now = self.now;
        let Some(upgrade) = &mut self.upgrades.going else { return };
        let number = upgrade.number;
        match (upgrade.stage, event) {
            (_, SuccessorEvent::NotStarted { why }) => {
                upgrade.departure.ended(Ending::Unknown);
                self.upgrade_failed(&why);
            }
            (UpgradeStage::Booting, SuccessorEvent::Booting { version, limit }) => {
                upgrade.version = Some(version.clone());
                upgrade.deadline = Some(now + limit);
                let hung_up = std::mem::take(&mut upgrade.hung_up);
                self.log(ServerLog::SuccessorBoots { version });
                if hung_up {
                    self.hang_up_successor();
                }
            }
            (UpgradeStage::Booting, SuccessorEvent::Ready { kept }) => {
                upgrade.kept = kept;
                upgrade.stage = UpgradeStage::TakingOver;
                upgrade.deadline = Some(now + TAKE_OVER_TIME);
                self.act(Action::TakeOver { upgrade: number });
                self.act(Action::Checkpoint("upgrade.taking_over"));
            }
            (UpgradeStage::TakingOver, SuccessorEvent::Serving) => self.hand_over(),
            (_, SuccessorEvent::Failed { why }) => self.upgrade_failed(&why),
            (_, SuccessorEvent::Unreachable { error }) => {
                self.upgrade_failed(&format!(
                    "the order to take over could not be sent to the new process: {error}"
                ));
            }
            (_, SuccessorEvent::Closed) => {
                upgrade.departure.heard_out();
                self.successor_departs();
            }
            (_, SuccessorEvent::Ended(ending)) => {
                upgrade.departure.ended(ending);
                self.successor_departs();
            }
            (_, SuccessorEvent::Booting { .. }) => self.successor_out_of_turn("booting"),
            (_, SuccessorEvent::Ready { .. }) => self.successor_out_of_turn("ready"),
            (_, SuccessorEvent::Serving) => self.successor_out_of_turn("serving"),
        }
    }

    fn successor_out_of_turn(&mut self, message: &'static str) {
        self.log(ServerLog::SuccessorOutOfTurn { message });
    }

    /// Its control socket is closed, or it has ended: it cannot serve any more.
    fn successor_departs(&mut self) {
        let Some(upgrade) = &mut self.upgrades.going else { return };
        match upgrade.departure.complete() {
            Some(ending) => self.upgrade_failed(&ended_early(ending)),
            None => upgrade.deadline = Some(self.now + LAST_MESSAGES_TIME),
        }
    }

    /// HUP has come: the new process may have read its configuration before what has changed, and may wait for an
    /// application that is gone by now.
    pub(super) fn hang_up_successor(&mut self) {
        let booting = |upgrade: &&mut Upgrade| upgrade.stage != UpgradeStage::Queued;
        let Some(upgrade) = self.upgrades.going.as_mut().filter(booting) else {
            return; // what is still to be started reads what there is by then
        };
        if upgrade.version.is_some() {
            let upgrade = upgrade.number;
            self.act(Action::SignalSuccessor { upgrade, signal: SuccessorSignal::Reread });
        } else {
            upgrade.hung_up = true;
        }
    }

    pub(super) fn enforce_upgrade_deadlines(&mut self) {
        let now = self.now;
        if let Some(leaving) = self.upgrades.leaving.as_mut().filter(|leaving| now >= leaving.until) {
            leaving.until = now + LEAVE_TIME;
            leaving.is_killed = true;
            let upgrade = leaving.upgrade;
            self.act(Action::SignalSuccessor { upgrade, signal: SuccessorSignal::Kill });
        }
        let Some(upgrade) = &self.upgrades.going else { return };
        if upgrade.deadline.is_none_or(|at| now < at) {
            return;
        }
        let why = match (upgrade.departure.ending(), upgrade.stage) {
            (Some(ending), _) => ended_early(ending),
            (None, UpgradeStage::TakingOver) => {
                "the new process did not confirm in time that it accepts connections".into()
            }
            (None, _) => format!(
                "the new process did not serve within {:.0?}.\nLook at what it logged above. If it really needs longer, raise --boot-timeout.",
                now - upgrade.began
            ),
        };
        self.upgrade_failed(&why);
    }

    /// Ends the new process, and reports why. This one keeps serving.
    fn upgrade_failed(&mut self, why: &str) {
        let Some(upgrade) = self.upgrades.going.take() else { return };
        let number = upgrade.number;
        self.log(ServerLog::HotRestartFailed { why: why.into() });
        let report = upgrade.report(self.now);
        let report = UpgradeReport { state: "failed".into(), failure: Some(why.into()), ..report };
        self.upgrades.past = Some((report, self.now));
        let grace = match upgrade.stage {
            UpgradeStage::Queued => return,
            UpgradeStage::Booting => LEAVE_TIME,
            UpgradeStage::TakingOver => self.config.drain_timeout, // it may have requests to answer
        };
        if upgrade.departure.ending().is_some() {
            return self.act(Action::ForgetSuccessor { upgrade: number });
        }
        self.act(Action::SignalSuccessor { upgrade: number, signal: SuccessorSignal::End });
        self.upgrades.leaving = Some(Leaving { upgrade: number, until: self.now + grace, is_killed: false });
    }

    /// The new process accepts connections: from now on this one only finishes what it has.
    fn hand_over(&mut self) {
        let Some(upgrade) = self.upgrades.going.take() else { return };
        let (number, report) = (upgrade.number, upgrade.report(self.now));
        self.log(ServerLog::HandedOver { upgrade: number, took: self.now - upgrade.began });
        self.upgrades.past = Some((UpgradeReport { state: "done".into(), ..report }, self.now));
        self.upgrades.may_be_asked = false;
        self.upgrades.done = Some(number);
        self.phase = ServerPhase::Succeeded;
        // It was asked for while the new process was booting.
        let restart = self.apps.values().any(|app| app.restarts.waits_for_signalled());
        self.is_waited_for = true;
        self.tell_all(App::hand_over);
        self.act(Action::HandOver { upgrade: number, kept: upgrade.kept, restart });
        self.act(Action::Checkpoint("upgrade.handed_over"));
    }

    /// The server stops: no process takes its place.
    pub(super) fn abandon_upgrades(&mut self) {
        self.upgrades.may_be_asked = false;
        self.act(Action::DropUpgradeContext); // and with it the sockets: no process would accept on them
        self.upgrade_failed("the server was asked to stop.\nStart it again: it is the new version then.");
    }

    /// Does not wait for a process that is not wanted any more.
    pub(super) fn kill_leaving_successor(&mut self) {
        if let Some(leaving) = self.upgrades.leaving.as_mut().filter(|leaving| !leaving.is_killed) {
            leaving.is_killed = true;
            let upgrade = leaving.upgrade;
            self.act(Action::SignalSuccessor { upgrade, signal: SuccessorSignal::Kill });
        }
    }
}

fn ended_early(ending: Ending) -> String {
    format!(
        "the new process ended before it served: {ending}.\nLook at what it printed above. A version of Highball \
         without hot restarts has to be started separately."
    )
}
