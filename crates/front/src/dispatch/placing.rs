//! Which worker gets the next request, and which gives one back.

use std::os::fd::AsFd;
use std::rc::Rc;

use highball_link::FrontAppEvent;

use super::generations::Allowed;
use super::worker::{DispatchState, Worker};
use super::{fail, Dispatcher};
use crate::clock::now_us;
use crate::exchange::{Body, Exchange, Place};
use crate::message::refusal::Refusal;
use crate::message::request_head::patch_body;

/// What became of an attempt to place a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placing {
    /// It waits no longer.
    Done,
    /// There is no room after all.
    NoRoom,
    /// The worker is broken; another may have room.
    Broken,
}

/// Which requests are taken back from a worker that has not begun them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakeBack {
    All,
    /// Requests whose sessions do not stay with it.
    Unbound,
}

impl Dispatcher {
    /// Places what waits, as far as there are workers for it: older requests first.
    pub(super) fn place_waiting(&mut self) {
        if !self.waits_at_homes() {
            self.place_queue();
            // A request may have found the worker of its session on the way.
            if self.waits_at_homes() {
                self.place_at_homes(u64::MAX);
            }
            return;
        }
        let next = self.queue.front().map(|exchange| exchange.borrow().moments.queued_us);
        self.place_at_homes(next.unwrap_or(u64::MAX));
        self.place_queue();
        self.place_at_homes(u64::MAX);
    }

    /// Places what waits in the common queue. During a restart, requests that have to wait for the
    /// new generation do not hold up the requests behind them.
    fn place_queue(&mut self) {
        let mut at = 0;
        let mut full_from = u32::MAX; // for these generations and later ones there is no room
        let mut is_old_full = false; // there is none in a rollout's old version
        while let Some(exchange) = self.queue.get(at) {
            let inner = exchange.borrow();
            let allowed = self.allowed(&inner);
            let stays = inner.request.stays();
            let is_for_web_socket = inner.request.is_for_web_socket;
            let has_session = inner.request.session.is_some();
            drop(inner);
            if has_session && self.take_home(at) {
                continue;
            }
            if allowed.oldest >= full_from || (is_old_full && allowed.is_of_old()) {
                at += 1;
                continue;
            }
            let Some(exchange) = self.queue.get(at).map(Rc::clone) else { return };
            let chosen = match is_for_web_socket && !stays {
                _ if has_session => self.choose_worker_for_session(&exchange, allowed, stays),
                true => self.choose_worker_for_web_socket(&exchange, allowed),
                false => self.choose_worker(&exchange, allowed, stays),
            };
            match chosen.map_or(Placing::NoRoom, |index| self.place(index, &exchange)) {
                Placing::Done => drop(self.queue.remove(at)),
                Placing::NoRoom if allowed.is_of_old() => is_old_full = true,
                Placing::NoRoom if allowed.oldest <= self.generations.oldest => return,
                Placing::NoRoom => full_from = allowed.oldest,
                Placing::Broken => {
                    // What it had not begun now stands before this one.
                    at = 0;
                    full_from = u32::MAX;
                    is_old_full = false;
                }
            }
        }
    }

    /// The least busy worker with a thread free; failing that, the one with the fewest requests among the
    /// workers that may be given some ahead: not if it stays where it is placed.
    ///
    /// Only workers of allowed generations. Prefers older generations: a connection stays with a
    /// newer one, which has only one worker at the beginning of a restart.
    pub(super) fn choose_worker(&self, exchange: &Exchange, allowed: Allowed, stays: bool) -> Option<usize> {
        let rested = self.rested_worker(|worker| can_take(worker, exchange, allowed, false));
        if rested.is_some() {
            return rested;
        }
        let order = |worker: &Worker| {
            let is_spared = self.is_spared(worker, allowed);
            (is_spared, worker.is_suspect(), worker.rank(), worker.generation, worker.in_flight)
        };
        let least_busy = |look_ahead| {
            let first = self.first_with_room(exchange, allowed, look_ahead, order);
            first.filter(|index| !self.is_spared(&self.workers[*index], allowed))
        };
        least_busy(false).or_else(|| if stays { None } else { least_busy(true) })
    }

