//! How many bytes spool files and buffers in memory may hold: in all, for each application, and for each client.
//!
//! Slow clients and large uploads fill spool files and buffers, which belong to the server and count for no application's
//! quota. So there is a limit for all of them together. None of several applications gets more than half of it, and no
//! client more than half of what its application gets. The requests that share an HTTP/2 connection have a [`Joint`] limit
//! beside these: to open them costs the client next to nothing. A [`Permit`] stands for bytes that are held; they are given back
//! when it is dropped.
//!
//! A body without room in memory goes to a spool file, and without room there it is refused. An answer without room waits, and
//! its worker with it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Seldom;

/// The log says at most this often that there is no room, in ms.
const LOG_MS: u64 = 60_000;

/// There is no room for as many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// What the bytes are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Spool files.
    SpoolFiles,
    /// Spool files in memory: their folder cannot be used.
    SpoolFilesInMemory,
    /// Buffers.
    Buffers,
    /// Encoders, and files that were compressed.
    Compression,
    /// Stored answers.
    Cache,
    /// Messages of hubs.
    Hub,
}

/// The budgets of a server.
#[derive(Debug)]
pub struct Budgets {
    /// What all spool files may hold.
    pub spool: Arc<Budget>,
    /// What all buffers may hold.
    pub buffers: Arc<Budget>,
    /// What all stored answers may take.
    pub cache: Arc<Budget>,
    /// What the messages of all hubs may take.
    pub hub: Arc<Budget>,
}

/// What all applications together may hold.
#[derive(Debug)]
pub struct Budget {
    limit: AtomicU64,
    /// What it will never be more than, whatever room there is later.
    most: AtomicU64,
    kind: Kind,
    /// Whether spool files are in memory at the moment.
    is_in_memory: AtomicBool,
    used: AtomicU64,
    /// Applications with a share.
    shares: AtomicUsize,
    logged: Seldom,
}

/// What one application may hold.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    name: String,
    /// Its own limit; `u64::MAX`: it has none.
    own_limit: AtomicU64,
    used: AtomicU64,
    /// What each client holds of it.
    clients: Mutex<HashMap<Origin, u64>>,
}

/// A client by its address, wherever it connects from with that. (One IPv6 subnet has 2⁶⁴ addresses, and counts as one.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin(u128);

/// What the requests of one connection may hold together.
#[derive(Debug)]
pub struct Joint {
    limit: u64,
    used: AtomicU64,
}

/// Who holds bytes.
#[derive(Debug, Clone, Default)]
pub struct Holder {
    /// `None`: a client on this machine, which may be a proxy.
    pub origin: Option<Origin>,
    /// `None`: its request has the connection for itself.
    pub joint: Option<Arc<Joint>>,
}

/// What one client may hold of an application's share.
#[derive(Debug, Clone)]
pub struct Account {
    share: Arc<Share>,
    holder: Holder,
}

/// Bytes that are held.
#[derive(Debug)]
pub struct Permit {
    account: Account,
    bytes: AtomicU64,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(limit: u64, kind: Kind) -> Arc<Budget> {
        let (used, shares, logged) = (0.into(), 0.into(), Seldom::default());
        let (most, is_in_memory) = (limit.into(), false.into());
        Arc::new(Budget { limit: limit.into(), most, kind, is_in_memory, used, shares, logged })
    }

    /// It has another limit from now on, and never more than `most`. What is held beyond that stays. `is_in_memory`: spool
    /// files are.
    pub(crate) fn set_limit(&self, limit: u64, most: u64, is_in_memory: bool) {
        self.limit.store(limit, Relaxed);
        self.most.store(most, Relaxed);
        self.is_in_memory.store(is_in_memory, Relaxed);
    }

    /// The most bytes that may be held.
    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    fn kind(&self) -> Kind {
        match self.kind {
            Kind::SpoolFiles if self.is_in_memory.load(Relaxed) => Kind::SpoolFilesInMemory,
            kind => kind,
        }
    }

    /// Bytes that are held.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }
}

impl Share {
    /// The share of an application, with the limit that is configured for it, if any.
    pub fn new(budget: &Arc<Budget>, name: &str, own_limit: Option<u64>) -> Arc<Share> {
        budget.shares.fetch_add(1, Relaxed);
        let share = Share {
            budget: Arc::clone(budget),
            name: name.to_owned(),
            own_limit: u64::MAX.into(),
            used: 0.into(),
            clients: Mutex::default(),
        };
        share.set_own_limit(own_limit);
        Arc::new(share)
    }

    /// It has another limit from now on. What it holds beyond that stays.
    pub fn set_own_limit(&self, own_limit: Option<u64>) {
        self.own_limit.store(own_limit.unwrap_or(u64::MAX), Relaxed);
    }

