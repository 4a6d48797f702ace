//! Slow start: in a rolling restart, a new worker gets few requests at first.
//!
//! Its code is not compiled yet, and its caches are empty: its first requests take several times as long as those of the workers
//! before it. If it got a whole share at once, requests would wait behind them. So as long as all workers before it serve, it
//! gets one request at a time, and rests after each: the longer, the slower it was than the others. Once it is as fast as they
//! are, the supervisor may retire one of them. Where few requests arrive, none would wait, and the slow start ends at once.
//!
//! A connection that the new version has answered stays with it, slow start or not.

use std::collections::VecDeque;

use highball_link::FrontAppEvent;

use super::generations::Allowed;
use super::worker::{DispatchState, Worker};
use super::Dispatcher;
use crate::clock::now_ms;

/// Longest slow start.
const LIMIT_MS: u64 = 3000;
/// Time without a request after which a slow start ends.
const QUIET_MS: u64 = 100;
/// The number of answers by which a worker is compared with the others.
const COMPARED: usize = 16;
/// How much longer its requests may take than those of the others, in percent. Milliseconds are rounded, so one more may pass.
const SLOWER_PERCENT: u64 = 125;
/// Time to rest for each millisecond that its request took longer than usual.
const RESTS: u64 = 2;
/// Longest rest.
const LONGEST_REST_MS: u64 = 200;

/// The slow start of one worker.
#[derive(Debug)]
pub(super) struct SlowStart {
    worker: u32,
    began_ms: u64,
    rests_until_ms: u64,
    /// How long its latest requests took, in milliseconds.
    latest: VecDeque<u64>,
    /// How long requests took in the other workers meanwhile: the sum, and their number.
    others_ms: u64,
    others: u64,
}

impl SlowStart {
    fn new(worker: u32, now_ms: u64) -> SlowStart {
        let latest = VecDeque::with_capacity(COMPARED);
        SlowStart { worker, began_ms: now_ms, rests_until_ms: now_ms, latest, others_ms: 0, others: 0 }
    }

    /// How long a request takes in the other workers; `None`: they have not answered any meanwhile.
    fn usual_ms(&self) -> Option<u64> {
        self.others_ms.checked_div(self.others)
    }

    fn note(&mut self, worker: u32, took_ms: u64, now_ms: u64) {
        if worker != self.worker {
            self.others_ms += took_ms;
            self.others += 1;
            return;
        }
        let slower_ms = took_ms.saturating_sub(self.usual_ms().unwrap_or(took_ms));
        self.rests_until_ms = now_ms + (slower_ms * RESTS).min(LONGEST_REST_MS);
        if self.latest.len() == COMPARED {
            self.latest.pop_front();
        }
        self.latest.push_back(took_ms);
    }

    fn is_as_fast_as_others(&self) -> bool {
        let Some(usual_ms) = self.usual_ms().filter(|_| self.latest.len() == COMPARED) else { return false };
        let mean_ms = self.latest.iter().sum::<u64>() / COMPARED as u64;
        mean_ms <= usual_ms * SLOWER_PERCENT / 100 + 1
    }

    fn is_over(&self, is_idle: bool, now_ms: u64) -> bool {
        let is_quiet = is_idle && now_ms >= self.rests_until_ms + QUIET_MS;
        is_quiet || self.is_as_fast_as_others() || now_ms >= self.began_ms + LIMIT_MS
    }
}

impl Dispatcher {
    /// A worker of a new version has been admitted. It starts slowly if requests would wait otherwise.
    pub(super) fn begin_slow_start(&mut self, index: usize) {
        let worker = &self.workers[index];
        let is_loaded = !self.queue.is_empty() || self.workers_before(worker).any(|before| !before.is_idle());
        let number = worker.number;
        if is_loaded && self.rollout.is_none() && self.workers_before(worker).next().is_some() {
            self.slow_starts.push(SlowStart::new(number, now_ms()));
        } else {
            self.events.send(FrontAppEvent::SlowStartEnded { worker: number });
        }
    }

    /// The workers of older versions that serve.
    fn workers_before<'a>(&'a self, new: &'a Worker) -> impl Iterator<Item = &'a Worker> {
        let is_before =
            |worker: &&Worker| worker.state == DispatchState::Serving && worker.generation < new.generation;
        self.workers.iter().filter(is_before)
    }

