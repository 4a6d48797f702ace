//! What is held of one application: its processes, its configuration, and what watches its files. Here its actions are
//! performed.

use super::blueprint::{config, AppBlueprint};
use super::boot_failures::{no_site, not_configured, not_started};
use super::load_probe::LoadProbe;
use crate::app_output::AppOutput;
use crate::control::control_socket::ControlSocket;
use crate::control::message::ToWorker;
use crate::core::config::Purpose;
use crate::core::{App as Core, AppAction, AppEvent, AppLog, Event, Process, Receipt, WorkerOrder};
use crate::diagnosis;
use crate::diagnosis::overrun::LastOverruns;
use crate::diagnosis::request_failure::Deaths;
use crate::diagnosis::slow_requests::SlowRequests;
use crate::facts::boot_failure::BootFailure;
use crate::facts::ending::Ending;
use crate::facts::folder_state::FolderState;
use crate::inbox::Inbox;
use crate::message_log::MessageLog;
use crate::process::boot_plan::{opened_folder, BootPlan, NotStarted, Start};
use crate::process::child::Errand;
use crate::process::companion_handle::CompanionHandle;
use crate::process::companion_process::ToCompanion;
use crate::process::interpreter::Interpreter;
use crate::process::mold::{MoldHandle, MoldSource};
use crate::process::watcher::Watcher;
use crate::process::worker_handle::WorkerHandle;
use crate::rate_limit::RateLimit;
use crate::shell::app_files::AppFiles;
use crate::shell::event::{CompanionLaunch, CompanionPlan, Discovery, Found, Launch, Plan, Planned};
use crate::watch::restart_file::{RestartFiles, Watched};
use crate::{checkpoint, Notice};
use highball_config::{App, Companion, Settings};
use highball_link::{AppCommand, FrontCommand, HubAddress, SlowRequestReport, DETAIL};
use highball_ring::Geometry;
use highball_tenant::TenantFolder;
use highball_text::visible_path;
use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::{debug, error_span, info, warn, Span};

/// How long reading files may take for a diagnosis; then it is made without what they hold.
const FILES_TIME: Duration = Duration::from_secs(5);

/// Requests that exceeded their time limits that are looked at in a short time; then one a second is.
const OVERRUN_LINES: u64 = 8;

/// What is held of one application.
pub(super) struct AppSupervisor {
    pub(super) app: Arc<App>,
    settings: Arc<Settings>,
    source: MoldSource,
    geometry: Geometry,
    may_fail: bool,
    /// What its next boot is for.
    purpose: Purpose,
    /// Lines of the log that are about it say so, where there are others.
    span: Option<Span>,
    pub(super) molds: BTreeMap<u32, MoldHandle>,
    pub(super) workers: BTreeMap<u32, WorkerHandle>,
    pub(super) companions: BTreeMap<u32, CompanionHandle>,
    /// What they print, by their names.
    outputs: BTreeMap<String, AppOutput>,
    /// What Highball could do for the application is in the log.
    has_offered: AtomicBool,
    pub(super) deaths: Deaths,
    /// Requests that have exceeded their time limits.
    pub(super) overruns: LastOverruns,
    /// Requests that have taken long.
    pub(super) slow_requests: SlowRequests,
    /// What its workers took last.
    pub(super) load: LoadProbe,
    /// Which of them are looked at and logged.
    pub(super) overrun_lines: RateLimit,
    /// Overruns that were left out of the log since its last line about one.
    pub(super) overruns_left_out: u64,
    pub(super) files: AppFiles,
    restart_files: RestartFiles,
    /// What its processes print, where they are another user's.
    pub(super) output: AppOutput,
    pub(super) message_log: MessageLog,
    pub(super) watcher: Watcher,
    pub(super) inbox: Inbox<Discovery>,
    /// Where processes of applications publish messages, if they can.
    hub: Option<Arc<HubAddress>>,
    notices: mpsc::Sender<Notice>,
}

