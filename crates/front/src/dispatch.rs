//! The request queue, and which worker gets the next request.
//!
//! A request goes to the least busy worker, when one has a thread free; else it waits here, in the front's own
//! memory. Where a worker answers in microseconds a few requests are placed ahead in its ring, so that it need
//! not wait for the front between two of them; they are taken back for a worker that has nothing to do.

mod service_time;
mod wake;
mod worker;

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use highball_config::{App, Limits};
use highball_ring::{FrontRing, RingError};

use crate::app_state::AppEvents;
use crate::clock::now_us;
use crate::exchange::{Body, Exchange, Place};
use crate::failure::{received_us, Load};
use crate::refusal::Refusal;
use crate::request_head::patch_body;
use crate::response::{Descriptors, Progress};
use crate::{AppEvent, NewWorker, WorkerReport};
pub(crate) use worker::DispatchState;
use worker::Worker;

/// Response bytes taken from a ring at a time.
const READ_BYTES: usize = 64 * 1024;

/// How often a slot is read before others get their turn: of a body that is dropped there may always be more.
const READS: u32 = 4;

/// The most requests of a worker that are named to a developer who finds the queue full.
const REQUESTS_NAMED: usize = 4;

/// The Retry-After of a refused request, in seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// What became of an attempt to place a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placing {
    /// It waits no longer.
    Done,
    /// There is no room after all.
    NoRoom,
    /// The worker is broken; another may have room.
    Broken,
}

/// Which generations of workers clients' requests may go to.
#[derive(Debug, Clone, Copy, Default)]
struct Generations {
    /// The oldest that serves.
    oldest: u32,
    /// The newest that has served, and was not withdrawn. Its workers may all have died; others will come, unless the
    /// server is stopping: then it is the newest that serves.
    newest: u32,
    /// The one whose restart was taken back last. What serves of it does so until it is replaced.
    withdrawn: u32,
}

impl Generations {
    /// The oldest generation that may answer on a connection where `answered` was the last to do so. Where that was
    /// withdrawn, whatever there is has to do.
    fn oldest_after(self, answered: u32) -> u32 {
        answered.min(self.newest)
    }
}

