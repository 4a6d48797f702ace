//! Slow start: in a rolling restart, a new worker gets few requests at first.
//!
//! Its code is not compiled yet, and its caches are empty: its first requests take several times as long as those of the workers
//! before it. If it got a whole share at once, requests would wait behind them. So as long as all workers before it serve, it
//! gets one request at a time, and rests after each: the longer, the slower it was than the others. Once it is as fast as they
//! are, the supervisor may retire one of them. Where few requests arrive, none would wait, and the slow start ends soon.
//!
//! What counts is the time for which requests compute or wait for something outside ([`RequestTimes`], of which workers take
//! a sample). Under load a request of an old worker takes much longer, since it shares the worker with others.
//!
//! A connection that the new version has answered stays with it, slow start or not.

use std::collections::VecDeque;
use std::time::Duration;

use highball_link::{FrontAppEvent, LONGEST_SLOW_START};
use highball_ring::RequestTimes;

use super::generations::Allowed;
use super::worker::{DispatchState, Worker};
use super::Dispatcher;
use crate::clock::now_ms;

const LIMIT_MS: u64 = LONGEST_SLOW_START.as_millis() as u64;
/// A worker has just served if it had a request within this time.
const MOMENT: Duration = Duration::from_millis(100);
/// Looks in a row ([`TICK`](crate::clock::TICK)) at a rested worker without a request, after which a slow start ends. By time alone, it
/// would end whenever the front itself has to wait for a CPU.
const QUIET_LOOKS: u32 = 3;
/// The number of samples by which a worker is compared with the others.
const COMPARED: usize = 16;
/// How much longer its requests may take than those of the others, in percent.
const SLOWER_PERCENT: u64 = 150;
/// Time to rest for each millisecond that its request took longer than usual.
const RESTS: u64 = 3;
/// Longest time of a request; longer ones count as this long.
const MOST_US: u64 = 3_600_000_000;
/// Longest rest.
const LONGEST_REST_MS: u64 = 200;

/// The slow start of one worker.
#[derive(Debug)]
pub(super) struct SlowStart {
    worker: u32,
    began_ms: u64,
    rests_until_ms: u64,
    quiet_looks: u32,
    /// The worker's times at the last look.
    own: RequestTimes,
    /// Its latest samples, in microseconds.
    latest: VecDeque<u64>,
    /// The times of the workers before it, when it began.
    others: RequestTimes,
}

impl SlowStart {
    fn new(worker: u32, own: RequestTimes, others: RequestTimes, now_ms: u64) -> SlowStart {
        let latest = VecDeque::with_capacity(COMPARED);
        SlowStart { worker, began_ms: now_ms, rests_until_ms: now_ms, quiet_looks: 0, own, latest, others }
    }

    /// It has answered a request.
    fn note(&mut self, own: RequestTimes, others: RequestTimes, now_ms: u64) {
        if let Some(took_us) = mean_us(own.since(self.own)) {
            self.own = own;
            if self.latest.len() == COMPARED {
                self.latest.pop_front();
            }
            self.latest.push_back(took_us);
        }
        self.quiet_looks = 0;
        let Some(&took_us) = self.latest.back() else { return };
        let slower_us = took_us.saturating_sub(self.usual_us(others).unwrap_or(took_us));
        self.rests_until_ms = now_ms + (slower_us * RESTS / 1000).min(LONGEST_REST_MS);
    }

    /// How long a request of the other workers takes; `None`: no sample was taken meanwhile.
    fn usual_us(&self, others: RequestTimes) -> Option<u64> {
        mean_us(others.since(self.others))
    }

    fn is_as_fast_as(&self, others: RequestTimes) -> bool {
        let usual_us = self.usual_us(others).filter(|_| self.latest.len() == COMPARED);
        let mean_us = self.latest.iter().sum::<u64>() / COMPARED as u64;
        usual_us.is_some_and(|usual_us| mean_us <= usual_us * SLOWER_PERCENT / 100)
    }

    /// `is_idle`: the worker has no request.
    fn look(&mut self, is_idle: bool, now_ms: u64) {
        let is_quiet = is_idle && now_ms >= self.rests_until_ms;
        self.quiet_looks = if is_quiet { self.quiet_looks + 1 } else { 0 };
    }

