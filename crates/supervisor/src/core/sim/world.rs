//! The world around the core: processes, the front, operators, files and the clock.

use super::books::Books;
use super::chaos::Chaos;
use crate::core::action::SuccessorSignal;
use crate::core::auto_refork::AppMemory;
use crate::core::config::{AppConfig, Purpose, ServerConfig, Source};
use crate::core::event::ReceivedSignal;
use crate::core::memory::{Bound, OverMemory};
use crate::core::refork::ReforkCause;
use crate::core::replacement::ReplacementCause;
use crate::core::restart::Asked;
use crate::core::samples::{boot_failure, booted, companion, diagnosis, start_failure};
use crate::core::server::Server;
use crate::core::sizing::{Load, Room};
use crate::core::{Action, AppAction, AppEvent, Event, Process, Receipt, SuccessorEvent, WorkerOrder};
use crate::facts::ending::Ending;
use crate::facts::folder_state::FolderState;
use fastrand::Rng;
use highball_cgroups::{CpuLimit, Cpus};
use highball_config::{AppId, Companion, PoolRange, ReforkAfter, RestartRule, RolloutOrder, VisitorShare};
use highball_link::{AppCommand, Booted, Diagnosis, NewWorker, Step};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps of which a trace tells.
const TRACED: usize = 200;
/// How long the front waits for a worker to begin a request.
const STUCK_TIME: Duration = Duration::from_secs(15);

const MS: Duration = Duration::from_millis(1);

/// An event on its way to the core.
struct Delivery {
    at: Instant,
    number: u64,
    /// The process that has sent it, and when: a process that was dead by then has not.
    sent: Option<(AppId, Process, Instant)>,
    event: Event,
}

impl PartialEq for Delivery {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Delivery {}
impl PartialOrd for Delivery {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Delivery {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A process that exists.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimProcess {
    pub(super) died_at: Option<Instant>,
    /// Whether anything still holds it: it was forgotten otherwise, and sees its control socket closed.
    pub(super) is_orphan: bool,
}

pub(super) struct World {
    pub(super) chaos: Chaos,
    pub(super) server: Server,
    pub(super) now: Instant,
    pub(super) steps: u64,
    pub(super) processes: BTreeMap<(AppId, Process), SimProcess>,
    pub(super) books: Books,
    /// Workers that do not begin the requests that they are given.
    pub(super) stuck: BTreeSet<(AppId, u32)>,
    rng: Rng,
    queue: BinaryHeap<Reverse<Delivery>>,
    deliveries: u64,
    receipts: u64,
    next_app: u32,
    /// What all applications report of themselves, and what all failures look like.
    booted: Arc<Booted>,
    caller: Arc<Booted>,
    diagnosis: Arc<Diagnosis>,
    successor_is_there: Option<u32>,
    /// The most requests that applications get at a time.
    load: f64,
    /// Molds that leave loading to their workers.
    bare: BTreeSet<(AppId, u32)>,
    ended: bool,
    trace: Option<VecDeque<String>>,
    began: Instant,
}

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> World {
        let mut rng = Rng::with_seed(seed);
        let began = Instant::now();
        let now = began + Duration::from_secs(1);
        let purposes = [Purpose::Serve, Purpose::Serve, Purpose::Serve, Purpose::Succeed];
        let config = ServerConfig {
            is_development: rng.bool(),
            drain_grace: Duration::from_secs([0, 0, 1, 20][rng.usize(..4)]),
            drain_timeout: Duration::from_secs(rng.u64(1..40)),
            boots_at_a_time: rng.usize(1..3),
            purpose: purposes[rng.usize(..4)],
        };
        let mut world = World {
            chaos: Chaos::any(&mut rng),
            server: Server::new(config, now),
            now,
            steps: 0,
            processes: BTreeMap::new(),
            books: Books::default(),
            stuck: BTreeSet::new(),
            rng,
            queue: BinaryHeap::new(),
            deliveries: 0,
            receipts: 0,
            next_app: 0,
            booted: Arc::new(booted(true)),
            caller: Arc::new(booted(false)),
            diagnosis: Arc::new(diagnosis()),
            successor_is_there: None,
            load: 0.0,
            bare: BTreeSet::new(),
            ended: false,
            trace: traced.then(VecDeque::new),
            began,
        };
        for _ in 0..[1, 1, 2, 3][world.rng.usize(..4)] {
            let event = world.new_app();
            world.after(Duration::ZERO, event);
        }
        world.after(MS * 3000, Event::MayUpgrade);
        let gone = world.a_while();
        world.after(gone, Event::PredecessorWithoutCompanions);
        world
    }

    fn new_app(&mut self) -> Event {
        self.next_app += 1;
        let source = match self.rng.u32(..20) {
            0 => Source::Site,
            1 if self.next_app == 1 => Source::Caller,
            _ => Source::Folder,
        };
        Event::AddApp(AppId(self.next_app), Box::new(self.config(source)))
    }

