//! The supervisor of one application: acts on what it hears of the application's processes, and then does whatever the
//! new state asks for.
//!
//! How it finds out where and how to boot stands in [`planning`], what it does about molds in [`booting`], about a boot
//! that has failed in [`failing`], about workers in [`staffing`], about restarts in [`restarting`], about reforks in
//! [`reforking`], about an application that cannot be brought up in [`mending`], about one that nobody asks for in
//! [`sleeping`], about a request that failed in [`diagnosing`], about a changed configuration in [`changing`], about
//! stopping in [`ending`]; about a static site, which has none of these but restarts, in [`serving_site`].

mod booting;
mod changing;
mod diagnosing;
mod ending;
mod failing;
mod mending;
mod planning;
mod reforking;
mod restarting;
mod serving_site;
mod sleeping;
mod staffing;

pub(crate) use self::booting::not_started;
use self::failing::Failing;
use self::mending::Broken;
use self::planning::Planning;
use crate::app_files::{AppFiles, Found, Work};
use crate::app_output::AppOutput;
use crate::diagnosis::Diagnosis;
use crate::event::{Inbox, Said, Who};
use crate::hall::{AppBlueprint, Outcome, Purpose};
use crate::message_log::MessageLog;
use crate::mold::{Mold, MoldSource, MoldState};
use crate::process_table::ProcessTable;
use crate::reaper::Ending;
use crate::refork::{Refork, ReforkCause, Schedule};
use crate::report::{AppReport, AskedHeap, MoldReport, ReforkReport, WorkerReport};
use crate::request_failure::Deaths;
use crate::restart::{Asked, Generation, PastRestarts, Restart, Wish, BACKTRACE_LINES};
use crate::restart_file::{RestartFiles, Watched};
use crate::restart_policy::RestartPolicy;
use crate::worker_handle::WorkerState;
use crate::{AppNotice, AppOrder, Notice};
use highball_config::{App, Settings};
use highball_ring::Geometry;
use rustix::process::Pid;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::instrument::WithSubscriber;
use tracing::{debug, error, error_span, warn, Dispatch, Instrument, Span};

/// Signals closer together than this are one: `timeout`, process managers and terminals that signal both us and
/// our group deliver each twice.
pub(crate) const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// How far another process has come in taking the place of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HotRestart {
    /// Nobody has asked for it.
    No,
    /// It waits until it can begin.
    Queued,
    /// It is under way.
    Going,
    /// The other process serves: this one only answers what still comes over connections that it has.
    Done,
}

/// Where the application is.
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
pub(crate) struct Supervisor {
    settings: Arc<Settings>,
    app: Arc<App>,
    source: MoldSource,
    geometry: Geometry,
    /// Lines of the log that are about it say so, where there are others.
    span: Span,
    /// Whether it is the only application of the server.
    alone: bool,
    hot_restart: HotRestart,
    /// Whether it is its turn to boot, among others.
    may_boot: bool,

    phase: Phase,
    /// It was taken out of the configuration.
    removed: bool,
    /// It wants everything to end.
    wants_the_end: bool,
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
    restart_files: RestartFiles,
    files: AppFiles,
    /// The number of the last plan or diagnosis that was begun.
    last_ticket: u32,
    /// It is being found out where and how to boot.
    planning: Option<Planning>,
    /// The version that is served boots what the given path leads to then, and not what it was before.
    folder_is_due: bool,
    /// Boots that have failed and are not diagnosed yet.
    failing: Vec<Failing>,
    last_failure: Option<String>,
    /// The last boot that failed.
    diagnosis: Option<Diagnosis>,
    deaths: Deaths,
    purpose: Purpose,
    /// See [`AppBlueprint::may_fail`].
    may_fail: bool,
    broken: Option<Broken>,
    /// Why it was given up, until that is acted upon.
    lost: Option<String>,
    /// Nobody asks for it: it has no processes, and boots when somebody does.
    asleep: bool,

