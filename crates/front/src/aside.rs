//! What is found out on other threads for one application, and remembered for a while.
//!
//! Asking the file system may take long: a disk is busy, a file system of another machine or of a process does not
//! answer, and an opener takes as long as its user likes. So the event loop never asks. It answers from its [`Memory`];
//! what is not there is found out on a thread of the pool, within the application's [`PoolShare`]; and requests wait for that for
//! [`PATIENCE`] alone.
//!
//! In reading order: this file, [`file_reads`] (files for clients), [`write_behind`] (files that the front writes),
//! [`loop_share`] (short work of the pool's that the event loop does itself).

pub(crate) mod file_reads;
pub(crate) mod loop_share;
pub(crate) mod write_behind;

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use highball_users::User;
use tokio::sync::{oneshot, OwnedSemaphorePermit, Semaphore};
use tokio::task::{spawn_blocking, spawn_local};
use tokio::time::timeout;

/// How long a request waits: a little longer than a thread waits for an opener.
pub(crate) const PATIENCE: Duration = Duration::from_millis(2500);

/// The threads of the pool that one application has at a time. A file system that does not answer takes them all, and
/// and no other application's.
const THREADS: usize = 4;

/// How old what was found out may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ages {
    /// Up to this age, in milliseconds, it is believed.
    pub(crate) fresh_ms: u64,
    /// Up to this age it is used while it is found out again.
    pub(crate) usable_ms: u64,
}

impl Ages {
    /// Of what costs a question to another process, or is needed rarely.
    pub(crate) const LONG: Ages = Ages { fresh_ms: 1000, usable_ms: 2000 };
}

/// A share of the thread pool: an application has few of its threads at a time, and so has each kind of work.
#[derive(Debug, Clone)]
pub(crate) struct PoolShare(Arc<Semaphore>);

/// A thread of the share, until this is dropped.
#[derive(Debug)]
pub(crate) struct PoolThread {
    _permit: OwnedSemaphorePermit,
}

impl PoolShare {
    /// The share of an application of this user: an opener answers one question at a time.
    pub(crate) fn of(user: Option<&User>) -> Self {
        let threads = if highball_tenant::is_by_opener(user) { 1 } else { THREADS };
        PoolShare(Arc::new(Semaphore::new(threads)))
    }

    /// The share for reading files, wherever they were opened.
    pub(crate) fn of_reads() -> Self {
        PoolShare(Arc::new(Semaphore::new(THREADS)))
    }

    /// The share for computing TLS handshakes: a thread for each CPU.
    pub(crate) fn of_handshakes() -> Self {
        PoolShare::of_threads(available_parallelism().map_or(THREADS, usize::from))
    }

    /// The share for checking passwords: half of the CPUs stay free of it.
    pub(crate) fn of_logins() -> Self {
        PoolShare::of_threads(available_parallelism().map_or(1, |cpus| usize::from(cpus).div_ceil(2)))
    }

    /// The share for work that needs this number of threads at most.
    pub(crate) fn of_threads(threads: usize) -> Self {
        PoolShare(Arc::new(Semaphore::new(threads)))
    }

    /// Whether both are the same.
    pub(crate) fn is(&self, other: &PoolShare) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits for a thread.
    pub(crate) async fn take(&self) -> PoolThread {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        PoolThread { _permit: permit.expect("the semaphore is never closed") }
    }

    /// The same, but not for long: the threads may be stuck.
    pub(crate) async fn take_soon(&self) -> Option<PoolThread> {
        timeout(PATIENCE, self.take()).await.ok()
    }
}

impl PoolThread {
    /// Does it on the thread. The thread is free no earlier than the work is done, even if the waiting task has given
    /// up meanwhile, and not before the result is dropped, so that the next one sees it, too. `None`: it has panicked.
    pub(crate) async fn spend<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<(T, PoolThread)> {
        match spawn_blocking(move || (work(), self)).await {
            Ok(done) => Some(done),
            Err(error) => {
                tracing::error!(name: "pool_thread_panicked", %error, "a thread of the pool has panicked");
                None
            }
        }
    }
}

/// Starts a task, and waits for it, but not for long. `false`: it goes on, and the caller waits no longer.
pub(crate) async fn patiently(task: impl Future<Output = ()> + 'static) -> bool {
    let (end, ended) = oneshot::channel();
    spawn_local(async move {
        task.await;
        let _ = end.send(()); // the caller may have stopped waiting
    });
    timeout(PATIENCE, ended).await.is_ok()
}

/// What was found out.
#[derive(Debug)]
pub(crate) struct Memory<K, V> {
    known: RefCell<HashMap<K, Known<V>>>,
    /// Most entries; beyond that the oldest is forgotten.
    most: usize,
    ages: Ages,
}

#[derive(Debug)]
struct Known<V> {
    value: V,
    /// When it was found out.
    at_ms: u64,
    /// A task was asked to find it out again. Until it has, this value is used, however long that takes.
    is_looked_after: bool,
}

