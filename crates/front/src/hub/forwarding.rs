//! The messages that a new server process publishes after a hot restart, for clients that are still connected to the old one: those
//! over TLS and HTTP/2 connect again one by one, and get what comes until then.

use std::rc::Rc;

use super::streams::Stream;
use super::{Draft, Hub, Listener, Unpublishable};
use crate::hub::message::Message;
use crate::succession::message::PassedMessage;

impl Hub {
    /// Listens to all messages that this process has published, from the first on.
    ///
    /// # Errors
    /// The application is no longer served.
    pub(crate) fn listen_to_own(self: &Rc<Self>) -> Result<Listener, Unpublishable> {
        self.listen(b"", self.id(self.sequence.after).to_string().as_bytes())
    }

    /// Publishes a message of the new process here.
    ///
    /// # Errors
    /// There is no room for it, or its number is not behind those which are known here.
    pub(crate) async fn publish_forwarded(
        self: &Rc<Self>,
        passed: &PassedMessage,
    ) -> Result<(), Unpublishable> {
        self.room().await;
        let draft =
            Draft { stream: &passed.stream.0, event: passed.event.as_bytes(), data: passed.data.as_bytes() };
        if self.is_closed.get() || passed.number <= self.last() {
            return Err(Unpublishable::Closed);
        }
        // The new process has looked at its size; here, the limit may be another.
        draft.check(u64::MAX)?;
        self.add(self.id(passed.number), passed.at_ms, &draft)
    }
}

impl Listener {
    /// Takes the next messages, until they have `most` bytes.
    pub(crate) fn take_to_forward(&mut self, most: usize) -> Vec<PassedMessage> {
        let mut taken = Vec::new();
        self.take_messages(most, |stream, message| taken.push(passed(stream, message)));
        taken
    }
}

fn passed(stream: &Stream, message: &Message) -> PassedMessage {
    let (event, data) = message.texts();
    PassedMessage { stream: stream.name().into(), number: message.number, at_ms: message.at_ms, event, data }
}
