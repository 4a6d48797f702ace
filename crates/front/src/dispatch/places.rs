//! Places: workers with a range of threads get more of them where requests wait.
//!
//! The worker decides whether one more thread would help, as only it knows what its threads wait for. The front lets it know
//! that requests wait, which they do for at least two milliseconds by then, and goes by the number of places that it reads in the
//! ring.

use highball_ring::KeptBy;

use super::worker::{DispatchState, Worker};
use super::Dispatcher;

impl Worker {
    /// Whether another place would be used: all are taken, and something waits, in the queue or in its ring.
    fn needs_place(&self, queue_waits: bool) -> bool {
        let places = self.ring.places();
        places < self.ring.geometry().threads
            && self.state == DispatchState::Serving
            && self.busy_threads() >= places
            && (queue_waits || !self.unclaimed.is_empty())
    }

    /// Whether it has more places than when it learned that requests wait for one.
    pub(super) fn has_grown(&self) -> bool {
        self.wanted_beyond.is_some_and(|before| self.ring.places() > before)
    }

    /// What keeps it from having more places; `None`: its number is fixed.
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
    /// Whether requests wait for places that a worker might add, and it does not know yet.
    pub(super) fn lacks_places(&self) -> bool {
        let queue_waits = !self.queue.is_empty();
        let unaware = |worker: &Worker| worker.wanted_beyond.is_none() && worker.needs_place(queue_waits);
        self.workers.iter().any(unaware)
    }

    /// Lets the workers know for which further places requests have waited since the last tick.
    pub(super) fn want_places(&mut self) {
        let queue_waits = !self.queue.is_empty();
        for worker in &mut self.workers {
            if worker.wanted_beyond.is_none() && worker.needs_place(queue_waits) {
                worker.wanted_beyond = Some(worker.ring.places());
                worker.ring.want_place(true);
            }
        }
    }

    /// Withdraws that where a place is free, or nothing waits.
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
