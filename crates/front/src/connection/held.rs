//! A held response: the application has answered, and the front goes on with published messages. This needs no worker.

use std::future::poll_fn;
use std::mem::{replace, take};
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use super::server_close::moment;
use super::{ClientSide, Connection, End};
use crate::clock::now_ms;
use crate::hub::{Subscription, Taken, TURN_BYTES};
use crate::message::answer::AnswerEvent;
use crate::message::request_head::RequestHead;
use crate::refusals::failure::fields;
use crate::request::transaction::Leave;
use crate::shared::Leaving;

/// Bytes of messages to take at a time, which is also what a slow client occupies.
const PIECE_BYTES: usize = 4096;

/// How many times to take messages before others get their turn.
const PIECES: usize = TURN_BYTES / PIECE_BYTES;

/// A comment (WHATWG HTML, "Server-sent events").
const HEARTBEAT: &[u8] = b":\n\n";

/// Time for a client to take the last messages before the end, in milliseconds.
const END_MS: u64 = 2000;

/// The request's Last-Event-ID, under the name that its worker gets.
const LAST_EVENT_ID: &str = "HTTP_LAST_EVENT_ID";

/// The state of a held response.
#[derive(Debug)]
pub(super) struct Held {
    subscription: Box<Subscription>,
    /// Bytes of the body so far.
    body_bytes: u64,
    /// Whether a message was sent since the last heartbeat.
    is_lively: bool,
    /// Time of its end, in milliseconds, once another server has taken over.
    ends_ms: Option<u64>,
    /// Time after which it is cut off, in milliseconds, once it is ending.
    cut_off_ms: Option<u64>,
}

impl Held {
    /// Begins after an application's own body of this length.
    pub(super) fn new(subscription: Box<Subscription>, body_bytes: u64) -> Box<Held> {
        Box::new(Held { subscription, body_bytes, is_lively: false, ends_ms: None, cut_off_ms: None })
    }
}

impl Connection {
    /// Sends messages until the client leaves or the server ends it. Returns how the connection ends.
    pub(super) async fn hold(&mut self, mut held: Box<Held>) -> End {
        self.stream.keep_looking_for_peer();
        self.begin_to_hold(&mut held);
        let end = poll_fn(|context| self.poll_held(context, &mut held)).await;
        if matches!(end, End::CutOff) {
            held.subscription.hub().note_slow();
        }
        if let Some(app) = self.request.visit.as_ref().map(|visit| Rc::clone(&**visit)) {
            self.log_answer(&app, 200, held.body_bytes);
        }
        drop(held);
        self.request.leave_app(Leave::MayFinish, &self.shared);
        end
    }

    /// Drops what the access log does not need of the request, because the response may be open for days.
    fn begin_to_hold(&mut self, held: &mut Held) {
        let mut inner = self.request.exchange.borrow();
        inner.waker = None;
        let request = take(&mut inner.request);
        if let Some((_, id)) = fields(&request.head).find(|(key, _)| *key == LAST_EVENT_ID) {
            held.subscription.resume(id);
        }
        let method = self.request.head.method;
        self.request.head = RequestHead::new();
        self.request.head.method = method;
        self.counted.deadline.set(Some(held.subscription.hub().first_heartbeat()));
    }

    fn poll_held(&mut self, context: &mut Context<'_>, held: &mut Held) -> Poll<End> {
        self.shared.turn.step();
        held.subscription.wake(context.waker());
        for _ in 0..PIECES {
            if held.subscription.is_behind() {
                return Poll::Ready(End::CutOff); // also while it takes nothing
            }
            let is_to_end = self.is_to_end(held);
            let polled = self.poll_events(context);
            if is_to_end {
                let cut_off_ms = *held.cut_off_ms.get_or_insert_with(|| now_ms() + END_MS);
                if cut_off_ms <= now_ms() {
                    return Poll::Ready(End::Gone);
                }
                self.counted.deadline.at_most(Duration::from_millis(cut_off_ms - now_ms()));
            }
            match ready!(polled) {
                Err(end) => return Poll::Ready(end),
                Ok(Some(_)) => return Poll::Ready(End::Linger),
                Ok(None) if self.client_side != ClientSide::Open => return Poll::Ready(End::Gone),
                Ok(None) => {}
            }
            match self.push_next(context, held, is_to_end) {
                Taken::Bytes(_) => continue,
                Taken::Behind => return Poll::Ready(End::CutOff),
                Taken::Nothing => {}
            }
            if let Err(end) = ready!(self.poll_client(context)) {
                return Poll::Ready(end);
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Queues what to send next: messages, a heartbeat, or the end.
    fn push_next(&mut self, context: &Context<'_>, held: &mut Held, is_to_end: bool) -> Taken {
        let answer = &mut self.request.answer;
        let taken = held.subscription.take(PIECE_BYTES, |bytes| answer.push_bytes(bytes));
        if let Taken::Bytes(bytes) = taken {
            held.body_bytes += bytes as u64;
            held.is_lively = true;
        } else if taken == Taken::Nothing && is_to_end {
            self.request.answer.push(AnswerEvent::End);
            return Taken::Bytes(0);
        } else if taken == Taken::Nothing && self.counted.deadline.has_passed(context) {
            self.counted.deadline.set(Some(held.subscription.hub().limits().heartbeat));
            if !replace(&mut held.is_lively, false) {
                self.request.answer.push_bytes(HEARTBEAT);
                held.body_bytes += HEARTBEAT.len() as u64;
            }
            return Taken::Bytes(0);
        }
        taken
    }

    /// Returns whether the response has to end, because the application or the server ends. After a hot restart, responses end
    /// one by one.
    fn is_to_end(&self, held: &mut Held) -> bool {
        match self.shared.leaving() {
            Leaving::No => self.request.visit.as_ref().is_none_or(|app| app.is_leaving()),
            Leaving::Stopping => true,
            Leaving::HandedOver => {
                let time = self.shared.settings.hijacked_drain_timeout;
                let moment = || moment(&self.shared.close_moments, time).as_millis() as u64;
                let ends_ms = *held.ends_ms.get_or_insert_with(|| now_ms() + moment());
                self.counted.deadline.at_most(Duration::from_millis(ends_ms.saturating_sub(now_ms())));
                ends_ms <= now_ms()
            }
        }
    }
}
