//! An answer from the cache, while it is sent.

use std::rc::Rc;

use crate::budget::Permit;
use crate::cache::Bytes;
use crate::message::answer::{AnswerEvent, AnswerEvents};

/// The bytes of a body that each connection may have in memory, also where buffers are full, and the most that it has.
const FREE_BYTES: usize = 16 * 1024;
const PIECE_BYTES: usize = 256 * 1024;

/// An answer from the cache, whose head is in the transaction.
#[derive(Debug)]
pub(crate) struct CachedAnswer {
    pub(crate) status: u16,
    body: Rc<Bytes>,
    /// What of the body was sent; none: there is nothing to send of it.
    sent: Option<usize>,
    permit: Permit,
}

impl CachedAnswer {
    /// With this body, of which nothing was sent. `None`: the answer has none.
    pub(crate) fn new(status: u16, body: Rc<Bytes>, has_body: bool, permit: Permit) -> Self {
        CachedAnswer { status, body, sent: has_body.then_some(0), permit }
    }

    /// Adds the next of the body to the events, and the end behind all of it.
    pub(crate) fn push_next(&mut self, events: &mut AnswerEvents) {
        if let Some(sent) = &mut self.sent {
            let missing = self.body.length() - *sent;
            let wanted = missing.min(PIECE_BYTES);
            self.permit.set(0);
            let has_room = wanted <= FREE_BYTES || self.permit.grow((wanted - FREE_BYTES) as u64).is_ok();
            let piece = self.body.piece(*sent, if has_room { wanted } else { FREE_BYTES });
            events.push_bytes(piece);
            *sent += piece.len();
        }
        if self.is_at_end() {
            events.push(AnswerEvent::End);
        }
    }

    /// Whether all of it was added to the events.
    pub(crate) fn is_at_end(&self) -> bool {
        self.sent.is_none_or(|sent| sent == self.body.length())
    }

    /// Bytes of the body that were added to the events.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.sent.unwrap_or(0) as u64
    }
}