impl AppSupervisor {
    pub(super) fn new(
        blueprint: AppBlueprint,
        settings: Arc<Settings>,
        purpose: Purpose,
        output: AppOutput,
        (watcher, inbox): (Watcher, Inbox<Discovery>),
        (hub, notices): (Option<Arc<HubAddress>>, mpsc::Sender<Notice>),
    ) -> AppSupervisor {
        let AppBlueprint { app, source, geometry, may_fail } = blueprint;
        AppSupervisor {
            restart_files: RestartFiles::of(watched(&app), Instant::now()),
            files: AppFiles::new(inbox.clone()),
            app,
            settings,
            source,
            geometry,
            may_fail,
            purpose,
            span: None,
            molds: BTreeMap::new(),
            workers: BTreeMap::new(),
            companions: BTreeMap::new(),
            outputs: BTreeMap::new(),
            has_offered: AtomicBool::new(false),
            deaths: Deaths::default(),
            overruns: LastOverruns::default(),
            slow_requests: SlowRequests::default(),
            load: LoadProbe::default(),
            overrun_lines: RateLimit::new(1, OVERRUN_LINES, Instant::now()),
            overruns_left_out: 0,
            output,
            message_log: MessageLog::new(Instant::now()),
            watcher,
            inbox,
            hub,
            notices,
        }
    }

    /// What lines of the log about it stand in.
    pub(super) fn span(&mut self, alone: bool) -> Span {
        if alone {
            self.span = None;
            return Span::none();
        }
        // Of the highest level: it is about lines of all levels.
        self.span.get_or_insert_with(|| error_span!("app", application = self.app.name)).clone()
    }

    /// A process has ended. Returns the event, if it is held; that of a companion comes later.
    pub(super) fn ended(&mut self, process: Process, ending: Ending) -> Option<AppEvent> {
        let event = AppEvent::Ended { process, ending };
        match process {
            Process::Mold(boot) => self.molds.contains_key(&boot).then_some(event),
            Process::Worker(worker) => self.workers.contains_key(&worker).then_some(event),
            Process::Companion(number) => {
                let (all_gone, inbox) = (self.companions.get_mut(&number)?.ends()?, self.inbox.clone());
                tokio::spawn(async move {
                    all_gone.await;
                    inbox.put(Discovery::Found(Found::Event(Box::new(event)))).await;
                });
                None
            }
        }
    }

    /// Whose process id this is, among its own.
    pub(super) fn owner_of(&self, pid: Pid) -> Option<Process> {
        let worker = self.workers.iter().find(|(_, worker)| worker.pid == Some(pid));
        let mold = || self.molds.iter().find(|(_, mold)| mold.pid == Some(pid));
        let companion = || self.companions.iter().find(|(_, companion)| companion.pid == Some(pid));
        worker
            .map(|(worker, _)| Process::Worker(*worker))
            .or_else(|| mold().map(|(boot, _)| Process::Mold(*boot)))
            .or_else(|| companion().map(|(number, _)| Process::Companion(*number)))
    }

    pub(super) fn pid_of_mold(&self, boot: u32) -> Option<i32> {
        self.molds.get(&boot)?.pid.map(Pid::as_raw_pid)
    }

    pub(super) fn pid_of_worker(&self, worker: u32) -> Option<i32> {
        self.workers.get(&worker)?.pid.map(Pid::as_raw_pid)
    }

    // --- actions