    /// The most bytes that it may hold: while there are other applications, never more than half of all.
    pub fn limit(&self) -> u64 {
        self.part_of(self.budget.limit())
    }

    fn part_of(&self, all: u64) -> u64 {
        let most = if self.budget.shares.load(Relaxed) > 1 { all / 2 } else { all };
        self.own_limit.load(Relaxed).min(most)
    }

    /// Bytes that it holds.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Bytes for which there is room now.
    pub fn free(&self) -> u64 {
        let of_all = self.budget.limit().saturating_sub(self.budget.used());
        of_all.min(self.limit().saturating_sub(self.used()))
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<Origin, u64>> {
        // It is whole at every moment.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.shares.fetch_sub(1, Relaxed);
    }
}

impl Origin {
    /// The client with this address; `None`: it is on this machine.
    pub fn of(address: &str) -> Option<Origin> {
        let address = address.parse::<IpAddr>().ok()?.to_canonical();
        match address {
            address if address.is_loopback() => None,
            IpAddr::V4(address) => Some(Origin(address.to_ipv6_mapped().into())),
            IpAddr::V6(address) => Some(Origin(u128::from(address) >> 64 << 64)),
        }
    }
}

impl Joint {
    /// A limit of this many bytes.
    pub fn new(limit: u64) -> Arc<Joint> {
        Arc::new(Joint { limit, used: 0.into() })
    }

    fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used.load(Relaxed))
    }
}

impl From<Option<Origin>> for Holder {
    fn from(origin: Option<Origin>) -> Holder {
        Holder { origin, joint: None }
    }
}

impl Account {
    /// The account of this client of the application.
    pub fn new(share: &Arc<Share>, holder: impl Into<Holder>) -> Account {
        Account { share: Arc::clone(share), holder: holder.into() }
    }

    /// What its bytes are in.
    pub(crate) fn kind(&self) -> Kind {
        self.share.budget.kind()
    }

    /// The most bytes that it may hold.
    pub fn limit(&self) -> u64 {
        self.part_of(self.share.limit())
    }

    /// What that will never be more than, whatever room there is later.
    pub(crate) fn most(&self) -> u64 {
        self.part_of(self.share.part_of(self.share.budget.most.load(Relaxed)))
    }

    fn part_of(&self, all: u64) -> u64 {
        all / if self.holder.origin.is_some() { 2 } else { 1 }
    }

    /// Bytes for which there is room now.
    pub fn free(&self) -> u64 {
        let of_joint = self.holder.joint.as_ref().map_or(u64::MAX, |joint| joint.free());
        of_joint.min(self.free_for_client())
    }

    fn free_for_client(&self) -> u64 {
        let free = self.share.free();
        let Some(origin) = self.holder.origin.filter(|_| free > 0) else { return free };
        let used = self.share.clients().get(&origin).copied().unwrap_or(0);
        free.min(self.limit().saturating_sub(used))
    }

    /// Says in the log, once in a while, that there is no room. What a connection may hold is no matter of options.
    pub fn note_full(&self) {
        let (share, budget) = (&self.share, &self.share.budget);
        if self.holder.joint.as_ref().is_some_and(|joint| joint.free() == 0) || !budget.logged.is_due(LOG_MS)
        {
            return;
        }
        let what = match budget.kind() {
            Kind::SpoolFiles | Kind::SpoolFilesInMemory => {
                "spool files are full: large uploads get 503, and workers wait for slow clients. --max-spool and \
                 --app-max-spool allow more"
            }
            Kind::Buffers => {
                "the buffers of requests and responses are full: more goes to spool files, and workers wait for slow \
                 clients. --max-buffers allows more"
            }
            Kind::Compression => {
                "there is no memory to compress more responses at a time, so some are sent uncompressed. --max-buffers \
                 allows more: compression has a quarter of it"
            }
            Kind::Cache => "the response cache is full; --max-cache and --cache allow more",
            Kind::Hub => "the hub is full: it drops messages early, or takes none. --max-hub allows more",
        };
        tracing::warn!(
            name: "budget_full",
            application = share.name,
            used = share.used(),
            limit = share.limit(),
            limit_for_a_client = self.holder.origin.map(|_| self.limit()),
            used_by_all = budget.used(),
            limit_for_all = budget.limit(),
            "{what}"
        );
    }
}

impl Permit {
    /// A permit for nothing yet.
    pub fn new(account: Account) -> Permit {
        Permit { account, bytes: 0.into() }
    }

    /// Whose it is.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Takes more bytes.
    ///
    /// # Errors
    /// There is no room for them; nothing was taken.
    pub fn grow(&self, bytes: u64) -> Result<(), Full> {
        if bytes > self.account.free() {
            return Err(Full);
        }
        self.set(self.bytes.load(Relaxed) + bytes);
        Ok(())
    }

