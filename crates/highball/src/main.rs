//! The binary: parse, build, run, drain.
//!
//! In reading order: this file (the whole life of `highball serve`), `wiring` (how the front and the supervisor are
//! joined), `root_policy` (the process that stays root), `at_root` (requests to it) and `openers` (processes that open
//! files), `process_list` (other processes of the machine), `confinement` (what the kernel denies the server where root has
//! started it), `configuration` (which HUP reloads), `certificates` (for HTTPS), `certificate_watch`
//! (their files change), `acme` (they come from an authority), `authority` (which issues them in development), `puma` (which has
//! Ruby evaluate a `config/puma.rb`), `readiness` (when a server reports that it serves), `reports` (of front and supervisor),
//! `admin` (health checks and metrics), `app_cgroups` (limits that the kernel keeps), `kernel_limits` (what applications
//! use of them), `domain_check`, `thread_advice` and `limit_advice` (for `highball doctor`), `log`, `pidfile`,
//! `other_servers` (files that Highball does not read), `callers` (the connections at listeners that are not the clients'), `instance` (the control socket of a running Highball),
//! `control_places` (where those sockets are, and who may be at the other end), `asking` (finding instances, and one
//! question to one), `listening` (the ports that an instance really listens on), `elsewhere` (how to ask instances that
//! were not found), `commands` (`status`, `restart`, `refork`, `upgrade` and `stop`), `output` (of commands),
//! `developer_key` (by which a developer's browser is known), `diagnosis_page` (what a browser shows of a failed boot),
//! `doctor` (which boots without serving), `init` (which writes the files of a deployment), `memory` (the figures of
//! `highball memory`), `overview` (what the server does at this moment), `top` (which shows that in a terminal), `actions` (what operators
//! do with it), `handover` (taking over from an older process, in a hot restart), `started_path` (what the next one
//! is started from), `service_notification` (telling systemd), `benchmark` (`highball bench`, which another program does).

mod acme;
mod actions;
mod admin;
mod app_cgroups;
mod asking;
mod at_root;
mod authority;
mod benchmark;
mod callers;
mod certificate_watch;
mod certificates;
mod commands;
mod configuration;
mod confinement;
mod control_places;
mod developer_key;
mod diagnosis_page;
mod doctor;
mod domain_check;
mod elsewhere;
mod handover;
mod init;
mod instance;
mod kernel_limits;
mod limit_advice;
mod listening;
mod log;
mod memory;
mod open_files;
mod openers;
mod other_servers;
mod output;
mod overview;
mod pidfile;
mod process_list;
mod puma;
mod readiness;
mod reports;
mod root_policy;
mod service_notification;
mod started_path;
mod thread_advice;
mod top;
mod wiring;

use admin::AdminThread;
use configuration::Configuration;
use front::Opening;
use handover::{Candidate, Handover};
use highball_config::{App, Bind, Deployment, Invocation, RunsAs, Settings};
use highball_front as front;
use highball_front::developer_key::DeveloperKey;
use highball_spawner::{exec, Role, READER, TABLE, WATCHER};
use highball_supervisor::{
    become_mold, AppBlueprint, Blueprint, Client, Launcher, MoldSource, Outcome, Predecessor, Purpose, Site,
    Supervisor, TicketKeys, UpgradeContext,
};
use output::{complain, print};
use overview::Observer;
use pidfile::Pidfile;
use readiness::Readiness;
use rustix::process::geteuid;
use std::error::Error;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tracing::{error, info, warn};
use wiring::{tell_front, tell_supervisor, ControlHandler, CHANNEL_CAPACITY};
use zeroize::Zeroizing;

