//! Files of certificates that change while the server runs. Where root has started the server for other users, a process of root's
//! looks at the files, because the server may not: it takes no orders, and passes on what it has read.

use crate::certificates::{self, PemSource};
use crate::configuration::Configuration;
use crate::root::reading;
use highball_config::{App, CertificateFiles, Invocation, Settings, User};
use highball_front::Tls;
use highball_spawner::channel::pair;
use highball_supervisor::{Client, Launcher};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::fs::metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::{error, warn};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time after which a process that watches files is started again, if it has ended.
const WATCH_AGAIN: Duration = Duration::from_secs(600);

/// What shows that a file has changed.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// The files of a certificate, and the application that it belongs to.
type Pair = (CertificateFiles, Option<App>);

fn pairs(settings: &Settings) -> Vec<Pair> {
    settings.certificates().map(|(files, app)| (files.clone(), app.cloned())).collect()
}

/// Files that are looked at together.
struct Watch {
    pairs: Vec<Pair>,
    served: Vec<Stamp>,
    before: Vec<Stamp>,
}

impl Watch {
    /// From now on.
    fn of(pairs: Vec<Pair>) -> Watch {
        let stamps = stamps(&pairs);
        Watch { pairs, served: stamps.clone(), before: stamps }
    }

    /// Whether files have changed, and no more of them changes: a certificate comes a moment before its key.
    fn has_changed(&mut self) -> bool {
        let found = stamps(&self.pairs);
        let has_changed = found != self.served && found == self.before;
        if has_changed {
            self.served.clone_from(&found);
        }
        self.before = found;
        has_changed
    }

    fn read(&self) -> Vec<PemSource> {
        self.pairs.iter().map(|(files, app)| certificates::read_source(files, app.as_ref())).collect()
    }
}

fn stamps(pairs: &[Pair]) -> Vec<Stamp> {
    let stamp = |path: &Path| {
        let found = certificates::as_who_could_change(&[path], || metadata(path)).ok()?.ok()?;
        Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
    };
    pairs.iter().flat_map(|(files, _)| [stamp(&files.certificate), stamp(&files.key)]).collect()
}

/// Has clients get what changed files have. Never returns.
pub(crate) async fn follow_files(configuration: &Configuration, tls: Option<&Arc<Tls>>, launcher: &Launcher) {
    match (tls, launcher) {
        (Some(tls), _) if tls.is_local() => std::future::pending().await,
        (Some(tls), Launcher::Direct) => follow_here(configuration, tls).await,
        (Some(tls), Launcher::Spawner(spawner)) => follow_watcher(configuration, tls, spawner).await,
        (None, _) => std::future::pending().await,
    }
}

/// By this process.
async fn follow_here(configuration: &Configuration, tls: &Arc<Tls>) {
    let mut watch: Option<Watch> = None;
    loop {
        let now = pairs(&configuration.now());
        let tls = Arc::clone(tls);
        let look = move || {
            // New ones may have changed since they were read.
            let (mut watch, is_new) = match watch.filter(|watch| watch.pairs == now) {
                Some(watch) => (watch, false),
                None => (Watch::of(now), true),
            };
            if watch.has_changed() || is_new {
                certificates::renew(&tls, watch.read(), false);
            }
            watch
        };
        match spawn_blocking(look).await {
            Ok(looked) => watch = Some(looked),
            Err(error) => {
                error!(name: "certificates_not_watched", %error, "cannot look at the certificates");
                watch = None;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// By a process of root's, and after each HUP by another, which knows the new configuration.
async fn follow_watcher(configuration: &Configuration, tls: &Arc<Tls>, spawner: &Arc<Client>) {
    loop {
        let (tls, spawner) = (Arc::clone(tls), Arc::clone(spawner));
        // The thread ends with the process that it listens to, which the spawner ends when it starts the next.
        let listening = spawn_blocking(move || listen_to_watcher(&tls, &spawner));
        tokio::select! {
            ended = listening => {
                let error = ended.map_err(io::Error::other).and_then(|ended| ended).err();
                let error = error.map(|error| error.to_string());
                warn!(
                    name: "certificates_not_watched",
                    error, "Highball does not notice changed certificates for some time; to read them: HUP, or highball upgrade"
                );
                let _ = timeout(WATCH_AGAIN, configuration.reloaded.notified()).await;
            }
            () = configuration.reloaded.notified() => {}
        }
    }
}

/// Serves what the process passes on, until it ends.
fn listen_to_watcher(tls: &Tls, spawner: &Client) -> io::Result<()> {
    let (ours, theirs) = pair()?;
    spawner.watch_certificates(theirs.as_fd())?;
    drop(theirs);
    while let Some(sources) = reading::passed::<Vec<PemSource>>(&ours)? {
        certificates::renew(tls, sources, false);
    }
    Ok(())
}

/// Watches the files of root's configuration for the server, as root, until the server closes the socket.
pub(crate) fn watch_for_server(socket: OwnedFd) -> ExitCode {
    let Ok(Invocation::Serve(settings)) = reading::read_here() else { return ExitCode::FAILURE };
    let socket = Arc::new(socket);
    for pairs in by_reader(&settings) {
        let socket = Arc::clone(&socket);
        let started = std::thread::Builder::new().spawn(move || follow_for_server(pairs, &socket));
        if started.is_err() {
            return ExitCode::FAILURE;
        }
    }
    while !is_closed(&socket, None) {}
    // Threads end with the process: one may wait for a file system for ever.
    ExitCode::SUCCESS
}

/// Whether the server has closed the socket, on which it sends nothing, or does within this time.
fn is_closed(socket: &OwnedFd, time: Option<&Timespec>) -> bool {
    let mut closed = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    poll(&mut closed, time).is_ok_and(|ready| ready > 0)
}

/// The files, those of each user apart: a user's file system that does not answer holds up that user's alone.
fn by_reader(settings: &Settings) -> Vec<Vec<Pair>> {
    let mut groups: Vec<(Option<User>, Vec<Pair>)> = Vec::new();
    for pair in pairs(settings) {
        let reader = certificates::reader_of_all(&[&pair.0.certificate, &pair.0.key]).unwrap_or_default();
        match groups.iter_mut().find(|(user, _)| *user == reader) {
            Some((_, group)) => group.push(pair),
            None => groups.push((reader, vec![pair])),
        }
    }
    groups.into_iter().map(|(_, pairs)| pairs).collect()
}

/// Passes on what files have: now, as they may have changed since the configuration was read, and after each change.
fn follow_for_server(pairs: Vec<Pair>, socket: &OwnedFd) {
    let pause = Timespec { tv_sec: LOOK_EVERY.as_secs() as i64, tv_nsec: 0 };
    let mut watch = Watch::of(pairs);
    let mut is_due = true;
    loop {
        if is_due {
            // A server that is busy gets it a moment later.
            is_due = reading::pass(socket, &watch.read()).is_err();
        }
        if is_closed(socket, Some(&pause)) {
            return;
        }
        is_due |= watch.has_changed();
    }
}