    fn config(&mut self, source: Source) -> AppConfig {
        let pool = self.any_pool();
        let companions = self.any_companions();
        let rng = &mut self.rng;
        let workers = rng.u16(1..5);
        AppConfig {
            name: "app".into(),
            source,
            has_fault: source == Source::Folder && rng.u32(..20) == 0,
            folder: PathBuf::new(),
            link: PathBuf::new(),
            is_development: self.server.config.is_development,
            workers: pool.map_or(workers, |pool| workers.clamp(pool.min, pool.max)),
            pool,
            threads: rng.u16(1..4),
            prestart: rng.u32(..4) > 0,
            preload: rng.u32(..4) > 0,
            boot_timeout: Duration::from_secs(rng.u64(2..60)),
            probe_timeout: Duration::from_secs(rng.u64(1..10)),
            probe_path: "/".into(),
            drain_timeout: self.server.config.drain_timeout,
            max_boot_failures: rng.u32(1..6),
            refork_after: [
                ReforkAfter::Never,
                ReforkAfter::Auto,
                ReforkAfter::Auto,
                ReforkAfter::Requests(vec![50, 1000]),
            ][rng.usize(..4)]
            .clone(),
            rest_mold_after: rng.bool().then(|| Duration::from_secs(rng.u64(1..30))),
            may_fail: rng.bool(),
            companions,
        }
    }

    fn any_companions(&mut self) -> Vec<Arc<Companion>> {
        let rng = &mut self.rng;
        let names = ["clock", "jobs"][..rng.usize(..3)].iter();
        let rules = [RestartRule::Always, RestartRule::Always, RestartRule::OnFailure, RestartRule::Never];
        let mut any = |name: &&str| {
            let stop_timeout = Duration::from_secs([0, 1, 30, 600][rng.usize(..4)]);
            let (restart, fork) = (rules[rng.usize(..4)], rng.bool());
            // `clock` comes first.
            let start_after =
                if *name == "jobs" && rng.bool() { vec!["clock".to_owned()] } else { Vec::new() };
            let any = companion(name, rng.u16(1..4));
            Arc::new(Companion { stop_timeout, restart, fork, start_after, ..any })
        };
        names.map(&mut any).collect()
    }

    fn any_pool(&mut self) -> Option<PoolRange> {
        let rng = &mut self.rng;
        let min = rng.u16(1..3);
        let cpus = Cpus { count: rng.f64() * 4.0 + 0.1, by: CpuLimit::CpuMax };
        (rng.u32(..3) == 0).then(|| PoolRange { min, max: min + rng.u16(..6), cpus })
    }

    // --- time, and what is to come

    fn after(&mut self, delay: Duration, event: Event) {
        self.deliver(delay, None, event);
    }

    fn deliver(&mut self, delay: Duration, sent: Option<(AppId, Process, Instant)>, event: Event) {
        if self.chance(self.chaos.double) {
            if let Some(again) = repeatable(&event) {
                let later = delay + self.soon();
                self.push(later, sent, again);
            }
        }
        self.push(delay, sent, event);
    }

    fn push(&mut self, delay: Duration, sent: Option<(AppId, Process, Instant)>, event: Event) {
        self.deliveries += 1;
        let delivery = Delivery { at: self.now + delay, number: self.deliveries, sent, event };
        self.queue.push(Reverse(delivery));
    }

    /// A process sends this after a while, if it still lives.
    fn sends(&mut self, app: AppId, process: Process, delay: Duration, event: AppEvent) {
        let latency = self.soon();
        let sent = Some((app, process, self.now + delay));
        self.deliver(delay + latency, sent, Event::OfApp(app, event));
    }

    fn reports(&mut self, app: AppId, delay: Duration, event: AppEvent) {
        self.after(delay, Event::OfApp(app, event));
    }

    pub(super) fn chance(&mut self, of_10_000: u32) -> bool {
        of_10_000 > 0 && self.rng.u32(..10_000) < of_10_000
    }

    /// A short time, sometimes none.
    fn soon(&mut self) -> Duration {
        MS * self.rng.u32(..20)
    }

    /// As long as work takes: mostly short, sometimes so long that time limits pass.
    fn a_while(&mut self) -> Duration {
        if self.chance(self.chaos.delay) {
            MS * self.rng.u32(..90_000)
        } else {
            MS * self.rng.u32(..1500)
        }
    }

    // --- one step

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether it is not on its way to its end.
    pub(super) fn is_open(&self) -> bool {
        !self.server.is_over()
    }

    /// What happens next: something is delivered, or a deadline passes.
    pub(super) fn next_event(&mut self) -> Event {
        self.meddle();
        let due = self.server.next_deadline();
        loop {
            let next = self.queue.peek().map(|Reverse(next)| next.at);
            match next {
                Some(at) if due.is_none_or(|due| at <= due) => {
                    let Some(Reverse(delivery)) = self.queue.pop() else { return Event::Tick };
                    if !self.was_sent(&delivery) {
                        continue;
                    }
                    self.now = self.now.max(delivery.at);
                    return delivery.event;
                }
                None if self.chaos.order > 0 && self.rng.bool() => {
                    let pause = self.a_while();
                    self.now += pause;
                    return if due.is_some_and(|due| due <= self.now) {
                        Event::Tick
                    } else {
                        self.any_order()
                    };
                }
                _ => {
                    let idle = self.now + Duration::from_secs(60);
                    self.now = self.now.max(due.unwrap_or(idle));
                    return Event::Tick;
                }
            }
        }
    }

    fn was_sent(&self, delivery: &Delivery) -> bool {
        let Some((app, process, at)) = delivery.sent else { return true };
        match self.processes.get(&(app, process)) {
            Some(life) => !life.is_orphan && life.died_at.is_none_or(|died| died >= at),
            None => false,
        }
    }