/// Time for the last messages between front and supervisor at the end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    exec::receive_signals();
    highball_config::keep_working_folder();
    front::activate(exec::take_activated());
    if let Err(error) = highball_spawner::become_user() {
        complain(format_args!("cannot become the user that this process was started for: {error}"));
        return ExitCode::FAILURE;
    }
    // Before anything else: these take descriptors and variables that no other process may inherit.
    if let Some(code) = serve_the_spawner() {
        return code;
    }
    let launcher = match Client::from_environment() {
        Ok(spawner) => spawner.map_or(Launcher::Direct, |spawner| Launcher::Spawner(Arc::new(spawner))),
        Err(error) => {
            complain(&error);
            return ExitCode::FAILURE;
        }
    };
    if let Launcher::Direct = launcher {
        if let Some(code) = root_policy::stay_root() {
            return code;
        }
    } else {
        app_cgroups::join();
    }
    let predecessor = match Predecessor::from_environment() {
        Ok(predecessor) => predecessor,
        Err(error) => {
            complain(format_args!("cannot take over from the process that started this one: {error}"));
            return ExitCode::FAILURE;
        }
    };
    at_root::open_files_by(&launcher);
    let asked = at_root::read_configuration(&launcher);
    let done = match asked {
        Ok(Invocation::Serve(settings)) => serve(*settings, predecessor, launcher),
        Ok(Invocation::Doctor { json, settings }) => doctor::doctor(*settings, json),
        Ok(Invocation::Config(deployment)) => print_config(&deployment),
        Ok(Invocation::Init { dry_run, folder, unit }) => done(init::init(&folder, &unit, dry_run)),
        Ok(Invocation::Status { json, check, selector }) => done(commands::status(json, check, &selector)),
        Ok(Invocation::Restart { selector }) => done(commands::restart(&selector)),
        Ok(Invocation::Refork { selector }) => done(commands::refork(&selector)),
        Ok(Invocation::Upgrade { selector }) => done(commands::upgrade(&selector)),
        Ok(Invocation::Stop { selector }) => done(commands::stop(&selector)),
        Ok(Invocation::Bench { arguments }) => done(benchmark::run(arguments)),
        Ok(Invocation::Memory { json, gc, selector }) => done(memory::memory(json, gc, &selector)),
        Ok(Invocation::Top { display, selector }) => done(top::top(display, &selector)),
        Ok(Invocation::Help(text) | Invocation::Version(text)) => {
            done(print(&format!("{}\n", text.trim_end())))
        }
        Err(error) => {
            if let Some(predecessor) = predecessor {
                predecessor.failed(&format!("the new process cannot read its configuration: {error}"));
            }
            complain(&error);
            return ExitCode::from(error.exit_code());
        }
    };
    log::finish();
    done.unwrap_or_else(|error| {
        complain(error);
        ExitCode::FAILURE
    })
}

/// What this process does where the spawner has started it as the user of an application.
fn serve_the_spawner() -> Option<ExitCode> {
    let socket = |role: Role| exec::take(role.variable());
    let [reader, table, watcher] = [READER, TABLE, WATCHER].map(exec::take);
    match (socket(Role::Mold), socket(Role::Opener), reader, table, watcher) {
        (Ok(None), Ok(None), Ok(None), Ok(None), Ok(None)) => None,
        (Ok(Some(socket)), ..) => Some(become_mold(socket)),
        (_, Ok(Some(socket)), ..) => Some(highball_tenant::serve(socket)),
        (_, _, Ok(Some(socket)), ..) => Some(at_root::read_for_server(socket)),
        (.., Ok(Some(socket)), _) => Some(root_policy::read_for_spawner(&socket)),
        (.., Ok(Some(socket))) => Some(certificate_watch::watch_for_server(socket)),
        _ => Some(ExitCode::FAILURE),
    }
}

fn done<E: Error + 'static>(result: Result<(), E>) -> Result<ExitCode, Box<dyn Error>> {
    Ok(result.map(|()| ExitCode::SUCCESS)?)
}

/// Prints the configuration of another program, which is to start this one by the path that it was started by.
fn print_config(deployment: &Deployment) -> Result<ExitCode, Box<dyn Error>> {
    let program = started_path::started_path().unwrap_or_else(|| "highball".into());
    done(print(&deployment.text(&program)?))
}

/// The life of a server. The error that keeps a successor from taking over goes to its predecessor as well.
fn serve(
    settings: Settings,
    mut predecessor: Option<Predecessor>,
    launcher: Launcher,
) -> Result<ExitCode, Box<dyn Error>> {
    let server = ListeningServer::listen(settings, predecessor.as_mut(), launcher.clone());
    let predecessor = predecessor.map(Arc::new);
    let done = server.and_then(|server| server.run(predecessor.clone()));
    app_cgroups::end(&launcher);
    if let (Err(error), Some(predecessor)) = (&done, predecessor) {
        predecessor.failed(&error.to_string());
    }
    done
}

