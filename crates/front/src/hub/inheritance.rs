//! What a new process takes over from the old one's hub in a hot restart: the messages that streams keep, under their numbers.

use std::collections::VecDeque;
use std::rc::Rc;

use super::message::is_stream_name;
use super::streams::{Stream, Streams};
use super::{Draft, Hub};
use crate::hub::message::Message;
use crate::succession::message::FromOld;

/// What a hub leaves to a new process: all of it, message by message.
#[derive(Debug)]
pub(crate) struct Estate {
    first: Option<FromOld>,
    streams: Vec<Rc<Stream>>,
    /// The stream whose messages come, and their numbers.
    current: Option<(Rc<Stream>, VecDeque<u64>)>,
}

/// A hub while it inherits.
#[derive(Debug)]
pub(crate) struct Inheritance {
    hub: Rc<Hub>,
    /// The stream whose messages come, and the last message that it had dropped.
    stream: Option<(Vec<u8>, u64)>,
}

impl Hub {
    /// Has publishers wait from now on.
    pub(crate) fn pause(&self) {
        self.is_paused.set(true);
    }

    /// Publishers go on.
    pub(crate) fn resume(&self) {
        self.is_paused.set(false);
        self.caught_up.notify_waiters();
    }

    /// Returns what a new process gets of this hub, which is the one of the application with this name.
    pub(crate) fn estate(&self, app: &str) -> Estate {
        let streams = self.streams.borrow();
        let (forgotten, dropped) = streams.losses();
        let bus = self.bus.position();
        let first = Some(FromOld::Hub { app: app.into(), forgotten, dropped, bus });
        Estate { first, streams: streams.all().cloned().collect(), current: None }
    }

    /// Inherits from a hub with these losses, and this position on the bus.
    pub(crate) fn inherit(self: &Rc<Self>, forgotten: u64, dropped: u64, bus: &str) -> Inheritance {
        self.bus.set_position(bus);
        self.streams.borrow_mut().inherit(self.sequence.after, (forgotten, dropped));
        Inheritance { hub: Rc::clone(self), stream: None }
    }
}

impl Iterator for Estate {
    type Item = FromOld;

    fn next(&mut self) -> Option<FromOld> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if let Some((stream, numbers)) = &mut self.current {
            // A message may have become too old meanwhile.
            if let Some(message) =
                std::iter::from_fn(|| numbers.pop_front()).find_map(|number| message_of(stream, number))
            {
                return Some(message);
            }
        }
        let stream = self.streams.pop()?;
        let message = FromOld::Stream { name: stream.name().into(), lost: stream.lost() };
        self.current = Some((Rc::clone(&stream), stream.numbers()));
        Some(message)
    }
}

fn message_of(stream: &Stream, number: u64) -> Option<FromOld> {
    stream.with(number, |message| {
        let (event, data) = message.texts();
        FromOld::Message { number, at_ms: message.at_ms, event, data }
    })
}

impl Inheritance {
    /// What follows is of this stream.
    pub(crate) fn begin_stream(&mut self, name: Vec<u8>, lost: u64) {
        self.stream = is_stream_name(&name).then_some((name, lost));
        if self.make_room(0) {
            self.with_stream(|_, _| {});
        }
    }

    /// Takes a message that was published at this time, in milliseconds.
    pub(crate) fn add(&mut self, number: u64, at_ms: u64, event: &str, data: &str) {
        let Some((name, _)) = &self.stream else { return };
        if number == 0 || number > self.hub.sequence.after {
            return;
        }
        let draft = Draft { stream: name, event: event.as_bytes(), data: data.as_bytes() };
        let message = Message::encode(self.hub.id(number), at_ms, &draft);
        if self.make_room(message.cost()) {
            let most = self.hub.limits().history.max(1) as usize;
            self.with_stream(|streams, stream| streams.push_inherited(stream, message, most));
        }
    }

    fn make_room(&self, bytes: u64) -> bool {
        let Some((name, _)) = &self.stream else { return false };
        let stream_bytes = self.hub.streams.borrow().cost_of_new(name);
        self.hub.make_room(bytes + stream_bytes).is_ok()
    }

    fn with_stream(&self, change: impl FnOnce(&mut Streams, &Rc<Stream>)) {
        let Some((name, lost)) = &self.stream else { return };
        let mut streams = self.hub.streams.borrow_mut();
        let stream = streams.open_inherited(name, *lost);
        change(&mut streams, &stream);
        streams.settle(&stream);
        drop(streams);
        self.hub.count_bytes();
    }
}
