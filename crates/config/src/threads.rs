//! How many threads a worker has.

use highball_cgroups::available_memory;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The smallest number by default, and the only one in development. With a single thread, a response that streams keeps all
/// others waiting.
pub(crate) const USUAL: u16 = 3;
/// The largest number that can be chosen.
pub const MOST_THREADS: u16 = 256;
/// The largest number by default.
const MOST: u16 = 32;
/// Memory that an extra thread counts for, in bytes.
const THREAD_BYTES: u64 = 256 * 1024;
/// Part of the memory that all extra threads may take by default.
const PART_OF_MEMORY: u64 = 16;

/// The serving threads of a worker: one number, or a range within which it follows the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// It begins with these, and never has fewer; at least 1.
    pub least: u16,
    /// It never has more.
    pub most: u16,
    /// Whether the numbers are the default: then all workers together get no more connections than databases usually allow.
    pub are_default: bool,
}

impl Default for Threads {
    fn default() -> Self {
        Threads::fixed(USUAL)
    }
}

impl Threads {
    /// Always this number.
    pub fn fixed(number: u16) -> Threads {
        Threads { least: number, most: number, are_default: false }
    }

    /// The default for development, where each request may load code again: one at a time does.
    pub(crate) fn of_development() -> Threads {
        Threads { are_default: true, ..Threads::fixed(USUAL) }
    }

    /// The default elsewhere, for up to this number of workers.
    pub(crate) fn of_production(workers: u16) -> Threads {
        Threads::within(available_memory().unwrap_or(u64::MAX), workers)
    }

    fn within(memory_bytes: u64, workers: u16) -> Threads {
        let extra = memory_bytes / PART_OF_MEMORY / THREAD_BYTES / u64::from(workers.max(1));
        let most = u64::from(USUAL).saturating_add(extra).min(u64::from(MOST)) as u16;
        Threads { least: USUAL, most, are_default: true }
    }

    /// Whether the number changes.
    pub fn are_range(self) -> bool {
        self.least < self.most
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.are_range() {
            true => write!(f, "{}..{}", self.least, self.most),
            false => write!(f, "{}", self.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_threads_take_a_part_of_the_memory_at_most() {
        let most = |mib: u64, workers| Threads::within(mib << 20, workers).most;
        assert_eq!([most(16_384, 16), most(512, 4), most(256, 4), most(64, 32)], [32, 32, 19, 3]);
    }

    #[test]
    fn a_range_is_written_as_in_a_configuration() {
        assert_eq!(Threads::fixed(5).to_string(), "5");
        assert_eq!(Threads { least: 3, most: 32, are_default: false }.to_string(), "3..32");
    }
}