/// A server that listens, before it boots and serves.
struct ListeningServer {
    settings: Arc<Settings>,
    started: Instant,
    apps: Vec<AppBlueprint>,
    pidfile: Option<Pidfile>,
    listeners: Vec<front::Listener>,
    /// For health checks, metrics and agent checks.
    admin: admin::Listeners,
    /// For addresses with HTTPS.
    tls: Option<Arc<front::Tls>>,
    /// What a successor will be made from; none where the application was given as an object.
    upgrade_context: Option<UpgradeContext>,
    launcher: Launcher,
}

impl ListeningServer {
    fn listen(
        mut settings: Settings,
        mut predecessor: Option<&mut Predecessor>,
        launcher: Launcher,
    ) -> Result<ListeningServer, Box<dyn Error>> {
        let started = Instant::now();
        if let Some(why) = one_too_many(&settings) {
            return Err(why.into());
        }
        if is_given_as_object() {
            // It keeps the user that has loaded it.
            settings.apps.iter_mut().for_each(|app| Arc::make_mut(app).runs_as = RunsAs::Starter);
        } else if let Some(why) = configuration::none_is_named(&settings) {
            return Err(why.into());
        } else if let Some(why) = root_policy::cannot_become_server_user(&settings, &launcher) {
            return Err(why.into());
        }
        if let Some(why) = at_root::why_no_spool_files(&settings, &launcher) {
            return Err(why.into());
        }
        if let Some(why) = acme::why_not(&settings, &launcher) {
            return Err(why.into());
        }
        let certificates = checked_certificates(&settings, &launcher)?;
        let apps = blueprints(&settings, predecessor.as_deref())?;
        let pidfile = match (&settings.pidfile, &predecessor) {
            (Some(path), None) => at_root::write_pidfile(path, false, &launcher)?,
            _ => None, // or once we have taken over
        };
        log::start(settings.log.format);
        // Before there are threads, and before it listens.
        open_files::make_room(&settings);
        if certificates.is_some() {
            certificates::keep_out_of_core_files();
        }
        app_cgroups::begin(&settings, &launcher);
        confinement::confine(&settings, &launcher);
        log::write_aside();
        warn_of_root(&settings);
        warn_of_ignored(&settings);
        warn_of_environments(&settings);
        puma::report(&settings);
        let tickets = predecessor.as_deref_mut().and_then(Predecessor::take_ticket_keys).map(Zeroizing::new);
        let tickets = tickets.as_ref().map(|tickets| tickets.as_str());
        let set_up = |certificates| certificates::set_up(&settings, certificates, tickets);
        let tls = certificates.map(set_up).transpose()?;
        let unused = front::close_other_activated(settings.binds.iter().chain(settings.admin.all_binds()));
        if let (Some(why), true) = (unused.first(), settings.bind_places.is_empty()) {
            return Err(why.as_str().into());
        }
        unused.iter().for_each(|warning| warn!("{warning}"));
        let mut listen_on = |binds: &[Bind], name: fn(&Bind) -> String, places: &[String]| {
            let listen = |(index, bind): (usize, &Bind)| {
                let listener = listen(bind, &name(bind), predecessor.as_deref_mut(), &launcher);
                listener.map_err(|error| at_place(places.get(index), error))
            };
            binds.iter().enumerate().map(listen).collect::<Result<Vec<_>, _>>()
        };
        let listeners = listen_on(&settings.binds, Bind::to_string, &settings.bind_places)?;
        let admin = admin::Listeners {
            health: listen_on(&settings.admin.binds, admin_name, &[])?,
            agents: listen_on(&settings.admin.agent_binds, agent_name, &[])?,
        };
        let pid_proxy = predecessor.and_then(|predecessor| {
            predecessor.drop_rest();
            predecessor.take_pid_proxy()
        });
        let upgrade_context = if is_given_as_object() {
            None
        } else {
            upgrade_context(&settings, &listeners, &admin, pid_proxy, tls.as_ref())?
        };
        Ok(ListeningServer {
            settings: Arc::new(settings),
            started,
            apps,
            pidfile,
            listeners,
            admin,
            tls,
            upgrade_context,
            launcher,
        })
    }