    /// Ends the slow starts that are over, and gives requests to workers that have rested. Call it now and then.
    pub(crate) fn look_at_slow_starts(&mut self) {
        if !self.slow_starts.is_empty() {
            self.end_slow_starts();
            self.settle();
        }
    }

    fn end_slow_starts(&mut self) {
        let now_ms = now_ms();
        let mut slow_starts = std::mem::take(&mut self.slow_starts);
        slow_starts.retain(|slow_start| {
            let worker = self.workers.iter().find(|worker| worker.number == slow_start.worker);
            let Some(worker) = worker.filter(|worker| worker.state == DispatchState::Serving) else {
                return false; // the supervisor knows
            };
            let is_over = slow_start.is_over(worker.is_idle(), now_ms)
                || self.rollout.is_some()
                || self.workers_before(worker).next().is_none();
            if is_over {
                self.events.send(FrontAppEvent::SlowStartEnded { worker: worker.number });
            }
            !is_over
        });
        self.slow_starts = slow_starts;
    }

    /// A worker has answered the request in this slot.
    pub(super) fn note_for_slow_starts(&mut self, index: usize, slot: u16) {
        if self.slow_starts.is_empty() {
            return;
        }
        let (worker, now_ms) = (&self.workers[index], now_ms());
        let took_ms = now_ms.saturating_sub(worker.placed_ms[usize::from(slot)]);
        for slow_start in &mut self.slow_starts {
            slow_start.note(worker.number, took_ms, now_ms);
        }
        self.end_slow_starts();
    }

    /// A worker in its slow start that has rested, and has nothing to do.
    pub(super) fn rested_worker(&self, can_take: impl Fn(&Worker) -> bool) -> Option<usize> {
        let now_ms = now_ms();
        let rested = self.slow_starts.iter().filter(|slow_start| now_ms >= slow_start.rests_until_ms);
        let mut workers = rested.filter_map(|slow_start| self.position(slow_start.worker));
        workers.find(|index| self.workers[*index].is_idle() && can_take(&self.workers[*index]))
    }

    /// Whether this request is for others, since the worker starts slowly.
    pub(super) fn is_spared(&self, worker: &Worker, allowed: Allowed) -> bool {
        let starts_slowly = self.slow_starts.iter().any(|slow_start| slow_start.worker == worker.number);
        starts_slowly && allowed.oldest < worker.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow start, and the time, after these requests of another worker took 10 ms each.
    fn slow_start() -> SlowStart {
        let mut slow_start = SlowStart::new(2, 0);
        (0..10).for_each(|_| slow_start.note(1, 10, 0));
        slow_start
    }

    #[test]
    fn a_worker_rests_as_long_as_it_was_slower_than_others() {
        let mut slow_start = slow_start();
        for (took_ms, rest_ms) in [(10, 0), (4, 0), (15, 10), (60, 100), (5000, LONGEST_REST_MS)] {
            slow_start.note(2, took_ms, 1000);
            assert_eq!(slow_start.rests_until_ms, 1000 + rest_ms, "after {took_ms} ms");
        }
    }

    #[test]
    fn it_ends_when_the_latest_requests_were_as_fast_as_those_of_others() {
        let mut slow_start = slow_start();
        (1..COMPARED).for_each(|_| slow_start.note(2, 9, 0));
        assert!(!slow_start.is_over(false, 1), "too few");
        (0..COMPARED).for_each(|_| slow_start.note(2, 14, 0));
        assert!(!slow_start.is_over(false, 1), "slower");
        (0..COMPARED).for_each(|_| slow_start.note(2, 13, 0));
        assert!(slow_start.is_over(false, 1));
    }

    #[test]
    fn it_ends_when_no_request_arrives_or_its_time_is_over() {
        let mut slow_start = slow_start();
        slow_start.note(2, 110, 1000);
        let rested_ms = 1000 + LONGEST_REST_MS;
        assert!(!slow_start.is_over(true, rested_ms + QUIET_MS - 1));
        assert!(slow_start.is_over(true, rested_ms + QUIET_MS));
        assert!(!slow_start.is_over(false, rested_ms + QUIET_MS));
        assert!(slow_start.is_over(false, LIMIT_MS));
    }

    #[test]
    fn without_others_to_compare_it_with_a_worker_does_not_rest() {
        let mut slow_start = SlowStart::new(2, 0);
        (0..COMPARED).for_each(|_| slow_start.note(2, 100, 1000));
        assert_eq!(slow_start.rests_until_ms, 1000);
        assert!(!slow_start.is_over(false, 1000));
    }
}
