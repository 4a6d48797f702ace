//! Requests of sessions that stay with their workers (option `affinity`).
//!
//! Each worker has a separate queue for the requests of its sessions, so a busy worker holds up no other request. The queue gets
//! the worker's share of `max_queue`, however many requests a client sends. Between this queue and the common one, the older
//! request goes first. If the worker ends, its requests join the common queue.

use std::rc::Rc;

use super::generations::Allowed;
use super::placing::Placing;
use super::worker::{DispatchState, Worker};
use super::Dispatcher;
use crate::affinity::Session;
use crate::exchange::{Exchange, Place};

/// Requests of a worker's sessions to consider for a free place, while those before them crowd the worker.
const MOST_LOOKED_AT: usize = 32;

impl Worker {
    /// Whether it can begin this request of one of its sessions.
    fn can_take_own(&self, exchange: &Exchange) -> bool {
        self.can_begin() && self.admits(exchange)
    }

    /// Returns the place in its queue of the next request that it can begin.
    fn next_own(&self) -> Option<usize> {
        if !self.can_begin() {
            return None;
        }
        self.own.iter().take(MOST_LOOKED_AT).position(|exchange| self.can_take_own(exchange))
    }
}

impl Dispatcher {
    /// Returns the worker of this session, if it still gets requests. In a rollout, it has to be of an allowed generation; but
    /// programs whose sessions have header fields keep no cookies, and stay with their workers.
    pub(super) fn home_of(&mut self, session: Session, allowed: Allowed) -> Option<usize> {
        let any = self.affinity.has_field();
        let serves = |workers: &[Worker], number: u32| {
            let serving = |worker: &Worker| {
                let may = any || allowed.has(worker.generation);
                worker.number == number && may && worker.state == DispatchState::Serving
            };
            workers.iter().position(serving)
        };
        let named = session.named.and_then(|number| serves(&self.workers, number));
        named.or_else(|| serves(&self.workers, self.affinity.worker_of(session)?))
    }

    /// Puts a request into the queue of its session's worker. `None`: its session has no worker, or it has no session.
    /// `Some(false)`: the queue has no room.
    pub(super) fn submit_at_home(&mut self, exchange: &Rc<Exchange>) -> Option<bool> {
        let session = exchange.borrow().request.session?;
        let allowed = self.allowed(&exchange.borrow());
        let home = self.home_of(session, allowed);
        let counts = &mut self.affinity.counts;
        match home {
            Some(_) => counts.kept += 1,
            None if session.is_known => counts.moved += 1,
            None => counts.begun += 1,
        }
        let index = home?;
        let serving = self.workers.iter().filter(|worker| worker.state == DispatchState::Serving).count();
        let share = (self.queue_limit / serving.max(1)).max(1);
        self.workers[index].own.push_back(Rc::clone(exchange));
        self.place_waiting();
        let worker = &mut self.workers;
        let waits = worker.get(index).is_some_and(|worker| worker.own.len() > share);
        Some(!(waits && self.leave_queue(exchange)))
    }

    /// Places requests of sessions with their workers, as far as they are older than `before_us`.
    pub(super) fn place_at_homes(&mut self, before_us: u64) {
        let mut index = 0;
        while index < self.workers.len() {
            let Some(at) = self.workers[index].next_own() else {
                index += 1;
                continue;
            };
            let exchange = Rc::clone(&self.workers[index].own[at]);
            let is_due = exchange.borrow().moments.queued_us <= before_us;
            match if is_due { self.place(index, &exchange) } else { Placing::NoRoom } {
                Placing::Done => drop(self.workers[index].own.remove(at)),
                Placing::NoRoom | Placing::Broken => index += 1,
            }
        }
    }

    /// Whether requests wait for the workers of their sessions.
    pub(super) fn waits_at_homes(&self) -> bool {
        self.workers.iter().any(|worker| !worker.own.is_empty())
    }

    /// Moves a request that waits in the common queue to the queue of its session's worker, if it has one by now.
    pub(super) fn take_home(&mut self, at: usize) -> bool {
        let Some(exchange) = self.queue.get(at).map(Rc::clone) else { return false };
        let (session, allowed) = {
            let inner = exchange.borrow();
            (inner.request.session, self.allowed(&inner))
        };
        let Some(index) = session.and_then(|session| self.home_of(session, allowed)) else { return false };
        self.queue.remove(at);
        self.workers[index].own.push_back(exchange);
        true
    }

    /// The worker gets no more requests: its waiting requests go to the head of the common queue, in their order.
    pub(super) fn release_own(&mut self, index: usize) {
        while let Some(exchange) = self.workers[index].own.pop_back() {
            self.queue.push_front(exchange);
        }
    }

    /// Returns the number of requests that wait for the workers of their sessions.
    pub(super) fn waiting_at_homes(&self) -> usize {
        self.workers.iter().map(|worker| worker.own.len()).sum()
    }

    /// Takes a request out of the queue of its session's worker. `false`: it is not there.
    pub(super) fn leave_home(&mut self, exchange: &Rc<Exchange>) -> bool {
        for worker in &mut self.workers {
            if let Some(at) = worker.own.iter().rposition(|waiting| Rc::ptr_eq(waiting, exchange)) {
                worker.own.remove(at);
                exchange.borrow().place = Place::Connection;
                return true;
            }
        }
        false
    }

    /// The worker for the first request of a session, or for a session whose worker has ended. It stays there, so it goes to
    /// workers that stay; among equally busy ones, to the worker that has waited longest for a session.
    pub(super) fn choose_worker_for_session(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        stays: bool,
    ) -> Option<usize> {
        let order = |worker: &Worker| {
            let goes = worker.generation != self.generations.newest;
            (worker.is_suspect(), worker.rank(), goes, worker.in_flight, worker.got_session)
        };
        let least_busy = |look_ahead| self.first_with_room(exchange, allowed, look_ahead, order);
        least_busy(false).or_else(|| if stays || exchange.is_bound() { None } else { least_busy(true) })
    }

    /// Notes that a request of a session is at this worker.
    pub(super) fn note_at_home(&mut self, index: usize, session: Session) {
        let worker = &mut self.workers[index];
        if session.named != Some(worker.number) {
            self.sessions_given += 1;
            worker.got_session = self.sessions_given;
        }
        self.affinity.note_placed(session, worker.number);
    }
}
