//! The process hall: what is the process's own and no single application's. It has one [`Supervisor`] for each
//! application, the signals, the children to wait for, and the loop: one event at a time goes to whom it concerns, and
//! then every supervisor does what its new state asks for.
//!
//! How all of it ends stands in [`stopping`], how another process takes its place in [`upgrading`].

mod stopping;
mod upgrading;

use crate::app_output::{AppOutput, OutputSink, Relay};
use crate::event::{Event, Inbox, News, Said, Who};
use crate::launcher::{Endings, Launcher};
use crate::mold::MoldSource;
use crate::reaper::Ending;
use crate::refork::ReforkCause;
use crate::report::{AppReport, AskedHeap, Report};
use crate::restart::Asked;
use crate::signals::{Received, Signals};
use crate::stand_in::StandIn;
use crate::supervisor::Supervisor;
use crate::{Notice, Order};
use highball_config::{App, AppId, Settings};
use highball_ring::Geometry;
use rustix::process::{getpid, set_child_subreaper};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{debug, info};
use upgrading::Upgrades;

/// News that may wait for the loop; watchers wait when it is full.
const NEWS: usize = 256;

/// So long a boot keeps others from beginning: one that hangs does not hold them up for longer.
const TURN: Duration = Duration::from_secs(10);

/// Applications that boot at a time: more of them than there are processors would only take longer, and together longer
/// than each may.
fn boots_at_a_time() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).max(2)
}

/// How long it takes at most until the last of so many applications begins to boot.
pub fn time_for_turns(apps: usize) -> Duration {
    TURN * u32::try_from(apps / boots_at_a_time()).unwrap_or(u32::MAX)
}

/// What applications have printed at their end is in the log by then, or it is not waited for.
const LAST_LINES_TIME: Duration = Duration::from_secs(1);

/// What a hall is built from.
pub struct Blueprint {
    /// The resolved settings.
    pub settings: Arc<Settings>,
    /// The applications.
    pub apps: Vec<AppBlueprint>,
    /// What they are booted for.
    pub purpose: Purpose,
    /// Where it goes what the processes of other users print.
    pub output: OutputSink,
    /// Who starts and signals processes.
    pub launcher: Launcher,
}

/// What a supervisor is built from.
#[derive(Debug)]
pub struct AppBlueprint {
    /// The application.
    pub app: Arc<App>,
    /// Where its mold comes from.
    pub source: MoldSource,
    /// The size of each worker's ring.
    pub geometry: Geometry,
    /// Whether it is no reason for the end of everything that it does not boot: while it is served
    /// ([`Purpose::Serve`]), even where it is the only one; where it is to be served in the place of another process
    /// ([`Purpose::Succeed`]), only where there are others.
    pub may_fail: bool,
}

/// What applications are booted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be served. Where one does not boot in development it is waited for, until people have mended it.
    Serve,
    /// To be served in the place of another process, which serves on if they do not boot.
    Succeed,
    /// To be looked at, once: the mold tells what will make trouble later, and a boot that fails is the end.
    Examine,
}

/// How a run ended. Where applications have ended differently, the last one of these counts.
#[derive(Debug)]
pub enum Outcome {
    /// Every request was answered.
    Drained,
    /// There was nothing to wait for, or the user did not want to (Ctrl-C in development).
    Stopped,
    /// The time for draining was over, or a second signal came: workers were killed.
    Halted,
    /// The caller that was the mold has gone.
    CallerGone,
    /// Processes kept dying before they served; the last reason.
    BootLoop(String),
    /// The application did not boot the first time.
    BootFailed(Box<crate::Diagnosis>),
    /// Another process has taken over, and nothing is left here but to stand in for it.
    HandedOver(Box<StandIn>),
}

impl Outcome {
    fn rank(&self) -> u8 {
        match self {
            Outcome::Drained => 0,
            Outcome::Stopped => 1,
            Outcome::Halted => 2,
            Outcome::CallerGone => 3,
            Outcome::BootLoop(_) => 4,
            Outcome::BootFailed(_) => 5,
            Outcome::HandedOver(_) => 6,
        }
    }
}

/// The process path of all applications.
pub struct Hall {
    settings: Arc<Settings>,
    purpose: Purpose,
    apps: BTreeMap<AppId, Supervisor>,
    /// Whether everything is to end.
    stopping: bool,
    boots_at_a_time: usize,
    /// When the first signal to end came.
    signalled_at: Option<Instant>,
    /// When it is not waited any longer for a process that was to take this one's place.
    left_at: Option<Instant>,
    upgrades: Upgrades,
    /// Children may have ended of which no signal will come.
    unreaped: bool,
    output: Relay,
    endings: Endings,
    news: mpsc::Receiver<(Option<AppId>, News)>,
    inbox: Inbox,
    notices: mpsc::Sender<Notice>,
}