    /// Boot, serve, drain.
    fn run(self, predecessor: Option<Arc<Predecessor>>) -> Result<ExitCode, Box<dyn Error>> {
        let ListeningServer {
            settings,
            started,
            apps,
            mut pidfile,
            listeners,
            admin,
            tls,
            upgrade_context,
            launcher,
        } = self;
        let binds: Vec<String> = listeners.iter().map(front::Listener::address).collect();
        let ports = listeners.iter().filter_map(front::Listener::port).collect();
        let inherited = listeners.iter().chain(admin.iter()).filter(|listener| listener.is_inherited());
        let kept = inherited.map(front::Listener::address).collect();
        let configuration = Configuration::new(Arc::clone(&settings), tls.clone(), launcher.clone());
        let keeping = acme::keep_certificates(&configuration, tls.as_ref(), predecessor.is_some())?;
        let key = Arc::new(at_root::developer_key(&settings, &launcher)?);

        let (to_front, commands) = mpsc::channel(CHANNEL_CAPACITY);
        let (events_out, events) = mpsc::unbounded_channel();
        let opening = if predecessor.is_some() { Opening::OnCommand } else { Opening::AtOnce };
        let front = start_front(
            Arc::clone(&settings),
            Arc::clone(&key),
            tls.clone(),
            listeners,
            opening,
            commands,
            events_out,
        )?;

        let (notify, notices) = mpsc::channel(CHANNEL_CAPACITY);
        let (to_supervisor, orders) = mpsc::channel(CHANNEL_CAPACITY);
        let purpose = if predecessor.is_some() { Purpose::Succeed } else { Purpose::Serve };
        let output = log::app_output(settings.log.format);
        let blueprint =
            Blueprint { settings: Arc::clone(&settings), apps, purpose, output, launcher: launcher.clone() };
        let supervisor = Supervisor::new(blueprint, notify);
        let (serving_in, serving) = watch::channel(false);
        let processes = Arc::default();
        let observer = Arc::new(Observer::new(
            configuration.clone(),
            started,
            to_front.downgrade(),
            to_supervisor.downgrade(),
            Arc::clone(&processes),
            launcher.clone(),
        ));
        let token = Arc::new(admin::Token::new()?);
        let sources = admin::Sources {
            configuration: configuration.clone(),
            front: to_front.downgrade(),
            supervisor: to_supervisor.downgrade(),
            tls: tls.clone(),
            processes: Arc::clone(&processes),
            heaps: Arc::default(),
            agent: Arc::default(),
            observer: Arc::clone(&observer),
            token: Arc::clone(&token),
            streams: Arc::default(),
        };
        let admin = AdminThread::start(admin, sources, serving.clone())?;
        let control = Arc::new(ControlHandler {
            configuration: configuration.clone(),
            started,
            binds: binds.clone(),
            key: Arc::clone(&key),
            tls: tls.clone(),
            keeper: keeping.as_ref().map(|keeping| keeping.keeper.clone()),
            ports,
            admin: Arc::clone(&admin.addresses),
            predecessor: predecessor.as_ref().map(|predecessor| predecessor.pid()),
            supervisor: to_supervisor.clone(),
            front: to_front.clone(),
            launcher: launcher.clone(),
            observer,
            token,
        });

        let (candidate, news) = Candidate::of(predecessor.as_ref(), &settings.apps);
        // A candidate reports in the handover that it serves.
        let readiness = Readiness::new(
            configuration.clone(),
            binds.clone(),
            key,
            candidate.is_one(),
            launcher.clone(),
            admin.leaver(launcher.clone()),
        );
        let mut handover = Handover {
            settings,
            binds,
            kept,
            front: to_front.clone(),
            supervisor: to_supervisor.clone(),
            upgrade_context,
            serving: serving_in,
            news,
            awaited: candidate.awaited(),
            launcher: launcher.clone(),
        };

        let runtime = event_loop()?;
        let outcome = runtime.block_on(async {
            tokio::spawn(service_notification::keep_alive(to_front.downgrade(), launcher.clone()));
            tokio::spawn(at_root::end_idle_openers());
            let configured = configuration.clone();
            let telling =
                tokio::spawn(tell_front(notices, to_front.clone(), configured, readiness, candidate.clone()));
            let outcome = tokio::select! {
                outcome = supervisor.run(orders) => outcome,
                () = tell_supervisor(events, to_supervisor.clone(), candidate) => {
                    error!("the front has ended by itself"); // workers end when their control sockets close
                    Ok(Outcome::Halted)
                }
                () = handover.take_over(predecessor.as_deref(), &mut pidfile) => unreachable!("it waits for ever"),
                () = serve_control(&control, serving.clone(), predecessor.as_deref()) => unreachable!("it answers for ever"),
                () = configuration.reload_on_hangup(&to_front, &to_supervisor) => unreachable!("it waits for ever"),
                () = certificate_watch::follow_files(&configuration, tls.as_ref(), &launcher) => unreachable!("it looks for ever"),
            };
            let _ = tokio::time::timeout(EXIT_TIMEOUT, telling).await; // for the supervisor's last messages
            outcome
        })?;
        // This process may stay, as the one that passes signals on.
        drop((control, handover, to_front, keeping));
        admin.end();
        let unanswered = front.end();
        if let Some(predecessor) = predecessor.filter(|_| !*serving.borrow()) {
            predecessor.failed(&why_not(&outcome));
        }
        drop(pidfile);
        let code = conclude(outcome, unanswered, &runtime);
        // A look at files that does not come to an end is not waited for.
        runtime.shutdown_background();
        Ok(code)
    }
}

