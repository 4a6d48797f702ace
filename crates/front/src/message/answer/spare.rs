//! Memory for answers, which most connections have no use for at the moment: what was given back last is taken first, while it
//! is in the processor's cache.

use std::cell::RefCell;

use super::AnswerEvent;

/// The most pieces that are kept: about as many answers are read from the rings before the first of them is sent.
const MOST: usize = 64;

/// The largest that are kept, in bytes.
const MOST_BYTES: usize = 16 * 1024;
const MOST_EVENTS: usize = 64;

type Memory = (Vec<AnswerEvent>, Vec<u8>);

thread_local! {
    static SPARE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

/// Memory for events and for bytes, empty. Some is given back if this is not.
pub(super) fn take() -> Memory {
    let spare = SPARE.with_borrow_mut(Vec::pop);
    // With a capacity, so that it is known to have been taken.
    spare.unwrap_or_else(|| (Vec::with_capacity(4), Vec::new()))
}

/// Gives memory back, and drops what is in it.
pub(super) fn give_back(mut events: Vec<AnswerEvent>, mut bytes: Vec<u8>) {
    events.clear();
    bytes.clear();
    if events.capacity() > MOST_EVENTS || bytes.capacity() > MOST_BYTES {
        return;
    }
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < MOST {
            spare.push((events, bytes));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again_empty_and_small() {
        let (mut events, mut bytes) = take();
        events.push(AnswerEvent::End);
        bytes.extend_from_slice(&[1; 100]);
        let (at, capacity) = (bytes.as_ptr(), bytes.capacity());
        give_back(events, bytes);
        let (events, bytes) = take();
        assert!(events.is_empty() && bytes.is_empty());
        assert_eq!((bytes.as_ptr(), bytes.capacity()), (at, capacity));
        give_back(events, vec![0; MOST_BYTES + 1]);
        assert_eq!(take().1.capacity(), 0, "the system has it");
    }

    #[test]
    fn a_bounded_number_is_kept() {
        for _ in 0..2 * MOST {
            give_back(Vec::with_capacity(1), Vec::with_capacity(1));
        }
        assert_eq!(SPARE.with_borrow(Vec::len), MOST);
    }
}
