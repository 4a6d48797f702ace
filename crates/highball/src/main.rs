//! The binary: parse, build, run, drain.
//!
//! In reading order: this file (the whole life of `highball serve`), `wiring` (how the front and the supervisor
//! are joined), `log`, `pidfile`, `instance` (the socket by which a running Highball is asked), `commands`
//! (`status`, `restart` and `stop`, which ask), `diagnosis_page` (what a browser shows of a failed boot), `doctor`
//! (which boots without serving), `memory` (which asks as well, and looks at processes).

mod commands;
mod diagnosis_page;
mod doctor;
mod instance;
mod log;
mod memory;
mod pidfile;
mod wiring;

use highball_config::{Invocation, Settings};
use highball_front as front;
use highball_supervisor::{Blueprint, MoldSource, Outcome, Purpose, Supervisor};
use instance::InstanceSocket;
use pidfile::Pidfile;
use std::error::Error;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tracing::{error, info, warn};
use wiring::{tell_front, tell_supervisor, Spokesman};

/// What one part may have said to the other without being heard yet: far more than a run's workers say at once.
const UNHEARD: usize = 1024;
/// Time for the front's last words on connections that it closes.
const FAREWELL: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let env = |name: &str| std::env::var(name).ok();
    let done = match highball_config::parse(std::env::args_os(), &env) {
        Ok(Invocation::Serve(settings)) => serve(*settings),
        Ok(Invocation::Doctor { json, settings }) => doctor::doctor(*settings, json),
        Ok(Invocation::Status { json, selector }) => done(commands::status(json, &selector)),
        Ok(Invocation::Restart { selector }) => done(commands::restart(&selector)),
        Ok(Invocation::Stop { selector }) => done(commands::stop(&selector)),
        Ok(Invocation::Bench { arguments }) => done(highball_bench::command::run(arguments)),
        Ok(Invocation::Memory { json, gc, selector }) => done(memory::memory(json, gc, &selector)),
        Ok(Invocation::Help(text) | Invocation::Version(text)) => {
            println!("{}", text.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("highball: {error}");
            return ExitCode::from(error.exit_code());
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("highball: {error}");
        ExitCode::FAILURE
    })
}

fn done<E: Error + 'static>(result: Result<(), E>) -> Result<ExitCode, Box<dyn Error>> {
    Ok(result.map(|()| ExitCode::SUCCESS)?)
}

/// The life of a server: bind, boot, serve, drain.
fn serve(settings: Settings) -> Result<ExitCode, Box<dyn Error>> {
    let started = Instant::now();
    let settings = Arc::new(settings);
    let source = mold_source()?;
    let _pidfile = settings.pidfile.as_deref().map(Pidfile::claim).transpose()?;
    log::start(settings.log.format);
    warn_of_root(&settings);

    let listeners = settings.binds.iter().map(front::bind).collect::<Result<Vec<_>, _>>()?;
    let binds: Vec<String> = listeners.iter().map(front::Listener::address).collect();
    let ports = listeners.iter().filter_map(front::Listener::port).collect();

    let (to_front, commands) = mpsc::channel(UNHEARD);
    let (say, events) = mpsc::unbounded_channel();
    let front = start_front(Arc::clone(&settings), listeners, commands, say)?;

    let (notify, notices) = mpsc::channel(UNHEARD);
    let (to_supervisor, orders) = mpsc::channel(UNHEARD);
    let geometry = front::geometry(&settings.limits, settings.threads);
    let blueprint = Blueprint { settings: Arc::clone(&settings), source, geometry, purpose: Purpose::Serve };
    let supervisor = Supervisor::new(blueprint, notify);
    let served = Arc::clone(&settings);
    let spokesman = Arc::new(Spokesman {
        settings,
        started,
        binds: binds.clone(),
        ports,
        supervisor: to_supervisor.clone(),
        front: to_front.clone(),
    });

    let outcome = event_loop()?.block_on(async {
        tokio::spawn(tell_front(notices, to_front, binds, served));
        tokio::select! {
            outcome = supervisor.run(orders) => outcome,
            () = tell_supervisor(events, to_supervisor) => {
                error!("the front has ended by itself"); // workers end when their control sockets close
                Ok(Outcome::Halted)
            }
            () = speak(&spokesman) => unreachable!("the spokesman answers for ever"),
        }
    })?;
    drop(spokesman);
    front.end();
    Ok(conclude(outcome))
}

