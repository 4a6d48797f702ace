//! By which ids a request is known: its own, and that of the trace that it belongs to.

use super::Connection;
use crate::message::request_head::known_key;
use crate::message::request_id::RequestId;

impl Connection {
    /// The request gets its id, unless it has one: the one that came with its head, which was read from `bytes`, or a new one.
    pub(super) fn identify(&mut self, bytes: &[u8]) {
        self.request.head.drop_invalid_trace(bytes);
        if self.shared.settings.request_id && self.request.request_id.is_none() {
            self.take_id(bytes);
        }
    }

    #[inline(never)]
    fn take_id(&mut self, bytes: &[u8]) {
        let kept = RequestId::kept(self.request.head.values_of(known_key::X_REQUEST_ID, bytes));
        if kept.is_none() {
            self.request.head.drop_known(known_key::X_REQUEST_ID);
        }
        self.request.request_id = kept.or_else(|| self.new_id());
    }

    /// A request whose head could not be read gets an id, too: visitors and the log name it.
    pub(super) fn identify_unread(&mut self) {
        if self.shared.settings.request_id && self.request.request_id.is_none() {
            self.request.request_id = self.new_id();
        }
    }

    fn new_id(&self) -> Option<RequestId> {
        Some(self.shared.request_ids.borrow_mut().make())
    }
}