    pub(super) fn tell(&mut self, event: Event) -> Result<(), String> {
        self.steps += 1;
        if let Some(trace) = &mut self.trace {
            let at = self.now - self.began;
            trace.push_back(format!("{:>12.3} {event:?}", at.as_secs_f64()));
        }
        self.books.note_event(&event, self.now);
        self.front_reports_again(&event);
        let actions = self.server.step(event, self.now);
        if let Some(trace) = &mut self.trace {
            trace.extend(actions.iter().map(|action| format!("{:16}{action:?}", "")));
            while trace.len() > TRACED {
                trace.pop_front();
            }
        }
        self.books.note_actions(&actions, &self.server)?;
        for action in actions {
            self.perform(action);
        }
        Ok(())
    }

    /// A step leaves nothing undone.
    pub(super) fn check_undone(&mut self) -> Result<(), String> {
        let undone = self.server.step(Event::Tick, self.now).into_iter().next();
        undone.map_or(Ok(()), |action| Err(format!("a step left something undone: {action:?}")))
    }

    /// Clients send requests to every application.
    pub(super) fn request_all(&mut self) {
        for app in 1..=self.next_app {
            self.after(Duration::ZERO, Event::OfApp(AppId(app), AppEvent::Wanted));
        }
    }

    /// Operators end the rollouts that hold, in either way.
    pub(super) fn end_rollouts(&mut self) {
        for app in 1..=self.next_app {
            let order = match self.rng.bool() {
                true => RolloutOrder::Undo,
                false => RolloutOrder::Share(VisitorShare::ALL),
            };
            let event = AppEvent::Rollout { order, receipt: None };
            self.after(Duration::ZERO, Event::OfApp(AppId(app), event));
        }
    }

    /// An impatient operator may interrupt a server that ends; or else there are no further orders.
    pub(super) fn may_be_interrupted(&mut self) {
        if self.rng.bool() {
            self.chaos.order = 0;
        } else {
            self.after(Duration::from_secs(1), Event::Signal(ReceivedSignal::Interrupt));
        }
    }

    /// As long as a worker does not begin requests, the front says so again and again.
    fn front_reports_again(&mut self, event: &Event) {
        let Event::OfApp(app, AppEvent::ReplaceWorker { worker, cause: ReplacementCause::Unresponsive }) =
            event
        else {
            return;
        };
        if self.stuck.contains(&(*app, *worker)) && self.lives(*app, Process::Worker(*worker)) {
            self.front_finds_stuck(*app, *worker);
        }
    }

    fn front_finds_stuck(&mut self, app: AppId, worker: u32) {
        let event = AppEvent::ReplaceWorker { worker, cause: ReplacementCause::Unresponsive };
        self.push(STUCK_TIME, None, Event::OfApp(app, event));
    }

    pub(super) fn trace(&self) -> String {
        let mut text = String::new();
        for line in self.trace.iter().flatten() {
            let _ = writeln!(text, "{line}");
        }
        if self.trace.is_some() {
            let _ = writeln!(text, "\n{:#?}", self.server);
        }
        text
    }

    // --- random failures

    fn meddle(&mut self) {
        if self.chance(self.chaos.death) {
            self.someone_dies();
        }
        if self.chance(self.chaos.forgery) {
            self.someone_lies();
        }
        if self.chance(self.chaos.order) {
            let event = self.any_order();
            let delay = self.soon();
            self.after(delay, event);
        }
        if self.chance(self.chaos.load) {
            let (app, load) = (self.any_app(), self.any_load());
            self.after(Duration::ZERO, Event::OfApp(app, AppEvent::Load(load)));
        }
        if self.chance(self.chaos.stop) {
            let event = [
                Event::Stop,
                Event::Signal(ReceivedSignal::Terminate),
                Event::Signal(ReceivedSignal::Interrupt),
            ];
            let event = event[self.rng.usize(..3)].clone();
            self.after(Duration::ZERO, event);
        }
        if self.chance(self.chaos.jump) {
            self.now += Duration::from_secs(self.rng.u64(..100_000));
        }
    }

    fn any_process(&mut self) -> Option<(AppId, Process)> {
        let count = self.processes.len();
        let chosen = if count == 0 { return None } else { self.rng.usize(..count) };
        self.processes.keys().nth(chosen).copied()
    }

    fn someone_dies(&mut self) {
        if self.rng.u32(..20) == 0 {
            if let Some(upgrade) = self.successor_is_there {
                return self.successor_dies(upgrade, Ending::Killed(9));
            }
        }
        if let Some((app, process)) = self.any_process() {
            let ending = [Ending::Exited(0), Ending::Exited(1), Ending::Killed(9), Ending::Killed(11)];
            let ending = ending[self.rng.usize(..4)];
            self.dies(app, process, ending);
        }
    }

    /// The kernel reports it, and its control socket closes, in any order.
    fn dies(&mut self, app: AppId, process: Process, ending: Ending) {
        let Some(life) = self.processes.get_mut(&(app, process)) else { return };
        if life.died_at.is_some() {
            return;
        }
        life.died_at = Some(self.now);
        if life.is_orphan {
            return;
        }
        self.report_death(app, process, ending);
    }

