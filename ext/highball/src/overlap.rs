//! Whether requests of this worker overlap: a thread that asks for the GVL while others are at their requests either finds
//! it free, since those wait for something, or waits for it, since they compute.
//!
//! Where it is hardly ever free, requests are left to the threads that are at work, by the front (`computes` in the ring)
//! and by threads that have ended theirs: one more would only take turns with them, and each turn costs something.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread that has the GVL after this time has found it free. Threads that compute release it for a moment, too: a Rails
/// application for each file that it looks at.
const FREE: Duration = Duration::from_micros(20);

/// What one such thread counts for. So requests overlap where the GVL is free for a ninth of the time: about what turns
/// cost otherwise.
const FOUND_FREE: u32 = 8;
/// The most that is counted, and the limits below and above which the answer changes.
const MOST: u32 = 24;
const COMPUTES_BELOW: u32 = 4;
const OVERLAPS_ABOVE: u32 = 16;

/// What is known of it. Used with the GVL held.
#[derive(Debug)]
pub(crate) struct Overlap {
    score: Cell<u32>,
    computes: Cell<bool>,
}

impl Default for Overlap {
    fn default() -> Self {
        Overlap { score: Cell::new(MOST), computes: Cell::new(false) }
    }
}

impl Overlap {
    /// Whether requests compute nearly all of their time.
    pub(crate) fn computes(&self) -> bool {
        self.computes.get()
    }

    /// A thread that has asked for the GVL then, beside others, has it now. `Some`: whether requests compute, if that has
    /// changed.
    pub(crate) fn note(&self, asked: Instant, still_beside_others: bool) -> Option<bool> {
        let found_free = still_beside_others && asked.elapsed() < FREE;
        let before = self.score.get();
        let score = if found_free { (before + FOUND_FREE).min(MOST) } else { before.saturating_sub(1) };
        self.score.set(score);
        let computes = if self.computes.get() { score <= OVERLAPS_ABOVE } else { score < COMPUTES_BELOW };
        (self.computes.replace(computes) != computes).then_some(computes)
    }
}