    /// What its processes print, where they are another user's.
    output: AppOutput,
    message_log: MessageLog,
    inbox: Inbox,
    notices: mpsc::Sender<Notice>,
}

impl Supervisor {
    /// Makes a supervisor that says `notices`. Nothing is started before [`Supervisor::advance`].
    pub(crate) fn new(
        blueprint: AppBlueprint,
        settings: Arc<Settings>,
        purpose: Purpose,
        output: AppOutput,
        inbox: Inbox,
        notices: mpsc::Sender<Notice>,
    ) -> Supervisor {
        let AppBlueprint { app, source, geometry, may_fail } = blueprint;
        let policy = || RestartPolicy::new(app.process.max_boot_failures);
        let now = Instant::now();
        let is_site = matches!(source, MoldSource::Site);
        Supervisor {
            current: Generation { number: 1, line: 1, folder: app.folder.clone(), app: None, mold: None },
            leaving_molds: Vec::new(),
            wanted: if is_site { 0 } else { app.workers },
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
            restart_files: RestartFiles::of(watched(&app), now),
            files: AppFiles::new(inbox.clone()),
            last_ticket: 0,
            planning: None,
            folder_is_due: false,
            failing: Vec::new(),
            mold_policy: policy(),
            worker_policy: policy(),
            source,
            geometry,
            span: Span::none(),
            alone: true,
            hot_restart: HotRestart::No,
            may_boot: true,
            phase: Phase::Running,
            removed: false,
            wants_the_end: false,
            boots: 0,
            mold_due: now,
            workers: ProcessTable::default(),
            fork_due: now,
            last_failure: None,
            diagnosis: None,
            deaths: Deaths::default(),
            purpose,
            may_fail,
            broken: None,
            lost: None,
            asleep: !app.prestart && !is_site && purpose != Purpose::Examine,
            output,
            message_log: MessageLog::new(now),
            inbox,
            notices,
            settings,
            app,
        }
    }

    /// Takes note of what is around it.
    pub(crate) fn surroundings(&mut self, alone: bool, hot_restart: HotRestart, may_boot: bool) {
        if self.alone != alone {
            self.alone = alone;
            // Of the highest level: it is about lines of all levels.
            self.span = if alone { Span::none() } else { error_span!("app", application = self.app.name) };
        }
        self.hot_restart = hot_restart;
        self.may_boot = may_boot || self.is_site();
    }

    /// Since when it boots, if it does.
    pub(crate) fn boots_since(&self) -> Option<Instant> {
        let planning = self.planning.as_ref().filter(|_| !self.is_site()).map(|planning| planning.began);
        self.molds().filter_map(Mold::boots_since).chain(planning).max()
    }

    /// One of its processes has said something.
    pub(crate) async fn heard(&mut self, said: Said, now: Instant) {
        let span = self.span.clone();
        let is_logged = self.message_log.takes(&said, now);
        if let Some(messages) = self.message_log.notice(now) {
            span.in_scope(|| {
                warn!(messages, "the application's processes say too much: lines about it were not logged")
            });
        }
        let hear = async {
            match said {
                Said::Mold { boot, message } => self.mold_said(boot, message, now).await,
                Said::Worker { worker, message, descriptors } => {
                    self.worker_said(worker, message, descriptors, now).await;
                }
                Said::Nonsense(who, error) => self.halt_mad(who, &error, now).await,
                Said::Closed(who) => self.closed(who, now).await,
                Said::Successor(_) | Said::Succeeded { .. } => {} // the hall's
            }
        };
        if is_logged {
            hear.instrument(span).await;
        } else {
            hear.with_subscriber(Dispatch::none()).await;
        }
    }

    /// Something was found out about its files.
    pub(crate) async fn found(&mut self, found: Found, now: Instant) {
        let span = self.span.clone();
        self.consider(found, now).instrument(span).await;
    }