    fn report_death(&mut self, app: AppId, process: Process, ending: Ending) {
        let is_caller = matches!(process, Process::Mold(_)) && self.is_caller(app);
        let (end, close) = (self.soon(), self.soon());
        if !is_caller {
            self.reports(app, end, AppEvent::Ended { process, ending });
        }
        if is_caller || !self.chance(self.chaos.hang) {
            self.reports(app, close, AppEvent::Closed { process });
        } // else a child of it holds the socket
    }

    fn is_caller(&self, app: AppId) -> bool {
        self.server.apps.get(&app).is_some_and(|app| app.config.source == Source::Caller)
    }

    /// A process sends any message of its kind.
    fn someone_lies(&mut self) {
        let Some((app, process)) = self.any_process() else { return };
        let worker = self.rng.u32(..30);
        let event = match process {
            Process::Mold(boot) => match self.rng.u32(..7) {
                6 => AppEvent::MoldLaidOut { boot, worker },
                0 => AppEvent::MoldStep { boot, step: Step::LoadApp },
                1 => AppEvent::MoldBooted { boot, app: Some(Arc::clone(&self.booted)) },
                2 => AppEvent::MoldFailed { boot, failure: Box::new(boot_failure()) },
                3 => AppEvent::ForkFailed { worker, message: String::new() },
                4 if !self.is_caller(app) => AppEvent::MoldAsksToStop { boot },
                _ => AppEvent::Misbehaved { process, error: String::new() },
            },
            Process::Worker(worker) => match self.rng.u32(..8) {
                0 => AppEvent::WorkerBooted { worker, app: Arc::clone(&self.booted) },
                1 => AppEvent::WorkerReady { worker },
                2 => AppEvent::WorkerFailed { worker, failure: Box::new(start_failure()) },
                3 => AppEvent::WorkerFit { worker },
                4 => AppEvent::WorkerUnfit { worker, why: String::new() },
                5 => AppEvent::WorkerPromoted { worker },
                6 => AppEvent::WorkerLeaving { worker },
                _ => AppEvent::Misbehaved { process, error: String::new() },
            },
            Process::Companion(number) => match self.rng.u32(..3) {
                0 => AppEvent::CompanionStarted { number },
                1 => AppEvent::CompanionNotStarted { number, why: String::new() },
                _ => AppEvent::Misbehaved { process, error: String::new() },
            },
        };
        self.sends(app, process, Duration::ZERO, event);
    }

    fn any_app(&mut self) -> AppId {
        AppId(self.rng.u32(1..=self.next_app))
    }

    fn receipt(&mut self) -> Receipt {
        self.receipts += 1;
        Receipt(1 << 40 | self.receipts)
    }

    /// Orders of operators, files, signals and the front.
    fn any_order(&mut self) -> Event {
        let (app, receipt) = (self.any_app(), self.receipt());
        let of_app = |event| Event::OfApp(app, event);
        let worker = self.rng.u32(..40);
        match self.rng.u32(..42) {
            0..=4 => of_app(AppEvent::Restart { asked: Asked::Command, receipt: Some(receipt) }),
            5 => of_app(AppEvent::Restart { asked: Asked::File, receipt: None }),
            31..=33 => of_app(AppEvent::Rollout { order: self.any_rollout(), receipt: Some(receipt) }),
            6..=9 => of_app(AppEvent::Refork { cause: ReforkCause::Command, receipt: Some(receipt) }),
            10 => Event::Upgrade(receipt),
            11 => Event::Signal(ReceivedSignal::Restart),
            12 => Event::Signal(ReceivedSignal::Refork),
            13 => Event::Signal(ReceivedSignal::Upgrade),
            14 => Event::Signal(ReceivedSignal::Hangup),
            15 => Event::Signal(ReceivedSignal::MoreWorkers),
            16 => Event::Signal(ReceivedSignal::FewerWorkers),
            17..=20 => of_app(AppEvent::Wanted),
            21..=22 => of_app(AppEvent::Idle),
            23 => of_app(AppEvent::WorkerBroken { worker, why: String::new() }),
            24 => of_app(AppEvent::WorkerIdle { worker, is_stuck: self.rng.bool() }),
            25 => of_app(AppEvent::CanaryAnswered { worker, answer: Ok(200) }),
            26 if self.rng.bool() => of_app(AppEvent::SlowStartEnded { worker }),
            26 => of_app(AppEvent::WorkerWarm { worker }),
            27 if self.rng.bool() => of_app(AppEvent::Remove),
            27 => of_app(AppEvent::MemoryRoom(self.any_room().unwrap_or(Room::UNLIMITED))),
            34 => of_app(AppEvent::RingEndsSoon { worker }),
            35..=39 => of_app(self.any_replacement(app)),
            40 | 41 => of_app(AppEvent::CompanionOverLimit { number: worker, bytes: 2, limit: 1 }),
            28 | 29 => self.changed_config(app),
            30 if self.next_app < 6 => self.new_app(),
            _ => of_app(AppEvent::MoreWorkers(self.rng.i32(-2..3))),
        }
    }

    fn any_rollout(&mut self) -> RolloutOrder {
        let share = ["0.1%", "5%", "30%", "50%", "99.9%", "100%"][self.rng.usize(..6)];
        match self.rng.u32(..6) {
            0 => RolloutOrder::Undo,
            _ => RolloutOrder::Share(share.parse().expect("it is a share")),
        }
    }

