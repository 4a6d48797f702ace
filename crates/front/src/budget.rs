//! How many bytes spool files may hold: in all, and for each application.
//!
//! Slow clients and large uploads fill spool files, which belong to the server and count for no application's disk quota.
//! So there is a limit for all of them together, and none of several applications gets more than half of it. A
//! [`Permit`] stands for bytes that are held; they are given back when it is dropped.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{statfs, statvfs};

use crate::clock::now_ms;

/// A file system in memory (statfs(2)).
const TMPFS: u64 = 0x0102_1994;

/// The log says at most this often that there is no room, in ms.
const LOG_MS: u64 = 60_000;

/// There is no room for as many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// What all applications together may hold.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    /// Spool files are in memory: their folder cannot be used.
    in_memory: bool,
    used: Cell<u64>,
    /// Applications with a share.
    shares: Cell<usize>,
    logged_ms: Cell<Option<u64>>,
}

/// What one application may hold.
#[derive(Debug)]
pub struct Share {
    budget: Rc<Budget>,
    name: String,
    /// Its own limit, if it has one.
    own_limit: Cell<Option<u64>>,
    used: Cell<u64>,
}

/// Bytes that are held.
#[derive(Debug)]
pub struct Permit {
    share: Rc<Share>,
    bytes: Cell<u64>,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(limit: u64) -> Rc<Budget> {
        Budget::of(limit, false)
    }

    /// A budget of this many bytes. `in_memory`: they are of files in memory.
    pub(crate) fn of(limit: u64, in_memory: bool) -> Rc<Budget> {
        let (used, shares, logged_ms) = (Cell::new(0), Cell::new(0), Cell::new(None));
        Rc::new(Budget { limit, in_memory, used, shares, logged_ms })
    }

    /// Half of what is free in this folder, so that others find room there too; a quarter where it lies in memory, which
    /// everything else needs as well.
    pub fn usual_limit(folder: &Path) -> u64 {
        let Ok(space) = statvfs(folder) else { return u64::MAX };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let is_in_memory = statfs(folder).is_ok_and(|about| about.f_type as u64 == TMPFS);
        free / if is_in_memory { 4 } else { 2 }
    }

    /// The most bytes that may be held.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are held.
    pub fn used(&self) -> u64 {
        self.used.get()
    }
}

impl Share {
    /// The share of an application, with the limit that is configured for it, if any.
    pub fn new(budget: &Rc<Budget>, name: &str, own_limit: Option<u64>) -> Rc<Share> {
        budget.shares.set(budget.shares.get() + 1);
        let (budget, own_limit, used) = (Rc::clone(budget), Cell::new(own_limit), Cell::new(0));
        Rc::new(Share { budget, name: name.to_owned(), own_limit, used })
    }

    /// It has another limit from now on. What it holds beyond that stays.
    pub fn set_own_limit(&self, own_limit: Option<u64>) {
        self.own_limit.set(own_limit);
    }

    /// Whether its spool files are in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.budget.in_memory
    }

    /// The most bytes that it may hold: while there are other applications, never more than half of all.
    pub fn limit(&self) -> u64 {
        let all = self.budget.limit;
        let most = if self.budget.shares.get() > 1 { all / 2 } else { all };
        self.own_limit.get().map_or(most, |own| own.min(most))
    }

    /// Bytes that it holds.
    pub fn used(&self) -> u64 {
        self.used.get()
    }

    /// Bytes for which there is room now.
    pub fn free(&self) -> u64 {
        let of_all = self.budget.limit.saturating_sub(self.budget.used.get());
        of_all.min(self.limit().saturating_sub(self.used.get()))
    }

    /// Says in the log, once in a while, that there is no room.
    pub fn note_full(&self) {
        let (now, budget) = (now_ms(), &self.budget);
        if budget.logged_ms.get().is_some_and(|logged| now < logged + LOG_MS) {
            return;
        }
        budget.logged_ms.set(Some(now));
        tracing::warn!(
            application = self.name,
            used = self.used.get(),
            limit = self.limit(),
            used_by_all = budget.used.get(),
            limit_for_all = budget.limit,
            "spool files are full: large uploads get 503, and workers wait for slow clients. --max-spool and \
             --app-max-spool allow more"
        );
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.shares.set(self.budget.shares.get() - 1);
    }
}

impl Permit {
    /// A permit for nothing yet.
    pub fn new(share: &Rc<Share>) -> Permit {
        Permit { share: Rc::clone(share), bytes: Cell::new(0) }
    }

    /// Whose it is.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Takes more bytes.
    ///
    /// # Errors
    /// There is no room for them; nothing was taken.
    pub fn grow(&self, bytes: u64) -> Result<(), Full> {
        if bytes > self.share.free() {
            return Err(Full);
        }
        let add = |cell: &Cell<u64>| cell.set(cell.get() + bytes);
        [&self.bytes, &self.share.used, &self.share.budget.used].into_iter().for_each(add);
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let give_back = |cell: &Cell<u64>| cell.set(cell.get() - self.bytes.get());
        [&self.share.used, &self.share.budget.used].into_iter().for_each(give_back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_of_several_gets_more_than_half() {
        let budget = Budget::new(100);
        let one = Share::new(&budget, "one", None);
        let permit = Permit::new(&one);
        permit.grow(80).unwrap();
        assert_eq!((one.free(), one.limit()), (20, 100), "alone it may have all");
        let other = Share::new(&budget, "other", None);
        assert_eq!((one.free(), one.limit()), (0, 50), "what it holds stays");
        assert_eq!(other.free(), 20);
        drop(permit);
        assert_eq!((budget.used(), one.used(), one.free(), other.free()), (0, 0, 50, 50));
        drop(other);
        assert_eq!(one.free(), 100);
    }

    #[test]
    fn a_limit_of_its_own_only_lowers_that() {
        let budget = Budget::new(100);
        let (one, _other) = (Share::new(&budget, "one", Some(1000)), Share::new(&budget, "other", None));
        assert_eq!(one.limit(), 50);
        one.set_own_limit(Some(10));
        let permit = Permit::new(&one);
        assert_eq!(permit.grow(11), Err(Full));
        assert_eq!(permit.grow(10), Ok(()));
        assert_eq!((permit.grow(1), budget.used()), (Err(Full), 10));
    }

    #[test]
    fn the_usual_limit_leaves_room_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Budget::usual_limit(folder.path());
        assert!(limit > 0 && limit < u64::MAX);
        assert_eq!(Budget::usual_limit(&folder.path().join("missing")), u64::MAX);
    }
}