impl Hall {
    /// Makes a hall that says `notices`. Nothing is started before [`Hall::run`].
    pub fn new(blueprint: Blueprint, notices: mpsc::Sender<Notice>) -> Hall {
        let Blueprint { settings, apps, purpose, output, launcher } = blueprint;
        let (inbox, news) = Inbox::new(NEWS, launcher);
        let mut hall = Hall {
            settings,
            purpose,
            apps: BTreeMap::new(),
            stopping: false,
            boots_at_a_time: boots_at_a_time(),
            signalled_at: None,
            left_at: None,
            upgrades: Upgrades::default(),
            unreaped: false,
            output: Relay::new(output),
            endings: Endings::Direct,
            news,
            inbox,
            notices,
        };
        for app in apps {
            hall.add(app);
        }
        hall
    }

    fn add(&mut self, blueprint: AppBlueprint) {
        let id = blueprint.app.id;
        let inbox = self.inbox.of_app(id);
        let settings = Arc::clone(&self.settings);
        let output = AppOutput::new(&blueprint.app, self.output.clone());
        let supervisor =
            Supervisor::new(blueprint, settings, self.purpose, output, inbox, self.notices.clone());
        self.apps.insert(id, supervisor);
    }

    /// Runs until everything has ended.
    ///
    /// # Errors
    /// Only what the system refuses at the very beginning: signals, or becoming a subreaper.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) -> io::Result<Outcome> {
        set_child_subreaper(Some(getpid()))?;
        let mut signals = Signals::listen()?;
        self.endings = self.inbox.launcher.endings()?;
        loop {
            let now = Instant::now();
            if self.advance(now).await {
                break;
            }
            let deadline = if self.unreaped { Some(now) } else { self.next_deadline(now) };
            let event = tokio::select! {
                signal = signals.next() => Event::Signal(signal),
                () = self.endings.changed() => Event::Signal(Received::ChildEnded),
                Some(order) = orders.recv() => Event::Order(order),
                Some((app, news)) = self.news.recv() => Event::News(app, news),
                () = sleep_until(deadline) => Event::Deadline,
            };
            self.handle(event).await;
        }
        let printed = async {
            for app in self.apps.values() {
                app.has_printed().await;
            }
        };
        let _ = timeout(LAST_LINES_TIME, printed).await; // the log takes nothing more
        if let Some(succession) = self.upgrades.succession.take() {
            let drain_time = 2 * self.settings.drain_timeout;
            let (news, inbox, endings) = (self.news, self.inbox, self.endings);
            return Ok(Outcome::HandedOver(Box::new(StandIn {
                succession,
                signals,
                endings,
                news,
                inbox,
                drain_time,
            })));
        }
        let outcomes = self.apps.into_values().map(Supervisor::outcome);
        Ok(outcomes.max_by_key(Outcome::rank).unwrap_or(Outcome::Drained))
    }

    async fn handle(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Signal(signal) if self.pass_on(signal, now).await => {}
            Event::Signal(signal) => self.signalled(signal, now).await,
            Event::Order(order) => self.ordered(order, now).await,
            Event::News(app, News::Ended(who)) => {
                self.reap(now).await;
                // Does nothing if it was just reaped.
                match (app.and_then(|app| self.apps.get_mut(&app)), who) {
                    (Some(app), who) => app.ended(who, Ending::Unknown, now).await,
                    (None, Who::Successor(pid)) => self.successor_ended(pid, Ending::Unknown, now).await,
                    (None, _) => {}
                }
            }
            Event::News(Some(app), News::Said(said)) => {
                if let Some(app) = self.apps.get_mut(&app) {
                    app.heard(said, now).await;
                }
            }
            Event::News(Some(app), News::Found(found)) => {
                if let Some(app) = self.apps.get_mut(&app) {
                    app.found(found, now).await; // else it was removed meanwhile
                }
            }
            Event::News(None, News::Said(said)) => self.heard(said, now).await,
            Event::News(None, News::Found(_)) => {}
            Event::Deadline if self.unreaped => self.reap(now).await,
            Event::Deadline => {}
        }
    }

    /// Starts what should be started and ends what has taken too long. `true`: everything has ended.
    async fn advance(&mut self, now: Instant) -> bool {
        self.enforce_upgrade_deadlines(now);
        self.advance_upgrade(now);
        let (alone, hot_restart) = (self.apps.len() == 1, self.upgrades.progress());
        let has_turn = |app: &Supervisor| app.boots_since().is_some_and(|began| now < began + TURN);
        let mut turns = self.apps.values().filter(|app| has_turn(app)).count();
        for app in self.apps.values_mut() {
            let had_turn = has_turn(app);
            app.surroundings(alone, hot_restart, had_turn || turns < self.boots_at_a_time);
            app.advance(now).await;
            turns = turns + usize::from(has_turn(app)) - usize::from(had_turn);
        }
        self.apps.retain(|_, app| !(app.is_removed() && app.has_ended(now)));
        self.end_with_its_apps(now).await;
        self.has_ended(now)
    }

    /// When there is something to do that was not due yet at the turn of `now`.
    fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let apps = self.apps.values().filter_map(Supervisor::next_deadline);
        let turns = self.apps.values().filter_map(Supervisor::boots_since).map(|began| began + TURN);
        let apps = apps.chain(turns.filter(|end| *end > now));
        apps.chain(self.upgrades.next_deadline()).chain(self.left_at).min()
    }

    async fn reap(&mut self, now: Instant) {
        let reaped = self.endings.reap();
        self.unreaped = reaped.may_have_left_some;
        for (pid, ending) in reaped.ended {
            let owner = self.apps.values_mut().find_map(|app| Some((app.owner_of(pid)?, app)));
            match owner {
                Some((who, app)) => app.ended(who, ending, now).await,
                None => {
                    debug!(pid = pid.as_raw_pid(), %ending, "an orphan or a successor was reaped");
                    self.successor_ended(pid, ending, now).await;
                }
            }
        }
    }

    async fn signalled(&mut self, signal: Received, now: Instant) {
        match signal {
            Received::ChildEnded => self.reap(now).await,
            Received::Hangup => {
                self.notify(Notice::Hangup).await;
                self.hang_up_successor();
            }
            Received::Upgrade => drop(self.ask_upgrade("USR2", now)),
            Received::Terminate | Received::Interrupt => self.told_to_end(signal, now).await,
            Received::Restart => {
                for app in self.apps.values_mut() {
                    let _ = app.ask_restart(Asked::Signal); // what speaks against it is in the log
                }
            }
            Received::Refork => {
                for app in self.apps.values_mut() {
                    let _ = app.ask_refork(ReforkCause::Signal, now).await; // as above
                }
            }
            Received::MoreWorkers => self.apps.values_mut().for_each(|app| app.want_workers(1)),
            Received::FewerWorkers => self.apps.values_mut().for_each(|app| app.want_workers(-1)),
        }
    }

    async fn ordered(&mut self, order: Order, now: Instant) {
        match order {
            Order::ToApp(app, order) => {
                if let Some(app) = self.apps.get_mut(&app) {
                    app.ordered(order, now).await; // else it was removed meanwhile
                }
            }
            Order::AddApp(blueprint) if !self.stopping => {
                info!(app = blueprint.app.name, "a new application");
                self.add(*blueprint);
            }
            Order::AddApp(_) => {}
            Order::ChangeApp(blueprint) => {
                if let Some(supervisor) = self.apps.get_mut(&blueprint.app.id) {
                    supervisor.change(*blueprint, now).await;
                }
            }
            Order::RemoveApp(app) => {
                if let Some(app) = self.apps.get_mut(&app) {
                    app.remove(now).await;
                }
            }
            Order::FrontDrained => {
                for app in self.apps.values_mut() {
                    app.drained().await;
                }
            }
            Order::MayUpgrade(heritage) => self.may_be_succeeded(*heritage),
            Order::Upgrade(to) => {
                let _ = to.send(self.ask_upgrade("highball upgrade", now)); // the one who asked may have left
            }
            Order::Stop => self.drain(false, now).await,
            Order::Report(to) => {
                let _ = to.send(self.report(now)); // as above
            }
            Order::AskHeaps { gc, to } => {
                let _ = to.send(self.ask_heaps(gc)); // as above
            }
        }
    }

    /// Another `highball` has said something.
    async fn heard(&mut self, said: Said, now: Instant) {
        match said {
            Said::Successor(message) => self.successor_said(message, now).await,
            Said::Succeeded { pid, descriptors } => {
                if let Some(succession) = &mut self.upgrades.succession {
                    succession.succeeded(pid, descriptors, &self.inbox);
                }
            }
            Said::Nonsense(Who::Successor(pid), error) => {
                tracing::error!(pid = pid.as_raw_pid(), %error, "the new process said what cannot be understood");
                self.successor_heard_out(pid, now);
            }
            Said::Closed(Who::Successor(pid)) => self.successor_heard_out(pid, now),
            Said::Nonsense(..) | Said::Closed(_) | Said::Mold { .. } | Said::Worker { .. } => {}
        }
    }

    /// Says something to the front. The front outlives the hall; if it is gone, the run is ending.
    async fn notify(&self, notice: Notice) {
        if self.notices.send(notice).await.is_err() {
            debug!("nobody listens to notices any more");
        }
    }

    /// Asks every mold and worker for its heap. Nothing is waited for here.
    fn ask_heaps(&mut self, gc: bool) -> Vec<AskedHeap> {
        self.apps.values_mut().flat_map(|app| app.ask_heaps(gc)).collect()
    }

    fn report(&self, now: Instant) -> Report {
        let apps: Vec<AppReport> = self.apps.values().map(|app| app.report(now)).collect();
        let is_over = self.stopping || self.upgrades.succession.is_some();
        Report {
            phase: match &apps[..] {
                [app] => app.phase,
                _ if is_over => "draining",
                _ => "serving",
            },
            apps,
            upgrade: self.upgrades.report(now),
            successor: self.upgrades.succession.as_ref().map(|succession| succession.pid().as_raw_pid()),
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
