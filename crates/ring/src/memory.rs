//! The ring's memory: a sealed memfd, mapped. The only module of this crate that follows raw pointers.
//!
//! The other side of the mapping is another process that may write at any time. Hence the rules: words
//! are only touched as atomics, bytes are only copied, in or out, and looked at afterwards in memory of our
//! own. No `&[u8]` over shared bytes leaves this module, with one exception: [`Memory::request_bytes`],
//! by which a worker reads what the front (which it trusts) has placed for it.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};

use crate::entry::Entries;
use crate::layout::{
    Geometry, RingError, BELL, CANCELLED, COMPUTES, CONSUMED, CURSOR, ENTRIES, ENTRIES_AT, FRONT_ASLEEP,
    KEPT_BY, LEFT, MAGIC, ON_FIBERS, PLACES, READY, READY_WORDS, REQUEST_TIMES, SLEEPERS, SPACE_BELL,
    SPACE_WANTED, TENDING_ASLEEP, TENDING_BELL, VERSION, WANTED, WRITTEN,
};
use crate::mapping::Mapping;
use crate::places::Places;
use crate::ready::Ready;
use crate::request_times::TIMES_WORDS;
use crate::sleep::{Bell, FrontSleep};
use crate::stream::SlotStream;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A mapped ring. The mapping is as long as the geometry says.
#[derive(Debug)]
pub struct Memory {
    mapping: Mapping,
    geometry: Geometry,
}

impl Memory {
    /// Makes a ring of this geometry: a sealed memfd, its header written, and this process's mapping.
    ///
    /// # Errors
    /// A geometry that breaks a rule, or what the system refused.
    pub fn create(geometry: Geometry) -> Result<(Memory, OwnedFd), RingError> {
        let geometry = geometry.check()?;
        let fd = rustix::fs::memfd_create("highball-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|e| RingError::system("create the ring's memory", e))?;
        rustix::fs::ftruncate(&fd, geometry.total_bytes() as u64)
            .map_err(|e| RingError::system("size the ring's memory", e))?;
        // Sealed before anyone else sees it: a mapping of it can never fault because it is too small.
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|e| RingError::system("seal the ring's memory", e))?;
        let memory = Memory { mapping: Mapping::new(fd.as_fd(), geometry.total_bytes())?, geometry };
        memory.write_header();
        Ok((memory, fd))
    }

    /// Maps a ring that the other side created, after checking that it is one.
    ///
    /// # Errors
    /// [`RingError::NotARing`], or what the system refused.
    pub fn open(fd: BorrowedFd<'_>) -> Result<Memory, RingError> {
        let mut header = [0; 32];
        let length = rustix::io::pread(fd, &mut header, 0)
            .map_err(|e| RingError::system("read the ring's header", e))?;
        let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let magic = u64::from_le_bytes(header[0..8].try_into().expect("8 bytes"));
        if length != header.len() || magic != MAGIC || u32_at(8) != VERSION {
            return Err(RingError::NotARing);
        }
        let geometry = Geometry {
            slots: u32_at(12),
            request_bytes: u32_at(16),
            response_bytes: u32_at(20),
            threads: u32_at(24),
            least_threads: u32_at(28),
        }
        .check()?;
        let size =
            rustix::fs::fstat(fd).map_err(|e| RingError::system("look at the ring's memory", e))?.st_size;
        if size as u64 != geometry.total_bytes() as u64 {
            return Err(RingError::NotARing);
        }
        Ok(Memory { mapping: Mapping::new(fd, geometry.total_bytes())?, geometry })
    }

    fn write_header(&self) {
        let Geometry { slots, request_bytes, response_bytes, threads, least_threads } = self.geometry;
        self.u64s(0, 1)[0].store(MAGIC, Ordering::Relaxed);
        let header = [VERSION, slots, request_bytes, response_bytes, threads, least_threads];
        for (number, value) in header.into_iter().enumerate() {
            self.u32(8 + 4 * number).store(value, Ordering::Relaxed);
        }
        self.u32(PLACES).store(least_threads, Ordering::Relaxed);
    }

