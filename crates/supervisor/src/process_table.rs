//! The workers that exist, by number.

use crate::rolling::Tally;
use crate::worker_handle::{WorkerHandle, WorkerState};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::time::Instant;

/// All workers. A number is given once in a run.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable {
    workers: BTreeMap<u32, WorkerHandle>,
    last_number: u32,
}

impl ProcessTable {
    /// A number for the next worker.
    pub(crate) fn next_number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    pub(crate) fn insert(&mut self, worker: u32, handle: WorkerHandle) {
        self.workers.insert(worker, handle);
    }

    pub(crate) fn get_mut(&mut self, worker: u32) -> Option<&mut WorkerHandle> {
        self.workers.get_mut(&worker)
    }

    pub(crate) fn remove(&mut self, worker: u32) -> Option<WorkerHandle> {
        self.workers.remove(&worker)
    }

    /// Forgets the workers that do not exist yet. Should one be forked all the same, it finds its control socket
    /// closed and ends.
    pub(crate) fn forget_unborn(&mut self) {
        self.workers.retain(|_, handle| handle.state != WorkerState::Forking);
    }

    /// Ends what of a line has begun and not finished: its workers that do not serve yet.
    pub(crate) fn halt_coming(&mut self, line: u32, now: Instant) {
        self.workers.retain(|_, handle| {
            handle.line != line || handle.state != WorkerState::Forking
            // as above
        });
        for handle in self.workers.values_mut() {
            if handle.line == line && matches!(handle.state, WorkerState::Starting | WorkerState::Probing) {
                handle.halt(now);
            }
        }
    }

    /// A line is given up: what is left of it counts as of another.
    pub(crate) fn join_line(&mut self, line: u32, into: u32) {
        for handle in self.workers.values_mut().filter(|handle| handle.line == line) {
            handle.line = into;
        }
    }

    /// How many there are, seen from the line that is to stay.
    pub(crate) fn tally(&self, staying: u32, wanted: usize, surge: usize) -> Tally {
        let mut tally = Tally { wanted, surge, ..Tally::default() };
        for handle in self.workers.values() {
            match (handle.line == staying, handle.state) {
                (true, WorkerState::Serving) => tally.serving += 1,
                (true, _) if handle.counts() => tally.coming += 1,
                (true, _) => {}
                (false, WorkerState::Serving) => tally.others_serving += 1,
                (false, _) => tally.others_leaving += 1,
            }
        }
        tally
    }

    /// The worker to retire so that there is one fewer: of another line the one that serves longest, of the
    /// one that stays the youngest.
    pub(crate) fn to_retire(&self, staying: u32, of_staying: bool) -> Option<u32> {
        let mut serving = self.workers.iter().filter(|(_, handle)| {
            handle.state == WorkerState::Serving && (handle.line == staying) == of_staying
        });
        let chosen = if of_staying { serving.next_back() } else { serving.next() };
        chosen.map(|(number, _)| *number)
    }

    /// Whether there is a process of this generation.
    pub(crate) fn has_any_of(&self, generation: u32) -> bool {
        self.workers.values().any(|handle| handle.generation == generation)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &WorkerHandle)> {
        self.workers.iter().map(|(number, handle)| (*number, handle))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut WorkerHandle)> {
        self.workers.iter_mut().map(|(number, handle)| (*number, handle))
    }

    /// The worker with this process id.
    pub(crate) fn with_pid(&self, pid: Pid) -> Option<u32> {
        self.iter().find(|(_, handle)| handle.pid == Some(pid)).map(|(number, _)| number)
    }

    /// Workers that serve or are on the way to it.
    pub(crate) fn counting(&self) -> usize {
        self.iter().filter(|(_, handle)| handle.counts()).count()
    }

    pub(crate) fn in_state(&self, state: WorkerState) -> usize {
        self.iter().filter(|(_, handle)| handle.state == state).count()
    }

    /// The workers whose state should have ended by now.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<u32> {
        let overdue = self.iter().filter(|(_, handle)| handle.deadline.is_some_and(|at| at <= now));
        overdue.map(|(number, _)| number).collect()
    }

    /// The workers that have asked to be retired, where it is time for it.
    pub(crate) fn leaving(&self, now: Instant) -> Vec<u32> {
        let leaving = self.iter().filter(|(_, handle)| handle.leaves_at.is_some_and(|at| at <= now));
        leaving.map(|(number, _)| number).collect()
    }

    pub(crate) fn next_leaving(&self) -> Option<Instant> {
        self.workers.values().filter_map(|handle| handle.leaves_at).min()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.workers.values().filter_map(|handle| handle.deadline).min()
    }
}