    /// Performs an action. An outcome that is known at once goes to `happened`.
    pub(super) async fn perform(&mut self, action: AppAction, happened: &mut VecDeque<Event>) {
        let id = self.app.id;
        let mut happens = |event| happened.push_back(Event::OfApp(id, event));
        match action {
            AppAction::SpawnMold { boot, folder } => {
                if let Some(event) = self.begin_boot(boot, folder) {
                    happens(event);
                }
            }
            AppAction::OpenSite { generation, folder } => {
                if let Some(event) = self.begin_site(generation, folder) {
                    happens(event);
                }
            }
            AppAction::Fork { boot, worker } => {
                if let Err(error) = self.fork(boot, worker) {
                    happens(AppEvent::NotForked { worker, error: error.to_string() });
                }
            }
            AppAction::Tell { worker, order } => {
                if self.tell(worker, order).is_err() {
                    happens(AppEvent::Unreachable { worker });
                }
            }
            AppAction::SpawnCompanion { number, companion, copy, folder, boot: None } => {
                self.plan_companion(number, companion, copy, folder);
            }
            AppAction::SpawnCompanion { number, companion, copy, folder, boot: Some(boot) } => {
                if let Err(error) = self.fork_companion(number, (&companion, copy), &folder, boot) {
                    let why = format!("could not be forked: {error}");
                    happens(AppEvent::CompanionNotStarted { number, why });
                }
            }
            AppAction::EndCompanion { number } => self.tell_companion(number, ToCompanion::End),
            AppAction::Kill(Process::Companion(number)) => self.tell_companion(number, ToCompanion::Kill),
            AppAction::DumpThreads(process) => self.signal(process, Signal::USR2),
            AppAction::Kill(process) => self.signal(process, Signal::KILL),
            AppAction::BecomeMold { worker, boot } => self.become_mold(worker, boot),
            AppAction::Forget { process, ending } => self.forget(process, ending),
            AppAction::Diagnose { receipt, folder, failure } => self.diagnose_boot(receipt, folder, *failure),
            AppAction::LookAtFolder { receipt } => self.look_at_folder(receipt),
            AppAction::Notify(command) => self.notify(command).await,
            AppAction::Answer(..)
            | AppAction::MeasureMemory { .. }
            | AppAction::RereadConfiguration
            | AppAction::ReportRemoval
            | AppAction::Log(_) => {} // the supervisor's
            AppAction::Checkpoint(step) => checkpoint::pass(step).await,
        }
    }

    /// Waits until what its processes have printed is in the log, where that stands above this line.
    pub(super) async fn settle_before(&self, log: &AppLog) {
        if matches!(log, AppLog::BootFailed(_) | AppLog::RestartFailed { .. } | AppLog::MoldDied { .. }) {
            self.output.settle().await;
        }
    }

    /// Begins to find out where and how to boot; a caller is there already.
    fn begin_boot(&mut self, boot: u32, folder: Option<PathBuf>) -> Option<AppEvent> {
        if let Some(fault) = &self.app.fault {
            let folder = folder.unwrap_or_else(|| self.app.folder.clone());
            let failure = Box::new(not_configured(fault));
            return Some(AppEvent::MoldNotStarted { boot, folder, failure });
        }
        let MoldSource::Caller(socket) = &self.source else {
            self.plan(Planned::Mold(boot), folder);
            return None;
        };
        let folder = self.app.folder.clone();
        let adopted = socket.try_clone().and_then(|socket| MoldHandle::adopt(socket, boot, &self.watcher));
        Some(match adopted {
            Ok(mold) => {
                self.molds.insert(boot, mold);
                AppEvent::MoldStarted { boot, folder }
            }
            Err(error) => {
                let failure = Box::new(not_started(&self.app, &folder, &error.into()));
                AppEvent::MoldNotStarted { boot, folder, failure }
            }
        })
    }

    /// Begins to look for a static site.
    fn begin_site(&self, generation: u32, folder: Option<PathBuf>) -> Option<AppEvent> {
        let Some(fault) = &self.app.fault else {
            self.plan(Planned::Site(generation), folder);
            return None;
        };
        let folder = folder.unwrap_or_else(|| self.app.folder.clone());
        Some(AppEvent::NoSite { generation, folder, failure: Box::new(not_configured(fault)) })
    }

    /// Finds out where and how to boot.
    fn plan(&self, what: Planned, asked: Option<PathBuf>) {
        let app = Arc::clone(&self.app);
        let plan =
            move |app, asked, folder, start| Found::Plan(Box::new(Plan { what, app, asked, folder, start }));
        let path = asked.clone().unwrap_or_else(|| app.link.clone());
        let work =
            BootPlan { served: asked.clone(), boot_file: self.source.boot_file(), app: Arc::clone(&app) };
        let (same_app, same_asked) = (Arc::clone(&app), asked.clone());
        let otherwise = move || {
            let panicked = io::Error::other("looking at its files failed; see the log");
            plan(same_app, same_asked, path, Err(NotStarted::Refused(panicked)))
        };
        let act = move || {
            let (folder, start) = work.made();
            plan(app, asked, folder, start)
        };
        self.files.begin(None, act, otherwise);
    }

