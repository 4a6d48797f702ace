//! The position of a process that receives messages: those of all streams whose names begin with a prefix, in the order of
//! publishing. Like a subscriber, it has no buffer.

use std::future::poll_fn;
use std::ops::ControlFlow::{Break, Continue};
use std::rc::Rc;
use std::task::Poll;

use super::message::{EventId, Message};
use super::streams::{Seat, Stream};
use super::{Hub, Unpublishable};

/// Number of messages to look at before others get their turn.
const LOOKS: usize = 256;

/// The position of a process among the messages.
#[derive(Debug)]
pub(crate) struct Listener {
    hub: Rc<Hub>,
    key: u64,
    seat: Rc<Seat>,
    prefix: Box<[u8]>,
    /// Number of the next message.
    next: u64,
    /// Whether a message was dropped before the process took it. (It may have been for another prefix.)
    pub(crate) may_have_missed: bool,
}

impl Hub {
    /// Listens to all streams whose names begin with this prefix. Without an id, it begins with the next message; with one,
    /// after that message; with an id of another server process, with the oldest message that is kept.
    ///
    /// # Errors
    /// The application is no longer served.
    pub(crate) fn listen(
        self: &Rc<Self>,
        prefix: &[u8],
        last_event_id: &[u8],
    ) -> Result<Listener, Unpublishable> {
        if self.is_closed.get() {
            return Err(Unpublishable::Closed);
        }
        self.last_key.set(self.last_key.get() + 1);
        let (key, seat) = (self.last_key.get(), Rc::default());
        self.everything.seat(key, &seat);
        let after = match EventId::parse(last_event_id) {
            Some(id) if id.epoch != self.sequence.epoch => 0,
            Some(id) => id.number.min(self.last()),
            None => self.last(),
        };
        let hub = Rc::clone(self);
        Ok(Listener { hub, key, seat, prefix: prefix.into(), next: after + 1, may_have_missed: false })
    }
}

impl Listener {
    /// Returns the id of the message before the next one.
    pub(crate) fn position(&self) -> EventId {
        self.hub.id(self.next - 1)
    }

    /// Waits for the next message, or for the end.
    pub(crate) async fn news(&self) {
        poll_fn(|context| {
            self.seat.set(context.waker());
            match self.has_all() && !self.hub.is_closed.get() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Returns whether there is no next message yet.
    pub(crate) fn has_all(&self) -> bool {
        self.next > self.hub.last()
    }

    /// Returns whether no message will follow.
    pub(crate) fn is_over(&self) -> bool {
        self.has_all() && self.hub.is_closed.get()
    }

    /// Calls `write` with the names of streams and the texts of the next messages, until it has taken `most` bytes.
    pub(crate) fn take(&mut self, most: usize, mut write: impl FnMut(&[u8], &[u8])) {
        self.take_messages(most, |stream, message| write(stream.name(), &message.text));
    }

    /// Calls `take` with the next messages and their streams, until these have `most` bytes.
    pub(super) fn take_messages(&mut self, most: usize, mut take: impl FnMut(&Stream, &Message)) {
        let streams = self.hub.streams.borrow();
        self.may_have_missed |= streams.dropped() >= self.next;
        let mut bytes = 0;
        let looked = streams.from(self.next).take(LOOKS).try_for_each(|(number, stream)| {
            self.next = number + 1;
            if stream.name().starts_with(&self.prefix) {
                stream.with(number, |message| {
                    take(stream, message);
                    bytes += message.text.len();
                });
            }
            if bytes < most {
                Continue(())
            } else {
                Break(())
            }
        });
        if looked.is_continue() && streams.from(self.next).next().is_none() {
            self.next = self.hub.last() + 1;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.everything.leave(self.key);
    }
}
