//! What all tasks of the front share. One thread, hence `Rc` and cells; no borrow is held across an await.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use highball_config::{App, AppId, Settings};
use highball_link::{
    AppCommand, Diagnosis, FrontAppEvent, FrontEvent, FrontReport, HubAddress, HubSequence, NewWorker,
    RequestCounts, ServerRequests,
};
use highball_trace::SpanQueue;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{watch, Notify};

use crate::access_log::AccessLog;
use crate::aside::loop_share::LoopShare;
use crate::aside::PoolShare;
use crate::budget::{Budget, Budgets, Kind, Share};
use crate::clock::spread::Spread;
use crate::clock::{Deadline, Deadlines, Use};
use crate::compression::room::Room;
use crate::developer_key::DeveloperKey;
use crate::dispatch::AppEvents;
use crate::exchange::spool_room::SpoolRoom;
use crate::heap::Heap;
use crate::http_syntax::DateCache;
use crate::https::Https;
use crate::hub::{FanOut, Hub};
use crate::random::RandomBytes;
use crate::rate_limit::RateTable;
use crate::refusals::failure::{Developers, DevelopmentPages};
use crate::route::app_state::AppState;
use crate::route::apps::Apps;
use crate::succession::message::NewProcess;
use crate::trace::Tracer;
use crate::transport::listener::Acceptor;
use crate::transport::proxy_header::Refusals;
use crate::turn::Turn;

/// Bytes read from a socket at a time.
const READ_BYTES: usize = 64 * 1024;

/// While the server stops, an idle client may send one more request for this time.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// Whether, and why, every answer is the last of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It is not.
    No,
    /// Another server accepts connections by now: the ones here can wait for their last request.
    HandedOver,
    /// The server stops.
    Stopping,
}

/// When the front begins to accept connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// From the start: what comes before there are workers waits for them.
    AtOnce,
    /// At [`FrontCommand::Open`](highball_link::FrontCommand).
    OnCommand,
}

/// Requests that were not answered as a whole, from when the front was to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Their clients took too long to send them: they got 408.
    pub incomplete: usize,
    /// Their clients have left before the end of the answer.
    pub left: usize,
    /// Their answers were cut off: the client took nothing, or the application failed.
    pub cut_off: usize,
    /// They were not finished when the front ended.
    pub in_flight: usize,
}

/// The front's state.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    /// By which developers show who they are.
    pub(crate) key: Arc<DeveloperKey>,
    /// Makes the pages about a failure, for developers.
    pub(crate) pages: fn(&Diagnosis) -> DevelopmentPages,
    /// For clients with TLS.
    pub(crate) https: Option<Https>,
    pub(crate) apps: RefCell<Apps>,
    /// Of the event loop.
    pub(crate) turn: Rc<Turn>,
    budgets: Budgets,
    /// What room there is for spool files.
    pub(crate) spool_room: Arc<SpoolRoom>,
    heap: Heap,
    compression: Room,
    /// How processes of applications show whose messages they publish.
    pub(crate) hub_address: Arc<HubAddress>,
    /// The addresses of applications' hubs in the process that takes over, by their names.
    pub(crate) hubs_elsewhere: RefCell<HashMap<String, String>>,
    /// How this process numbers messages.
    hub_sequence: HubSequence,
    /// The process that takes over, in a hot restart.
    pub(crate) new_process: RefCell<NewProcess>,
    pub(crate) fan_out: Rc<FanOut>,
    pub(crate) date: DateCache,
    /// Traces requests, if a collector is named.
    pub(crate) tracer: Option<Tracer>,
    /// For ids of requests and traces.
    pub(crate) random: RefCell<RandomBytes>,
    pub(crate) deadlines: Deadlines,
    /// For what concerns no application, or one without its own log.
    pub(crate) access_log: Option<Rc<AccessLog>>,
    /// What was read last; connections keep only what they cannot use at once.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    /// Memory for what is written next.
    pub(crate) spare_output: RefCell<Vec<u8>>,
    /// Whether connections are accepted, or were.
    pub(crate) open: watch::Sender<bool>,
    /// Whether the server is stopping, or has been succeeded by another.
    pub(crate) draining: watch::Sender<bool>,
    leaving: Cell<Leaving>,
    /// The server stops soon, and still accepts connections.
    stops_soon: Cell<bool>,
    unanswered: Cell<Unanswered>,
    /// The addresses on which another server accepts.
    left_to_another: RefCell<Vec<String>>,
    /// There may be room for another connection: one has ended, or has become idle at the limit.
    pub(crate) freed: Notify,
    /// There is no room for another connection any more: none is idle at the limit.
    pub(crate) full: Notify,
    /// Connections that were closed as they began with no header of the PROXY protocol.
    pub(crate) proxy_refusals: Refusals,
    /// Connections that were closed as too many TLS handshakes were under way.
    pub(crate) handshake_refusals: Refusals,
    /// Connections whose clients have not shown the certificates that they were asked for.
    pub(crate) client_refusals: Refusals,
    /// How often clients have asked, of applications that limit that.
    pub(crate) rates: RefCell<RateTable>,
    /// For checking passwords.
    logins: PoolShare,
    /// For computing TLS handshakes.
    pub(crate) handshakes: PoolShare,
    /// For handshakes and compression that take little time.
    pub(crate) loop_share: Rc<LoopShare>,
    /// When WebSockets get close frames.
    pub(crate) close_moments: Spread,
    /// Requests that were for no application, or could not be read.
    pub(crate) unrouted: RefCell<RequestCounts>,
    /// Whether the steps of requests are measured, for metrics.
    pub(crate) measures: bool,
    /// Connections since the start.
    accepted: Cell<u64>,
    connections: Cell<usize>,
    /// Connections that wait for a request.
    idle: Cell<usize>,
    /// Connections that lost their places to others: they end as soon as it is their turn.
    dismissed: Cell<usize>,
    hijacked: Cell<usize>,
    acceptors: Cell<usize>,
    events: UnboundedSender<FrontEvent>,
}