/// The certificates, if there are addresses for HTTPS.
fn checked_certificates(
    settings: &Settings,
    launcher: &Launcher,
) -> Result<Option<certificates::Checked>, Box<dyn Error>> {
    if !certificates::are_needed(settings) {
        if settings.tls.redirect {
            return Err(
                "`redirect_https` needs an address for HTTPS, such as `bind = \"tls://0.0.0.0:443\"`".into(),
            );
        }
        return Ok(None);
    }
    let sources = at_root::read_certificates(settings, launcher)?;
    Ok(Some(certificates::check(sources)?))
}

/// An error with the address that was named there.
fn at_place(place: Option<&String>, error: Box<dyn Error>) -> Box<dyn Error> {
    place.map_or(error.to_string(), |place| format!("{place}: {error}")).into()
}

/// The name by which a process passes the socket for health checks to the next: both kinds may have the same address
/// with the port 0.
fn admin_name(bind: &Bind) -> String {
    format!("admin {bind}")
}

/// The same, for agent checks.
fn agent_name(bind: &Bind) -> String {
    format!("agent {bind}")
}

/// Listens on an address: with the socket that the process before has by this name, or with a new one.
fn listen(
    bind: &Bind,
    name: &str,
    predecessor: Option<&mut Predecessor>,
    launcher: &Launcher,
) -> Result<front::Listener, Box<dyn Error>> {
    match predecessor.and_then(|predecessor| predecessor.take_listener(name)) {
        Some(socket) => Ok(at_root::adopt(bind, socket, launcher)?),
        None => at_root::listen(bind, launcher),
    }
}

/// What a successor of this process will be made from.
fn upgrade_context(
    settings: &Settings,
    listeners: &[front::Listener],
    admin: &admin::Listeners,
    pid_proxy: Option<OwnedFd>,
    tls: Option<&Arc<front::Tls>>,
) -> io::Result<Option<UpgradeContext>> {
    let share = |(name, listener): (String, &front::Listener)| Ok((name, listener.share()?));
    let of_admin = settings.admin.binds.iter().map(admin_name);
    let of_agents = settings.admin.agent_binds.iter().map(agent_name);
    let names = settings.binds.iter().map(Bind::to_string).chain(of_admin).chain(of_agents);
    let Some(program) = started_path::started_path() else { return Ok(None) };
    Ok(Some(UpgradeContext {
        program,
        arguments: std::env::args_os().collect(),
        listeners: names.zip(listeners.iter().chain(admin.iter())).map(share).collect::<io::Result<_>>()?,
        pid_proxy,
        ticket_keys: tls.map(|tls| {
            let tls = Arc::clone(tls);
            TicketKeys(Arc::new(move || tls.ticket_keys().to_string()))
        }),
    }))
}

