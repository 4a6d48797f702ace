//! The shell around the core: waits for what can happen, passes it to the core, and performs the actions that it
//! returns. It never waits for one of them: what takes time reports its outcome as an event.
//!
//! In reading order: [`blueprint`], what it is built from; [`app`], what is held of one application and done for it;
//! [`messages`], messages from its processes, as events; [`boot_failures`], why one could not be started;
//! [`upgrading`], what is done in a hot restart; [`memory_sampler`], what memory processes have; [`signs_of_life`], whether workers answer; [`load_probe`], what
//! their workers take; [`refork_measurement`], what they say of it before a refork; [`reports`], what it reports to
//! `highball status`; [`log_lines`], the words for the core's log events; [`outcome`], how a run ended.
//!
//! Below these: [`event`], what can happen; [`app_files`], what is done aside.

mod app;
pub(crate) mod app_files;
mod blueprint;
mod boot_failures;
pub(crate) mod event;
mod load_probe;
mod log_lines;
mod memory_sampler;
mod messages;
mod outcome;
mod refork_measurement;
mod reports;
pub(crate) mod signs_of_life;
mod thread_dump;
mod upgrading;

pub use blueprint::{time_for_turns, AppBlueprint, Blueprint};
pub use outcome::Outcome;

use crate::app_output::{AppOutput, Relay};
use crate::core::companions::CompanionState;
use crate::core::event::ReceivedSignal;
use crate::core::mold::MoldState;
use crate::core::refork::ReforkCause;
use crate::core::replacement::ReplacementCause;
use crate::core::restart::Asked;
use crate::core::worker::WorkerState;
use crate::core::{Action, AppAction, AppEvent, Event, Process, Receipt, Server, ServerConfig};
use crate::facts::ending::Ending;
use crate::inbox::{Inbox, Received};
use crate::process::launcher::Endings;
use crate::process::launcher::Who;
use crate::process::reaper::adopt_orphans;
use crate::process::watcher::{News, Watcher};
use crate::shell::event::{Discovery, Happening};
use crate::shell::memory_sampler::MemorySampler;
use crate::signals::Signals;
use crate::upgrade::pid_proxy::PidProxy;
use crate::{checkpoint, AppOrder, Notice, Order};
use app::AppSupervisor;
use blueprint::boots_at_a_time;
use highball_config::{AppId, Settings};
use highball_link::{FrontAppEvent, FrontCommand, FrontEvent, HubAddress};
use highball_proc::waited_for_processor;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thread_dump::Dumps;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::instrument::WithSubscriber;
use tracing::{debug, Dispatch, Instrument};
use upgrading::Upgrading;

/// How long the supervisor waits for the last output of applications.
const LAST_LINES_TIME: Duration = Duration::from_secs(1);
/// News, and discoveries, that may wait for the loop; watchers wait when it is full.
const NEWS: usize = 256;

/// Where the answer to an order goes.
type AnswerTo = oneshot::Sender<Result<u32, String>>;

/// The process path of all applications.
pub struct Supervisor {
    settings: Arc<Settings>,
    /// Where processes of applications publish messages, if they can.
    hub: Option<Arc<HubAddress>>,
    core: Server,
    apps: BTreeMap<AppId, AppSupervisor>,
    /// What has happened while actions were performed.
    happened: VecDeque<Event>,
    /// Orders that the core has not answered yet.
    answers: HashMap<Receipt, AnswerTo>,
    last_receipt: u64,
    upgrading: Upgrading,
    memory: MemorySampler,
    dumps: Dumps,
    has_ended: bool,
    /// Children may have ended of which no signal will come.
    unreaped: bool,
    /// What happens now is not logged, as processes send too much.
    is_quiet: bool,
    /// Where the output of other users' processes goes.
    output: Relay,
    endings: Endings,
    watcher: Watcher,
    news: Received<News>,
    /// Where what was found out aside from the loop is put.
    inbox: Inbox<Discovery>,
    discoveries: Received<Discovery>,
    notices: mpsc::Sender<Notice>,
}

