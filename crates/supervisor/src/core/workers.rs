//! The workers of an application, by number.

use super::worker::Worker;
use crate::core::rolling::Tally;
use crate::core::worker::WorkerState;
use std::time::Instant;

/// All workers. A number is given once in a run.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// In the order of their numbers.
    workers: Vec<(u32, Worker)>,
    last_number: u32,
}

impl Workers {
    /// Adds one, and gives it its number.
    pub(crate) fn add(&mut self, worker: Worker) -> u32 {
        self.last_number += 1;
        self.workers.push((self.last_number, worker));
        self.last_number
    }

    fn place(&self, worker: u32) -> Option<usize> {
        self.workers.binary_search_by_key(&worker, |(number, _)| *number).ok()
    }

    pub(crate) fn get(&self, worker: u32) -> Option<&Worker> {
        self.place(worker).map(|place| &self.workers[place].1)
    }

    pub(crate) fn get_mut(&mut self, worker: u32) -> Option<&mut Worker> {
        self.place(worker).map(|place| &mut self.workers[place].1)
    }

    pub(crate) fn remove(&mut self, worker: u32) -> Option<Worker> {
        self.place(worker).map(|place| self.workers.remove(place).1)
    }

    /// The numbers of those for which this holds.
    pub(crate) fn which(&self, holds: impl Fn(&Worker) -> bool) -> Vec<u32> {
        self.iter().filter(|(_, worker)| holds(worker)).map(|(number, _)| number).collect()
    }

    /// A line is given up: what is left of it counts as of another.
    pub(crate) fn join_line(&mut self, line: u32, into: u32) {
        for worker in self.values_mut().filter(|worker| worker.line == line) {
            worker.line = into;
        }
    }

    /// The numbers of workers, seen from the line that is to stay; workers of the line `apart` do not count.
    pub(crate) fn tally(&self, staying: u32, apart: Option<u32>, wanted: usize, surge: usize) -> Tally {
        let mut tally = Tally { wanted, surge, ..Tally::default() };
        for (_, worker) in self.workers.iter().filter(|(_, worker)| Some(worker.line) != apart) {
            match (worker.line == staying, worker.state) {
                (true, WorkerState::Serving) => {
                    tally.serving += 1;
                    tally.starting_slowly += usize::from(worker.slow_start_until.is_some());
                }
                (true, _) if worker.counts() => tally.coming += 1,
                (true, _) => {}
                (false, WorkerState::Serving) => tally.others_serving += 1,
                (false, _) => tally.others_leaving += 1,
            }
        }
        tally
    }

    /// The worker to retire so that there is one fewer. Of other lines: the longest serving one. Of the staying line: a
    /// worker that is to be replaced, or the youngest.
    pub(crate) fn to_retire(&self, staying: u32, of_staying: bool) -> Option<u32> {
        let mut serving = self.iter().filter(|(_, worker)| {
            worker.state == WorkerState::Serving && (worker.line == staying) == of_staying
        });
        let chosen = if of_staying {
            serving.max_by_key(|(number, worker)| (worker.replacement.is_some(), *number))
        } else {
            serving.next()
        };
        chosen.map(|(number, _)| number)
    }

    /// Whether there is a process of this generation.
    pub(crate) fn has_any_of(&self, generation: u32) -> bool {
        self.workers.iter().any(|(_, worker)| worker.generation == generation)
    }

    /// How many workers of this line serve.
    pub(crate) fn serving_of(&self, line: u32) -> usize {
        self.which(|worker| worker.line == line && worker.state == WorkerState::Serving).len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &Worker)> {
        self.workers.iter().map(|(number, worker)| (*number, worker))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.workers.iter_mut().map(|(_, worker)| worker)
    }

    /// Workers that serve or are on the way to it.
    pub(crate) fn counting(&self) -> usize {
        self.workers.iter().filter(|(_, worker)| worker.counts()).count()
    }

    pub(crate) fn in_state(&self, state: WorkerState) -> usize {
        self.workers.iter().filter(|(_, worker)| worker.state == state).count()
    }

    /// Workers that were sent TERM, and are to be retired by now.
    pub(crate) fn leaving(&self, now: Instant) -> Vec<u32> {
        self.which(|worker| worker.leaves_at.is_some_and(|at| at <= now))
    }

    pub(crate) fn next_leaving(&self) -> Option<Instant> {
        self.workers.iter().filter_map(|(_, worker)| worker.leaves_at).min()
    }

    /// Workers whose deadline has passed.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<u32> {
        self.which(|worker| worker.deadline.is_some_and(|at| at <= now))
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.workers.iter().flat_map(|(_, worker)| [worker.deadline, worker.slow_start_until]).flatten().min()
    }
}