    /// It is known where and how to boot. What has changed meanwhile is planned again.
    pub(super) fn planned(&mut self, plan: Plan, core: &Core) -> Option<AppEvent> {
        let Plan { what, app, asked, folder, start } = plan;
        let is_awaited = match what {
            Planned::Mold(boot) => core.molds.iter().any(|mold| mold.boot == boot && !mold.is_started),
            Planned::Site(generation) => core.boots.site() == Some(generation),
        };
        if !is_awaited {
            return None;
        }
        if !Arc::ptr_eq(&app, &self.app) {
            self.plan(what, asked);
            return None;
        }
        if let (Some(served), Ok(_)) = (asked.filter(|served| *served != folder), &start) {
            let remedy = "After a deployment, restart before the old release is removed.";
            let (removed, serving) = (visible_path(served), visible_path(&folder));
            warn!(
                name: "folder_removed", removed, serving, remedy, "the served folder was removed: serving another one"
            );
        }
        Some(match (what, start) {
            (Planned::Site(generation), Ok(Start::Site(site))) => {
                info!(
                    name: "application_found",
                    target: DETAIL, app = site.kind, because = site.because, root = visible_path(&site.root), "found"
                );
                AppEvent::SiteFound { generation, folder, site: Arc::new(site.booted()) }
            }
            (Planned::Site(generation), _) => {
                let failure = Box::new(no_site(&folder));
                AppEvent::NoSite { generation, folder, failure }
            }
            (Planned::Mold(boot), start) => {
                let launching = match start {
                    Ok(Start::Ruby(ruby, opened)) => {
                        self.launch_mold(&ruby, (&folder, opened), boot).map_err(NotStarted::from)
                    }
                    Ok(Start::Site(_)) => Err(NotStarted::NoSite), // it is none
                    Err(error) => Err(error),
                };
                match launching {
                    Ok(Some(launched)) => return self.found(launched, core),
                    Ok(None) => return None,
                    Err(error) => self.not_started(boot, folder, &error),
                }
            }
        })
    }

    fn not_started(&self, boot: u32, folder: PathBuf, why: &NotStarted) -> AppEvent {
        let failure = Box::new(not_started(&self.app, &folder, why));
        AppEvent::MoldNotStarted { boot, folder, failure }
    }

    /// Has a mold started. What has come of it, if that is known at once; else it comes as an event.
    fn launch_mold(
        &mut self,
        ruby: &Interpreter,
        (folder, opened): (&Path, Box<TenantFolder>),
        boot: u32,
    ) -> io::Result<Option<Found>> {
        let Some(boot_file) = self.source.boot_file() else {
            return Err(io::Error::other("it is not Highball that starts this application's Ruby"));
        };
        let user = self.app.runs_as.another().map(tracing::field::display);
        info!(
            name: "booting",
            target: DETAIL, app = visible_path(folder), environment = self.app.environment, user, "booting"
        );
        let errand = match std::mem::replace(&mut self.purpose, Purpose::Serve) {
            Purpose::Examine => Errand::Examine,
            Purpose::Succeed => Errand::ServeNext,
            Purpose::Serve if !self.workers.is_empty() => Errand::ServeNext,
            Purpose::Serve => Errand::Serve,
        };
        let (place, program) = ((folder, opened), (ruby, boot_file.as_path()));
        let (control, launching) =
            MoldHandle::launching(&self.app, place, program, errand, &mut self.output)?;
        let (app, folder) = (Arc::clone(&self.app), folder.to_owned());
        let launched =
            move |launched| Found::Launch(Box::new(Launch { boot, app, folder, control, launched }));
        Ok(match self.watcher.launcher.start(launching) {
            Ok(outcome) => Some(launched(outcome)),
            Err(outcome) => {
                let inbox = self.inbox.clone();
                tokio::spawn(async move { inbox.put(Discovery::Found(launched(outcome.await))).await });
                None
            }
        })
    }

