//! Development: a request got an error in the place of its answer, and somebody wants to know why.

use super::Supervisor;
use crate::app_files::in_turn;
use crate::diagnosis::Diagnosis;
use crate::request_failure::RequestFailure;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a worker may take to say where its threads are: it cannot while one of them does not let the others run.
const THREADS_TIME: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Puts together what is known, beside the loop: it may have to wait for a worker, and reads files.
    pub(super) fn diagnose(&mut self, failure: RequestFailure, mut to: oneshot::Sender<Diagnosis>) {
        let death = failure.dead_worker().and_then(|worker| self.deaths.of(worker));
        let stuck = failure.stuck_worker().and_then(|worker| self.workers.get_mut(worker));
        let asked = stuck.and_then(|handle| handle.ask_threads().ok());
        let turn = self.files.turn();
        let (app, folder) = (Arc::clone(&self.app), self.current.folder.clone());
        tokio::spawn(async move {
            let threads = match asked {
                Some(answer) => timeout(THREADS_TIME, answer).await.ok().and_then(Result::ok),
                None => None,
            };
            let threads = threads.unwrap_or_default();
            let made = in_turn(turn, move || {
                Diagnosis::of_request(&failure, death.as_ref(), threads, &app, &folder)
            });
            tokio::select! {
                Some(diagnosis) = made => drop(to.send(diagnosis)),
                () = to.closed() => {} // the one who asked has lost patience
                else => {}
            }
        });
    }
}
