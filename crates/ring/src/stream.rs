//! The counters of a slot's response area: how much is written, how much is read, who waits for room.

use crate::layout::RingError;
use crate::sync::{fence, AtomicU32, Ordering};

/// A view of a slot's control line.
#[derive(Debug, Clone, Copy)]
pub struct SlotStream<'a> {
    /// Bytes written by the worker, free-running.
    pub written: &'a AtomicU32,
    /// Bytes read by the front, free-running.
    pub consumed: &'a AtomicU32,
    /// The futex word of a worker thread that waits for room.
    pub space_bell: &'a AtomicU32,
    /// 1 while a worker thread waits for room.
    pub space_wanted: &'a AtomicU32,
    /// 1 once the answer is not wanted any more.
    pub cancelled: &'a AtomicU32,
    /// Bytes of the response area.
    pub capacity: u32,
}

impl SlotStream<'_> {
    /// Front: a fresh stream for the next request of this slot. Only while the front owns the slot.
    pub fn reset(self) {
        self.written.store(0, Ordering::Relaxed);
        self.consumed.store(0, Ordering::Relaxed);
        self.space_wanted.store(0, Ordering::Relaxed);
        self.cancelled.store(0, Ordering::Relaxed);
    }

    /// Front: how many bytes can be read beyond `consumed`, its own count.
    ///
    /// # Errors
    /// A count beyond the area is a breach.
    pub fn readable(self, consumed: u32) -> Result<u32, RingError> {
        let readable = self.written.load(Ordering::Acquire).wrapping_sub(consumed);
        if readable > self.capacity {
            return Err(RingError::Breach("more response bytes than the area holds"));
        }
        Ok(readable)
    }

    /// Front: says how much it has read. `true`: a worker thread waits for room and must be woken by
    /// futex on `space_bell`.
    pub fn consume(self, consumed: u32) -> bool {
        self.consumed.store(consumed, Ordering::Release);
        fence(Ordering::SeqCst);
        self.is_space_wanted() && self.release_waiter()
    }

    /// Front: whether a worker thread waits for room. It may have changed when this returns.
    pub fn is_space_wanted(self) -> bool {
        self.space_wanted.load(Ordering::Relaxed) == 1
    }

    /// Front: cancels the answer. The waiter must be woken by futex.
    pub fn cancel(self) {
        self.cancelled.store(1, Ordering::Release);
        self.release_waiter();
    }

    /// Either side: ends the wait for room. Always `true`, for [`SlotStream::consume`].
    pub fn release_waiter(self) -> bool {
        self.space_wanted.store(0, Ordering::Relaxed);
        self.space_bell.fetch_add(1, Ordering::Release);
        true
    }

    /// Worker: bytes that can be written beyond `written`, its own count.
    pub fn room(self, written: u32) -> u32 {
        let used = written.wrapping_sub(self.consumed.load(Ordering::Acquire));
        self.capacity.saturating_sub(used)
    }

    /// Worker: whether the answer was cancelled.
    pub fn is_cancelled(self) -> bool {
        self.cancelled.load(Ordering::Acquire) == 1
    }

    /// Worker: announces that it is about to wait for room and returns the value to sleep on. Look
    /// at [`SlotStream::room`] and [`SlotStream::is_cancelled`] again after this.
    pub fn want_space(self) -> u32 {
        let seen = self.space_bell.load(Ordering::Acquire);
        self.space_wanted.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        seen
    }

    /// Worker: makes what it has written visible, up to `written`.
    pub fn publish(self, written: u32) {
        self.written.store(written, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counters_run_on_beyond_their_end_and_lies_are_breaches() {
        let words: [AtomicU32; 5] = std::array::from_fn(|_| AtomicU32::new(0));
        let [written, consumed, space_bell, space_wanted, cancelled] = &words;
        let stream = SlotStream { written, consumed, space_bell, space_wanted, cancelled, capacity: 16 };
        let start = u32::MAX - 5;
        stream.consume(start);
        assert_eq!(stream.room(start), 16);
        stream.publish(start.wrapping_add(16));
        assert_eq!(stream.readable(start).unwrap(), 16);
        assert_eq!(stream.room(start.wrapping_add(16)), 0);
        for lie in [start.wrapping_sub(1), start.wrapping_add(17), 1 << 31] {
            stream.publish(lie);
            assert!(stream.readable(start).is_err());
        }
        assert_eq!(stream.room(start.wrapping_add(17)), 0, "never below nothing");
    }

    #[test]
    fn who_waits_for_room_is_released_once() {
        let words: [AtomicU32; 5] = std::array::from_fn(|_| AtomicU32::new(0));
        let [written, consumed, space_bell, space_wanted, cancelled] = &words;
        let stream = SlotStream { written, consumed, space_bell, space_wanted, cancelled, capacity: 16 };
        assert!(!stream.consume(1));
        let seen = stream.want_space();
        assert!(stream.consume(2));
        assert_ne!(space_bell.load(Ordering::Relaxed), seen);
        assert!(!stream.consume(3));
        let seen = stream.want_space();
        stream.cancel();
        assert!(stream.is_cancelled());
        assert_ne!(space_bell.load(Ordering::Relaxed), seen);
        stream.reset();
        assert!(!stream.is_cancelled());
    }
}
