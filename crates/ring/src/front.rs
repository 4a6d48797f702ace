//! The front's end of a ring.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::EventfdFlags;

use crate::descriptors;
use crate::entry::{Ticket, MAX_POSITION, REPLACE_FROM};
use crate::layout::{Geometry, RingError, ENTRIES, READY_WORDS};
use crate::memory::Memory;
use crate::places::KeptBy;
use crate::request_times::RequestTimes;
use crate::sync::Ordering;
use crate::wake::{clear, futex_wake};

/// The most descriptors looked at in one go: more than a descriptor socket holds by default.
const MAX_MET_DESCRIPTORS: u32 = 512;

/// Most spool files sent for requests that were taken back since, and that the worker has not met yet. It
/// meets them on its way to the file of a request that it has begun; until then they hold disk space, and
/// room in the descriptor socket.
const MAX_STRAY_FILES: usize = 8;

/// The front's end: it places requests and reads answers. Not shared between threads.
#[derive(Debug)]
pub struct FrontRing {
    memory: Memory,
    wake: OwnedFd,
    descriptors: OwnedFd,
    /// Free slots; the last used first, so that few pages are ever touched.
    free: Vec<u16>,
    /// The next position.
    tail: u64,
    /// The worker's cursor when there was no room before it: it writes it with each claim, so a look costs time.
    cursor: Cell<u64>,
    slots: Vec<Slot>,
    /// Positions of requests taken back whose spool file the worker has not met yet.
    stray_files: Vec<u64>,
    /// Nothing more will be placed.
    retired: bool,
}

/// What the front knows of a slot, in private memory.
#[derive(Debug, Default)]
struct Slot {
    /// The request in it; 0: none, the slot is free.
    position: u64,
    consumed: u32,
    /// What the worker knows of that: at most half of the area less, and all of it while a thread waits for room. An answer
    /// that fits needs to know none of it.
    published: u32,
    /// Whether its answer has begun. It cannot be taken back any more, whatever its entry says.
    begun: bool,
    /// Whether the file of a spooled body was sent for it.
    spooled: bool,
    /// Whether its answer is not wanted any more.
    cancelled: bool,
    /// What came for its next `FILE` frame, met on the way to another slot's.
    descriptor: Option<OwnedFd>,
}

impl Slot {
    fn is_used(&self) -> bool {
        self.position != 0
    }
}

/// What the worker is given: its side of the ring.
#[derive(Debug)]
pub struct WorkerFds {
    /// The ring's memory.
    pub memory: OwnedFd,
    /// The eventfd that wakes the front.
    pub wake_front: OwnedFd,
    /// The worker's descriptor socket.
    pub descriptors: OwnedFd,
}

/// Makes a ring: both ends.
///
/// # Errors
/// A geometry that breaks a rule, or what the system refused.
pub fn create(geometry: Geometry) -> Result<(FrontRing, WorkerFds), RingError> {
    create_from(geometry, 1)
}

/// The same, with a first position other than 1: tests look at the end of a ring.
///
/// # Errors
/// As [`create`].
pub fn create_from(geometry: Geometry, first: u64) -> Result<(FrontRing, WorkerFds), RingError> {
    let (memory, memory_fd) = Memory::create(geometry)?;
    memory.cursor().store(first, Ordering::Release);
    let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|e| RingError::system("create the ring's eventfd", e))?;
    let wake_front =
        rustix::io::fcntl_dupfd_cloexec(&wake, 3).map_err(|e| RingError::system("copy the eventfd", e))?;
    let (ours, theirs) = descriptors::pair()?;
    let slots = memory.geometry().slots as u16;
    let front = FrontRing {
        memory,
        wake,
        descriptors: ours,
        free: (0..slots).rev().collect(),
        tail: first,
        cursor: Cell::new(first),
        slots: (0..slots).map(|_| Slot::default()).collect(),
        stray_files: Vec::new(),
        retired: false,
    };
    let worker = WorkerFds { memory: memory_fd, wake_front, descriptors: theirs };
    Ok((front, worker))
}

