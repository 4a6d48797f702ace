//! The end of all applications: in good order, or at once.

use super::Hall;
use crate::checkpoint;
use crate::signals::Received;
use crate::supervisor::SAME_SIGNAL;
use crate::{AppNotice, Notice, Outcome};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// How long a process that was to take this one's place may take to be gone at the very end.
const LEAVING_TIME: Duration = Duration::from_secs(3);

impl Hall {
    /// TERM or the like. A second one does not wait any longer.
    pub(super) async fn told_to_end(&mut self, signal: Received, now: Instant) {
        if !self.stopping {
            let curt = signal == Received::Interrupt && self.settings.is_development();
            self.drain(curt, now).await;
        } else if self.signalled_at.is_some_and(|first| now >= first + SAME_SIGNAL) {
            warn!("a second signal: halting");
            for app in self.apps.values_mut() {
                app.end(Outcome::Halted, now);
            }
        }
        self.signalled_at.get_or_insert(now);
    }

    /// Begins to end in good order; `curt`: without waiting for requests.
    pub(super) async fn drain(&mut self, curt: bool, now: Instant) {
        if self.stopping {
            return;
        }
        info!("stopping");
        self.stopping = true;
        self.abandon_upgrades(now);
        if !self.apps.values().any(|app| app.has_booted()) {
            for app in self.apps.values_mut() {
                app.end(Outcome::Stopped, now); // there is nothing yet to answer requests with
            }
            return;
        }
        self.notify(Notice::Drain).await;
        for (id, app) in &mut self.apps {
            app.drain(curt, now);
            if !app.can_answer() {
                // If nobody listens, the run is ending.
                let _ = self.notices.send(Notice::OfApp(*id, AppNotice::Abandoned)).await;
            }
        }
        if !curt {
            checkpoint::pass("drain.begun").await;
        }
    }

    /// An application may want the end of everything, or be its end.
    pub(super) async fn end_with_its_apps(&mut self, now: Instant) {
        if self.apps.values().any(|app| app.wants_the_end()) {
            self.drain(false, now).await;
        }
        let is_lost = |app: &crate::supervisor::Supervisor| app.is_ending() && !app.is_removed();
        if !self.stopping && self.upgrades.succession.is_none() && self.apps.values().any(is_lost) {
            self.stopping = true;
            self.abandon_upgrades(now);
            for app in self.apps.values_mut().filter(|app| !app.is_ending()) {
                app.end(Outcome::Halted, now);
            }
        }
    }

    /// Whether nothing is left to wait for.
    pub(super) fn has_ended(&mut self, now: Instant) -> bool {
        let is_over = self.stopping || self.upgrades.succession.is_some();
        if !is_over || !self.apps.values().all(|app| app.has_ended(now)) {
            return false;
        }
        self.kill_leaving_successor();
        let left_at = *self.left_at.get_or_insert(now + LEAVING_TIME);
        !self.upgrades.is_leaving() || now >= left_at
    }
}
