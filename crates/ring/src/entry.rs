//! The dispatch order: the front places, the worker claims, the front may take back.
//!
//! An entry is one word, so that one compare-and-swap decides who has the slot it names.

use crate::layout::ENTRIES;
use crate::sync::{AtomicU64, Ordering};

/// Positions have 40 bits; a ring ends before they run out.
pub const MAX_POSITION: u64 = (1 << 40) - 1;

/// From this position on the worker has to be replaced: a billion requests are time enough for that.
pub const REPLACE_FROM: u64 = MAX_POSITION - (1 << 30);

/// A placed request: its slot, and the position of its entry. Ruby holds it as one Integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The slot that holds the request.
    pub slot: u16,
    /// The entry's position.
    pub position: u64,
}

impl Ticket {
    /// The ticket as one number.
    pub fn pack(self) -> u64 {
        self.position << 16 | u64::from(self.slot)
    }

    /// The ticket that this number stands for.
    pub fn unpack(ticket: u64) -> Self {
        Ticket { position: ticket >> 16, slot: ticket as u16 }
    }
}

/// The state of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    /// Never used.
    Free,
    /// Given to the worker.
    Placed,
    /// Begun by the worker.
    Claimed,
    /// Taken back by the front.
    TakenBack,
}

/// An entry's word, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The entry's position in the order, from 1.
    pub position: u64,
    /// The slot that holds the request.
    pub slot: u16,
    /// Whose it is.
    pub state: EntryState,
}

impl Word {
    /// Packs the word: position (40 bits), slot (16), state (8).
    pub fn pack(self) -> u64 {
        let state = match self.state {
            EntryState::Free => 0,
            EntryState::Placed => 1,
            EntryState::Claimed => 2,
            EntryState::TakenBack => 3,
        };
        (self.position << 24) | (u64::from(self.slot) << 8) | state
    }

    /// Unpacks a word. An unknown state (only a misbehaving worker writes one) reads as [`EntryState::Free`].
    pub fn unpack(word: u64) -> Self {
        let state = match word & 0xff {
            1 => EntryState::Placed,
            2 => EntryState::Claimed,
            3 => EntryState::TakenBack,
            _ => EntryState::Free,
        };
        Word { position: word >> 24, slot: (word >> 8) as u16, state }
    }
}

/// A view of the ring's entries.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a>(&'a [AtomicU64]);

/// What a worker found at its cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It has this slot now.
    Claimed(Ticket),
    /// Nothing is placed.
    Empty,
}

impl<'a> Entries<'a> {
    /// A view of `words`, whose number is a power of two ([`ENTRIES`] in a ring).
    pub fn new(words: &'a [AtomicU64]) -> Self {
        debug_assert!(words.len().is_power_of_two() && words.len() <= ENTRIES);
        Entries(words)
    }

    fn at(self, position: u64) -> &'a AtomicU64 {
        &self.0[position as usize & (self.0.len() - 1)]
    }

    /// Front: gives `slot` to the worker at `position`. The request must be in the slot already.
    pub fn place(self, position: u64, slot: u16) {
        let word = Word { position, slot, state: EntryState::Placed };
        self.at(position).store(word.pack(), Ordering::Release);
    }

    /// Front: takes the entry back. `false`: the worker was faster, or wrote garbage.
    pub fn take_back(self, position: u64, slot: u16) -> bool {
        self.swap_placed(position, slot, EntryState::TakenBack)
    }

    /// Front: whether the worker has begun the entry (anything but `Placed` counts: a misbehaving worker
    /// must not look idle).
    pub fn is_claimed(self, position: u64) -> bool {
        let word = Word::unpack(self.at(position).load(Ordering::Acquire));
        word.position != position || word.state != EntryState::Placed
    }

    /// Worker: claims the next placed entry, moving `cursor` past it and past those taken back.
    pub fn claim(self, cursor: &mut u64) -> Claim {
        loop {
            let word = Word::unpack(self.at(*cursor).load(Ordering::Acquire));
            if word.position != *cursor {
                return Claim::Empty;
            }
            let Word { position, slot, .. } = word;
            let mine =
                word.state == EntryState::Placed && self.swap_placed(position, slot, EntryState::Claimed);
            *cursor += 1;
            if mine {
                return Claim::Claimed(Ticket { slot, position });
            }
        }
    }

    /// Worker: whether [`Entries::claim`] would find something.
    pub fn has_placed(self, mut cursor: u64) -> bool {
        for _ in 0..self.0.len() {
            let word = Word::unpack(self.at(cursor).load(Ordering::Acquire));
            if word.position != cursor {
                return false;
            }
            if word.state == EntryState::Placed {
                return true;
            }
            cursor += 1;
        }
        false
    }

    fn swap_placed(self, position: u64, slot: u16, to: EntryState) -> bool {
        let word = |state| Word { position, slot, state };
        self.at(position)
            .compare_exchange(
                word(EntryState::Placed).pack(),
                word(to).pack(),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words() -> [AtomicU64; 4] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn words_are_packed_without_loss_and_unknown_states_are_free() {
        for state in [EntryState::Free, EntryState::Placed, EntryState::Claimed, EntryState::TakenBack] {
            let word = Word { position: MAX_POSITION, slot: u16::MAX, state };
            assert_eq!(Word::unpack(word.pack()), word);
        }
        assert_eq!(Word::unpack(u64::MAX).state, EntryState::Free);
    }

    #[test]
    fn claims_pass_over_what_was_taken_back_and_go_round() {
        let words = words();
        let entries = Entries::new(&words);
        let mut cursor = 1;
        for position in (1..20).step_by(3) {
            for next in position..position + 3 {
                entries.place(next, next as u16);
            }
            assert!(entries.take_back(position, position as u16));
            assert!(entries.take_back(position + 1, position as u16 + 1));
            assert!(!entries.take_back(position + 1, position as u16 + 1), "only once");
            assert!(entries.has_placed(cursor));
            let third = Claim::Claimed(Ticket { slot: position as u16 + 2, position: position + 2 });
            assert_eq!(entries.claim(&mut cursor), third);
            assert_eq!(cursor, position + 3);
            assert!(entries.is_claimed(position + 2));
            assert!(!entries.take_back(position + 2, position as u16 + 2));
            assert!(!entries.has_placed(cursor));
            assert_eq!(entries.claim(&mut cursor), Claim::Empty);
        }
    }

    #[test]
    fn an_invalid_word_looks_claimed_to_the_front_and_empty_to_the_worker() {
        let words = words();
        let entries = Entries::new(&words);
        entries.place(1, 7);
        assert!(!entries.is_claimed(1));
        for invalid in [0, u64::MAX, (1 << 24) | (7 << 8) | 9] {
            words[1].store(invalid, Ordering::Relaxed);
            assert!(entries.is_claimed(1));
            assert!(!entries.take_back(1, 7));
            assert!(!entries.has_placed(1));
            assert_eq!(entries.claim(&mut 1), Claim::Empty);
        }
    }

    #[test]
    fn of_a_claim_and_a_take_back_one_wins() {
        for _ in 0..if cfg!(miri) { 20 } else { 1000 } {
            let words = words();
            let entries = Entries::new(&words);
            entries.place(1, 7);
            let (claim, taken) = std::thread::scope(|scope| {
                let worker = scope.spawn(|| entries.claim(&mut 1));
                let taken = entries.take_back(1, 7);
                (worker.join().unwrap(), taken)
            });
            assert_eq!(claim == Claim::Empty, taken);
        }
    }
}
