//! The sleep of the front and of the workers: who wakes whom, and when.

use highball_ring::FrontRing;

use super::worker::{DispatchState, Worker};
use super::Dispatcher;

impl Dispatcher {
    /// Whether several requests wait for a worker that is asleep: then more may have come in the meantime, and one
    /// wake-up does for all.
    pub(crate) fn is_gathering(&mut self) -> bool {
        self.workers.iter_mut().any(|worker| worker.unclaimed.len() > 1 && worker.ring.has_sleepers())
    }

    /// Wakes the workers for what was placed. `true`: something is not begun yet.
    pub(crate) fn ring_workers(&mut self) -> bool {
        let mut left = false;
        for worker in &mut self.workers {
            if !worker.unclaimed.is_empty() && worker.state != DispatchState::Broken {
                worker.ring_for_unclaimed(false);
                left |= !worker.unclaimed.is_empty();
            }
        }
        left || self.lacks_places()
    }

    /// Wakes the workers also for what their busy threads were expected to come back for, and did not; what a
    /// worker does not begin all the same goes to others. `true`: something is not begun yet.
    pub(crate) fn ring_for_overdue(&mut self) -> bool {
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            if worker.unclaimed.is_empty() || worker.state == DispatchState::Broken {
                continue;
            }
            let overdue = worker.note_overdue();
            worker.ring_for_unclaimed(overdue);
        }
        self.settle();
        self.want_places();
        self.ring_workers()
    }

    /// Announces to the workers that have requests that the front is about to sleep; not for longer than
    /// [`Dispatcher::ring_workers`] has returned. `false`: there is news after all.
    pub(crate) fn announce_sleep(&self) -> bool {
        self.busy().for_each(Worker::announce_sleep);
        let has_news = |worker: &Worker| worker.ring.any_ready() || worker.has_grown();
        !self.busy().any(|worker| worker.state != DispatchState::Broken && has_news(worker))
    }

    /// The ring of the only request that is under way, if its worker is fast.
    pub(crate) fn ring_of_lone_request(&self) -> Option<&FrontRing> {
        let mut busy = self.busy();
        let (worker, None) = (busy.next()?, busy.next()) else { return None };
        let is_lone = worker.in_flight == 1 && self.queue.is_empty() && worker.state != DispatchState::Broken;
        (is_lone && worker.time.is_fast()).then_some(&worker.ring)
    }

    /// The front is awake.
    pub(crate) fn retract_sleep(&self) {
        self.busy().for_each(|worker| worker.ring.retract_sleep());
    }

    /// The workers that have something to say, or may; the rings of the others would only cost time.
    fn busy(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| !worker.is_idle())
    }
}
