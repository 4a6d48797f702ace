//! Sending what a worker answers.

use std::future::poll_fn;
use std::mem::take;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use super::held::Held;
use super::{ClientSide, Connection, End};
use crate::access_log::CLIENT_LEFT;
use crate::exchange::answer_stream::StreamNews;
use crate::exchange::response::Progress;
use crate::exchange::{Body, Exchange, Place};
use crate::message::refusal::Refusal;
use crate::route::app_state::AppState;

/// Most bytes that a client may send ahead while it waits for an answer.
const AHEAD_BYTES: usize = 64 * 1024;

/// How long a reset may take that shows that a client has left.
const PROBE: Duration = Duration::from_millis(200);

/// What became of a request that a worker was given.
#[derive(Debug)]
pub(super) enum Answered {
    /// The answer has been sent.
    Whole,
    /// This has to be sent instead.
    Refused(Refusal),
    /// It is cut off.
    CutOff,
    /// It was not answered, since it may be for a file.
    GivenBack,
    /// The application has taken the connection over.
    Hijacked(OwnedFd),
    /// It goes on with published messages.
    Held,
}

impl Answered {
    #[cold]
    pub(super) fn unsendable(refusal: Refusal) -> Self {
        tracing::error!(name: "response_not_sent", why = refusal.details(), "the answer cannot be sent");
        Answered::Refused(refusal)
    }
}

impl Connection {
    /// Waits for the answer and sends it as it comes. `Some`: the request was given back, and is to be routed again by this text.
    pub(super) async fn answer(&mut self, app: &AppState) -> Result<Option<Vec<u8>>, End> {
        if self.client_side != ClientSide::Open {
            self.client_side = ClientSide::Ended;
        }
        if !self.buffer.is_empty() {
            let (ahead, limits) = (self.buffer.take(), &self.shared.settings.limits);
            let kept = self.protocol.read_ahead(&ahead, limits).map_err(|_| End::Gone)?;
            self.buffer.add(kept);
        }
        self.counted.deadline.set(self.request.limit);
        let answered = poll_fn(|context| self.poll_answer(context, app)).await?;
        let (status, body_bytes) = {
            let mut inner = self.request.exchange.borrow();
            if !matches!(answered, Answered::Refused(_)) {
                inner.request.body = Body::None;
            }
            (inner.response.status, inner.response.body_bytes)
        };
        let compressed = self.request.compression.take().and_then(|stage| stage.sent());
        let (status, body_bytes) = compressed.unwrap_or((status, body_bytes));
        match answered {
            Answered::Whole => {
                self.log_answer(app, status, body_bytes);
                self.end_answer().map(|()| None)
            }
            // The application is well, and so is the connection.
            Answered::Refused(Refusal::AppRaised) => {
                self.refuse(Refusal::AppRaised, self.may_be_kept()).await.map(|()| None)
            }
            Answered::Refused(refusal) => self.refuse(refusal, false).await.map(|()| None),
            Answered::GivenBack => Ok(Some(take(&mut self.request.exchange.borrow().request.received))),
            Answered::CutOff => {
                self.request.note_cut_off();
                self.log_answer(app, status, body_bytes);
                Err(End::CutOff)
            }
            Answered::Hijacked(socket) => Err(self.hand_over(app, socket, status, body_bytes)),
            Answered::Held => Err(self.held(app, body_bytes)),
        }
    }

    /// The application has taken the connection over, after an answer of this status; 0: without one.
    #[cold]
    fn hand_over(&mut self, app: &AppState, socket: OwnedFd, status: u16, body_bytes: u64) -> End {
        if status == 0 && !self.protocol.can_be_taken_over_whole() {
            tracing::error!(
                name: "hijack_not_possible",
                "the application has taken over a connection whose protocol needs an answer (FastCGI, LSAPI or HTTP/2); a partial hijack (the header rack.hijack) works there"
            );
            return End::CutOff;
        }
        self.log_answer(app, status, body_bytes);
        End::TakenOver(socket)
    }

