//! The supervisor's loop: one event at a time, then whatever the new state asks for.
//!
//! What it does about molds stands in [`booting`], about workers in [`staffing`], about stopping in [`ending`].

mod booting;
mod ending;
mod staffing;

use crate::event::{Event, Said, Who};
use crate::message::{BootFailure, Booted};
use crate::mold::{Mold, MoldSource, MoldState};
use crate::process_table::ProcessTable;
use crate::reaper::{reap, Ending};
use crate::report::{AskedHeap, MoldReport, Report, WorkerReport};
use crate::restart_policy::RestartPolicy;
use crate::signals::{Received, Signals};
use crate::worker_handle::WorkerState;
use crate::{Notice, Order};
use highball_config::Settings;
use highball_ring::Geometry;
use rustix::process::{getpid, set_child_subreaper, Pid};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::{debug, error, warn};

/// Events that may wait for the loop; watchers wait when it is full.
const EVENTS: usize = 256;
/// Children reaped per turn of the loop.
const REAP_AT_A_TIME: usize = 128;
/// Signals closer together than this are one: `timeout`, process managers and terminals that signal both us and
/// our group deliver each twice.
const SAME_SIGNAL: Duration = Duration::from_millis(500);
/// Lines of a backtrace that are logged.
const BACKTRACE_LINES: usize = 20;

/// What the supervisor is built from.
#[derive(Debug)]
pub struct Blueprint {
    /// The resolved settings.
    pub settings: Arc<Settings>,
    /// Where the mold comes from.
    pub source: MoldSource,
    /// The size of each worker's ring.
    pub geometry: Geometry,
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
    BootFailed(BootFailure),
    /// Processes kept dying before they served; the last reason.
    BootLoop(String),
    /// The caller that was the mold has gone.
    CallerGone,
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
    source: MoldSource,
    geometry: Geometry,

    phase: Phase,
    /// When the first signal to end came.
    signalled_at: Option<Instant>,
    mold: Option<Mold>,
    boots: u32,
    /// When the next mold is started, if there is none.
    mold_due: Instant,
    mold_policy: RestartPolicy,
    app: Option<Booted>,
    workers: ProcessTable,
    /// No worker is forked before this.
    fork_due: Instant,
    worker_policy: RestartPolicy,
    last_failure: Option<String>,

    events: mpsc::Receiver<Event>,
    events_in: mpsc::Sender<Event>,
    notices: mpsc::Sender<Notice>,
}

