//! Replacing one worker for a cause that lies in it. Another worker is forked first; when that serves, the front gives the
//! one that is replaced nothing more, and it ends when its requests have. A restart or a refork comes first: it takes the
//! worker's place anyway, or goes wrong and leaves it.
//!
//! If there is no memory for both, the one that is replaced is retired first; requests wait in the queue meanwhile.

use super::super::app::{App, Condition};
use super::super::mutation::{is_mutated, Mutation};
use super::super::worker::Worker;
use super::super::{AppLog, FrontNews};
use crate::core::memory::OverMemory;
use crate::core::replacement::{at_a_time, Replacement, ReplacementCause, RETIRE_FIRST_TIME};
use crate::core::restart_policy::Life;
use crate::core::worker::WorkerState;
use std::time::{Duration, Instant};

impl App {
    /// This worker should be replaced. One that does not serve is on its way already.
    pub(super) fn replace_worker(&mut self, number: u32, cause: ReplacementCause) {
        if cause == ReplacementCause::Unresponsive && is_mutated(Mutation::KeepUnresponsive) {
            return;
        }
        let serves = |worker: &&mut Worker| worker.state == WorkerState::Serving;
        let worker = self.staff.workers.get_mut(number).filter(serves);
        if let Some(worker) = worker {
            worker.replacement.get_or_insert(Replacement::new(cause));
        }
    }

    /// This worker should be replaced for its memory. Of several, one waits.
    pub(super) fn over_memory(&mut self, number: u32, over: OverMemory) {
        let waits = |replacement: &Replacement| {
            replacement.cause == ReplacementCause::OverMemory && replacement.relieved_by.is_none()
        };
        let waiting = self.staff.workers.which(|worker| worker.replacement.as_ref().is_some_and(waits));
        if let Some(replacement) = waiting.first().and_then(|waiting| self.replacement_of(*waiting)) {
            replacement.memory = Some(over); // whether there is room may have changed
            return;
        }
        let serves = |worker: &&mut Worker| worker.state == WorkerState::Serving;
        if let Some(worker) = self.staff.workers.get_mut(number).filter(serves) {
            worker.replacement.get_or_insert(Replacement::for_memory(over));
        }
    }

    /// New workers would have too much memory as well.
    pub(super) fn memory_limit_too_small(&mut self, over: OverMemory) {
        if self.gives_memory_back(over) {
            return;
        }
        if self.replacements.memory.too_small.replace(over).is_none() {
            self.out.log(AppLog::MemoryLimitTooSmall { over });
        }
    }

    /// For how long a worker is being replaced for its memory, if one is: it has not ended yet.
    pub(crate) fn replacing_for_memory(&self, now: Instant) -> Option<Duration> {
        let begun = self.staff.workers.iter().filter_map(|(_, worker)| {
            let replacement = worker.replacement?;
            let limit =
                if replacement.retires_first() { RETIRE_FIRST_TIME } else { self.config.boot_timeout };
            replacement.memory?;
            Some((now + limit).saturating_duration_since(replacement.relieved_by?))
        });
        begun.max()
    }

