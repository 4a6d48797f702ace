//! The table of an application's states in STATES.md is what the core does: each state is brought about by events, and
//! then each event is tried in it. `HIGHBALL_BLESS=1` writes the table.

use super::app::App;
use super::condition::{Condition, Phase};
use super::config::{AppConfig, Source};
use super::config::{Purpose, ServerConfig};
use super::crash_loop::PROBATION;
use super::samples;
use super::server::Server;
use super::worker::{Worker, WorkerState};
use super::{AppAction, AppEvent, Event, Process, Receipt};
use crate::core::event::ReceivedSignal;
use crate::core::refork::{ReforkCause, ReforkStage};
use crate::core::replacement::ReplacementCause;
use crate::core::restart::{Asked, Stage};
use crate::core::Action;
use crate::facts::ending::Ending;
use highball_config::{AppId, ReforkAfter};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const APP: AppId = AppId(1);

/// Every event that is tried, by the name that the table has for it.
const EVENTS: [&str; 29] = [
    "a request",
    "idle",
    "mold booted",
    "boot fails",
    "diagnosed",
    "files changed",
    "mold dies",
    "new mold dies",
    "worker ready",
    "worker dies",
    "canary answers",
    "canary fails",
    "last worker replaced",
    "new ones gone",
    "`restart`",
    "`rollout`",
    "`rollout 100%`",
    "`rollout undo`",
    "`refork`",
    "worker named",
    "fit",
    "unfit",
    "worker idle",
    "promoted",
    "TERM",
    "front drained",
    "processes gone",
    "removed",
    "time limits",
];

/// How each state is brought about.
const STATES: [(&str, &[&str]); 19] = [
    ("asleep", &["idle"]),
    ("booting", &[]),
    ("explaining", &["boot fails"]),
    ("failed", &["boot fails", "diagnosed"]),
    ("serving", &["serve"]),
    ("restart: booting", &["serve", "`restart`"]),
    ("restart: probing", &["serve", "`restart`", "mold booted", "worker ready"]),
    ("restart: holding", &["serve", "`rollout`", "mold booted", "worker ready", "canary answers"]),
    ("restart: rolling", &["serve", "`restart`", "mold booted", "worker ready", "canary answers"]),
    (
        "restart: undoing",
        &["serve", "`restart`", "mold booted", "worker ready", "canary answers", "new mold dies"],
    ),
    ("refork: choosing", &["serve", "`refork`"]),
    ("refork: asking", &["serve", "`refork`", "worker named"]),
    ("refork: relieving", &["serve", "`refork`", "worker named", "fit"]),
    ("refork: retiring", &["serve", "`refork`", "worker named", "fit", "worker ready"]),
    ("refork: promoting", &["serve", "`refork`", "worker named", "fit", "worker ready", "worker idle"]),
    (
        "refork: rolling",
        &["serve", "`refork`", "worker named", "fit", "worker ready", "worker idle", "promoted"],
    ),
    ("draining", &["serve", "TERM"]),
    ("finishing", &["serve", "TERM", "front drained"]),
    ("ending", &["serve", "TERM", "TERM again"]),
];

/// A server with one application.
struct Play {
    server: Server,
    now: Instant,
    /// The diagnosis that is being made, and the look at the folder.
    pending: Vec<AppAction>,
    /// The last order was refused.
    refused: bool,
}

impl Play {
    fn begin(app: AppConfig) -> Play {
        let now = Instant::now();
        let config = ServerConfig {
            is_development: false,
            drain_grace: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
            boots_at_a_time: 2,
            purpose: Purpose::Serve,
        };
        let mut play = Play { server: Server::new(config, now), now, pending: Vec::new(), refused: false };
        play.server.add(APP, app);
        play.tell(Event::Tick);
        play
    }

    /// The state that these events lead to.
    fn of(events: &[&str]) -> Play {
        let mut play = Play::begin(app());
        for event in events {
            match *event {
                "serve" => play.serves(),
                "idle" => {
                    play.serves();
                    assert!(play.happens("idle"));
                    play.happens("processes gone");
                }
                event => assert!(play.happens(event), "{event} cannot happen, {events:?}"),
            }
        }
        play
    }

    fn app(&self) -> &App {
        &self.server.apps[&APP]
    }

