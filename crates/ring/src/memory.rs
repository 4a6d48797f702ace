//! The ring's memory: a sealed memfd, mapped. The only module of this crate with raw pointers.
//!
//! The other side of the mapping is another process that may write at any time. Hence the rules: words
//! are only touched as atomics, bytes are only copied, in or out, and looked at afterwards in memory of our
//! own. No `&[u8]` over shared bytes leaves this module, with one exception: [`Memory::request_bytes`],
//! by which a worker reads what the front (which it trusts) has placed for it.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::entry::Entries;
use crate::layout::{
    Geometry, RingError, BELL, CANCELLED, CONSUMED, CURSOR, ENTRIES, ENTRIES_AT, FRONT_ASLEEP, MAGIC, PAGE,
    READY, READY_WORDS, SLEEPERS, SPACE_BELL, SPACE_WANTED, VERSION, WRITTEN,
};
use crate::ready::Ready;
use crate::sleep::{Bell, FrontSleep};
use crate::stream::Stream;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A mapped ring.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    geometry: Geometry,
}

// SAFETY: the mapping belongs to the value until it is dropped and is not tied to a thread; all access
// goes through atomics and through copies whose result is checked.
unsafe impl Send for Memory {}
// SAFETY: as above; no method hands out a mutable reference into the mapping.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `base` came from mmap with this length and nothing borrowed from it outlives `self`.
        let done = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.geometry.total_bytes()) };
        debug_assert!(done.is_ok());
    }
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
        // Sealed before anyone else sees it: a mapping of it can never fault for want of size.
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|e| RingError::system("seal the ring's memory", e))?;
        let memory = Memory::map(fd.as_fd(), geometry)?;
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
        }
        .check()?;
        let size =
            rustix::fs::fstat(fd).map_err(|e| RingError::system("look at the ring's memory", e))?.st_size;
        if size as u64 != geometry.total_bytes() as u64 {
            return Err(RingError::NotARing);
        }
        Memory::map(fd, geometry)
    }

    fn map(fd: BorrowedFd<'_>, geometry: Geometry) -> Result<Memory, RingError> {
        // SAFETY: a fresh shared mapping at an address of the kernel's choice replaces nothing; the
        // file is at least this long and, being sealed, stays so.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                geometry.total_bytes(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                0,
            )
        }
        .map_err(|e| RingError::system("map the ring's memory", e))?;
        let base = NonNull::new(base.cast()).ok_or(RingError::NotARing)?;
        Ok(Memory { base, geometry })
    }

    fn write_header(&self) {
        let Geometry { slots, request_bytes, response_bytes, threads } = self.geometry;
        self.u64s(0, 1)[0].store(MAGIC, Ordering::Relaxed);
        for (at, value) in
            [(8, VERSION), (12, slots), (16, request_bytes), (20, response_bytes), (24, threads)]
        {
            self.u32(at).store(value, Ordering::Relaxed);
        }
        self.cursor().store(1, Ordering::Release);
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

    /// The counters of a slot's response area.
    pub fn stream(&self, slot: u16) -> Stream<'_> {
        let at = self.checked(slot).control_at(slot);
        Stream {
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
        let at = self.base.as_ptr().wrapping_add(geometry.request_at(slot));
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
        assert!(at % 4 == 0 && at + 4 <= self.geometry.total_bytes());
        // SAFETY: aligned (the base is page-aligned), within the mapping, which lives as long as
        // `self`; an AtomicU32 may be written by others at any time.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    fn u64s(&self, at: usize, count: usize) -> &[AtomicU64] {
        assert!(at % 8 == 0 && at + 8 * count <= self.geometry.total_bytes());
        // SAFETY: as in `u32`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at).cast::<AtomicU64>(), count) }
    }

    /// Never inlined, so that no reader's check can be moved before or merged into the copy.
    #[inline(never)]
    fn copy_in(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.geometry.total_bytes());
        // SAFETY: within the mapping; `bytes` is ours and cannot overlap it. If the other process
        // writes meanwhile the result is mixed bytes, which is the other's own harm.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at), bytes.len());
        }
    }

    /// Never inlined: see `copy_in`.
    #[inline(never)]
    fn copy_out(&self, at: usize, length: usize, out: &mut Vec<u8>) {
        assert!(at + length <= self.geometry.total_bytes());
        assert!(out.capacity() - out.len() >= length);
        // SAFETY: within the mapping and within the reserved part of `out`, which becomes
        // initialised by the copy. If the other process writes meanwhile the result is mixed bytes,
        // looked at only after the copy.
        unsafe {
            let target = out.as_mut_ptr().add(out.len());
            std::ptr::copy_nonoverlapping(self.base.as_ptr().add(at), target, length);
            out.set_len(out.len() + length);
        }
    }
}

const _: () = assert!(PAGE.is_power_of_two());
