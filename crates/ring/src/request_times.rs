//! What requests do with the time in which a thread of the worker is at them: it computes, or it waits.

use std::iter::Sum;
use std::ops::Add;

use crate::sync::{AtomicU64, Ordering};

/// Words of `request_times`.
pub const TIMES_WORDS: usize = 4;

/// The sums over some requests of a worker, whose time it has taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// The requests.
    pub requests: u64,
    /// Time in which their threads computed, in microseconds.
    pub computed_us: u64,
    /// Time in which other threads of the worker computed, or waited for a processor. Those of the requests waited for them (for
    /// the GVL), or for something else.
    pub beside_us: u64,
    /// Time in which no thread of the worker computed: they waited for something else.
    pub waited_us: u64,
}

impl Add for RequestTimes {
    type Output = RequestTimes;

    fn add(self, more: RequestTimes) -> RequestTimes {
        RequestTimes {
            requests: self.requests.saturating_add(more.requests),
            computed_us: self.computed_us.saturating_add(more.computed_us),
            beside_us: self.beside_us.saturating_add(more.beside_us),
            waited_us: self.waited_us.saturating_add(more.waited_us),
        }
    }
}

impl Sum for RequestTimes {
    fn sum<I: Iterator<Item = RequestTimes>>(times: I) -> RequestTimes {
        times.fold(RequestTimes::default(), Add::add)
    }
}

impl RequestTimes {
    /// From shared memory, where the other side writes what it likes. Words that are written at this moment may be of different
    /// requests: these are sums for people.
    pub(crate) fn read(words: &[AtomicU64]) -> RequestTimes {
        let word = |at: usize| words[at].load(Ordering::Relaxed);
        RequestTimes { requests: word(0), computed_us: word(1), beside_us: word(2), waited_us: word(3) }
    }

    /// What was added since then. Nothing, if these are sums over other workers than `before`.
    #[must_use]
    pub fn since(self, before: RequestTimes) -> RequestTimes {
        RequestTimes {
            requests: self.requests.saturating_sub(before.requests),
            computed_us: self.computed_us.saturating_sub(before.computed_us),
            beside_us: self.beside_us.saturating_sub(before.beside_us),
            waited_us: self.waited_us.saturating_sub(before.waited_us),
        }
    }

    pub(crate) fn write(&self, words: &[AtomicU64]) {
        let RequestTimes { requests, computed_us, beside_us, waited_us } = *self;
        for (word, value) in words.iter().zip([requests, computed_us, beside_us, waited_us]) {
            word.store(value, Ordering::Relaxed);
        }
    }
}
