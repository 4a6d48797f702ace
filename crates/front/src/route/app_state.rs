//! What belongs to one application and to no other: its workers and its queue, its files, what clients get when it did
//! not boot, and whether it is idle.

use std::cell::{Cell, Ref, RefCell};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use highball_config::{AccessLog as LogPlace, App, AppId, Limits, RateRule};
use highball_link::{
    AppRequests, Availability, Booted, Diagnosis, Figures, FrontAppEvent, FrontEvent, MaintenanceNotice,
    Rollout, RunningRequests,
};
use tokio::sync::mpsc::UnboundedSender;
use tracing::{error_span, Span};

use crate::access_log::AccessLog;
use crate::affinity::Session;
use crate::aside::PoolShare;
use crate::basic_auth::BasicAuth;
use crate::budget::{Budgets, Share};
use crate::cache::AppCache;
use crate::clock::now_ms;
use crate::compression::room::AppRoom;
use crate::dispatch::{AppEvents, Dispatcher, Standing};
use crate::exchange::Exchange;
use crate::files::{Finder, StaticFiles};
use crate::hub::Hub;
use crate::maintenance::{Maintenance, Now};
use crate::message::refusal::Refusal;
use crate::message::request_head::Head;
use crate::moments::Moments;
use crate::rate_limit::RateLog;
use crate::refusals::error_pages::{ErrorPages, PageName};
use crate::refusals::failure::{DevelopmentPages, Failure, ShedLog};
use crate::refusals::failure_pages::{Audience, Form, Page};
use crate::response_headers::HeaderChanges;
use crate::rollout::{RolloutState, Visitor, VisitorRule};
use crate::route::load_meter::LoadMeter;

/// One application, as the front knows it.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) id: AppId,
    /// Where it is reached and what its limits are; may change while it serves.
    app: RefCell<Arc<App>>,
    pub(crate) dispatcher: RefCell<Dispatcher>,
    pub(crate) statics: RefCell<Option<Rc<StaticFiles>>>,
    /// Set while a rollout is under way.
    rollout: RefCell<Option<Box<RolloutState>>>,
    /// It has booted at least once, and so has reported where its files are.
    has_booted: Cell<bool>,
    /// Set while the application that did not boot is not there.
    failure: RefCell<Option<BootFailure>>,
    /// Its own pages for its visitors, where it may have some: `503.html`.
    error_pages: RefCell<Option<Rc<ErrorPages>>>,
    /// The threads that look for its files.
    pool: PoolShare,
    /// The threads that read files which its workers have opened.
    pub(crate) reads: PoolShare,
    /// What its spool files may hold.
    pub(crate) spool: Arc<Share>,
    /// What its requests and answers may hold in memory.
    pub(crate) buffers: Arc<Share>,
    /// What is counted of its requests and workers.
    pub(crate) figures: RefCell<Figures>,
    /// What the compression of its answers may take.
    pub(crate) compression: AppRoom,
    /// Its real-time hub.
    pub(crate) hub: Rc<Hub>,
    /// Its stored answers, if answers are stored, and what they may take.
    cache: RefCell<Option<Rc<AppCache>>>,
    cache_memory: Arc<Share>,
    /// Its users, if it is for them alone.
    basic_auth: RefCell<Option<Rc<BasicAuth>>>,
    /// The threads that check passwords, for all applications.
    logins: PoolShare,
    /// Whether it is for its visitors.
    maintenance: RefCell<Rc<Maintenance>>,
    shed_log: ShedLog,
    /// What the log says of clients that ask too often.
    rate_log: RateLog,
    access_log: RefCell<Option<Rc<AccessLog>>>,
    load: RefCell<LoadMeter>,
    events: AppEvents,
    /// Whether it is looked at in every turn of the event loop.
    pub(crate) active: Cell<bool>,
    /// Requests that are on their way, from their heads to the ends of their answers.
    visits: Cell<usize>,
    /// Whether Ruby was asked for anything since the last tick.
    asked: Cell<bool>,
    /// When it was last found busy.
    busy_ms: Cell<u64>,
    /// It has had a worker, or was a site.
    has_served: Cell<bool>,
    /// When it last had a free thread or ended an answer, in milliseconds.
    free_ms: Cell<u64>,
    /// Answers that it had ended at `free_ms`.
    ended: Cell<u64>,
    /// Its processes have been ended because it was idle, or not been started yet.
    asleep: Cell<bool>,
    /// It was removed: it finishes the requests that it has begun.
    leaving: Cell<bool>,
    /// The server stops, and there will be no worker for it any more.
    abandoned: Cell<bool>,
}