impl Supervisor {
    /// Makes a supervisor that sends `notices`. Nothing is started before [`Supervisor::run`].
    pub fn new(blueprint: Blueprint, notices: mpsc::Sender<Notice>) -> Supervisor {
        let Blueprint { settings, apps, purpose, output, launcher, hub } = blueprint;
        let (watcher, news) = Watcher::new(NEWS, launcher);
        let (inbox, discoveries) = Inbox::new(NEWS);
        let config = ServerConfig {
            is_development: settings.is_development(),
            drain_grace: settings.drain_grace,
            drain_timeout: settings.drain_timeout,
            boots_at_a_time: boots_at_a_time(),
            purpose,
        };
        let mut supervisor = Supervisor {
            settings,
            hub,
            core: Server::new(config, Instant::now()),
            apps: BTreeMap::new(),
            happened: VecDeque::new(),
            answers: HashMap::new(),
            last_receipt: 0,
            upgrading: Upgrading::default(),
            memory: MemorySampler::new(Instant::now()),
            dumps: Dumps::default(),
            has_ended: false,
            unreaped: false,
            is_quiet: false,
            output: Relay::new(output),
            endings: Endings::Direct,
            watcher,
            news,
            inbox,
            discoveries,
            notices,
        };
        for app in apps {
            let (id, config) = supervisor.add(app);
            supervisor.core.add(id, config);
        }
        supervisor
    }

