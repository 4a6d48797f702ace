//! Reports the requests that a stopping server still waits for.

use super::banner::{seconds, terminal};
use crate::configuration::Configuration;
use crate::log::{show, Ink};
use highball_link::{FrontCommand, RunningRequest};
use highball_text::visible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tracing::info;

/// Shortest stop that gets a line. Ctrl-C in development takes less time.
const FIRST_LINE: Duration = Duration::from_millis(700);
/// Time between two lines.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// Time for the front to answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Requests without a complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unfinished {
    requests: usize,
    /// Method and path of the oldest.
    oldest: String,
    age: Duration,
}

/// Watches the requests of a stopping server.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    front: mpsc::WeakSender<FrontCommand>,
    configuration: Configuration,
    /// The requests when the server began to stop, and the time of that.
    first: Arc<Mutex<Option<(Unfinished, Instant)>>>,
}

impl Waiting {
    pub(super) fn new(front: mpsc::WeakSender<FrontCommand>, configuration: Configuration) -> Waiting {
        Waiting { front, configuration, first: Arc::default() }
    }

    /// Logs what the server waits for, until it has ended.
    pub(super) async fn report(self) {
        let began = Instant::now();
        let Some(first) = self.look().await else { return };
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = Some((first, began));
        sleep(FIRST_LINE).await;
        while let Some(unfinished) = self.look().await {
            let settings = self.configuration.now();
            let left = settings.drain_timeout.saturating_sub(began.elapsed());
            if let Some(terminal) = terminal(&settings) {
                let name = terminal.paint(Ink::Dim, "highball:");
                let waits = unfinished.in_words(unfinished.age);
                let left = seconds(left);
                show(&format!("{name} waiting up to {left} for {waits}\n"));
                show(&format!("{name} press Ctrl-C again to stop now\n"));
            } else {
                let Unfinished { requests, oldest, age } = unfinished;
                let (age_ms, time_left_ms) = (age.as_millis() as u64, left.as_millis() as u64);
                info!(
                    name: "waiting_for_requests", requests, oldest, age_ms, time_left_ms, "waiting for requests to finish"
                );
            }
            sleep(BETWEEN_LINES).await;
        }
    }

    /// Returns the requests that a server cuts off if it waits for none.
    pub(super) fn cut_off(&self) -> Option<String> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().map(|(unfinished, at)| unfinished.in_words(unfinished.age + at.elapsed()))
    }

    async fn look(&self) -> Option<Unfinished> {
        let (to, requests) = oneshot::channel();
        self.front.upgrade()?.send(FrontCommand::ListRequests { most: 1, to }).await.ok()?;
        let apps = timeout(ANSWER_TIME, requests).await.ok()?.ok()?;
        let requests = apps.iter().map(|app| app.oldest.len() + app.more).sum();
        let oldest = apps.iter().filter_map(|app| app.oldest.first()).max_by_key(|request| request.age)?;
        let RunningRequest { method, path, age, .. } = oldest;
        Some(Unfinished { requests, oldest: visible(&format!("{method} {path}")).into_owned(), age: *age })
    }
}

impl Unfinished {
    /// `2 requests, the oldest GET /report (12 s)`
    fn in_words(&self, age: Duration) -> String {
        let Unfinished { requests, oldest, .. } = self;
        let age = seconds(age);
        match requests {
            1 => format!("{oldest} (started {age} ago)"),
            _ => format!("{requests} requests; the oldest is {oldest} (started {age} ago)"),
        }
    }
}