impl Shared {
    pub(crate) fn new(
        settings: Arc<Settings>,
        developers: Developers,
        https: Option<Https>,
        (hub_address, hub_sequence): (Arc<HubAddress>, HubSequence),
        (events, spans): (UnboundedSender<FrontEvent>, Option<Arc<SpanQueue>>),
        acceptors: usize,
        opening: Opening,
    ) -> Self {
        let apps = settings.apps.clone();
        let limits = &settings.limits;
        let loop_share: Rc<LoopShare> = Rc::default();
        let spool_room = SpoolRoom::new(&limits.spool_dir, limits.spool_bytes);
        let shared = Shared {
            key: developers.key,
            pages: developers.pages,
            https,
            apps: RefCell::default(),
            turn: Rc::default(),
            budgets: Budgets {
                spool: Arc::clone(spool_room.budget()),
                buffers: Budget::new(limits.buffer_bytes, Kind::Buffers),
                cache: Budget::new(limits.cache_bytes, Kind::Cache),
                hub: Budget::new(limits.hub_bytes, Kind::Hub),
            },
            spool_room,
            heap: Heap::default(),
            compression: Room::new(limits.buffer_bytes, Rc::clone(&loop_share)),
            hub_sequence,
            new_process: RefCell::default(),
            hubs_elsewhere: RefCell::default(),
            hub_address,
            fan_out: Rc::default(),
            date: DateCache::new(),
            tracer: settings
                .traces
                .as_ref()
                .zip(spans)
                .map(|(traces, spans)| Tracer::new(traces.sampler, spans, &mut RandomBytes::default())),
            random: RefCell::default(),
            deadlines: Deadlines::default(),
            access_log: access_log(&settings).map(Rc::new),
            scratch: RefCell::new(vec![0; READ_BYTES].into_boxed_slice()),
            spare_output: RefCell::default(),
            open: watch::channel(opening == Opening::AtOnce).0,
            draining: watch::channel(false).0,
            leaving: Cell::new(Leaving::No),
            stops_soon: Cell::new(false),
            unanswered: Cell::default(),
            left_to_another: RefCell::new(Vec::new()),
            freed: Notify::new(),
            full: Notify::new(),
            proxy_refusals: Refusals::default(),
            handshake_refusals: Refusals::default(),
            client_refusals: Refusals::default(),
            rates: RefCell::default(),
            logins: PoolShare::of_logins(),
            handshakes: PoolShare::of_handshakes(),
            loop_share,
            close_moments: Spread::default(),
            unrouted: RefCell::default(),
            measures: settings.admin.measures_requests(),
            accepted: Cell::new(0),
            connections: Cell::new(0),
            idle: Cell::new(0),
            dismissed: Cell::new(0),
            hijacked: Cell::new(0),
            acceptors: Cell::new(acceptors),
            events,
            settings,
        };
        apps.into_iter().for_each(|app| shared.add_app(app));
        shared
    }

