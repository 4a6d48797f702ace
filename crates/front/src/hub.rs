//! The real-time hub of an application: streams of messages, which the application publishes and the front sends to all
//! subscribed clients. This needs no worker, so clients do not notice when workers end.
//!
//! In reading order: this file (publishing, subscribing, limits); [`message`] (a message as an event, and its id); [`streams`]
//! (the messages that each stream keeps); [`subscription`] (one client's position); [`listener`] (the position of a process that
//! receives messages of many streams); [`feed`] (the position of a WebSocket of Action Cable); [`replay`] (what its client has
//! missed); [`cables`] (the number of these, and whether they can be held); [`bus`] (messages of other machines); [`fan_out`] (waking subscribers, a few in each turn of
//! the event loop); [`inheritance`] (what a new process takes over in a hot restart); [`forwarding`] (what it publishes then, for
//! clients of the old one).
//!
//! A message has one copy in memory, in its stream. A subscriber has a position, which is the number of its next message, and
//! no buffer: its connection takes messages from the streams when the client reads. So replay and new messages share one path,
//! and a slow client costs no more than others. If a stream drops a message before a client has taken it, the front closes the
//! client's connection.
//!
//! All messages of an application share one sequence of numbers. So the id of its last event says what a client has of every
//! stream.

mod bus;
mod cables;
mod fan_out;
mod feed;
mod forwarding;
mod inheritance;
mod listener;
mod message;
mod replay;
mod streams;
mod subscription;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use highball_config::HubLimits;
use highball_link::{HubReport, HubSequence};
use tokio::sync::Notify;

use crate::budget::{Account, Permit, Share};
use crate::clock::spread::Spread;
use crate::clock::{now_ms, Tally};

pub(crate) use bus::{Bus, BusTurn};
pub(crate) use cables::CableOffer;
pub(crate) use fan_out::FanOut;
pub(crate) use feed::{Fed, Feed};
pub(crate) use inheritance::{Estate, Inheritance};
pub(crate) use listener::Listener;
pub(crate) use message::{Draft, EventId};
pub(crate) use replay::Missed;
pub(crate) use subscription::{Subscription, Taken};

use cables::Cables;
use message::{is_stream_name, Message};
use streams::{Stream, Streams};
use subscription::Line;

/// Largest number of messages ahead of the subscribers; beyond it, publishers wait.
const MOST_AHEAD: u32 = 64;
/// Largest size of these messages, in bytes.
const MOST_BYTES_AHEAD: u64 = 256 * 1024;

/// Shortest time between two log lines about slow processes, in ms.
const LOG_MS: u64 = 60_000;

/// Bytes for one client in a turn of the event loop.
pub(crate) const TURN_BYTES: usize = 64 * 1024;

/// Why a message cannot be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unpublishable {
    #[error(
        "the name of a stream has 1 to 256 bytes, no control characters or commas, and no spaces at its ends"
    )]
    StreamName,
    #[error("the name of an event has at most 256 bytes, and no control characters")]
    EventName,
    #[error("data and event have to be UTF-8")]
    NotUtf8,
    #[error("the message has {bytes} bytes, and max_message allows {most_bytes}")]
    TooLarge { bytes: u64, most_bytes: u64 },
    #[error("the hub is full; max_hub allows more")]
    Full,
    #[error("the application is not served any more")]
    Closed,
}

/// Why a response cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsubscribable {
    /// The application has as many as it may, or there is no memory for its streams.
    Full,
    /// A mistake in the field that names its streams.
    Field(&'static str),
}

/// The hub of an application.
#[derive(Debug)]
pub(crate) struct Hub {
    sequence: HubSequence,
    fan_out: Rc<FanOut>,
    limits: Cell<HubLimits>,
    /// The application's part of the memory of all hubs.
    share: Arc<Share>,
    held_bytes: Permit,
    streams: RefCell<Streams>,
    /// Stream without messages, whose subscribers are woken for every message.
    everything: Rc<Stream>,
    /// Number of the last message.
    last: Cell<u64>,
    /// How many messages were published here.
    published: Cell<u64>,
    /// Number of the last subscription.
    last_key: Cell<u64>,
    held: Cell<usize>,
    cables: Cables,
    pub(crate) bus: Bus,
    slow_closed: Cell<u64>,
    missed: Tally,
    heartbeats: Spread,
    is_closed: Cell<bool>,
    /// Whether publishers wait, because a new process takes what is kept.
    is_paused: Cell<bool>,
    /// Streams whose subscribers are not all awake yet for their last message.
    news: RefCell<VecDeque<Rc<Stream>>>,
    /// Whether the hub is in the queue of the fan-out.
    is_queued: Cell<bool>,
    /// Messages and bytes ahead of the subscribers.
    ahead: Cell<(u32, u64)>,
    /// Turns that the subscribers still need for these bytes.
    turns_left: Cell<u64>,
    /// Notified when the subscribers have had these turns.
    caught_up: Notify,
}

