//! Tasks on an application's files: aside from the loop, one at a time for each application. A file system
//! that does not answer, or a folder with too much in it, holds up that application alone.

use crate::control::control_socket::ControlSocket;
use crate::core::AppEvent;
use crate::process::boot_plan::{NotStarted, Start};
use crate::process::launcher::Launched;
use crate::shell::event::Inbox;
use crate::watch::restart_file::Look;
use highball_config::App;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The outcome of such a task.
#[derive(Debug)]
pub(crate) enum Found {
    /// What a look for restart files has seen; `None`: it has panicked.
    Restart(Option<Look>),
    /// Where and how to boot.
    Plan(Box<Plan>),
    /// A mold was started, or could not be.
    Launch(Box<Launch>),
    /// What the core has asked for.
    Event(Box<AppEvent>),
}

/// Where and how to boot.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) what: Planned,
    /// The configuration that it was made for.
    pub(crate) app: Arc<App>,
    /// The folder that was asked for; `None`: where the application's path leads.
    pub(crate) asked: Option<PathBuf>,
    /// The folder, without links.
    pub(crate) folder: PathBuf,
    pub(crate) start: Result<Start, NotStarted>,
}

/// A mold that was started, or could not be.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) boot: u32,
    /// The configuration that it was started with.
    pub(crate) app: Arc<App>,
    /// Its folder, without links.
    pub(crate) folder: PathBuf,
    pub(crate) control: ControlSocket,
    pub(crate) launched: io::Result<Launched>,
}

/// What is to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planned {
    /// The mold of this boot.
    Mold(u32),
    /// The static site of this generation.
    Site(u32),
}

/// Runs these tasks.
#[derive(Debug)]
pub(crate) struct AppFiles {
    turn: Arc<Semaphore>,
    inbox: Inbox,
}

impl AppFiles {
    pub(crate) fn new(inbox: Inbox) -> AppFiles {
        AppFiles { turn: Arc::new(Semaphore::new(1)), inbox }
    }

    /// Does something when what was asked for before is done. The result comes as an event; if it takes longer than
    /// `limit`, or panics, what is known `otherwise`.
    pub(crate) fn begin(
        &self,
        limit: Option<Duration>,
        act: impl FnOnce() -> Found + Send + 'static,
        otherwise: impl FnOnce() -> Found + Send + 'static,
    ) {
        let (turn, inbox) = (Arc::clone(&self.turn), self.inbox.clone());
        tokio::spawn(async move {
            let acted = in_turn(turn, act);
            let found = match limit {
                Some(limit) => timeout(limit, acted).await.ok().flatten(),
                None => acted.await,
            };
            inbox.found(found.unwrap_or_else(otherwise)).await;
        });
    }

    /// The turn of this application, for [`in_turn`].
    pub(crate) fn turn(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turn)
    }
}

/// Does something on a thread where it may block, when it is its turn. `None`: it has panicked.
pub(crate) async fn in_turn<T: Send + 'static>(
    turn: Arc<Semaphore>,
    act: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let permit = turn.acquire_owned().await.ok()?; // it is never closed
    let acted = spawn_blocking(move || {
        let _permit = permit; // kept for as long as it takes, even where it is not waited for any more
        act()
    });
    acted
        .await
        .inspect_err(|error| tracing::error!(%error, "reading the files of an application failed"))
        .ok()
}