    /// A mold was started, or could not be. It is killed if it was given up meanwhile.
    fn launched(&mut self, launch: Launch, core: &Core) -> Option<AppEvent> {
        let Launch { boot, app, folder, control, launched } = launch;
        let is_awaited = core.molds.iter().any(|mold| mold.boot == boot && !mold.is_started);
        let user = app.runs_as.another().cloned();
        let of = folder.clone();
        let failure = move |why: io::Error| not_started(&app, &of, &why.into());
        let mold = launched.and_then(|launched| {
            MoldHandle::started(launched, control, (boot, user), failure, &self.watcher)
        });
        match mold {
            Ok(mold) if is_awaited => {
                self.molds.insert(boot, mold);
                Some(AppEvent::MoldStarted { boot, folder })
            }
            Ok(mold) => {
                mold.signal(Signal::KILL);
                None
            }
            Err(error) => is_awaited.then(|| self.not_started(boot, folder, &error.into())),
        }
    }

    /// Asks a mold for a worker.
    fn fork(&mut self, boot: u32, worker: u32) -> io::Result<()> {
        let mold = self.molds.get(&boot).ok_or_else(|| io::Error::other("there is no mold"))?;
        let (ring, fds) = highball_ring::create(self.geometry).map_err(io::Error::other)?;
        let (control, theirs) = ControlSocket::pair()?;
        let descriptors =
            [fds.memory.as_fd(), fds.wake_front.as_fd(), fds.descriptors.as_fd(), theirs.as_fd()];
        let hub = self.hub.as_ref().map(|hub| hub.of(self.app.id));
        mold.fork(worker, &self.app, (self.settings.log.format, hub.as_deref()), &descriptors)?;
        let control = Arc::new(control);
        let watch = self.watcher.worker(Arc::clone(&control), worker);
        let handle = WorkerHandle::forking(control, watch, ring, mold.user.clone());
        self.workers.insert(worker, handle);
        Ok(())
    }

    fn tell(&self, worker: u32, order: WorkerOrder) -> io::Result<()> {
        let handle = self.workers.get(&worker).ok_or(io::ErrorKind::NotFound)?;
        handle.send(&match order {
            WorkerOrder::Drain => ToWorker::Drain,
            WorkerOrder::MayPromote { careful } => ToWorker::MayPromote { careful },
            WorkerOrder::Promote => ToWorker::Promote,
        })
    }

    fn signal(&self, process: Process, signal: Signal) {
        match process {
            Process::Mold(boot) => {
                if let Some(mold) = self.molds.get(&boot) {
                    mold.signal(signal);
                }
            }
            Process::Worker(worker) => {
                if let Some(worker) = self.workers.get(&worker) {
                    worker.signal(signal);
                }
            }
            Process::Companion(_) => {} // it gets messages instead
        }
    }

    /// Whether to log that Highball could start job runners: once, and not if some processes are named.
    pub(super) fn may_offer(&self) -> bool {
        self.app.companions.is_empty() && !self.has_offered.swap(true, Ordering::Relaxed)
    }

    /// Sends a message; a process that it cannot be sent to is killed.
    fn tell_companion(&self, number: u32, message: ToCompanion) {
        if let Some(handle) = self.companions.get(&number) {
            if handle.tell(message).is_err() {
                handle.kill();
            }
        }
    }

    /// Asks a mold for a companion.
    fn fork_companion(
        &mut self,
        number: u32,
        companion: (&Companion, u16),
        folder: &Path,
        boot: u32,
    ) -> io::Result<()> {
        let output = self.output_of(&companion.0.name)?;
        let mold = self.molds.get(&boot).ok_or_else(|| io::Error::other("there is no mold"))?;
        let place = (&*self.app, folder, mold);
        let handle = CompanionHandle::fork(place, number, companion, &output, &self.watcher)?;
        self.companions.insert(number, handle);
        Ok(())
    }

    /// Opens the folder in which a companion is to run, beside the loop.
    fn plan_companion(&self, number: u32, companion: Arc<Companion>, copy: u16, folder: PathBuf) {
        let app = Arc::clone(&self.app);
        let act = move || {
            let opened = opened_folder(&app, &folder);
            Found::Companion(Box::new(CompanionPlan { number, companion, copy, folder, opened }))
        };
        let why = "could not be started: looking at its folder failed; see the log".into();
        let otherwise = move || Found::Event(Box::new(AppEvent::CompanionNotStarted { number, why }));
        self.files.begin(None, act, otherwise);
    }

