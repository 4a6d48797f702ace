//! Messages that the client of a WebSocket has missed while it was away. The lines of the feed go back to them, and pass over what they
//! have sent already. So a client gets no message twice, however often it asks.

use std::collections::HashMap;
use std::rc::Rc;

use super::feed::{Feed, FeedLine, Replay};
use super::message::EventId;
use super::Hub;

/// What a client says that it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    /// Its last message of each stream, by the stream's name. `None`: that is of no hub.
    pub(crate) after: HashMap<String, Option<EventId>>,
    /// For other streams: since when it may have missed messages, in milliseconds.
    pub(crate) since_ms: Option<u64>,
}

impl Feed {
    /// The streams of a channel go back to what its client has missed. Returns whether the client then has everything. Of a stream
    /// that has lost some of it, the client gets nothing.
    pub(crate) fn replay(&mut self, wrap: &Rc<str>, missed: &Missed) -> bool {
        let (mut is_whole, mut found) = (true, 0);
        for line in self.lines.iter_mut().filter(|line| Rc::ptr_eq(&line.wrap, wrap)) {
            let after = missed.after.get(&*String::from_utf8_lossy(line.stream.name()));
            if let Some(after) = after {
                found += 1;
                is_whole &= line.go_back_behind(*after, &self.hub);
            } else if let Some(first) = missed.since_ms.and_then(|at_ms| line.stream.first_since(at_ms)) {
                line.go_back_to(first);
            }
        }
        is_whole && found == missed.after.len()
    }

    /// These frames follow behind what is replayed.
    pub(crate) fn add_behind_replay(&mut self, frames: &[u8]) {
        self.behind_replay.extend_from_slice(frames);
    }
}

impl FeedLine {
    /// Goes back to what follows this message. Returns false if some of that is lost.
    fn go_back_behind(&mut self, after: Option<EventId>, hub: &Hub) -> bool {
        let is_known = |id: &EventId| {
            id.epoch == hub.sequence.epoch && (self.stream.lost()..=hub.last()).contains(&id.number)
        };
        let Some(EventId { number, .. }) = after.filter(is_known) else { return false };
        self.go_back_to(number + 1);
        true
    }

    /// Goes back to this message, if it is none that the client has got.
    fn go_back_to(&mut self, first: u64) {
        if first < self.first {
            self.replay = Some(Replay { until: self.first, then: self.next });
            self.first = first;
            self.go_to(first);
        }
    }
}