    async fn consider(&mut self, found: Found, now: Instant) {
        match found {
            Found::Restart(look) => {
                if let Some(asked) = self.restart_files.asks(look, now) {
                    let _ = self.ask_restart(asked); // what speaks against it is in the log
                }
            }
            Found::Nothing(Work::Restart) => self.restart_files.not_seen(now),
            Found::Folder { since, state, took } => self.folder_seen(since, state, took, now).await,
            Found::Nothing(Work::Folder) => self.folder_not_seen(now),
            Found::Plan { ticket, folder, start } => self.planned(ticket, folder, start, now).await,
            Found::Diagnosis { ticket, diagnosis, files } => {
                self.diagnosed(ticket, *diagnosis, files, now).await;
            }
            Found::Nothing(Work::Plan | Work::Diagnosis) => {} // their deadlines end them
        }
    }

    /// Starts what should be started and ends what has taken too long.
    pub(crate) async fn advance(&mut self, now: Instant) {
        let span = self.span.clone();
        self.advance_in_span(now).instrument(span).await;
    }

    async fn advance_in_span(&mut self, now: Instant) {
        self.enforce_deadlines(now).await;
        match self.phase {
            Phase::Running => {
                self.look_at_restart_files(now);
                self.advance_restart(now).await;
                self.advance_refork(now).await;
                self.stand_back_if_lost(now);
                self.try_again_if_mended(now);
                if self.needs_mold() && self.may_boot && now >= self.mold_due {
                    self.boot(now);
                }
                self.retire_leaving(now).await;
                self.staff(now).await;
            }
            Phase::Draining(until) if now >= until => {
                warn!("requests were still in flight when the time for draining was over");
                self.end(Outcome::Halted, now);
            }
            Phase::Draining(_) => {
                if self.is_brought_up() && self.needs_mold() && self.may_boot {
                    self.boot(now);
                }
                self.staff_for_drain(now).await;
            }
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
        let overdue = self.molds().filter(|mold| mold.deadline.is_some_and(|at| now >= at));
        for boot in overdue.map(|mold| mold.boot).collect::<Vec<u32>>() {
            self.mold_overdue(boot, now).await;
        }
        self.enforce_deadlines_of_files(now).await;
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
            (WorkerState::Starting, None) => self.worker_starts_too_long(worker, now),
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
                self.boot_of_mold_failed(boot, failure, now);
            }
            MoldState::Booted => mold.deadline = None,
            MoldState::Halted => {
                error!("the mold cannot be killed; it is left to itself");
                self.mold_gone(boot, Ending::Unknown, now).await;
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => None,
            Phase::Draining(until) | Phase::Finishing { until, .. } | Phase::Ending(until, _) => Some(until),
        };
        let running = matches!(self.phase, Phase::Running);
        let boots = running && self.needs_mold() && self.may_boot && self.planning.is_none();
        let boot = boots.then_some(self.mold_due);
        let fork = (self.waits_to_fork() && self.fork_due > Instant::now()).then_some(self.fork_due);
        let leaving = running.then(|| self.workers.next_leaving()).flatten();
        let file = self.restart_files.due().filter(|_| running);
        let aside = self.next_deadline_of_files();
        let mold = self.molds().filter_map(|mold| mold.deadline).min();
        let refork = self.refork.as_ref().filter(|_| running).and_then(|refork| refork.deadline);
        let mended = self.mended_due().filter(|_| running);
        [phase, boot, fork, leaving, file, aside, mold, refork, mended, self.workers.next_deadline()]
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

    /// Whose process id this is, among its own.
    pub(crate) fn owner_of(&self, pid: Pid) -> Option<Who> {
        let worker = self.workers.with_pid(pid).map(Who::Worker);
        let mold = || self.molds().find(|mold| mold.pid == Some(pid)).map(|mold| Who::Mold(mold.boot));
        worker.or_else(mold)
    }

    /// A process of its own has ended.
    pub(crate) async fn ended(&mut self, who: Who, ending: Ending, now: Instant) {
        let span = self.span.clone();
        self.process_ended(who, ending, now).instrument(span).await;
    }

    async fn process_ended(&mut self, who: Who, ending: Ending, now: Instant) {
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
            Who::Successor(_) | Who::Succeeded => {}
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
            Who::Successor(_) | Who::Succeeded => {}
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
            Who::Successor(_) | Who::Succeeded => {}
        }
    }

