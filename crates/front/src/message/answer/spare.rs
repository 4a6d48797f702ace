//! Memory for answers, which most connections have no use for at the moment: what was given back last is taken first, while it
//! is in the processor's cache.

use std::cell::RefCell;

use super::Waiting;

/// The most pieces that are kept: about as many answers are read from the rings before the first of them is sent.
const MOST: usize = 64;

/// The largest that are kept, in bytes.
const MOST_BYTES: usize = 16 * 1024;
const MOST_EVENTS: usize = 64;

/// It goes from one answer to the next as it is, so that a pointer is all that is moved.
type Memory = Box<Waiting>;

thread_local! {
    static SPARE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

/// Memory for events and for bytes, empty. Some is given back if this is not.
pub(super) fn take() -> Memory {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Gives memory back, and drops what is in it.
pub(super) fn give_back(mut memory: Memory) {
    let Waiting { events, bytes, at } = &mut *memory;
    events.clear();
    bytes.clear();
    *at = 0;
    if events.capacity() > MOST_EVENTS || bytes.capacity() > MOST_BYTES {
        return;
    }
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < MOST {
            spare.push(memory);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::AnswerEvent;
    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again_empty_and_small() {
        let mut memory = take();
        memory.events.push_back(AnswerEvent::End);
        memory.bytes.extend_from_slice(&[1; 100]);
        memory.at = 7;
        let (at, capacity) = (memory.bytes.as_ptr(), memory.bytes.capacity());
        give_back(memory);
        let mut memory = take();
        assert!(memory.events.is_empty() && memory.bytes.is_empty() && memory.at == 0);
        assert_eq!((memory.bytes.as_ptr(), memory.bytes.capacity()), (at, capacity));
        memory.bytes = vec![0; MOST_BYTES + 1];
        give_back(memory);
        assert_eq!(take().bytes.capacity(), 0, "the system has it");
    }

    #[test]
    fn a_bounded_number_is_kept() {
        for _ in 0..2 * MOST {
            give_back(Box::default());
        }
        assert_eq!(SPARE.with_borrow(Vec::len), MOST);
    }
}
