//! Which workers are replaced, for a cause that lies in them, and when it is their turn.

use super::Staff;
use crate::core::memory::OverMemory;
use crate::core::replacement::{at_a_time, Replacement, ReplacementCause, Replacements, RETIRE_FIRST_TIME};
use crate::core::restart_policy::Life;
use crate::core::worker::{Worker, WorkerState};
use std::time::{Duration, Instant};

/// It is the turn of a worker that is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextReplacement {
    /// Its replacement has begun. `retires_first`: there is no room for another worker before it has ended.
    Begun { worker: u32, cause: ReplacementCause, memory: Option<OverMemory>, retires_first: bool },
    /// Too many were replaced lately: it waits for so long.
    Delayed { worker: u32, cause: ReplacementCause, memory: Option<OverMemory>, wait: Duration },
}

impl Staff {
    /// What there is to report of replacements.
    pub(crate) fn replacements(&self) -> &Replacements {
        &self.replacements
    }

    /// This worker should be replaced, unless it has stopped serving anyway.
    pub(crate) fn replace(&mut self, number: u32, cause: ReplacementCause) {
        self.wants_replaced(number, Replacement::new(cause));
    }

    /// This worker should be replaced for its memory. Of several, one waits.
    pub(crate) fn replace_for_memory(&mut self, number: u32, over: OverMemory) {
        let waits = |it: Replacement| it.cause == ReplacementCause::OverMemory && it.relieved_by.is_none();
        let waiting = self.workers.which(|worker| worker.replacement.is_some_and(waits));
        let waiting = waiting.first().and_then(|number| self.workers.get_mut(*number));
        match waiting.and_then(|worker| worker.replacement.as_mut()) {
            Some(replacement) => replacement.memory = Some(over), // whether there is room may have changed
            None => self.wants_replaced(number, Replacement::for_memory(over)),
        }
    }

    fn wants_replaced(&mut self, number: u32, replacement: Replacement) {
        let serves = |worker: &&mut Worker| worker.state == WorkerState::Serving;
        if let Some(worker) = self.workers.get_mut(number).filter(serves) {
            worker.keep(); // a fault comes first
            worker.replacement.get_or_insert(replacement);
        }
    }

    /// This worker of this line was forked before the heap was laid out: it should be replaced once it serves.
    pub(crate) fn forked_early(&mut self, number: u32, line: u32) {
        let may_be = |worker: &&mut Worker| worker.line == line && worker.counts();
        if let Some(worker) = self.workers.get_mut(number).filter(may_be) {
            worker.replacement.get_or_insert(Replacement::new(ReplacementCause::ForkedEarly));
        }
    }

    /// This worker is not replaced merely because it was forked early.
    pub(crate) fn keep(&mut self, number: u32) {
        if let Some(worker) = self.workers.get_mut(number) {
            worker.keep();
        }
    }

    /// The front has kept this worker, which was forked early, as something would end with it.
    pub(crate) fn serves_on(&mut self, number: u32) {
        if let Some(worker) = self.workers.get_mut(number) {
            worker.serves_on();
        }
    }

    /// A limit of memory is exceeded, and new workers would not change that. False: that is known.
    pub(crate) fn limit_is_too_small(&mut self, over: OverMemory) -> bool {
        self.replacements.limit_is_too_small(over)
    }

    /// The limit of memory may be another one.
    pub(crate) fn forget_limit(&mut self) {
        self.replacements.forget_limit();
    }

    /// Lets the next one begin whose turn it is: one at a time, or several of a large pool for the same cause. `line`: of the
    /// serving workers; `is_complete`: all workers serve; `limit`: for a new worker to serve in its place.
    pub(crate) fn next_replacement(
        &mut self,
        line: u32,
        is_complete: bool,
        limit: Duration,
        now: Instant,
    ) -> Option<NextReplacement> {
        let (worker, cause) = self.next_to_replace(line, is_complete)?;
        match self.replacements.due(cause, self.wanted).filter(|due| now < *due) {
            Some(due) => self.delay(worker, due - now),
            None => self.begin(worker, limit, now),
        }
    }