    /// A worker that exists, mostly, is to be replaced; sometimes also its replacements, one after the other.
    fn any_replacement(&mut self, app: AppId) -> AppEvent {
        let cause = ReplacementCause::ALL[self.rng.usize(..ReplacementCause::ALL.len())];
        let workers = self.server.apps.get(&app).map(|app| app.staff.workers().which(|_| true));
        let workers = workers.filter(|workers| !workers.is_empty()).unwrap_or_else(|| vec![99]);
        if self.rng.u32(..8) == 0 {
            for (worker, second) in (workers[workers.len() - 1] + 1..).zip(1..=8) {
                let event = self.replacement(worker, cause);
                self.after(Duration::from_secs(second), Event::OfApp(app, event));
            }
        }
        let worker = workers[self.rng.usize(..workers.len())];
        self.replacement(worker, cause)
    }

    fn replacement(&mut self, worker: u32, cause: ReplacementCause) -> AppEvent {
        match cause {
            ReplacementCause::TimedOut | ReplacementCause::Unresponsive | ReplacementCause::Asked => {
                AppEvent::ReplaceWorker { worker, cause }
            }
            ReplacementCause::OverMemory if self.rng.u32(..8) == 0 => {
                AppEvent::MemoryLimitTooSmall { over: self.any_excess() }
            }
            ReplacementCause::OverMemory => AppEvent::OverMemory { worker, over: self.any_excess() },
            ReplacementCause::ForkedEarly => AppEvent::MoldLaidOut { boot: self.rng.u32(1..8), worker },
        }
    }

    fn any_excess(&mut self) -> OverMemory {
        let has_room = self.rng.bool();
        let bound = [Bound::Worker, Bound::App, Bound::Max, Bound::Machine][self.rng.usize(..4)];
        OverMemory { bound, worker_bytes: 2, bytes: 2, limit: 1, has_room }
    }

    /// It lasts, as time is what lets the core see it.
    fn any_load(&mut self) -> Load {
        if self.rng.u32(..40) == 0 {
            self.load = [0.0, 0.0, 1.0, 5.0, 40.0][self.rng.usize(..5)];
        }
        let requests = self.load * self.rng.f64();
        Load {
            elapsed: MS * self.rng.u32(..1000),
            busy: requests.min(4.0),
            queue: (requests - 4.0).max(0.0),
            waited: MS * if requests > 4.0 { self.rng.u32(..200) } else { 0 },
            cpus: self.rng.f64() * requests,
            room: self.any_room(),
        }
    }

    fn any_room(&mut self) -> Option<Room> {
        let workers = [0, 1, 2, 100][self.rng.usize(..4)];
        self.rng.bool().then_some(Room { workers, worker_bytes: 1, free_bytes: 1 })
    }

    fn changed_config(&mut self, app: AppId) -> Event {
        let source = self.server.apps.get(&app).map_or(Source::Folder, |app| app.config.source);
        let mut config = Box::new(self.config(source));
        config.has_fault = false; // a wrong configuration changes nothing
        let replaces = self.rng.bool();
        Event::OfApp(app, AppEvent::Configure { config, replaces })
    }

    // --- the shell, and what it meets

    fn perform(&mut self, action: Action) {
        match action {
            Action::OfApp(app, action) => self.perform_for(app, action),
            Action::ForgetApp(app) => {
                self.processes.retain(|(of, _), life| *of != app || life.died_at.is_none());
                for ((of, _), life) in &mut self.processes {
                    life.is_orphan |= *of == app;
                }
            }
            Action::DrainFront if !self.chance(self.chaos.hang) => {
                let delay = self.a_while();
                self.after(delay, Event::FrontDrained);
            }
            Action::SpawnSuccessor { upgrade, .. } => self.spawn_successor(upgrade),
            Action::TakeOver { upgrade } => self.take_over(upgrade),
            Action::SignalSuccessor { upgrade, signal } => self.signal_successor(upgrade, signal),
            Action::HandOver { .. } => {
                if self.rng.u32(..4) == 0 {
                    let delay = self.a_while();
                    self.after(delay, Event::ServingProcessEnded);
                }
                let delay = self.a_while();
                self.after(delay, Event::FrontDrained);
            }
            Action::End => self.ended = true,
            Action::DrainFront
            | Action::AnnounceStop
            | Action::Hangup
            | Action::ForgetSuccessor { .. }
            | Action::DropUpgradeContext
            | Action::ReportNoCompanions
            | Action::PassOn(_)
            | Action::Answer(..)
            | Action::Log(_)
            | Action::Checkpoint(_) => {}
        }
    }

