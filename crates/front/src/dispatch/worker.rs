//! A worker as the dispatcher sees it: its ring, and what is in it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use highball_link::NewWorker;
use highball_ring::{FrontRing, Geometry, Ticket};
use tokio::io::unix::AsyncFd;

use super::geometry::common_places;
use super::overrun::Overruns;
use super::service_time::ServiceTime;
use super::silence::Silence;
use super::stall::Stall;
use crate::clock::now_ms;
use crate::exchange::spool::SpoolFile;
use crate::exchange::Exchange;
use crate::refusals::failure::method_and_path;

/// Overdue ticks without beginning a request after which a worker counts as unresponsive: stopped by a signal, or
/// swapped out.
const UNRESPONSIVE_TICKS: u32 = 10;

/// In a crash loop, a worker counts when it has lived for this long.
const LASTS: Duration = Duration::from_secs(5);

/// Whether a worker that gets requests takes them, and begins them. This is the one definition: status, health checks, agent
/// checks, metrics and the dashboard go by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It does.
    Serves,
    /// Others like it have died soon, and it has not lived for longer yet.
    Unproven,
    /// It does not begin what it is given, or shows no sign of life.
    Stuck,
}

/// Whether a worker gets requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DispatchState {
    /// Not from clients: it has to show first that it answers.
    Canary,
    /// It does.
    Serving,
    /// It does not any more, and finishes what it has.
    Retiring,
    /// It has finished, and the supervisor knows.
    Retired,
    /// It broke the protocol; the front reads nothing more from it.
    Broken,
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) number: u32,
    /// Which release of the application it runs; a later one has a larger number.
    pub(crate) generation: u32,
    pub(crate) ring: FrontRing,
    pub(crate) state: DispatchState,
    /// The requests in the ring, by slot.
    pub(crate) slots: Vec<Option<Rc<Exchange>>>,
    /// The spool files of their bodies: the worker has each open until its request has ended, even if the client has
    /// gone.
    bodies: Vec<Option<Rc<SpoolFile>>>,
    /// When each was placed.
    pub(super) placed_ms: Vec<u64>,
    /// How many places are for all kinds of requests.
    pub(super) common_places: u32,
    /// Their number.
    pub(crate) in_flight: u32,
    /// Requests in flight for which no client waits any more.
    pub(super) overruns: Overruns,
    /// Connections that its application has taken over.
    pub(crate) hijacked: u32,
    /// Requests that the worker was asked to free the places of.
    pub(super) offers: u32,
    /// Requests whose answers have left their places, and go on.
    pub(super) streams: Vec<Rc<Exchange>>,
    /// The number of its places when it learned that requests wait for another one; `None`: none does.
    pub(super) wanted_beyond: Option<u32>,
    /// Requests of its sessions that wait for it, in order.
    pub(super) own: VecDeque<Rc<Exchange>>,
    /// When it was last given a session, as a count of those.
    pub(super) got_session: u64,
    /// Requests that the worker has not begun, as far as is known, in order.
    pub(crate) unclaimed: VecDeque<Ticket>,
    /// Threads that were woken since the last request was begun.
    rung: u32,
    /// The oldest request that it had not begun at the last look, and the number of looks that found it so.
    oldest: (u64, u32),
    /// How often in a row it did not begin what it was given: better workers are asked first.
    pub(crate) unresponsive: u32,
    /// What that has come to.
    pub(super) stall: Stall,
    /// What the supervisor says of its signs of life.
    pub(super) silence: Silence,
    /// It gets the next request nevertheless.
    pub(super) is_on_trial: bool,
    /// Since when the front knows it.
    since: Instant,
    pub(crate) time: ServiceTime,
    pub(crate) served: u64,
    /// The supervisor knows that its ring ends soon.
    pub(crate) ends_soon: bool,
    /// The number that it had served when the count for [`highball_link::AppCommand::NameWarmWorker`] began.
    pub(crate) counted_from: u64,
    /// Keeps the ring's eventfd in epoll: it ends the front's sleep, and nothing else has to happen.
    _wake: AsyncFd<OwnedFd>,
}