impl FrontRing {
    /// The ring's size.
    pub fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }

    /// The eventfd to wait for: readable when the worker has woken the front.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Empties the eventfd after a wake. Never blocks.
    pub fn clear_wake(&self) {
        clear(&self.wake);
    }

    /// Whether another request can be placed now.
    pub fn has_room(&self) -> bool {
        !self.retired && !self.free.is_empty() && self.cursor_follows()
    }

    /// Whether the positions end soon: the worker has to be replaced. Without room afterwards, nothing else happens.
    pub fn ends_soon(&self) -> bool {
        self.tail > REPLACE_FROM
    }

    /// Places a request: `head` block and inline `body` (together at most
    /// [`Geometry::request_capacity`]), with the open file of a spooled body, or the socket for the answer of a request that
    /// runs on a fiber. `Ok(None)`: there is no
    /// room now. The worker is woken by [`FrontRing::ring`].
    ///
    /// # Errors
    /// The descriptor socket failed: the worker is gone or has closed it.
    ///
    /// # Panics
    /// When head and body do not fit.
    pub fn place(
        &mut self,
        head: &[u8],
        body: &[u8],
        spooled: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Ticket>, RingError> {
        assert!(head.len() + body.len() <= self.geometry().request_capacity());
        if !self.has_room() {
            return Ok(None);
        }
        let slot = self.free[self.free.len() - 1];
        let ticket = Ticket { slot, position: self.tail };
        if let Some(file) = spooled {
            let Ticket { slot, position } = ticket;
            if !descriptors::send(&self.descriptors, Ticket { position, slot }, file)? {
                return Ok(None);
            }
        }
        self.free.pop();
        self.tail += 1;
        self.memory.stream(slot).reset();
        self.memory.write_request(slot, 0, head);
        self.memory.write_request(slot, head.len(), body);
        self.slots[usize::from(slot)] =
            Slot { position: ticket.position, spooled: spooled.is_some(), ..Slot::default() };
        self.memory.entries().place(ticket.position, slot);
        Ok(Some(ticket))
    }

    /// Takes a request back. `true`: the worker had not begun it, and its slot is free again. `false`: it
    /// has, or it will have to, because too many spool files of requests that were taken back are under way.
    pub fn take_back(&mut self, ticket: Ticket) -> bool {
        let Ticket { slot, position } = ticket;
        let Slot { position: ours, begun, spooled, .. } = self.slots[usize::from(slot)];
        // What the front knows itself goes first: a misbehaving worker may have reset the entry.
        let stuck = spooled && !self.retired && self.stray_files.len() == MAX_STRAY_FILES;
        if ours != position || begun || stuck {
            return false;
        }
        if !self.memory.entries().take_back(position, slot) {
            return false;
        }
        if spooled && !self.retired {
            self.stray_files.push(position);
        }
        self.release(slot);
        true
    }

    /// Nothing more will be placed: the worker ends, or is dead. All that it has not begun can be taken back.
    pub fn retire(&mut self) {
        self.retired = true;
    }

    /// Whether the worker has begun the request.
    pub fn is_claimed(&self, ticket: Ticket) -> bool {
        let ours = &self.slots[usize::from(ticket.slot)];
        // As in `take_back`: what the front knows itself goes first.
        ours.position != ticket.position || ours.begun || self.memory.entries().is_claimed(ticket.position)
    }

    /// Worker threads that sleep (as the worker tells it), at most [`Geometry::threads`].
    pub fn sleepers(&self) -> u32 {
        self.memory.bell().sleepers.load(Ordering::Relaxed).min(self.geometry().threads)
    }

    /// How many requests the worker may have begun at a time: within the numbers of [`Geometry`], whatever it says.
    pub fn places(&self) -> u32 {
        let Geometry { threads, least_threads, .. } = self.geometry();
        self.memory.places().number.load(Ordering::Acquire).clamp(least_threads, threads)
    }

    /// What keeps it from having more places, by what it says.
    pub fn places_kept_by(&self) -> KeptBy {
        KeptBy::of(self.memory.places().kept_by.load(Ordering::Relaxed))
    }

    /// Lets the worker know whether requests wait for another place. Costs a system call only if its tending thread sleeps.
    pub fn want_place(&self, is_wanted: bool) {
        let places = self.memory.places();
        if !is_wanted {
            places.want_none();
        } else if places.want() {
            futex_wake(places.bell, 1);
        }
    }

    /// Whether the worker's requests compute nearly all of their time, by what it says.
    pub fn computes(&self) -> bool {
        self.memory.computes().load(Ordering::Relaxed) != 0
    }

    /// How many of the worker's answers have left their places and not ended, by what it says.
    pub fn left(&self) -> u32 {
        self.memory.left().load(Ordering::Relaxed)
    }

    /// How many of those are of requests that run on fibers.
    pub fn on_fibers(&self) -> u32 {
        self.memory.on_fibers().load(Ordering::Relaxed).min(self.left())
    }

    /// What requests did with their time, by what the worker says.
    pub fn request_times(&self) -> RequestTimes {
        RequestTimes::read(self.memory.request_times())
    }

    /// Wakes up to `threads` sleeping threads of the worker, for all that was placed since the last
    /// call. Costs a system call only if one sleeps.
    pub fn ring(&mut self, threads: u32) {
        let bell = self.memory.bell();
        if bell.should_ring() {
            futex_wake(bell.word, threads);
        }
    }

    /// Calls `visit` for each slot in use that has news. What `visit` leaves unread brings no news again; see
    /// [`FrontRing::look_again`].
    pub fn take_ready(&mut self, mut visit: impl FnMut(&mut Self, u16)) {
        for word in 0..READY_WORDS {
            let mut bits = self.memory.ready().take(word);
            while bits != 0 {
                let slot = (word * 64) as u16 + bits.trailing_zeros() as u16;
                bits &= bits - 1;
                // The bit of a free slot comes late, after its answer's end was read. A bit beyond the slots is a
                // protocol error.
                if self.slots.get(usize::from(slot)).is_some_and(Slot::is_used) {
                    visit(self, slot);
                }
            }
        }
    }

    /// Has [`FrontRing::take_ready`] visit a slot again in which something was left, so that others get their
    /// turn before it.
    pub fn look_again(&self, slot: u16) {
        self.memory.ready().set(slot);
    }

    /// Whether any slot has news.
    pub fn any_ready(&self) -> bool {
        self.memory.ready().any()
    }

    /// Announces that the front is about to sleep, until this number of answers has ended (at least 1), or there is
    /// nothing left to claim, or there is other news. With more than one, the front must set a timer to wake up in time: the
    /// worker may be long at the next request. Call [`FrontRing::any_ready`] after it.
    pub fn announce_sleep(&self, answers: u32) {
        self.memory.front_sleep().announce(answers);
    }

    /// Whether a thread of the worker sleeps, or is about to. It may have changed when this returns.
    pub fn has_sleepers(&self) -> bool {
        self.memory.bell().sleepers.load(Ordering::Relaxed) > 0
    }

    /// The front is awake.
    pub fn retract_sleep(&self) {
        self.memory.front_sleep().retract();
    }

    /// Appends up to `most` new response bytes of `slot` to `out`, and says how many.
    ///
    /// # Errors
    /// A counter beyond the area, or an answer to a request that was not claimed, is a breach.
    pub fn read(&mut self, slot: u16, most: usize, out: &mut Vec<u8>) -> Result<usize, RingError> {
        let length = self.readable(slot)?.min(most);
        if length > 0 {
            self.read_some(slot, length, out)?;
        }
        self.publish_consumed(slot);
        Ok(length)
    }

    /// Appends this number of response bytes of `slot`, which are there.
    fn read_some(&mut self, slot: u16, length: usize, out: &mut Vec<u8>) -> Result<(), RingError> {
        let ours = &mut self.slots[usize::from(slot)];
        if !ours.begun {
            if !self.memory.entries().is_claimed(ours.position) {
                return Err(RingError::Breach("an answer to a request that was not claimed"));
            }
            ours.begun = true;
            if ours.spooled {
                self.stray_files.retain(|position| *position > ours.position);
            }
        }
        self.memory.read_response(slot, ours.consumed, length, out);
        ours.consumed = ours.consumed.wrapping_add(length as u32);
        Ok(())
    }

    /// Lets the worker know how much was read, where that may make room for it. A thread that waits has set the slot's ready
    /// bit since, so that the front comes here again.
    fn publish_consumed(&mut self, slot: u16) {
        let (ours, stream) = (&mut self.slots[usize::from(slot)], self.memory.stream(slot));
        let unpublished = ours.consumed.wrapping_sub(ours.published);
        if unpublished > stream.capacity / 2 || (unpublished > 0 && stream.is_space_wanted()) {
            ours.published = ours.consumed;
            if stream.consume(ours.consumed) {
                futex_wake(stream.space_bell, u32::MAX);
            }
        }
    }

    /// Response bytes of `slot` that wait to be read; none if it is free.
    ///
    /// # Errors
    /// A counter beyond the area is a breach.
    pub fn readable(&self, slot: u16) -> Result<usize, RingError> {
        let ours = &self.slots[usize::from(slot)];
        if !ours.is_used() {
            return Ok(0);
        }
        Ok(self.memory.stream(slot).readable(ours.consumed)? as usize)
    }

    /// The descriptor that came with a `FILE` frame of `slot`: a regular file. Others that are met on the way are
    /// kept for their slots, or closed if they belong to nothing.
    ///
    /// # Errors
    /// A missing, malformed or unfit descriptor is a breach. [`RingError::System`] is no fault of the worker:
    /// the front has too many open files.
    pub fn receive_descriptor(&mut self, slot: u16) -> Result<OwnedFd, RingError> {
        for _ in 0..MAX_MET_DESCRIPTORS {
            if let Some(found) = self.slots[usize::from(slot)].descriptor.take() {
                return Ok(found);
            }
            if !self.meet_descriptor()? {
                break;
            }
        }
        Err(RingError::Breach("a frame without its descriptor"))
    }

    /// Answers a `HIJACK` frame of `slot`: makes a pair of stream sockets, sends the worker one and returns the other.
    /// (The front never sends anything on a socket that a worker has chosen: the other end would see the front's
    /// credentials.)
    ///
    /// # Errors
    /// [`RingError::System`]: there is no room for the pair, and the answer has been cancelled. A breach: the worker
    /// has closed its descriptor socket.
    pub fn connect(&mut self, slot: u16) -> Result<OwnedFd, RingError> {
        let ours = self.send_socket(slot);
        match ours {
            Ok(_) => {
                let stream = self.memory.stream(slot);
                stream.release_waiter();
                futex_wake(stream.space_bell, u32::MAX);
            }
            Err(_) => self.cancel(slot),
        }
        ours
    }

    /// Offers the answer of `slot` a separate socket, over which the rest of the body can come: sends the worker one end and
    /// returns the other, from which a packet is a frame. About `buffer_bytes` wait in it. `None`: other descriptors are on
    /// their way to the worker, so that there is no room now.
    ///
    /// # Errors
    /// [`RingError::System`]: there is no room for the pair. A breach: the worker has closed its descriptor socket.
    pub fn offer(&self, slot: u16, buffer_bytes: usize) -> Result<Option<OwnedFd>, RingError> {
        let ticket = Ticket { position: self.slots[usize::from(slot)].position, slot };
        let (ours, theirs) = Self::answer_pair(buffer_bytes)?;
        match descriptors::send(&self.descriptors, ticket, theirs.as_fd()) {
            Ok(true) => Ok(Some(ours)),
            Ok(false) => Ok(None),
            Err(_) => Err(RingError::Breach("a closed descriptor socket")),
        }
    }

    /// The front's end and the worker's of a socket for an answer. About `buffer_bytes` wait in it.
    ///
    /// # Errors
    /// What the system refused.
    pub fn answer_pair(buffer_bytes: usize) -> Result<(OwnedFd, OwnedFd), RingError> {
        let (ours, theirs) = descriptors::pair()?;
        rustix::net::sockopt::set_socket_send_buffer_size(&theirs, buffer_bytes)
            .map_err(|e| RingError::system("limit a socket's buffer", e))?;
        Ok((ours, theirs))
    }

    fn send_socket(&self, slot: u16) -> Result<OwnedFd, RingError> {
        let ticket = Ticket { position: self.slots[usize::from(slot)].position, slot };
        let (ours, theirs) = descriptors::stream_pair()?;
        match descriptors::send(&self.descriptors, ticket, theirs.as_fd()) {
            Ok(true) => Ok(ours),
            Ok(false) => Err(RingError::system("send a socket", rustix::io::Errno::AGAIN)),
            Err(_) => Err(RingError::Breach("a closed descriptor socket")),
        }
    }

    /// Receives a descriptor and keeps it for its slot. `false`: there is none now.
    fn meet_descriptor(&mut self) -> Result<bool, RingError> {
        let Some((ticket, descriptor)) = descriptors::receive(&self.descriptors)? else {
            return Ok(false);
        };
        descriptors::check(&descriptor)?;
        let owner = self.slots.get_mut(usize::from(ticket.slot));
        if let Some(owner) = owner.filter(|owner| owner.is_used() && owner.position == ticket.position) {
            if owner.descriptor.replace(descriptor).is_some() {
                return Err(RingError::Breach("two descriptors at a time for one answer"));
            }
        }
        Ok(true)
    }

    /// Cancels the answer of `slot`; the worker learns it at its next write.
    pub fn cancel(&mut self, slot: u16) {
        self.slots[usize::from(slot)].cancelled = true;
        let stream = self.memory.stream(slot);
        stream.cancel();
        futex_wake(stream.space_bell, u32::MAX);
    }

    /// The answer of `slot` has ended: the slot is free. Nothing happens if it is already.
    pub fn release(&mut self, slot: u16) {
        let before = std::mem::take(&mut self.slots[usize::from(slot)]);
        if before.is_used() {
            self.free.push(slot);
        }
        if before.cancelled {
            // A descriptor may have come for a frame that never will. If something is wrong with those met here,
            // it shows when a frame misses its own.
            for _ in 0..MAX_MET_DESCRIPTORS {
                if !matches!(self.meet_descriptor(), Ok(true)) {
                    break;
                }
            }
        }
    }

    /// Whether the entry that the next position needs has been passed by the worker.
    fn cursor_follows(&self) -> bool {
        let follows = || self.tail < self.cursor.get().saturating_add(ENTRIES as u64);
        if !follows() {
            self.cursor.set(self.memory.cursor().load(Ordering::Acquire));
        }
        follows() && self.tail < MAX_POSITION
    }
}