    fn tell(&mut self, event: Event) {
        self.now += Duration::from_millis(1);
        for action in self.server.step(event, self.now) {
            if let Action::OfApp(_, action) = action {
                match action {
                    AppAction::SpawnMold { boot, .. } => {
                        self.tell_app(AppEvent::MoldStarted { boot, folder: PathBuf::new() });
                    }
                    AppAction::Diagnose { .. } | AppAction::LookAtFolder { .. } => self.pending.push(action),
                    AppAction::Answer(_, answer) => self.refused = answer.is_err(),
                    _ => {}
                }
            }
        }
    }

    fn tell_app(&mut self, event: AppEvent) {
        self.tell(Event::OfApp(APP, event));
    }

    fn serves(&mut self) {
        assert!(self.happens("mold booted"));
        while self.happens("worker ready") {}
    }

    /// The mold that boots.
    fn booting(&self) -> Option<u32> {
        self.app().molds.iter().find(|mold| mold.boots_since().is_some()).map(|mold| mold.boot)
    }

    fn worker(&self, is_it: impl Fn(WorkerState) -> bool) -> Option<u32> {
        self.app().staff.workers().iter().find(|(_, worker)| is_it(worker.state)).map(|(number, _)| number)
    }

    fn ends(&mut self, process: Process) {
        self.tell_app(AppEvent::Ended { process, ending: Ending::Killed(9) });
        self.tell_app(AppEvent::Closed { process });
    }

    /// Lets this happen. False: it cannot, in this state.
    fn happens(&mut self, event: &str) -> bool {
        self.try_to(event).is_some()
    }

    fn try_to(&mut self, event: &str) -> Option<()> {
        let serving = self.worker(|state| state == WorkerState::Serving);
        let mold_of = |line: Option<u32>| self.app().molds.of(line?).map(|mold| mold.boot);
        let refork = self.app().reforks.going();
        let (chosen, promoted) =
            (refork.map(|refork| refork.worker), mold_of(refork.and_then(|refork| refork.line)));
        let next = mold_of(self.app().restarts.going().map(|restart| restart.next.line()));
        match event {
            "a request" => self.tell_app(AppEvent::Wanted),
            "idle" => self.tell_app(AppEvent::Idle),
            "mold booted" | "boot fails" | "diagnosed" => return self.boot_ends(event),
            "files changed" => return self.files_change(),
            "mold dies" => {
                let boot = self.app().molds.of(self.app().current.line())?.boot;
                self.ends(Process::Mold(boot));
            }
            "new mold dies" => self.ends(Process::Mold(next.or(promoted)?)),
            "worker ready" => return self.worker_gets_ready(),
            "worker dies" => self.ends(Process::Worker(serving?)),
            "canary answers" | "canary fails" => {
                let worker = self.worker(|state| state == WorkerState::Probing)?;
                let answer = if event == "canary answers" { Ok(200) } else { Ok(500) };
                self.tell_app(AppEvent::CanaryAnswered { worker, answer });
            }
            "last worker replaced" => {
                let is_rolling = next.is_some() || promoted.is_some();
                serving.filter(|_| is_rolling)?;
                self.rolls();
                self.now += PROBATION;
                self.tell(Event::Tick);
            }
            "new ones gone" => {
                let restart = self.app().restarts.going()?;
                let generation = restart.next.number();
                let new =
                    self.app().staff.workers().iter().filter(|(_, worker)| worker.generation == generation);
                let new: Vec<u32> = new.map(|(number, _)| number).collect();
                if new.is_empty() {
                    return None;
                }
                new.into_iter().for_each(|worker| self.ends(Process::Worker(worker)));
            }
            "`restart`" => self.tell_app(AppEvent::Restart { asked: Asked::Command, receipt: None }),
            "`rollout`" => return self.rollout("10%"),
            "`rollout 100%`" => return self.rollout("100%"),
            "`rollout undo`" => return self.rollout("undo"),
            "`refork`" => self.tell_app(AppEvent::Refork { cause: ReforkCause::Command, receipt: None }),
            "worker named" => self.tell_app(AppEvent::WorkerWarm { worker: serving? }),
            "fit" => self.tell_app(AppEvent::WorkerFit { worker: chosen? }),
            "unfit" => self.tell_app(AppEvent::WorkerUnfit { worker: chosen?, why: "it cannot".into() }),
            "worker idle" => {
                let worker = self.worker(|state| state == WorkerState::Retiring)?;
                self.tell_app(AppEvent::WorkerIdle { worker, is_stuck: false });
            }
            "promoted" => self.tell_app(AppEvent::WorkerPromoted { worker: chosen? }),
            "TERM" => self.tell(Event::Signal(ReceivedSignal::Terminate)),
            "TERM again" => {
                self.now += Duration::from_secs(1);
                self.tell(Event::Signal(ReceivedSignal::Terminate));
            }
            "front drained" => self.tell(Event::FrontDrained),
            "processes gone" => self.all_end(),
            "removed" => self.tell_app(AppEvent::Remove),
            "time limits" => return self.time_passes(),
            event => panic!("{event} is not an event"),
        }
        Some(())
    }