impl Hub {
    /// Returns the hub of an application, with its part of the memory of all hubs.
    pub(crate) fn new(
        sequence: HubSequence,
        fan_out: &Rc<FanOut>,
        limits: HubLimits,
        share: Arc<Share>,
    ) -> Rc<Hub> {
        Rc::new(Hub {
            sequence,
            fan_out: Rc::clone(fan_out),
            limits: Cell::new(limits),
            held_bytes: Permit::new(Account::new(&share, None)),
            share,
            streams: RefCell::new(Streams::after(sequence.after)),
            everything: Rc::new(Stream::new(b"", 0)),
            last: Cell::new(sequence.after),
            published: Cell::new(0),
            last_key: Cell::new(0),
            held: Cell::new(0),
            cables: Cables::default(),
            bus: Bus::default(),
            slow_closed: Cell::new(0),
            missed: Tally::default(),
            heartbeats: Spread::default(),
            is_closed: Cell::new(false),
            is_paused: Cell::new(false),
            news: RefCell::default(),
            is_queued: Cell::new(false),
            ahead: Cell::default(),
            turns_left: Cell::new(0),
            caught_up: Notify::new(),
        })
    }

    /// Changes the limits.
    pub(crate) fn set_limits(&self, limits: HubLimits) {
        self.limits.set(limits);
    }

    pub(crate) fn limits(&self) -> HubLimits {
        self.limits.get()
    }

