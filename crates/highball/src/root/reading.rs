//! Reading the configuration where this process is not root: a process of root's does, and passes on what it has read.

use crate::apps::puma;
use crate::apps::source::is_given_as_object;
use crate::certificates::{self, Sources};
use crate::development::developer_key;
use crate::output::complain;
use crate::process::environment::variable;
use crate::root::openers;
use highball_config::{AskRuby, Callbacks, ConfigError, Invocation, Settings};
use highball_front::developer_key::SECRET_BYTES;
use highball_spawner::channel::{pair, receive, send, Received};
use highball_spawner::take_silent;
use highball_supervisor::Launcher;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{memfd_create, MemfdFlags};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// Time for reading what one application says.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Message of the server to the process that reads for it: leave out the application at this path.
const LEFT_OUT: u8 = 1;
/// Message after all of these: begin.
const BEGIN: u8 = 0;
/// The most applications that are left out.
const MOST_LEFT_OUT: usize = 10_000;

/// Root's secret for developers' browsers, as a process of root's has read it.
static ROOTS_SECRET: OnceLock<[u8; SECRET_BYTES]> = OnceLock::new();

/// The files of certificates, as a process of root's has read them last.
static ROOTS_CERTIFICATES: Mutex<Option<Result<Sources, String>>> = Mutex::new(None);

/// Processes of root's that wait for the file system of an application: its path, and the socket to the process.
static WAITING: Mutex<Vec<(OsString, OwnedFd)>> = Mutex::new(Vec::new());

/// What a process of root's has read.
#[derive(Debug, Serialize, Deserialize)]
enum Read {
    /// These settings, of a server; root's secret for developers' browsers, if one is needed and can be kept; the files of
    /// certificates, or what is wrong with them.
    Settings(Box<Settings>, Option<[u8; SECRET_BYTES]>, Result<Sources, String>),
    /// Something else.
    NoServer,
    /// What is wrong with it, and the exit code.
    Wrong(String, u8),
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnreadConfiguration {
    /// Something is wrong with them.
    #[error(transparent)]
    Wrong(#[from] ConfigError),
    /// The same, reported by another process.
    #[error("{0}")]
    Reported(String, u8),
    /// They cannot be read by another process.
    #[error("the configuration cannot be read: {0}")]
    System(#[from] io::Error),
}

impl UnreadConfiguration {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            UnreadConfiguration::Wrong(error) => error.exit_code(),
            UnreadConfiguration::Reported(_, code) => *code,
            UnreadConfiguration::System(_) => 1,
        }
    }
}

/// Reads command line, environment and files; where this process is not root, a process of root's does.
pub(crate) fn read_configuration(launcher: &Launcher) -> Result<Invocation, UnreadConfiguration> {
    let Launcher::Spawner(spawner) = launcher else { return Ok(read_here()?) };
    match read_apart(|socket| spawner.read_configuration(socket))? {
        Read::Settings(settings, secret, pems) => {
            *ROOTS_CERTIFICATES.lock().unwrap_or_else(PoisonError::into_inner) = Some(pems);
            secret.map(|secret| ROOTS_SECRET.get_or_init(|| secret));
            let settings = settings.renumbered();
            for app in &settings.apps {
                let uid = app.runs_as.another().map_or(0, |user| user.uid);
                openers::know(&app.path(), uid);
            }
            Ok(Invocation::Serve(Box::new(settings)))
        }
        Read::NoServer => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        Read::Wrong(text, code) => Err(UnreadConfiguration::Reported(text, code)),
    }
}

pub(crate) fn read_here() -> Result<Invocation, ConfigError> {
    read_with(&|_| true)
}

/// The same; `may_look` learns which application is looked at, and may have it left out: see [`Callbacks::may_look`].
fn read_with(may_look: &dyn Fn(&Path) -> bool) -> Result<Invocation, ConfigError> {
    // An application that was given as an object is loaded already, with what configures it.
    let ask: Option<AskRuby<'_>> = if is_given_as_object() { None } else { Some(&puma::ask) };
    let callbacks = Callbacks { ask_ruby: ask, may_look };
    let asked = highball_config::parse_with(std::env::args_os(), &variable, callbacks);
    // A variable that is no text may be the reason for another error.
    if let Err(_) | Ok(Invocation::Serve(_) | Invocation::Doctor { .. } | Invocation::Config(_)) = asked {
        let variables: Vec<_> = std::env::vars_os().collect();
        highball_config::check_variables(variables.iter().map(|(name, value)| (&**name, &**value)))?;
    }
    asked
}

/// Has a process of root's read the configuration. Where the file system of an application does not answer, another process
/// reads it without that application, and so do later ones until the first has ended.
fn read_apart(start: impl Fn(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<Read> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.retain(|(_, socket)| !has_hung_up(socket));
    loop {
        let (ours, theirs) = pair()?;
        start(theirs.as_fd())?;
        drop(theirs);
        for (path, _) in waiting.iter() {
            send(&ours, &[&[LEFT_OUT], path.as_bytes()].concat(), None)?;
        }
        send(&ours, &[BEGIN], None)?;
        set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER_TIME))?;
        let mut looks_at = None;
        let error = loop {
            match receive(&ours, true) {
                Ok(Received::Packet(_, Some(read))) => return parsed(read),
                Ok(Received::Packet(path, None)) => looks_at = Some(OsString::from_vec(path)),
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => break error,
            }
        };
        match looks_at {
            Some(path) if !waiting.iter().any(|(other, _)| *other == path) => waiting.push((path, ours)),
            Some(path) => {
                let path = Path::new(&path).display();
                return Err(io::Error::other(format!("the file system of {path} does not answer")));
            }
            None => return Err(error),
        }
    }
}

