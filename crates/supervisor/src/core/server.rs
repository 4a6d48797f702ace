//! What exists once in a process: signals, whose turn it is to boot, hot restarts ([`upgrade`]), the end.

pub(crate) mod upgrade;

use super::action::{Action, AppAction};
use super::app::App;
use super::condition::End;
use super::config::{AppConfig, Purpose, ServerConfig, Surroundings};
use super::event::{AppEvent, Event};
use super::ids::Receipt;
use super::log::ServerLog;
use crate::core::event::ReceivedSignal;
use crate::core::refork::ReforkCause;
use crate::core::restart::Asked;
use highball_config::AppId;
use highball_link::AppCommand;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use upgrade::Upgrades;

/// Signals closer together than this are one: `timeout`, process managers and terminals that signal both us and
/// our group deliver each twice.
pub(crate) const SAME_SIGNAL: Duration = Duration::from_millis(500);
/// A boot keeps others from beginning for at most this long, even if it hangs.
pub(crate) const TURN: Duration = Duration::from_secs(10);
/// How long a process that was to take this one's place may take to be gone at the very end.
const LEAVING_TIME: Duration = Duration::from_secs(3);
/// Passes over all applications in one step. A step needs two or three; more only if something is wrong.
const PASSES: usize = 64;

/// How far the server is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerPhase {
    Running,
    /// Another process serves; this one finishes what it has.
    Succeeded,
    /// It was asked to stop, or cannot go on.
    Stopping,
    /// Nothing is left to wait for.
    Ended,
}

