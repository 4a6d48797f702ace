//! Where everything lies in a ring's memory, and how large it is.

use thiserror::Error;

/// The first eight bytes of every ring.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HBRING\0\x01");
/// The protocol version, raised by every change that the other side could notice.
pub const VERSION: u32 = 9;

/// Bytes in a page; every area begins on a page.
pub const PAGE: usize = 4096;
/// Entries in the dispatch order. Few in loom's models, so that they can wrap round.
pub const ENTRIES: usize = if cfg!(loom) { 2 } else { 512 };
/// Most slots in a ring.
pub const MAX_SLOTS: u32 = 256;
/// Words of the `ready` bits.
pub const READY_WORDS: usize = MAX_SLOTS as usize / 64;

/// Offset of `bell`.
pub const BELL: usize = 128;
/// Offset of `sleepers`.
pub const SLEEPERS: usize = 132;
/// Offset of `cursor`.
pub const CURSOR: usize = 136;
/// Offset of `computes`.
pub const COMPUTES: usize = 144;
/// Offset of `request_times`.
pub const REQUEST_TIMES: usize = 152;
/// Offset of `left`.
pub const LEFT: usize = 192;
/// Offset of `on_fibers`.
pub const ON_FIBERS: usize = 196;
/// Offset of `front_asleep`.
pub const FRONT_ASLEEP: usize = 256;
/// Offset of the `ready` bits.
pub const READY: usize = 384;
/// Offset of the number of `places`.
pub const PLACES: usize = 512;
/// Offset of `kept_by`.
pub const KEPT_BY: usize = 516;
/// Offset of `wanted`.
pub const WANTED: usize = 640;
/// Offset of the tending thread's bell.
pub const TENDING_BELL: usize = 644;
/// Offset of `tending_asleep`.
pub const TENDING_ASLEEP: usize = 648;
/// Offset of the entries.
pub const ENTRIES_AT: usize = PAGE;
/// Offset of the first slot.
pub const SLOTS_AT: usize = 2 * PAGE;

/// Bytes of a slot's control line; the request area follows it.
pub const CONTROL: usize = 128;
/// Offset of `written` in the control line.
pub const WRITTEN: usize = 0;
/// Offset of `consumed`.
pub const CONSUMED: usize = 4;
/// Offset of `space_bell`.
pub const SPACE_BELL: usize = 8;
/// Offset of `space_wanted`.
pub const SPACE_WANTED: usize = 12;
/// Offset of `cancelled`.
pub const CANCELLED: usize = 16;

/// How large a ring is. Chosen once, by the front's side; the worker reads it from the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Requests that can be with the worker at a time, 1 to [`MAX_SLOTS`].
    pub slots: u32,
    /// Bytes of control line and request area together; a multiple of [`PAGE`].
    pub request_bytes: u32,
    /// Bytes of a response area; a power of two and a multiple of [`PAGE`].
    pub response_bytes: u32,
    /// Most serving threads of the worker.
    pub threads: u32,
    /// Serving threads that it has at least, and begins with.
    pub least_threads: u32,
}

impl Geometry {
    /// A ring for up to `threads` serving threads with `look_ahead` entries beyond them, whose request area
    /// holds a head block and body of `request_bytes` together.
    pub fn new(threads: u32, look_ahead: u32, request_bytes: usize) -> Self {
        let request_bytes = (request_bytes + CONTROL).next_multiple_of(PAGE);
        Geometry {
            slots: threads.saturating_add(look_ahead).clamp(1, MAX_SLOTS),
            request_bytes: u32::try_from(request_bytes).unwrap_or(u32::MAX),
            response_bytes: 64 * 1024,
            threads,
            least_threads: threads,
        }
    }