impl Worker {
    pub(crate) fn new(new: NewWorker, state: DispatchState, wake: AsyncFd<OwnedFd>) -> Self {
        let NewWorker { worker: number, generation, ring } = new;
        let Geometry { slots, threads, least_threads, .. } = ring.geometry();
        let slots = slots as usize;
        Worker {
            number,
            generation,
            ring,
            state,
            slots: (0..slots).map(|_| None).collect(),
            bodies: (0..slots).map(|_| None).collect(),
            placed_ms: vec![0; slots],
            common_places: common_places(least_threads, threads),
            in_flight: 0,
            overruns: Overruns::default(),
            hijacked: 0,
            offers: 0,
            streams: Vec::new(),
            wanted_beyond: None,
            own: VecDeque::new(),
            got_session: 0,
            unclaimed: VecDeque::new(),
            rung: 0,
            oldest: (0, 0),
            unresponsive: 0,
            stall: Stall::default(),
            silence: Silence::default(),
            is_on_trial: false,
            since: Instant::now(),
            time: ServiceTime::new(Instant::now()),
            served: 0,
            ends_soon: false,
            counted_from: 0,
            _wake: wake,
        }
    }

    /// Whether it has nothing at all to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether it has nothing left but requests that have exceeded their time limits, or will not begin any.
    pub(crate) fn is_stuck(&self) -> bool {
        match self.is_idle() {
            true => self.is_unresponsive(),
            false => self.overruns.timed_out() == self.in_flight,
        }
    }

    /// Whether it begins no requests, or shows no sign of life, for too long.
    fn is_unresponsive(&self) -> bool {
        self.stall.is_stalled() || self.silence.is_long()
    }

    /// How it stands; `is_crashing`: workers of its application die soon after they were started.
    pub(crate) fn standing(&self, is_crashing: bool) -> Standing {
        match (self.state, is_crashing) {
            (DispatchState::Serving, _) if self.is_unresponsive() => Standing::Stuck,
            (DispatchState::Serving, true) if self.since.elapsed() < LASTS => Standing::Unproven,
            (DispatchState::Serving, _) => Standing::Serves,
            _ => Standing::Unproven,
        }
    }

    /// For the choice among workers: unresponsive ones come last, unless they are on trial.
    pub(super) fn rank(&self) -> (bool, u32) {
        (!self.is_on_trial, if self.is_on_trial { 0 } else { self.unresponsive })
    }

    /// Whether a request of it goes on although its time limit has passed: other threads may wait for that one.
    pub(crate) fn is_suspect(&self) -> bool {
        self.overruns.timed_out() > 0
    }

    /// Threads that are at a request, as far as is known.
    pub(crate) fn busy_threads(&self) -> u32 {
        self.in_flight.saturating_sub(self.unclaimed.len() as u32)
    }

    /// Whether it can begin another request at once, and is known to do so.
    pub(crate) fn has_thread_free(&self) -> bool {
        self.unresponsive == 0 && self.can_begin()
    }

    /// Whether it has a thread for another request.
    pub(crate) fn can_begin(&self) -> bool {
        self.state == DispatchState::Serving && self.in_flight < self.capacity(false) && self.ring.has_room()
    }

    /// How many requests it may have at a time.
    pub(crate) fn capacity(&self, look_ahead: bool) -> u32 {
        let ahead = if look_ahead && self.unresponsive == 0 { self.time.look_ahead() } else { 0 };
        (self.ring.places() + ahead).min(self.slots.len() as u32)
    }

    /// Notes that `exchange` was placed.
    pub(crate) fn placed(&mut self, ticket: Ticket, exchange: Rc<Exchange>, body: Option<Rc<SpoolFile>>) {
        if self.is_idle() {
            self.time.begin(Instant::now());
        }
        self.slots[usize::from(ticket.slot)] = Some(exchange);
        self.bodies[usize::from(ticket.slot)] = body;
        self.placed_ms[usize::from(ticket.slot)] = now_ms();
        self.unclaimed.push_back(ticket);
        self.is_on_trial = false;
        self.in_flight += 1;
    }

