//! The position of one client among the messages of its streams.

use std::rc::Rc;
use std::task::Waker;

use crate::hub::message::EventId;
use crate::hub::streams::{Seat, Stream};
use crate::hub::Hub;

/// A stream of a subscription.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) stream: Rc<Stream>,
    /// Last message that the stream had dropped when the client came. The client learns of that.
    lost: u64,
}

impl Line {
    pub(super) fn new(stream: Rc<Stream>) -> Line {
        Line { lost: stream.lost(), stream }
    }
}

/// The subscription of one client.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Rc<Hub>,
    key: u64,
    lines: Box<[Line]>,
    seat: Rc<Seat>,
    /// Number of the next message.
    next: u64,
    /// Bytes of the next message that are already taken.
    taken_bytes: usize,
    /// What to send before the first message.
    opening: Option<Opening>,
}

/// What to send before the first message.
#[derive(Debug, Clone, Copy)]
enum Opening {
    /// Nothing, because the client has the id of its last event.
    Nothing,
    /// The id from which a reconnecting client can go on.
    Id,
    /// The same id in an event, with the reason why messages may be missing.
    Gap(&'static str),
}

/// The result of taking messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Number of bytes; there may be more.
    Bytes(usize),
    /// The client has everything.
    Nothing,
    /// The next message was dropped.
    Behind,
}

impl Subscription {
    pub(super) fn new(hub: Rc<Hub>, key: u64, lines: Box<[Line]>, after: u64) -> Subscription {
        let seat = Rc::default();
        lines.iter().for_each(|line| line.stream.seat(key, &seat));
        let mut subscription = Subscription { hub, key, lines, seat, next: 0, taken_bytes: 0, opening: None };
        subscription.begin(after, Opening::Id);
        subscription
    }

    /// Begins after the message with this number.
    fn begin(&mut self, after: u64, opening: Opening) {
        let has_lost = self.lines.iter().any(|line| line.lost > after);
        self.next = after + 1;
        self.opening = Some(match opening {
            Opening::Id | Opening::Nothing if has_lost => Opening::Gap("expired"),
            opening => opening,
        });
    }

    /// Continues after the event that a client names in `Last-Event-ID`. Call it before `take`.
    pub(crate) fn resume(&mut self, last_event_id: &[u8]) {
        match EventId::parse(last_event_id) {
            // The client has none of this process's messages.
            Some(id) if id.epoch != self.hub.sequence.epoch => self.begin(0, Opening::Gap("restarted")),
            Some(id) if id.number <= self.hub.last() => self.begin(id.number, Opening::Nothing),
            _ => {}
        }
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Sets the task to wake for new messages.
    pub(crate) fn wake(&self, waker: &Waker) {
        self.seat.set(waker);
    }

    /// Returns whether the next message was dropped.
    pub(crate) fn is_behind(&self) -> bool {
        let is_missing = |line: &Line| line.stream.lost() > line.lost && line.stream.lost() >= self.next;
        self.lines.iter().any(is_missing)
    }

    /// Calls `write` with the next pieces of text, up to `most` bytes.
    pub(crate) fn take(&mut self, most: usize, mut write: impl FnMut(&[u8])) -> Taken {
        if self.is_behind() {
            return Taken::Behind;
        }
        let mut bytes = 0;
        if let Some(opening) = self.opening.take() {
            let text = self.opening_text(opening);
            write(text.as_bytes());
            bytes += text.len();
        }
        while bytes < most {
            let coming = self.lines.iter().filter_map(|line| {
                let number = line.stream.first_from(self.next)?;
                Some((number, &line.stream))
            });
            let Some((number, stream)) = coming.min_by_key(|(number, _)| *number) else {
                self.next = self.hub.last() + 1;
                break;
            };
            stream.read(number, |text| {
                let rest = &text[self.taken_bytes..];
                let piece = &rest[..rest.len().min(most - bytes)];
                write(piece);
                bytes += piece.len();
                let is_whole = piece.len() == rest.len();
                self.taken_bytes = if is_whole { 0 } else { self.taken_bytes + piece.len() };
                self.next = if is_whole { number + 1 } else { number };
            });
        }
        if bytes == 0 {
            Taken::Nothing
        } else {
            Taken::Bytes(bytes)
        }
    }

    /// Begins with an empty line, because the application's own body may have ended within an event.
    fn opening_text(&self, opening: Opening) -> String {
        let id = self.hub.id(self.next - 1);
        match opening {
            Opening::Nothing => "\n\n".into(),
            Opening::Id => format!("\n\nid: {id}\n\n"),
            Opening::Gap(why) => format!("\n\nid: {id}\nevent: highball-gap\ndata: {why}\n\n"),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.leave(self.key, &self.lines);
    }
}