    /// Refuses messages from now on.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        self.caught_up.notify_waiters();
        self.everything.wake_some(0, usize::MAX - 1);
    }

    /// Does the periodic work: drops messages that are too old.
    pub(crate) fn tick(&self, now_ms: u64) {
        let most_ms = self.limits().history_time.as_millis() as u64;
        self.streams.borrow_mut().expire(now_ms.saturating_sub(most_ms));
        self.count_bytes();
    }

    fn count_bytes(&self) {
        self.held_bytes.set(self.streams.borrow().bytes());
    }

    /// Returns the figures of the hub; `None` if it was never used.
    pub(crate) fn report(&self) -> Option<HubReport> {
        let streams = self.streams.borrow();
        let published = self.published.get();
        (published > 0 || self.last_key.get() > 0 || streams.kept() > 0).then(|| HubReport {
            held: self.held.get(),
            cable_clients: self.cables.clients(),
            cable_commands: self.cables.commands(),
            streams: streams.count(),
            published,
            kept: streams.kept(),
            bytes: streams.bytes(),
            max_bytes: self.share.limit(),
            slow_closed: self.slow_closed.get(),
        })
    }

    // --- Publishing ----------------------------------------------------------------------------------

    /// Waits until the subscribers have caught up far enough for another message.
    pub(crate) async fn room(&self) {
        loop {
            let caught_up = self.caught_up.notified();
            if self.has_room() {
                return;
            }
            caught_up.await;
        }
    }

    fn has_room(&self) -> bool {
        let most = (self.limits().history / 2).clamp(1, MOST_AHEAD);
        let (messages, bytes) = self.ahead.get();
        self.is_closed.get() || (!self.is_paused.get() && messages < most && bytes < MOST_BYTES_AHEAD)
    }

    /// Publishes a message.
    ///
    /// # Errors
    /// It cannot be published, and reaches no client.
    pub(crate) fn publish(self: &Rc<Self>, draft: &Draft<'_>) -> Result<EventId, Unpublishable> {
        if self.is_closed.get() {
            return Err(Unpublishable::Closed);
        }
        draft.check(self.limits().message_bytes)?;
        let id = self.id(self.last.get() + 1);
        self.add(id, now_ms(), draft)?;
        self.published.set(self.published.get() + 1);
        Ok(id)
    }

    /// Adds the next message, and has the subscribers woken.
    fn add(self: &Rc<Self>, id: EventId, at_ms: u64, draft: &Draft<'_>) -> Result<(), Unpublishable> {
        let message = Message::encode(id, at_ms, draft);
        let bytes = message.cost();
        let stream_bytes = self.streams.borrow().cost_of_new(draft.stream);
        self.make_room(bytes + stream_bytes)?;
        self.last.set(id.number);
        let stream = {
            let mut streams = self.streams.borrow_mut();
            let stream = streams.open(draft.stream);
            streams.push(&stream, message, self.limits().history.max(1) as usize);
            stream
        };
        self.count_bytes();
        self.has_news(stream, bytes);
        Ok(())
    }

    /// Drops old messages until there is room for this number of bytes.
    fn make_room(&self, bytes: u64) -> Result<(), Unpublishable> {
        while self.share.free() < bytes {
            if !self.streams.borrow_mut().drop_oldest() {
                return Err(Unpublishable::Full);
            }
            self.count_bytes();
        }
        Ok(())
    }

    // --- Subscribing ---------------------------------------------------------------------------------

    fn id(&self, number: u64) -> EventId {
        EventId { epoch: self.sequence.epoch, number }
    }

    /// Returns the number of the last message.
    pub(crate) fn last(&self) -> u64 {
        self.last.get()
    }

    /// Subscribes to the streams that a header field names, beginning after the message with this number.
    ///
    /// # Errors
    /// The response cannot be held.
    pub(crate) fn subscribe(
        self: &Rc<Self>,
        names: &[u8],
        after: u64,
    ) -> Result<Subscription, Unsubscribable> {
        let limits = self.limits();
        let names = stream_names(names, limits.held_streams as usize)?;
        if self.held.get() >= limits.held as usize || self.is_closed.get() {
            return Err(Unsubscribable::Full);
        }
        let cost = |name: &&[u8]| self.streams.borrow().cost_of_new(name);
        self.make_room(names.iter().map(cost).sum()).map_err(|_| Unsubscribable::Full)?;
        self.last_key.set(self.last_key.get() + 1);
        self.held.set(self.held.get() + 1);
        let subscription = {
            let mut streams = self.streams.borrow_mut();
            let lines = names.iter().map(|name| Line::new(streams.open(name))).collect();
            Subscription::new(Rc::clone(self), self.last_key.get(), lines, after)
        };
        self.count_bytes();
        Ok(subscription)
    }

    /// Ends a subscription.
    fn leave(&self, key: u64, lines: &[Line]) {
        let mut streams = self.streams.borrow_mut();
        lines.iter().for_each(|line| streams.leave(&line.stream, key));
        drop(streams);
        self.held.set(self.held.get() - 1);
        self.count_bytes();
    }

    /// Returns the time to a client's first heartbeat. It differs, so that clients that came together get theirs one by one.
    pub(crate) fn first_heartbeat(&self) -> Duration {
        let half = self.limits().heartbeat / 2;
        half + self.heartbeats.next(half)
    }

    /// Counts a process that was too slow to take messages before they were dropped.
    pub(crate) fn note_missed(&self, app: &str) {
        if let Some(times) = self.missed.note(LOG_MS) {
            tracing::warn!(
                name: "listener_too_slow",
                application = app, times, "a process that receives messages was too slow, and may have missed some: raise hub_history or max_hub"
            );
        }
    }

    /// Counts a client whose response or WebSocket ends because it is too slow.
    pub(crate) fn note_slow(&self) {
        self.slow_closed.set(self.slow_closed.get() + 1);
    }
}

/// Returns the names in a header field, each once.
fn stream_names(field: &[u8], most: usize) -> Result<Vec<&[u8]>, Unsubscribable> {
    let mut names = Vec::new();
    for name in field.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()) {
        if !is_stream_name(name) {
            return Err(Unsubscribable::Field(
                "has a Highball-Stream with a name that is too long or has control characters",
            ));
        }
        if names.contains(&name) {
            continue;
        }
        if names.len() == most {
            return Err(Unsubscribable::Field(
                "has a Highball-Stream with more names than max_held_streams allows",
            ));
        }
        names.push(name);
    }
    match names.is_empty() {
        true => Err(Unsubscribable::Field("has a Highball-Stream without a name")),
        false => Ok(names),
    }
}

#[cfg(test)]
mod tests;