    /// What it is at: method and path of the first of its requests.
    pub(crate) fn requests(&self, most: usize) -> Vec<String> {
        let exchanges = self.slots.iter().flatten().take(most);
        exchanges.map(|exchange| method_and_path(&exchange.borrow().request.head)).collect()
    }

    /// Takes a request back that was not begun; it is then free to go elsewhere.
    pub(crate) fn take_back(&mut self, ticket: Ticket) -> Option<Rc<Exchange>> {
        if !self.ring.take_back(ticket) {
            return None;
        }
        self.unclaimed.retain(|other| *other != ticket);
        if self.unclaimed.is_empty() {
            self.rung = 0;
        }
        self.in_flight -= 1;
        self.bodies[usize::from(ticket.slot)] = None;
        self.slots[usize::from(ticket.slot)].take()
    }

    /// Takes back the first request that was not begun, and whose session does not stay here.
    pub(crate) fn take_back_first(&mut self) -> Option<Rc<Exchange>> {
        self.see_claims();
        let first = *self.unclaimed.iter().find(|ticket| !self.is_bound(**ticket))?;
        self.take_back(first)
    }

    /// Whether this request belongs to a session that stays here.
    pub(super) fn is_bound(&self, ticket: Ticket) -> bool {
        self.slots[usize::from(ticket.slot)].as_deref().is_some_and(Exchange::is_bound)
    }

    /// The worker has ended its answer to the request in `slot`.
    pub(crate) fn ended(&mut self, slot: u16) {
        if self.slots[usize::from(slot)].take().is_some() {
            self.bodies[usize::from(slot)] = None;
            self.overruns.forget(slot);
            self.see_claims();
            self.ring.release(slot);
            self.in_flight -= 1;
            self.served += 1;
        }
    }

    /// Looks which requests have been begun.
    pub(crate) fn see_claims(&mut self) {
        while let Some(first) = self.unclaimed.front() {
            if !self.ring.is_claimed(*first) {
                return;
            }
            self.unclaimed.pop_front();
            self.unresponsive = 0;
            self.rung = self.rung.saturating_sub(1);
        }
        self.rung = 0;
    }

    /// Wakes as many threads as there is work for: one, if none is at work; more only if the work is such
    /// that those at work do not come back for it soon, and do not need the GVL all the time (`overdue`: they have not come).
    pub(crate) fn ring_for_unclaimed(&mut self, overdue: bool) {
        self.see_claims();
        if overdue {
            self.rung = 0;
        }
        let comes_back = self.time.is_fast() || self.ring.computes();
        let free = self.ring.places().saturating_sub(self.busy_threads());
        let useful = free.min(self.unclaimed.len() as u32);
        let wanted = match (self.busy_threads(), comes_back && !overdue) {
            (0, true) => useful.min(1),
            (_, true) => 0,
            (_, false) => useful,
        };
        if wanted > self.rung {
            self.ring.ring(wanted - self.rung);
            self.rung = wanted;
        }
    }

    /// Announces that the front is about to sleep. Where there is more to begin, and answers take no time to speak
    /// of, it is woken once for several of them.
    pub(crate) fn announce_sleep(&self) {
        self.ring.announce_sleep(if self.unclaimed.is_empty() { 1 } else { self.time.answers_at_once() });
    }

    /// Notes, on an overdue tick, whether it still has not begun what it had not begun before. `true`: so it is.
    pub(crate) fn note_overdue(&mut self) -> bool {
        self.see_claims();
        let oldest = self.unclaimed.front().map_or(0, |ticket| ticket.position);
        let (before, ticks) = self.oldest;
        self.oldest = (oldest, if oldest == before { ticks.saturating_add(1) } else { 0 });
        if oldest != 0 && self.oldest.1 == UNRESPONSIVE_TICKS {
            self.unresponsive = self.unresponsive.saturating_add(1);
        }
        self.oldest.1 > 0
    }

    /// Whether others should begin its requests, as it has not for too long.
    pub(crate) fn is_overdue(&self) -> bool {
        let (oldest, ticks) = self.oldest;
        ticks >= UNRESPONSIVE_TICKS && self.unclaimed.front().is_some_and(|ticket| ticket.position == oldest)
    }
}