    fn perform_for(&mut self, app: AppId, action: AppAction) {
        match action {
            AppAction::SpawnMold { boot, folder } => self.spawn_mold(app, boot, folder.unwrap_or_default()),
            AppAction::Fork { boot, worker } => self.fork(app, boot, worker),
            AppAction::Tell { worker, order } => self.obey(app, worker, order),
            AppAction::SpawnCompanion { number, companion, boot, .. } => {
                self.spawn_companion(app, number, companion.restart, boot);
            }
            AppAction::EndCompanion { number } => self.end_companion(app, number),
            AppAction::DumpThreads(_) => {}
            AppAction::Kill(process) => self.kill(app, process),
            AppAction::BecomeMold { worker, boot } => self.become_mold(app, worker, boot),
            AppAction::Forget { process, .. } => self.forget(app, process),
            AppAction::OpenSite { generation, folder } => {
                let folder = folder.unwrap_or_default();
                let event = if self.chance(self.chaos.failure) {
                    AppEvent::NoSite { generation, folder, failure: Box::new(boot_failure()) }
                } else {
                    AppEvent::SiteFound { generation, folder, site: Arc::clone(&self.booted) }
                };
                if !self.chance(self.chaos.hang) {
                    let delay = self.a_while();
                    self.reports(app, delay, event);
                }
            }
            AppAction::Diagnose { receipt, .. } => {
                let files = self.files();
                let diagnosis = Arc::clone(&self.diagnosis);
                let delay = self.a_while();
                self.reports(app, delay, AppEvent::Diagnosed { receipt, diagnosis, files });
            }
            AppAction::MeasureMemory { receipt, .. } => {
                let delay = self.a_while();
                let memory = (!self.chance(self.chaos.failure)).then(|| self.any_memory());
                if !self.chance(self.chaos.hang) {
                    self.reports(app, delay, AppEvent::MemoryMeasured { receipt, memory });
                }
            }
            AppAction::LookAtFolder { receipt } => {
                let (files, took) = (self.files(), self.soon());
                let delay = self.a_while();
                self.reports(app, delay, AppEvent::FolderSeen { receipt, files, took });
            }
            AppAction::Notify(command) => self.hear(app, command),
            AppAction::ReportRemoval => {
                let (hangs, delay) = (self.chance(self.chaos.hang), self.a_while());
                if !hangs {
                    self.reports(app, delay, AppEvent::Drained);
                }
            }
            AppAction::RereadConfiguration => self.reread(app),
            AppAction::Answer(..) | AppAction::Log(_) | AppAction::Checkpoint(_) => {}
        }
    }

    /// The configuration has been corrected, or not.
    fn reread(&mut self, app: AppId) {
        let Some(mut config) = self.server.apps.get(&app).map(|app| app.config.clone()) else { return };
        if self.chance(self.chaos.failure) {
            return;
        }
        config.has_fault = false;
        let event = AppEvent::Configure { config: Box::new(config), replaces: true };
        let delay = self.soon();
        self.reports(app, delay, event);
    }

    fn files(&mut self) -> Option<FolderState> {
        let state = FolderState(self.rng.u64(..3));
        (!self.chance(self.chaos.failure)).then_some(state)
    }

    fn begins(&mut self, app: AppId, process: Process) {
        self.processes.insert((app, process), SimProcess { died_at: None, is_orphan: false });
    }

    fn spawn_mold(&mut self, app: AppId, boot: u32, folder: PathBuf) {
        let process = Process::Mold(boot);
        let delay = self.soon();
        let has_fault = self.server.apps.get(&app).is_some_and(|app| app.config.has_fault);
        if has_fault || self.chance(self.chaos.refusal) {
            let failure = Box::new(boot_failure());
            return self.reports(app, delay, AppEvent::MoldNotStarted { boot, folder, failure });
        }
        if self.chance(self.chaos.hang) {
            return; // the file system does not answer
        }
        self.begins(app, process);
        self.reports(app, delay, AppEvent::MoldStarted { boot, folder });
        let (first, rest) = (delay + self.soon(), self.a_while());
        self.sends(app, process, first, AppEvent::MoldStep { boot, step: Step::LoadApp });
        if self.chance(self.chaos.delay) {
            let (delay, waited) = (self.a_while(), Duration::from_secs(self.rng.u64(..10_000)));
            self.reports(app, delay, AppEvent::MoldWaited { boot, waited });
        }
        if self.chance(self.chaos.hang) {
            return;
        }
        let done = first + rest;
        if self.chance(self.chaos.failure) {
            self.sends(app, process, done, AppEvent::MoldFailed { boot, failure: Box::new(boot_failure()) });
            return self.exits(app, process, done, Ending::Exited(1));
        }
        let preloads = self.server.apps.get(&app).is_none_or(|app| app.config.preload);
        if !preloads {
            self.bare.insert((app, boot));
        }
        let loaded = if self.is_caller(app) { &self.caller } else { &self.booted };
        let loaded = preloads.then(|| Arc::clone(loaded));
        self.sends(app, process, done, AppEvent::MoldBooted { boot, app: loaded });
    }

    /// Exits at that time, if it still lives.
    fn exits(&mut self, app: AppId, process: Process, delay: Duration, ending: Ending) {
        let (end, close) = (delay + self.soon(), delay + self.soon());
        let sent = Some((app, process, self.now + delay));
        self.push(end, sent, Event::OfApp(app, AppEvent::Ended { process, ending }));
        self.push(close, sent, Event::OfApp(app, AppEvent::Closed { process }));
    }

    fn lives(&self, app: AppId, process: Process) -> bool {
        self.processes.get(&(app, process)).is_some_and(|life| life.died_at.is_none())
    }