/// Highball does not change users yet: whoever starts it is who the application runs as.
fn warn_of_root(settings: &Settings) {
    if rustix::process::geteuid().is_root() && !settings.is_development() {
        warn!("running as root, and so does the application: start Highball as the application's own user");
    }
}

/// Where the application comes from: its folder, or the process that started us and put the control socket onto
/// our standard input.
fn mold_source() -> Result<MoldSource, Box<dyn Error>> {
    if std::env::var_os("HIGHBALL_MOLD").is_some_and(|value| value == "stdin") {
        return Ok(MoldSource::Caller(std::io::stdin().as_fd().try_clone_to_owned()?));
    }
    let gem_lib = gem_lib().ok_or(
        "cannot find Highball's Ruby code (lib/highball) near this binary: reinstall Highball, or name the \
         folder in HIGHBALL_LIB",
    )?;
    Ok(MoldSource::Folder { gem_lib })
}

/// The gem's folder `lib`: named, or somewhere above the binary (target/release of a source tree, or the gem).
fn gem_lib() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HIGHBALL_LIB") {
        return Some(named.into());
    }
    let binary = std::env::current_exe().ok()?;
    let mut libs = binary.ancestors().skip(1).take(4).map(|folder| folder.join("lib"));
    libs.find(|lib| lib.join("highball/boot.rb").is_file())
}

fn event_loop() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Answers `highball status` and its like for ever. A server without them still serves.
async fn speak(spokesman: &Arc<Spokesman>) {
    let folder = instance::folder();
    match InstanceSocket::open(&folder) {
        Ok(socket) => {
            let spokesman = Arc::clone(spokesman);
            let respond = move |question| {
                let spokesman = Arc::clone(&spokesman);
                async move { spokesman.respond(question).await }
            };
            socket.answer(respond).await;
        }
        Err(error) => {
            let folder = folder.display();
            warn!(%folder, %error, "no control socket: `highball status`, `highball restart` and `highball stop` cannot find us");
            std::future::pending().await
        }
    }
}

/// The front on its thread.
struct FrontThread {
    thread: std::thread::JoinHandle<()>,
    ended: std::sync::mpsc::Receiver<()>,
}

fn start_front(
    settings: Arc<Settings>,
    listeners: Vec<front::Listener>,
    commands: mpsc::Receiver<front::Command>,
    events: mpsc::UnboundedSender<front::Event>,
) -> std::io::Result<FrontThread> {
    let (end, ended) = std::sync::mpsc::sync_channel(1);
    let run = move || {
        if let Err(error) = front::run(settings, listeners, commands, events) {
            error!(%error, "the front has no event loop");
        }
        let _ = end.send(()); // nobody waits any more when the run has ended first
    };
    let thread = std::thread::Builder::new().name("front".into()).spawn(run)?;
    Ok(FrontThread { thread, ended })
}

impl FrontThread {
    /// Waits for the end of the front, which comes when nobody commands it any more; but not for ever.
    fn end(self) {
        if self.ended.recv_timeout(FAREWELL).is_err() {
            warn!("the front did not end in time");
        } else if self.thread.join().is_err() {
            error!("the front has panicked");
        }
    }
}

/// Says how the run ended, and makes an exit code of it.
fn conclude(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Drained => info!("stopped; every request was answered"),
        Outcome::Stopped => info!("stopped"),
        Outcome::Halted => warn!("stopped; workers were killed with requests in flight"),
        Outcome::BootFailed(_) => {} // the supervisor has said all there is to say
        Outcome::BootLoop(ref why) => error!(why, "giving up: the application does not come up"),
        Outcome::CallerGone => error!("giving up: the process that holds the application has gone"),
    }
    match outcome {
        Outcome::Drained | Outcome::Stopped => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