    /// A WebSocket stays with its worker, long after the moment at which one is the least busy: so they are shared out by
    /// number. In a restart they go to workers that stay, as a client would soon have to connect again.
    fn choose_worker_for_web_socket(&self, exchange: &Exchange, allowed: Allowed) -> Option<usize> {
        let order = |worker: &Worker| {
            let goes = worker.generation != self.generations.newest;
            // WebSockets that it is about to accept are among its requests.
            (worker.is_suspect(), worker.rank(), goes, worker.hijacked + worker.in_flight)
        };
        let fewest = |look_ahead| self.first_with_room(exchange, allowed, look_ahead, order);
        fewest(false).or_else(|| fewest(true))
    }

    /// Of the workers of allowed generations that have room, the first in this order.
    pub(super) fn first_with_room<Key: Ord>(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        look_ahead: bool,
        order: impl Fn(&Worker) -> Key,
    ) -> Option<usize> {
        let workers = self.workers.iter().enumerate();
        let workers = workers.filter(|(_, worker)| can_take(worker, exchange, allowed, look_ahead));
        workers.min_by_key(|(_, worker)| order(worker)).map(|(index, _)| index)
    }

    /// Puts a request into a worker's ring.
    pub(super) fn place(&mut self, index: usize, exchange: &Rc<Exchange>) -> Placing {
        let mut inner = exchange.borrow();
        let on_fiber = inner.request.on_fiber;
        let sockets = match on_fiber.then(|| self.sockets_of_fiber(index)).transpose() {
            Ok(sockets) => sockets,
            Err(refusal) => {
                drop(inner);
                fail(exchange, refusal);
                return Placing::Done;
            }
        };
        let worker = &mut self.workers[index];
        let request = &mut inner.request;
        let socket = sockets.as_ref().map(|(_, theirs)| theirs.as_fd());
        let ticket = match &request.body {
            Body::None => worker.ring.place(&request.head, b"", socket),
            Body::Memory(bytes) => {
                patch_body(&mut request.head, highball_ring::request::BODY_INLINE, bytes.len() as u64);
                worker.ring.place(&request.head, bytes, socket)
            }
            Body::Spooled(file) => {
                patch_body(&mut request.head, highball_ring::request::BODY_SPOOLED, file.length());
                match file.reader() {
                    Ok(file) => worker.ring.place(&request.head, b"", Some(file.as_fd())),
                    Err(error) => {
                        drop(inner);
                        give_up_spooled(exchange, &error);
                        return Placing::Done;
                    }
                }
            }
        };
        match ticket {
            Ok(Some(ticket)) => {
                inner.place = Place::Worker(worker.number, ticket);
                inner.moments.worker = worker.number;
                inner.response.runs_on_fiber(on_fiber);
                inner.offered = sockets.map(|(ours, _)| ours);
                if inner.moments.are_measured {
                    inner.moments.placed_us = now_us();
                }
                let session = inner.request.session;
                let spooled = match &inner.request.body {
                    Body::Spooled(file) => Some(Rc::clone(file)),
                    Body::None | Body::Memory(_) => None,
                };
                drop(inner);
                worker.placed(ticket, Rc::clone(exchange), spooled);
                if worker.ring.ends_soon() && !std::mem::replace(&mut worker.ends_soon, true) {
                    self.events.send(FrontAppEvent::RingEndsSoon { worker: worker.number });
                }
                session.into_iter().for_each(|session| self.note_at_home(index, session));
                Placing::Done
            }
            Ok(None) => Placing::NoRoom,
            Err(error) => {
                // Its end of the descriptor socket is gone: it has died, or closed what it must not close.
                drop(inner);
                self.worker_is_broken(index, &error);
                Placing::Broken
            }
        }
    }