    /// The ring's size.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The dispatch order.
    pub fn entries(&self) -> Entries<'_> {
        Entries::new(self.u64s(ENTRIES_AT, ENTRIES))
    }

    /// The ready bits.
    pub fn ready(&self) -> Ready<'_> {
        Ready::new(self.u64s(READY, READY_WORDS))
    }

    /// The bell of the worker's threads.
    pub fn bell(&self) -> Bell<'_> {
        Bell { word: self.u32(BELL), sleepers: self.u32(SLEEPERS) }
    }

    /// Whether the front sleeps.
    pub fn front_sleep(&self) -> FrontSleep<'_> {
        FrontSleep(self.u32(FRONT_ASLEEP))
    }

    /// The worker's published cursor.
    pub fn cursor(&self) -> &AtomicU64 {
        &self.u64s(CURSOR, 1)[0]
    }

    /// The worker's places.
    pub fn places(&self) -> Places<'_> {
        Places {
            number: self.u32(PLACES),
            kept_by: self.u32(KEPT_BY),
            wanted: self.u32(WANTED),
            bell: self.u32(TENDING_BELL),
            asleep: self.u32(TENDING_ASLEEP),
        }
    }

    /// Whether the worker's requests compute.
    pub fn computes(&self) -> &AtomicU32 {
        self.u32(COMPUTES)
    }

    /// The number of the worker's answers that have left their places and not ended.
    pub fn left(&self) -> &AtomicU32 {
        self.u32(LEFT)
    }

    /// How many of those are of requests that run on fibers.
    pub fn on_fibers(&self) -> &AtomicU32 {
        self.u32(ON_FIBERS)
    }

    /// What the worker tells of the times of its requests.
    pub fn request_times(&self) -> &[AtomicU64] {
        self.u64s(REQUEST_TIMES, TIMES_WORDS)
    }

    /// The counters of a slot's response area.
    pub fn stream(&self, slot: u16) -> SlotStream<'_> {
        let at = self.checked(slot).control_at(slot);
        SlotStream {
            written: self.u32(at + WRITTEN),
            consumed: self.u32(at + CONSUMED),
            space_bell: self.u32(at + SPACE_BELL),
            space_wanted: self.u32(at + SPACE_WANTED),
            cancelled: self.u32(at + CANCELLED),
            capacity: self.geometry.response_bytes,
        }
    }

    /// Front: copies a request's bytes into the slot's request area, at `offset`.
    ///
    /// # Panics
    /// When they do not fit.
    pub fn write_request(&self, slot: u16, offset: usize, bytes: &[u8]) {
        let geometry = self.checked(slot);
        assert!(offset + bytes.len() <= geometry.request_capacity());
        self.copy_in(geometry.request_at(slot) + offset, bytes);
    }

    /// Worker: copies response bytes into the slot's byte ring, from count `written` on.
    ///
    /// # Panics
    /// When they are more than the area holds.
    pub fn write_response(&self, slot: u16, written: u32, bytes: &[u8]) {
        let geometry = self.checked(slot);
        let (at, first) = self.response_span(slot, written, bytes.len());
        let (head, tail) = bytes.split_at(first);
        self.copy_in(at, head);
        self.copy_in(geometry.response_at(slot), tail);
    }

    /// Front: appends `length` bytes of the slot's byte ring, from count `consumed` on, to `out`.
    ///
    /// # Panics
    /// When they are more than the area holds.
    pub fn read_response(&self, slot: u16, consumed: u32, length: usize, out: &mut Vec<u8>) {
        let geometry = self.checked(slot);
        let (at, first) = self.response_span(slot, consumed, length);
        out.reserve(length);
        self.copy_out(at, first, out);
        self.copy_out(geometry.response_at(slot), length - first, out);
    }

    /// Worker: the slot's request area, in place.
    ///
    /// # Safety
    /// The caller must have claimed the slot and not yet ended it: until then the front, the only
    /// other process that has this mapping, does not write the area, and this process never does.
    pub unsafe fn request_bytes(&self, slot: u16) -> &[u8] {
        let geometry = self.checked(slot);
        let at = self.mapping.base().wrapping_add(geometry.request_at(slot));
        // SAFETY: within the mapping (the slot was checked), and unchanged while the caller keeps
        // the promise above.
        unsafe { std::slice::from_raw_parts(at, geometry.request_capacity()) }
    }

    /// Where `length` bytes from count `from` begin, and how many lie before the area's end.
    fn response_span(&self, slot: u16, from: u32, length: usize) -> (usize, usize) {
        let capacity = self.geometry.response_bytes as usize;
        assert!(length <= capacity);
        let offset = from as usize & (capacity - 1);
        (self.geometry.response_at(slot) + offset, length.min(capacity - offset))
    }

    fn checked(&self, slot: u16) -> Geometry {
        assert!(u32::from(slot) < self.geometry.slots, "slot {slot} is not in this ring");
        self.geometry
    }

    fn u32(&self, at: usize) -> &AtomicU32 {
        assert!(at % 4 == 0 && at + 4 <= self.mapping.bytes());
        // SAFETY: aligned (the base is page-aligned), within the mapping, which lives as long as
        // `self`; an AtomicU32 may be written by others at any time.
        unsafe { &*self.mapping.base().add(at).cast::<AtomicU32>() }
    }

    fn u64s(&self, at: usize, count: usize) -> &[AtomicU64] {
        assert!(at % 8 == 0 && at + 8 * count <= self.mapping.bytes());
        // SAFETY: as in `u32`.
        unsafe { std::slice::from_raw_parts(self.mapping.base().add(at).cast::<AtomicU64>(), count) }
    }

    /// Never inlined, so that no reader's check can be moved before or merged into the copy.
    #[inline(never)]
    fn copy_in(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.mapping.bytes());
        // SAFETY: within the mapping; `bytes` is ours and cannot overlap it. If the other process
        // writes meanwhile the result is mixed bytes, which is the other's own harm.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.mapping.base().add(at), bytes.len());
        }
    }

    /// Never inlined: see `copy_in`.
    #[inline(never)]
    fn copy_out(&self, at: usize, length: usize, out: &mut Vec<u8>) {
        assert!(at + length <= self.mapping.bytes());
        assert!(out.capacity() - out.len() >= length);
        // SAFETY: within the mapping and within the reserved part of `out`, which becomes
        // initialised by the copy. If the other process writes meanwhile the result is mixed bytes,
        // looked at only after the copy.
        unsafe {
            let target = out.as_mut_ptr().add(out.len());
            std::ptr::copy_nonoverlapping(self.mapping.base().add(at), target, length);
            out.set_len(out.len() + length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let geometry = Geometry { response_bytes: 4096, ..Geometry::new(1, 1, 100) }.check().unwrap();
        let memory = Memory { mapping: Mapping::private(geometry.total_bytes()), geometry };
        memory.write_header();
        memory
    }

    #[test]
    fn requests_stand_where_they_were_written() {
        let memory = memory();
        let last = memory.geometry().request_capacity() - 2;
        memory.write_request(1, 0, b"first");
        memory.write_request(1, last, b"la");
        // SAFETY: nothing writes to it.
        let area = unsafe { memory.request_bytes(1) };
        assert_eq!((&area[..5], &area[last..]), (&b"first"[..], &b"la"[..]));
        // SAFETY: nothing writes to it.
        assert!(unsafe { memory.request_bytes(0) }.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_response_goes_round_its_area_and_touches_no_other() {
        let memory = memory();
        let bytes: Vec<u8> = (0..4096).map(|n| (n % 251) as u8).collect();
        for from in [0, 1, 4095, u32::MAX - 100] {
            memory.write_response(0, from, &bytes);
            let mut out = b"before".to_vec();
            memory.read_response(0, from, bytes.len(), &mut out);
            assert_eq!(out, [&b"before"[..], &bytes].concat());
        }
        let mut other = Vec::new();
        memory.read_response(1, 0, 4096, &mut other);
        assert!(other.iter().all(|byte| *byte == 0));
    }

    #[test]
    #[should_panic]
    fn a_slot_that_is_not_there_is_refused() {
        memory().stream(2);
    }

    #[test]
    #[should_panic]
    fn a_request_that_does_not_fit_is_refused() {
        let memory = memory();
        memory.write_request(1, memory.geometry().request_capacity() - 1, b"xx");
    }

    /// Miri finds a race if the counters order less than they promise.
    #[test]
    fn what_is_published_can_be_read_by_another_thread() {
        let memory = memory();
        let total = if cfg!(miri) { 300u32 } else { 30_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut written = 0;
                while written < total {
                    if memory.stream(1).room(written) == 0 {
                        std::thread::yield_now();
                        continue;
                    }
                    memory.write_response(1, written, &[written as u8]);
                    written += 1;
                    memory.stream(1).publish(written);
                    memory.ready().set(1);
                }
            });
            let mut got = Vec::new();
            while got.len() < total as usize {
                if memory.ready().take(0) == 0 {
                    std::thread::yield_now();
                    continue;
                }
                let consumed = got.len() as u32;
                let more = memory.stream(1).readable(consumed).unwrap();
                memory.read_response(1, consumed, more as usize, &mut got);
                memory.stream(1).consume(got.len() as u32);
            }
            assert!(got.iter().enumerate().all(|(n, byte)| *byte == n as u8));
        });
    }
}