    /// Holds this number of bytes from now on, although there may be no room: they are there.
    pub fn set(&self, bytes: u64) {
        // Answers that are small hold nothing, and a look costs less than a swap.
        if self.bytes.load(Relaxed) == bytes {
            return;
        }
        let before = self.bytes.swap(bytes, Relaxed);
        let Account { share, holder: Holder { origin, joint } } = &self.account;
        let of_joint = joint.iter().map(|joint| &joint.used);
        for used in [&share.used, &share.budget.used].into_iter().chain(of_joint) {
            // Wraps around for fewer.
            used.fetch_add(bytes.wrapping_sub(before), Relaxed);
        }
        let Some(origin) = origin else { return };
        let mut clients = share.clients();
        let used = clients.entry(*origin).or_default();
        *used = used.wrapping_add(bytes.wrapping_sub(before));
        if *used == 0 {
            clients.remove(origin);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(share: &Arc<Share>, client: Option<&str>) -> Permit {
        Permit::new(Account::new(share, client.and_then(Origin::of)))
    }

    #[test]
    fn none_of_several_gets_more_than_half() {
        let budget = Budget::new(100, Kind::SpoolFiles);
        let one = Share::new(&budget, "one", None);
        let permit = permit(&one, None);
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
        let budget = Budget::new(100, Kind::SpoolFiles);
        let (one, _other) = (Share::new(&budget, "one", Some(1000)), Share::new(&budget, "other", None));
        assert_eq!(one.limit(), 50);
        one.set_own_limit(Some(10));
        let permit = permit(&one, None);
        assert_eq!(permit.grow(11), Err(Full));
        assert_eq!(permit.grow(10), Ok(()));
        assert_eq!((permit.grow(1), budget.used()), (Err(Full), 10));
    }

    #[test]
    fn a_client_gets_no_more_than_half_over_all_its_connections() {
        let budget = Budget::new(100, Kind::Buffers);
        let share = Share::new(&budget, "app", None);
        let (first, second) = (permit(&share, Some("192.0.2.1")), permit(&share, Some("::ffff:192.0.2.1")));
        assert_eq!((first.grow(30), second.grow(21)), (Ok(()), Err(Full)));
        assert_eq!((second.grow(20), first.grow(1)), (Ok(()), Err(Full)));
        let another = permit(&share, Some("2001:db8::1"));
        assert_eq!(another.grow(40), Ok(()), "there is room for others");
        assert_eq!(
            permit(&share, Some("2001:db8::2")).grow(10),
            Ok(()),
            "of the same network, and within half"
        );
        assert_eq!(permit(&share, Some("127.0.0.1")).grow(11), Err(Full));
        assert_eq!(permit(&share, Some("::1")).grow(10), Ok(()), "a proxy on this machine");
        drop((first, second, another));
        assert_eq!((budget.used(), share.clients().len()), (0, 0));
        assert_eq!(permit(&share, None).grow(100), Ok(()));
    }

    #[test]
    fn requests_that_share_a_connection_share_a_limit() {
        let (share, joint) = (Share::new(&Budget::new(100, Kind::Buffers), "app", None), Joint::new(10));
        let of_connection =
            || Permit::new(Account::new(&share, Holder { origin: None, joint: Some(Arc::clone(&joint)) }));
        let (one, other) = (of_connection(), of_connection());
        assert_eq!((one.grow(7), other.grow(4), other.grow(3)), (Ok(()), Err(Full), Ok(())));
        assert_eq!((other.account().free(), share.free()), (0, 90), "other connections have room");
        drop(one);
        assert_eq!((other.account().free(), share.used()), (7, 3));
    }

    #[test]
    fn what_is_there_counts_also_beyond_the_limit() {
        let share = Share::new(&Budget::new(10, Kind::Buffers), "app", None);
        let one = permit(&share, Some("192.0.2.1"));
        one.set(20);
        assert_eq!((share.used(), share.free(), one.account().free()), (20, 0, 0));
        one.set(3);
        assert_eq!((share.used(), share.free(), one.account().free()), (3, 7, 2));
    }

    #[test]
    fn a_limit_that_changes_holds_at_once_and_what_is_held_stays() {
        let budget = Budget::new(100, Kind::SpoolFiles);
        let (one, _other) = (Share::new(&budget, "one", None), Share::new(&budget, "other", None));
        let permit = permit(&one, Some("192.0.2.1"));
        permit.grow(25).unwrap();
        budget.set_limit(20, 1000, true);
        assert_eq!((one.free(), permit.account().kind()), (0, Kind::SpoolFilesInMemory));
        assert_eq!((permit.account().limit(), permit.account().most()), (5, 250));
        budget.set_limit(200, 1000, false);
        assert_eq!((one.free(), permit.grow(25), permit.account().kind()), (75, Ok(()), Kind::SpoolFiles));
    }
}
