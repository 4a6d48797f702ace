//! The worker's end of a ring.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64 as PrivateU64;
use std::time::Duration;

use crate::descriptors;
use crate::entry::{Claim, Ticket};
use crate::layout::{Geometry, RingError};
use crate::memory::Memory;
use crate::places::KeptBy;
use crate::request_times::RequestTimes;
use crate::sync::Ordering;
use crate::wake::{futex_wait, futex_wake, signal};

/// The worker's end, shared by its threads. [`WorkerRing::claim`] is called with the GVL held.
#[derive(Debug)]
pub struct WorkerRing {
    memory: Memory,
    wake_front: OwnedFd,
    descriptors: OwnedFd,
    /// The worker's place in the dispatch order. Private: the copy in the ring only informs the front.
    cursor: PrivateU64,
}

/// Why a write of response bytes ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// There is room for at least one byte.
    Some,
    /// None yet.
    None,
    /// The answer was cancelled.
    Cancelled,
}

impl WorkerRing {
    /// Maps the ring behind `memory`.
    ///
    /// # Errors
    /// [`RingError::NotARing`], or what the system refused.
    pub fn open(
        memory: BorrowedFd<'_>,
        wake_front: OwnedFd,
        descriptors: OwnedFd,
    ) -> Result<Self, RingError> {
        let memory = Memory::open(memory)?;
        let cursor = PrivateU64::new(memory.cursor().load(Ordering::Acquire));
        Ok(WorkerRing { memory, wake_front, descriptors, cursor })
    }

