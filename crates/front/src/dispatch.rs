//! The request queue, and which worker gets the next request.
//!
//! A request goes to the least busy worker, when one has a thread free; else it waits here, in the front's own
//! memory. Where a worker answers in microseconds a few requests are placed ahead in its ring, so that it need
//! not wait for the front between two of them; they are taken back for a worker that has nothing to do.
//!
//! In reading order: [`Dispatcher`] (the queue), [`generations`] (which releases may answer), [`placing`] (which worker gets
//! a request), [`homes`] (requests of sessions that stay with their workers), [`places`] (more threads for requests that wait), [`kinds`] (requests that crowd a worker), [`slow_start`] (a new worker gets few at first), [`ringing`] (waking it), [`answers`] (reading what it writes), [`streams`] (answers that give their places back), [`overruns`] (requests that do not end), [`stall`] (workers that begin none), [`silence`] (workers without signs of life), [`running`] (all of
//! them, for operators), [`workers`] (how they come and go),
//! [`worker`] (one of them), [`events`] (what the supervisor learns).

mod answers;
mod events;
mod generations;
pub(crate) mod geometry;
mod homes;
mod kinds;
mod overrun;
mod overruns;
mod places;
mod placing;
mod ringing;
mod running;
mod service_time;
mod silence;
mod slow_start;
mod stall;
pub(crate) mod streams;
mod wake;
mod worker;
mod workers;

use highball_link::{FrontAppEvent, QueueLoad, WorkerRequests};
use highball_ring::RequestTimes;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use highball_config::{App, Limits};

use crate::affinity::Affinity;
use crate::clock::{now_us, Seldom};
use crate::exchange::{Body, Exchange, Place};
use crate::message::refusal::Refusal;
use crate::refusals::failure::received_us;
use crate::rollout::VisitorRule;
pub(crate) use events::AppEvents;
use generations::Generations;
use slow_start::SlowStart;
use stall::LoopTime;
pub(crate) use worker::DispatchState;
pub(crate) use worker::Standing;
use worker::Worker;

/// The most requests of a worker that are named to a developer who finds the queue full.
const REQUESTS_NAMED: usize = 4;

/// The Retry-After of a refused request, in seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The application's workers and the requests that wait for them.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    workers: Vec<Worker>,
    generations: Generations,
    /// Which version visitors get, while a rollout is under way; and the generation before it.
    rollout: Option<(VisitorRule, u32)>,
    /// New workers that get few requests.
    slow_starts: Vec<SlowStart>,
    queue: VecDeque<Rc<Exchange>>,
    queue_limit: usize,
    /// Sessions that stay with their workers.
    pub(crate) affinity: Affinity,
    /// How often a worker was given a session.
    sessions_given: u64,
    /// Answers of each worker that may go on without a place.
    max_streams: u32,
    /// Requests of each worker that may run on fibers.
    max_fibers: u32,
    /// Bodies may be under way that ought to give their places back.
    has_bodies: bool,
    stream_log: Seldom,
    response_buffer_bytes: usize,
    response_spool_bytes: usize,
    draining: bool,
    /// Requests wait for places that are kept from a crowd, or may.
    waits_beside_crowd: bool,
    /// The number of requests after which a worker is named as warm, if the supervisor asked for that.
    warm_after: Option<u64>,
    /// The supervisor knows that a request waits and no worker serves, or starts workers anyway.
    wanted: bool,
    /// The time by which workers are judged.
    loop_time: LoopTime,
    /// Workers of the application die soon after they were started, as the supervisor says.
    pub(crate) is_crashing: bool,
    events: AppEvents,
    /// Slots with news: scratch space.
    ready: Vec<u16>,
    /// Bytes read from a ring: scratch space.
    bytes: Vec<u8>,
}

