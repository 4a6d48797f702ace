//! The ring's memory as loom sees it: loom's atomics, and a tracked cell for every byte of the areas.
//!
//! It has the methods of the real [`Memory`], so that loom runs the very code of [`crate::front`] and
//! [`crate::worker`]. Both ends are in one process: [`Memory::open`] takes what [`Memory::create`] left.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use rustix::fs::MemfdFlags;

use crate::entry::Entries;
use crate::layout::{Geometry, RingError, ENTRIES, READY_WORDS};
use crate::places::Places;
use crate::ready::Ready;
use crate::request_times::TIMES_WORDS;
use crate::sleep::{Bell, FrontSleep};
use crate::stream::SlotStream;
use crate::sync::{AtomicU32, AtomicU64};

/// A ring in private memory.
#[derive(Debug)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    geometry: Geometry,
    entries: Vec<AtomicU64>,
    ready: Vec<AtomicU64>,
    bell: AtomicU32,
    sleepers: AtomicU32,
    computes: AtomicU32,
    left: AtomicU32,
    on_fibers: AtomicU32,
    request_times: Vec<AtomicU64>,
    front_asleep: AtomicU32,
    /// Number, `kept_by`, `wanted`, bell, `asleep`.
    places: [AtomicU32; 5],
    cursor: AtomicU64,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    written: AtomicU32,
    consumed: AtomicU32,
    space_bell: AtomicU32,
    space_wanted: AtomicU32,
    cancelled: AtomicU32,
    request: Vec<UnsafeCell<u8>>,
    response: Vec<UnsafeCell<u8>>,
}

// SAFETY: loom's cells report every pair of accesses that are not ordered.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

std::thread_local! {
    /// All threads of a model run on one thread of the system.
    static CREATED: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

impl Memory {
    /// A ring of this geometry, which may break the rules for real memory.
    ///
    /// # Errors
    /// What the system refused.
    pub fn create(geometry: Geometry) -> Result<(Memory, OwnedFd), RingError> {
        let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared {
            geometry,
            entries: words(ENTRIES),
            ready: words(READY_WORDS),
            bell: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            computes: AtomicU32::new(0),
            left: AtomicU32::new(0),
            on_fibers: AtomicU32::new(0),
            request_times: words(TIMES_WORDS),
            front_asleep: AtomicU32::new(0),
            places: [geometry.least_threads, 0, 0, 0, 0].map(AtomicU32::new),
            cursor: AtomicU64::new(0),
            slots: (0..geometry.slots).map(|_| Slot::new(geometry)).collect(),
        });
        CREATED.set(Some(Arc::clone(&shared)));
        let fd = rustix::fs::memfd_create("model", MemfdFlags::CLOEXEC)
            .map_err(|e| RingError::system("create a file", e))?;
        Ok((Memory { shared }, fd))
    }

    /// The ring that was created last.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(_fd: BorrowedFd<'_>) -> Result<Memory, RingError> {
        CREATED.take().map(|shared| Memory { shared }).ok_or(RingError::NotARing)
    }

    /// The ring's size.
    pub fn geometry(&self) -> Geometry {
        self.shared.geometry
    }

    /// The dispatch order.
    pub fn entries(&self) -> Entries<'_> {
        Entries::new(&self.shared.entries)
    }

    /// The ready bits.
    pub fn ready(&self) -> Ready<'_> {
        Ready::new(&self.shared.ready)
    }

    /// The bell of the worker's threads.
    pub fn bell(&self) -> Bell<'_> {
        Bell { word: &self.shared.bell, sleepers: &self.shared.sleepers }
    }

    /// The worker's places.
    pub fn places(&self) -> Places<'_> {
        let [number, kept_by, wanted, bell, asleep] = &self.shared.places;
        Places { number, kept_by, wanted, bell, asleep }
    }

    /// Whether the worker's requests compute.
    pub fn computes(&self) -> &AtomicU32 {
        &self.shared.computes
    }

    /// The number of the worker's answers that have left their places and not ended.
    pub fn left(&self) -> &AtomicU32 {
        &self.shared.left
    }

    /// How many of those are of requests that run on fibers.
    pub fn on_fibers(&self) -> &AtomicU32 {
        &self.shared.on_fibers
    }

    /// What the worker tells of the times of its requests.
    pub fn request_times(&self) -> &[AtomicU64] {
        &self.shared.request_times
    }

    /// Whether the front sleeps.
    pub fn front_sleep(&self) -> FrontSleep<'_> {
        FrontSleep(&self.shared.front_asleep)
    }

    /// The worker's published cursor.
    pub fn cursor(&self) -> &AtomicU64 {
        &self.shared.cursor
    }

    /// The counters of a slot's response area.
    pub fn stream(&self, slot: u16) -> SlotStream<'_> {
        let slot = self.slot(slot);
        SlotStream {
            written: &slot.written,
            consumed: &slot.consumed,
            space_bell: &slot.space_bell,
            space_wanted: &slot.space_wanted,
            cancelled: &slot.cancelled,
            capacity: self.shared.geometry.response_bytes,
        }
    }

    /// Front: copies a request's bytes into the slot's request area.
    pub fn write_request(&self, slot: u16, offset: usize, bytes: &[u8]) {
        write_cells(&self.slot(slot).request, offset, bytes);
    }

    /// Worker: copies response bytes into the slot's byte ring.
    pub fn write_response(&self, slot: u16, written: u32, bytes: &[u8]) {
        write_cells(&self.slot(slot).response, written as usize, bytes);
    }

    /// Front: appends bytes of the slot's byte ring to `out`.
    pub fn read_response(&self, slot: u16, consumed: u32, length: usize, out: &mut Vec<u8>) {
        let cells = &self.slot(slot).response;
        out.extend((0..length).map(|n| read_cell(&cells[(consumed as usize + n) % cells.len()])));
    }

    /// Worker: the slot's request area. A copy that is never freed, so that the bytes can be borrowed.
    ///
    /// # Safety
    /// As for the real memory; loom finds a broken promise.
    pub unsafe fn request_bytes(&self, slot: u16) -> &[u8] {
        let bytes: Vec<u8> = self.slot(slot).request.iter().map(read_cell).collect();
        bytes.leak()
    }

    fn slot(&self, slot: u16) -> &Slot {
        &self.shared.slots[usize::from(slot)]
    }
}

impl Slot {
    fn new(geometry: Geometry) -> Self {
        let cells = |count: u32| (0..count).map(|_| UnsafeCell::new(0)).collect();
        Slot {
            written: AtomicU32::new(0),
            consumed: AtomicU32::new(0),
            space_bell: AtomicU32::new(0),
            space_wanted: AtomicU32::new(0),
            cancelled: AtomicU32::new(0),
            request: cells(geometry.request_capacity() as u32),
            response: cells(geometry.response_bytes),
        }
    }
}

fn write_cells(cells: &[UnsafeCell<u8>], at: usize, bytes: &[u8]) {
    for (n, byte) in bytes.iter().enumerate() {
        // SAFETY: loom fails the model if another access is not ordered with this one.
        cells[(at + n) % cells.len()].with_mut(|cell| unsafe { *cell = *byte });
    }
}

fn read_cell(cell: &UnsafeCell<u8>) -> u8 {
    // SAFETY: as in `write_cells`.
    cell.with(|cell| unsafe { *cell })
}
