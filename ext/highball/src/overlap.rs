//! Whether requests of this worker overlap: a thread that was woken for one, while others were at theirs, either finds the
//! GVL free, since those wait for something, or waits for it, since they compute.
//!
//! Where it is never free, the front leaves requests to the threads that are at work (`computes` in the ring): one more
//! would only take turns with them, and each turn costs something.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread that has the GVL after this time has found it free.
const FREE: Duration = Duration::from_millis(1);

/// What one such thread counts for: a sleeping thread harms waiting requests more than a woken one harms computing
/// requests.
const FOUND_FREE: u32 = 4;
/// The most that is counted, and the limits below and above which the answer changes.
const MOST: u32 = 16;
const COMPUTES_BELOW: u32 = 4;
const OVERLAPS_ABOVE: u32 = 8;

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
    /// A thread that was woken beside others then has the GVL now. `Some`: whether requests compute, if that has changed.
    pub(crate) fn note(&self, woken: Instant, still_beside_others: bool) -> Option<bool> {
        let found_free = still_beside_others && woken.elapsed() < FREE;
        let before = self.score.get();
        let score = if found_free { (before + FOUND_FREE).min(MOST) } else { before.saturating_sub(1) };
        self.score.set(score);
        let computes = if self.computes.get() { score <= OVERLAPS_ABOVE } else { score < COMPUTES_BELOW };
        (self.computes.replace(computes) != computes).then_some(computes)
    }
}