impl Dispatcher {
    /// No workers, and an empty queue.
    pub(crate) fn new(limits: &Limits, app: &App, events: AppEvents) -> Self {
        Dispatcher {
            workers: Vec::new(),
            generations: Generations::default(),
            rollout: None,
            slow_starts: Vec::new(),
            queue: VecDeque::new(),
            queue_limit: app.limits.queue,
            affinity: Affinity::new(app.affinity.as_ref()),
            sessions_given: 0,
            max_streams: app.limits.streams,
            max_fibers: app.limits.fibers,
            has_bodies: false,
            stream_log: Seldom::default(),
            response_buffer_bytes: limits.response_buffer_bytes,
            response_spool_bytes: limits.response_spool_bytes,
            draining: false,
            waits_beside_crowd: false,
            warm_after: None,
            wanted: app.prestart,
            loop_time: LoopTime::default(),
            is_crashing: false,
            events,
            ready: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Sets the length of the queue, the number of streams, and whether sessions stay with their workers.
    pub(crate) fn set_limits(&mut self, app: &App) {
        self.queue_limit = app.limits.queue;
        self.max_streams = app.limits.streams;
        self.max_fibers = app.limits.fibers;
        self.affinity.set_way(app.affinity.as_ref());
    }

    /// Requests that wait for a worker.
    pub(crate) fn queue_length(&self) -> usize {
        self.queue.len() + self.waiting_at_homes()
    }

    /// Requests that workers have.
    pub(crate) fn in_flight(&self) -> usize {
        let serving = self.workers.iter().filter(|worker| worker.state == DispatchState::Serving);
        serving.map(|worker| worker.busy_threads() as usize + worker.unclaimed.len()).sum()
    }

    /// How long the request at the head of the queue has waited.
    pub(crate) fn longest_wait_us(&self) -> u64 {
        let heads = self.workers.iter().map(|worker| worker.own.front()).chain([self.queue.front()]);
        let since_us = heads.flatten().map(|exchange| exchange.borrow().moments.queued_us);
        since_us
            .filter(|since_us| *since_us > 0)
            .min()
            .map_or(0, |since_us| now_us().saturating_sub(since_us))
    }

    /// What keeps requests waiting.
    pub(crate) fn load(&self) -> QueueLoad {
        let waiting = self.workers.iter().flat_map(|worker| &worker.own).chain(&self.queue);
        let oldest = waiting.map(|exchange| received_us(&exchange.borrow().request.head)).min();
        let serving = self.workers.iter().filter(|worker| worker.state == DispatchState::Serving);
        QueueLoad {
            waiting: self.queue_length(),
            oldest: oldest.map(|at| Duration::from_micros(now_us().saturating_sub(at))).unwrap_or_default(),
            workers: serving.map(|worker| (worker.number, worker.requests(REQUESTS_NAMED))).collect(),
        }
    }

    /// How things are with each worker.
    pub(crate) fn report(&self) -> Vec<WorkerRequests> {
        let report = |worker: &Worker| WorkerRequests {
            worker: worker.number,
            threads: worker.ring.places() as usize,
            threads_least: worker.ring.geometry().least_threads as usize,
            threads_most: worker.ring.geometry().threads as usize,
            threads_kept_by: worker.kept_by().map(Into::into),
            serves: worker.standing(self.is_crashing) == Standing::Serves,
            is_stuck: worker.standing(self.is_crashing) == Standing::Stuck,
            in_flight: worker.busy_threads() as usize,
            placed: worker.unclaimed.len(),
            streams: worker.stream_count() as usize,
            served: worker.served,
        };
        self.workers.iter().map(report).collect()
    }

    /// How their threads have spent their time with requests.
    pub(crate) fn request_times(&self) -> RequestTimes {
        self.workers.iter().map(|worker| worker.ring.request_times()).sum()
    }

    // --- Requests ----------------------------------------------------------------------------------

    /// Takes a request in: it is placed at once or waits in the queue.
    ///
    /// # Errors
    /// The queue is full.
    pub(crate) fn submit(&mut self, exchange: &Rc<Exchange>) -> Result<(), Refusal> {
        exchange.borrow().place = Place::Queue;
        match self.submit_at_home(exchange) {
            Some(true) => return Ok(()),
            Some(false) => return Err(Refusal::QueueFull { retry_after_seconds: RETRY_AFTER_SECONDS }),
            None => {}
        }
        self.queue.push_back(Rc::clone(exchange));
        self.place_waiting();
        self.place_beside_crowd(exchange);
        // A worker may have begun it while others wait that a broken worker has given back.
        if self.queue.len() > self.queue_limit && self.leave_queue(exchange) {
            return Err(Refusal::QueueFull { retry_after_seconds: RETRY_AFTER_SECONDS });
        }
        self.tell_if_wanted();
        Ok(())
    }

    /// Takes a request out of the queue. `false`: it is not there.
    fn leave_queue(&mut self, exchange: &Rc<Exchange>) -> bool {
        let Some(at) = self.queue.iter().rposition(|waiting| Rc::ptr_eq(waiting, exchange)) else {
            return self.leave_home(exchange);
        };
        self.queue.remove(at);
        exchange.borrow().place = Place::Connection;
        true
    }

    /// Reports, once, that requests wait and no worker serves.
    fn tell_if_wanted(&mut self) {
        if !self.queue.is_empty() && !self.wanted && !self.is_served() {
            self.wanted = true;
            self.events.send(FrontAppEvent::Wanted);
        }
    }

    /// Refuses all that waits, if no worker serves.
    pub(crate) fn refuse_waiting(&mut self, refusal: Refusal) {
        if self.is_served() {
            return;
        }
        self.wanted = false;
        for exchange in std::mem::take(&mut self.queue) {
            fail(&exchange, refusal);
        }
    }

    /// Gives requests that wait back to their connections, if they may be for files: where those are is known by now.
    pub(crate) fn give_back(&mut self) {
        self.queue.retain(|exchange| {
            let mut inner = exchange.borrow();
            if inner.request.received.is_empty() {
                return true;
            }
            inner.place = Place::Connection;
            inner.response.give_back();
            drop(inner);
            exchange.wake();
            false
        });
    }

    /// How the best of its workers stands; `None`: none gets requests from clients.
    pub(crate) fn standing(&self) -> Option<Standing> {
        let serving = self.workers.iter().filter(|worker| worker.state == DispatchState::Serving);
        serving.map(|worker| worker.standing(self.is_crashing)).min()
    }

    /// Whether there is a worker for clients' requests.
    pub(crate) fn is_served(&self) -> bool {
        self.workers.iter().any(|worker| worker.state == DispatchState::Serving)
    }

    /// Whether this worker gets no more requests, in order.
    pub(crate) fn has_retired(&self, number: u32) -> bool {
        let state = self.position(number).map(|index| self.workers[index].state);
        matches!(state, Some(DispatchState::Retiring | DispatchState::Retired))
    }

    /// Whether a worker can begin another request at once.
    pub(crate) fn has_thread_free(&self) -> bool {
        self.workers.iter().any(Worker::has_thread_free)
    }

    /// The answers that its workers have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.workers.iter().map(|worker| worker.served).sum()
    }

    /// Whether a worker is expected since a request waits for it, or from the start.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Whether nothing waits, and no worker has anything to say.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.workers.iter().all(Worker::is_idle)
    }