    fn next_to_replace(&self, line: u32, is_complete: bool) -> Option<(u32, ReplacementCause)> {
        let mut waiting = self.workers.iter().filter_map(|(number, worker)| {
            let replacement = worker.replacement.filter(|replacement| replacement.relieved_by.is_none())?;
            let is_there = worker.state == WorkerState::Serving && worker.line == line;
            // One is only retired first where all others serve.
            let may_begin = is_complete || !replacement.retires_first();
            (is_there && may_begin).then_some((number, replacement.cause))
        });
        let under_way = self.workers.iter().filter_map(|(_, worker)| worker.replacement);
        let under_way: Vec<Replacement> =
            under_way.filter(|replacement| replacement.relieved_by.is_some()).collect();
        match under_way.first() {
            None => waiting.next(),
            Some(first) if under_way.len() < at_a_time(self.wanted, first.cause) => {
                waiting.find(|(_, cause)| *cause == first.cause)
            }
            Some(_) => None,
        }
    }

    fn begin(&mut self, number: u32, limit: Duration, now: Instant) -> Option<NextReplacement> {
        let worker = self.workers.get_mut(number)?;
        let Life::Ready(served) = worker.life(now) else { return None };
        let replacement = worker.replacement.as_mut()?;
        let Replacement { cause, memory, .. } = *replacement;
        let retires_first = replacement.retires_first();
        replacement.relieved_by = Some(now + if retires_first { RETIRE_FIRST_TIME } else { limit });
        self.replacements.begin(cause, served, self.wanted, now);
        Some(NextReplacement::Begun { worker: number, cause, memory, retires_first })
    }

    /// The log has one line for each worker that waits.
    fn delay(&mut self, number: u32, wait: Duration) -> Option<NextReplacement> {
        let replacement = self.workers.get_mut(number)?.replacement.as_mut()?;
        let Replacement { cause, memory, .. } = *replacement;
        let is_first = !std::mem::replace(&mut replacement.is_delayed, true);
        is_first.then_some(NextReplacement::Delayed { worker: number, cause, memory, wait })
    }

    /// Workers that serve until others do in their places.
    pub(crate) fn relieved(&self) -> Vec<u32> {
        self.workers.which(is_relieved)
    }

    /// It was retired, in a replacement: the cause, and whether it was retired first.
    pub(crate) fn replaced(&mut self, number: u32) -> Option<(ReplacementCause, bool)> {
        let replacement = self.workers.get(number)?.replacement?;
        self.replacements.done(replacement.cause);
        Some((replacement.cause, replacement.retires_first()))
    }

    /// No other worker has come to serve in time. This one is better than none: it serves on until it is asked for again.
    /// `None`: there is time left.
    pub(crate) fn give_up_replacement(&mut self, number: u32, now: Instant) -> Option<ReplacementCause> {
        let is_overdue = |replacement: &mut Replacement| replacement.relieved_by.is_some_and(|by| by <= now);
        let replacement = self.workers.get_mut(number)?.replacement.take_if(is_overdue)?;
        Some(replacement.cause)
    }

    /// When there is something to do about replacements.
    pub(crate) fn replacements_due(&self, line: u32, is_complete: bool, now: Instant) -> Option<Instant> {
        let relieved = self.workers.iter().filter(|(_, worker)| is_relieved(worker) || is_held(worker, now));
        let relieved = relieved.filter_map(|(_, worker)| worker.replacement?.relieved_by).min();
        let next = self.next_to_replace(line, is_complete);
        let paced = next.map(|(_, cause)| self.replacements.due(cause, self.wanted).unwrap_or(now));
        relieved.into_iter().chain(paced).min()
    }

    /// For how long a worker is being replaced for its memory, if one is: it has not ended yet. `limit`: for a new worker to
    /// serve in its place.
    pub(crate) fn replacing_for_memory(&self, limit: Duration, now: Instant) -> Option<Duration> {
        let begun = self.workers.iter().filter_map(|(_, worker)| {
            let replacement = worker.replacement?;
            let limit = if replacement.retires_first() { RETIRE_FIRST_TIME } else { limit };
            replacement.memory?;
            Some((now + limit).saturating_duration_since(replacement.relieved_by?))
        });
        begun.max()
    }

    /// Places of workers that have to end before others are started, as there is no memory for both.
    pub(super) fn places_held(&self, now: Instant) -> usize {
        self.workers.iter().filter(|(_, worker)| is_held(worker, now)).count()
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
