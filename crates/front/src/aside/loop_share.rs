//! The share of the event loop's time for work that threads of the pool do otherwise. A thread and the event loop have to wake
//! each other for each piece, which costs more than a piece of 0.05 ms itself. Beyond its share, such work would delay
//! everything else.

use std::cell::Cell;

use crate::clock;

/// Length of a span.
const SPAN_US: u64 = 1000;

/// Most time of a span that is spent so.
const MOST_US: u64 = 500;

/// What was spent lately.
#[derive(Debug, Default)]
pub(crate) struct LoopShare {
    began_us: Cell<u64>,
    spent_us: Cell<u64>,
}

impl LoopShare {
    /// Does the work here, if there is time left for it. Else it is given back.
    pub(crate) fn spend<T, W: FnOnce() -> T>(&self, work: W) -> Result<T, W> {
        let now_us = clock::now_us();
        if now_us >= self.began_us.get() + SPAN_US {
            self.began_us.set(now_us);
            self.spent_us.set(0);
        }
        if self.spent_us.get() >= MOST_US {
            return Err(work);
        }
        let done = work();
        self.spent_us.set(self.spent_us.get() + clock::now_us().saturating_sub(now_us));
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn work_that_takes_long_is_followed_by_none() {
        let share = LoopShare::default();
        let long = || sleep(Duration::from_micros(MOST_US));
        assert!(share.spend(long).is_ok(), "nothing was spent yet");
        // The span may be over by now.
        assert!((0..1000).any(|_| share.spend(long).is_err()));
        sleep(Duration::from_micros(SPAN_US));
        assert!(share.spend(long).is_ok(), "another span");
    }
}
