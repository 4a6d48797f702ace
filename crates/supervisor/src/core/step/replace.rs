//! Replacing one worker for a cause that lies in it. Another worker is forked first; when that serves, the front gives the
//! one that is replaced nothing more, and it ends when its requests have. A restart or a refork comes first: it takes the
//! worker's place anyway, or goes wrong and leaves it.

use super::super::app::{App, Condition};
use super::super::mutation::{is_mutated, Mutation};
use super::super::worker::Worker;
use super::super::{AppLog, FrontNews};
use crate::core::replacement::{at_a_time, Replacement, ReplacementCause};
use crate::core::worker::WorkerState;
use std::time::Instant;

impl App {
    /// This worker should be replaced. One that does not serve is on its way already.
    pub(super) fn replace_worker(&mut self, number: u32, cause: ReplacementCause) {
        let serves = |worker: &&mut Worker| worker.state == WorkerState::Serving;
        let worker = self.staff.workers.get_mut(number).filter(serves);
        if let Some(worker) = worker {
            worker.replacement.get_or_insert(Replacement::new(cause));
        }
    }

    /// Workers beyond the usual number, until they take the places of those that are replaced.
    pub(super) fn reliefs(&self) -> usize {
        if self.may_replace() {
            self.staff.workers.which(is_relieved).len()
        } else {
            0
        }
    }

    fn may_replace(&self) -> bool {
        self.is_running()
            && matches!(self.condition, Condition::Serving)
            && self.restarts.going.is_none()
            && self.reforks.going.is_none()
    }

    /// Begins what is due, and lets those go in whose place another serves.
    pub(super) fn advance_replacements(&mut self) {
        if !self.may_replace() {
            return;
        }
        while let Some((worker, cause)) = self.next_to_replace() {
            if self.now < self.replacements.pace.due(self.staff.wanted)
                && !is_mutated(Mutation::ReplaceUnpaced)
            {
                self.delay_replacement(worker, cause);
                break;
            }
            self.begin_replacement(worker, cause);
        }
        for worker in self.staff.workers.which(is_relieved) {
            let tally = self.tally();
            if tally.serving >= tally.wanted || is_mutated(Mutation::ReplaceEarly) {
                self.relieved(worker);
            } else {
                self.give_up_replacement_if_overdue(worker);
            }
        }
    }

    /// The next worker whose turn it is, if one may begin: one at a time, or several of a large pool for the same cause.
    fn next_to_replace(&self) -> Option<(u32, ReplacementCause)> {
        let line = self.current.line;
        let mut waiting = self.staff.workers.iter().filter_map(|(number, worker)| {
            let replacement = worker.replacement.filter(|replacement| replacement.relieved_by.is_none())?;
            let is_there = worker.state == WorkerState::Serving && worker.line == line;
            is_there.then_some((number, replacement.cause))
        });
        let under_way = self.staff.workers.iter().filter_map(|(_, worker)| worker.replacement);
        let under_way: Vec<Replacement> =
            under_way.filter(|replacement| replacement.relieved_by.is_some()).collect();
        match under_way.first() {
            None => waiting.next(),
            Some(first) if under_way.len() < at_a_time(self.staff.wanted) => {
                waiting.find(|(_, cause)| *cause == first.cause)
            }
            Some(_) => None,
        }
    }

    fn begin_replacement(&mut self, number: u32, cause: ReplacementCause) {
        let deadline = self.now + self.config.boot_timeout;
        let Some(replacement) = self.replacement_of(number) else { return };
        replacement.relieved_by = Some(deadline);
        self.replacements.pace.begin(self.now);
        self.log(AppLog::Replacing { worker: number, cause });
    }

    /// Too many were replaced lately. The log has one line for each worker that waits.
    fn delay_replacement(&mut self, number: u32, cause: ReplacementCause) {
        let wait = self.replacements.pace.due(self.staff.wanted).saturating_duration_since(self.now);
        let Some(replacement) = self.replacement_of(number) else { return };
        if !std::mem::replace(&mut replacement.is_delayed, true) {
            self.log(AppLog::ReplacementDelayed { worker: number, cause, wait });
        }
    }

    /// Another worker serves in its place.
    fn relieved(&mut self, number: u32) {
        let Some(cause) = self.replacement_of(number).map(|replacement| replacement.cause) else { return };
        if self.retire(number) {
            self.replacements.done.add(cause);
            self.log(AppLog::Replaced { worker: number, cause });
            self.notify(FrontNews::WorkerRetiring { worker: number });
        }
    }

    /// No other worker has come to serve. This one is better than none: it serves on until it is asked for again.
    fn give_up_replacement_if_overdue(&mut self, number: u32) {
        let now = self.now;
        let Some(worker) = self.staff.workers.get_mut(number) else { return };
        let is_overdue = |replacement: &Replacement| replacement.relieved_by.is_some_and(|by| by <= now);
        if let Some(Replacement { cause, .. }) = worker.replacement.take_if(|it| is_overdue(it)) {
            self.fails_with(format!("worker {number} was not replaced: no other worker came to serve"));
            self.log(AppLog::NotReplaced { worker: number, cause });
        }
    }

    fn replacement_of(&mut self, number: u32) -> Option<&mut Replacement> {
        self.staff.workers.get_mut(number)?.replacement.as_mut()
    }

    /// When there is something to do about replacements.
    pub(super) fn replacements_due(&self) -> Option<Instant> {
        if !self.may_replace() {
            return None;
        }
        let relieved = self.staff.workers.iter().filter(|(_, worker)| is_relieved(worker));
        let relieved = relieved.filter_map(|(_, worker)| worker.replacement?.relieved_by).min();
        let paced = self.next_to_replace().map(|_| self.replacements.pace.due(self.staff.wanted));
        relieved.into_iter().chain(paced).min()
    }
}

/// Whether it serves until another does in its place.
fn is_relieved(worker: &Worker) -> bool {
    worker.state == WorkerState::Serving
        && worker.replacement.is_some_and(|replacement| replacement.relieved_by.is_some())
}
