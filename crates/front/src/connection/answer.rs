//! Sending what a worker answers.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use super::{Connection, End, Stalled};
use crate::access_log::CLIENT_LEFT;
use crate::app_state::AppState;
use crate::exchange::{Body, Place};
use crate::refusal::Refusal;
use crate::response::{Part, Progress};

/// Most bytes that a client may send ahead while it waits for an answer.
const AHEAD_BYTES: usize = 64 * 1024;

/// How long a client may take nothing before what it does not take goes to a spool file, while no other request waits
/// for the worker. When one does, it goes there at once.
const PATIENCE: Duration = Duration::from_millis(250);

/// What became of a request that a worker was given.
#[derive(Debug)]
enum Answered {
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
}

impl Connection {
    /// Waits for the answer and sends it as it comes. `true`: the connection can be kept.
    pub(super) async fn answer(&mut self, app: &AppState) -> Result<bool, End> {
        self.out.clear();
        self.written = 0;
        self.left_early = false;
        self.counted.deadline.set(app.settings().limits.request_timeout);
        let answered = poll_fn(|context| self.poll_answer(context, app)).await?;
        let (status, body_bytes, keep_alive) = {
            let mut inner = self.exchange.borrow();
            if !matches!(answered, Answered::Refused(_)) {
                inner.request.body = Body::None;
            }
            (inner.response.status, inner.response.body_bytes, inner.response.keep_alive)
        };
        match answered {
            Answered::Whole => {
                self.log_answer(app, status, body_bytes);
                Ok(keep_alive)
            }
            // The application is well, and so is the connection.
            Answered::Refused(Refusal::AppRaised) => {
                self.refuse(Refusal::AppRaised, self.may_be_kept()).await
            }
            Answered::Refused(refusal) => self.refuse(refusal, false).await,
            Answered::GivenBack => {
                let head = std::mem::take(&mut self.exchange.borrow().request.received);
                self.buffer.splice(0..0, head);
                Ok(true)
            }
            Answered::CutOff => {
                self.log_answer(app, status, body_bytes);
                Err(End::CutOff)
            }
            Answered::Hijacked(socket) => {
                self.log_answer(app, status, body_bytes);
                self.relay(socket).await;
                Err(End::Linger)
            }
        }
    }

