//! Kinds of requests: kinds that wait for long do not get the last places.
//!
//! However many threads a worker may have, there may be more requests that wait, such as for a page that asks a language
//! model. So a worker with a range of threads keeps its last places from kinds that crowd it: kinds with a quarter of its
//! places, or with a place for a quarter of a second. Other requests get these places, and overtake.

use std::collections::HashMap;
use std::rc::Rc;

use super::generations::Allowed;
use super::placing::Placing;
use super::worker::Worker;
use super::Dispatcher;
use crate::clock::now_ms;
use crate::exchange::{Exchange, Place};

/// Share of the places with which a kind crowds a worker.
const CROWD_PART: u32 = 4;
/// Time after which a request counts as waiting for long.
const LONG_MS: u64 = 250;
/// Largest number of waiting requests to consider for the last places.
const MOST_LOOKED_AT: usize = 1024;

/// The facts that decide which worker may take a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct About {
    kind: u64,
    allowed: Allowed,
    stays: bool,
}

/// The worker for a request that waits behind others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Worker(usize),
    /// No worker has room for it.
    Waits,
    /// It belongs to the crowd, and waits for its turn.
    Crowd,
}

impl Worker {
    /// Returns whether a free place may be used for this kind of request.
    pub(super) fn admits(&self, exchange: &Exchange) -> bool {
        self.in_flight < self.common_places || !self.is_crowded_by(exchange.kind())
    }

    fn is_crowded_by(&self, kind: u64) -> bool {
        let crowd = self.ring.geometry().threads / CROWD_PART;
        let now_ms = now_ms();
        let mut number = 0;
        self.slots.iter().zip(&self.placed_ms).any(|(exchange, placed_ms)| {
            let is_same = exchange.as_ref().is_some_and(|exchange| exchange.kind() == kind);
            number += u32::from(is_same);
            is_same && (number >= crowd.max(1) || now_ms.saturating_sub(*placed_ms) > LONG_MS)
        })
    }

    /// Returns whether only the reserved places are left.
    fn has_reserved_left(&self) -> bool {
        self.in_flight >= self.common_places && self.can_begin()
    }
}

impl Dispatcher {
    /// Considers a request that has just come and waits behind others: it may get one of the last places.
    pub(super) fn place_beside_crowd(&mut self, exchange: &Rc<Exchange>) {
        let is_queued = exchange.borrow().place == Place::Queue;
        if is_queued && self.workers.iter().any(|worker| worker.common_places != u32::MAX) {
            self.waits_beside_crowd |= !self.place_reserved(exchange);
        }
    }

    /// Gives the last places to requests that wait behind a crowd. Considers a bounded number of them, and at most one of a
    /// kind for each place.
    pub(super) fn place_waiting_beside_crowd(&mut self) {
        if !self.waits_beside_crowd || !self.has_reserved_left() {
            return;
        }
        let mut known = HashMap::new();
        let mut at = 0;
        let mut waits = false;
        while at < MOST_LOOKED_AT {
            let Some(exchange) = self.queue.get(at) else { break };
            let about = self.about(exchange);
            let chosen = *known.entry(about).or_insert_with(|| self.choose_reserved(exchange, about));
            at += 1;
            let Chosen::Worker(index) = chosen else {
                waits |= chosen == Chosen::Waits;
                continue;
            };
            let exchange = Rc::clone(exchange);
            if self.place_from_queue(index, &exchange) {
                at -= 1;
            }
            known.clear();
            if !self.has_reserved_left() {
                return;
            }
        }
        self.waits_beside_crowd = waits || self.queue.len() > at;
    }

    fn has_reserved_left(&self) -> bool {
        self.workers.iter().any(Worker::has_reserved_left)
    }

    /// Returns false if a request that may get one of the last places waits for it.
    fn place_reserved(&mut self, exchange: &Rc<Exchange>) -> bool {
        match self.choose_reserved(exchange, self.about(exchange)) {
            Chosen::Crowd => true,
            Chosen::Waits => false,
            Chosen::Worker(index) => self.place_from_queue(index, exchange),
        }
    }

    fn about(&self, exchange: &Exchange) -> About {
        let kind = exchange.kind();
        let inner = exchange.borrow();
        About { kind, allowed: self.allowed(&inner), stays: inner.request.stays() }
    }

    fn choose_reserved(&self, exchange: &Exchange, about: About) -> Chosen {
        if self.workers.iter().all(|worker| worker.is_crowded_by(about.kind)) {
            return Chosen::Crowd;
        }
        if exchange.is_bound() {
            return Chosen::Waits; // it goes to the worker of its session
        }
        self.choose_worker(exchange, about.allowed, about.stays).map_or(Chosen::Waits, Chosen::Worker)
    }

    fn place_from_queue(&mut self, index: usize, exchange: &Rc<Exchange>) -> bool {
        let is_done = self.place(index, exchange) == Placing::Done;
        if is_done {
            self.queue.retain(|waiting| !Rc::ptr_eq(waiting, exchange));
        }
        is_done
    }
}
