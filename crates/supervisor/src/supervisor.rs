//! The supervisor's loop: one event at a time, then whatever the new state asks for.
//!
//! What it does about molds stands in [`booting`], about workers in [`staffing`], about restarts in [`restarting`],
//! about reforks in [`reforking`], about hot restarts in [`upgrading`], about stopping in [`ending`]; about a static
//! site, which has none of these but restarts, in [`serving_site`].

mod booting;
mod ending;
mod mending;
mod reforking;
mod restarting;
mod serving_site;
mod staffing;
mod upgrading;

use self::mending::Broken;
use crate::checkpoint;
use crate::diagnosis::Diagnosis;
use crate::event::{Event, Said, Who};
use crate::mold::{Mold, MoldSource, MoldState};
use crate::process_table::ProcessTable;
use crate::reaper::{reap, Ending};
use crate::refork::{Refork, ReforkCause, Schedule};
use crate::report::{AskedHeap, MoldReport, ReforkReport, Report, WorkerReport};
use crate::restart::{Asked, Generation, PastRestarts, Restart, Wish, BACKTRACE_LINES};
use crate::restart_file::RestartFile;
use crate::restart_policy::RestartPolicy;
use crate::signals::{Received, Signals};
use crate::stand_in::StandIn;
use crate::worker_handle::WorkerState;
use crate::{Notice, Order};
use highball_config::{App, Settings};
use highball_ring::Geometry;
use rustix::process::{getpid, set_child_subreaper, Pid};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::{debug, error, warn};
use upgrading::Upgrades;

/// Events that may wait for the loop; watchers wait when it is full.
const EVENTS: usize = 256;
/// Children reaped per turn of the loop.
const REAP_AT_A_TIME: usize = 128;
/// Signals closer together than this are one: `timeout`, process managers and terminals that signal both us and
/// our group deliver each twice.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// What the supervisor is built from.
#[derive(Debug)]
pub struct Blueprint {
    /// The resolved settings.
    pub settings: Arc<Settings>,
    /// The application, which is one of those.
    pub app: Arc<App>,
    /// Where the mold comes from.
    pub source: MoldSource,
    /// The size of each worker's ring.
    pub geometry: Geometry,
    /// What the application is booted for.
    pub purpose: Purpose,
}

/// What an application is booted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be served. Where it does not boot in development it is waited for, until people have mended it.
    Serve,
    /// To be served in the place of another process, which serves on if it does not boot.
    Succeed,
    /// To be looked at, once: the mold tells what will make trouble later, and a boot that fails is the end.
    Examine,
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// Every request was answered.
    Drained,
    /// There was nothing to wait for, or the user did not want to (Ctrl-C in development).
    Stopped,
    /// The time for draining was over, or a second signal came: workers were killed.
    Halted,
    /// The application did not boot the first time.
    BootFailed(Box<Diagnosis>),
    /// Processes kept dying before they served; the last reason.
    BootLoop(String),
    /// The caller that was the mold has gone.
    CallerGone,
    /// Another process has taken over, and nothing is left here but to stand in for it.
    HandedOver(Box<StandIn>),
}

/// Where the run is.
#[derive(Debug)]
enum Phase {
    /// Molds and workers are kept alive.
    Running,
    /// The front finishes what is in flight, until then.
    Draining(Instant),
    /// Workers were told to exit, by then. `curt`: and it is no failure to be killed then, because the user
    /// wanted it (Ctrl-C in development).
    Finishing { until: Instant, curt: bool },
    /// Everything was killed; it is gone by then, or is left behind.
    Ending(Instant, Outcome),
}

/// The process path of one application.
pub struct Supervisor {
    settings: Arc<Settings>,
    app: Arc<App>,
    source: MoldSource,
    geometry: Geometry,