impl Supervisor {
    /// Makes a supervisor that says `notices`. Nothing is started before [`Supervisor::run`].
    pub fn new(blueprint: Blueprint, notices: mpsc::Sender<Notice>) -> Supervisor {
        let Blueprint { settings, source, geometry } = blueprint;
        let (events_in, events) = mpsc::channel(EVENTS);
        let policy = || RestartPolicy::new(settings.process.max_boot_failures);
        Supervisor {
            mold_policy: policy(),
            worker_policy: policy(),
            source,
            geometry,
            phase: Phase::Running,
            signalled_at: None,
            mold: None,
            boots: 0,
            mold_due: Instant::now(),
            app: None,
            workers: ProcessTable::default(),
            fork_due: Instant::now(),
            last_failure: None,
            events,
            events_in,
            notices,
            settings,
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
                if (self.workers.is_empty() && self.mold.is_none()) || Instant::now() >= until {
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
        match self.phase {
            Phase::Ending(_, outcome) => Ok(outcome),
            _ => Ok(Outcome::Halted),
        }
    }

    async fn handle(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Signal(Received::ChildEnded) => self.reap(now).await,
            Event::Signal(Received::Hangup) => warn!("HUP means nothing to this version, and is ignored"),
            Event::Signal(signal) => self.signalled(signal, now).await,
            Event::Order(order) => self.ordered(order, now).await,
            Event::Said(Said::Mold { boot, message }) => {
                if self.mold.as_ref().is_some_and(|mold| mold.boot == boot) {
                    self.mold_said(message, now).await;
                }
            }
            Event::Said(Said::Worker { worker, message, descriptors }) => {
                self.worker_said(worker, message, descriptors, now).await;
            }
            Event::Said(Said::Nonsense(who, error)) => self.halt_mad(who, &error, now),
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
                if self.mold.is_none() && now >= self.mold_due {
                    self.boot(now).await;
                }
                self.retire_leaving(now).await;
                self.staff(now).await;
            }
            Phase::Draining(until) if now >= until => {
                warn!("requests were still in flight when the time for draining was over");
                self.end(Outcome::Halted, now);
            }
            Phase::Draining(_) => self.staff(now).await,
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
            let Some(handle) = self.workers.get_mut(worker) else { continue };
            match (handle.state, handle.ending()) {
                (_, Some(ending)) => self.worker_gone(worker, ending, now).await,
                (WorkerState::Forking, None) => {
                    self.worker_gone(worker, Ending::Unknown, now).await;
                    self.mold_is_stuck(now);
                }
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
        let Some(mold) = &mut self.mold else { return };
        if mold.deadline.is_none_or(|at| now < at) {
            return;
        }
        if let Some(ending) = mold.ending() {
            return self.mold_gone(ending, now);
        }
        match &mold.state {
            MoldState::Booting(journey) => {
                let step = journey.step();
                warn!(%step, "the application takes too long to boot; these are its threads:");
                mold.dump(now);
            }
            MoldState::Dumping(journey) => {
                let failure = booting::too_slow(journey.step(), self.settings.process.boot_timeout);
                mold.halt(now);
                self.boot_failed(failure, now);
            }
            MoldState::Booted => mold.deadline = None,
            MoldState::Halted => {
                error!("the mold cannot be killed; it is left to itself");
                self.mold = None;
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => None,
            Phase::Draining(until) | Phase::Finishing { until, .. } | Phase::Ending(until, _) => Some(until),
        };
        let running = matches!(self.phase, Phase::Running);
        let boot = (running && self.mold.is_none()).then_some(self.mold_due);
        let fork = (self.is_short_of_workers() && self.fork_due > Instant::now()).then_some(self.fork_due);
        let leaving = running.then(|| self.workers.next_leaving()).flatten();
        let mold = self.mold.as_ref().and_then(|mold| mold.deadline);
        [phase, boot, fork, leaving, mold, self.workers.next_deadline()].into_iter().flatten().min()
    }

    async fn reap(&mut self, now: Instant) {
        for (pid, ending) in reap(REAP_AT_A_TIME) {
            if let Some(worker) = self.workers.with_pid(pid) {
                self.ended(Who::Worker(worker), ending, now).await;
            } else if let Some(mold) = self.mold.as_ref().filter(|mold| mold.pid == Some(pid)) {
                self.ended(Who::Mold(mold.boot), ending, now).await;
            } else {
                debug!(pid = pid.as_raw_pid(), %ending, "an orphan was reaped");
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
                let mold = self.mold.as_mut().filter(|mold| mold.boot == boot);
                if let Some(ending) = mold.and_then(|mold| mold.ended(ending, now)) {
                    self.mold_gone(ending, now);
                }
            }
        }
    }

    /// Kills a process that says what cannot be understood; its end is noticed like any other.
    fn halt_mad(&mut self, who: Who, error: &io::Error, now: Instant) {
        error!(?who, %error, "a process said what cannot be understood, and is killed");
        match who {
            Who::Worker(worker) => {
                if let Some(handle) = self.workers.get_mut(worker) {
                    handle.halt(now);
                }
            }
            Who::Mold(boot) => {
                if let Some(mold) = self.mold.as_mut().filter(|mold| mold.boot == boot) {
                    mold.halt(now);
                }
            }
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
                let mold = self.mold.as_mut().filter(|mold| mold.boot == boot);
                if let Some(ending) = mold.and_then(Mold::heard_out) {
                    self.mold_gone(ending, now);
                }
            }
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
                let until = now + self.settings.process.drain_timeout;
                if let Some(handle) = self.workers.get_mut(worker) {
                    if handle.state == WorkerState::Retiring {
                        handle.drain(until);
                    }
                }
            }
            Order::FrontDrained => {
                if let Phase::Draining(until) = self.phase {
                    self.finish(until, false);
                }
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
        let mold = self.mold.as_mut().map(|mold| AskedHeap {
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
            Phase::Running if self.workers.iter().any(|(_, handle)| handle.was_ready()) => "serving",
            Phase::Running => "booting",
            Phase::Draining(_) | Phase::Finishing { .. } => "draining",
            Phase::Ending(..) => "ending",
        };
        let workers = self.workers.iter().map(|(worker, handle)| WorkerReport {
            worker,
            pid: handle.pid.map(Pid::as_raw_pid),
            state: handle.state.name(),
            threads: self.settings.threads,
            uptime: now - handle.forked_at,
        });
        Report {
            phase,
            app: self.app.clone(),
            mold: self
                .mold
                .as_ref()
                .map(|mold| MoldReport { pid: mold.pid.map(Pid::as_raw_pid), state: mold.state.name() }),
            workers: workers.collect(),
            restartable: self.app.as_ref().map(|app| app.restartable),
            last_failure: self.last_failure.clone(),
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