/// What is remembered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recalled<V> {
    /// This, and nothing is to be done about it.
    Fresh(V),
    /// This, and the caller finds it out again: no other caller is asked to until it is [learned](Memory::learn).
    Aging(V),
    /// Nothing that could be used.
    Nothing,
}

impl<K: Eq + Hash + Clone, V: Clone> Memory<K, V> {
    pub(crate) fn of(most: usize, ages: Ages) -> Self {
        Memory { known: RefCell::default(), most, ages }
    }

    pub(crate) fn recall<Q: Eq + Hash + ?Sized>(&self, key: &Q, now_ms: u64) -> Recalled<V>
    where
        K: Borrow<Q>,
    {
        match self.known.borrow_mut().get_mut(key) {
            Some(known) if known.is_looked_after || known.age_ms(now_ms) < self.ages.fresh_ms => {
                Recalled::Fresh(known.value.clone())
            }
            Some(known) if known.age_ms(now_ms) < self.ages.usable_ms => {
                known.is_looked_after = true;
                Recalled::Aging(known.value.clone())
            }
            _ => Recalled::Nothing,
        }
    }

    /// Whether this was found out lately; `None`: nothing is remembered, however old.
    pub(crate) fn is_fresh<Q: Eq + Hash + ?Sized>(&self, key: &Q, now_ms: u64) -> Option<bool>
    where
        K: Borrow<Q>,
    {
        self.known.borrow().get(key).map(|known| known.age_ms(now_ms) < self.ages.fresh_ms)
    }

    /// What is known, however old it is.
    pub(crate) fn latest<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.known.borrow().get(key).map(|known| known.value.clone())
    }

    /// This is so by now.
    pub(crate) fn learn(&self, key: K, value: V, at_ms: u64) {
        self.put(key, Known { value, at_ms, is_looked_after: false });
    }

    /// It could not be found out in time. What is known goes on being used for a while, and this if nothing is known.
    pub(crate) fn put_off(&self, key: K, otherwise: V, at_ms: u64) {
        let value = self.latest(&key).unwrap_or(otherwise);
        self.learn(key, value, at_ms);
    }

    /// The same while a task is still at it: until it has [learned](Memory::learn), however long that takes.
    pub(crate) fn put_off_until_learned(&self, key: K, otherwise: V, at_ms: u64) {
        let value = self.latest(&key).unwrap_or(otherwise);
        self.put(key, Known { value, at_ms, is_looked_after: true });
    }

    fn put(&self, key: K, entry: Known<V>) {
        let mut known = self.known.borrow_mut();
        if known.len() >= self.most && !known.contains_key(&key) {
            let oldest = known.iter().min_by_key(|(_, known)| known.at_ms).map(|(key, _)| key.clone());
            oldest.inspect(|oldest| drop(known.remove(oldest)));
        }
        known.insert(key, entry);
    }

    pub(crate) fn forget<Q: Eq + Hash + ?Sized>(&self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.known.borrow_mut().remove(key);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.borrow().len()
    }

    /// Forgets what would not be used any more.
    pub(crate) fn forget_old(&self, now_ms: u64) {
        self.known
            .borrow_mut()
            .retain(|_, known| known.is_looked_after || known.age_ms(now_ms) < self.ages.usable_ms);
    }
}

impl<V> Known<V> {
    fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH_MS: u64 = Ages::LONG.fresh_ms;
    const USABLE_MS: u64 = Ages::LONG.usable_ms;

    #[test]
    fn what_is_known_is_found_out_again_by_one_and_used_meanwhile() {
        let memory: Memory<u8, &str> = Memory::of(2, Ages::LONG);
        assert_eq!(memory.recall(&1, 0), Recalled::Nothing);
        memory.learn(1, "one", 0);
        assert_eq!(memory.recall(&1, FRESH_MS - 1), Recalled::Fresh("one"));
        assert_eq!(memory.recall(&1, FRESH_MS), Recalled::Aging("one"));
        assert_eq!(memory.recall(&1, FRESH_MS), Recalled::Fresh("one"), "one is at it");
        memory.forget_old(10 * FRESH_MS);
        assert_eq!(memory.recall(&1, 10 * FRESH_MS), Recalled::Fresh("one"), "still");
        memory.learn(1, "another", 10 * FRESH_MS);
        assert_eq!(memory.recall(&1, 10 * FRESH_MS), Recalled::Fresh("another"));
        assert_eq!(memory.recall(&1, 10 * FRESH_MS + USABLE_MS), Recalled::Nothing, "no request came");
    }

    #[test]
    fn not_much_is_kept_and_nothing_for_long() {
        let memory: Memory<u8, ()> = Memory::of(2, Ages::LONG);
        (0..3).for_each(|key| memory.learn(key, (), u64::from(key)));
        assert_eq!([0, 1, 2].map(|key| memory.is_fresh(&key, 3)), [None, Some(true), Some(true)]);
        memory.forget_old(USABLE_MS + 1);
        assert_eq!([1, 2].map(|key| memory.is_fresh(&key, 3)), [None, Some(true)]);
    }
}
