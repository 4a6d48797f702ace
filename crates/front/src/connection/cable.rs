//! A WebSocket of Action Cable that the front holds: what is written to its client, and read from it. The messages on it, and to the
//! application, are in [`cable`](crate::cable).

use std::future::poll_fn;
use std::mem::take;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use super::server_close::moment;
use super::{ClientSide, Connection, End};
use crate::budget::Permit;
use crate::cable::{Cable, Next};
use crate::clock::now_ms;
use crate::message::answer::AnswerEvent;
use crate::message::request_head::RequestHead;
use crate::request::transaction::Leave;
use crate::route::app_state::AppState;
use crate::shared::Leaving;
use crate::succession::message::NewProcess;

/// Bytes of messages that are taken at a time: this is what a slow client holds.
const PIECE_BYTES: usize = 4096;

/// Bytes of the client that are read at a time.
const READ_BYTES: usize = 4096;

/// How often something is done before others get their turn.
const PIECES: usize = 16;

/// Status of the answer that has accepted it.
pub(super) const ACCEPTED: u16 = 101;

impl Connection {
    /// A worker has accepted the WebSocket, and the front holds it.
    #[cold]
    pub(super) fn begin_cable(&mut self, app: &AppState, answer: (Vec<u8>, u64)) -> End {
        let (head, generation) = {
            let mut inner = self.request.exchange.borrow();
            inner.waker = None;
            let request = take(&mut inner.request);
            (request.head.into_boxed_slice(), inner.generation)
        };
        let held = Permit::new(self.client.buffers(&app.buffers));
        let mut out = Vec::new();
        let (text, after) = (&answer.0[..], answer.1);
        match Cable::begin((text, after), head, generation, app, held, &mut out) {
            Ok(mut cable) => {
                self.send_on(&mut cable, &out);
                End::Cable(cable)
            }
            Err(error) => {
                tracing::error!(name: "websocket_closed", %error, "the WebSocket is closed");
                End::CutOff
            }
        }
    }

    /// Serves the WebSocket until client, application or server ends it. Returns the connection's end.
    pub(super) async fn serve_cable(&mut self, cable: &mut Cable) -> End {
        self.stream.keep_looking_for_peer();
        if self.protocol.begin_relay() {
            self.client_side = ClientSide::Ended;
        }
        let method = self.request.head.method;
        self.request.head = RequestHead::new();
        self.request.head.method = method;
        let mut ends_ms = None;
        let end = match self.request.visit.as_ref().map(|visit| Rc::clone(&**visit)) {
            Some(app) => {
                let end = poll_fn(|context| self.poll_cable(context, cable, &app, &mut ends_ms)).await;
                if !matches!(end, End::Passed) {
                    self.log_answer(&app, ACCEPTED, cable.sent_bytes);
                }
                end
            }
            None => End::Gone,
        };
        if matches!(end, End::CutOff) {
            cable.hub().note_slow();
        }
        end
    }

    /// The WebSocket has ended: the application learns of it.
    pub(super) async fn leave_cable(&mut self, cable: Box<Cable>) {
        if let Some(app) = self.request.visit.as_ref().map(|visit| Rc::clone(&**visit)) {
            cable.say_farewell(&app, &self.shared).await;
        }
        self.request.leave_app(Leave::MayFinish, &self.shared);
    }

    fn poll_cable(
        &mut self,
        context: &mut Context<'_>,
        cable: &mut Cable,
        app: &Rc<AppState>,
        ends_ms: &mut Option<u64>,
    ) -> Poll<End> {
        let shared = Rc::clone(&self.shared);
        shared.turn.step();
        cable.wake(context);
        for _ in 0..PIECES {
            if cable.is_behind() {
                return Poll::Ready(End::CutOff); // also while it takes nothing
            }
            match ready!(self.poll_events(context)) {
                Err(end) => return Poll::Ready(end),
                Ok(Some(_)) => return Poll::Ready(End::Linger),
                Ok(None) if self.client_side != ClientSide::Open => return Poll::Ready(End::Gone),
                Ok(None) if self.is_to_be_passed(cable) => return Poll::Ready(End::Passed),
                Ok(None) => {}
            }
            let mut out = Vec::new();
            let until_ms = self.limit_cable(app, ends_ms);
            if until_ms <= now_ms() && cable.may_restart() {
                cable.restart(&mut out);
            }
            let next = cable.next(context, PIECE_BYTES, (app, &shared), &mut out);
            self.send_on(cable, &out);
            match next {
                Next::Sent => {}
                Next::End => self.request.answer.push(AnswerEvent::End),
                Next::TooSlow => return Poll::Ready(End::CutOff),
                Next::Nothing { until_ms: other_ms } => {
                    return self.await_cable(context, until_ms.min(other_ms));
                }
                Next::Read { until_ms: other_ms } => match self.read_cable(context, cable) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(end)) => return Poll::Ready(end),
                    Poll::Pending => return self.await_cable(context, until_ms.min(other_ms)),
                },
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Looks again at this time, in milliseconds.
    fn await_cable(&self, context: &Context<'_>, until_ms: u64) -> Poll<End> {
        self.counted.deadline.put_back(until_ms);
        if self.counted.deadline.has_passed(context) {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn send_on(&mut self, cable: &mut Cable, bytes: &[u8]) {
        if !bytes.is_empty() {
            cable.sent_bytes += bytes.len() as u64;
            self.request.answer.push_bytes(bytes);
        }
    }

    /// Reads what the client sends next.
    fn read_cable(&mut self, context: &mut Context<'_>, cable: &mut Cable) -> Poll<Result<(), End>> {
        let mut out = Vec::new();
        if self.buffer.is_empty() {
            let shared = Rc::clone(&self.shared);
            let mut scratch = shared.scratch.borrow_mut();
            let read = &mut scratch[..READ_BYTES];
            let length = match ready!(self.stream.poll_read_some(context, read)) {
                Ok(length) if length > 0 => length,
                _ => return Poll::Ready(Err(End::Gone)),
            };
            let used = cable.hear(&read[..length], &mut out);
            self.buffer.add(&read[used..length]);
        } else {
            let used = cable.hear(self.buffer.as_slice(), &mut out);
            self.buffer.take_off(used);
        }
        self.send_on(cable, &out);
        Poll::Ready(Ok(()))
    }

    /// When the client is to connect again, in milliseconds: the application or the server is to end. Where another server has taken
    /// over, clients reconnect one by one. A client that the other server can get has more time, for the command that is under way.
    fn limit_cable(&self, app: &AppState, ends_ms: &mut Option<u64>) -> u64 {
        match self.shared.leaving() {
            Leaving::No if !app.is_leaving() => u64::MAX,
            Leaving::No | Leaving::Stopping => 0,
            Leaving::HandedOver => {
                let time = self.shared.settings.hijacked_drain_timeout;
                let ends_ms = *ends_ms.get_or_insert_with(|| {
                    now_ms() + moment(&self.shared.close_moments, time).as_millis() as u64
                });
                match *self.shared.new_process.borrow() {
                    NewProcess::Coming | NewProcess::Takes(_) if self.can_be_passed() => {
                        ends_ms + self.shared.settings.drain_timeout.as_millis() as u64 / 2
                    }
                    _ => ends_ms,
                }
            }
        }
    }
}