    // --- Applications --------------------------------------------------------------------------------

    /// There is one more.
    pub(crate) fn add_app(&self, app: Arc<App>) {
        let log = self.access_log.as_ref();
        let compression = self.compression.of_app(&app.name);
        let share = Share::new(&self.budgets.hub, &app.name, None);
        let hub = Hub::new(self.hub_sequence, &self.fan_out, app.limits.hub, share);
        let app = AppState::new(
            app,
            &self.settings.limits,
            log,
            &self.budgets,
            (compression, hub),
            &self.logins,
            self.events.clone(),
        );
        if self.is_draining() {
            app.dispatcher.borrow_mut().drain();
        }
        self.apps.borrow_mut().add(app);
    }

    /// One is reached elsewhere, or has other limits.
    pub(crate) fn change_app(&self, app: Arc<App>) {
        let mut apps = self.apps.borrow_mut();
        if let Some(state) = apps.get(app.id) {
            state.change(app, self.access_log.as_ref());
            apps.rebuild_router();
        }
    }

    /// One is not reached any more.
    pub(crate) fn remove_app(&self, id: AppId) {
        let mut apps = self.apps.borrow_mut();
        if let Some(state) = apps.get(id) {
            state.leave();
            apps.rebuild_router();
        }
        // The time of the connections that it has taken over is limited from now on.
        self.deadlines.nudge_all();
    }

    /// Answers a command for an application that was removed and has finished: the supervisor may not know that yet.
    pub(crate) fn answer_for_forgotten(&self, app: AppId, command: AppCommand) {
        let event = match command {
            AppCommand::RetireWorker { worker } | AppCommand::RelieveWorker { worker } => {
                FrontAppEvent::WorkerIdle { worker, is_stuck: false }
            }
            AppCommand::AddCanary(NewWorker { worker, .. }) => {
                FrontAppEvent::CanaryAnswered { worker, answer: Err("the application was removed".into()) }
            }
            _ => return,
        };
        AppEvents { app, events: self.events.clone() }.send(event);
    }

    /// Periodic work.
    pub(crate) fn tick(&self, now_ms: u64) {
        let mut apps = self.apps.borrow_mut();
        for app in apps.iter() {
            // No wake-up of a worker can be lost for good.
            app.dispatcher.borrow_mut().ring_for_overdue();
            app.tick(now_ms);
        }
        self.rates.borrow_mut().tick(now_ms * 1000);
        self.turn.forget_quiet();
        apps.forget_drained();
        self.heap.tick(self.connections.get(), self.budgets.buffers.used());
        self.access_log.iter().for_each(|log| log.flush());
    }

    /// Goes on in new access logs.
    pub(crate) fn reopen_logs(&self) {
        self.access_log.iter().for_each(|log| log.reopen());
        for app in self.apps.borrow().iter() {
            app.own_log().iter().for_each(|log| log.reopen());
        }
    }

    // --- The end -------------------------------------------------------------------------------------

    /// Whether the server is stopping, or has been succeeded by another.
    pub(crate) fn is_draining(&self) -> bool {
        self.leaving.get() != Leaving::No
    }

    /// From now on every answer is the last of its connection; what is `left` to another server is accepted by that.
    pub(crate) fn leave(&self, leaving: Leaving, left: Vec<String>) {
        self.apps.borrow().iter().for_each(|app| app.dispatcher.borrow_mut().drain());
        self.leaving.set(leaving);
        if leaving == Leaving::HandedOver {
            self.left_to_another.replace(left);
            // Publishers learn that they have to go to the new process.
            self.apps.borrow().iter().for_each(|app| app.hub.resume());
        }
        self.draining.send_replace(true);
        self.deadlines.nudge_all();
    }

    /// The process that takes over, in a hot restart, is known, or takes clients.
    pub(crate) fn set_new_process(&self, new_process: NewProcess) {
        self.new_process.replace(new_process);
        self.deadlines.nudge_all();
    }