    /// Runs until everything has ended.
    ///
    /// # Errors
    /// Only what the system refuses at the very beginning: signals, or becoming a subreaper.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) -> io::Result<Outcome> {
        adopt_orphans()?;
        let mut signals = Signals::listen()?;
        self.endings = self.watcher.launcher.endings()?;
        self.tell(Event::Tick).await;
        while !self.has_ended {
            self.look_at_restart_files();
            self.look_at_memory();
            let deadline = if self.unreaped { Some(Instant::now()) } else { self.next_deadline() };
            let happening = tokio::select! {
                signal = signals.next() => Happening::Signal(signal),
                () = self.endings.changed() => Happening::Signal(ReceivedSignal::ChildEnded),
                Some(order) = orders.recv() => Happening::Order(order),
                Some((app, news)) = self.news.recv() => Happening::News(app, news),
                Some((app, discovery)) = self.discoveries.recv() => Happening::Discovery(app, discovery),
                () = sleep_until(deadline) => Happening::Deadline,
            };
            self.handle(happening).await;
        }
        self.wait_for_last_output().await;
        if let Some(serving) = self.upgrading.serving.take() {
            let drain_time = 2 * self.settings.drain_timeout;
            let (news, watcher, endings) = (self.news, self.watcher, self.endings);
            return Ok(Outcome::HandedOver(Box::new(PidProxy {
                serving,
                signals,
                endings,
                news,
                watcher,
                drain_time,
            })));
        }
        Ok(Outcome::of(self.core.apps.values()))
    }

    /// What applications have printed is in the log then, or it is not waited for.
    async fn wait_for_last_output(&self) {
        let printed = async {
            for app in self.apps.values() {
                app.output.settle().await;
            }
        };
        let _ = timeout(LAST_LINES_TIME, printed).await; // the log takes nothing more
    }

    async fn handle(&mut self, happening: Happening) {
        match happening {
            Happening::Signal(ReceivedSignal::ChildEnded) => self.reap(),
            Happening::Signal(ReceivedSignal::DumpThreads) if self.upgrading.serving.is_none() => {
                self.dump_threads();
            }
            Happening::Signal(signal) => self.happened.push_back(Event::Signal(signal)),
            Happening::Order(order) => self.ordered(order).await,
            Happening::News(app, News::Ended(who)) => {
                self.reap();
                // Changes nothing if it was just reaped.
                match (app, who) {
                    (Some(app), Who::Mold(boot)) => self.ended(app, Process::Mold(boot), Ending::Unknown),
                    (Some(app), Who::Worker(worker)) => {
                        self.ended(app, Process::Worker(worker), Ending::Unknown);
                    }
                    (Some(app), Who::Companion(number)) => {
                        self.ended(app, Process::Companion(number), Ending::Unknown);
                    }
                    (_, Who::Successor(pid)) => self.successor_gone(pid),
                    (_, Who::Succeeded) | (None, _) => {}
                }
            }
            Happening::News(Some(app), News::Socket(event)) => self.socket_event(app, *event),
            Happening::News(None, News::Socket(event)) => self.successor_sent(*event),
            Happening::Discovery(Some(app), Discovery::Found(found)) => self.found(app, found),
            Happening::Discovery(Some(app), Discovery::Load(load)) => self.load_seen(app, &load),
            Happening::Discovery(_, Discovery::Measured(measured)) => self.measured(*measured),
            Happening::Discovery(None, Discovery::Found(_) | Discovery::Load(_)) => {}
            Happening::Deadline if self.unreaped => self.reap(),
            Happening::Deadline => {
                self.look_at_waiting_boots();
                self.happened.push_back(Event::Tick);
            }
        }
        let is_quiet = std::mem::take(&mut self.is_quiet);
        while let Some(event) = self.happened.pop_front() {
            if is_quiet {
                self.tell(event).with_subscriber(Dispatch::none()).await;
            } else {
                self.tell(event).await;
            }
        }
    }

    /// A boot has a lower priority while workers serve. So the time in which it waited for a processor does not count.
    fn look_at_waiting_boots(&mut self) {
        let now = Instant::now();
        for (id, core) in &self.core.apps {
            for boot in core.molds.booting_too_long(now) {
                let pid = self.apps.get(id).and_then(|app| app.pid_of_mold(boot));
                // Where the kernel does not tell, all time counts.
                let Some(Ok(waited)) = pid.map(waited_for_processor) else { continue };
                self.happened.push_back(Event::OfApp(*id, AppEvent::MoldWaited { boot, waited }));
            }
        }
    }

    /// Passes the event to the core, and performs its actions.
    async fn tell(&mut self, event: Event) {
        let actions = self.core.step(event, Instant::now());
        for action in actions {
            self.perform(action).await;
        }
    }

    async fn perform(&mut self, action: Action) {
        match action {
            Action::OfApp(_, AppAction::Answer(receipt, answer)) | Action::Answer(receipt, answer) => {
                if let Some(to) = self.answers.remove(&receipt) {
                    let _ = to.send(answer); // the client that asked may have left
                }
            }
            Action::OfApp(_, AppAction::RereadConfiguration) => self.notify(Notice::Hangup).await,
            Action::OfApp(id, AppAction::ReportRemoval) => self.notify(Notice::AppRemoved(id)).await,
            Action::OfApp(id, AppAction::MeasureMemory { receipt, boot, workers }) => {
                let free = self.free_memory(id);
                let app = self.apps.get_mut(&id);
                app.into_iter().for_each(|app| app.measure_memory(receipt, boot, &workers, free));
            }
            Action::OfApp(id, action) => {
                let Some(app) = self.apps.get_mut(&id) else { return };
                if let AppAction::Notify(command) = &action {
                    self.memory.note(command);
                }
                let span = app.span(self.core.apps.len() == 1);
                let performed = async {
                    match action {
                        AppAction::Log(log) => {
                            app.settle_before(&log).await;
                            log_lines::of_app(&log, app);
                        }
                        action => app.perform(action, &mut self.happened).await,
                    }
                };
                performed.instrument(span).await;
            }
            Action::ForgetApp(id) => drop(self.apps.remove(&id)),
            Action::AnnounceStop => self.notify(Notice::ToFront(FrontCommand::AnnounceStop)).await,
            Action::DrainFront => self.notify(Notice::ToFront(FrontCommand::Drain)).await,
            Action::Hangup => self.notify(Notice::Hangup).await,
            Action::HandOver { upgrade, kept, restart } => self.hand_over(upgrade, kept, restart).await,
            Action::SpawnSuccessor { upgrade, failed } => self.spawn_successor(upgrade, &failed).await,
            Action::TakeOver { upgrade } => self.let_take_over(upgrade),
            Action::SignalSuccessor { upgrade, signal } => self.upgrading.signal(upgrade, signal),
            Action::ForgetSuccessor { upgrade } => self.upgrading.forget(upgrade),
            Action::DropUpgradeContext => self.upgrading.context = None,
            Action::ReportNoCompanions => self.upgrading.no_companions(),
            Action::PassOn(signal) => self.upgrading.pass_on(signal),
            Action::Log(log) => log_lines::of_server(&log, &self.upgrading),
            Action::Checkpoint(step) => checkpoint::pass(step).await,
            Action::End => self.has_ended = true,
        }
    }

    /// What is there to hold an application, and its configuration for the core.
    fn add(&mut self, blueprint: AppBlueprint) -> (AppId, crate::core::AppConfig) {
        let (id, config) = (blueprint.app.id, blueprint.config(&self.settings));
        let purpose = self.core.config.purpose;
        let settings = Arc::clone(&self.settings);
        let seen = (self.watcher.of_app(id), self.inbox.of_app(id));
        let places = (self.hub.clone(), self.notices.clone());
        let output = AppOutput::new(&blueprint.app, self.output.clone());
        self.apps.insert(id, AppSupervisor::new(blueprint, settings, purpose, output, seen, places));
        (id, config)
    }

    /// A process has ended, or its control socket is closed, or it has sent a message.
    fn happens(&mut self, app: AppId, event: AppEvent) {
        self.happened.push_back(Event::OfApp(app, event));
    }

    fn ended(&mut self, app: AppId, process: Process, ending: Ending) {
        if let Some(event) = self.apps.get_mut(&app).and_then(|app| app.ended(process, ending)) {
            self.happens(app, event);
        }
    }

    /// Whether this process was sent SIGKILL from here.
    fn kills(&self, app: AppId, process: Process) -> bool {
        let core = self.core.apps.get(&app);
        core.is_some_and(|core| match process {
            Process::Worker(number) => {
                core.staff.get(number).is_none_or(|worker| worker.state == WorkerState::Halted)
            }
            Process::Mold(boot) => {
                let mold = core.molds.get(boot);
                mold.is_none_or(|mold| matches!(mold.state, MoldState::Halted))
            }
            Process::Companion(number) => {
                let companion = core.companions.get(number);
                companion.is_none_or(|one| one.state == CompanionState::Halted)
            }
        })
    }

    fn reap(&mut self) {
        let reaped = self.endings.reap();
        self.unreaped = reaped.may_have_left_some;
        for (pid, ending) in reaped.ended {
            let owner = self.apps.iter().find_map(|(id, app)| Some((*id, app.owner_of(pid)?)));
            match owner {
                Some((app, process)) => {
                    let ending = self.memory.ending(ending, self.kills(app, process));
                    self.ended(app, process, ending);
                }
                None => {
                    debug!(pid = pid.as_raw_pid(), %ending, "an orphan or a successor was reaped");
                    self.successor_reaped(pid, ending);
                }
            }
        }
    }

    fn receipt_for(&mut self, to: AnswerTo) -> Receipt {
        self.last_receipt += 1;
        let receipt = Receipt(self.last_receipt);
        self.answers.insert(receipt, to);
        receipt
    }

    async fn ordered(&mut self, order: Order) {
        match order {
            Order::ToApp(app, AppOrder::Restart(to)) => {
                let receipt = Some(self.receipt_for(to));
                self.happens(app, AppEvent::Restart { asked: Asked::Command, receipt });
            }
            Order::ToApp(app, AppOrder::Rollout(order, to)) => {
                let receipt = Some(self.receipt_for(to));
                self.happens(app, AppEvent::Rollout { order, receipt });
            }
            Order::ToApp(app, AppOrder::Refork(to)) => {
                let receipt = Some(self.receipt_for(to));
                self.happens(app, AppEvent::Refork { cause: ReforkCause::Command, receipt });
            }
            Order::ToApp(app, AppOrder::ReplaceWorker { worker }) => {
                self.happens(app, AppEvent::ReplaceWorker { worker, cause: ReplacementCause::Asked });
            }
            Order::ToApp(app, AppOrder::MoreWorkers(more)) => self.happens(app, AppEvent::MoreWorkers(more)),
            Order::ToApp(app, AppOrder::ConfigurationRefused(why)) => {
                self.happens(app, AppEvent::ConfigurationRefused(why));
            }
            Order::FromFront(FrontEvent::Drained) => self.happened.push_back(Event::FrontDrained),
            Order::FromFront(FrontEvent::OfApp(id, FrontAppEvent::Load(load))) => {
                self.load_reported(id, load)
            }
            Order::FromFront(FrontEvent::OfApp(id, event)) => {
                if let (Some(app), Some(core)) = (self.apps.get_mut(&id), self.core.apps.get(&id)) {
                    let event = app.front_sent(event, core);
                    self.happened.extend(event.map(|event| Event::OfApp(id, event)));
                } // else it was removed meanwhile
            }
            Order::AddApp(blueprint) => {
                let (id, config) = self.add(*blueprint);
                self.happened.push_back(Event::AddApp(id, Box::new(config)));
            }
            Order::ChangeApp(blueprint) => {
                let id = blueprint.app.id;
                if let Some(app) = self.apps.get_mut(&id) {
                    let event = app.change(*blueprint);
                    self.happens(id, event);
                } // else it was removed meanwhile
            }
            Order::RemoveApp(app) => self.happens(app, AppEvent::Remove),
            Order::MayUpgrade(context) => {
                if !self.core.is_over() {
                    self.upgrading.context = Some(*context);
                }
                self.happened.push_back(Event::MayUpgrade);
            }
            Order::PredecessorWithoutCompanions => {
                self.happened.push_back(Event::PredecessorWithoutCompanions);
            }
            Order::Upgrade(to) => {
                let receipt = self.receipt_for(to);
                self.happened.push_back(Event::Upgrade(receipt));
            }
            Order::Stop => self.happened.push_back(Event::Stop),
            Order::Report(to) => drop(to.send(self.report(Instant::now()))), // the client may have left
            Order::AskHeaps { gc, to } => drop(to.send(self.ask_heaps(gc))), // as above
            Order::SlowRequests { app, to } => drop(to.send(self.slow_requests(app))), // as above
            Order::AskThreads { requests, to } => drop(to.send(self.ask_threads(requests))), // as above
            Order::Profile { app, worker, order, to } => {
                drop(to.send(self.begin_profile(app, worker, order))); // as above
            }
            Order::EndProfile(app) => self.end_profile(app),
        }
    }

    /// Sends the front a notice. The front outlives the supervisor; if it is gone, the run is ending.
    async fn notify(&self, notice: Notice) {
        if self.notices.send(notice).await.is_err() {
            debug!("the front does not listen to notices any more");
        }
    }

    // --- time

    fn look_at_restart_files(&mut self) {
        let now = Instant::now();
        for (id, app) in &mut self.apps {
            match self.core.apps.get(id) {
                Some(core) if core.condition.is_asleep() => app.forget_restart_files(),
                Some(core) if core.phase.is_running() => app.look_at_restart_files(now),
                _ => {}
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let is_looked_at = |id: &AppId| {
            self.core.apps.get(id).is_some_and(|core| core.phase.is_running() && !core.condition.is_asleep())
        };
        let looks = self.apps.iter().filter(|(id, _)| is_looked_at(id)).filter_map(|(_, app)| app.look_due());
        let memory = self.memory.due().filter(|_| !self.core.is_over());
        looks.chain(self.core.next_deadline()).chain(memory).min()
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