    /// `is_needed`: requests wait, so no worker before it can be spared.
    fn is_over(&self, others: RequestTimes, is_needed: bool, now_ms: u64) -> bool {
        let is_usual = self.quiet_looks >= QUIET_LOOKS || self.is_as_fast_as(others);
        (is_usual && !is_needed) || now_ms >= self.began_ms + LIMIT_MS
    }
}

/// Whether it has a request, or had one a moment ago.
fn has_just_served(worker: &Worker) -> bool {
    !worker.is_idle() || worker.time.since().elapsed() < MOMENT
}

/// Returns how long a request computes or waits for something outside. `None`: these are no requests. (Workers may write any
/// number.)
fn mean_us(times: RequestTimes) -> Option<u64> {
    let mean_us = times.computed_us.saturating_add(times.waited_us).checked_div(times.requests)?;
    Some(mean_us.min(MOST_US))
}

impl Dispatcher {
    /// A worker of a new version has been admitted. It starts slowly if requests would wait otherwise.
    pub(super) fn begin_slow_start(&mut self, index: usize) {
        let worker = &self.workers[index];
        let is_loaded = !self.queue.is_empty() || self.workers_before(worker).any(has_just_served);
        let number = worker.number;
        if is_loaded && self.may_start_slowly(worker) {
            let (own, others) = (worker.ring.request_times(), self.times_before(worker));
            self.slow_starts.push(SlowStart::new(number, own, others, now_ms()));
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

    /// Whether other workers can answer requests in its place.
    fn may_start_slowly(&self, new: &Worker) -> bool {
        self.rollout.is_none() && self.workers_before(new).next().is_some()
    }

    fn times_before(&self, new: &Worker) -> RequestTimes {
        self.workers_before(new).map(|worker| worker.ring.request_times()).sum()
    }

    /// Ends the slow starts that are over, and gives requests to workers that have rested. Call it on every tick.
    pub(crate) fn look_at_slow_starts(&mut self) {
        if self.slow_starts.is_empty() {
            return;
        }
        let now_ms = now_ms();
        for slow_start in &mut self.slow_starts {
            let worker = self.workers.iter().find(|worker| worker.number == slow_start.worker);
            slow_start.look(worker.is_some_and(Worker::is_idle), now_ms);
        }
        self.end_slow_starts();
        self.settle();
    }

    fn end_slow_starts(&mut self) {
        let now_ms = now_ms();
        let mut slow_starts = std::mem::take(&mut self.slow_starts);
        slow_starts.retain(|slow_start| {
            let worker = self.position(slow_start.worker).map(|index| &self.workers[index]);
            let Some(worker) = worker.filter(|worker| worker.state == DispatchState::Serving) else {
                return false; // the supervisor knows
            };
            let others = self.times_before(worker);
            let is_over =
                slow_start.is_over(others, !self.queue.is_empty(), now_ms) || !self.may_start_slowly(worker);
            if is_over {
                self.events.send(FrontAppEvent::SlowStartEnded { worker: worker.number });
            }
            !is_over
        });
        self.slow_starts = slow_starts;
    }

    /// A worker has answered a request.
    pub(super) fn note_for_slow_start(&mut self, index: usize) {
        let worker = &self.workers[index];
        let is_it = |slow_start: &SlowStart| slow_start.worker == worker.number;
        let Some(at) = self.slow_starts.iter().position(is_it) else { return };
        let (own, others) = (worker.ring.request_times(), self.times_before(worker));
        self.slow_starts[at].note(own, others, now_ms());
        self.end_slow_starts();
    }

    /// A worker in its slow start that has rested, and has nothing to do.
    pub(super) fn rested_worker(&self, can_take: impl Fn(&Worker) -> bool) -> Option<usize> {
        let rested = self.slow_starts.iter().filter(|slow_start| now_ms() >= slow_start.rests_until_ms);
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

    fn times(requests: u64, each_us: u64) -> RequestTimes {
        RequestTimes { requests, computed_us: requests * each_us, beside_us: 7, waited_us: 0 }
    }

    /// Requests of the others have taken 10 ms each since it began.
    const OTHERS: RequestTimes =
        RequestTimes { requests: 9, computed_us: 60_000, beside_us: 1_000_000, waited_us: 30_000 };

    /// A slow start that begins at 0, and has answered requests that took as long as this.
    fn slow_start(answers_us: impl IntoIterator<Item = u64>) -> SlowStart {
        let mut slow_start = SlowStart::new(2, times(1, 500_000), RequestTimes::default(), 0);
        answers_us.into_iter().for_each(|took_us| answers(&mut slow_start, took_us, 0));
        slow_start
    }

    fn answers(slow_start: &mut SlowStart, took_us: u64, now_ms: u64) {
        slow_start.note(slow_start.own + times(1, took_us), OTHERS, now_ms);
    }

    #[test]
    fn a_worker_rests_as_long_as_it_was_slower_than_others() {
        let mut slow_start = slow_start([]);
        let longest = LONGEST_REST_MS;
        for (took_us, rest_ms) in [(10_000, 0), (4000, 0), (15_000, 15), (60_000, 150), (5_000_000, longest)]
        {
            answers(&mut slow_start, took_us, 1000);
            assert_eq!(slow_start.rests_until_ms, 1000 + rest_ms, "after {took_us} µs");
        }
        // Of this answer, no sample was taken.
        slow_start.note(slow_start.own, OTHERS, 2000);
        assert_eq!(slow_start.rests_until_ms, 2000 + longest);
    }

    #[test]
    fn it_ends_when_the_latest_requests_were_as_fast_as_those_of_others() {
        assert!(!slow_start([9000; COMPARED - 1]).is_over(OTHERS, false, 1), "too few");
        assert!(!slow_start([15_500; COMPARED]).is_over(OTHERS, false, 1), "slower");
        assert!(slow_start([15_000; COMPARED]).is_over(OTHERS, false, 1));
        assert!(!slow_start([15_000; COMPARED]).is_over(OTHERS, true, 1), "requests wait");
        assert!(slow_start([[50_000; COMPARED], [15_000; COMPARED]].concat()).is_over(OTHERS, false, 1));
    }

    #[test]
    fn it_ends_when_no_request_arrives_or_its_time_is_over() {
        let mut slow_start = slow_start([]);
        answers(&mut slow_start, 110_000, 1000);
        let rested_ms = 1000 + LONGEST_REST_MS;
        (0..QUIET_LOOKS).for_each(|_| slow_start.look(true, rested_ms - 1));
        (1..QUIET_LOOKS).for_each(|_| slow_start.look(true, rested_ms));
        assert!(!slow_start.is_over(OTHERS, false, rested_ms));
        slow_start.look(true, rested_ms);
        assert!(slow_start.is_over(OTHERS, false, rested_ms));
        assert!(!slow_start.is_over(OTHERS, true, rested_ms), "requests wait");
        slow_start.look(false, rested_ms);
        assert!(!slow_start.is_over(OTHERS, false, rested_ms));
        assert!(slow_start.is_over(OTHERS, true, LIMIT_MS));
    }

    #[test]
    fn figures_that_a_worker_makes_up_do_no_harm() {
        let mut slow_start = slow_start([]);
        let most =
            RequestTimes { requests: 1, computed_us: u64::MAX, beside_us: u64::MAX, waited_us: u64::MAX };
        for number in 1..=2 * COMPARED as u64 {
            slow_start.note(RequestTimes { requests: number, ..most }, OTHERS, 0);
            slow_start.note(RequestTimes::default(), most, 0);
        }
        assert!(slow_start.rests_until_ms <= LONGEST_REST_MS);
        assert!(slow_start.is_over(most, false, LIMIT_MS));
    }

    #[test]
    fn without_others_to_compare_it_with_a_worker_does_not_rest() {
        let mut slow_start = SlowStart::new(2, RequestTimes::default(), OTHERS, 0);
        for number in 1..=COMPARED as u64 {
            slow_start.note(times(number, 100_000), OTHERS, 1000);
        }
        assert_eq!(slow_start.rests_until_ms, 1000);
        assert!(!slow_start.is_over(OTHERS, false, 1000));
    }
}