    /// The application has answered, and the front holds the response, or the WebSocket.
    #[cold]
    fn held(&mut self, app: &AppState, body_bytes: u64) -> End {
        let for_front = self.request.exchange.borrow().response.take_for_front();
        if let Some(answer) = for_front {
            return self.begin_cable(app, answer);
        }
        let held = self.request.exchange.borrow().response.take_held();
        held.map_or(End::CutOff, |subscription| End::Held(Held::new(subscription, body_bytes)))
    }

    /// In development the terminal gets no second line about a request that the application logs there itself.
    pub(super) fn log_answer(&mut self, app: &AppState, status: u16, body_bytes: u64) {
        let is_logged =
            self.request.exchange.borrow().response.is_logged_by_app && app.settings().is_development();
        let has_left = matches!(self.client_side, ClientSide::EndedEarly | ClientSide::Probed { .. });
        if is_logged && self.request.access_log(&self.shared).is_some_and(|log| log.is_in_terminal()) {
            self.request.is_logged_elsewhere();
            self.record(status, body_bytes);
        } else {
            self.record(if has_left { CLIENT_LEFT } else { status }, body_bytes);
        }
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, app: &AppState) -> Poll<Result<Answered, End>> {
        let may_go_on = self.request.exchange.borrow().response.may_go_on();
        if may_go_on {
            app.dispatcher.borrow_mut().pull(&self.request.exchange);
        }
        loop {
            if let Some(answered) = ready!(self.poll_events(context))? {
                return Poll::Ready(Ok(answered));
            }
            if let Some(stage) = &mut self.request.compression {
                if ready!(stage.poll_next(context, &mut self.request.answer)) {
                    continue;
                }
            }
            if self.take_events(app) {
                continue;
            }
            if self.poll_stream(context, app)? {
                continue;
            }
            let mut inner = self.request.exchange.borrow();
            if !inner.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                inner.waker = Some(context.waker().clone());
            }
            let waiting = inner.response.progress() == Progress::Waiting;
            drop(inner);
            let is_probed = matches!(self.client_side, ClientSide::Probed { .. });
            if (waiting || is_probed) && self.counted.deadline.has_passed(context) {
                if !is_probed {
                    return Poll::Ready(Ok(Answered::Refused(give_up(&self.request.exchange, app))));
                }
                self.end_probe()?;
                continue;
            }
            ready!(self.poll_client(context))?;
        }
    }

    /// Takes what has come of an answer that has left its place. `false`: nothing, or it has not.
    fn poll_stream(&mut self, context: &mut Context<'_>, app: &AppState) -> Result<bool, End> {
        let place = self.request.exchange.borrow().place;
        match place {
            Place::Stream(..) => self.take_from_stream(context, app),
            Place::Connection | Place::Queue | Place::Worker(..) => Ok(false),
        }
    }

    #[cold]
    fn take_from_stream(&mut self, context: &mut Context<'_>, app: &AppState) -> Result<bool, End> {
        let has_begun = self.request.exchange.borrow().response.progress() != Progress::Waiting;
        // The client of a stream that has ended its side is taken to have left: a client that is still there shows only when
        // something is sent, which may take hours.
        if has_begun && self.client_side != ClientSide::Open {
            return Err(End::Gone);
        }
        let idle_timeout = app.settings().limits.stream_idle_timeout;
        if self.request.exchange.borrow().stream.as_ref().is_some_and(|stream| stream.is_new()) {
            self.stream.keep_looking_for_peer();
            if has_begun {
                self.counted.deadline.set(idle_timeout);
            }
        }
        let news = self.request.exchange.poll_stream(context, &mut self.shared.scratch.borrow_mut());
        let has_begun = self.request.exchange.borrow().response.progress() != Progress::Waiting;
        match news {
            StreamNews::Ended => app.dispatcher.borrow_mut().end_stream(&self.request.exchange),
            StreamNews::Some if has_begun => self.counted.deadline.set(idle_timeout),
            StreamNews::None if has_begun && self.counted.deadline.has_passed(context) => {
                return Err(End::CutOff)
            }
            StreamNews::Some | StreamNews::None => {}
        }
        Ok(news != StreamNews::None)
    }

    /// Takes what has come of the answer by now. `false`: nothing.
    fn take_events(&mut self, app: &AppState) -> bool {
        let mut inner = self.request.exchange.borrow();
        inner.response.take_events(&mut self.request.answer);
        let news = !self.request.answer.is_empty() || inner.response.caught_up();
        // The worker may have more for which there was no room.
        let goes_on = news || inner.response.may_go_on();
        let more = goes_on && inner.place != Place::Connection;
        if inner.response.is_held() || inner.response.is_for_front() {
            self.request.compression = None; // it would keep memory for each client as long as that stays
        }
        drop(inner);
        if more {
            app.dispatcher.borrow_mut().pull(&self.request.exchange);
        }
        if let Some(stage) = &mut self.request.compression {
            stage.take_in(&mut self.request.answer);
        }
        goes_on
    }

    /// Looks whether the client is still there, and takes what it sends ahead.
    pub(super) fn poll_client(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        if self.client_side != ClientSide::Open || self.buffer.len() >= AHEAD_BYTES {
            return Poll::Pending;
        }
        let shared = Rc::clone(&self.shared);
        let limits = &shared.settings.limits;
        let mut scratch = shared.scratch.borrow_mut();
        match ready!(self.stream.poll_read_some(context, &mut scratch)) {
            Ok(0) => self.note_end()?,
            Ok(length) => match self.protocol.read_ahead(&scratch[..length], limits) {
                Ok(kept) => self.buffer.add(kept),
                Err(_) => return Poll::Ready(Err(End::Gone)),
            },
            Err(_) => return Poll::Ready(Err(End::Gone)),
        }
        Poll::Ready(Ok(()))
    }

    /// The client sends nothing more. It may only have ended its side, and is answered then.
    #[cold]
    fn note_end(&mut self) -> Result<(), End> {
        if !self.protocol.may_be_half_closed() {
            return Err(End::Gone);
        }
        let is_early = self.request.exchange.borrow().response.progress() == Progress::Waiting;
        self.client_side = match is_early {
            true if self.is_queued() => self.probe()?,
            true => ClientSide::EndedEarly,
            false => ClientSide::Ended,
        };
        Ok(())
    }

    /// A queued request whose client has left need not be begun. Of a Unix socket the kernel knows; with TCP, the client's
    /// machine resets the connection when something is sent. An interim head may be sent at any time, and clients skip it
    /// (RFC 9110 section 15.2). HTTP/1.0 clients get none, and count as waiting.
    fn probe(&mut self) -> Result<ClientSide, End> {
        if self.stream.is_closed() {
            return Err(End::Gone);
        }
        self.request.answer.push_front_head(100, false, None, |_| {});
        let before_ms = self.counted.deadline.at_ms();
        self.counted.deadline.at_most(PROBE);
        Ok(ClientSide::Probed { before_ms })
    }

    #[cold]
    fn end_probe(&mut self) -> Result<(), End> {
        if let ClientSide::Probed { before_ms } = self.client_side {
            self.client_side = ClientSide::EndedEarly;
            self.counted.deadline.put_back(before_ms);
        }
        match self.is_queued() && self.stream.is_closed() {
            true => Err(End::Gone),
            false => Ok(()),
        }
    }

    fn is_queued(&self) -> bool {
        self.request.exchange.borrow().place == Place::Queue
    }
}

/// The worker took too long.
#[cold]
fn give_up(exchange: &Rc<Exchange>, app: &AppState) -> Refusal {
    let worker = match exchange.borrow().place {
        Place::Worker(worker, _) => Some(worker),
        Place::Connection | Place::Queue | Place::Stream(..) => None,
    };
    app.dispatcher.borrow_mut().cancel(exchange);
    Refusal::WorkerTimeout { worker }
}
