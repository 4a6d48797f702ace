//! Places: workers with a range of threads get more of them while requests wait.
//!
//! The worker decides whether one more thread would help, because only it knows what its threads wait for. The front reports
//! that requests wait, after at least two milliseconds, and uses the number of places that it reads in the ring.

use highball_ring::KeptBy;

use super::worker::{DispatchState, Worker};
use super::Dispatcher;

impl Worker {
    /// Returns whether it would use another place: all are taken, and a request waits, in the queue or in its ring.
    fn needs_place(&self, queue_waits: bool) -> bool {
        let places = self.ring.places();
        places < self.ring.geometry().threads
            && self.state == DispatchState::Serving
            && self.busy_threads() >= places
            && (queue_waits || !self.unclaimed.is_empty() || !self.own.is_empty())
    }

    /// Returns whether it has more places than when it learned that requests wait.
    pub(super) fn has_grown(&self) -> bool {
        self.wanted_beyond.is_some_and(|before| self.ring.places() > before)
    }

    /// Returns what keeps it from having more places; `None` for a fixed number.
    pub(super) fn kept_by(&self) -> Option<&'static str> {
        let geometry = self.ring.geometry();
        if geometry.least_threads == geometry.threads {
            return None;
        }
        Some(match self.ring.places_kept_by() {
            _ if self.ring.places() == geometry.threads => "limit",
            KeptBy::Nothing => "demand",
            KeptBy::Computing => "computing",
            KeptBy::Pool => "pool",
            KeptBy::PoolWait => "pool_wait",
            KeptBy::System => "system",
        })
    }
}

impl Dispatcher {
    /// Returns whether requests wait for places that a worker might add, and the worker does not know it yet.
    pub(super) fn lacks_places(&self) -> bool {
        let queue_waits = !self.queue.is_empty();
        let unaware = |worker: &Worker| worker.wanted_beyond.is_none() && worker.needs_place(queue_waits);
        self.workers.iter().any(unaware)
    }

    /// Tells workers for which further places requests have waited since the last tick.
    pub(super) fn want_places(&mut self) {
        let queue_waits = !self.queue.is_empty();
        for worker in &mut self.workers {
            if worker.wanted_beyond.is_none() && worker.needs_place(queue_waits) {
                worker.wanted_beyond = Some(worker.ring.places());
                worker.ring.want_place(true);
            }
        }
    }

    /// Withdraws this when a place is free, or nothing waits.
    pub(super) fn want_no_needless_places(&mut self) {
        let queue_waits = !self.queue.is_empty();
        for worker in self.workers.iter_mut().filter(|worker| worker.wanted_beyond.is_some()) {
            if worker.needs_place(queue_waits) {
                worker.wanted_beyond = Some(worker.ring.places());
            } else {
                worker.wanted_beyond = None;
                worker.ring.want_place(false);
            }
        }
    }
}