/// The application's workers and the requests that wait for them.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    workers: Vec<Worker>,
    generations: Generations,
    queue: VecDeque<Rc<Exchange>>,
    queue_limit: usize,
    response_buffer_bytes: usize,
    response_spool_bytes: usize,
    draining: bool,
    /// The number of requests after which a worker is named as warm, if the supervisor asked for that.
    warm_after: Option<u64>,
    /// The supervisor knows that a request waits and no worker serves, or starts workers anyway.
    wanted: bool,
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
            queue: VecDeque::new(),
            queue_limit: app.limits.queue,
            response_buffer_bytes: limits.response_buffer_bytes,
            response_spool_bytes: limits.response_spool_bytes,
            draining: false,
            warm_after: None,
            wanted: app.prestart,
            events,
            ready: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Sets the length of the queue.
    pub(crate) fn set_queue_limit(&mut self, most: usize) {
        self.queue_limit = most;
    }

    /// Requests that wait for a worker.
    pub(crate) fn queue_length(&self) -> usize {
        self.queue.len()
    }

    /// What keeps requests waiting.
    pub(crate) fn load(&self) -> Load {
        let oldest = self.queue.iter().map(|exchange| received_us(&exchange.borrow().request.head)).min();
        let serving = self.workers.iter().filter(|worker| worker.state == DispatchState::Serving);
        Load {
            waiting: self.queue.len(),
            oldest: oldest.map(|at| Duration::from_micros(now_us().saturating_sub(at))).unwrap_or_default(),
            workers: serving.map(|worker| (worker.number, worker.requests(REQUESTS_NAMED))).collect(),
        }
    }

    /// How things are with each worker.
    pub(crate) fn report(&self) -> Vec<WorkerReport> {
        let report = |worker: &Worker| WorkerReport {
            worker: worker.number,
            in_flight: worker.busy_threads() as usize,
            placed: worker.unclaimed.len(),
            served: worker.served,
        };
        self.workers.iter().map(report).collect()
    }

    // --- Requests ----------------------------------------------------------------------------------

    /// Takes a request in: it is placed at once or waits in the queue.
    ///
    /// # Errors
    /// The queue is full.
    pub(crate) fn submit(&mut self, exchange: &Rc<Exchange>) -> Result<(), Refusal> {
        exchange.borrow().place = Place::Queue;
        self.queue.push_back(Rc::clone(exchange));
        self.place_waiting();
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
            return false;
        };
        self.queue.remove(at);
        exchange.borrow().place = Place::Connection;
        true
    }

    /// Reports, once, that requests wait and no worker serves.
    fn tell_if_wanted(&mut self) {
        if !self.queue.is_empty() && !self.wanted && !self.is_served() {
            self.wanted = true;
            self.events.send(AppEvent::Wanted);
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

    /// Whether there is a worker for clients' requests.
    pub(crate) fn is_served(&self) -> bool {
        self.workers.iter().any(|worker| worker.state == DispatchState::Serving)
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
        self.is_quiet() && self.workers.iter().all(|worker| worker.hijacked == 0)
    }

    /// The client does not wait for the answer any more. A request that was not begun is as if it had never come; of
    /// one that was, the answer is dropped as it comes.
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
                    inner.response.discard();
                    inner.request.body = Body::None;
                    drop(inner);
                    self.pull(exchange);
                }
            }
        }
    }

    /// The connection has room for more of the answer again.
    pub(crate) fn pull(&mut self, exchange: &Exchange) {
        let place = exchange.borrow().place;
        if let Place::Worker(number, ticket) = place {
            if let Some(index) = self.position(number) {
                self.read_slots(index, &[ticket.slot]);
                self.settle();
            }
        }
    }

    /// Places what waits, as far as there are workers for it. During a restart, those that have to wait for the new
    /// generation do not hold up those behind them.
    fn place_waiting(&mut self) {
        let mut at = 0;
        let mut full_from = u32::MAX; // for these generations and later ones there is no room
        while let Some(exchange) = self.queue.get(at) {
            let inner = exchange.borrow();
            let oldest = self.generations.oldest_after(inner.generation);
            let spooled = matches!(inner.request.body, Body::Spooled(_));
            drop(inner);
            if oldest >= full_from {
                at += 1;
                continue;
            }
            let exchange = Rc::clone(exchange);
            let chosen = self.choose_worker(oldest, spooled);
            match chosen.map_or(Placing::NoRoom, |index| self.place(index, &exchange)) {
                Placing::Done => drop(self.queue.remove(at)),
                Placing::NoRoom if oldest <= self.generations.oldest => return,
                Placing::NoRoom => full_from = oldest,
                Placing::Broken => {
                    // What it had not begun now stands before this one.
                    at = 0;
                    full_from = u32::MAX;
                }
            }
        }
    }

    /// The least busy worker with a thread free; failing that, the one with the fewest requests among those
    /// that may be given some ahead. (Not a spooled body: its file has gone already when it is taken back.)
    ///
    /// No worker older than generation `oldest`. Of those that may, the older ones come first: every connection that
    /// meets the new generation depends on it from then on, and in the middle of a restart that is one worker.
    fn choose_worker(&self, oldest: u32, spooled: bool) -> Option<usize> {
        let least_busy = |look_ahead: bool| {
            let can_take = |worker: &Worker| {
                worker.state == DispatchState::Serving
                    && worker.generation >= oldest
                    && worker.in_flight < worker.capacity(look_ahead)
                    && worker.ring.has_room()
            };
            let workers = self.workers.iter().enumerate().filter(|(_, worker)| can_take(worker));
            let order = |worker: &Worker| (worker.unresponsive, worker.generation, worker.in_flight);
            workers.min_by_key(|(_, worker)| order(worker)).map(|(index, _)| index)
        };
        least_busy(false).or_else(|| if spooled { None } else { least_busy(true) })
    }

    /// Puts a request into a worker's ring.
    fn place(&mut self, index: usize, exchange: &Rc<Exchange>) -> Placing {
        let worker = &mut self.workers[index];
        let mut inner = exchange.borrow();
        let request = &mut inner.request;
        let ticket = match &request.body {
            Body::None => worker.ring.place(&request.head, b"", None),
            Body::Memory(bytes) => {
                patch_body(&mut request.head, highball_ring::request::BODY_INLINE, bytes.len() as u64);
                worker.ring.place(&request.head, bytes, None)
            }
            Body::Spooled(file) => {
                patch_body(&mut request.head, highball_ring::request::BODY_SPOOLED, file.length());
                match file.reopen_read_only() {
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
                let spooled = match &inner.request.body {
                    Body::Spooled(file) => Some(Rc::clone(file)),
                    Body::None | Body::Memory(_) => None,
                };
                drop(inner);
                worker.placed(ticket, Rc::clone(exchange), spooled);
                if worker.ring.ends_soon() && !std::mem::replace(&mut worker.ends_soon, true) {
                    self.events.send(AppEvent::RingEndsSoon { worker: worker.number });
                }
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

    // --- Answers -----------------------------------------------------------------------------------

    /// Reads what workers have written. Called once per turn of the event loop.
    pub(crate) fn read_rings(&mut self) {
        let mut progress = false;
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            if worker.state == DispatchState::Broken || worker.in_flight == 0 || !worker.ring.any_ready() {
                continue;
            }
            let mut ready = std::mem::take(&mut self.ready);
            worker.ring.take_ready(|_, slot| ready.push(slot));
            self.read_slots(index, &ready);
            ready.clear();
            self.ready = ready;
            progress = true;
        }
        if progress {
            self.settle();
        }
    }

    /// Reads the new bytes of these slots of a worker.
    fn read_slots(&mut self, index: usize, slots: &[u16]) {
        let mut ended = 0;
        for &slot in slots {
            match self.read_slot(index, slot, 0) {
                Ok(true) => ended += 1,
                Ok(false) => {}
                Err(breach) => return self.worker_is_broken(index, &breach),
            }
        }
        if ended > 0 {
            self.workers[index].time.ended(ended, Instant::now());
            self.look_whether_warm(index);
        }
    }

    /// Reads the new bytes of a slot, as far as its connection has room for them, and up to `beyond_bytes` beyond that.
    /// `true`: the answer has ended.
    fn read_slot(&mut self, index: usize, slot: u16, beyond_bytes: usize) -> Result<bool, RingError> {
        let worker = &mut self.workers[index];
        // A bit may be set for a slot that has nothing to say any more.
        let Some(exchange) = worker.slots[usize::from(slot)].clone() else {
            return Ok(false);
        };
        let mut inner = exchange.borrow();
        let bytes = &mut self.bytes;
        let mut news = false;
        for read in 1..=READS {
            let room = inner.response.room(self.response_buffer_bytes, self.response_spool_bytes);
            bytes.clear();
            if worker.ring.read(slot, room.saturating_add(beyond_bytes).min(READ_BYTES), bytes)? == 0 {
                break;
            }
            inner.generation = worker.generation;
            let ring = &mut worker.ring;
            inner.response.feed(bytes, &mut OfSlot { ring: &mut *ring, slot })?;
            if inner.response.is_taken_over() && inner.taken_over_by.is_none() {
                inner.taken_over_by = Some(worker.number);
                worker.hijacked += 1;
            }
            news = true;
            if read == READS {
                ring.look_again(slot);
            }
        }
        let ended = inner.response.worker_is_done();
        if ended {
            inner.place = Place::Connection;
            worker.ended(slot);
        }
        drop(inner);
        if news {
            exchange.wake();
        }
        Ok(ended)
    }

    /// After something has ended: what waits is placed, first of all what a worker does not begin; and an idle worker
    /// takes over from busy ones.
    fn settle(&mut self) {
        self.take_back_overdue();
        self.place_waiting();
        if self.queue.is_empty() {
            self.share_out();
        }
        for worker in &mut self.workers {
            if worker.state == DispatchState::Retiring && worker.is_idle() && worker.hijacked == 0 {
                worker.state = DispatchState::Retired;
                self.events.send(AppEvent::WorkerIdle { worker: worker.number });
            }
        }
    }

    /// Takes back what a worker does not begin, once there is a better one that can: until then, it would only be given
    /// to the same again. (Other workers do not answer a canary's request.)
    fn take_back_overdue(&mut self) {
        for index in 0..self.workers.len() {
            let slow = &self.workers[index];
            let is_better = |(at, other): (usize, &Worker)| {
                at != index && other.can_begin() && other.unresponsive <= slow.unresponsive
            };
            if slow.is_overdue()
                && !matches!(slow.state, DispatchState::Canary | DispatchState::Broken)
                && self.workers.iter().enumerate().any(is_better)
            {
                self.take_back_unbegun(index);
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

    /// Takes a request back for the worker at `index`, from the one that has ended nothing for the longest time, if
    /// there is one where requests wait for others to end; for an idle one also if they only wait for a thread to
    /// look. (Not from a newer generation: its connections may know it already.)
    fn take_from_slowest(&mut self, index: usize) -> Option<Rc<Exchange>> {
        let (for_idle, generation) = (self.workers[index].is_idle(), self.workers[index].generation);
        let mut asked = None;
        loop {
            let waits = |worker: &&mut Worker| {
                let enough = if for_idle { 1 } else { worker.threads };
                let more = worker.in_flight > enough && !worker.unclaimed.is_empty();
                worker.generation <= generation
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

    // --- Sleeping and waking -----------------------------------------------------------------------

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
        left
    }

    /// Wakes the workers also for what their busy threads were expected to come back for, and did not; what a
    /// worker does not begin all the same goes to others. `true`: something is not begun yet.
    pub(crate) fn ring_for_overdue(&mut self) -> bool {
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            if worker.unclaimed.is_empty() || worker.state == DispatchState::Broken {
                continue;
            }
            worker.ring_for_unclaimed(true);
            worker.note_overdue();
        }
        self.settle();
        self.ring_workers()
    }

    /// Announces to the workers that have requests that the front is about to sleep; not for longer than
    /// [`Dispatcher::ring_workers`] has returned. `false`: there is news after all.
    pub(crate) fn announce_sleep(&self) -> bool {
        self.busy().for_each(Worker::announce_sleep);
        !self.busy().any(|worker| worker.state != DispatchState::Broken && worker.ring.any_ready())
    }

    /// The front is awake.
    pub(crate) fn retract_sleep(&self) {
        self.busy().for_each(|worker| worker.ring.retract_sleep());
    }

    /// The workers that have something to say, or may; the rings of the others would only cost time.
    fn busy(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| !worker.is_idle())
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

    // --- Workers -----------------------------------------------------------------------------------

    /// Adds a worker. `false`: it cannot be used, and the supervisor knows.
    pub(crate) fn add_worker(&mut self, new: NewWorker, state: DispatchState) -> bool {
        match wake::watch(&new.ring) {
            Ok(wake) => self.workers.push(Worker::new(new, state, wake)),
            Err(error) => {
                let why = format!("its ring cannot be watched: {error}");
                self.events.send(AppEvent::WorkerBroken { worker: new.worker, why });
                return false;
            }
        }
        self.workers_changed();
        true
    }

    /// Gives a canary the one request that it gets before it is admitted. `false`: it is not there any more.
    pub(crate) fn submit_to_canary(&mut self, number: u32, exchange: &Rc<Exchange>) -> bool {
        let index = self.position(number).filter(|index| self.workers[*index].state == DispatchState::Canary);
        index.is_some_and(|index| self.place(index, exchange) == Placing::Done)
    }

    /// A canary may have clients' requests.
    pub(crate) fn admit_canary(&mut self, number: u32) {
        let Some(index) = self.position(number) else { return };
        if self.workers[index].state == DispatchState::Canary {
            self.workers[index].state = DispatchState::Serving;
            self.workers_changed();
        }
    }

    /// There are others than before to give requests to.
    fn workers_changed(&mut self) {
        self.note_generations();
        self.settle();
        self.wanted &= !self.is_served();
        self.tell_if_wanted();
    }

    fn note_generations(&mut self) {
        let Generations { newest, withdrawn, .. } = self.generations;
        let serving = self.workers.iter().filter(|worker| worker.state == DispatchState::Serving);
        let serving = serving.map(|worker| worker.generation);
        let newest = if self.draining { 0 } else { newest };
        let newest = serving.clone().filter(|one| *one != withdrawn).fold(newest, u32::max);
        self.generations = Generations { oldest: serving.min().unwrap_or(newest), newest, withdrawn };
    }

    /// A generation is taken back: connections that it has answered go to the one before it again.
    pub(crate) fn withdraw(&mut self, generation: u32) {
        self.generations = Generations { withdrawn: generation, ..Generations::default() };
        self.workers_changed();
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

    fn look_whether_warm(&mut self, index: usize) {
        let Some(requests) = self.warm_after else { return };
        let worker = &self.workers[index];
        if worker.state == DispatchState::Serving && worker.served - worker.counted_from >= requests {
            let number = worker.number;
            self.warm_after = None;
            self.events.send(AppEvent::WorkerWarm { worker: number });
        }
    }

    /// Nothing more is placed with a worker; what it has not begun goes to others. `true`: its application has taken
    /// connections over, whose time is limited from now on.
    pub(crate) fn retire_worker(&mut self, number: u32) -> bool {
        let Some(index) = self.position(number) else { return false };
        let has_hijacked = self.workers[index].hijacked > 0;
        self.workers[index].ring.retire();
        self.take_back_unbegun(index);
        if matches!(self.workers[index].state, DispatchState::Serving | DispatchState::Canary) {
            self.workers[index].state = DispatchState::Retiring;
        }
        self.workers_changed();
        has_hijacked
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
            self.take_back_unbegun(index);
        }
        let worker = self.workers.swap_remove(index);
        let had_its_time = killed && worker.state == DispatchState::Retiring;
        self.repeat_or_fail(number, worker.slots, !had_its_time);
        self.workers_changed();
    }

    /// The worker broke the protocol: only its own requests fail, and the supervisor replaces it.
    fn worker_is_broken(&mut self, index: usize, breach: &RingError) {
        self.workers[index].ring.retire();
        self.take_back_unbegun(index);
        let worker = &mut self.workers[index];
        worker.state = DispatchState::Broken;
        worker.in_flight = 0;
        worker.unclaimed.clear();
        let slots = std::mem::take(&mut worker.slots);
        let number = worker.number;
        worker.slots = slots.iter().map(|_| None).collect();
        self.note_generations();
        self.events.send(AppEvent::WorkerBroken { worker: number, why: breach.to_string() });
        self.repeat_or_fail(number, slots, true);
    }

    /// Takes back what a worker has not begun, to the head of the queue, in its order. (Other workers do not answer a
    /// canary's request.)
    fn take_back_unbegun(&mut self, index: usize) {
        let is_canary = self.workers[index].state == DispatchState::Canary;
        let number = self.workers[index].number;
        let unbegun = self.workers[index].unclaimed.clone();
        for ticket in unbegun.into_iter().rev() {
            match self.workers[index].take_back(ticket) {
                Some(exchange) if is_canary => fail(&exchange, Refusal::WorkerDied { worker: number }),
                Some(exchange) => self.requeue(exchange),
                None => {}
            }
        }
    }

    /// Repeats or fails the requests that this worker had begun. `may`: those that allow it are repeated.
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

    /// Back to the head of the queue: it has waited before. (Unless the client does not wait for its answer any more.)
    fn requeue(&mut self, exchange: Rc<Exchange>) {
        let mut inner = exchange.borrow();
        if inner.response.is_discarded() {
            inner.place = Place::Connection;
            return;
        }
        inner.response.restart();
        inner.place = Place::Queue;
        drop(inner);
        self.queue.push_front(exchange);
    }

    fn position(&self, number: u32) -> Option<usize> {
        self.workers.iter().position(|worker| worker.number == number)
    }
}

/// The descriptors that go with the frames of a slot.
struct OfSlot<'a> {
    ring: &'a mut FrontRing,
    slot: u16,
}

impl Descriptors for OfSlot<'_> {
    fn receive_file(&mut self) -> Result<OwnedFd, RingError> {
        self.ring.receive_descriptor(self.slot)
    }

    fn connect(&mut self) -> Result<OwnedFd, RingError> {
        self.ring.connect(self.slot)
    }
}

/// No worker gets this request any more.
fn fail(exchange: &Exchange, refusal: Refusal) {
    let mut inner = exchange.borrow();
    inner.place = Place::Connection;
    inner.response.fail(refusal);
    drop(inner);
    exchange.wake();
}

/// The request's spool file cannot be sent to any worker: too many files are open.
fn give_up_spooled(exchange: &Exchange, error: &std::io::Error) {
    tracing::error!(%error, "the file of a request body could not be opened for a worker; if files have run out, raise the limit (ulimit -n)");
    let mut inner = exchange.borrow();
    inner.place = Place::Connection;
    inner.response.fail(Refusal::BodyNotStored);
    drop(inner);
    exchange.wake();
}