    /// In development the terminal gets no second line about a request that the application logs there itself.
    fn log_answer(&mut self, app: &AppState, status: u16, body_bytes: u64) {
        let is_logged = self.exchange.borrow().response.is_logged_by_app && app.settings().is_development();
        if is_logged && self.access_log().is_some_and(|log| log.is_in_terminal()) {
            self.entry = None;
        } else {
            self.log(if self.left_early { CLIENT_LEFT } else { status }, body_bytes);
        }
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, app: &AppState) -> Poll<Result<Answered, End>> {
        loop {
            ready!(self.poll_send(context))?;
            if self.take_output(app) {
                continue;
            }
            let mut inner = self.exchange.borrow();
            match inner.response.progress() {
                Progress::Ended if inner.response.hijack.is_none() => {
                    return Poll::Ready(Ok(Answered::Whole))
                }
                Progress::Refused(refusal) => return Poll::Ready(Ok(Answered::Refused(refusal))),
                Progress::Aborted => return Poll::Ready(Ok(Answered::CutOff)),
                Progress::GivenBack => return Poll::Ready(Ok(Answered::GivenBack)),
                Progress::Waiting | Progress::Streaming | Progress::Ended => {}
            }
            if let Some(socket) = inner.response.hijack.take() {
                return Poll::Ready(Ok(Answered::Hijacked(socket)));
            }
            if !inner.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                inner.waker = Some(context.waker().clone());
            }
            let waiting = inner.response.progress() == Progress::Waiting;
            drop(inner);
            if waiting && self.counted.deadline.has_passed(context) {
                return Poll::Ready(Ok(Answered::Refused(self.give_up(app))));
            }
            ready!(self.poll_client(context))?;
        }
    }

    /// The worker took too long.
    fn give_up(&mut self, app: &AppState) -> Refusal {
        let worker = match self.exchange.borrow().place {
            Place::Worker(worker, _) => Some(worker),
            Place::Connection | Place::Queue => None,
        };
        app.dispatcher.borrow_mut().cancel(&self.exchange);
        Refusal::WorkerTimeout { worker }
    }

    /// Takes what the answer has to send by now. `false`: nothing.
    fn take_output(&mut self, app: &AppState) -> bool {
        let mut inner = self.exchange.borrow();
        self.out.clear();
        self.written = 0;
        std::mem::swap(&mut self.out, &mut inner.response.out);
        let mut news = true;
        if self.out.is_empty() {
            match inner.response.next_part() {
                Some(Part::Bytes(bytes)) => self.out = bytes,
                Some(Part::File(part)) => self.file = Some(part),
                None => news = inner.response.caught_up(),
            }
        }
        // The worker may have more for which there was no room.
        let more = news && inner.place != Place::Connection;
        drop(inner);
        if more {
            app.dispatcher.borrow_mut().pull(&self.exchange);
        }
        news
    }

    /// Sends `out` and the file behind it.
    pub(super) async fn send_rest(&mut self) -> Result<(), End> {
        poll_fn(|context| self.poll_send(context)).await?;
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        while self.written < self.out.len() || self.file.is_some() {
            let rest = &self.out[self.written..];
            let at_file = rest.is_empty();
            let polled = match &mut self.file {
                // What is missing of a file is missing of the answer.
                Some(part) if at_file => self.stream.poll_send_file(context, part).map_err(|_| End::CutOff),
                file => {
                    let polled = match file {
                        Some(_) => self.stream.poll_write_ahead(context, rest),
                        None => self.stream.poll_write_some(context, rest),
                    };
                    polled.map_ok(|length| self.written += length).map_err(|_| End::Gone)
                }
            };
            let Poll::Ready(sent) = polled else { return self.poll_stalled(context) };
            sent?;
            self.resume();
            if self.file.as_ref().is_some_and(|part| part.length == 0) {
                self.file = None;
            } else if self.file.is_some() && at_file {
                // Others get their turn between two pieces of a file.
                self.shared.bound_turn();
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The client has taken something.
    fn resume(&mut self) {
        if self.stalled != Stalled::No {
            self.stalled = Stalled::No;
            self.counted.deadline.put_back(self.deadline_before_stall_ms);
        }
    }

    /// The client takes nothing at the moment. It has `send_timeout` from the last byte that it took; long before
    /// that, its worker is spared the wait.
    fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        let limits = &self.shared.settings.limits;
        let deadline = &self.counted.deadline;
        if self.stalled == Stalled::No {
            self.stalled = Stalled::Patient;
            self.deadline_before_stall_ms = deadline.at_ms();
            let others_wait = self.dispatcher().is_some_and(|dispatcher| dispatcher.queue_length() > 0);
            let patience = if others_wait { Duration::ZERO } else { PATIENCE };
            deadline.set(Some(patience.min(limits.send_timeout)));
        }
        if !deadline.has_passed(context) {
            return Poll::Pending;
        }
        if self.stalled == Stalled::Spooling {
            return Poll::Ready(Err(End::CutOff));
        }
        self.stalled = Stalled::Spooling;
        deadline.set(Some(limits.send_timeout.saturating_sub(PATIENCE)));
        if limits.response_spool_bytes > 0 {
            if let Some(app) = &self.visit {
                self.exchange.borrow().response.spool_in(&limits.spool_dir, &app.spool);
                app.dispatcher.borrow_mut().pull(&self.exchange);
            }
        }
        Poll::Pending
    }

    /// Looks whether the client is still there, and takes what it sends ahead.
    fn poll_client(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        if self.eof || self.buffer.len() >= AHEAD_BYTES {
            return Poll::Pending;
        }
        let shared = Rc::clone(&self.shared);
        let mut scratch = shared.scratch.borrow_mut();
        match ready!(self.stream.poll_read_some(context, &mut scratch)) {
            Ok(0) => {
                // It may only have ended its side; but a request that no worker has begun is not worth it.
                self.eof = true;
                self.left_early = self.exchange.borrow().response.progress() == Progress::Waiting;
                if self.exchange.borrow().place == Place::Queue {
                    return Poll::Ready(Err(End::Gone));
                }
            }
            Ok(length) => self.buffer.extend_from_slice(&scratch[..length]),
            Err(_) => return Poll::Ready(Err(End::Gone)),
        }
        Poll::Ready(Ok(()))
    }
}
