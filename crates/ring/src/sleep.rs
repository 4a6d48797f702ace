//! Who sleeps, who wakes.
//!
//! Both directions follow one rule. The sleeper announces itself, passes a sequentially consistent
//! fence, looks for news again, and only then sleeps. The waker publishes its news, passes such a fence, and then looks
//! for a sleeper. Whatever the order of the two fences, at least one of the two sees what the other wrote, so no side
//! misses news.

use crate::sync::{fence, AtomicU32, Ordering};

/// Worker threads that wait for requests: a futex word and the number of threads that wait on it.
#[derive(Debug, Clone, Copy)]
pub struct Bell<'a> {
    /// The futex word; any change of it ends the waits that began before.
    pub word: &'a AtomicU32,
    /// Threads about to wait or waiting.
    pub sleepers: &'a AtomicU32,
}

impl Bell<'_> {
    /// Worker thread: announces that it is about to sleep and returns the value to sleep on. Look for news again after
    /// this; then sleep while the word has that value, then [`Bell::retract`].
    pub fn announce(self) -> u32 {
        let seen = self.word.load(Ordering::Acquire);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        seen
    }

    /// Worker thread: it is awake again.
    pub fn retract(self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Front, once for all entries it has placed since the last time: whether a thread may be asleep.
    /// If so, the word has been changed and a waiter must be woken by futex.
    pub fn should_ring(self) -> bool {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.word.fetch_add(1, Ordering::Release);
        true
    }

    /// Worker: changes the word so that every wait ends (an interrupt, a stop).
    pub fn interrupt(self) {
        self.word.fetch_add(1, Ordering::Release);
    }
}

/// The front, which waits in epoll and is woken by an eventfd.
///
/// The word is 0 while it is awake, else the number of answers that it sleeps through but the last, with the bit
/// [`PATIENT`] if that is more than one.
#[derive(Debug, Clone, Copy)]
pub struct FrontSleep<'a>(pub &'a AtomicU32);

/// In the word of a front that is patient: it is to be woken as well when there is nothing left to claim.
const PATIENT: u32 = 1 << 31;

impl FrontSleep<'_> {
    /// Front: announces that it is about to sleep until `answers` have ended (at least 1; of several, it is patient),
    /// or anything else has come. Look for news again after this.
    pub fn announce(self, answers: u32) {
        let patient = if answers > 1 { PATIENT } else { 0 };
        self.0.store(answers.clamp(1, PATIENT - 1) | patient, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Front: it is awake.
    pub fn retract(self) {
        // A store would do, but loom does not see then that it comes after a worker's swap from the same
        // sleep.
        self.0.swap(0, Ordering::Relaxed);
    }

    /// Worker, after publishing: whether it is the one who must wake the front. At most one caller
    /// gets `true` for each sleep.
    pub fn must_wake(self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::Relaxed) != 0
    }

    /// Worker, after publishing the end of an answer: the same, but a patient front is left asleep for a while.
    pub fn must_wake_for_end(self) -> bool {
        fence(Ordering::SeqCst);
        let word = self.0.load(Ordering::Relaxed);
        if word & !PATIENT <= 1 {
            return word != 0 && self.0.swap(0, Ordering::Relaxed) != 0;
        }
        // If the front has woken meanwhile it has looked, or is going to.
        let _ = self.0.compare_exchange(word, word - 1, Ordering::Relaxed, Ordering::Relaxed);
        false
    }

    /// Worker, when there is nothing left to claim: whether it must wake a patient front.
    pub fn must_wake_for_rest(self) -> bool {
        self.0.load(Ordering::Relaxed) & PATIENT != 0 && self.0.swap(0, Ordering::Relaxed) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_does_not_sleep_is_not_rung() {
        let (word, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        let bell = Bell { word: &word, sleepers: &sleepers };
        assert!(!bell.should_ring());
        let seen = bell.announce();
        assert!(bell.should_ring());
        assert_ne!(word.load(Ordering::Relaxed), seen);
        bell.retract();
        assert!(!bell.should_ring());
    }

    #[test]
    fn of_several_wakers_one_wakes_the_front() {
        let word = AtomicU32::new(0);
        let front = FrontSleep(&word);
        assert!(!front.must_wake());
        front.announce(1);
        let woke: usize = std::thread::scope(|scope| {
            let wakers = [(); 3].map(|()| scope.spawn(|| usize::from(front.must_wake())));
            wakers.map(|waker| waker.join().unwrap()).iter().sum()
        });
        assert_eq!(woke, 1);
        front.announce(1);
        front.retract();
        assert!(!front.must_wake());
    }

    #[test]
    fn a_patient_front_sleeps_through_some_answers() {
        let word = AtomicU32::new(0);
        let front = FrontSleep(&word);
        assert!(!front.must_wake_for_end());
        front.announce(3);
        assert_eq!([(); 4].map(|()| front.must_wake_for_end()), [false, false, true, false]);
        front.announce(3);
        assert!(front.must_wake(), "other news cannot wait");
        front.announce(2);
        assert!(!front.must_wake_for_end());
        assert!(front.must_wake_for_rest());
        assert!(!front.must_wake_for_rest());
        front.announce(1);
        assert!(!front.must_wake_for_rest(), "there is no answer that it does not know of");
        assert!(front.must_wake_for_end());
    }
}