/// A boot that failed.
#[derive(Debug)]
struct BootFailure {
    /// The pages about it for developers at this machine; `None` outside of development. Their requests then wait for the answer
    /// to [`FrontAppEvent::Wanted`].
    development: Option<DevelopmentPages>,
}

impl AppState {
    /// An application of which nothing exists yet; `log` is the server's.
    pub(crate) fn new(
        app: Arc<App>,
        limits: &Limits,
        log: Option<&Rc<AccessLog>>,
        budgets: &Budgets,
        (compression, hub): (AppRoom, Rc<Hub>),
        logins: &PoolShare,
        events: UnboundedSender<FrontEvent>,
    ) -> Self {
        let pool = PoolShare::of(app.runs_as.another());
        let events = AppEvents { app: app.id, events };
        let dispatcher = Dispatcher::new(limits, &app, events.clone());
        let cache_memory = Share::new(&budgets.cache, &app.name, Some(app.limits.cache_bytes));
        let cache = (app.limits.cache_bytes > 0).then(|| AppCache::new(Arc::clone(&cache_memory)));
        AppState {
            id: app.id,
            dispatcher: RefCell::new(dispatcher),
            statics: RefCell::new(None),
            rollout: RefCell::new(None),
            has_booted: Cell::new(false),
            failure: RefCell::new(None),
            error_pages: RefCell::new(None),
            basic_auth: RefCell::new(BasicAuth::of(&app, &pool, logins)),
            maintenance: RefCell::new(Maintenance::of(&app, &pool)),
            pool,
            logins: logins.clone(),
            reads: PoolShare::of_reads(),
            spool: Share::new(&budgets.spool, &app.name, app.limits.spool_bytes),
            buffers: Share::new(&budgets.buffers, &app.name, None),
            figures: RefCell::default(),
            compression,
            hub,
            cache: RefCell::new(cache),
            cache_memory,
            shed_log: ShedLog::default(),
            rate_log: RateLog::default(),
            access_log: RefCell::new(access_log(&app, log)),
            load: RefCell::default(),
            events,
            active: Cell::new(false),
            visits: Cell::new(0),
            asked: Cell::new(false),
            busy_ms: Cell::new(now_ms()),
            has_served: Cell::new(false),
            free_ms: Cell::new(now_ms()),
            ended: Cell::new(0),
            asleep: Cell::new(!app.prestart),
            leaving: Cell::new(false),
            abandoned: Cell::new(false),
            app: RefCell::new(app),
        }
    }

