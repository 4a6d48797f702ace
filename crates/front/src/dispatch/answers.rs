//! Reading what workers have written into their rings.

use std::os::fd::OwnedFd;
use std::time::Instant;

use highball_ring::{FrontRing, RingError};

use super::worker::DispatchState;
use super::Dispatcher;
use crate::clock::{now_ms, now_us};
use crate::exchange::response::Descriptors;
use crate::exchange::{Exchange, Place};

/// Response bytes taken from a ring at a time.
const READ_BYTES: usize = 64 * 1024;

/// How often a slot is read before others get their turn: of a body that is dropped there may always be more.
const READS: u32 = 4;

impl Dispatcher {
    /// Reads what workers have written. Called once per turn of the event loop.
    pub(crate) fn read_rings(&mut self) {
        let mut progress = false;
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            progress |= worker.has_grown();
            if worker.state == DispatchState::Broken || worker.in_flight == 0 || !worker.ring.any_ready() {
                continue;
            }
            let mut ready = std::mem::take(&mut self.ready);
            worker.ring.take_ready(|_, slot| ready.push(slot));
            self.read_slots(index, &ready);
            ready.clear();
            self.ready = ready;
            progress = true;
        }
        if progress {
            self.settle();
        }
    }

    /// Reads the new bytes of these slots of a worker.
    fn read_slots(&mut self, index: usize, slots: &[u16]) {
        let mut ended = 0;
        for &slot in slots {
            match self.read_slot(index, slot, 0) {
                Ok(true) => ended += 1,
                Ok(false) => {}
                Err(breach) => return self.worker_is_broken(index, &breach),
            }
        }
        if ended > 0 {
            self.workers[index].time.ended(ended, Instant::now());
            self.look_whether_warm(index);
            self.note_for_slow_start(index);
        }
    }

    /// Reads the new bytes of a slot, as far as its connection has room for them, and up to `beyond_bytes` beyond that.
    /// `true`: the answer has ended.
    pub(super) fn read_slot(
        &mut self,
        index: usize,
        slot: u16,
        beyond_bytes: usize,
    ) -> Result<bool, RingError> {
        let worker = &mut self.workers[index];
        // A bit may be set for a slot that has nothing to say any more.
        let Some(exchange) = worker.slots[usize::from(slot)].clone() else {
            return Ok(false);
        };
        let mut inner = exchange.borrow();
        let bytes = &mut self.bytes;
        let (mut news, mut ended) = (false, false);
        let may_leave = worker.has_room_for_stream(self.max_streams);
        let may_stream = may_leave || worker.most_streams(self.max_streams) == 0;
        let measures = inner.moments.are_measured;
        for read in 1..=READS {
            let room = inner.response.room(self.response_buffer_bytes, self.response_spool_bytes);
            bytes.clear();
            if worker.ring.read(slot, room.saturating_add(beyond_bytes).min(READ_BYTES), bytes)? == 0 {
                break;
            }
            inner.generation = worker.generation;
            inner.response.answered_by(worker.generation);
            let ring = &mut worker.ring;
            inner.response.feed(bytes, &mut OfSlot { ring: &mut *ring, slot, may_stream })?;
            if let Some(name) = inner.response.take_session() {
                self.affinity.note_issued(&name, worker.number);
            }
            if inner.response.is_taken_over() && inner.taken_over_by.is_none() {
                inner.taken_over_by = Some(worker.number);
                worker.hijacked += 1;
            }
            if inner.response.has_left() && inner.offered.is_none() {
                return Err(RingError::Breach("an answer left its place without an offer"));
            }
            news = true;
            ended = inner.response.worker_is_done();
            if ended {
                break; // nothing may follow, and the worker has left the slot
            }
            if read == READS {
                ring.look_again(slot);
            }
        }
        if measures && news {
            let now_us = now_us();
            if inner.moments.first_us == 0 {
                inner.moments.first_us = now_us;
            }
            if ended {
                inner.moments.ended_us = now_us;
            }
        }
        if ended {
            let before = std::mem::replace(&mut inner.place, Place::Connection);
            inner.head_ms = 0;
            worker.ended(slot);
            if let Place::Worker(_, ticket) = before {
                worker.leave(&exchange, &mut inner, ticket);
            }
        } else if news && inner.note_body(now_ms()) {
            self.has_bodies = true;
            let leaves_at_once = inner.response.streams_at_once() && !inner.is_to_leave;
            if leaves_at_once && may_leave {
                self.offer(index, &mut inner)?;
            }
        }
        drop(inner);
        if news {
            exchange.wake();
        }
        Ok(ended)
    }

    /// The connection has room for more of the answer again.
    pub(crate) fn pull(&mut self, exchange: &Exchange) {
        let place = exchange.borrow().place;
        if let Place::Worker(number, ticket) = place {
            if let Some(index) = self.position(number) {
                self.read_slots(index, &[ticket.slot]);
                self.settle();
            }
        }
    }
}

/// The descriptors that go with the frames of a slot.
struct OfSlot<'a> {
    ring: &'a mut FrontRing,
    slot: u16,
    may_stream: bool,
}

impl Descriptors for OfSlot<'_> {
    fn receive_file(&mut self) -> Result<OwnedFd, RingError> {
        self.ring.receive_descriptor(self.slot)
    }

    fn connect(&mut self) -> Result<OwnedFd, RingError> {
        self.ring.connect(self.slot)
    }

    fn may_stream(&mut self) -> bool {
        if !self.may_stream {
            self.ring.cancel(self.slot);
        }
        self.may_stream
    }
}