    /// Refused: it cannot happen.
    fn rollout(&mut self, order: &str) -> Option<()> {
        let order = order.parse().expect("it is an order");
        let receipt = Some(Receipt(1 << 50));
        self.refused = false;
        self.tell_app(AppEvent::Rollout { order, receipt });
        (!self.refused).then_some(())
    }

    fn boot_ends(&mut self, event: &str) -> Option<()> {
        match event {
            "mold booted" => {
                let boot = self.booting()?;
                self.tell_app(AppEvent::MoldBooted { boot, app: Some(Arc::new(samples::booted(true))) });
            }
            "boot fails" => {
                let boot = self.booting()?;
                self.tell_app(AppEvent::MoldFailed { boot, failure: Box::new(samples::boot_failure()) });
                self.ends(Process::Mold(boot));
            }
            _ => {
                let diagnoses = |action: &AppAction| matches!(action, AppAction::Diagnose { .. });
                let place = self.pending.iter().position(diagnoses)?;
                let AppAction::Diagnose { receipt, .. } = self.pending.remove(place) else { return None };
                let (diagnosis, files) = (Arc::new(samples::diagnosis()), None);
                self.tell_app(AppEvent::Diagnosed { receipt, diagnosis, files });
            }
        }
        Some(())
    }

    fn worker_gets_ready(&mut self) -> Option<()> {
        let starts = |state| matches!(state, WorkerState::Forking | WorkerState::Starting);
        let worker = self.worker(starts)?;
        self.tell_app(AppEvent::WorkerHello { worker });
        self.tell_app(AppEvent::WorkerReady { worker });
        if self.app().restarts.going().is_none_or(|restart| restart.stage != Stage::Probing) {
            self.is_prepared(); // the answer decides about nothing
        }
        Some(())
    }

    fn is_prepared(&mut self) {
        if let Some(worker) = self.worker(|state| state == WorkerState::Probing) {
            self.tell_app(AppEvent::CanaryAnswered { worker, answer: Ok(200) });
        }
    }

    fn files_change(&mut self) -> Option<()> {
        if !self.app().condition.is_failed() {
            return None;
        }
        for files in [1, 2] {
            self.now += Duration::from_secs(10);
            self.tell(Event::Tick);
            let looks = |action: &AppAction| matches!(action, AppAction::LookAtFolder { .. });
            let place = self.pending.iter().position(looks)?;
            let AppAction::LookAtFolder { receipt } = self.pending.remove(place) else { return None };
            let files = Some(crate::facts::folder_state::FolderState(files));
            self.tell_app(AppEvent::FolderSeen { receipt, files, took: Duration::ZERO });
        }
        Some(())
    }

    /// Every place is taken by a new worker.
    fn rolls(&mut self) {
        for _ in 0..10 {
            let _ = self.worker_gets_ready();
            let serving = |worker: &Worker| worker.state == WorkerState::Serving;
            for worker in self.app().staff.workers().which(serving) {
                self.tell_app(AppEvent::SlowStartEnded { worker });
            }
            while let Some(worker) = self.worker(|state| state == WorkerState::Retiring) {
                self.ends(Process::Worker(worker));
            }
        }
    }

    /// Nothing happens but that deadlines pass, until the state is another.
    fn time_passes(&mut self) -> Option<()> {
        let before = state(self.app(), &self.server);
        for _ in 0..20 {
            self.now = self.server.next_deadline()?;
            self.tell(Event::Tick);
            if !self.server.apps.contains_key(&APP) || state(self.app(), &self.server) != before {
                return Some(());
            }
        }
        None
    }