    /// After something has ended: what waits is placed, first of all what a worker does not begin; and an idle worker
    /// takes over from busy ones.
    pub(super) fn settle(&mut self) {
        self.take_back_overdue();
        self.place_waiting();
        self.place_waiting_beside_crowd();
        if self.queue.is_empty() {
            self.share_out();
        }
        self.want_no_needless_places();
        for worker in &mut self.workers {
            let is_stuck = worker.is_stuck();
            let has_finished = (worker.is_idle() || is_stuck) && !worker.holds_what_lasts();
            if worker.state == DispatchState::Retiring && has_finished {
                worker.state = DispatchState::Retired;
                self.events.send(FrontAppEvent::WorkerIdle { worker: worker.number, is_stuck });
            }
        }
    }

    /// Takes back what a worker does not begin, once a better worker can: until then, it would only be given
    /// to the same again. (Other workers do not answer a canary's request.)
    fn take_back_overdue(&mut self) {
        let apart = self.holds_versions_apart();
        for index in 0..self.workers.len() {
            let slow = &self.workers[index];
            let is_better = |(at, other): (usize, &Worker)| {
                let is_allowed = !apart || other.generation == slow.generation;
                at != index && is_allowed && other.can_begin() && other.unresponsive <= slow.unresponsive
            };
            if slow.is_overdue()
                && !matches!(slow.state, DispatchState::Canary | DispatchState::Broken)
                && self.workers.iter().enumerate().any(is_better)
            {
                self.take_back_unbegun(index, TakeBack::Unbound);
            }
        }
    }

    /// Takes requests back that wait behind others, for workers that have threads to spare.
    fn share_out(&mut self) {
        if !self.workers.iter().any(|worker| worker.in_flight > 1 && !worker.unclaimed.is_empty()) {
            return;
        }
        for index in 0..self.workers.len() {
            while self.workers[index].has_thread_free() {
                let Some(exchange) = self.take_from_slowest(index) else { break };
                if self.place(index, &exchange) != Placing::Done {
                    self.requeue(exchange);
                    return self.place_waiting();
                }
            }
        }
    }

    /// Takes a request back for the worker at `index`, from the worker that has ended nothing for the longest time, if
    /// there is one where requests wait for others to end; for an idle one also if they only wait for a thread to
    /// look. (Not from a newer generation: its connections may know it already.)
    fn take_from_slowest(&mut self, index: usize) -> Option<Rc<Exchange>> {
        let (for_idle, generation) = (self.workers[index].is_idle(), self.workers[index].generation);
        let apart = self.holds_versions_apart();
        let mut asked = None;
        loop {
            let waits = |worker: &&mut Worker| {
                let enough = if for_idle { 1 } else { worker.ring.places() };
                let more = worker.in_flight > enough && !worker.unclaimed.is_empty();
                worker.generation <= generation
                    && (!apart || worker.generation == generation)
                    && more
                    && asked.is_none_or(|asked| worker.time.since() > asked)
            };
            let slowest = self.workers.iter_mut().filter(waits).min_by_key(|worker| worker.time.since())?;
            asked = Some(slowest.time.since());
            if let Some(exchange) = slowest.take_back_first() {
                return Some(exchange);
            }
        }
    }

    /// Back to the head of the queue: it has waited before. (Unless the client does not wait for its answer any more.)
    pub(super) fn requeue(&mut self, exchange: Rc<Exchange>) {
        let mut inner = exchange.borrow();
        if inner.response.is_discarded() {
            inner.place = Place::Connection;
            return;
        }
        inner.response.restart();
        inner.place = Place::Queue;
        inner.offered = None;
        drop(inner);
        self.queue.push_front(exchange);
    }
}

/// Whether the worker has room for this request.
fn can_take(worker: &Worker, exchange: &Exchange, allowed: Allowed, look_ahead: bool) -> bool {
    worker.state == DispatchState::Serving
        && allowed.has(worker.generation)
        && worker.in_flight < worker.capacity(look_ahead)
        && worker.ring.has_room()
        && worker.admits(exchange)
}

/// The request's spool file cannot be sent to any worker: too many files are open.
fn give_up_spooled(exchange: &Exchange, error: &std::io::Error) {
    tracing::error!(
        name: "request_body_not_opened",
        %error, "the file of a request body could not be opened for a worker; if files have run out, raise the limit (ulimit -n)"
    );
    fail(exchange, Refusal::BodyNotStored);
}