/// The state of the whole process path.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) apps: BTreeMap<AppId, App>,
    pub(crate) phase: ServerPhase,
    /// When the first signal to end came.
    signalled_at: Option<Instant>,
    /// When it stops accepting, as it was asked to stop.
    grace_until: Option<Instant>,
    /// When the server stops waiting for a process that was to take its place.
    left_at: Option<Instant>,
    pub(crate) upgrades: Upgrades,
    /// Whether companions of the process that this one succeeds may still run.
    predecessor_has_companions: bool,
    /// Companions of this process may still run, for which the one waits that has taken its place.
    pub(super) is_waited_for: bool,
    /// When each application has something to do next; `None` in the map's value: it waits for events.
    due: BTreeMap<AppId, Option<Instant>>,
    pub(super) now: Instant,
    actions: Vec<Action>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig, now: Instant) -> Server {
        Server {
            predecessor_has_companions: config.purpose == Purpose::Succeed,
            is_waited_for: false,
            config,
            apps: BTreeMap::new(),
            phase: ServerPhase::Running,
            signalled_at: None,
            grace_until: None,
            left_at: None,
            upgrades: Upgrades::default(),
            due: BTreeMap::new(),
            now,
            actions: Vec::new(),
        }
    }

    /// The only way to change the state: applies one event, and then does whatever the new state asks for.
    pub(crate) fn step(&mut self, event: Event, now: Instant) -> Vec<Action> {
        self.now = now;
        self.apply(event);
        if !(0..PASSES).any(|_| !self.advance()) {
            self.log(ServerLog::Unsettled);
        }
        std::mem::take(&mut self.actions)
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Tick => {}
            Event::OfApp(id, event) => self.tell(id, event),
            Event::Signal(signal) => self.signalled(signal),
            Event::AddApp(id, config) => {
                if matches!(self.phase, ServerPhase::Stopping | ServerPhase::Ended) {
                    return self.act(Action::ForgetApp(id));
                }
                self.log(ServerLog::NewApp { name: config.name.clone() });
                self.add(id, *config);
            }
            Event::FrontDrained => self.tell_all(|app| app.drained()),
            Event::PredecessorWithoutCompanions => self.predecessor_has_companions = false,
            Event::MayUpgrade => {
                self.config.purpose = Purpose::Serve;
                self.upgrades.may_be_asked = self.phase == ServerPhase::Running && self.grace_until.is_none();
            }
            Event::Upgrade(receipt) => {
                let answer = self.ask_upgrade("highball upgrade");
                self.answer(receipt, answer);
            }
            Event::Stop => self.stop(),
            Event::Successor(upgrade, event) => self.successor(upgrade, event),
            Event::ServingProcessEnded => {
                self.log(ServerLog::ServingProcessEnded);
                self.act(Action::DrainFront); // idle clients have nowhere else to go
            }
        }
    }

    /// Adds an application; what it needs is done in the next step.
    pub(crate) fn add(&mut self, id: AppId, config: AppConfig) {
        let surroundings = self.surroundings(false);
        self.apps.insert(id, App::new(config, surroundings, self.now));
        self.due.insert(id, Some(self.now));
    }

    /// Passes on an event, unless its application is gone. An order is answered in any case.
    fn tell(&mut self, id: AppId, event: AppEvent) {
        let now = self.now;
        match self.apps.get_mut(&id) {
            Some(app) => {
                app.at(now);
                app.apply(event);
                self.due.insert(id, Some(now));
                self.collect(id);
            }
            None => {
                if let AppEvent::Restart { receipt: Some(receipt), .. }
                | AppEvent::Rollout { receipt: Some(receipt), .. }
                | AppEvent::Refork { receipt: Some(receipt), .. } = event
                {
                    let gone = "the application was removed".into();
                    self.act(Action::OfApp(id, AppAction::Answer(receipt, Err(gone))));
                }
            }
        }
    }

    pub(super) fn tell_all(&mut self, mut tell: impl FnMut(&mut App)) {
        let now = self.now;
        for id in self.apps.keys().copied().collect::<Vec<AppId>>() {
            if let Some(app) = self.apps.get_mut(&id) {
                app.at(now);
                tell(app);
                self.due.insert(id, Some(now));
                self.collect(id);
            }
        }
    }

    fn collect(&mut self, id: AppId) {
        if let Some(app) = self.apps.get_mut(&id) {
            self.actions.extend(app.out.take_actions().into_iter().map(|action| Action::OfApp(id, action)));
        }
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(super) fn log(&mut self, log: ServerLog) {
        self.act(Action::Log(log));
    }

    fn answer(&mut self, receipt: Receipt, answer: Result<u32, String>) {
        self.act(Action::Answer(receipt, answer));
    }

    // --- signals

    fn signalled(&mut self, signal: ReceivedSignal) {
        if self.upgrades.done.is_some() {
            self.act(Action::PassOn(signal));
            if matches!(signal, ReceivedSignal::Terminate | ReceivedSignal::Interrupt) {
                self.handle_end_signal(signal);
            }
            return;
        }
        match signal {
            // The shell's: it changes nothing.
            ReceivedSignal::ChildEnded | ReceivedSignal::DumpThreads => {}
            ReceivedSignal::Hangup => {
                self.act(Action::Hangup);
                self.hang_up_successor();
            }
            ReceivedSignal::Upgrade => drop(self.ask_upgrade("USR2")), // a refusal is logged
            ReceivedSignal::Terminate | ReceivedSignal::Interrupt => self.handle_end_signal(signal),
            ReceivedSignal::Restart => {
                self.tell_each(|| AppEvent::Restart { asked: Asked::Signal, receipt: None })
            }
            ReceivedSignal::Refork => {
                self.tell_each(|| AppEvent::Refork { cause: ReforkCause::Signal, receipt: None });
            }
            ReceivedSignal::MoreWorkers => self.tell_each(|| AppEvent::MoreWorkers(1)),
            ReceivedSignal::FewerWorkers => self.tell_each(|| AppEvent::MoreWorkers(-1)),
        }
    }

    fn tell_each(&mut self, event: impl Fn() -> AppEvent) {
        for id in self.apps.keys().copied().collect::<Vec<AppId>>() {
            self.tell(id, event());
        }
    }

    /// TERM or INT. The second one ends the wait for requests.
    fn handle_end_signal(&mut self, signal: ReceivedSignal) {
        let is_second = self.signalled_at.is_some_and(|first| self.now >= first + SAME_SIGNAL);
        let quick = signal == ReceivedSignal::Interrupt && self.config.is_development;
        if self.phase != ServerPhase::Stopping && quick {
            self.drain(true);
        } else if self.grace_until.is_some() && is_second {
            self.signalled_at = Some(self.now); // the next one halts
            self.drain(false);
        } else if self.phase != ServerPhase::Stopping {
            self.stop();
        } else if is_second {
            self.log(ServerLog::SecondSignal);
            self.tell_all(|app| app.end(End::Halted));
        }
        self.signalled_at.get_or_insert(self.now);
    }

    /// Begins to end in good order: at once, or after the grace, in which load balancers notice.
    fn stop(&mut self) {
        let is_asked_first = self.phase == ServerPhase::Running && self.grace_until.is_none();
        let serves = self.apps.values().any(App::can_answer);
        if self.config.drain_grace.is_zero() || !serves || self.phase != ServerPhase::Running {
            return self.drain(false);
        }
        if is_asked_first {
            self.grace_until = Some(self.now + self.config.drain_grace);
            self.log(ServerLog::StoppingSoon { grace: self.config.drain_grace });
            self.abandon_upgrades();
            self.act(Action::AnnounceStop);
        }
    }

    /// Drains once the grace is over.
    fn end_grace(&mut self) {
        if self.grace_until.is_some_and(|until| self.now >= until) {
            self.drain(false);
        }
    }

    /// Begins to end in good order; `quick`: without waiting for requests.
    fn drain(&mut self, quick: bool) {
        if matches!(self.phase, ServerPhase::Stopping | ServerPhase::Ended) {
            return;
        }
        self.log(ServerLog::Stopping);
        self.phase = ServerPhase::Stopping;
        self.grace_until = None;
        self.abandon_upgrades();
        if !self.apps.values().any(|app| app.current.has_booted()) {
            return self.tell_all(|app| app.end(End::Stopped)); // there is nothing to answer requests with
        }
        self.act(Action::DrainFront);
        self.tell_all(|app| {
            app.drain(quick);
            if !app.can_answer() {
                app.out.notify(AppCommand::Abandon);
            }
        });
        if !quick {
            self.act(Action::Checkpoint("drain.started"));
        }
    }

    // --- what follows

    /// One pass over everything. True: something has changed.
    fn advance(&mut self) -> bool {
        let before = self.actions.len();
        let phase = self.phase;
        self.end_grace();
        self.enforce_upgrade_deadlines();
        self.advance_upgrade();
        let settled = self.settle_apps();
        self.forget_removed();
        self.release_successor();
        self.end_with_its_apps();
        self.notice_the_end();
        settled || self.actions.len() > before || self.phase != phase
    }

    fn surroundings(&self, may_boot: bool) -> Surroundings {
        Surroundings {
            alone: self.apps.len() <= 1,
            hot_restart: self.upgrades.progress(),
            may_boot,
            is_alone_with_companions: !self.predecessor_has_companions,
            purpose: self.config.purpose,
        }
    }

    /// Lets every application act for which something has changed. True: there was one.
    fn settle_apps(&mut self) -> bool {
        let now = self.now;
        let has_turn = |app: &App| app.molds.boot_since().is_some_and(|began| now < began + TURN);
        let mut turns = self.apps.values().filter(|app| has_turn(app)).count();
        let mut surroundings = self.surroundings(false);
        let mut any = false;
        for (id, app) in &mut self.apps {
            let had_turn = has_turn(app);
            surroundings.may_boot =
                had_turn || turns < self.config.boots_at_a_time || app.config.source == super::Source::Site;
            let due = self.due.entry(*id).or_insert(Some(now));
            if app.surroundings == surroundings && due.is_none_or(|due| now < due) {
                continue;
            }
            any = true;
            app.surroundings = surroundings;
            app.settle(now);
            *due = app.next_deadline();
            turns = turns + usize::from(has_turn(app)) - usize::from(had_turn);
            self.actions.extend(app.out.take_actions().into_iter().map(|action| Action::OfApp(*id, action)));
        }
        any
    }

    fn forget_removed(&mut self) {
        let now = self.now;
        let removed = self.apps.iter().filter(|(_, app)| app.is_removed && app.has_ended(now));
        for id in removed.map(|(id, _)| *id).collect::<Vec<AppId>>() {
            self.apps.remove(&id);
            self.due.remove(&id);
            self.act(Action::ForgetApp(id));
        }
    }

    /// The process that has taken this one's place starts its companions when none of this one's is left.
    fn release_successor(&mut self) {
        if self.is_waited_for && self.apps.values().all(|app| app.companions.are_gone()) {
            self.is_waited_for = false;
            self.act(Action::ReportNoCompanions);
        }
    }

    /// An application may have asked to end everything, or the server ends with it.
    fn end_with_its_apps(&mut self) {
        if self.apps.values().any(|app| app.wants_the_end) {
            self.drain(false);
        }
        let is_lost = |app: &App| app.phase.is_ending() && !app.is_removed;
        if self.phase == ServerPhase::Running && self.apps.values().any(is_lost) {
            self.phase = ServerPhase::Stopping;
            self.grace_until = None;
            self.abandon_upgrades();
            self.tell_all(|app| app.end(End::Halted));
        }
    }

    fn notice_the_end(&mut self) {
        let is_over = matches!(self.phase, ServerPhase::Stopping | ServerPhase::Succeeded);
        if !is_over || !self.apps.values().all(|app| app.has_ended(self.now)) {
            return;
        }
        let left_at = *self.left_at.get_or_insert(self.now + LEAVING_TIME);
        self.kill_leaving_successor();
        if !self.upgrades.is_leaving() || self.now >= left_at {
            self.phase = ServerPhase::Ended;
            self.act(Action::End);
        }
    }

    /// When there is something to do that was not due yet at the last step.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let apps = self.due.values().filter_map(|due| *due);
        let turns = self.apps.values().filter_map(|app| app.molds.boot_since()).map(|began| began + TURN);
        let turns = turns.filter(|end| *end > self.now);
        apps.chain(turns)
            .chain(self.upgrades.next_deadline())
            .chain(self.left_at)
            .chain(self.grace_until)
            .min()
    }

    /// Whether it is on its way to the end.
    pub(crate) fn is_over(&self) -> bool {
        self.phase != ServerPhase::Running
    }
}