/// Warns of applications that run as root by accident.
fn warn_of_root(settings: &Settings) {
    if is_given_as_object() && geteuid().is_root() && !settings.is_development() {
        warn!(
            "running as root, and so does the application, as root has loaded it: start it as its own user"
        );
    }
    for app in settings.apps.iter().filter(|app| is_root_by_chance(app)) {
        warn!(remedy = remedy_for_root(app), "{} {ROOT_BY_CHANCE}", app.name);
    }
}

/// The words for an application that runs as root although no user is configured.
const ROOT_BY_CHANCE: &str = "runs as root, as its files belong to root";

fn is_root_by_chance(app: &App) -> bool {
    app.runs_as == RunsAs::RootUnasked && app.fault.is_none() && !app.is_development()
}

fn remedy_for_root(app: &App) -> String {
    let (name, folder) = (&app.name, app.link.display());
    format!(
        "Give it its own user (adduser --system --group {name}; chown -R {name}: {folder}), or name one with `user`. To run \
         it as root, set user = \"root\"."
    )
}

/// Warns of options that have no effect.
fn warn_of_ignored(settings: &Settings) {
    for place in &settings.ignored {
        warn!("{place}: this is an option of the server, and has no effect in the file of one of several applications");
    }
}

/// Warns of environments that Rails has no file for.
fn warn_of_environments(settings: &Settings) {
    for app in &settings.apps {
        if let Some(note) = &app.environment_note {
            warn!("{}: {note}", app.name);
        }
    }
}

/// What the applications are brought up from.
fn blueprints(
    settings: &Settings,
    predecessor: Option<&Predecessor>,
) -> Result<Vec<AppBlueprint>, Box<dyn Error>> {
    let blueprint = |app: &Arc<App>| {
        Ok(AppBlueprint {
            source: mold_source(app)?,
            geometry: front::geometry(&settings.limits, app.threads),
            may_fail: predecessor.is_some_and(|predecessor| predecessor.is_without(&app.name)),
            app: Arc::clone(app),
        })
    };
    settings.apps.iter().map(blueprint).collect()
}

/// Whether the application was given as an object, to a process that started us and put the control socket onto our
/// standard input.
fn is_given_as_object() -> bool {
    std::env::var_os("HIGHBALL_MOLD").is_some_and(|value| value == "stdin")
}

/// The error for several applications where there can only be one.
fn one_too_many(settings: &Settings) -> Option<&'static str> {
    (is_given_as_object() && settings.apps.len() > 1).then_some(
        "the application was given as an object (by rackup or rails server), and the configuration file has several: \
         start `highball` itself, or name another file in HIGHBALL_CONFIG",
    )
}

/// Where the application comes from: its folder, where there may be nothing to load but files to serve; or the process
/// that started us.
fn mold_source(app: &App) -> Result<MoldSource, Box<dyn Error>> {
    if is_given_as_object() {
        return Ok(MoldSource::Caller(io::stdin().as_fd().try_clone_to_owned()?));
    }
    if app.file.is_none() && Site::in_folder(&app.folder, app.runs_as.another()).is_some() {
        return Ok(MoldSource::Site);
    }
    let gem_lib = gem_lib().ok_or(
        "cannot find Highball's Ruby code (lib/highball) near this binary: reinstall Highball, or name the \
         folder in HIGHBALL_LIB",
    )?;
    Ok(MoldSource::Folder { gem_lib })
}

/// The gem's folder `lib`: named, or somewhere above the binary (target/release of a source tree, or the gem).
pub(crate) fn gem_lib() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HIGHBALL_LIB") {
        return Some(named.into());
    }
    let binary = std::env::current_exe().ok()?;
    let mut libs = binary.ancestors().skip(1).take(4).map(|folder| folder.join("lib"));
    libs.find(|lib| lib.join("highball/boot.rb").is_file())
}

fn event_loop() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Answers `highball status` and its like for ever, from when connections are accepted. A server without them still
/// serves.
async fn serve_control(
    control: &Arc<ControlHandler>,
    mut serving: watch::Receiver<bool>,
    predecessor: Option<&Predecessor>,
) {
    if serving.wait_for(|serving| *serving).await.is_err() {
        return std::future::pending().await; // it has given up, and is ending
    }
    let socket = at_root::control_socket(&control.launcher, predecessor.map(Predecessor::pid)).await;
    if let Some(predecessor) = predecessor {
        predecessor.serving(); // from here on commands find us
    }
    match socket {
        Ok(socket) => {
            let control = Arc::clone(control);
            let respond = move |question| {
                let control = Arc::clone(&control);
                async move { control.respond(question).await }
            };
            socket.answer(respond).await;
        }
        Err(error) => {
            warn!(%error, "no control socket: `highball status`, `highball restart` and `highball stop` cannot find this server");
            std::future::pending().await
        }
    }
}