    fn all_end(&mut self) {
        let molds: Vec<u32> = self.app().molds.iter().map(|mold| mold.boot).collect();
        let workers: Vec<u32> = self.app().staff.workers().iter().map(|(number, _)| number).collect();
        for worker in workers {
            self.ends(Process::Worker(worker));
        }
        for boot in molds {
            self.ends(Process::Mold(boot));
        }
    }
}

/// The name of a state.
fn state(app: &App, server: &Server) -> String {
    let restart = app.restarts.going().map(|restart| format!("restart: {}", restart.stage.name()));
    let refork = app.reforks.going().map(|refork| format!("refork: {}", refork.stage.name()));
    let of_phase = match app.phase {
        Phase::Running => None,
        Phase::Draining(_) => Some("draining"),
        Phase::Finishing { .. } => Some("finishing"),
        Phase::Ending(..) if app.has_ended(server.now) => Some("ended"),
        Phase::Ending(..) => Some("ending"),
    };
    let of_condition = match app.condition {
        Condition::Asleep => "asleep",
        Condition::Booting => "booting",
        Condition::Explaining(_) => "explaining",
        Condition::Failed(_) => "failed",
        Condition::Serving => "serving",
    };
    of_phase.map(String::from).or(restart).or(refork).unwrap_or_else(|| of_condition.into())
}

fn table() -> String {
    let mut text = String::from("| state | and what leads out of it |\n| --- | --- |\n");
    for (name, way) in STATES {
        let play = Play::of(way);
        assert_eq!(state(play.app(), &play.server), name, "the way to it leads elsewhere");
        let mut exits: Vec<(String, Vec<&str>)> = Vec::new();
        for event in EVENTS {
            let mut play = Play::of(way);
            if !play.happens(event) {
                continue;
            }
            let to = state(play.app(), &play.server);
            match exits.iter_mut().find(|(state, _)| *state == to) {
                _ if to == name => {}
                Some((_, events)) => events.push(event),
                None => exits.push((to, vec![event])),
            }
        }
        assert!(!exits.is_empty(), "nothing leads out of {name}");
        let exits: Vec<String> =
            exits.iter().map(|(to, events)| format!("{} → **{to}**", events.join(", "))).collect();
        let _ = writeln!(text, "| **{name}** | {} |", exits.join("; "));
    }
    text
}

#[test]
fn the_table_of_states_is_what_the_core_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("STATES.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, written) = text.split_at(text.find("| state |").expect("there is the table"));
    let table = table();
    if std::env::var_os("HIGHBALL_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{table}")).unwrap();
    } else {
        assert_eq!(written, table, "HIGHBALL_BLESS=1 writes it");
    }
}

/// Each worker loads the application. One mold dies, and then the worker that boots: another mold boots by then.
#[test]
fn a_mold_that_boots_while_a_worker_fails_to_boot_has_nothing_to_do_with_the_next_attempt() {
    for reported in ["before the diagnosis", "after the diagnosis"] {
        let mut play = Play::begin(AppConfig { preload: false, ..app() });
        let boot = play.booting().unwrap();
        play.tell_app(AppEvent::MoldBooted { boot, app: None });
        play.ends(Process::Mold(boot));
        let boot = play.booting().expect("another mold boots");
        while let Some(worker) = play.worker(|state| state == WorkerState::Forking) {
            play.tell_app(AppEvent::WorkerHello { worker });
            play.ends(Process::Worker(worker));
        }
        let invented = Some(Arc::new(samples::booted(true)));
        if reported == "before the diagnosis" {
            play.tell_app(AppEvent::MoldBooted { boot, app: invented.clone() });
        }
        assert!(play.happens("diagnosed"));
        play.tell_app(AppEvent::MoldBooted { boot, app: invented });
        let app = play.app();
        assert!(app.condition.is_failed() && !app.current.has_booted(), "{reported}: {:?}", app.condition);
        assert!(app.molds.of(app.current.line()).is_none(), "{reported}: it would be forked from");
    }
}

