//! A front on its own thread, workers that are played by the test, and clients.
#![allow(dead_code, unused_imports)] // each test file uses its part
#![allow(clippy::disallowed_methods)] // the files are a test's own

mod client;
mod worker;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use highball_config::{App, AppId, Bind, Invocation, Settings, Threads};
use highball_front::developer_key::DeveloperKey;
use highball_front::{Developers, DevelopmentPages, Entrances, Listener, Opening, PublishersSocket};
use highball_link::{AppCommand, FrontAppEvent, FrontCommand, FrontEvent, FrontReport, NewWorker};
use tokio::sync::{mpsc, oneshot};

pub(crate) use client::{Answer, Client};
pub(crate) use worker::{frame, head, head_payload, FakeWorker, Job};

/// How long anything may take that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A running front.
pub(crate) struct Front {
    pub(crate) port: u16,
    pub(crate) settings: Arc<Settings>,
    commands: Option<mpsc::Sender<FrontCommand>>,
    /// Taken from the channel itself: what the front sends before a report is there when the report is.
    events: RefCell<mpsc::UnboundedReceiver<FrontEvent>>,
    thread: Option<JoinHandle<()>>,
    workers: AtomicU32,
    folder: tempfile::TempDir,
}

impl Front {
    /// A front with the settings of a production server.
    pub(crate) fn start() -> Front {
        Front::with(|_| {})
    }

    /// A front with settings that `adjust` has changed.
    pub(crate) fn with(adjust: impl FnOnce(&mut Settings)) -> Front {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings(&folder);
        adjust(&mut settings);
        let listeners = settings.binds.iter().map(|bind| highball_front::bind(bind).unwrap()).collect();
        Front::run(folder, settings, listeners, Opening::AtOnce)
    }

