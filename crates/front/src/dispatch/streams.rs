//! Long answers leave their places, so that a thread that waits for the rest of a body keeps no other request waiting. The
//! front offers such an answer a separate socket, and the supervisor passes the order on. The worker then frees the slot, and
//! writes the rest into the socket ([`crate::exchange::answer_stream`]). For a connection that the application has taken
//! over, there is no rest.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use highball_link::FrontAppEvent;
use highball_ring::{FrontRing, RingError, Ticket};

use super::worker::{DispatchState, Worker};
use super::Dispatcher;
use crate::clock::now_ms;
use crate::exchange::answer_stream::{AnswerStream, STREAM_BUFFER};
use crate::exchange::response::RETRY_STREAM_SECONDS;
use crate::exchange::{Exchange, Inner, Place};
use crate::message::refusal::Refusal;

/// Pause of a body after which its answer leaves, while requests wait for a place.
pub(crate) const PAUSE_MS: u64 = 10;

/// Age of an answer, from its head, at which it leaves in any case.
const LONG_MS: u64 = 250;

/// Shortest time between two log lines about streams without room, in ms.
const LOG_MS: u64 = 10_000;

impl Dispatcher {
    /// Returns whether requests wait while bodies are under way whose threads might wait, too.
    pub(crate) fn may_gain_places(&self) -> bool {
        self.has_bodies && !self.queue.is_empty()
    }

    /// Makes long answers leave.
    pub(crate) fn offer_streams(&mut self) {
        if !std::mem::take(&mut self.has_bodies) {
            return;
        }
        let now_ms = now_ms();
        for index in 0..self.workers.len() {
            if let Err(breach) = self.offer_streams_of(index, now_ms) {
                self.worker_is_broken(index, &breach);
            }
        }
    }

    fn offer_streams_of(&mut self, index: usize, now_ms: u64) -> Result<(), RingError> {
        let others_wait = !self.queue.is_empty();
        let worker = &self.workers[index];
        if worker.in_flight == 0 || worker.state == DispatchState::Broken {
            return Ok(());
        }
        for slot in 0..worker.slots.len() as u16 {
            let Some(exchange) = self.workers[index].slots[usize::from(slot)].clone() else { continue };
            let mut inner = exchange.borrow();
            if !inner.is_body_under_way() {
                continue;
            }
            self.has_bodies = true;
            if inner.is_slow(now_ms, others_wait) {
                if self.workers[index].has_room_for_stream(self.max_streams) {
                    self.offer(index, &mut inner)?;
                } else if others_wait {
                    drop(inner);
                    self.end_surplus(index, slot, &exchange);
                }
            }
        }
        Ok(())
    }

    /// Makes this answer leave, if it can.
    pub(super) fn offer(&mut self, index: usize, inner: &mut Inner) -> Result<(), RingError> {
        let Place::Worker(number, ticket) = inner.place else { return Ok(()) };
        if !inner.response.is_taken_over() {
            match self.workers[index].ring.offer(ticket.slot, STREAM_BUFFER) {
                Ok(Some(socket)) => inner.offered = Some(socket),
                Ok(None) => return Ok(()),
                Err(error @ RingError::System { .. }) if self.stream_log.is_due(LOG_MS) => {
                    tracing::error!(
                        name: "stream_keeps_place",
                        %error, "a streaming answer keeps its place: it could not get a socket. If files have run out, raise the limit (ulimit -n)"
                    );
                    return Ok(());
                }
                Err(RingError::System { .. }) => return Ok(()),
                Err(breach) => return Err(breach),
            }
        }
        inner.is_to_leave = true;
        self.workers[index].offers += 1;
        self.events.send(FrontAppEvent::AnswerLeaves { worker: number, ticket: ticket.pack() });
        Ok(())
    }

    /// Returns both ends of a socket for the answer of a request that runs on a fiber: the front's and the worker's.
    ///
    /// # Errors
    /// The worker has its largest number of streams, or this process has no room for the sockets.
    pub(super) fn sockets_of_fiber(&mut self, index: usize) -> Result<(OwnedFd, OwnedFd), Refusal> {
        let most = self.max_fibers;
        if self.workers[index].ring.on_fibers() >= most {
            if self.stream_log.is_due(LOG_MS) {
                let worker = self.workers[index].number;
                tracing::warn!(
                    name: "fiber_refused",
                    worker, most, "a request that would run on a fiber is refused: the worker has as many as max_fibers allows"
                );
            }
            return Err(Refusal::TooManyStreams { retry_after_seconds: RETRY_STREAM_SECONDS });
        }
        FrontRing::answer_pair(STREAM_BUFFER).map_err(|error| {
            if self.stream_log.is_due(LOG_MS) {
                tracing::error!(
                    name: "stream_refused",
                    %error, "a request is refused: it could not get the socket for its answer. If files have run out, raise the limit (ulimit -n)"
                );
            }
            Refusal::TooManyStreams { retry_after_seconds: RETRY_STREAM_SECONDS }
        })
    }

