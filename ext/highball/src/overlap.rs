//! Whether requests of this worker overlap: a thread that was woken for one, while others were at theirs, either finds the
//! GVL free, since those wait for something, or waits for it, since they compute.
//!
//! Where it is never free, requests are left to the threads that are at work, by the front (`computes` in the ring) and by
//! threads that have ended theirs: one more would only take turns with them, and each turn costs something.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread that has the GVL after this time has found it free. Threads that compute release it for a moment, too: a Rails
/// application for each line of its log.
const FREE: Duration = Duration::from_micros(20);

/// What one such thread counts for: requests that wait for something are harmed more by a thread that sleeps than those that
/// compute by one that wakes.
const FOUND_FREE: u32 = 4;
/// The most that is counted, and the limits below and above which the answer changes.
const MOST: u32 = 16;
const COMPUTES_BELOW: u32 = 4;
const OVERLAPS_ABOVE: u32 = 8;

/// One of this number of threads that could go on at once sleeps instead, while requests overlap.
const TRY_EVERY: u32 = 64;

/// What is known of it. Used with the GVL held.
#[derive(Debug)]
pub(crate) struct Overlap {
    score: Cell<u32>,
    computes: Cell<bool>,
    /// How often it was asked for since it was tried last, while requests overlap.
    asked: Cell<u32>,
}

impl Default for Overlap {
    fn default() -> Self {
        Overlap { score: Cell::new(MOST), computes: Cell::new(false), asked: Cell::new(0) }
    }
}

impl Overlap {
    /// Whether a thread that has ended its request is to leave the next to those at work: always where requests compute,
    /// else now and then, as threads that are always at work learn nothing.
    pub(crate) fn is_to_be_tried(&self) -> bool {
        let asked = self.asked.get() + 1;
        let is_due = asked == TRY_EVERY;
        self.asked.set(if is_due { 0 } else { asked });
        is_due || self.computes.get()
    }

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
