//! The response cache of an application (RFC 9111): answers that it has declared to be for all clients are kept in memory, and
//! sent without asking it again.
//!
//! In reading order:
//!
//! - [`key`]: which requests are for the same answer;
//! - [`directives`]: what Cache-Control says;
//! - `question`: what a request wants of the cache;
//! - `policy`: which answers are stored, and for how long they are fresh;
//! - `answer`: a stored answer; `body`: its body, also compressed;
//! - `store`: all of an application, found by their keys, forgotten by their age;
//! - `flights`: requests for the same answer at the same time; `marks`: requests that need not wait for each other;
//! - `fill`: an answer on its way from the application into the cache;
//! - `watch`: what to do with an answer that concerns the cache.

mod answer;
mod body;
pub mod directives;
mod fill;
mod flights;
pub mod key;
mod marks;
mod policy;
mod question;
mod store;
mod watch;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use highball_link::CacheReport;

pub(crate) use answer::StoredAnswer;
pub(crate) use body::Bytes;
use fill::State;
pub(crate) use fill::{Fill, Replacement};
use flights::Flights;
use key::Key;
use marks::Marks;
use question::Question;
use store::Store;
pub(crate) use watch::Watch;
use watch::Write;

use crate::budget::{Account, Holder, Permit, Share};
use crate::message::request_head::Head;
use crate::pending::Pending;

/// The part of an application's cache that one answer may take, and the most in bytes.
const PART_FOR_ONE: u64 = 8;
const MOST_FOR_ONE: u64 = 8 << 20;

/// The part of it that answers may take while they come.
const PART_FOR_RECORDINGS: u64 = 4;

/// Most answers that are forgotten to make room for one, and that are dropped at a time.
const MOST_FORGOTTEN: usize = 64;
const MOST_DROPPED: usize = 1000;

/// How long it is remembered that the answer to a request was not stored, in ms: others do not wait for the next one.
const USELESS_MS: u64 = 10_000;

/// How often a request waits for others: once for the answer, and once for one with other values of the fields in `Vary`.
const MOST_WAITS: u8 = 2;

/// A request, as the cache is asked for its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) head: Head<'a>,
    /// Whether the client uses TLS.
    pub(crate) is_tls: bool,
    /// How often it has waited for another request.
    pub(crate) waits: u8,
    /// The time, in ms: a clock that only goes forward.
    pub(crate) now_ms: u64,
}

/// Outcome of a request.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// This is the answer.
    Hit(Rc<StoredAnswer>),
    /// The same; and meanwhile the application is asked for a newer one.
    Refresh(Rc<StoredAnswer>, Box<Fill>),
    /// Another request brings the answer.
    Wait(Pending),
    /// It goes to the application.
    Forward(Watch),
    /// The client wants what is stored, and there is nothing (RFC 9111 section 5.2.1.7).
    Unavailable,
}

/// The cache of one application.
#[derive(Debug)]
pub(crate) struct AppCache {
    memory: Arc<Share>,
    store: RefCell<Store>,
    /// Stores that are not searched any more and were not dropped yet.
    dropped: RefCell<Vec<Store>>,
    flights: Rc<Flights>,
    /// Until when the answer to a request is not waited for.
    useless: RefCell<Marks>,
    /// Which change of a URI was the last: changes are counted.
    changed: RefCell<Marks>,
    changes: Cell<u64>,
    /// The release of the application whose answers these are.
    generation: Cell<u32>,
    /// Bytes of bodies that are coming.
    recorded: Cell<u64>,
    hits: Cell<u64>,
    misses: Cell<u64>,
}

impl AppCache {
    /// An empty cache in this memory.
    pub(crate) fn new(memory: Arc<Share>) -> Rc<Self> {
        Rc::new(AppCache {
            memory,
            store: RefCell::default(),
            dropped: RefCell::default(),
            flights: Rc::default(),
            useless: RefCell::default(),
            changed: RefCell::default(),
            changes: Cell::new(0),
            generation: Cell::new(0),
            recorded: Cell::new(0),
            hits: Cell::new(0),
            misses: Cell::new(0),
        })
    }

    /// This release of the application serves. What others have answered is forgotten.
    pub(crate) fn follow(&self, generation: u32) {
        if self.generation.replace(generation) != generation {
            let before = self.store.take();
            if before.count() > 0 {
                self.dropped.borrow_mut().push(before);
            }
        }
    }