    /// What the configuration says of it. Not to be kept across an await.
    pub(crate) fn settings(&self) -> Ref<'_, App> {
        Ref::map(self.app.borrow(), |app| &**app)
    }

    /// Finds the changes to the header fields of responses to requests with this plain path.
    pub(crate) fn header_changes(&self, path: &[u8]) -> Option<Box<HeaderChanges>> {
        HeaderChanges::of(&self.app.borrow(), path)
    }

    /// Its configuration has changed; `log` is the server's.
    pub(crate) fn change(&self, app: Arc<App>, log: Option<&Rc<AccessLog>>) {
        self.dispatcher.borrow_mut().set_limits(&app);
        self.spool.set_own_limit(app.limits.spool_bytes);
        self.hub.set_limits(app.limits.hub);
        self.change_cache(app.limits.cache_bytes);
        if !self.has_log_of(&app, log) {
            *self.access_log.borrow_mut() = access_log(&app, log);
        }
        if !self.basic_auth().map_or(app.basic_auth.is_none(), |auth| auth.is_of(&app)) {
            *self.basic_auth.borrow_mut() = BasicAuth::of(&app, &self.pool, &self.logins);
        }
        if !self.maintenance().is_of(&app) {
            *self.maintenance.borrow_mut() = Maintenance::of(&app, &self.pool);
        }
        *self.app.borrow_mut() = app;
    }

    /// Its stored answers may take this number of bytes from now on; 0: none is stored.
    fn change_cache(&self, most_bytes: u64) {
        self.cache_memory.set_own_limit(Some(most_bytes));
        let mut cache = self.cache.borrow_mut();
        if most_bytes == 0 {
            *cache = None;
        } else if cache.is_none() {
            *cache = Some(AppCache::new(Arc::clone(&self.cache_memory)));
        }
    }

    /// Whether answers are stored.
    pub(crate) fn has_cache(&self) -> bool {
        self.cache.borrow().is_some()
    }

    /// Its stored answers, if answers are stored: of the release that serves.
    pub(crate) fn cache(&self) -> Option<Rc<AppCache>> {
        let cache = self.cache.borrow().as_ref().map(Rc::clone)?;
        cache.follow(self.dispatcher.borrow().stored_generation());
        Some(cache)
    }

    /// Whether its requests are logged where they would be if this were configured.
    fn has_log_of(&self, app: &App, log: Option<&Rc<AccessLog>>) -> bool {
        match (&app.access_log, &*self.access_log.borrow(), log) {
            (LogPlace::Own(path), Some(own), _) => {
                own.is_of(path, app.runs_as.another(), &app.access_log_rules)
            }
            (LogPlace::OfServer, Some(now), Some(log)) => Rc::ptr_eq(now, log),
            (LogPlace::Off, None, _) | (LogPlace::OfServer, None, None) => true,
            _ => false,
        }
    }

    /// Its users, if it is for them alone.
    pub(crate) fn basic_auth(&self) -> Option<Rc<BasicAuth>> {
        self.basic_auth.borrow().as_ref().map(Rc::clone)
    }

    /// Sends an event of the application.
    pub(crate) fn send(&self, event: FrontAppEvent) {
        self.events.send(event);
    }

    /// Where its requests are logged, if they are.
    pub(crate) fn access_log(&self) -> Option<Rc<AccessLog>> {
        self.access_log.borrow().as_ref().map(Rc::clone)
    }

    /// The same, if it is not the server's.
    pub(crate) fn own_log(&self) -> Option<Rc<AccessLog>> {
        self.access_log().filter(|_| matches!(self.settings().access_log, LogPlace::Own(_)))
    }

    /// Finds the session of a request, if sessions stay with their workers.
    pub(crate) fn session_of(&self, head: Head<'_>) -> Option<Session> {
        self.dispatcher.borrow_mut().affinity.session_of(head)
    }

    /// Returns the header field by which it names sessions, if they stay with their workers.
    pub(crate) fn session_field(&self) -> Option<Rc<str>> {
        self.dispatcher.borrow().affinity.field()
    }

    /// Returns the line by which a client gets a cookie for its session, if it needs one.
    pub(crate) fn session_cookie(&self, session: Session, worker: u32, is_tls: bool) -> Option<Vec<u8>> {
        let settings = self.settings();
        self.dispatcher.borrow().affinity.cookie_line(session, worker, &settings.prefix, is_tls)
    }

    /// Takes a request in, for Ruby.
    ///
    /// # Errors
    /// The queue is full; or no worker will ever serve, which may have turned out while the body came.
    pub(crate) fn submit(&self, exchange: &Rc<Exchange>, audience: Audience) -> Result<(), Refusal> {
        self.asked.set(true);
        if self.is_failed_for(audience) {
            return Err(Refusal::AppFailed);
        }
        if let Some(refusal) = self.permanent_refusal() {
            return Err(refusal);
        }
        self.dispatcher.borrow_mut().submit(exchange)
    }

    // --- Rollouts ------------------------------------------------------------------------------------

    pub(crate) fn has_rollout(&self) -> bool {
        self.rollout.borrow().is_some()
    }

    /// Which version visitors get, while a rollout is under way.
    pub(crate) fn visitor_rule(&self) -> Option<VisitorRule> {
        self.rollout.borrow().as_ref().map(|rollout| rollout.rule)
    }

    /// The number of a new visitor, while a rollout is under way.
    pub(crate) fn new_visitor_number(&self) -> u16 {
        self.rollout.borrow_mut().as_mut().map_or(0, |rollout| rollout.new_number())
    }

    /// Whether each version has its visitors.
    pub(crate) fn holds_rollout(&self) -> bool {
        self.visitor_rule().is_some_and(|rule| rule.is_held)
    }

    /// Visitors get the versions like this from now on.
    pub(crate) fn set_rollout(&self, rollout: &Rollout) {
        let Rollout { generation, thousandths, is_held, ref app } = *rollout;
        let rule = VisitorRule { generation, thousandths, is_held };
        let mut state = self.rollout.borrow_mut();
        match state.as_mut().filter(|state| state.rule.generation == generation) {
            Some(state) => state.rule = rule,
            None => *state = Some(Box::new(RolloutState::new(rule, self.statics_of(app)))),
        }
        drop(state);
        self.dispatcher.borrow_mut().set_rollout(Some(rule));
    }

    /// Any worker is for any visitor.
    pub(crate) fn end_rollout(&self) {
        *self.rollout.borrow_mut() = None;
        self.dispatcher.borrow_mut().set_rollout(None);
    }

    /// A generation is taken back: visitors and connections that it has answered go to the one before it again.
    pub(crate) fn withdraw(&self, generation: u32) {
        *self.rollout.borrow_mut() = None;
        self.dispatcher.borrow_mut().withdraw(generation);
    }

    /// The static files of a rollout's new version.
    pub(crate) fn statics_of_rollout(&self) -> Option<Rc<StaticFiles>> {
        self.rollout.borrow().as_ref()?.statics.as_ref().map(Rc::clone)
    }

    /// Counts a request of a rollout's visitor, if it was one for a worker.
    #[cold]
    pub(crate) fn count_visit(&self, visitor: Visitor, moments: Moments, status: u16) {
        if let Some(rollout) = self.rollout.borrow_mut().as_mut().filter(|_| moments.received_us > 0) {
            rollout.count(visitor, moments, status);
        }
    }

    // --- Failure and sleep ---------------------------------------------------------------------------

    /// It has booted, and reports where its static files and assets are, and which header fields they get.
    pub(crate) fn booted(&self, reported: &Booted) {
        *self.failure.borrow_mut() = None;
        self.set_error_pages(reported.public.as_deref());
        *self.statics.borrow_mut() = self.statics_of(reported);
        self.files_are_known();
    }

    /// The static files that it reports.
    fn statics_of(&self, reported: &Booted) -> Option<Rc<StaticFiles>> {
        let settings = self.settings();
        let rules = &settings.static_files;
        let folder = reported.public.clone().filter(|_| rules.enabled);
        let statics = folder.map(|root| {
            let headers: Vec<_> = reported.public_headers.clone().into_iter().collect();
            let finder = Finder::new(root, &headers, rules.follow_symlinks);
            let finder = match &reported.assets {
                Some(assets) => finder.with_assets(assets, rules.follow_symlinks),
                None => finder,
            };
            let statics = StaticFiles::new(finder, settings.runs_as.another(), &self.pool);
            statics.compressed_in(Some(&self.compression).filter(|_| settings.compress))
        });
        statics.map(Rc::new)
    }

    /// The application is only the files in this folder. Requests that wait for a worker are refused.
    pub(crate) fn open_site(&self, root: PathBuf) {
        let settings = self.settings();
        let finder = Finder::new(root, &[], settings.static_files.follow_symlinks);
        let site = StaticFiles::new(finder, settings.runs_as.another(), &self.pool).of_site();
        let site = site.compressed_in(Some(&self.compression).filter(|_| settings.compress));
        *self.statics.borrow_mut() = Some(Rc::new(site));
        self.has_served.set(true);
        self.files_are_known();
        self.dispatcher.borrow_mut().refuse_waiting(Refusal::NoWorker { retry_after_seconds: 1 });
    }

    fn set_error_pages(&self, public: Option<&Path>) {
        let settings = self.settings();
        let pages =
            |public: &Path| ErrorPages::new(public.to_owned(), settings.runs_as.another(), &self.pool);
        *self.error_pages.borrow_mut() = public.map(pages);
    }

    /// What has waited for that and may be for a file is looked at again.
    fn files_are_known(&self) {
        if !self.has_booted.replace(true) {
            self.dispatcher.borrow_mut().give_back();
        }
    }

    /// Whether it is known where its files are.
    pub(crate) fn knows_files(&self) -> bool {
        self.has_booted.get()
    }

    /// There is a worker for it.
    pub(crate) fn served(&self) {
        self.asleep.set(false);
        self.has_served.set(true);
        *self.failure.borrow_mut() = None;
    }

    /// A worker has ended.
    pub(crate) fn count_end_of_worker(&self, worker: u32, is_killed: bool) {
        let has_retired = self.dispatcher.borrow().has_retired(worker);
        let mut figures = self.figures.borrow_mut();
        match (is_killed, has_retired) {
            (true, _) => figures.workers_killed += 1,
            (false, true) => figures.workers_retired += 1,
            (false, false) => figures.workers_crashed += 1,
        }
    }

    /// It did not boot: the requests that wait for it are refused.
    pub(crate) fn failed(&self, diagnosis: &Diagnosis, pages: fn(&Diagnosis) -> DevelopmentPages) {
        self.set_error_pages(Some(&diagnosis.folder.join("public")));
        let development = self.settings().is_development().then(|| pages(diagnosis));
        *self.failure.borrow_mut() = Some(BootFailure { development });
        self.dispatcher.borrow_mut().refuse_waiting(Refusal::AppFailed);
    }

    /// Whether this client gets the failure at once. (A developer's request is passed on, as the application may boot
    /// by now.)
    pub(crate) fn is_failed_for(&self, audience: Audience) -> bool {
        let failure = self.failure.borrow();
        let Some(failure) = &*failure else { return false };
        let is_final = failure.development.is_none() || audience == Audience::Public;
        is_final && !self.dispatcher.borrow().is_served()
    }

    /// What a developer is shown in its place, if it did not boot.
    pub(crate) fn page_of_failure(&self, form: Form) -> Option<Page> {
        Some(Page::of(self.failure.borrow().as_ref()?.development.as_ref()?, form))
    }

    /// Its own page for clients who get this status instead of an answer, if it has one.
    pub(crate) async fn public_page(&self, status: u16) -> Option<Rc<Page>> {
        let pages = self.error_pages.borrow().as_ref().map(Rc::clone)?;
        pages.page(PageName::Status(status)).await
    }

    /// What its visitors get during maintenance: its own page, or one with the message.
    pub(crate) async fn maintenance_page(&self) -> Option<Rc<Page>> {
        let pages = self.error_pages.borrow().as_ref().map(Rc::clone);
        if let Some(pages) = pages {
            for name in [PageName::Maintenance, PageName::Status(503)] {
                if let Some(page) = Rc::clone(&pages).page(name).await {
                    return Some(page);
                }
            }
        }
        let Now::On(notice) = self.maintenance().now() else { return None };
        let MaintenanceNotice { message, retry_after_seconds, .. } = &notice.shown;
        Some(Rc::new(Page::of_maintenance(message.as_deref(), *retry_after_seconds)))
    }

    /// Whether it is for its visitors at the moment.
    pub(crate) fn maintenance(&self) -> Rc<Maintenance> {
        Rc::clone(&self.maintenance.borrow())
    }

    /// Says in the log why a request was not answered by it, and by its name, unless it is alone.
    pub(crate) fn log(&self, failure: &Failure, limit: Option<Duration>, alone: bool) {
        let settings = self.settings();
        let span = if alone { Span::none() } else { error_span!("app", application = settings.name) };
        span.in_scope(|| failure.log(limit, &self.shed_log));
    }

    /// Says in the log, now and then, that this client has asked too often.
    pub(crate) fn log_rate_limited(&self, limit: &RateRule, address: &str) {
        self.rate_log.note(&self.settings().name, limit, address);
    }

    /// Counts a refusal by its cause, where a figure is about that cause alone.
    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        let mut figures = self.figures.borrow_mut();
        match refusal {
            Refusal::QueueFull { .. } => figures.shed += 1,
            Refusal::RateLimited { .. } => figures.rate_limited += 1,
            _ => {}
        }
    }

    pub(crate) fn availability(&self) -> Availability {
        let dispatcher = self.dispatcher.borrow();
        let is_site = self.statics.borrow().as_ref().is_some_and(|statics| statics.is_site());
        if is_site {
            return Availability::Serving;
        }
        match dispatcher.standing() {
            Some(Standing::Serves) => return Availability::Serving,
            Some(Standing::Unproven) => return Availability::Crashing,
            Some(Standing::Stuck) => return Availability::Stuck,
            None => {}
        }
        if self.failure.borrow().is_some() {
            Availability::Failed
        } else if self.asleep.get() && !dispatcher.is_wanted() {
            Availability::Asleep
        } else if dispatcher.is_crashing {
            Availability::Crashing
        } else {
            Availability::Booting
        }
    }

    /// Periodic work.
    pub(crate) fn tick(&self, now_ms: u64) {
        if let Some(statics) = self.statics.borrow().as_ref() {
            statics.close_idle(now_ms);
        }
        if let Some(rollout) = self.rollout.borrow().as_ref() {
            rollout.statics.iter().for_each(|statics| statics.close_idle(now_ms));
        }
        self.error_pages.borrow().iter().for_each(|pages| pages.forget_old(now_ms));
        self.basic_auth().iter().for_each(|auth| auth.tick(now_ms));
        self.own_log().iter().for_each(|log| log.flush());
        self.cache().iter().for_each(|cache| cache.tick());
        self.hub.tick(now_ms);
        self.dispatcher.borrow_mut().report_overruns();
        self.dispatcher.borrow_mut().look_after_streams();
        self.dispatcher.borrow_mut().look_at_slow_starts();
        self.report_stalls();
        self.report_load(now_ms);
        self.look_whether_idle(now_ms);
        self.look_whether_free(now_ms);
    }

    fn report_stalls(&self) {
        let settings = self.settings();
        let limit_ms = settings.limits.request_timeout.map(|limit| limit.as_millis() as u64);
        self.dispatcher.borrow_mut().report_stalls(limit_ms, settings.is_development());
    }

    /// Reports how busy its workers are, where their number may follow that.
    fn report_load(&self, now_ms: u64) {
        let dispatcher = self.dispatcher.borrow();
        if self.settings().pool.is_none() || !dispatcher.is_served() {
            return;
        }
        let load = self.load.borrow_mut().tick(&dispatcher, now_ms);
        load.into_iter().for_each(|load| self.events.send(FrontAppEvent::Load(load)));
    }

    /// Notes when it can begin a request, or has just ended one.
    fn look_whether_free(&self, now_ms: u64) {
        let dispatcher = self.dispatcher.borrow();
        let has_ended_some = self.ended.replace(dispatcher.ended()) != dispatcher.ended();
        let has_thread_free = dispatcher.has_thread_free();
        drop(dispatcher);
        if has_ended_some || has_thread_free || !self.should_be_free() {
            self.free_ms.set(now_ms);
        }
    }

    /// Whether clients' requests are for its workers, of which there should be some.
    fn should_be_free(&self) -> bool {
        let is_site = self.statics.borrow().as_ref().is_some_and(|statics| statics.is_site());
        !is_site && !matches!(self.availability(), Availability::Failed | Availability::Asleep)
    }

    /// Reports when Ruby has been idle for the time after which its processes may end.
    fn look_whether_idle(&self, now_ms: u64) {
        let dispatcher = self.dispatcher.borrow();
        let is_busy = self.asked.replace(false) || self.visits.get() > 0 || !dispatcher.is_idle();
        if is_busy || !dispatcher.is_served() {
            return self.busy_ms.set(now_ms);
        }
        let idle_ms = u128::from(now_ms.saturating_sub(self.busy_ms.get()));
        if self.settings().sleep_after.is_some_and(|limit| idle_ms >= limit.as_millis()) {
            // The supervisor may have reasons to keep the processes. It gets the event again when as much time has passed.
            self.busy_ms.set(now_ms);
            self.asleep.set(true);
            self.events.send(FrontAppEvent::Idle);
        }
    }

    // --- The end -------------------------------------------------------------------------------------

    /// It was removed: new requests are not routed to it.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        self.hub.close();
        self.give_up_waiting();
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.get()
    }

    /// There will be no worker for it any more. New requests are refused, as the server stops.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
        self.give_up_waiting();
    }

    /// The refusal for every request, once no worker serves and none will.
    fn permanent_refusal(&self) -> Option<Refusal> {
        let dispatcher = self.dispatcher.borrow();
        if !(self.leaving.get() || self.abandoned.get()) || dispatcher.is_served() {
            return None;
        }
        let stops = dispatcher.is_draining();
        Some(if stops { Refusal::Draining { retry_after_seconds: 1 } } else { Refusal::NoApp })
    }

    /// Refuses the requests that wait for a worker that will not come.
    pub(crate) fn give_up_waiting(&self) {
        if let Some(refusal) = self.permanent_refusal() {
            self.dispatcher.borrow_mut().refuse_waiting(refusal);
        }
    }

    /// Requests that it has at the moment, including taken-over connections.
    pub(crate) fn visits(&self) -> usize {
        self.visits.get()
    }

    /// Whether it was removed and has nothing in flight any more; the supervisor gets an event then.
    pub(crate) fn is_drained(&self) -> bool {
        let drained = self.is_leaving() && self.visits.get() == 0 && self.dispatcher.borrow().is_idle();
        if drained {
            self.events.send(FrontAppEvent::Drained);
        }
        drained
    }

    /// The oldest of its requests, at most `most`.
    pub(crate) fn running(&self, most: usize) -> RunningRequests {
        let (oldest, more) = self.dispatcher.borrow().running(most);
        RunningRequests { app: self.id, oldest, more }
    }

    /// How long it has had no free thread, and ended no answer.
    fn busy_for(&self) -> Duration {
        let is_busy = !self.dispatcher.borrow().has_thread_free() && self.should_be_free();
        let since_ms = if is_busy { self.free_ms.get() } else { now_ms() };
        Duration::from_millis(now_ms().saturating_sub(since_ms))
    }

    /// Its state in a word, and whether it should get requests.
    pub(crate) fn state(&self, stuck_after: Option<Duration>) -> (&'static str, bool) {
        let is_stuck = stuck_after.is_some_and(|limit| self.busy_for() >= limit);
        self.availability().state(self.has_served.get(), is_stuck)
    }

    pub(crate) fn report(&self) -> AppRequests {
        let dispatcher = self.dispatcher.borrow();
        let (workers, queue) = (dispatcher.report(), dispatcher.queue_length());
        let request_times = dispatcher.request_times().into();
        let sessions = self.settings().affinity.as_ref().map(|_| dispatcher.affinity.counts);
        let log_problem = self.own_log().and_then(|log| log.problem());
        drop(dispatcher);
        let cache = self.cache().map(|cache| cache.report());
        AppRequests {
            app: self.id,
            availability: self.availability(),
            request_times,
            has_served: self.has_served.get(),
            busy_for: self.busy_for(),
            workers,
            queue,
            spool_bytes: self.spool.used(),
            log_problem,
            maintenance: self.maintenance().report(),
            cache,
            hub: self.hub.report(),
            sessions,
            rollout: self.rollout.borrow().as_ref().map(|rollout| rollout.report()),
            figures: self.figures.borrow().clone(),
        }
    }
}

/// The log for this application's requests; `log` is the server's.
fn access_log(app: &App, log: Option<&Rc<AccessLog>>) -> Option<Rc<AccessLog>> {
    match &app.access_log {
        LogPlace::OfServer => log.map(Rc::clone),
        LogPlace::Own(path) => {
            let (user, rules) = (app.runs_as.another(), &app.access_log_rules);
            Some(Rc::new(AccessLog::new(path, user, rules, app.is_development())))
        }
        LogPlace::Off => None,
    }
}

/// A request on its way through an application, counted while this lives.
#[derive(Debug)]
pub(crate) struct Visit(Rc<AppState>);

impl Visit {
    pub(crate) fn new(app: Rc<AppState>) -> Self {
        app.visits.set(app.visits.get() + 1);
        Visit(app)
    }
}

impl Deref for Visit {
    type Target = Rc<AppState>;

    fn deref(&self) -> &Rc<AppState> {
        &self.0
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.visits.set(self.0.visits.get() - 1);
    }
}