    phase: Phase,
    /// When the first signal to end came.
    signalled_at: Option<Instant>,
    /// The version that is served; after a restart was begun, and before it has succeeded, still the one before.
    current: Generation,
    boots: u32,
    /// When the current version's mold is started, if there is none.
    mold_due: Instant,
    mold_policy: RestartPolicy,
    /// Molds that nothing is forked from any more, until they are gone.
    leaving_molds: Vec<Mold>,
    workers: ProcessTable,
    /// How many workers there should be.
    wanted: u16,
    /// No worker is forked before this.
    fork_due: Instant,
    worker_policy: RestartPolicy,
    restart: Option<Restart>,
    /// The restart that is begun next.
    wish: Option<Wish>,
    past_restarts: PastRestarts,
    last_generation: u32,
    last_line: u32,
    refork: Option<Refork>,
    /// Reforks that were begun.
    reforks: u32,
    last_refork: Option<ReforkReport>,
    schedule: Schedule,
    /// Whether the front counts requests for the schedule.
    counts_requests: bool,
    /// Why workers of this version cannot be forked from.
    unfit: Option<String>,
    restart_file: RestartFile,
    upgrades: Upgrades,
    last_failure: Option<String>,
    /// The last boot that failed.
    diagnosis: Option<Diagnosis>,
    purpose: Purpose,
    broken: Option<Broken>,

    events: mpsc::Receiver<Event>,
    events_in: mpsc::Sender<Event>,
    notices: mpsc::Sender<Notice>,
}

impl Supervisor {
    /// Makes a supervisor that says `notices`. Nothing is started before [`Supervisor::run`].
    pub fn new(blueprint: Blueprint, notices: mpsc::Sender<Notice>) -> Supervisor {
        let Blueprint { settings, app, source, geometry, purpose } = blueprint;
        let (events_in, events) = mpsc::channel(EVENTS);
        let policy = || RestartPolicy::new(app.process.max_boot_failures);
        let now = Instant::now();
        Supervisor {
            current: Generation { number: 1, line: 1, folder: app.folder.clone(), app: None, mold: None },
            leaving_molds: Vec::new(),
            wanted: if matches!(source, MoldSource::Site) { 0 } else { app.workers },
            restart: None,
            wish: None,
            past_restarts: PastRestarts::default(),
            last_generation: 1,
            last_line: 1,
            refork: None,
            reforks: 0,
            last_refork: None,
            schedule: Schedule::new(app.process.refork_after.clone()),
            counts_requests: false,
            unfit: None,
            restart_file: RestartFile::of(&app.link, now),
            upgrades: Upgrades::default(),
            mold_policy: policy(),
            worker_policy: policy(),
            source,
            geometry,
            phase: Phase::Running,
            signalled_at: None,
            boots: 0,
            mold_due: now,
            workers: ProcessTable::default(),
            fork_due: now,
            last_failure: None,
            diagnosis: None,
            purpose,
            broken: None,
            events,
            events_in,
            notices,
            settings,
            app,
        }
    }

