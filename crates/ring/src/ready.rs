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

    /// Worker: says that `slot` has news. What is written before is seen by whoever takes the bit.
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