/// The front on its thread.
struct FrontThread {
    thread: std::thread::JoinHandle<()>,
    ended: std::sync::mpsc::Receiver<front::Unanswered>,
}

fn start_front(
    settings: Arc<Settings>,
    key: Arc<DeveloperKey>,
    tls: Option<Arc<front::Tls>>,
    listeners: Vec<front::Listener>,
    opening: Opening,
    commands: mpsc::Receiver<front::Command>,
    events: mpsc::UnboundedSender<front::Event>,
) -> io::Result<FrontThread> {
    let (end, ended) = std::sync::mpsc::sync_channel(1);
    let run = move || {
        let unanswered = front::run(settings, key, tls, listeners, opening, commands, events);
        let unanswered = unanswered.unwrap_or_else(|error| {
            error!(%error, "the front has no event loop");
            front::Unanswered::default()
        });
        let _ = end.send(unanswered); // the receiver is gone when the run has ended first
    };
    let thread = std::thread::Builder::new().name("front".into()).spawn(run)?;
    Ok(FrontThread { thread, ended })
}

impl FrontThread {
    /// Waits for the end of the front, which comes when its commands' sender is dropped; but not for ever.
    fn end(self) -> front::Unanswered {
        let ended = self.ended.recv_timeout(EXIT_TIMEOUT);
        if let Err(RecvTimeoutError::Timeout) = ended {
            warn!("the front did not end in time");
        } else if self.thread.join().is_err() {
            error!("the front has panicked");
        }
        ended.unwrap_or_default()
    }
}

/// Why a process that was to take over has ended instead.
fn why_not(outcome: &Outcome) -> String {
    match outcome {
        Outcome::BootFailed(failure) => failure.in_brief(),
        Outcome::BootLoop(why) => format!("the application does not come up: {why}"),
        Outcome::Drained | Outcome::Stopped | Outcome::Halted => {
            "the new process got a signal to stop".into()
        }
        Outcome::CallerGone | Outcome::HandedOver(_) => "the new process has ended".into(),
    }
}

/// Logs how many requests got no whole answer, each kind where there are some.
fn log_unanswered(unanswered: front::Unanswered) {
    let front::Unanswered { incomplete, left, cut_off, in_flight } = unanswered;
    let some = |count: usize| Some(count).filter(|count| *count > 0);
    warn!(
        not_received_in_time = some(incomplete),
        clients_left = some(left),
        answers_cut_off = some(cut_off),
        unfinished = some(in_flight),
        "some requests got no complete answer while the server was stopping"
    );
}

/// Logs how the run ended, and returns the exit code. A process that was succeeded may still have to stay as the
/// service's pid.
fn conclude(outcome: Outcome, unanswered: front::Unanswered, runtime: &Runtime) -> ExitCode {
    let is_complete = unanswered == front::Unanswered::default();
    // Ctrl-C in development waits for none.
    if !is_complete && !matches!(outcome, Outcome::Stopped) {
        log_unanswered(unanswered);
    }
    match outcome {
        Outcome::Drained if is_complete => info!("stopped; every request was answered"),
        Outcome::Drained | Outcome::Stopped => info!("stopped"),
        Outcome::Halted => warn!("stopped; what had not ended in time was killed"),
        Outcome::BootFailed(_) => {} // the supervisor has logged why
        Outcome::BootLoop(ref why) => error!(why, "giving up: the application does not come up"),
        Outcome::CallerGone => error!("giving up: the process that holds the application has gone"),
        Outcome::HandedOver(_) => info!("finished what was left after the hot restart"),
    }
    match outcome {
        Outcome::Drained | Outcome::Stopped => ExitCode::SUCCESS,
        Outcome::HandedOver(pid_proxy) => ExitCode::from(runtime.block_on(pid_proxy.stay())),
        _ => ExitCode::FAILURE,
    }
}
