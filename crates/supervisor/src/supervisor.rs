//! The supervisor's loop: one event at a time, then whatever the new state asks for.

use crate::control_socket::ControlSocket;
use crate::event::{watch_worker, Event, HeldProcess, Said, Who};
use crate::message::{BootFailure, Booted, FromMold, FromWorker, RubyError};
use crate::mold::{Mold, MoldSource, MoldState};
use crate::process_table::ProcessTable;
use crate::reaper::{reap, Ending};
use crate::report::{MoldReport, Report, WorkerReport};
use crate::restart_policy::{Life, RestartPolicy, Verdict};
use crate::signals::{Received, Signals};
use crate::spawn_journey::Step;
use crate::worker_handle::{WorkerHandle, WorkerState};
use crate::{Notice, Order};
use highball_config::Settings;
use highball_ring::Geometry;
use rustix::process::{getpid, set_child_subreaper, Pid};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::{debug, error, info, warn};

/// Events that may wait for the loop; watchers wait when it is full.
const EVENTS: usize = 256;
/// Forks under way at a time: their messages and descriptors fit into the mold's control socket.
const FORKS_AT_A_TIME: usize = 8;
/// Children reaped per turn of the loop.
const REAP_AT_A_TIME: usize = 128;
/// How long a worker may go on after Ctrl-C in development.
const CURT_DRAIN: Duration = Duration::from_millis(500);
/// Signals closer together than this are one: `timeout`, process managers and terminals that signal both us and
/// our group deliver each twice.
const SAME_SIGNAL: Duration = Duration::from_millis(500);
/// Lines of a backtrace that are logged.
const BACKTRACE_LINES: usize = 20;
/// How long killed processes may take to be gone at the very end.
const END_TIME: Duration = Duration::from_secs(3);

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
    /// Every request was answered, or there was nothing to wait for.
    Drained,
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
    /// Workers were told to exit, by then.
    Finishing(Instant),
    /// Everything was killed; it is gone by then, or is left behind.
    Ending(Instant, Outcome),
}

/// The process path of one application.
pub struct Supervisor {
    settings: Arc<Settings>,
    gem_lib: Option<std::path::PathBuf>,
    caller: Option<OwnedFd>,
    geometry: Geometry,

