//! One bit per slot: "this slot has news for the front".

use crate::sync::{AtomicU64, Ordering};

/// A view of the `ready` bits.
#[derive(Debug, Clone, Copy)]
pub struct Ready<'a>(&'a [AtomicU64]);

impl<'a> Ready<'a> {
    /// A view of `words`, 64 slots each.
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Ready(words)
    }

    /// Announces news of `slot`: the worker, of what it wrote before, or the front to itself. Writes before this are
    /// visible to the thread that takes the bit.
    pub fn set(self, slot: u16) {
        let (word, bit) = (usize::from(slot) / 64, slot % 64);
        self.0[word].fetch_or(1 << bit, Ordering::Release);
    }

    /// Front: whether any slot has news.
    pub fn any(self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::Acquire) != 0)
    }

    /// Front: takes the bits of `word` and leaves none.
    pub fn take(self, word: usize) -> u64 {
        if self.0[word].load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.0[word].swap(0, Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_bit_is_taken_once() {
        let words: [AtomicU64; 4] = std::array::from_fn(|_| AtomicU64::new(0));
        let ready = Ready::new(&words);
        assert!(!ready.any());
        for slot in [0, 63, 64, 255] {
            ready.set(slot);
            ready.set(slot);
        }
        assert!(ready.any());
        let taken: Vec<u64> = (0..4).map(|word| ready.take(word)).collect();
        assert_eq!(taken, [1 | (1 << 63), 1, 0, 1 << 63]);
        assert!(!ready.any() && ready.take(0) == 0);
    }
}