    /// Cuts the answer off: there is no room for another stream, and requests wait for its place.
    #[cold]
    fn end_surplus(&mut self, index: usize, slot: u16, exchange: &Exchange) {
        let most = self.workers[index].most_streams(self.max_streams);
        if most == 0 || exchange.borrow().response.is_taken_over() {
            return; // streams keep their places
        }
        if self.stream_log.is_due(LOG_MS) {
            tracing::warn!(
                name: "stream_cut_off",
                worker = self.workers[index].number, most, "a streaming answer is cut off: the worker has as many streams as max_streams allows, and requests wait for a place"
            );
        }
        self.workers[index].ring.cancel(slot);
        exchange.borrow().response.cut_surplus();
        exchange.wake();
    }

    /// Ends a stream whose answer is complete or whose client has gone: the worker finds the socket closed.
    pub(crate) fn end_stream(&mut self, exchange: &Rc<Exchange>) {
        let mut inner = exchange.borrow();
        let Place::Stream(number, _) = inner.place else { return };
        inner.place = Place::Connection;
        inner.stream = None;
        drop(inner);
        if let Some(index) = self.position(number) {
            self.workers[index].streams.retain(|other| !Rc::ptr_eq(other, exchange));
            self.settle();
        }
    }

    /// Retiring workers may have ended what had left its place.
    pub(crate) fn look_after_streams(&mut self) {
        if self.workers.iter().any(|worker| worker.state == DispatchState::Retiring) {
            self.settle();
        }
        self.offer_streams();
    }
}

impl Worker {
    /// Returns the number of answers that have left and not ended: as counted here, or as the worker counts, whichever is
    /// larger.
    pub(crate) fn stream_count(&self) -> u32 {
        (self.streams.len() as u32).max(self.ring.left())
    }

    /// Whether it has connections that its application has taken over, or answers that have left and not ended.
    pub(super) fn holds_what_lasts(&self) -> bool {
        self.hijacked > 0 || self.stream_count() > 0
    }

    /// Whether such a connection or answer is about to begin.
    pub(super) fn begins_what_lasts(&self) -> bool {
        let opens_web_socket = |exchange: &Rc<Exchange>| exchange.borrow().request.is_for_web_socket;
        self.offers > 0 || self.slots.iter().flatten().any(opens_web_socket)
    }

    /// Handles the freed slot of an answer that was asked to leave.
    pub(super) fn leave(&mut self, exchange: &Rc<Exchange>, inner: &mut Inner, ticket: Ticket) {
        self.offers -= u32::from(std::mem::take(&mut inner.is_to_leave));
        // It may have ended before it could leave, or its client has gone.
        let goes_on = inner.response.goes_on_elsewhere();
        if let Some(socket) = inner.offered.take().filter(|_| goes_on) {
            inner.response.go_on();
            inner.stream = Some(Box::new(AnswerStream::new(socket, self.number)));
            inner.place = Place::Stream(self.number, ticket);
            self.streams.push(Rc::clone(exchange));
        }
    }

    /// Returns how many of its answers may leave, with this limit. An application with one thread need not be thread-safe.
    pub(super) fn most_streams(&self, max_streams: u32) -> u32 {
        if self.ring.geometry().threads == 1 {
            0
        } else {
            max_streams
        }
    }

    /// Returns whether another answer may leave.
    pub(super) fn has_room_for_stream(&self, max_streams: u32) -> bool {
        // The worker may report any number, and a different one at the next look.
        let on_threads = self.stream_count().saturating_sub(self.ring.on_fibers());
        on_threads.saturating_add(self.offers) < self.most_streams(max_streams)
    }
}

impl Inner {
    /// Returns whether a part of the answer has come, and it was not yet asked to leave.
    fn is_body_under_way(&self) -> bool {
        let is_under_way = self.response.has_body_under_way() || self.response.is_taken_over();
        is_under_way && !self.is_to_leave && matches!(self.place, Place::Worker(..))
    }

    /// Notes that something of the answer has come. Returns true if the body has begun, or the application has the
    /// connection.
    pub(super) fn note_body(&mut self, now_ms: u64) -> bool {
        if !self.response.has_body_under_way() && !self.response.is_taken_over() {
            return false;
        }
        self.body_ms = now_ms;
        if self.head_ms == 0 {
            self.head_ms = now_ms;
        }
        true
    }

    /// Returns whether its thread seems to wait, or goes on although others wait for its place. (A body that waits for its
    /// client was written quickly: it ends soon, unless it is endless.)
    fn is_slow(&self, now_ms: u64, others_wait: bool) -> bool {
        let is_paused = others_wait && now_ms >= self.body_ms + PAUSE_MS;
        let is_long = now_ms >= self.head_ms + LONG_MS;
        is_paused || (is_long && (others_wait || !self.response.waits_for_client()))
    }
}
