//! The streams of an application: their messages and subscribers.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::rc::Rc;
use std::task::Waker;

use crate::hub::message::Message;

/// Memory of a stream beside its name and messages, in bytes.
const STREAM_BYTES: u64 = 256;

/// Largest number of idle streams that are remembered.
const MOST_IDLE: usize = 4096;

/// A stream of messages.
#[derive(Debug)]
pub(super) struct Stream {
    name: Rc<[u8]>,
    /// Kept messages, with rising numbers.
    kept: RefCell<VecDeque<Message>>,
    /// Number of the last dropped message; 0 if there is none.
    lost: Cell<u64>,
    /// Subscribers by their numbers.
    seats: RefCell<BTreeMap<u64, Rc<Seat>>>,
    /// Number of the subscriber that was woken last, until all are awake.
    pub(super) woken: Cell<Option<u64>>,
    /// Whether another message has come since the first subscriber was woken.
    pub(super) has_more: Cell<bool>,
}

/// The task of a subscriber.
#[derive(Debug, Default)]
pub(super) struct Seat(RefCell<Option<Waker>>);

impl Seat {
    /// Sets the task to wake.
    pub(super) fn set(&self, waker: &Waker) {
        let mut known = self.0.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.0.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

impl Stream {
    pub(super) fn new(name: &[u8], lost: u64) -> Stream {
        Stream {
            name: name.into(),
            kept: RefCell::default(),
            lost: Cell::new(lost),
            seats: RefCell::default(),
            woken: Cell::new(None),
            has_more: Cell::new(false),
        }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Returns the numbers of the kept messages.
    pub(super) fn numbers(&self) -> VecDeque<u64> {
        self.kept.borrow().iter().map(|message| message.number).collect()
    }

    /// Returns the number of the first kept message from this number on.
    pub(super) fn first_from(&self, number: u64) -> Option<u64> {
        let kept = self.kept.borrow();
        kept.get(kept.partition_point(|message| message.number < number)).map(|message| message.number)
    }

    /// Returns the number of the first kept message that was published at this time or later, in milliseconds.
    pub(super) fn first_since(&self, at_ms: u64) -> Option<u64> {
        let kept = self.kept.borrow();
        kept.get(kept.partition_point(|message| message.at_ms < at_ms)).map(|message| message.number)
    }

    /// Calls `read` with the text of this message, if it is kept.
    pub(super) fn read(&self, number: u64, read: impl FnOnce(&[u8])) {
        self.with(number, |message| read(&message.text));
    }

    /// What `read` makes of the message that has this number. `None`: it is not kept.
    pub(super) fn with<T>(&self, number: u64, read: impl FnOnce(&Message) -> T) -> Option<T> {
        let kept = self.kept.borrow();
        let at = kept.binary_search_by_key(&number, |message| message.number).ok()?;
        Some(read(&kept[at]))
    }

    pub(super) fn seat(&self, key: u64, seat: &Rc<Seat>) {
        self.seats.borrow_mut().insert(key, Rc::clone(seat));
    }

    /// Removes a subscriber. Returns false if there was none with this number.
    pub(super) fn leave(&self, key: u64) -> bool {
        self.seats.borrow_mut().remove(&key).is_some()
    }

    pub(super) fn has_subscribers(&self) -> bool {
        !self.seats.borrow().is_empty()
    }

    /// Wakes at most `most` subscribers after the one with the number `after`. Returns the last of them; `None`: all are awake.
    pub(super) fn wake_some(&self, after: u64, most: usize) -> Option<u64> {
        let seats = self.seats.borrow();
        let behind = || seats.range((Excluded(after), Unbounded));
        behind().take(most).for_each(|(_, seat)| seat.wake());
        behind().nth(most).and_then(|_| behind().nth(most - 1)).map(|(key, _)| *key)
    }

    fn is_idle(&self) -> bool {
        self.kept.borrow().is_empty() && !self.has_subscribers()
    }

    /// Returns the time of the oldest kept message, in milliseconds.
    fn published_ms(&self) -> Option<u64> {
        self.kept.borrow().front().map(|message| message.at_ms)
    }

    fn cost(&self) -> u64 {
        self.name.len() as u64 + STREAM_BYTES
    }
}

/// All streams of an application.
#[derive(Debug, Default)]
pub(super) struct Streams {
    by_name: HashMap<Rc<[u8]>, Rc<Stream>>,
    /// The stream of each kept message.
    by_number: BTreeMap<u64, Rc<Stream>>,
    /// Streams without messages and subscribers, by the number of the last message that they dropped.
    idle: BTreeMap<u64, Rc<Stream>>,
    /// Largest such number of a forgotten stream.
    forgotten: u64,
    /// The same when the streams of another process were inherited.
    inherited: Option<u64>,
    /// Largest number of a dropped message.
    dropped: u64,
    bytes: u64,
}

impl Streams {
    /// The streams of a process whose first message has the number after this one. Messages before it are lost, unless it inherits them.
    pub(super) fn after(number: u64) -> Streams {
        Streams { forgotten: number, dropped: number, ..Streams::default() }
    }

    /// Returns the largest numbers of messages that a forgotten stream, and any stream, has dropped.
    pub(super) fn losses(&self) -> (u64, u64) {
        (self.forgotten, self.dropped)
    }

    /// Inherits from a process whose numbers go up to `after`, and which has these losses.
    pub(super) fn inherit(&mut self, after: u64, (forgotten, dropped): (u64, u64)) {
        if self.forgotten != after {
            return; // a stream of this process was forgotten, so what it has lost is not known
        }
        self.forgotten = forgotten.min(after);
        self.inherited = Some(self.forgotten);
        if self.dropped == after {
            self.dropped = dropped.min(after);
        }
        let unknown = self.by_name.values().filter(|stream| stream.lost() == after);
        unknown.for_each(|stream| stream.lost.set(self.forgotten));
    }

    /// Finds or creates a stream of which the process before has dropped messages up to `lost`. Otherwise the same as
    /// [`Streams::open`].
    pub(super) fn open_inherited(&mut self, name: &[u8], lost: u64) -> Rc<Stream> {
        let is_new = !self.by_name.contains_key(name);
        let stream = self.open(name);
        // Since then, no stream was forgotten.
        if is_new && self.inherited == Some(self.forgotten) {
            stream.lost.set(lost);
        }
        stream
    }

    /// Adds a message of the process before.
    pub(super) fn push_inherited(&mut self, stream: &Rc<Stream>, message: Message, most: usize) {
        self.by_number.insert(message.number, Rc::clone(stream));
        self.bytes += message.cost();
        {
            let mut kept = stream.kept.borrow_mut();
            let at = kept.partition_point(|other| other.number < message.number);
            kept.insert(at, message);
        }
        self.shorten(stream, most);
    }

    /// All streams.
    pub(super) fn all(&self) -> impl Iterator<Item = &Rc<Stream>> {
        self.by_name.values()
    }

    /// Returns the number of streams that keep messages or have subscribers.
    pub(super) fn count(&self) -> usize {
        self.by_name.len() - self.idle.len()
    }

    /// Returns the number of kept messages.
    pub(super) fn kept(&self) -> usize {
        self.by_number.len()
    }

    /// Returns the numbers of the kept messages from this number on, with their streams.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = (u64, &Stream)> {
        self.by_number.range(number..).map(|(number, stream)| (*number, &**stream))
    }

    /// Returns the largest number of a dropped message.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the memory of all streams, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory that a stream with this name adds, in bytes.
    pub(super) fn cost_of_new(&self, name: &[u8]) -> u64 {
        if self.by_name.contains_key(name) {
            0
        } else {
            name.len() as u64 + STREAM_BYTES
        }
    }

    /// Finds or creates a stream. The caller then adds a message or a subscriber, or calls [`Streams::settle`].
    pub(super) fn open(&mut self, name: &[u8]) -> Rc<Stream> {
        if let Some(stream) = self.by_name.get(name) {
            if stream.is_idle() {
                self.idle.remove(&stream.lost());
            }
            return Rc::clone(stream);
        }
        // If there was a stream with this name, it has dropped no message with a larger number.
        let stream = Rc::new(Stream::new(name, self.forgotten));
        self.bytes += stream.cost();
        self.by_name.insert(Rc::clone(&stream.name), Rc::clone(&stream));
        stream
    }

    /// Adds a message, whose number must be the largest so far. Keeps at most `most` messages of the stream.
    pub(super) fn push(&mut self, stream: &Rc<Stream>, message: Message, most: usize) {
        self.by_number.insert(message.number, Rc::clone(stream));
        self.bytes += message.cost();
        stream.kept.borrow_mut().push_back(message);
        self.shorten(stream, most);
    }

    fn shorten(&mut self, stream: &Rc<Stream>, most: usize) {
        while stream.kept.borrow().len() > most {
            self.drop_first(stream);
        }
    }

    /// Drops the oldest message of all streams. Returns false if there is none.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let oldest = self.by_number.first_key_value().map(|(_, stream)| Rc::clone(stream));
        oldest.inspect(|stream| self.drop_first(stream)).is_some()
    }

    /// Drops messages from before this time, in milliseconds.
    pub(super) fn expire(&mut self, before_ms: u64) {
        let is_old = |stream: &Rc<Stream>| stream.published_ms().is_some_and(|at_ms| at_ms < before_ms);
        while self.by_number.first_key_value().is_some_and(|(_, stream)| is_old(stream)) {
            self.drop_oldest();
        }
    }

    fn drop_first(&mut self, stream: &Rc<Stream>) {
        let Some(message) = stream.kept.borrow_mut().pop_front() else { return };
        self.bytes -= message.cost();
        stream.lost.set(message.number);
        self.by_number.remove(&message.number);
        self.dropped = self.dropped.max(message.number);
        if stream.published_ms().is_none() {
            stream.kept.borrow_mut().shrink_to_fit();
            self.settle(stream);
        }
    }

    /// Removes a subscriber.
    pub(super) fn leave(&mut self, stream: &Rc<Stream>, key: u64) {
        if stream.leave(key) {
            self.settle(stream);
        }
    }

    /// Removes a stream without messages and subscribers. If it has dropped messages, remembers that while there is room.
    pub(super) fn settle(&mut self, stream: &Rc<Stream>) {
        if !stream.is_idle() {
            return;
        }
        if stream.lost() <= self.forgotten {
            return self.forget(stream);
        }
        self.idle.insert(stream.lost(), Rc::clone(stream));
        if self.idle.len() > MOST_IDLE {
            if let Some((lost, stream)) = self.idle.pop_first() {
                self.forgotten = lost;
                self.forget(&stream);
            }
        }
    }

    fn forget(&mut self, stream: &Rc<Stream>) {
        if self.by_name.remove(&stream.name).is_some() {
            self.bytes -= stream.cost();
        }
    }
}