    /// Looks for the answer to a request.
    pub(crate) fn look_up(self: &Rc<Self>, asking: &Asking<'_>) -> Lookup {
        let question = match Question::of(asking) {
            Ok(question) => question,
            Err(watch) => return Lookup::Forward(self.watched(watch)),
        };
        let found = self
            .store
            .borrow_mut()
            .find(question.key.base(), |answer| *answer.key == question.key && answer.is_for(asking.head));
        let lookup = self.decide(question, found, asking);
        let counter = match &lookup {
            Lookup::Hit(_) | Lookup::Refresh(..) => &self.hits,
            Lookup::Forward(_) => &self.misses,
            Lookup::Wait(_) | Lookup::Unavailable => return lookup,
        };
        counter.set(counter.get() + 1);
        lookup
    }

    /// What is done with the answer to a request that goes to the application in any case.
    pub(crate) fn pass(self: &Rc<Self>, asking: &Asking<'_>) -> Watch {
        Question::of(asking).map_or_else(|watch| self.watched(watch), |_| Watch::Pass("bypass"))
    }

    fn watched(self: &Rc<Self>, watch: question::NotAsked) -> Watch {
        match watch {
            question::NotAsked::Pass(why) => Watch::Pass(why),
            question::NotAsked::Write { base, is_tls, host } => {
                Watch::Write(Box::new(Write { cache: Rc::clone(self), base, is_tls, host }))
            }
        }
    }

    fn decide(
        self: &Rc<Self>,
        question: Question,
        found: Option<Rc<StoredAnswer>>,
        asking: &Asking<'_>,
    ) -> Lookup {
        let now_ms = asking.now_ms;
        if let Some(answer) = found.as_ref().filter(|answer| question.accepts(answer, now_ms)) {
            return Lookup::Hit(Rc::clone(answer));
        }
        if question.says.only_if_cached {
            return Lookup::Unavailable;
        }
        let flight = self.flight_key(&question, asking);
        if let Some(answer) = found.as_ref().filter(|answer| question.accepts_meanwhile(answer, now_ms)) {
            if question.is_head || self.flights.is_there(&flight) {
                return Lookup::Hit(Rc::clone(answer));
            }
            let fill = self.fill(question, found.clone(), Some(flight), "stale", asking);
            return Lookup::Refresh(Rc::clone(answer), fill);
        }
        let forwarded = match &found {
            Some(answer) if answer.fresh_ms(now_ms) > 0 => "request",
            Some(_) => "stale",
            None if self.knows(question.key.base()) => "vary-miss",
            None => "uri-miss",
        };
        // The client's own conditions are for the application, where there is nothing to compare with them.
        let has_validator = found.as_ref().is_some_and(|answer| answer.has_validator());
        if question.is_head || (question.is_conditional && !has_validator) {
            return Lookup::Forward(Watch::Pass(forwarded));
        }
        let is_useless = self.useless.borrow().of(question.key.whole()) > now_ms;
        let waits = asking.waits < MOST_WAITS && !is_useless && !question.is_forced();
        if waits {
            if let Some(pending) = self.flights.wait(&flight) {
                return Lookup::Wait(pending);
            }
        }
        let flight = Some(flight).filter(|flight| waits && !self.flights.is_there(flight));
        Lookup::Forward(Watch::Fill(self.fill(question, found, flight, forwarded, asking)))
    }

    fn fill(
        self: &Rc<Self>,
        question: Question,
        stale: Option<Rc<StoredAnswer>>,
        flight: Option<Vec<u8>>,
        forwarded: &'static str,
        asking: &Asking<'_>,
    ) -> Box<Fill> {
        Box::new(Fill {
            cache: Rc::clone(self),
            key: Rc::new(question.key),
            head: asking.head.spans.clone(),
            buffer: asking.head.text.into(),
            flying: flight.map(|key| self.flights.begin(key)),
            stale,
            forwarded,
            begun_ms: asking.now_ms,
            begun: self.changes.get(),
            generation: 0,
            state: State::Asked,
        })
    }

