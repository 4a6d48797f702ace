//! Reading the head of a request.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use super::{ClientSide, Connection, End};
use crate::message::refusal::Refusal;
use crate::message::request_head::{Method, Version};
use crate::protocol::{BytesRead, Unreadable};
use crate::request::steps;
use crate::request::{Arrived, Decision};
use crate::shared::Leaving;

/// The largest buffer that an idle connection keeps.
const IDLE_BYTES: usize = 4096;

/// Outcome of a request, or the end of the connection.
type Examined = Result<Decision, End>;

impl Connection {
    /// Reads the next request's head, and decides the outcome of the request.
    pub(super) async fn next_request(&mut self) -> Result<Decision, End> {
        self.client.forget_reported();
        self.request.begin();
        self.protocol.finish().map_err(|_| End::Done)?;
        self.counted.rest(self.shared.settings.limits.idle_timeout);
        if !self.buffer.is_empty() {
            self.counted.work();
            // The client did not wait for the answer before.
            if let Some(examined) = self.examine_buffer() {
                return examined;
            }
            self.counted.deadline.set(Some(self.shared.settings.limits.head_timeout));
        }
        let mut known = Leaving::No;
        poll_fn(|context| self.poll_request(context, &mut known)).await
    }

    fn poll_request(
        &mut self,
        context: &mut Context<'_>,
        known: &mut Leaving,
    ) -> Poll<Result<Decision, End>> {
        loop {
            if self.protocol.has_replies() || !self.output.is_sent() {
                ready!(self.poll_events(context))?;
            }
            if self.protocol.is_closing() {
                return Poll::Ready(Err(End::Linger));
            }
            if self.client_side != ClientSide::Open {
                return Poll::Ready(Err(End::Gone));
            }
            let begun = self.protocol.has_begun(self.buffer.as_slice());
            let shared = Rc::clone(&self.shared);
            let mut scratch = shared.scratch.borrow_mut();
            let Poll::Ready(read) = self.stream.poll_read_some(context, &mut scratch) else {
                return self.poll_without_request(context, begun, known);
            };
            let length = match read {
                Ok(0) | Err(_) => return Poll::Ready(Err(End::Gone)),
                Ok(length) => length,
            };
            if let Some(examined) = self.examine_read(&scratch[..length], begun) {
                return Poll::Ready(examined);
            }
        }
    }

    /// Nothing has come to be read, and no request is whole. The first bytes of one may be there (`begun`).
    fn poll_without_request(
        &mut self,
        context: &mut Context<'_>,
        begun: bool,
        known: &mut Leaving,
    ) -> Poll<Result<Decision, End>> {
        if self.shared.leaving() != *known && !begun {
            *known = self.shared.leaving();
            self.counted.deadline.at_most(self.shared.time_for_last_request());
        }
        if self.counted.deadline.has_passed(context) {
            return Poll::Ready(if begun {
                let buffer = self.buffer.take();
                Ok(self.refuse_unread(&buffer, Refusal::HeadTimeout))
            } else {
                Err(End::Gone)
            });
        }
        if self.counted.is_dismissed() {
            return Poll::Ready(Err(End::Gone));
        }
        self.become_idle();
        Poll::Pending
    }

    /// An idle connection keeps little memory: most open ones are idle.
    fn become_idle(&mut self) {
        let mut inner = self.request.exchange.borrow();
        if inner.request.head.capacity() > IDLE_BYTES {
            inner.request.head = Vec::new();
        }
    }

    /// Looks at what has just been read, together with what was kept before.
    fn examine_read(&mut self, bytes: &[u8], begun: bool) -> Option<Examined> {
        if begun {
            return self.examine_more(bytes);
        }
        let idle_until_ms = self.counted.deadline.at_ms();
        self.counted.work();
        self.counted.deadline.set(Some(self.shared.settings.limits.head_timeout));
        let examined = self.examine_more(bytes);
        if examined.is_none() && !self.protocol.has_begun(self.buffer.as_slice()) {
            // What belongs to no request is no reason to keep the connection.
            self.counted.rest_until(idle_until_ms);
        }
        examined
    }

    fn examine_more(&mut self, bytes: &[u8]) -> Option<Examined> {
        if !self.buffer.is_empty() {
            self.buffer.add(bytes);
            return self.examine_buffer();
        }
        // The usual case: a whole head in one read, used where it stands.
        let (examined, used) = self.examine(bytes);
        self.buffer.add(&bytes[used..]);
        examined
    }

    fn examine_buffer(&mut self) -> Option<Examined> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let (examined, used) = self.examine(buffer.as_slice());
        buffer.take_off(used);
        self.buffer = buffer;
        examined
    }

    /// Reads the head at the start of `bytes`. Returns the request's next step, and the number of bytes that are used
    /// up.
    fn examine(&mut self, bytes: &[u8]) -> (Option<Examined>, usize) {
        let read = self.protocol.read_head(bytes, &self.shared.settings.limits, &mut self.request.head);
        let used = match read {
            Ok(BytesRead { used, is_complete: true }) => used,
            Ok(BytesRead { used, is_complete: false }) => return (None, used),
            Err(Unreadable::Refused(refusal)) => {
                return (Some(Ok(self.refuse_unread(bytes, refusal))), bytes.len())
            }
            Err(Unreadable::Gone) => return (Some(Err(End::Gone)), bytes.len()),
        };
        self.protocol.begin_answer(&self.request.head);
        let text = self.protocol.take_head_text(&self.client.peer).map(|(text, client)| {
            self.client.become_reported(client);
            text
        });
        (Some(Ok(self.route(text.as_deref().unwrap_or(&bytes[..used])))), used)
    }

    /// Decides the outcome of a request that was read, by the text that its head has spans of.
    pub(super) fn route(&mut self, text: &[u8]) -> Decision {
        let Connection { request, client, stream, shared, .. } = self;
        match client.learn(&mut request.head, text, stream, &shared.settings) {
            Ok(()) => self.route_again(text),
            Err(refusal) => Decision::Refuse(refusal),
        }
    }

    /// The same for a request whose client is known by now.
    pub(super) fn route_again(&mut self, text: &[u8]) -> Decision {
        let Connection { request, client, stream, shared, protocol, .. } = self;
        steps::route(request, Arrived { shared, stream, client, protocol, text })
    }

    /// Refuses a request whose head could not be read: what stands in `head` is of the one before. No body follows if the
    /// method is HEAD, whatever else is wrong (RFC 9110 section 9.3.2).
    #[cold]
    fn refuse_unread(&mut self, bytes: &[u8], refusal: Refusal) -> Decision {
        let is_head = bytes.trim_ascii_start().starts_with(b"HEAD ");
        self.request.head.method = if is_head { Method::Head } else { Method::default() };
        self.request.head.version = Version::Http11;
        self.request.head.keep_alive = false;
        self.protocol.begin_answer(&self.request.head);
        Decision::Refuse(refusal)
    }
}
