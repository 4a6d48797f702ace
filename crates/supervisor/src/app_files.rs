//! What is done with an application's files: aside from the loop, one thing at a time for each application. A file system
//! that does not answer, or a folder with too much in it, holds up that application alone.

use crate::boot_plan::{NotStarted, Start};
use crate::diagnosis::Diagnosis;
use crate::event::Inbox;
use crate::folder_state::FolderState;
use crate::restart_file::Look;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Looking whether files ask for a restart.
    Restart,
    /// Looking whether the folder of an application that did not boot has changed.
    Folder,
    /// Finding out where and how to boot.
    Plan,
    /// Reading what helps to understand a failure.
    Diagnosis,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Found {
    Restart(Look),
    Folder {
        /// Since when the application has been broken: it says which failure the look belongs to.
        since: Instant,
        state: FolderState,
        took: Duration,
    },
    Plan {
        ticket: u32,
        /// Where the application's path leads to.
        folder: PathBuf,
        start: Result<Start, NotStarted>,
    },
    Diagnosis {
        ticket: u32,
        diagnosis: Box<Diagnosis>,
        /// The folder after the failure.
        files: Option<FolderState>,
    },
    /// It has panicked.
    Nothing(Work),
}

/// Does it.
#[derive(Debug)]
pub(crate) struct AppFiles {
    turn: Arc<Semaphore>,
    inbox: Inbox,
}

impl AppFiles {
    pub(crate) fn new(inbox: Inbox) -> AppFiles {
        AppFiles { turn: Arc::new(Semaphore::new(1)), inbox }
    }

    /// Does something when what was asked for before is done. The result comes as an event.
    pub(crate) fn begin(&self, work: Work, act: impl FnOnce() -> Found + Send + 'static) {
        let (turn, inbox) = (Arc::clone(&self.turn), self.inbox.clone());
        tokio::spawn(async move {
            let found = in_turn(turn, act).await.unwrap_or(Found::Nothing(work));
            inbox.found(found).await;
        });
    }

    /// For what waits for its turn elsewhere, by [`in_turn`].
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