/// Whether the other end is closed. What it has sent may not have been read.
fn has_hung_up(socket: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(socket, PollFlags::empty())];
    poll(&mut watched, Some(&Timespec::default())).is_ok() && watched[0].revents().contains(PollFlags::HUP)
}

/// The applications that the server wants to have left out. It may have been taken over: no descriptor of it is read.
fn left_out(socket: &OwnedFd) -> io::Result<Vec<OsString>> {
    set_socket_timeout(socket, Timeout::Recv, Some(ANSWER_TIME))?;
    let mut paths = Vec::new();
    while paths.len() < MOST_LEFT_OUT {
        match receive(socket, true)? {
            Received::Packet(bytes, None) if bytes == [BEGIN] => return Ok(paths),
            Received::Packet(bytes, None) if bytes[0] == LEFT_OUT => {
                paths.push(OsString::from_vec(bytes[1..].to_vec()))
            }
            _ => break,
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Reads the configuration for the server, as root, and ends.
pub(crate) fn read_for_server(socket: OwnedFd) -> ExitCode {
    let Ok(mut silent) = left_out(&socket) else { return ExitCode::FAILURE };
    silent.extend(take_silent().into_iter().map(PathBuf::into_os_string));
    let may_look = |path: &Path| {
        let _ = send(&socket, path.as_os_str().as_bytes(), None); // the server may have gone
        !silent.iter().any(|silent| silent == path)
    };
    let read = match read_with(&may_look) {
        Ok(Invocation::Serve(settings)) => {
            let secret = has_developers(&settings).then(developer_key::secret).and_then(Result::ok);
            let pems = if certificates::are_needed(&settings) {
                certificates::read(&settings, &may_look)
            } else {
                Ok(Sources::none())
            };
            Read::Settings(settings, secret, pems.map_err(|error| error.to_string()))
        }
        Ok(_) => Read::NoServer,
        Err(error) => Read::Wrong(error.to_string(), error.exit_code()),
    };
    pass_at_last(&socket, &read, "the configuration")
}

/// Passes what this process has read, and ends.
pub(crate) fn pass_at_last(socket: &OwnedFd, read: &impl Serialize, what: &str) -> ExitCode {
    match pass(socket, read) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {} // it took too long, and is not waited for
        Err(error) => complain(format_args!("{what} cannot be passed on: {error}")),
    }
    ExitCode::FAILURE
}

/// Passes what was read to the server: it may be longer than a packet.
pub(crate) fn pass(socket: &OwnedFd, read: &impl Serialize) -> io::Result<()> {
    let mut file = File::from(memfd_create(c"highball-configuration", MemfdFlags::CLOEXEC)?);
    file.write_all(&Zeroizing::new(serde_json::to_vec(read)?))?;
    send(socket, &[0], Some(file.as_fd()))
}

/// What a process of root's has passed; `None`: it has ended.
pub(crate) fn passed<T: DeserializeOwned>(socket: &OwnedFd) -> io::Result<Option<T>> {
    let Received::Packet(_, Some(read)) = receive(socket, true)? else { return Ok(None) };
    parsed(read).map(Some)
}

fn parsed<T: DeserializeOwned>(read: OwnedFd) -> io::Result<T> {
    let mut read = File::from(read);
    read.rewind()?;
    Ok(serde_json::from_reader(BufReader::new(read))?)
}

/// The files of the certificates, as they were read with the configuration; once.
pub(super) fn take_certificates() -> Option<Result<Sources, String>> {
    ROOTS_CERTIFICATES.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Root's secret for developers' browsers, if it was read.
pub(super) fn roots_secret() -> Option<[u8; SECRET_BYTES]> {
    ROOTS_SECRET.get().copied()
}

/// Whether there may be developers who are shown more than others.
pub(super) fn has_developers(settings: &Settings) -> bool {
    settings.apps.iter().any(|app| app.is_development())
}
