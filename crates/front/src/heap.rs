//! Gives memory back to the system that malloc keeps although it is free.
//!
//! Buffers come and go between small pieces of memory that stay, and malloc gives back only what lies behind all of those. So
//! many slow clients at a time would leave the process as large as it was with them.

use std::cell::Cell;

use tokio::task::spawn_blocking;

/// Less is not worth the work.
const NOTABLE_BYTES: u64 = 8 << 20;

/// How long less has to be in use, in ticks: busy servers take up again soon what they do not need for a moment.
const TICKS: u32 = 50;

/// What a connection may have in memory that no budget counts.
const CONNECTION_BYTES: u64 = 16 << 10;

/// What has been in use.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// The most since memory was given back.
    most_bytes: Cell<u64>,
    /// The ticks since far less is in use.
    ticks: Cell<u32>,
}

impl Heap {
    /// Periodic work, with this number of connections, and of bytes in buffers.
    pub(crate) fn tick(&self, connections: usize, buffer_bytes: u64) {
        if self.is_due(buffer_bytes + connections as u64 * CONNECTION_BYTES) {
            // It takes some milliseconds.
            spawn_blocking(give_back);
        }
    }

    /// Whether far less has been in use for a while than there was before.
    fn is_due(&self, used_bytes: u64) -> bool {
        let most_bytes = self.most_bytes.get().max(used_bytes);
        let is_far_less = most_bytes - used_bytes >= NOTABLE_BYTES.max(most_bytes / 2);
        let ticks = if is_far_less { self.ticks.get() + 1 } else { 0 };
        let is_due = ticks == TICKS;
        self.most_bytes.set(if is_due { used_bytes } else { most_bytes });
        self.ticks.set(if is_due { 0 } else { ticks });
        is_due
    }
}

#[allow(unsafe_code)]
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) changes nothing that is in use, and takes malloc's own locks (it is MT-Safe).
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// How often memory is given back while this is in use, one tick after the other.
    fn times(heap: &Heap, used: impl Iterator<Item = u64>) -> usize {
        used.filter(|bytes| heap.is_due(*bytes)).count()
    }

    #[test]
    fn memory_is_given_back_once_far_less_is_in_use_for_a_while() {
        let heap = Heap::default();
        assert_eq!(times(&heap, (0..1000).map(|tick| (60 + tick % 40) * MIB)), 0, "it varies a little");
        assert_eq!(times(&heap, (0..1000).map(|tick| tick % 40 * 2 * MIB)), 0, "it is needed again soon");
        assert_eq!(times(&heap, (0..1000).map(|_| 20 * MIB)), 1);
        assert_eq!(times(&heap, (0..1000).map(|_| 0)), 1);
        assert_eq!(times(&heap, (0..1000).map(|tick| tick / 100 % 2 * 7 * MIB)), 0, "it is little anyway");
    }
}
