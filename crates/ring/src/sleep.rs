//! Who sleeps, who wakes.
//!
//! Both directions follow one rule. The sleeper announces itself, passes a sequentially consistent
//! fence, looks for news once more, and only then sleeps. The waker publishes its news, passes such a
//! fence, and then looks for a sleeper. Whatever the order of the two fences, at least one of the two
//! sees what the other wrote, so nobody sleeps through news.

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
    /// Worker thread: announces that it is about to sleep and returns the value to sleep on. Look for
    /// news once more after this; then sleep while the word has that value, then [`Bell::retract`].
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
#[derive(Debug, Clone, Copy)]
pub struct FrontSleep<'a>(pub &'a AtomicU32);

impl FrontSleep<'_> {
    /// Front: announces that it is about to sleep. Look for news once more after this.
    pub fn announce(self) {
        self.0.store(1, Ordering::Relaxed);
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
        self.0.load(Ordering::Relaxed) == 1
            && self.0.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_rung_for_who_does_not_sleep() {
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
        front.announce();
        let woke: usize = std::thread::scope(|scope| {
            let wakers = [(); 3].map(|()| scope.spawn(|| usize::from(front.must_wake())));
            wakers.map(|waker| waker.join().unwrap()).iter().sum()
        });
        assert_eq!(woke, 1);
        front.announce();
        front.retract();
        assert!(!front.must_wake());
    }
}
