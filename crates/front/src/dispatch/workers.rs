//! Workers that come and go, and where their requests go then.

use std::rc::Rc;

use highball_link::{FrontAppEvent, NewWorker};
use highball_ring::RingError;

use super::placing::{Placing, TakeBack};
use super::worker::{DispatchState, Worker};
use super::{fail, wake, Dispatcher};
use crate::exchange::response::Progress;
use crate::exchange::Exchange;
use crate::message::refusal::Refusal;

impl Dispatcher {
    /// Adds a worker. `false`: it cannot be used, and the supervisor knows.
    pub(crate) fn add_worker(&mut self, new: NewWorker, state: DispatchState) -> bool {
        match wake::watch(&new.ring) {
            Ok(wake) => self.workers.push(Worker::new(new, state, wake)),
            Err(error) => {
                let why = format!("its ring cannot be watched: {error}");
                self.events.send(FrontAppEvent::WorkerBroken { worker: new.worker, why });
                return false;
            }
        }
        self.workers_changed();
        true
    }

    /// Gives a canary a request of the front's own: it gets no others before it is admitted. `false`: it is not there any more.
    pub(crate) fn submit_to_canary(&mut self, number: u32, exchange: &Rc<Exchange>) -> bool {
        let index = self.position(number).filter(|index| self.workers[*index].state == DispatchState::Canary);
        index.is_some_and(|index| self.place(index, exchange) == Placing::Done)
    }

    /// A canary may have clients' requests.
    pub(crate) fn admit_canary(&mut self, number: u32) {
        let Some(index) = self.position(number) else { return };
        if self.workers[index].state == DispatchState::Canary {
            self.workers[index].state = DispatchState::Serving;
            self.begin_slow_start(index);
            self.workers_changed();
        }
    }

    /// Call when the set of serving workers changes.
    pub(super) fn workers_changed(&mut self) {
        self.note_generations();
        self.settle();
        self.wanted &= !self.is_served();
        self.tell_if_wanted();
    }

    /// Counts the requests of each worker from now on. The first to answer this number is named.
    pub(crate) fn name_warm_worker(&mut self, requests: u64) {
        self.warm_after = Some(requests);
        let most =
            self.workers.iter().enumerate().filter(|(_, worker)| worker.state == DispatchState::Serving);
        let most = most.max_by_key(|(_, worker)| worker.served).map(|(index, _)| index);
        for worker in &mut self.workers {
            worker.counted_from = worker.served;
        }
        if let Some(index) = most {
            self.look_whether_warm(index);
        }
    }

    pub(super) fn look_whether_warm(&mut self, index: usize) {
        let Some(requests) = self.warm_after else { return };
        let worker = &self.workers[index];
        if worker.state == DispatchState::Serving && worker.served - worker.counted_from >= requests {
            let number = worker.number;
            self.warm_after = None;
            self.events.send(FrontAppEvent::WorkerWarm { worker: number });
        }
    }

    /// Nothing more is placed with a worker; what it has not begun goes to others. `true`: its application has taken
    /// connections over, whose time is limited from now on.
    pub(crate) fn retire_worker(&mut self, number: u32) -> bool {
        let Some(index) = self.position(number) else { return false };
        let has_hijacked = self.workers[index].hijacked > 0;
        self.workers[index].ring.retire();
        self.take_back_unbegun(index, TakeBack::All);
        if matches!(self.workers[index].state, DispatchState::Serving | DispatchState::Canary) {
            self.workers[index].state = DispatchState::Retiring;
        }
        self.release_own(index);
        self.workers_changed();
        has_hijacked
    }

    /// The same, unless something lasts that would end with it: then the supervisor gets to know that it serves on. Whether it
    /// retires.
    pub(crate) fn relieve_worker(&mut self, number: u32) -> bool {
        let Some(index) = self.position(number) else { return false };
        let worker = &self.workers[index];
        let is_kept = worker.holds_what_lasts() || worker.begins_what_lasts();
        if is_kept {
            self.events.send(FrontAppEvent::WorkerKept { worker: number });
        } else {
            self.retire_worker(number);
        }
        !is_kept
    }

