//! The workers of the sessions that were used last, in bounded memory.

use std::collections::HashMap;

/// Sessions by their keys. When the newer half is full, the older half is forgotten, and the newer one takes its place.
#[derive(Debug)]
pub(super) struct Recent {
    newer: HashMap<u64, u32>,
    older: HashMap<u64, u32>,
    /// The size of each half.
    half: usize,
}

impl Recent {
    /// Keeps at least half of `most` sessions, and at most that number.
    pub(super) fn new(most: usize) -> Self {
        Recent { newer: HashMap::new(), older: HashMap::new(), half: (most / 2).max(1) }
    }

    /// Returns the worker of a session, which counts as used.
    pub(super) fn get(&mut self, key: u64) -> Option<u32> {
        if let Some(worker) = self.newer.get(&key) {
            return Some(*worker);
        }
        let worker = self.older.remove(&key)?;
        self.set(key, worker);
        Some(worker)
    }

    pub(super) fn set(&mut self, key: u64, worker: u32) {
        self.older.remove(&key);
        if self.newer.len() >= self.half && !self.newer.contains_key(&key) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, worker);
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.newer.remove(&key);
        self.older.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_used_last_are_kept() {
        let mut recent = Recent::new(100);
        recent.set(0, 5);
        for key in 1..1000 {
            recent.set(key, 1);
            assert_eq!(recent.get(0), Some(5));
            assert!(recent.newer.len() + recent.older.len() <= 100);
        }
        assert_eq!((recent.get(999), recent.get(960), recent.get(1)), (Some(1), Some(1), None));
        recent.remove(999);
        assert_eq!(recent.get(999), None);
    }
}