    /// What requests for the same answer have in common, as far as that is known: the key, and what they say in the fields on
    /// which the last answer of the URI depends.
    fn flight_key(&self, question: &Question, asking: &Asking<'_>) -> Vec<u8> {
        let mut key = question.key.whole().to_vec();
        let is_it = |answer: &StoredAnswer| *answer.key == question.key;
        if let Some(answer) = self.store.borrow().peek(question.key.base(), is_it) {
            for name in &answer.policy.vary {
                let value = answer::value_in(name, asking.head);
                key.extend_from_slice(
                    &(value.as_ref().map_or(u32::MAX, |value| value.len() as u32)).to_le_bytes(),
                );
                key.extend_from_slice(value.as_deref().unwrap_or_default());
            }
        }
        key
    }

    fn knows(&self, base: &[u8]) -> bool {
        self.store.borrow().peek(base, |_| true).is_some()
    }

    // --- What comes ----------------------------------------------------------------------------------

    /// The most bytes that the body of an answer may have.
    fn most_body_bytes(&self) -> u64 {
        (self.memory.limit() / PART_FOR_ONE).min(MOST_FOR_ONE)
    }

    fn permit(&self) -> Permit {
        Permit::new(Account::new(&self.memory, Holder::default()))
    }

    /// Whether as much more may be recorded: what is stored has most of the memory.
    fn may_record(&self, bytes: u64) -> bool {
        self.recorded.get() + bytes <= self.memory.limit() / PART_FOR_RECORDINGS
    }

    fn count_recorded(&self, bytes: i64) {
        self.recorded.set(self.recorded.get().saturating_add_signed(bytes));
    }

    /// Makes room, if need be by forgetting what was not used for longest. `false`: there is none.
    fn make_room(&self, bytes: u64) -> bool {
        for _ in 0..MOST_FORGOTTEN {
            if self.memory.free() >= bytes {
                return true;
            }
            if !self.drop_some(MOST_FORGOTTEN) && !self.store.borrow_mut().remove_oldest() {
                break;
            }
        }
        self.memory.free() >= bytes
    }

    /// Keeps other bytes of a stored answer, if there is room.
    fn keep(&self, bytes: Vec<u8>) -> Option<Bytes> {
        let permit = self.permit();
        let length = bytes.len() as u64;
        self.make_room(length).then(|| permit.set(length)).map(|()| Bytes { bytes, _permit: permit })
    }

    /// Stores an answer to this request.
    fn put(&self, answer: Rc<StoredAnswer>, head: Head<'_>) {
        let key = Rc::clone(&answer.key);
        self.useless.borrow_mut().mark(key.whole(), 0);
        self.store.borrow_mut().put(answer, |other| *other.key == *key && other.is_for(head));
    }

    /// The answer to such a request was not stored.
    fn note_useless(&self, key: &Key, now_ms: u64) {
        self.useless.borrow_mut().mark(key.whole(), now_ms + USELESS_MS);
    }

    /// Whether an answer of this release is of now, if the request for it has come after that many changes.
    fn is_current(&self, key: &Key, begun: u64, generation: u32) -> bool {
        generation == self.generation.get() && self.changed.borrow().at_most(key.base()) <= begun
    }

    /// A URI has changed: what is stored of it is forgotten, and what is on its way is not stored.
    fn invalidate(&self, base: &[u8]) {
        self.changes.set(self.changes.get() + 1);
        self.changed.borrow_mut().mark(base, self.changes.get());
        self.store.borrow_mut().remove_all(base);
    }

    // --- Periodic work -------------------------------------------------------------------------------

    fn drop_some(&self, most: usize) -> bool {
        let mut dropped = self.dropped.borrow_mut();
        let Some(store) = dropped.last_mut() else { return false };
        if !store.drop_some(most) {
            dropped.pop();
        }
        true
    }

    /// Drops what is not found any more, and what is beyond a limit that was lowered.
    pub(crate) fn tick(&self) {
        self.drop_some(MOST_DROPPED);
        let is_beyond = || self.memory.used() > self.memory.limit();
        for _ in 0..MOST_DROPPED {
            if !is_beyond() || !self.store.borrow_mut().remove_oldest() {
                break;
            }
        }
    }

    /// The release of the application whose answers these are.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.get()
    }

    pub(crate) fn report(&self) -> CacheReport {
        CacheReport {
            hits: self.hits.get(),
            misses: self.misses.get(),
            responses: self.store.borrow().count(),
            bytes: self.memory.used(),
            max_bytes: self.memory.limit(),
        }
    }
}

#[cfg(test)]
mod tests;