    /// Starts a companion in its folder. What comes of it is an event, at once or later.
    fn companion_planned(&mut self, plan: CompanionPlan, core: &Core) -> Option<AppEvent> {
        let CompanionPlan { number, companion, copy, folder, opened } = plan;
        let label = core.companions.label(number)?; // else it is not waited for
        let not_started = |why: &dyn Display| {
            let why = format!("could not be started: {why}");
            Some(AppEvent::CompanionNotStarted { number, why })
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(why) => return not_started(&why),
        };
        let pipe = match self.output_of(&companion.name) {
            Ok(pipe) => pipe,
            Err(why) => return not_started(&why),
        };
        let launching = CompanionHandle::launching(&self.app, (&folder, opened), (&companion, copy), pipe);
        let name = companion.name.clone();
        let launched = move |launched| {
            Found::CompanionLaunch(Box::new(CompanionLaunch { number, name, label, launched }))
        };
        match self.watcher.launcher.start(launching) {
            Ok(outcome) => self.found(launched(outcome), core),
            Err(outcome) => {
                let inbox = self.inbox.clone();
                tokio::spawn(async move { inbox.put(Discovery::Found(launched(outcome.await))).await });
                None
            }
        }
    }

    /// The pipe for what companions of this name print.
    fn output_of(&mut self, name: &str) -> io::Result<OwnedFd> {
        let (app, relay) = (&self.app, self.output.relay());
        let named = || AppOutput::of_companion(app, name, relay);
        let output = self.outputs.entry(name.to_owned()).or_insert_with(named);
        output.pipe(self.app.runs_as.another())
    }

    /// A companion was started, or could not be. If it was given up meanwhile, it is killed.
    fn companion_launched(&mut self, launch: CompanionLaunch, core: &Core) -> Option<AppEvent> {
        let CompanionLaunch { number, name, label, launched } = launch;
        let is_awaited = core.companions.get(number).is_some();
        let handle = launched
            .and_then(|launched| CompanionHandle::started(launched, number, (name, label), &self.watcher));
        match handle {
            Ok(handle) if is_awaited => {
                self.companions.insert(number, handle);
            }
            Ok(handle) => handle.kill(),
            Err(why) if is_awaited => {
                let why = format!("could not be started: {why}");
                return Some(AppEvent::CompanionNotStarted { number, why });
            }
            Err(_) => {}
        }
        None
    }

    fn become_mold(&mut self, worker: u32, boot: u32) {
        let handle = self.workers.remove(&worker);
        if let Some(mold) = handle.and_then(|handle| handle.into_mold(boot, &self.watcher)) {
            self.molds.insert(boot, mold);
        }
    }

    fn forget(&mut self, process: Process, ending: Option<Ending>) {
        match process {
            Process::Mold(boot) => drop(self.molds.remove(&boot)),
            Process::Worker(worker) => {
                let handle = self.workers.remove(&worker);
                self.slow_requests.worker_ended(worker).iter().for_each(log_slow_request);
                if let (Some(handle), Some(ending)) = (handle, ending) {
                    self.deaths.ended(worker, handle.pid.map(Pid::as_raw_pid), ending);
                }
            }
            // Its control socket closes, and what is left of it is killed.
            Process::Companion(number) => {
                let handle = self.companions.remove(&number);
                // The application's user could have stopped what watches over it, or have it report what is not so.
                let may_go_on = matches!(ending, None | Some(Ending::Unknown));
                handle.filter(|_| may_go_on).iter().for_each(CompanionHandle::kill);
            }
        }
    }

    /// Finds out what helps to understand a failed boot, and what the folder is like after it.
    fn diagnose_boot(&self, receipt: Receipt, folder: PathBuf, failure: BootFailure) {
        let diagnosed = |receipt, diagnosis, files| {
            Found::Event(Box::new(AppEvent::Diagnosed { receipt, diagnosis: Arc::new(diagnosis), files }))
        };
        let app = Arc::clone(&self.app);
        let (app_too, folder_too, failure_too) = (Arc::clone(&app), folder.clone(), failure.clone());
        let act = move || {
            let files = FolderState::of(&folder, app.runs_as.another());
            diagnosed(receipt, diagnosis::of_boot(failure, &app, &folder), Some(files))
        };
        let otherwise = move || {
            warn!(
                name: "files_unreadable",
                folder = visible_path(&folder_too),
                "the application's files cannot be read: the file system does not answer"
            );
            diagnosed(receipt, diagnosis::of_boot_without_files(failure_too, &app_too, &folder_too), None)
        };
        self.files.begin(Some(FILES_TIME), act, otherwise);
    }