    /// From now on every answer is the last of its connection, and connections are still accepted.
    pub(crate) fn stop_soon(&self) {
        self.stops_soon.set(true);
    }

    /// Whether every answer is the last of its connection.
    pub(crate) fn ends_connections(&self) -> bool {
        self.stops_soon.get() || self.is_draining()
    }

    pub(crate) fn leaving(&self) -> Leaving {
        self.leaving.get()
    }

    /// Returns when another server accepts.
    pub(crate) async fn handed_over(&self) {
        let mut draining = self.draining.subscribe();
        // Fails only when the front is gone.
        let _ = draining.wait_for(|draining| *draining).await;
        if self.leaving() != Leaving::HandedOver {
            std::future::pending::<()>().await;
        }
    }

    /// How long an idle connection may wait for its last request.
    pub(crate) fn time_for_last_request(&self) -> Duration {
        match self.leaving.get() {
            Leaving::Stopping => LAST_REQUEST,
            Leaving::No | Leaving::HandedOver => self.settings.drain_timeout,
        }
    }

    /// Whether another server accepts, or still accepts, on this socket.
    pub(crate) fn is_left_to_another(&self, acceptor: &Acceptor) -> bool {
        if *self.open.borrow() {
            return self.left_to_another.borrow().contains(&acceptor.address);
        }
        acceptor.inherited
    }

    /// A request is not answered as a whole. Counts only once the server is to stop.
    pub(crate) fn note_unanswered(&self, note: impl FnOnce(&mut Unanswered)) {
        if self.is_draining() {
            let mut unanswered = self.unanswered.get();
            note(&mut unanswered);
            self.unanswered.set(unanswered);
        }
    }

    /// The requests that were not answered as a whole, as the front ends now.
    pub(crate) fn unanswered(&self) -> Unanswered {
        let visits: usize = self.apps.borrow().iter().map(|app| app.visits()).sum();
        Unanswered { in_flight: visits.saturating_sub(self.hijacked.get()), ..self.unanswered.get() }
    }

    /// What was added to the access logs is written.
    pub(crate) async fn finish_logs(&self) {
        let apps: Vec<Rc<AccessLog>> = self.apps.borrow().iter().filter_map(|app| app.own_log()).collect();
        let logs: Vec<Rc<AccessLog>> = self.access_log.iter().cloned().chain(apps).collect();
        logs.iter().for_each(|log| log.flush());
        for log in logs {
            log.finish().await;
        }
    }

    /// Whether the server stops, or will soon.
    pub(crate) fn is_stopping(&self) -> bool {
        self.leaving.get() == Leaving::Stopping || self.stops_soon.get()
    }

    /// How things are.
    pub(crate) fn report(&self) -> FrontReport {
        self.spool_room.look_later();
        let server = ServerRequests {
            is_stopping: self.is_stopping(),
            accepts: !self.is_draining(),
            unrouted: self.unrouted.borrow().clone(),
            accepted: self.accepted.get(),
            connections: self.connections.get(),
            hijacked: self.hijacked.get(),
            spool_bytes: self.budgets.spool.used(),
            max_spool_bytes: self.budgets.spool.limit(),
            spool_problem: self.spool_room.problem(),
            buffer_bytes: self.budgets.buffers.used(),
            max_buffer_bytes: self.budgets.buffers.limit(),
            log_problem: self.access_log.as_ref().and_then(|log| log.problem()),
        };
        FrontReport { server, apps: self.apps.borrow().iter().map(|app| app.report()).collect() }
    }

    // --- Counting --------------------------------------------------------------------------------------

    fn is_full(&self) -> bool {
        self.connections.get() >= self.settings.limits.connections
    }

    /// Whether another connection may be accepted: there is room, or an idle connection makes room as soon as another has
    /// come. So there may be one more than the limit for a moment, for each listener.
    pub(crate) fn makes_room(&self) -> bool {
        let limit = self.settings.limits.connections;
        let is_beyond = || self.connections.get() - self.dismissed.get() > limit && self.idle.get() > 0;
        while is_beyond() && self.dismiss_longest_idle() {}
        !self.is_full() || (self.connections.get() == limit && self.idle.get() > 0)
    }