    fn fork(&mut self, app: AppId, boot: u32, number: u32) {
        let process = Process::Worker(number);
        let is_dead = !self.lives(app, Process::Mold(boot));
        if self.chance(self.chaos.refusal) || (is_dead && self.rng.bool()) {
            let delay = self.soon();
            return self.reports(app, delay, AppEvent::NotForked { worker: number, error: String::new() });
        }
        if is_dead || self.chance(self.chaos.hang) {
            return;
        }
        let born = self.soon();
        if self.chance(self.chaos.failure) {
            let mold = Process::Mold(boot);
            if self.rng.bool() {
                self.reports(app, born, AppEvent::Closed { process }); // its intermediate process was killed
            }
            let event = AppEvent::ForkFailed { worker: number, message: String::new() };
            return self.sends(app, mold, born, event);
        }
        self.begins(app, process);
        if self.rng.u32(..4) == 0 {
            let laid_out = born + self.soon();
            self.sends(app, Process::Mold(boot), laid_out, AppEvent::MoldLaidOut { boot, worker: number });
        }
        self.sends(app, process, born, AppEvent::WorkerHello { worker: number });
        let ready = born + self.a_while();
        if self.chance(self.chaos.hang) {
            return;
        }
        if self.chance(self.chaos.failure) {
            let failure = Box::new(start_failure());
            self.sends(app, process, ready, AppEvent::WorkerFailed { worker: number, failure });
            return self.exits(app, process, ready, Ending::Exited(1));
        }
        if self.bare.contains(&(app, boot)) {
            let loaded = Arc::clone(&self.booted);
            self.sends(app, process, ready, AppEvent::WorkerBooted { worker: number, app: loaded });
        }
        let ready = ready + MS * 20;
        self.sends(app, process, ready, AppEvent::WorkerReady { worker: number });
        if self.chance(self.chaos.early_death) {
            let lived = MS * self.rng.u32(..4000);
            let ending = [Ending::Exited(0), Ending::Exited(1), Ending::Killed(11)][self.rng.usize(..3)];
            self.exits(app, process, ready + lived, ending);
        }
    }

    fn obey(&mut self, app: AppId, worker: u32, order: WorkerOrder) {
        let process = Process::Worker(worker);
        if !self.lives(app, process) || self.chance(self.chaos.refusal) {
            if self.rng.bool() || self.lives(app, process) {
                let delay = self.soon();
                self.reports(app, delay, AppEvent::Unreachable { worker });
            }
            return;
        }
        if self.chance(self.chaos.hang) || self.stuck.contains(&(app, worker)) {
            return;
        }
        let (done, fails) = (self.a_while(), self.chance(self.chaos.failure));
        match order {
            WorkerOrder::Drain => self.exits(app, process, done, Ending::Exited(0)),
            WorkerOrder::MayPromote { .. } | WorkerOrder::Promote if fails => {
                self.sends(app, process, done, AppEvent::WorkerUnfit { worker, why: String::new() });
            }
            WorkerOrder::MayPromote { .. } => self.sends(app, process, done, AppEvent::WorkerFit { worker }),
            WorkerOrder::Promote => self.sends(app, process, done, AppEvent::WorkerPromoted { worker }),
        }
    }

    fn spawn_companion(&mut self, app: AppId, number: u32, restart: RestartRule, boot: Option<u32>) {
        let process = Process::Companion(number);
        let delay = self.soon();
        let is_dead = boot.is_some_and(|boot| !self.lives(app, Process::Mold(boot)));
        if is_dead && self.rng.bool() {
            return self.reports(app, delay, AppEvent::Closed { process }); // the mold had its control socket
        }
        if self.chance(self.chaos.refusal) || is_dead {
            let event = AppEvent::CompanionNotStarted { number, why: String::new() };
            return self.reports(app, delay, event);
        }
        if self.chance(self.chaos.hang) {
            return; // the file system does not answer
        }
        self.begins(app, process);
        self.sends(app, process, delay, AppEvent::CompanionStarted { number });
        let is_short = restart != RestartRule::Always && self.rng.bool();
        if self.chance(self.chaos.early_death) || is_short {
            let lived = delay + self.a_while();
            let ending = [Ending::Exited(0), Ending::Exited(1), Ending::Killed(11)][self.rng.usize(..3)];
            self.exits(app, process, lived, ending);
        }
    }

    /// A companion that ignores TERM goes on.
    fn end_companion(&mut self, app: AppId, number: u32) {
        if !self.chance(self.chaos.hang) {
            let done = self.a_while();
            self.exits(app, Process::Companion(number), done, Ending::Exited(0));
        }
    }

    fn any_memory(&mut self) -> AppMemory {
        let mib = |mib: u64| mib * 1024;
        AppMemory {
            workers: self.rng.u64(1..5),
            private_kib: mib(self.rng.u64(..300)),
            resident_kib: mib(self.rng.u64(..600)),
            total_kib: mib(self.rng.u64(..2000)),
            free_kib: self.rng.bool().then(|| mib(self.rng.u64(..2000))),
        }
    }

    fn kill(&mut self, app: AppId, process: Process) {
        if matches!(process, Process::Mold(_)) && self.is_caller(app) {
            return;
        }
        if self.chance(self.chaos.unkillable) {
            let delay = Duration::from_secs(self.rng.u64(1..30));
            return self.exits(app, process, delay, Ending::Killed(9));
        }
        self.dies(app, process, Ending::Killed(9));
    }

    fn become_mold(&mut self, app: AppId, worker: u32, boot: u32) {
        let Some(life) = self.processes.remove(&(app, Process::Worker(worker))) else { return };
        let process = Process::Mold(boot);
        self.processes.insert((app, process), life);
        if life.died_at.is_some() {
            self.report_death(app, process, Ending::Killed(9));
        }
    }