    phase: Phase,
    /// Whether a killed worker at the end is what the user asked for (Ctrl-C in development).
    curt: bool,
    first_signal: Instant,
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
        let (gem_lib, caller) = match source {
            MoldSource::Folder { gem_lib } => (Some(gem_lib), None),
            MoldSource::Caller(socket) => (None, Some(socket)),
        };
        let policy = || RestartPolicy::new(settings.process.max_boot_failures);
        Supervisor {
            mold_policy: policy(),
            worker_policy: policy(),
            gem_lib,
            caller,
            geometry,
            phase: Phase::Running,
            curt: false,
            first_signal: Instant::now(),
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
            Event::Said(Said::Closed(who)) => self.closed(who, now).await,
            Event::Ended(who) => {
                self.reap(now).await;
                self.ended(who, Ending::Unknown, now).await; // does nothing if it was just reaped
            }
            Event::Deadline => {}
        }
    }

    // --- What the state asks for -------------------------------------------------------------------

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
            Phase::Finishing(_) if self.workers.is_empty() => self.end(Outcome::Drained, now),
            Phase::Finishing(until) if now >= until => {
                let outcome = if self.curt { Outcome::Drained } else { Outcome::Halted };
                self.end(outcome, now);
            }
            Phase::Finishing(_) | Phase::Ending(..) => {}
        }
    }

    async fn enforce_deadlines(&mut self, now: Instant) {
        for worker in self.workers.overdue(now) {
            let Some(handle) = self.workers.get_mut(worker) else { continue };
            match handle.state {
                WorkerState::Halted => {
                    error!(worker, "the worker cannot be killed; it is left to itself");
                    self.worker_ended(worker, Ending::Unknown, now).await;
                }
                state => {
                    warn!(worker, state = state.name(), "the worker took too long and is killed");
                    handle.halt(now);
                }
            }
        }
        let Some(mold) = &mut self.mold else { return };
        if mold.deadline.is_none_or(|at| now < at) {
            return;
        }
        match &mold.state {
            MoldState::Booting(journey) => {
                let step = journey.step();
                warn!(%step, "the application takes too long to boot; these are its threads:");
                mold.dump(now);
            }
            MoldState::Dumping(journey) => {
                let failure = too_slow(journey.step(), self.settings.process.boot_timeout);
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
            Phase::Draining(until) | Phase::Finishing(until) | Phase::Ending(until, _) => Some(until),
        };
        let running = matches!(self.phase, Phase::Running);
        let boot = (running && self.mold.is_none()).then_some(self.mold_due);
        let fork = (self.is_short_of_workers() && self.fork_due > Instant::now()).then_some(self.fork_due);
        let leaving = running.then(|| self.workers.next_leaving()).flatten();
        let mold = self.mold.as_ref().and_then(|mold| mold.deadline);
        [phase, boot, fork, leaving, mold, self.workers.next_deadline()].into_iter().flatten().min()
    }

    // --- Booting -----------------------------------------------------------------------------------

    async fn boot(&mut self, now: Instant) {
        self.boots += 1;
        let spawned = match (&self.gem_lib, self.caller.take()) {
            (Some(gem_lib), _) => {
                info!(app = %self.settings.app.display(), environment = self.settings.environment, "booting");
                Mold::spawn(&self.settings, gem_lib, self.boots, &self.events_in)
            }
            (None, Some(socket)) => Mold::adopt(socket, &self.settings, &self.events_in),
            (None, None) => return self.end(Outcome::CallerGone, now),
        };
        match spawned {
            Ok(mold) => self.mold = Some(mold),
            Err(error) => self.boot_failed(no_ruby(&self.settings, &error), now),
        }
    }

    async fn mold_said(&mut self, message: FromMold, now: Instant) {
        let Some(mold) = &mut self.mold else { return };
        match (message, &mut mold.state) {
            (FromMold::Step { step }, MoldState::Booting(journey)) => {
                let before = journey.step();
                let took = journey.enter(step, now);
                debug!(step = %before, took_ms = took.as_millis() as u64, "boot step done");
            }
            (FromMold::Booted(app), MoldState::Booting(journey)) => {
                let took_ms = journey.elapsed(now).as_millis() as u64;
                info!(framework = app.framework, ruby = app.ruby, pid = app.pid, took_ms, "booted");
                mold.state = MoldState::Booted;
                mold.deadline = None;
                mold.pid = Pid::from_raw(app.pid);
                self.mold_policy.ready();
                self.app = Some(app.clone());
                self.notify(Notice::AppBooted(app)).await;
            }
            (FromMold::Failed(failure), MoldState::Booting(_) | MoldState::Dumping(_)) => {
                mold.ends(now);
                self.boot_failed(failure, now);
            }
            (FromMold::ForkFailed { worker, message }, _) => {
                error!(worker, error = message, "the worker could not be forked");
                self.last_failure = Some(format!("a worker could not be forked: {message}"));
                self.worker_ended(worker, Ending::Unknown, now).await;
            }
            (FromMold::Stop, _) => self.drain(false, now).await,
            (message, state) => {
                warn!(state = state.name(), ?message, "the mold said this at the wrong time");
            }
        }
    }

    /// The first boot has to succeed; after it, boots are repeated while the workers that there are serve.
    fn boot_failed(&mut self, failure: BootFailure, now: Instant) {
        self.last_failure = Some(format!("{} failed: {}", failure.step, failure.error));
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        error!(
            step = %failure.step,
            error = %failure.error,
            at = failure.error.place(),
            backtrace = failure.error.calls(BACKTRACE_LINES),
            remedy = failure.remedy,
            "the application did not boot"
        );
        if self.app.is_none() {
            return self.end(Outcome::BootFailed(failure), now);
        }
        self.postpone_boot(Life::NeverReady, now);
    }

    fn postpone_boot(&mut self, life: Life, now: Instant) {
        let others_serve = self.workers.in_state(WorkerState::Serving) > 0;
        match self.mold_policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => self.mold_due = now + delay,
            Verdict::GiveUp => self.give_up("boots", self.mold_policy.boot_failures(), now),
        }
    }

    fn give_up(&mut self, what: &str, failures: u32, now: Instant) {
        let last = self.last_failure.clone().unwrap_or_default();
        self.end(Outcome::BootLoop(format!("{failures} {what} in a row have failed; {last}")), now);
    }

    // --- Workers -----------------------------------------------------------------------------------

    /// Forks the workers that are missing.
    async fn staff(&mut self, now: Instant) {
        while self.is_short_of_workers()
            && now >= self.fork_due
            && self.mold.as_ref().is_some_and(|mold| matches!(mold.state, MoldState::Booted))
            && self.workers.in_state(WorkerState::Forking) < FORKS_AT_A_TIME
        {
            self.fork(now).await;
        }
    }

    fn is_short_of_workers(&self) -> bool {
        let wanted = match self.phase {
            Phase::Running => self.settings.workers.into(),
            Phase::Draining(_) => 1, // enough to answer what is in flight, should all have died
            Phase::Finishing(_) | Phase::Ending(..) => 0,
        };
        self.workers.counting() < wanted
    }

    /// Replaces the workers that were sent TERM.
    async fn retire_leaving(&mut self, now: Instant) {
        let limit = self.settings.process.drain_timeout;
        for worker in self.workers.leaving(now) {
            if self.workers.get_mut(worker).is_some_and(|handle| handle.retire(now, limit)) {
                info!(worker, "the worker was sent TERM and is replaced");
                self.notify(Notice::WorkerRetiring { worker }).await;
            }
        }
    }

    async fn fork(&mut self, now: Instant) {
        let worker = self.workers.next_number();
        match self.try_fork(worker, now) {
            Ok(handle) => self.workers.insert(worker, handle),
            Err(error) => {
                error!(worker, %error, "the worker could not be forked");
                self.last_failure = Some(format!("a worker could not be forked: {error}"));
                self.postpone_fork(Life::NeverReady, now);
            }
        }
    }

    fn try_fork(&self, worker: u32, now: Instant) -> io::Result<WorkerHandle> {
        let mold = self.mold.as_ref().ok_or_else(|| io::Error::other("there is no mold"))?;
        let (ring, fds) = highball_ring::create(self.geometry).map_err(io::Error::other)?;
        let (control, theirs) = ControlSocket::pair()?;
        let descriptors =
            [fds.memory.as_fd(), fds.wake_front.as_fd(), fds.descriptors.as_fd(), theirs.as_fd()];
        mold.fork(worker, self.settings.threads, &descriptors)?;
        let control = Arc::new(control);
        let watch = watch_worker(Arc::clone(&control), worker, self.events_in.clone());
        let limit = self.settings.process.boot_timeout;
        Ok(WorkerHandle::forking(control, watch, ring, now, limit))
    }

    async fn worker_said(
        &mut self,
        worker: u32,
        message: FromWorker,
        mut descriptors: Vec<OwnedFd>,
        now: Instant,
    ) {
        let Some(handle) = self.workers.get_mut(worker) else { return };
        match message {
            FromWorker::Hello { pid, .. } => {
                let held = descriptors
                    .pop()
                    .ok_or_else(|| io::Error::other("no pidfd came with it"))
                    .and_then(|fd| HeldProcess::hold(fd, Who::Worker(worker), self.events_in.clone()));
                match held {
                    Ok(process) => handle.exists(Pid::from_raw(pid), process),
                    Err(error) => error!(worker, %error, "the worker's hello is not usable"),
                }
            }
            FromWorker::Ready => {
                let (pid, took) = (handle.pid.map(Pid::as_raw_pid), now - handle.forked_at);
                let Some(ring) = handle.serve(now) else { return };
                info!(worker, pid, took_ms = took.as_millis() as u64, "worker ready");
                self.worker_policy.ready();
                let threads = self.settings.threads;
                self.notify(Notice::WorkerReady { worker, threads, ring }).await;
            }
            FromWorker::Failed { error } => {
                error!(
                    worker,
                    %error,
                    at = error.place(),
                    backtrace = error.calls(BACKTRACE_LINES),
                    "the worker could not start"
                );
                self.last_failure = Some(format!("a worker could not start: {error}"));
            }
            FromWorker::Leaving => {
                // Not at once: a TERM to the whole group reaches the workers before it has reached us, and then
                // they are needed to answer what is in flight.
                handle.leaves_at = Some(now + SAME_SIGNAL);
            }
        }
    }

    async fn worker_ended(&mut self, worker: u32, ending: Ending, now: Instant) {
        let Some(handle) = self.workers.remove(worker) else { return };
        let pid = handle.pid.map(Pid::as_raw_pid);
        if handle.was_ready() {
            self.notify(Notice::WorkerGone { worker }).await;
        }
        match (handle.state, &self.phase) {
            (WorkerState::Draining | WorkerState::Halted, _) | (_, Phase::Ending(..)) => {
                debug!(worker, pid, %ending, "worker gone");
            }
            _ => warn!(worker, pid, %ending, state = handle.state.name(), "the worker died"),
        }
        let expected = handle.state == WorkerState::Draining && ending == Ending::Exited(0);
        if matches!(self.phase, Phase::Running | Phase::Draining(_)) && !expected {
            self.postpone_fork(handle.life(now), now);
        }
    }

    fn postpone_fork(&mut self, life: Life, now: Instant) {
        let others_serve = self.workers.in_state(WorkerState::Serving) > 0;
        match self.worker_policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => self.fork_due = self.fork_due.max(now + delay),
            Verdict::GiveUp => self.give_up("workers", self.worker_policy.boot_failures(), now),
        }
    }

    // --- Ends --------------------------------------------------------------------------------------

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
            Who::Worker(worker) => self.worker_ended(worker, ending, now).await,
            Who::Mold(boot) if self.mold.as_ref().is_some_and(|mold| mold.boot == boot) => {
                self.mold_ended(ending, now);
            }
            Who::Mold(_) => {}
        }
    }

    fn mold_ended(&mut self, ending: Ending, now: Instant) {
        let Some(mold) = self.mold.take() else { return };
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        match mold.state {
            _ if mold.is_caller() => self.drop_everything(Outcome::CallerGone, now),
            MoldState::Booting(journey) | MoldState::Dumping(journey) => {
                self.boot_failed(died_while_booting(journey.step(), ending), now);
            }
            MoldState::Booted => {
                warn!(%ending, "the mold died; the workers serve on while a new one boots");
                self.postpone_boot(Life::Ready(Duration::from_secs(1)), now);
            }
            MoldState::Halted => {}
        }
    }

    /// A control socket was closed from the other side.
    async fn closed(&mut self, who: Who, now: Instant) {
        match who {
            Who::Worker(worker) => match self.workers.get_mut(worker) {
                Some(handle) if handle.state == WorkerState::Forking => {
                    self.worker_ended(worker, Ending::Unknown, now).await;
                }
                Some(handle) => handle.closed(now),
                None => {}
            },
            Who::Mold(boot) => {
                if self.mold.as_ref().is_some_and(|mold| mold.boot == boot && mold.is_caller()) {
                    self.mold_ended(Ending::Unknown, now);
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
                    self.finish(until);
                }
            }
            Order::Stop => self.drain(false, now).await,
            Order::Report(to) => {
                let _ = to.send(self.report(now)); // the one who asked may have left
            }
        }
    }

    async fn signalled(&mut self, signal: Received, now: Instant) {
        match self.phase {
            Phase::Running => {
                self.first_signal = now;
                let curt = signal == Received::Interrupt && self.settings.is_development();
                self.drain(curt, now).await;
            }
            Phase::Draining(_) | Phase::Finishing(_) if now >= self.first_signal + SAME_SIGNAL => {
                warn!("a second signal: halting");
                self.end(Outcome::Halted, now);
            }
            Phase::Draining(_) | Phase::Finishing(_) | Phase::Ending(..) => {}
        }
    }

    /// Begins to end in good order; `curt`: without waiting for requests.
    async fn drain(&mut self, curt: bool, now: Instant) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        info!("stopping");
        self.curt = curt;
        if self.app.is_none() {
            return self.end(Outcome::Drained, now); // there is nothing yet to answer requests with
        }
        self.notify(Notice::Drain).await;
        if curt {
            self.finish(now + CURT_DRAIN);
        } else {
            self.phase = Phase::Draining(now + self.settings.process.drain_timeout);
        }
    }

    /// Tells every worker to exit.
    fn finish(&mut self, until: Instant) {
        self.phase = Phase::Finishing(until);
        for (_, handle) in self.workers.iter_mut() {
            handle.drain(until);
        }
    }

    /// Kills whatever is left.
    fn end(&mut self, outcome: Outcome, now: Instant) {
        for (_, handle) in self.workers.iter_mut() {
            handle.halt(now);
        }
        match &mut self.mold {
            Some(mold) if mold.is_caller() => self.mold = None,
            Some(mold) => mold.halt(now),
            None => {}
        }
        self.phase = Phase::Ending(now + END_TIME, outcome);
    }

    /// Ends when nobody is left to want anything else.
    fn drop_everything(&mut self, outcome: Outcome, now: Instant) {
        warn!("the process that started Highball has gone");
        self.end(outcome, now);
    }

    /// Says something to the front. The front outlives the supervisor; if it is gone, the run is ending.
    async fn notify(&self, notice: Notice) {
        if self.notices.send(notice).await.is_err() {
            debug!("nobody listens to notices any more");
        }
    }

    fn report(&self, now: Instant) -> Report {
        let phase = match self.phase {
            Phase::Running if self.workers.iter().any(|(_, handle)| handle.was_ready()) => "serving",
            Phase::Running => "booting",
            Phase::Draining(_) | Phase::Finishing(_) => "draining",
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

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn too_slow(step: Step, limit: Duration) -> BootFailure {
    let message = format!("it was not done after {} s", limit.as_secs());
    let remedy = "Look where its threads are, in the backtraces above. If it really needs longer, raise \
                  --boot-timeout.";
    BootFailure { step, error: RubyError::of_ours(message), remedy: Some(remedy.into()) }
}

fn died_while_booting(step: Step, ending: Ending) -> BootFailure {
    let message = format!("Ruby ended without saying why: {ending}");
    let remedy = "Look at what was printed above; the application may have ended the process itself.";
    BootFailure { step, error: RubyError::of_ours(message), remedy: Some(remedy.into()) }
}

fn no_ruby(settings: &Settings, error: &io::Error) -> BootFailure {
    let (ruby, app) = (settings.ruby.display(), settings.app.display());
    let remedy = match error.kind() {
        io::ErrorKind::NotFound if !settings.app.is_dir() => format!("{app} is not a folder any more."),
        io::ErrorKind::NotFound => {
            "Install Ruby (Debian: apt-get install ruby), or name one with --ruby.".to_string()
        }
        io::ErrorKind::PermissionDenied => {
            format!("Check that this user may enter {app} and run {ruby}.")
        }
        _ => "The system refused it; see the message.".to_string(),
    };
    let message = format!("cannot run {ruby} in {app}: {error}");
    BootFailure { step: Step::StartRuby, error: RubyError::of_ours(message), remedy: Some(remedy) }
}