    /// Runs until everything has ended.
    ///
    /// # Errors
    /// Only what the system refuses at the very beginning: signals, or becoming a subreaper.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) -> io::Result<Outcome> {
        set_child_subreaper(Some(getpid()))?;
        let mut signals = Signals::listen()?;
        loop {
            self.advance(Instant::now()).await;
            if let Phase::Ending(until, _) = self.phase {
                let is_empty =
                    self.workers.is_empty() && self.molds().next().is_none() && !self.upgrades.is_leaving();
                if is_empty || Instant::now() >= until {
                    break;
                }
            }
            let deadline = self.next_deadline();
            let event = tokio::select! {
                signal = signals.next() => Event::Signal(signal),
                Some(order) = orders.recv() => Event::Order(order),
                Some(event) = self.events.recv() => event,
                () = sleep_until(deadline) => Event::Deadline,
            };
            self.handle(event).await;
        }
        if let Some(succession) = self.upgrades.succession.take() {
            let drain_time = 2 * self.settings.drain_timeout;
            let (events, events_in) = (self.events, self.events_in);
            return Ok(Outcome::HandedOver(Box::new(StandIn {
                succession,
                signals,
                events,
                events_in,
                drain_time,
            })));
        }
        match self.phase {
            Phase::Ending(_, outcome) => Ok(outcome),
            _ => Ok(Outcome::Halted),
        }
    }

    async fn handle(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Signal(signal) if self.pass_on(signal, now).await => {}
            Event::Signal(Received::ChildEnded) => self.reap(now).await,
            Event::Signal(Received::Hangup) => self.notify(Notice::ReopenLogs).await,
            Event::Signal(Received::Restart) => drop(self.ask_restart(Asked::Signal)),
            Event::Signal(Received::Refork) => drop(self.ask_refork(ReforkCause::Signal, now).await),
            Event::Signal(Received::Upgrade) => drop(self.ask_upgrade("USR2", now)),
            Event::Signal(Received::MoreWorkers) => self.want_workers(1),
            Event::Signal(Received::FewerWorkers) => self.want_workers(-1),
            Event::Signal(signal) => self.signalled(signal, now).await,
            Event::Order(order) => self.ordered(order, now).await,
            Event::Said(Said::Mold { boot, message }) => self.mold_said(boot, message, now).await,
            Event::Said(Said::Worker { worker, message, descriptors }) => {
                self.worker_said(worker, message, descriptors, now).await;
            }
            Event::Said(Said::Successor(message)) => self.successor_said(message, now).await,
            Event::Said(Said::Succeeded { pid, descriptors }) => {
                if let Some(succession) = &mut self.upgrades.succession {
                    succession.succeeded(pid, descriptors, &self.events_in);
                }
            }
            Event::Said(Said::Nonsense(who, error)) => self.halt_mad(who, &error, now).await,
            Event::Said(Said::Closed(who)) => self.closed(who, now).await,
            Event::Ended(who) => {
                self.reap(now).await;
                self.ended(who, Ending::Unknown, now).await; // does nothing if it was just reaped
            }
            Event::Deadline => {}
        }
    }

    /// Starts what should be started and ends what has taken too long.
    async fn advance(&mut self, now: Instant) {
        self.enforce_deadlines(now).await;
        match self.phase {
            Phase::Running => {
                self.advance_restart(now).await;
                self.advance_refork(now).await;
                self.advance_upgrade(now);
                if self.needs_mold() && now >= self.mold_due {
                    self.boot(now).await;
                }
                self.retire_leaving(now).await;
                self.staff(now).await;
            }
            Phase::Draining(until) if now >= until => {
                warn!("requests were still in flight when the time for draining was over");
                self.end(Outcome::Halted, now);
            }
            Phase::Draining(_) => self.staff_for_drain(now).await,
            Phase::Finishing { curt, .. } if self.workers.is_empty() => {
                self.end(if curt { Outcome::Stopped } else { Outcome::Drained }, now);
            }
            Phase::Finishing { until, curt } if now >= until => {
                self.end(if curt { Outcome::Stopped } else { Outcome::Halted }, now);
            }
            Phase::Finishing { .. } | Phase::Ending(..) => {}
        }
    }

    async fn enforce_deadlines(&mut self, now: Instant) {
        for worker in self.workers.overdue(now) {
            self.worker_overdue(worker, now).await;
        }
        self.enforce_upgrade_deadlines(now);
        let overdue = self.molds().filter(|mold| mold.deadline.is_some_and(|at| now >= at));
        for boot in overdue.map(|mold| mold.boot).collect::<Vec<u32>>() {
            self.mold_overdue(boot, now).await;
        }
    }

    async fn worker_overdue(&mut self, worker: u32, now: Instant) {
        let Some(handle) = self.workers.get_mut(worker) else { return };
        let line = handle.line;
        match (handle.state, handle.ending()) {
            (_, Some(ending)) => self.worker_gone(worker, ending, now).await,
            (WorkerState::Forking, None) => {
                self.worker_gone(worker, Ending::Unknown, now).await;
                self.mold_is_stuck(line, now);
            }
            (WorkerState::Starting, None) if !self.app.process.preload => {
                self.worker_boots_too_long(worker, now)
            }
            (WorkerState::Probing, None) => self.canary_is_silent(worker, now).await,
            (WorkerState::Halted, None) => {
                error!(worker, "the worker cannot be killed; it is left to itself");
                self.worker_gone(worker, Ending::Unknown, now).await;
            }
            (state, None) => {
                warn!(worker, state = state.name(), "the worker took too long and is killed");
                handle.halt(now);
            }
        }
    }

    async fn mold_overdue(&mut self, boot: u32, now: Instant) {
        let limit = self.app.process.boot_timeout;
        let Some(mold) = self.mold_mut(boot) else { return };
        if let Some(ending) = mold.ending() {
            return self.mold_gone(boot, ending, now).await;
        }
        match &mold.state {
            MoldState::Booting(journey) => {
                let step = journey.step();
                warn!(%step, "the application takes too long to boot; these are its threads:");
                mold.dump(now);
            }
            MoldState::Dumping(journey) => {
                let failure = booting::too_slow(journey.step(), limit);
                mold.halt(now);
                self.boot_of_mold_failed(boot, failure, now).await;
            }
            MoldState::Booted => mold.deadline = None,
            MoldState::Halted => {
                error!("the mold cannot be killed; it is left to itself");
                self.mold_gone(boot, Ending::Unknown, now).await;
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => None,
            Phase::Draining(until) | Phase::Finishing { until, .. } | Phase::Ending(until, _) => Some(until),
        };
        let running = matches!(self.phase, Phase::Running);
        let boot = (running && self.needs_mold()).then_some(self.mold_due);
        let fork = (self.waits_to_fork() && self.fork_due > Instant::now()).then_some(self.fork_due);
        let leaving = running.then(|| self.workers.next_leaving()).flatten();
        let file = running.then_some(self.restart_file.due);
        let mold = self.molds().filter_map(|mold| mold.deadline).min();
        let refork = self.refork.as_ref().filter(|_| running).and_then(|refork| refork.deadline);
        let upgrade = self.upgrades.next_deadline();
        [phase, boot, fork, leaving, file, mold, refork, upgrade, self.workers.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Every mold that there is.
    fn molds(&self) -> impl Iterator<Item = &Mold> {
        let next = self.restart.as_ref().and_then(|restart| restart.next.mold.as_ref());
        self.current.mold.iter().chain(next).chain(self.promoted_mold()).chain(&self.leaving_molds)
    }

    fn mold_mut(&mut self, boot: u32) -> Option<&mut Mold> {
        let next = self.restart.as_mut().and_then(|restart| restart.next.mold.as_mut());
        let promoted = self.refork.as_mut().and_then(|refork| refork.mold.as_mut());
        let mut molds =
            self.current.mold.iter_mut().chain(next).chain(promoted).chain(&mut self.leaving_molds);
        molds.find(|mold| mold.boot == boot)
    }

    async fn reap(&mut self, now: Instant) {
        for (pid, ending) in reap(REAP_AT_A_TIME) {
            if let Some(worker) = self.workers.with_pid(pid) {
                self.ended(Who::Worker(worker), ending, now).await;
                continue;
            }
            let mold = self.molds().find(|mold| mold.pid == Some(pid)).map(|mold| mold.boot);
            match mold {
                Some(boot) => self.ended(Who::Mold(boot), ending, now).await,
                None => {
                    debug!(pid = pid.as_raw_pid(), %ending, "an orphan or a successor was reaped");
                    self.successor_ended(pid, ending, now).await;
                }
            }
        }
    }

    async fn ended(&mut self, who: Who, ending: Ending, now: Instant) {
        match who {
            Who::Worker(worker) => {
                let handle = self.workers.get_mut(worker);
                if let Some(ending) = handle.and_then(|handle| handle.ended(ending, now)) {
                    self.worker_gone(worker, ending, now).await;
                }
            }
            Who::Mold(boot) => {
                let mold = self.mold_mut(boot);
                if let Some(ending) = mold.and_then(|mold| mold.ended(ending, now)) {
                    self.mold_gone(boot, ending, now).await;
                }
            }
            Who::Successor(pid) => self.successor_ended(pid, ending, now).await,
            Who::Succeeded => {}
        }
    }

    /// Kills a process that says what cannot be understood; its end is noticed like any other.
    async fn halt_mad(&mut self, who: Who, error: &io::Error, now: Instant) {
        error!(?who, %error, "a process said what cannot be understood, and is killed");
        match who {
            Who::Worker(worker) => {
                if let Some(handle) = self.workers.get_mut(worker) {
                    handle.halt(now);
                }
            }
            Who::Mold(boot) => self.halt_mad_mold(boot, error, now).await,
            Who::Successor(pid) => self.successor_heard_out(pid, now),
            Who::Succeeded => {}
        }
    }

    /// A control socket was closed from the other side.
    async fn closed(&mut self, who: Who, now: Instant) {
        match who {
            Who::Worker(worker) => {
                let handle = self.workers.get_mut(worker);
                if let Some(ending) = handle.and_then(|handle| handle.heard_out(now)) {
                    self.worker_gone(worker, ending, now).await;
                }
            }
            Who::Mold(boot) => {
                if let Some(ending) = self.mold_mut(boot).and_then(Mold::heard_out) {
                    self.mold_gone(boot, ending, now).await;
                }
            }
            Who::Successor(pid) => self.successor_heard_out(pid, now),
            Who::Succeeded => {}
        }
    }

    async fn ordered(&mut self, order: Order, now: Instant) {
        match order {
            Order::WorkerBroken { worker, why } => {
                if let Some(handle) = self.workers.get_mut(worker) {
                    error!(worker, why, "the worker broke the rules of its ring and is killed");
                    self.last_failure = Some(format!("worker {worker} broke the rules of its ring: {why}"));
                    handle.halt(now);
                }
            }
            Order::WorkerIdle { worker } => {
                let until = now + self.settings.drain_timeout;
                if self.promotes(worker, now) {
                    return;
                }
                if let Some(handle) = self.workers.get_mut(worker) {
                    if handle.state == WorkerState::Retiring {
                        handle.drain(until);
                    }
                }
            }
            Order::AppWanted => self.app_wanted(now).await,
            Order::FrontDrained => {
                if let Phase::Draining(until) = self.phase {
                    checkpoint::pass("drain.front_drained").await;
                    self.finish(until, false);
                    checkpoint::pass("drain.workers_told").await;
                }
            }
            Order::CanaryAnswered { worker, answer } => self.canary_answered(worker, answer, now).await,
            Order::WorkerWarm { worker } => self.worker_warm(worker, now).await,
            Order::Refork(to) => {
                let _ = to.send(self.ask_refork(ReforkCause::Command, now).await);
                // the one who asked may have left
            }
            Order::Restart(to) => {
                let _ = to.send(self.ask_restart(Asked::Command)); // the one who asked may have left
            }
            Order::MayUpgrade(heritage) => self.may_be_succeeded(*heritage),
            Order::Upgrade(to) => {
                let _ = to.send(self.ask_upgrade("highball upgrade", now)); // as above
            }
            Order::Stop => self.drain(false, now).await,
            Order::Report(to) => {
                let _ = to.send(self.report(now)); // the one who asked may have left
            }
            Order::AskHeaps { gc, to } => {
                let _ = to.send(self.ask_heaps(gc)); // as above
            }
        }
    }

    /// Says something to the front. The front outlives the supervisor; if it is gone, the run is ending.
    async fn notify(&self, notice: Notice) {
        if self.notices.send(notice).await.is_err() {
            debug!("nobody listens to notices any more");
        }
    }

    /// Asks the mold and the workers for their heaps. Nothing is waited for here.
    fn ask_heaps(&mut self, gc: bool) -> Vec<AskedHeap> {
        let mold = self.current.mold.as_mut().map(|mold| AskedHeap {
            worker: None,
            pid: mold.pid.map(Pid::as_raw_pid),
            state: mold.state.name(),
            answer: mold.ask_heap(),
        });
        let workers = self.workers.iter_mut().map(|(worker, handle)| AskedHeap {
            worker: Some(worker),
            pid: handle.pid.map(Pid::as_raw_pid),
            state: handle.state.name(),
            answer: handle.ask_heap(gc),
        });
        mold.into_iter().chain(workers).collect()
    }

    fn report(&self, now: Instant) -> Report {
        let phase = match self.phase {
            Phase::Running if self.is_site() && self.current.app.is_some() => "serving",
            Phase::Running if self.workers.iter().any(|(_, handle)| handle.was_ready()) => "serving",
            Phase::Running if self.broken.is_some() => "failed",
            Phase::Running => "booting",
            Phase::Draining(_) | Phase::Finishing { .. } => "draining",
            Phase::Ending(..) => "ending",
        };
        let workers = self.workers.iter().map(|(worker, handle)| WorkerReport {
            worker,
            generation: handle.generation,
            pid: handle.pid.map(Pid::as_raw_pid),
            state: handle.state.name(),
            threads: self.app.threads,
            uptime: now - handle.forked_at,
        });
        Report {
            phase,
            app: self.current.app.clone(),
            folder: self.current.folder.clone(),
            generation: self.current.number,
            mold: self.current.mold.as_ref().map(MoldReport::of),
            wanted: self.wanted,
            workers: workers.collect(),
            restartable: self.current.app.as_ref().map(|app| app.restartable),
            restarts: self.restart_reports(now),
            refork: self.refork_report(now),
            no_refork: self.unfit.clone(),
            upgrade: self.upgrades.report(now),
            successor: self.upgrades.succession.as_ref().map(|succession| succession.pid().as_raw_pid()),
            last_failure: self.last_failure.clone(),
            diagnosis: self.diagnosis.clone(),
        }
    }
}

/// What is wrong with a process that tells its heap without having been asked.
fn unasked() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it answers what it was not asked")
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