    /// Places of workers that have to end before others are started, as there is no memory for both.
    pub(super) fn places_held(&self) -> usize {
        if self.may_replace() {
            self.staff.workers.iter().filter(|(_, worker)| is_held(worker, self.now)).count()
        } else {
            0
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
            && !self.restarts.is_going()
            && !self.reforks.is_going()
    }

    /// Begins what is due, and lets those go in whose place another serves.
    pub(super) fn advance_replacements(&mut self) {
        if !self.may_replace() {
            return;
        }
        while let Some((worker, cause)) = self.next_to_replace() {
            if self.now < self.replacements.due(cause, self.staff.wanted)
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
        let line = self.current.line();
        // One is only retired first where all others serve.
        let is_complete = self.tally().serving >= usize::from(self.staff.wanted);
        let mut waiting = self.staff.workers.iter().filter_map(|(number, worker)| {
            let replacement = worker.replacement.filter(|replacement| replacement.relieved_by.is_none())?;
            let is_there = worker.state == WorkerState::Serving && worker.line == line;
            let may_begin = is_complete || !replacement.retires_first();
            (is_there && may_begin).then_some((number, replacement.cause))
        });
        let under_way = self.staff.workers.iter().filter_map(|(_, worker)| worker.replacement);
        let under_way: Vec<Replacement> =
            under_way.filter(|replacement| replacement.relieved_by.is_some()).collect();
        match under_way.first() {
            None => waiting.next(),
            Some(first)
                if under_way.len() < at_a_time(self.staff.wanted, first.cause)
                    || is_mutated(Mutation::ReplaceTogether) =>
            {
                waiting.find(|(_, cause)| *cause == first.cause)
            }
            Some(_) => None,
        }
    }

    fn begin_replacement(&mut self, number: u32, cause: ReplacementCause) {
        let (now, pool) = (self.now, self.staff.wanted);
        let deadline = now + self.config.boot_timeout;
        let Some(worker) = self.staff.workers.get_mut(number) else { return };
        let Life::Ready(served) = worker.life(now) else { return };
        let Some(replacement) = worker.replacement.as_mut() else { return };
        let (memory, retires_first) = (replacement.memory, replacement.retires_first());
        replacement.relieved_by = Some(if retires_first { now + RETIRE_FIRST_TIME } else { deadline });
        match cause {
            ReplacementCause::TimedOut | ReplacementCause::Unresponsive | ReplacementCause::Asked => {
                self.replacements.pace.begin(now);
            }
            ReplacementCause::OverMemory => self.replacements.memory.begin(served, pool, now),
        }
        self.out.log(AppLog::Replacing { worker: number, cause, memory });
        if retires_first {
            self.relieved(number);
        }
    }

    /// Too many were replaced lately. The log has one line for each worker that waits.
    fn delay_replacement(&mut self, number: u32, cause: ReplacementCause) {
        let wait = self.replacements.due(cause, self.staff.wanted).saturating_duration_since(self.now);
        let Some(replacement) = self.replacement_of(number) else { return };
        if std::mem::replace(&mut replacement.is_delayed, true) {
            return;
        }
        match replacement.memory {
            Some(over) => self.memory_limit_too_small(over),
            None => self.out.log(AppLog::ReplacementDelayed { worker: number, cause, wait }),
        }
    }

    /// Another worker serves in its place, or there is no room for both.
    fn relieved(&mut self, number: u32) {
        let Some(replacement) = self.replacement_of(number) else { return };
        let (cause, retires_first) = (replacement.cause, replacement.retires_first());
        if self.retire(number) {
            self.replacements.done.add(cause);
            self.out.log(AppLog::Replaced { worker: number, cause, retires_first });
            self.out.notify(FrontNews::WorkerRetiring { worker: number });
        }
    }

    /// No other worker has come to serve. This one is better than none: it serves on until it is asked for again.
    fn give_up_replacement_if_overdue(&mut self, number: u32) {
        let now = self.now;
        let Some(worker) = self.staff.workers.get_mut(number) else { return };
        let is_overdue = |replacement: &Replacement| replacement.relieved_by.is_some_and(|by| by <= now);
        if let Some(Replacement { cause, .. }) = worker.replacement.take_if(|it| is_overdue(it)) {
            self.trouble.note(format!("worker {number} was not replaced: no other worker came to serve"));
            self.out.log(AppLog::NotReplaced { worker: number, cause });
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
        let now = self.now;
        let relieved =
            self.staff.workers.iter().filter(|(_, worker)| is_relieved(worker) || is_held(worker, now));
        let relieved = relieved.filter_map(|(_, worker)| worker.replacement?.relieved_by).min();
        let paced = self.next_to_replace().map(|(_, cause)| self.replacements.due(cause, self.staff.wanted));
        relieved.into_iter().chain(paced).min()
    }
}

/// Whether it serves until another does in its place.
fn is_relieved(worker: &Worker) -> bool {
    worker.state == WorkerState::Serving
        && worker.replacement.is_some_and(|replacement| replacement.relieved_by.is_some())
}

/// Whether its place stays free until it has ended, or the time for that is over.
fn is_held(worker: &Worker, now: Instant) -> bool {
    let is_leaving =
        matches!(worker.state, WorkerState::Retiring | WorkerState::Draining | WorkerState::Halted);
    is_leaving
        && worker
            .replacement
            .is_some_and(|it| it.retires_first() && it.relieved_by.is_some_and(|until| until > now))
}