    /// The ring's size.
    pub fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }

    /// Claims the next request. Only one thread at a time may call this.
    pub fn claim(&self) -> Option<Ticket> {
        let before = self.cursor.load(Ordering::Relaxed);
        let mut cursor = before;
        let claim = self.memory.entries().claim(&mut cursor);
        if cursor != before {
            self.cursor.store(cursor, Ordering::Relaxed);
            self.memory.cursor().store(cursor, Ordering::Release);
        }
        match claim {
            Claim::Claimed(ticket) => Some(ticket),
            Claim::Empty => {
                if self.memory.front_sleep().must_wake_for_rest() {
                    signal(&self.wake_front);
                }
                None
            }
        }
    }

    /// Whether there is something to claim.
    pub fn has_placed(&self) -> bool {
        self.memory.entries().has_placed(self.cursor.load(Ordering::Relaxed))
    }

    /// Announces that this thread is about to sleep. `None`: there is something to claim after all.
    /// `Some`: call [`WorkerRing::sleep`] with it, without the GVL, then [`WorkerRing::awake`].
    pub fn announce_sleep(&self) -> Option<u32> {
        let bell = self.memory.bell();
        let seen = bell.announce();
        if self.has_placed() {
            bell.retract();
            return None;
        }
        Some(seen)
    }

    /// Sleeps until rung, interrupted or `timeout` has passed. May return early; look again.
    pub fn sleep(&self, seen: u32, timeout: Option<Duration>) {
        futex_wait(self.memory.bell().word, seen, timeout);
    }

    /// This thread is awake again.
    pub fn awake(&self) {
        self.memory.bell().retract();
    }

    /// Ends the sleep of every thread. Safe to call from any thread and from a signal handler.
    pub fn interrupt(&self) {
        let bell = self.memory.bell();
        bell.interrupt();
        futex_wake(bell.word, u32::MAX);
    }

    /// Hands a wake-up on to another thread (this one was woken, but ends instead of claiming).
    pub fn pass_on(&self) {
        let bell = self.memory.bell();
        if bell.should_ring() {
            futex_wake(bell.word, 1);
        }
    }

    /// The number of places.
    pub fn places(&self) -> u32 {
        self.memory.places().number.load(Ordering::Relaxed)
    }

    /// Changes the number of places: after a thread for another one has been started, or before a thread ends. Wakes the
    /// front if it sleeps. Only one thread at a time may call this.
    pub fn set_places(&self, number: u32) {
        self.memory.places().number.store(number, Ordering::Release);
        if self.memory.front_sleep().must_wake() {
            signal(&self.wake_front);
        }
    }

    /// Says what keeps the number of places from growing.
    pub fn set_kept_by(&self, what: KeptBy) {
        self.memory.places().kept_by.store(what as u32, Ordering::Relaxed);
    }

    /// Whether the front wants another place.
    pub fn is_place_wanted(&self) -> bool {
        self.memory.places().are_wanted()
    }

    /// Announces that the tending thread is about to sleep. `None`: another place is wanted. `Some`: call
    /// [`WorkerRing::sleep_tending`] with it, without the GVL, then [`WorkerRing::awake_tending`]. Look whether the ring is stopped
    /// before this, and do not release the GVL in between.
    pub fn announce_tending_sleep(&self) -> Option<u32> {
        let places = self.memory.places();
        let seen = places.announce();
        if places.are_wanted() {
            places.retract();
            return None;
        }
        Some(seen)
    }

    /// What [`WorkerRing::sleep_tending`] sleeps on, for a pause that only an interrupt ends early.
    pub fn tending_bell(&self) -> u32 {
        self.memory.places().bell.load(Ordering::Acquire)
    }

    /// Sleeps until another place is wanted, an interrupt, or `timeout` has passed. May return early; look again.
    pub fn sleep_tending(&self, seen: u32, timeout: Option<Duration>) {
        futex_wait(self.memory.places().bell, seen, timeout);
    }

    /// The tending thread is awake again.
    pub fn awake_tending(&self) {
        self.memory.places().retract();
    }

    /// Ends the sleep of the tending thread. Safe to call from any thread and from a signal handler.
    pub fn interrupt_tending(&self) {
        let places = self.memory.places();
        places.interrupt();
        futex_wake(places.bell, u32::MAX);
    }

    /// Says whether requests compute nearly all of their time, so that one more thread would only wait for the GVL.
    pub fn set_computes(&self, computes: bool) {
        self.memory.computes().store(u32::from(computes), Ordering::Relaxed);
    }

    /// Says how many answers have left their places and not ended.
    /// Of these, `on_fibers` are of requests that run on fibers.
    pub fn set_left(&self, answers: u32, on_fibers: u32) {
        self.memory.on_fibers().store(on_fibers, Ordering::Relaxed);
        self.memory.left().store(answers, Ordering::Relaxed);
    }

    /// Adds what a request did with its time. Only one thread at a time may call this.
    pub fn add_request_time(&self, time: &RequestTimes) {
        (RequestTimes::read(self.memory.request_times()) + *time).write(self.memory.request_times());
    }

    /// The request area of a slot.
    ///
    /// # Safety
    /// The caller must have claimed the slot and not yet ended its answer.
    #[allow(unsafe_code)]
    pub unsafe fn request(&self, slot: u16) -> &[u8] {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.memory.request_bytes(slot) }
    }

    /// Writes as many of `bytes` as there is room for, from count `written` on. Nothing is visible
    /// until [`WorkerRing::publish`].
    pub fn write(&self, slot: u16, written: u32, bytes: &[u8]) -> usize {
        let room = self.memory.stream(slot).room(written) as usize;
        let length = bytes.len().min(room);
        self.memory.write_response(slot, written, &bytes[..length]);
        length
    }

    /// Makes all bytes up to count `written` visible and wakes the front if it sleeps.
    pub fn publish(&self, slot: u16, written: u32) {
        self.memory.stream(slot).publish(written);
        self.memory.ready().set(slot);
        if self.memory.front_sleep().must_wake() {
            signal(&self.wake_front);
        }
    }

    /// The same for the last bytes of an answer: a front that is patient is not woken for each.
    pub fn publish_end(&self, slot: u16, written: u32) {
        self.memory.stream(slot).publish(written);
        self.memory.ready().set(slot);
        if self.memory.front_sleep().must_wake_for_end() {
            signal(&self.wake_front);
        }
    }

    /// Whether there is room beyond count `written`.
    pub fn room(&self, slot: u16, written: u32) -> Room {
        let stream = self.memory.stream(slot);
        if stream.is_cancelled() {
            Room::Cancelled
        } else if stream.room(written) > 0 {
            Room::Some
        } else {
            Room::None
        }
    }

    /// Announces that this thread is about to wait for room beyond count `written`. `None`: there is
    /// no need to. `Some`: call [`WorkerRing::sleep_for_room`] with it, without the GVL.
    pub fn announce_wait_for_room(&self, slot: u16, written: u32) -> Option<u32> {
        let seen = self.memory.stream(slot).want_space();
        (self.room(slot, written) == Room::None).then_some(seen)
    }

    /// Sleeps until there may be room, or the answer is cancelled, or
    /// [`WorkerRing::interrupt_room`] is called. May return early; look again.
    pub fn sleep_for_room(&self, slot: u16, seen: u32) {
        futex_wait(self.memory.stream(slot).space_bell, seen, None);
    }

    /// Ends a wait for room. Safe to call from any thread.
    pub fn interrupt_room(&self, slot: u16) {
        let stream = self.memory.stream(slot);
        stream.release_waiter();
        futex_wake(stream.space_bell, u32::MAX);
    }

    /// Sends the descriptor that a `FILE` frame speaks of; before that frame is published.
    /// `Ok(false)`: the socket is full; try again a little later.
    ///
    /// # Errors
    /// The front is gone.
    pub fn send_descriptor(
        &self,
        slot: u16,
        position: u64,
        descriptor: BorrowedFd<'_>,
    ) -> Result<bool, RingError> {
        descriptors::send(self.descriptors.as_fd(), Ticket { position, slot }, descriptor)
    }

    /// Waits until the descriptor socket may have room again; at most 100 ms.
    pub fn wait_to_send_descriptor(&self) {
        use rustix::event::{poll, PollFd, PollFlags, Timespec};
        let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        // Whatever it says, the next attempt to send finds out.
        let _ = poll(&mut [PollFd::new(&self.descriptors, PollFlags::OUT)], Some(&timeout));
    }

    /// Announces that this thread is about to wait for a descriptor of `slot`. Look for it, and at
    /// [`WorkerRing::is_cancelled`], again after this; then call [`WorkerRing::sleep_for_room`] with the result,
    /// without the GVL.
    pub fn announce_wait_for_descriptor(&self, slot: u16) -> u32 {
        self.memory.stream(slot).want_space()
    }

    /// Whether the answer of `slot` was cancelled.
    pub fn is_cancelled(&self, slot: u16) -> bool {
        self.memory.stream(slot).is_cancelled()
    }

    /// Receives the next descriptor from the front: the file of a spooled body, or the socket of a hijacked
    /// connection.
    ///
    /// # Errors
    /// The front is gone.
    pub fn receive_descriptor(&self) -> Result<Option<(Ticket, OwnedFd)>, RingError> {
        descriptors::receive(self.descriptors.as_fd())
    }
}