    /// A process that is forgotten alive finds its control socket closed.
    fn forget(&mut self, app: AppId, process: Process) {
        if let Some(life) = self.processes.get_mut(&(app, process)) {
            life.is_orphan = true;
            if life.died_at.is_none() {
                life.died_at = Some(self.now);
            }
        }
        self.processes.remove(&(app, process));
    }

    /// The front.
    fn hear(&mut self, app: AppId, command: AppCommand<()>) {
        if self.chance(self.chaos.hang) {
            return;
        }
        let delay = self.a_while();
        match command {
            AppCommand::AddWorker(NewWorker { worker, .. }) if self.chance(self.chaos.stuck) => {
                self.stuck.insert((app, worker));
                self.front_finds_stuck(app, worker);
            }
            AppCommand::AddCanary(NewWorker { worker, .. }) => {
                let answer = match (self.chance(self.chaos.failure), self.rng.bool()) {
                    (true, true) => Ok(500),
                    (true, false) => Err(String::new()),
                    (false, _) => Ok(200),
                };
                self.reports(app, delay, AppEvent::CanaryAnswered { worker, answer });
            }
            AppCommand::AdmitCanary { worker } => {
                self.reports(app, delay, AppEvent::SlowStartEnded { worker });
            }
            AppCommand::RetireWorker { worker } => {
                let is_stuck = self.chance(self.chaos.failure);
                self.reports(app, delay, AppEvent::WorkerIdle { worker, is_stuck });
            }
            AppCommand::RelieveWorker { worker } => {
                let event = match self.rng.bool() {
                    true => AppEvent::WorkerKept { worker },
                    false => AppEvent::WorkerIdle { worker, is_stuck: false },
                };
                self.reports(app, delay, event);
            }
            AppCommand::NameWarmWorker { requests } => {
                let workers = self.server.apps.get(&app).map(|app| {
                    app.staff
                        .workers()
                        .iter()
                        .filter(|(_, worker)| worker.was_ready())
                        .map(|(n, _)| n)
                        .collect()
                });
                let workers: Vec<u32> = workers.unwrap_or_default();
                if !workers.is_empty() && (requests == 0 || self.rng.u32(..8) == 0) {
                    let worker = workers[self.rng.usize(..workers.len())];
                    self.reports(app, delay, AppEvent::WorkerWarm { worker });
                }
            }
            AppCommand::Failed(_) | AppCommand::Abandon if self.rng.bool() => {
                self.reports(app, delay, AppEvent::Wanted);
            }
            _ => {}
        }
    }

    // --- the other process

    fn successor_event(&mut self, upgrade: u32, delay: Duration, event: SuccessorEvent) {
        self.push(delay, None, Event::Successor(upgrade, event));
    }

    fn spawn_successor(&mut self, upgrade: u32) {
        let delay = self.soon();
        if self.chance(self.chaos.refusal) {
            let event = SuccessorEvent::NotStarted { why: String::new() };
            return self.successor_event(upgrade, delay, event);
        }
        self.successor_is_there = Some(upgrade);
        if self.chance(self.chaos.hang) {
            return;
        }
        let (boots, ready) = (delay + self.a_while(), self.a_while());
        let limit = Duration::from_secs(60);
        self.successor_event(upgrade, boots, SuccessorEvent::Booting { version: String::new(), limit });
        let event = if self.chance(self.chaos.failure) {
            SuccessorEvent::Failed { why: String::new() }
        } else {
            SuccessorEvent::Ready { kept: Vec::new() }
        };
        self.successor_event(upgrade, boots + ready, event);
    }

    fn take_over(&mut self, upgrade: u32) {
        let delay = self.soon();
        if self.chance(self.chaos.refusal) {
            self.successor_event(upgrade, delay, SuccessorEvent::Unreachable { error: String::new() });
        } else if self.successor_is_there == Some(upgrade) && !self.chance(self.chaos.hang) {
            self.successor_event(upgrade, delay, SuccessorEvent::Serving);
        }
    }

    fn signal_successor(&mut self, upgrade: u32, signal: SuccessorSignal) {
        match signal {
            SuccessorSignal::Reread => {}
            SuccessorSignal::End if self.chance(self.chaos.hang) => {}
            SuccessorSignal::End => self.successor_dies(upgrade, Ending::Exited(0)),
            SuccessorSignal::Kill => self.successor_dies(upgrade, Ending::Killed(9)),
        }
    }

    fn successor_dies(&mut self, upgrade: u32, ending: Ending) {
        if self.successor_is_there == Some(upgrade) {
            self.successor_is_there = None;
            let (end, close) = (self.soon(), self.soon());
            self.successor_event(upgrade, end, SuccessorEvent::Ended(ending));
            self.successor_event(upgrade, close, SuccessorEvent::Closed);
        }
    }
}

/// The same event again, where it may be delivered twice: answers of the shell may not.
fn repeatable(event: &Event) -> Option<Event> {
    match event {
        Event::OfApp(_, event) => match event {
            AppEvent::Diagnosed { .. }
            | AppEvent::MoldStarted { .. }
            | AppEvent::MoldNotStarted { .. }
            | AppEvent::Restart { .. }
            | AppEvent::Rollout { .. }
            | AppEvent::Refork { .. } => return None,
            _ => {}
        },
        Event::Signal(_) | Event::FrontDrained => {}
        _ => return None,
    }
    Some(event.clone())
}