    /// Whether the worker that has taken this connection over is to end.
    pub(crate) fn is_leaving(&self, exchange: &Exchange) -> bool {
        let taken_over_by = exchange.borrow().taken_over_by;
        let index = taken_over_by.and_then(|number| self.position(number));
        index.is_some_and(|index| self.workers[index].state == DispatchState::Retiring)
    }

    /// A worker is dead. What it wrote before is still good; what it had not begun goes to others; what it had
    /// begun is repeated if it may be, else refused or cut off. What was still under way when a retiring worker was
    /// `killed` for that is not repeated: a loop without end would go on in the worker that takes its place.
    pub(crate) fn remove_worker(&mut self, number: u32, killed: bool) {
        let Some(index) = self.position(number) else { return };
        if self.workers[index].state != DispatchState::Broken {
            for slot in 0..self.workers[index].slots.len() as u16 {
                // All that is left, room or not: it is at most what the response areas hold. What is wrong with it is
                // found once the worker is gone: its answer has not ended.
                let _ = self.read_slot(index, slot, usize::MAX);
            }
            self.workers[index].ring.retire();
            self.take_back_unbegun(index, TakeBack::All);
        }
        self.release_own(index);
        let worker = self.workers.swap_remove(index);
        for exchange in worker.streams {
            if let Some(stream) = &mut exchange.borrow().stream {
                stream.worker_has_died = true;
            }
            exchange.wake();
        }
        let had_its_time = killed && worker.state == DispatchState::Retiring;
        self.repeat_or_fail(number, worker.slots, !had_its_time);
        self.workers_changed();
    }

    /// The worker broke the protocol: only its own requests fail, and the supervisor replaces it.
    pub(super) fn worker_is_broken(&mut self, index: usize, breach: &RingError) {
        self.workers[index].ring.retire();
        self.take_back_unbegun(index, TakeBack::All);
        let worker = &mut self.workers[index];
        worker.state = DispatchState::Broken;
        worker.in_flight = 0;
        worker.overruns.clear();
        worker.unclaimed.clear();
        let slots = std::mem::take(&mut worker.slots);
        let number = worker.number;
        worker.slots = slots.iter().map(|_| None).collect();
        self.release_own(index);
        self.note_generations();
        self.events.send(FrontAppEvent::WorkerBroken { worker: number, why: breach.to_string() });
        self.repeat_or_fail(number, slots, true);
    }

    /// Takes back what a worker has not begun, to the head of the queue, in its order. (Other workers do not answer a
    /// canary's request.)
    pub(super) fn take_back_unbegun(&mut self, index: usize, which: TakeBack) {
        let is_canary = self.workers[index].state == DispatchState::Canary;
        let number = self.workers[index].number;
        let unbegun = self.workers[index].unclaimed.clone();
        for ticket in unbegun.into_iter().rev() {
            if which == TakeBack::Unbound && self.workers[index].is_bound(ticket) {
                continue;
            }
            match self.workers[index].take_back(ticket) {
                Some(exchange) if is_canary => fail(&exchange, Refusal::WorkerDied { worker: number }),
                Some(exchange) => self.requeue(exchange),
                None => {}
            }
        }
    }

    /// Repeats or fails the requests that this worker had begun. `may`: repeatable ones are repeated.
    fn repeat_or_fail(&mut self, worker: u32, slots: Vec<Option<Rc<Exchange>>>, may: bool) {
        for exchange in slots.into_iter().flatten() {
            let mut inner = exchange.borrow();
            let repeat = may && inner.request.repeatable && inner.response.progress() == Progress::Waiting;
            if repeat && !inner.response.is_discarded() {
                inner.request.repeatable = false;
                inner.request.repeated = true;
                drop(inner);
                self.requeue(exchange);
            } else {
                drop(inner);
                fail(&exchange, Refusal::WorkerDied { worker });
            }
        }
    }
}