    /// Does what the front or an operator wants of it.
    pub(crate) async fn ordered(&mut self, order: AppOrder, now: Instant) {
        let span = self.span.clone();
        self.obey(order, now).instrument(span).await;
    }

    async fn obey(&mut self, order: AppOrder, now: Instant) {
        match order {
            AppOrder::WorkerBroken { worker, why } => {
                if let Some(handle) = self.workers.get_mut(worker) {
                    error!(worker, why, "the worker broke the rules of its ring and is killed");
                    self.last_failure = Some(format!("worker {worker} broke the rules of its ring: {why}"));
                    self.deaths.broke_the_rules(worker, handle.pid.map(Pid::as_raw_pid), &why);
                    handle.halt(now);
                }
            }
            AppOrder::WorkerIdle { worker } => {
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
            AppOrder::Wanted => self.wanted_by_somebody(now).await,
            AppOrder::Diagnose(failure, to) => self.diagnose(*failure, to),
            AppOrder::Idle => self.fall_asleep(now),
            AppOrder::Drained => self.drained().await,
            AppOrder::CanaryAnswered { worker, answer } => self.canary_answered(worker, answer, now).await,
            AppOrder::ConfigurationRefused(why) => self.last_failure = Some(why),
            AppOrder::WorkerWarm { worker } => self.worker_warm(worker, now).await,
            AppOrder::Refork(to) => {
                let _ = to.send(self.ask_refork(ReforkCause::Command, now).await);
                // the one who asked may have left
            }
            AppOrder::Restart(to) => {
                let _ = to.send(self.ask_restart(Asked::Command)); // as above
            }
        }
    }

    /// Says something about the application to the front. The front outlives the hall; if it is gone, the run is ending.
    async fn notify(&self, notice: AppNotice) {
        if self.notices.send(Notice::OfApp(self.app.id, notice)).await.is_err() {
            debug!("nobody listens to notices any more");
        }
    }

    /// Asks the mold and the workers for their heaps. Nothing is waited for here.
    pub(crate) fn ask_heaps(&mut self, gc: bool) -> Vec<AskedHeap> {
        let mold = self.current.mold.as_mut().map(|mold| AskedHeap {
            app: self.app.id,
            worker: None,
            pid: mold.pid.map(Pid::as_raw_pid),
            state: mold.state.name(),
            answer: mold.ask_heap(),
        });
        let workers = self.workers.iter_mut().map(|(worker, handle)| AskedHeap {
            app: self.app.id,
            worker: Some(worker),
            pid: handle.pid.map(Pid::as_raw_pid),
            state: handle.state.name(),
            answer: handle.ask_heap(gc),
        });
        mold.into_iter().chain(workers).collect()
    }

    pub(crate) fn report(&self, now: Instant) -> AppReport {
        let phase = match self.phase {
            Phase::Running if self.is_site() && self.current.app.is_some() => "serving",
            Phase::Running if self.workers.iter().any(|(_, handle)| handle.was_ready()) => "serving",
            Phase::Running if self.asleep => "asleep",
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
        AppReport {
            id: self.app.id,
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
            last_failure: self.last_failure.clone(),
            diagnosis: self.diagnosis.clone(),
        }
    }
}

/// What is wrong with a process that answers without having been asked.
fn unasked() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it answers what it was not asked")
}

/// Where its restart files are looked for.
fn watched(app: &App) -> Watched {
    Watched {
        path: app.link.clone(),
        user: app.runs_as.another().cloned(),
        in_development: app.is_development(),
    }
}
