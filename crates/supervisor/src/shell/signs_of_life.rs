//! Whether workers that serve show signs of life, also while no request comes. Each is asked something rarely; and the kernel says
//! which are stopped. The front learns what was seen, and judges it together with what it knows of the worker's requests.
//!
//! This rides on the looks at memory, so that an idle machine does not wake more often.

use super::Supervisor;
use crate::core::memory::Watched;
use crate::core::worker::WorkerState;
use crate::core::Process;
use crate::process::worker_handle::WorkerHandle;
use crate::Notice;
use highball_link::{AppCommand, FrontCommand};
use std::time::{Duration, Instant};

/// Time between two questions to a worker that answers.
const ASK_EVERY: Duration = Duration::from_secs(15);
/// Time after which a worker that has not answered is reported.
const SILENT_AFTER: Duration = Duration::from_secs(5);

impl Supervisor {
    /// Asks the workers whose turn it is, and reports stopped and silent ones.
    pub(super) fn look_for_signs_of_life(&mut self, seen: &[Watched], now: Instant) {
        for watched in seen {
            let (Some(app), Some(core)) = (self.apps.get_mut(&watched.app), self.core.apps.get(&watched.app))
            else {
                continue; // it was removed meanwhile
            };
            for reading in &watched.readings {
                let Process::Worker(worker) = reading.process else { continue };
                let serves = core.staff.get(worker).map(|worker| worker.state) == Some(WorkerState::Serving);
                let Some(handle) = app.workers.get_mut(&worker).filter(|_| serves) else { continue };
                let answers = answers(handle, now);
                let (is_stopped, is_fine) = (reading.is_stopped, answers && !reading.is_stopped);
                if is_fine && !handle.life.is_reported {
                    continue;
                }
                let sign = AppCommand::SignOfLife { worker, answers, is_stopped };
                let command = FrontCommand::ToApp(watched.app, sign);
                // The next look comes soon, should there be no room.
                if self.notices.try_send(Notice::ToFront(command)).is_ok() {
                    handle.life.is_reported = !is_fine;
                }
            }
        }
    }
}

/// Whether a worker answers, as far as is known. Asks it again if it is time.
fn answers(handle: &mut WorkerHandle, now: Instant) -> bool {
    if handle.thread_questions.unanswered_for().is_some_and(|waits| waits >= SILENT_AFTER) {
        return false;
    }
    if handle.life.asked_at.is_none_or(|at| now >= at + ASK_EVERY) {
        handle.life.asked_at = Some(now);
        // Only that it answers matters. A worker that cannot be reached ends.
        let _ = handle.ask_threads_unless_silent(&[]);
    }
    true
}