    /// Checks the rules above.
    ///
    /// # Errors
    /// [`RingError::Geometry`] names the rule that is broken.
    pub fn check(self) -> Result<Self, RingError> {
        let page = PAGE as u32;
        let broken = if self.slots == 0 || self.slots > MAX_SLOTS {
            "between 1 and 256 slots"
        } else if self.threads == 0 || self.threads > self.slots {
            "at least one thread, and no more than slots"
        } else if self.least_threads == 0 || self.least_threads > self.threads {
            "between one and all of its threads from the beginning"
        } else if self.request_bytes == 0 || self.request_bytes % page != 0 {
            "the request area in whole pages"
        } else if self.request_bytes > 1 << 24 || self.response_bytes > 1 << 24 {
            "no area above 16 MiB"
        } else if self.response_bytes < page || !self.response_bytes.is_power_of_two() {
            "a response area of a power of two, at least a page"
        } else {
            return Ok(self);
        };
        Err(RingError::Geometry(broken))
    }

    /// Bytes of the whole ring.
    pub fn total_bytes(self) -> usize {
        SLOTS_AT + self.slots as usize * self.slot_bytes()
    }

    /// Bytes a request's head block and inline body may have together.
    pub fn request_capacity(self) -> usize {
        self.request_bytes as usize - CONTROL
    }

    /// Bytes from one slot to the next.
    fn slot_bytes(self) -> usize {
        self.request_bytes as usize + self.response_bytes as usize
    }

    /// Offset of a slot's control line.
    pub fn control_at(self, slot: u16) -> usize {
        SLOTS_AT + slot as usize * self.slot_bytes()
    }

    /// Offset of a slot's request area.
    pub fn request_at(self, slot: u16) -> usize {
        self.control_at(slot) + CONTROL
    }

    /// Offset of a slot's response area.
    pub fn response_at(self, slot: u16) -> usize {
        self.control_at(slot) + self.request_bytes as usize
    }
}

/// What can go wrong with a ring.
#[derive(Debug, Error)]
pub enum RingError {
    /// The system refused a step of setting it up.
    #[error("{step}: {source}")]
    System {
        /// The step, in words.
        step: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The wanted size breaks a rule.
    #[error("a ring needs {0}")]
    Geometry(&'static str),
    /// The memory given to a worker is not a ring of this version.
    #[error("the memory is not a ring of protocol version {VERSION}: the extension and the highball binary are of different versions; build both again")]
    NotARing,
    /// The worker wrote what the protocol forbids; the ring must be given up.
    #[error("the worker broke the ring protocol: {0}")]
    Breach(&'static str),
}

impl RingError {
    pub(crate) fn system(step: &'static str, source: impl Into<std::io::Error>) -> Self {
        RingError::System { step, source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_do_not_overlap_and_fill_the_ring() {
        let geometry = Geometry::new(3, 32, 100_000).check().unwrap();
        let last = (geometry.slots - 1) as u16;
        assert_eq!(geometry.control_at(0), SLOTS_AT);
        assert_eq!(geometry.control_at(1), geometry.response_at(0) + geometry.response_bytes as usize);
        assert_eq!(geometry.total_bytes(), geometry.response_at(last) + geometry.response_bytes as usize);
        assert!(geometry.request_capacity() >= 100_000);
        const {
            assert!(
                READY + READY_WORDS * 8 <= PLACES
                    && TENDING_ASLEEP + 4 <= ENTRIES_AT
                    && ENTRIES_AT + ENTRIES * 8 <= SLOTS_AT
            )
        };
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let good = Geometry::new(1, 8, 1000);
        assert!(good.check().is_ok());
        assert!(Geometry { slots: 0, ..good }.check().is_err());
        assert!(Geometry { slots: 257, ..good }.check().is_err());
        assert!(Geometry { threads: 100, ..good }.check().is_err());
        assert!(Geometry { least_threads: 0, ..good }.check().is_err());
        assert!(Geometry { least_threads: 2, ..good }.check().is_err());
        assert!(Geometry { response_bytes: 5000, ..good }.check().is_err());
        assert!(Geometry { request_bytes: 5000, ..good }.check().is_err());
    }
}