/// An application that serves, and the numbers of its mold and of its first worker, which was forked before the heap was laid out.
fn forked_early() -> (Play, u32, u32) {
    let mut play = Play::begin(app());
    let boot = play.booting().unwrap();
    play.serves();
    let first = play.worker(|state| state == WorkerState::Serving).unwrap();
    (play, boot, first)
}

#[test]
fn the_first_worker_is_replaced_when_the_heap_is_laid_out_and_never_again() {
    let (mut play, boot, first) = forked_early();
    play.tell_app(AppEvent::MoldLaidOut { boot, worker: first });
    assert_eq!(play.app().staff.workers().counting(), 3);
    assert!(play.happens("worker ready"));
    assert_eq!(play.worker(|state| state == WorkerState::Retiring), Some(first));
    let second = play.worker(|state| state == WorkerState::Serving).unwrap();
    play.tell_app(AppEvent::MoldLaidOut { boot, worker: second });
    assert_eq!(play.app().staff.workers().counting(), 2);
    let counts = play.app().staff.replacements().counts().by_name();
    assert!(counts.iter().all(|(_, count)| *count == 0), "it is no fault: {counts:?}");
}

#[test]
fn the_first_worker_serves_on_where_the_front_keeps_it() {
    let (mut play, boot, first) = forked_early();
    play.tell_app(AppEvent::WorkerKept { worker: first }); // it was not to retire
    play.tell_app(AppEvent::MoldLaidOut { boot, worker: first });
    assert!(play.happens("worker ready"));
    play.tell_app(AppEvent::WorkerKept { worker: first });
    let kept = play.app().staff.get(first).unwrap();
    assert_eq!((kept.state, kept.deadline, kept.is_retired()), (WorkerState::Serving, None, false));
    assert_eq!(play.app().staff.workers().counting(), 2, "another one retires");
}

/// Anything may report that, whatever it has forked.
#[test]
fn workers_of_other_molds_are_not_replaced_for_that() {
    let (mut play, _, first) = forked_early();
    assert!(play.happens("`restart`"));
    let next = play.booting().unwrap();
    play.tell_app(AppEvent::MoldLaidOut { boot: next, worker: first }); // before it has booted
    assert!(play.happens("mold booted"));
    play.tell_app(AppEvent::MoldLaidOut { boot: next, worker: first });
    play.tell_app(AppEvent::MoldLaidOut { boot: 99, worker: first });
    assert!(play.app().staff.workers().iter().all(|(_, worker)| worker.replacement.is_none()));
}

#[test]
fn a_fault_of_the_first_worker_comes_before_its_early_fork() {
    let (mut play, boot, first) = forked_early();
    play.tell_app(AppEvent::MoldLaidOut { boot, worker: first });
    play.tell_app(AppEvent::ReplaceWorker { worker: first, cause: ReplacementCause::Asked });
    assert!(play.happens("worker ready"));
    assert_eq!(play.worker(|state| state == WorkerState::Retiring), Some(first));
    play.tell_app(AppEvent::WorkerKept { worker: first }); // of the early fork
    assert_eq!(play.worker(|state| state == WorkerState::Retiring), Some(first));
    assert!(play.app().staff.replacements().counts().by_name().contains(&("operator", 1)));
}

#[test]
fn a_refork_that_is_asked_for_at_the_start_chooses_the_first_worker_all_the_same() {
    let (mut play, boot, first) = forked_early();
    play.tell_app(AppEvent::MoldLaidOut { boot, worker: first });
    for event in ["`refork`", "worker named", "fit", "worker ready", "worker idle", "promoted"] {
        assert!(play.happens(event), "{event}");
    }
    let refork = play.app().reforks.going().unwrap();
    assert_eq!((refork.worker, refork.stage), (first, ReforkStage::Rolling));
}

fn app() -> AppConfig {
    AppConfig {
        name: "app".into(),
        source: Source::Folder,
        has_fault: false,
        folder: PathBuf::new(),
        link: PathBuf::new(),
        is_development: false,
        workers: 2,
        pool: None,
        threads: 3,
        prestart: true,
        preload: true,
        boot_timeout: Duration::from_secs(60),
        probe_timeout: Duration::from_secs(10),
        probe_path: "/".into(),
        drain_timeout: Duration::from_secs(30),
        max_boot_failures: 3,
        refork_after: ReforkAfter::Never,
        rest_mold_after: None,
        may_fail: true,
        companions: Vec::new(),
    }
}
