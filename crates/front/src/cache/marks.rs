//! What is remembered of very many things in little memory: when something was last so of each. It is a table of a fixed size,
//! in which one thing may take the place of another. Both uses allow that: an answer is waited for, or is not stored.

use std::hash::BuildHasher;
use std::hash::RandomState;

const PLACES: usize = 2048;

/// A number for each of what was marked last.
#[derive(Debug)]
pub(super) struct Marks {
    places: Box<[(u64, u64)]>,
    /// With a key of this process: clients do not know which things meet at a place.
    hasher: RandomState,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { places: vec![(0, 0); PLACES].into(), hasher: RandomState::new() }
    }
}

impl Marks {
    fn hash(&self, thing: &[u8]) -> (u64, usize) {
        let hash = self.hasher.hash_one(thing);
        (hash, (hash % PLACES as u64) as usize)
    }

    /// Marks it.
    pub(super) fn mark(&mut self, thing: &[u8], number: u64) {
        let (hash, place) = self.hash(thing);
        self.places[place] = (hash, number);
    }

    /// The number that it was marked with last, unless that is forgotten; else 0.
    pub(super) fn of(&self, thing: &[u8]) -> u64 {
        let (hash, place) = self.hash(thing);
        let (marked, number) = self.places[place];
        if marked == hash {
            number
        } else {
            0
        }
    }

    /// The number that it may have been marked with: where that is forgotten, the number of what has taken its place.
    pub(super) fn at_most(&self, thing: &[u8]) -> u64 {
        self.places[self.hash(thing).1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_counts() {
        let mut marks = Marks::default();
        marks.mark(b"a", 3);
        marks.mark(b"a", 7);
        assert_eq!((marks.of(b"a"), marks.at_most(b"a")), (7, 7));
        for number in 8..20_000_u64 {
            marks.mark(&number.to_le_bytes(), number);
        }
        assert_eq!(marks.of(b"a"), 0, "another has its place");
        assert!(marks.at_most(b"a") >= 8);
    }
}