    fn look_at_folder(&self, receipt: Receipt) {
        let seen = move |files, took| Found::Event(Box::new(AppEvent::FolderSeen { receipt, files, took }));
        let app = Arc::clone(&self.app);
        let act = move || {
            let began = Instant::now();
            let files = FolderState::of(&app.link, app.runs_as.another());
            seen(Some(files), began.elapsed())
        };
        self.files.begin(None, act, move || seen(None, Duration::ZERO));
    }

    /// Tells the front. The front outlives the supervisor; if it is gone, the run is ending.
    async fn notify(&mut self, command: AppCommand<()>) {
        let ring = |worker| self.workers.get_mut(&worker)?.take_ring();
        let Some(command) = command.with_ring(ring) else { return };
        if self.notices.send(Notice::ToFront(FrontCommand::ToApp(self.app.id, command))).await.is_err() {
            debug!("the front does not listen to notices any more");
        }
    }

    // --- its configuration and files

    /// From now on it is configured like this.
    pub(super) fn change(&mut self, blueprint: AppBlueprint) -> AppEvent {
        let AppBlueprint { app, source, geometry, .. } = blueprint;
        let replaces = !app.has_processes_of(&self.app);
        let had_fault = self.app.fault.is_some();
        if had_fault || app.link != self.app.link || app.runs_as != self.app.runs_as {
            self.restart_files = RestartFiles::of(watched(&app), Instant::now());
        }
        if had_fault {
            self.source = source; // it never had processes of another one
        }
        if (&app.name, app.max_output_bytes) != (&self.app.name, self.app.max_output_bytes) {
            self.output.change(&app);
            self.outputs.iter().for_each(|(name, output)| output.change_of_companion(&app, name));
        }
        let still_printing =
            |name: &String| self.companions.values().any(|companion| companion.name == *name);
        self.outputs
            .retain(|name, _| app.companions.iter().any(|one| one.name == *name) || still_printing(name));
        (self.app, self.geometry) = (app, geometry);
        let config = Box::new(config(&self.app, &self.source, self.may_fail, &self.settings));
        AppEvent::Configure { config, replaces }
    }

    pub(super) fn look_due(&self) -> Option<Instant> {
        self.restart_files.due()
    }

    /// Looks for restart files, if it is time to.
    pub(super) fn look_at_restart_files(&mut self, now: Instant) {
        if let Some(look) = self.restart_files.look(now) {
            self.files.begin(None, move || Found::Restart(Some(look.done())), || Found::Restart(None));
        }
    }

    pub(super) fn forget_restart_files(&mut self) {
        self.restart_files.forget();
    }

    /// Something was found out about its files.
    pub(super) fn found(&mut self, found: Found, core: &Core) -> Option<AppEvent> {
        let now = Instant::now();
        match found {
            Found::Restart(Some(look)) => {
                let asked = self.restart_files.asks(look, now)?;
                core.phase.is_running().then_some(AppEvent::Restart { asked, receipt: None })
            }
            Found::Restart(None) => {
                self.restart_files.not_seen(now);
                None
            }
            Found::Plan(plan) => self.planned(*plan, core),
            Found::Launch(launch) => self.launched(*launch, core),
            Found::Companion(plan) => self.companion_planned(*plan, core),
            Found::CompanionLaunch(launch) => self.companion_launched(*launch, core),
            Found::Event(event) => Some(*event),
        }
    }
}

/// A slow request has ended.
pub(super) fn log_slow_request(request: &SlowRequestReport) {
    let SlowRequestReport { worker, request: of, seconds, .. } = request;
    let (took, spent) = (format!("{seconds:.1}s"), request.lines().join("\n"));
    info!(name: "request_slow", worker, request = of, took, spent, "a slow request{}", request.ending());
}

/// What is to be looked at for restart files.
fn watched(app: &App) -> Watched {
    Watched {
        path: app.link.clone(),
        user: app.runs_as.another().cloned(),
        in_development: app.is_development(),
    }
}
