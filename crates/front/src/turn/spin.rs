//! Waiting for an answer without sleeping.
//!
//! To fall asleep and be woken by a worker takes two system calls and, where a processor has to be woken too, tens of
//! microseconds: more than an answer that needs no database. So the front looks at the ring for a moment first, where
//! another processor runs the worker meanwhile, and as long as that helps.

use std::cell::Cell;
use std::hint::spin_loop;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// How long it looks: about as long as a sleep takes.
const LONGEST: Duration = Duration::from_micros(50);

/// Looks at the ring between two looks at the clock.
const LOOKS: u32 = 16;

/// After n times in vain, one after the other, it leaves out 2ⁿ − 1 times. This is the largest n.
const MOST_IN_VAIN: u32 = 10;

/// Whether it helps.
#[derive(Debug)]
pub(super) struct Spin {
    /// Whether a worker can run meanwhile.
    has_processors: bool,
    /// How often in a row it was in vain.
    in_vain: Cell<u32>,
    /// How many more times it is left out.
    left_out: Cell<u32>,
}

impl Default for Spin {
    fn default() -> Self {
        // What the process may use, by its affinity and its cgroup.
        let has_processors = available_parallelism().is_ok_and(|processors| processors.get() > 1);
        Spin { has_processors, in_vain: Cell::new(0), left_out: Cell::new(0) }
    }
}

impl Spin {
    /// Whether to try it now.
    pub(super) fn is_worth_it(&self) -> bool {
        let left_out = self.left_out.get();
        self.left_out.set(left_out.saturating_sub(1));
        self.has_processors && left_out == 0
    }

    /// Waits until `has_come`, for a moment. `false`: it has not.
    pub(super) fn until(&self, has_come: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        // It looks at least a few times, however long the process was kept from running.
        loop {
            for _ in 0..LOOKS {
                if has_come() {
                    self.in_vain.set(0);
                    return true;
                }
                spin_loop();
            }
            if begin.elapsed() >= LONGEST {
                break;
            }
        }
        let in_vain = (self.in_vain.get() + 1).min(MOST_IN_VAIN);
        self.in_vain.set(in_vain);
        self.left_out.set((1 << in_vain) - 1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_vain_is_tried_less_and_less() {
        let spin = Spin { has_processors: true, ..Spin::default() };
        let tries = |times: u32| (0..times).filter(|_| spin.is_worth_it()).count();
        spin.until(|| true);
        assert_eq!(tries(10), 10);
        for in_vain in 1..=MOST_IN_VAIN {
            assert!(spin.is_worth_it());
            spin.until(|| false);
            assert_eq!(tries((1 << in_vain) - 1), 0);
        }
        assert!(spin.is_worth_it());
        spin.until(|| true);
        assert_eq!(tries(10), 10, "once it has helped, it is tried every time");
    }

    #[test]
    fn a_single_processor_is_left_to_the_worker() {
        let spin = Spin { has_processors: false, ..Spin::default() };
        assert!(!spin.is_worth_it());
    }
}