    /// The connection that has been idle for the longest time ends. `false`: none is idle.
    pub(crate) fn dismiss_longest_idle(&self) -> bool {
        let Some(deadline) = self.deadlines.longest_idle() else { return false };
        self.change_use(&deadline, Use::Dismissed);
        deadline.nudge();
        true
    }

    fn change_use(&self, deadline: &Deadline, to: Use) {
        let from = deadline.now.replace(to);
        let after = |before: usize, what| {
            (before + usize::from(to == what)).saturating_sub(usize::from(from == what))
        };
        let idle = after(self.idle.get(), Use::Idle);
        if self.is_full() {
            match (self.idle.get(), idle) {
                (0, 1..) => self.freed.notify_waiters(),
                (1.., 0) => self.full.notify_waiters(),
                _ => {}
            }
        }
        self.idle.set(idle);
        self.dismissed.set(after(self.dismissed.get(), Use::Dismissed));
    }

    /// An acceptor has ended.
    pub(crate) fn acceptor_ended(&self) {
        self.acceptors.set(self.acceptors.get() - 1);
        self.tell_if_drained();
    }

    /// Reports it once nothing is left to finish.
    fn tell_if_drained(&self) {
        if self.is_draining() && self.acceptors.get() == 0 && self.connections.get() == 0 {
            // The receiver is gone when the program is ending.
            let _ = self.events.send(FrontEvent::Drained);
        }
    }
}

/// The server's own log; with one application alone, the application's.
fn access_log(settings: &Settings) -> Option<AccessLog> {
    let user = match &settings.apps[..] {
        [app] => app.runs_as.another(),
        _ => None,
    };
    let in_development = settings.apps.iter().any(|app| app.is_development());
    let rules = &settings.log.access_rules;
    settings.log.access.as_deref().map(|path| AccessLog::new(path, user, rules, in_development))
}

/// One client connection, counted while this lives.
#[derive(Debug)]
pub(crate) struct Counted {
    shared: Rc<Shared>,
    /// Whether it is a stream: the socket that it shares with others counts.
    is_stream: bool,
    key: u64,
    /// Its deadline.
    pub(crate) deadline: Rc<Deadline>,
    hijacked: bool,
}

impl Counted {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        shared.connections.set(shared.connections.get() + 1);
        shared.accepted.set(shared.accepted.get() + 1);
        Counted::of(shared, false)
    }

    /// A stream. The socket that it shares with other streams is counted on its own account.
    pub(crate) fn of_stream(shared: Rc<Shared>) -> Self {
        Counted::of(shared, true)
    }

    fn of(shared: Rc<Shared>, is_stream: bool) -> Self {
        let (key, deadline) = shared.deadlines.add();
        Counted { shared, is_stream, key, deadline, hijacked: false }
    }

    /// It waits for a request for this time, and ends for a new connection where there are too many.
    pub(crate) fn rest(&self, time: Duration) {
        self.deadline.set(Some(time));
        self.shared.change_use(&self.deadline, Use::Idle);
    }

    /// It goes on waiting for a request, until the deadline that it had.
    pub(crate) fn rest_until(&self, at_ms: u64) {
        self.deadline.put_back(at_ms);
        self.shared.change_use(&self.deadline, Use::Idle);
    }

    /// It has a request, or a part of one.
    pub(crate) fn work(&self) {
        let was_dismissed = self.is_dismissed();
        self.shared.change_use(&self.deadline, Use::Busy);
        if was_dismissed {
            self.shared.freed.notify_waiters(); // another has to make room
        }
    }

    /// Whether another connection has its place.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.deadline.now.get() == Use::Dismissed
    }

    /// From now on it counts as taken over by the application.
    pub(crate) fn hijack(&mut self) {
        self.hijacked = true;
        self.shared.hijacked.set(self.shared.hijacked.get() + 1);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.deadlines.remove(self.key);
        if self.hijacked {
            shared.hijacked.set(shared.hijacked.get() - 1);
        }
        if self.is_stream {
            return;
        }
        shared.change_use(&self.deadline, Use::Busy);
        shared.connections.set(shared.connections.get() - 1);
        // All acceptors: a single one may have no connection to accept.
        shared.freed.notify_waiters();
        shared.tell_if_drained();
    }
}
