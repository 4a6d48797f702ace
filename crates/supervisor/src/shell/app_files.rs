//! Tasks on an application's files: aside from the loop, one at a time for each application. A file system
//! that does not answer, or a folder with too much in it, holds up that application alone.

use crate::inbox::Inbox;
use crate::shell::event::{Discovery, Found};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Runs these tasks.
#[derive(Debug)]
pub(crate) struct AppFiles {
    turn: Arc<Semaphore>,
    inbox: Inbox<Discovery>,
}

impl AppFiles {
    pub(crate) fn new(inbox: Inbox<Discovery>) -> AppFiles {
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
            inbox.put(Discovery::Found(found.unwrap_or_else(otherwise))).await;
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
        .inspect_err(|error| {
            tracing::error!(
                name: "files_unreadable", %error, "reading the files of an application failed"
            )
        })
        .ok()
}