    /// A front that accepts, or will, from these sockets.
    pub(crate) fn on(listeners: Vec<Listener>, opening: Opening) -> Front {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder);
        Front::run(folder, settings, listeners, opening)
    }

    fn run(
        folder: tempfile::TempDir,
        settings: Settings,
        listeners: Vec<Listener>,
        opening: Opening,
    ) -> Front {
        let settings = Arc::new(settings);
        let port = listeners.iter().find_map(|listener| listener.port()).unwrap_or(0);
        let (commands, commands_in) = mpsc::channel(16);
        let (from_front, events) = mpsc::unbounded_channel();
        let for_front = Arc::clone(&settings);
        let developers =
            Developers { key: Arc::new(DeveloperKey::new([7; 32])), pages: |_| DevelopmentPages::default() };
        let publishers = PublishersSocket::bind().unwrap();
        let hub = publishers.address().sequence();
        let entrances = Entrances { listeners, publishers, predecessor: None, hub };
        let thread = std::thread::spawn(move || {
            highball_front::run(
                for_front,
                developers,
                None,
                entrances,
                opening,
                (commands_in, from_front),
                None,
            )
            .unwrap();
        });
        let (events, workers) = (RefCell::new(events), AtomicU32::new(0));
        Front { port, settings, commands: Some(commands), events, thread: Some(thread), workers, folder }
    }

    pub(crate) fn tell(&self, command: FrontCommand) {
        self.commands.as_ref().unwrap().blocking_send(command).unwrap();
    }

    /// Sends a command about the first application.
    pub(crate) fn tell_app(&self, command: AppCommand) {
        self.tell_of(0, command);
    }

    /// Sends a command about the application with this index in the settings.
    pub(crate) fn tell_of(&self, app: usize, command: AppCommand) {
        self.tell(FrontCommand::ToApp(self.id(app), command));
    }

    pub(crate) fn id(&self, app: usize) -> AppId {
        self.settings.apps[app].id
    }

    /// The next event of the front, but for [`FrontAppEvent::Wanted`]: that depends on the timing.
    pub(crate) fn event(&self) -> FrontEvent {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let event = self.events.borrow_mut().try_recv();
            match event {
                Ok(FrontEvent::OfApp(_, FrontAppEvent::Wanted | FrontAppEvent::Load(_))) => {}
                Ok(event) => return event,
                Err(_) => {
                    assert!(Instant::now() < deadline, "no event within {PATIENCE:?}");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// The next event of an application, as above.
    pub(crate) fn app_event(&self) -> FrontAppEvent {
        match self.event() {
            FrontEvent::OfApp(_, event) => event,
            FrontEvent::Drained => panic!("drained"),
        }
    }

    /// The events that the front has sent and the test has not taken, but for the load.
    pub(crate) fn events(&self) -> Vec<FrontEvent> {
        let mut events = self.events.borrow_mut();
        let all = std::iter::from_fn(|| events.try_recv().ok());
        all.filter(|event| !matches!(event, FrontEvent::OfApp(_, FrontAppEvent::Load(_)))).collect()
    }

    pub(crate) fn report(&self) -> FrontReport {
        let (to, report) = oneshot::channel();
        self.tell(FrontCommand::Report(to));
        report.blocking_recv().unwrap()
    }

    /// Waits until the front's report is such. If it never is, the last report is in the message.
    pub(crate) fn until(&self, what: &str, condition: impl Fn(&FrontReport) -> bool) {
        wait_while(what, || Some(self.report()).filter(|report| !condition(report)));
    }

    /// Adds a worker with this number of threads.
    pub(crate) fn worker(&self, threads: u16) -> FakeWorker {
        self.worker_of(1, threads)
    }

    /// Adds a worker of this generation.
    pub(crate) fn worker_of(&self, generation: u32, threads: u16) -> FakeWorker {
        let (worker, new) = self.new_worker(generation, threads);
        self.tell_app(AppCommand::AddWorker(new));
        worker
    }

    /// Adds a worker that has between these numbers of threads.
    pub(crate) fn worker_of_range(&self, least: u16, most: u16) -> FakeWorker {
        let (worker, new) = self.new_worker_from(1, 1, Threads { least, ..Threads::fixed(most) });
        self.tell_app(AppCommand::AddWorker(new));
        worker
    }

    /// Adds a worker of the application with this index in the settings.
    pub(crate) fn worker_for(&self, app: usize, threads: u16) -> FakeWorker {
        let (worker, new) = self.new_worker(1, threads);
        self.tell_of(app, AppCommand::AddWorker(new));
        worker
    }

    /// Adds a canary of this generation with two threads, and has it asked for the `probe_path`, which tests set to `/canary`.
    pub(crate) fn canary_of(&self, generation: u32) -> FakeWorker {
        let (worker, new) = self.new_worker(generation, 2);
        self.tell_app(AppCommand::AddCanary(new));
        worker
    }

    fn new_worker(&self, generation: u32, threads: u16) -> (FakeWorker, NewWorker) {
        self.new_worker_from(1, generation, Threads::fixed(threads))
    }

    /// Adds a worker with one thread whose ring begins at this position.
    pub(crate) fn worker_from(&self, position: u64) -> FakeWorker {
        let (worker, new) = self.new_worker_from(position, 1, Threads::fixed(1));
        self.tell_app(AppCommand::AddWorker(new));
        worker
    }

    fn new_worker_from(&self, position: u64, generation: u32, threads: Threads) -> (FakeWorker, NewWorker) {
        let worker = self.workers.fetch_add(1, Ordering::Relaxed) + 1;
        let app = App { threads, ..App::clone(&self.settings.apps[0]) };
        let geometry = highball_front::geometry(&self.settings.limits, &app);
        let (ring, fds) = highball_ring::create_from(geometry, position).unwrap();
        (FakeWorker::new(worker, fds), NewWorker { worker, generation, ring })
    }

    pub(crate) fn retire(&self, worker: &FakeWorker) {
        self.tell_app(AppCommand::RetireWorker { worker: worker.number });
    }

    /// The same, unless it holds something that lasts.
    pub(crate) fn relieve(&self, worker: &FakeWorker) {
        self.tell_app(AppCommand::RelieveWorker { worker: worker.number });
    }

    /// Says that the worker is dead.
    pub(crate) fn remove(&self, worker: &FakeWorker) {
        self.tell_app(AppCommand::RemoveWorker { worker: worker.number, killed: false });
    }

    /// Says that the worker is dead, since it was killed on purpose.
    pub(crate) fn remove_killed(&self, worker: &FakeWorker) {
        self.tell_app(AppCommand::RemoveWorker { worker: worker.number, killed: true });
    }

    /// Says that this worker of this application is dead.
    pub(crate) fn remove_of(&self, app: usize, worker: &FakeWorker) {
        self.tell_of(app, AppCommand::RemoveWorker { worker: worker.number, killed: false });
    }

    /// One request to this host, on a new connection.
    pub(crate) fn get_from(&self, host: &str, path: &str) -> Client {
        let mut client = self.connect();
        client.get_from(host, path);
        client
    }

    pub(crate) fn connect(&self) -> Client {
        Client::tcp(self.port)
    }

    /// One request on a new connection.
    pub(crate) fn get(&self, path: &str) -> Client {
        let mut client = self.connect();
        client.get(path);
        client
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Whether this process has a file open in the folder for spool files, with bytes: while the front measures the room, it has an
    /// empty one. It has no name there, but `/proc` knows it.
    pub(crate) fn has_file_on_disk(&self) -> bool {
        let folder = self.folder();
        let mut open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.any(|fd| {
            let is_there = std::fs::read_link(fd.path()).is_ok_and(|file| file.starts_with(&folder));
            is_there && std::fs::metadata(fd.path()).is_ok_and(|file| file.len() > 0)
        })
    }

    /// Ends it.
    pub(crate) fn stop(mut self) {
        self.commands = None;
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            if !std::thread::panicking() {
                thread.join().unwrap();
            }
        }
    }
}

/// Settings of a production server on a free port, with spool files in `folder`.
fn settings(folder: &tempfile::TempDir) -> Settings {
    let app = folder.path().to_str().unwrap();
    let args =
        ["highball", "serve", "-e", "production", "--ruby", "/bin/true", "--probe-path", "/canary", app];
    let args = args.iter().map(OsString::from);
    let Ok(Invocation::Serve(settings)) = highball_config::parse(args, &|_| None) else {
        panic!("the settings are not understood")
    };
    let mut settings = *settings;
    settings.binds = vec![Bind::tcp("127.0.0.1:0".parse().unwrap())];
    settings.limits.spool_dir = folder.path().to_owned();
    settings
}

/// The one application, to be changed.
pub(crate) fn the_app(settings: &mut Settings) -> &mut App {
    app_of(settings, 0)
}

/// Like the one application, but reached at these hosts, below this prefix. Its name is its place in the list.
pub(crate) fn set_apps(settings: &mut Settings, reached_at: &[(&[&str], &str)]) {
    let model = settings.apps[0].clone();
    let app = |(number, (hosts, prefix)): (usize, &(&[&str], &str))| {
        Arc::new(App {
            id: AppId(model.id.0 + 100 + number as u32),
            name: number.to_string(),
            hosts: hosts.iter().map(ToString::to_string).collect(),
            prefix: (*prefix).to_owned(),
            ..(*model).clone()
        })
    };
    settings.apps = reached_at.iter().enumerate().map(app).collect();
}

/// One of several, to be changed.
pub(crate) fn app_of(settings: &mut Settings, app: usize) -> &mut App {
    Arc::get_mut(&mut settings.apps[app]).expect("the only owner")
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    wait_while(what, || (!condition()).then_some("it is not so"));
}

/// Waits until nothing is in the way any more. What is then, ends up in the message.
fn wait_while<T: std::fmt::Debug>(what: &str, mut obstacle: impl FnMut() -> Option<T>) {
    let deadline = Instant::now() + PATIENCE;
    while let Some(obstacle) = obstacle() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}; {obstacle:#?}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The private memory of this process, in bytes.
pub(crate) fn private_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// Bytes that differ at every position from their neighbours.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