    /// Whether it is quiet, and no connection has been taken over.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_quiet() && !self.workers.iter().any(Worker::holds_what_lasts)
    }

    /// The client does not wait for the answer any more. A request that was not begun is as if it had never come. If
    /// it was, its answer is dropped as it comes.
    pub(crate) fn cancel(&mut self, exchange: &Rc<Exchange>) {
        let (place, taken_over_by) = {
            let mut inner = exchange.borrow();
            (inner.place, inner.taken_over_by.take())
        };
        if let Some(index) = taken_over_by.and_then(|number| self.position(number)) {
            self.workers[index].hijacked -= 1;
            self.settle();
        }
        match place {
            Place::Connection => {}
            Place::Stream(number, ticket) => {
                self.note_overrun_of_fiber(exchange, number, ticket);
                exchange.borrow().response.discard();
                self.end_stream(exchange);
            }
            Place::Queue => drop(self.leave_queue(exchange)),
            Place::Worker(number, ticket) => {
                let Some(index) = self.position(number) else { return };
                let worker = &mut self.workers[index];
                if worker.take_back(ticket).is_some() {
                    exchange.borrow().place = Place::Connection;
                    self.settle();
                } else {
                    worker.ring.cancel(ticket.slot);
                    let mut inner = exchange.borrow();
                    let progress = inner.response.progress();
                    inner.response.discard();
                    inner.request.body = Body::None;
                    drop(inner);
                    self.pull(exchange);
                    self.note_overrun(exchange, progress);
                }
            }
        }
    }

    fn position(&self, number: u32) -> Option<usize> {
        self.workers.iter().position(|worker| worker.number == number)
    }

    /// Whether the server stops, or has been succeeded by another.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// From now on every answer is the last of its connection.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        self.workers_changed();
    }
}

/// No worker gets this request any more.
fn fail(exchange: &Exchange, refusal: Refusal) {
    let mut inner = exchange.borrow();
    inner.place = Place::Connection;
    (inner.is_to_leave, inner.offered, inner.head_ms) = (false, None, 0);
    inner.response.fail(refusal);
    drop(inner);
    exchange.wake();
}
