//! Rate limits: how often each client may send requests (option `rate_limit`).
//!
//! A limit is a token bucket, kept as one moment for each client: the time until which its requests would take at the allowed
//! rate (the generic cell rate algorithm). A moment that has passed can be forgotten. In reading order: [`table`] (the moments of all clients), [`RateTable::count`].

mod table;

use std::hash::{BuildHasher, RandomState};

use highball_config::{AppId, RateRule};

use crate::budget::Origin;
use crate::clock::Tally;
use crate::path_pattern::is_about;
use table::Table;

/// Shortest time between two log lines about clients of an application, in ms.
const LOG_MS: u64 = 60_000;

/// The moments of all clients, for all applications.
#[derive(Debug, Default)]
pub(crate) struct RateTable {
    moments: Table,
    /// Hashes clients with secret keys, so that no client can choose addresses that share a place in the table.
    hasher: RandomState,
    /// Keys and moments of the request that is being counted. Kept, so that no request allocates it.
    next: Vec<(u64, u64)>,
}

/// A limit that a client has reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reached<'a> {
    /// The limit.
    pub(crate) limit: &'a RateRule,
    /// Time until the client may send the request again, in µs.
    pub(crate) wait_us: u64,
}

impl RateTable {
    /// Counts a request of a client for this [plain] path towards all limits that apply to it.
    ///
    /// # Errors
    /// The client has reached a limit: of several, the limit with the longest wait. Then the request counts towards none.
    pub(crate) fn count<'a>(
        &mut self,
        (app, client): (AppId, Option<Origin>),
        path: &[u8],
        limits: &'a [RateRule],
        now_us: u64,
    ) -> Result<(), Reached<'a>> {
        let mut reached: Option<Reached<'_>> = None;
        self.next.clear();
        for limit in limits.iter().filter(|limit| is_about(limit.pattern.as_ref(), path)) {
            let key = self.hasher.hash_one((app, client, limit));
            match next_moment(limit, self.moments.get(key), now_us) {
                Ok(moment_us) => self.next.push((key, moment_us)),
                Err(wait_us) if reached.as_ref().is_some_and(|reached| reached.wait_us >= wait_us) => {}
                Err(wait_us) => reached = Some(Reached { limit, wait_us }),
            }
        }
        if let Some(reached) = reached {
            return Err(reached);
        }
        self.next.iter().for_each(|(key, moment_us)| self.moments.set(*key, *moment_us, now_us));
        Ok(())
    }

    /// Does the periodic work.
    pub(crate) fn tick(&mut self, now_us: u64) {
        self.moments.tick(now_us);
    }

    /// Returns the memory of the table.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.moments.bytes()
    }
}

/// Returns the client's moment after one more request, or the time it has to wait, in µs.
fn next_moment(limit: &RateRule, moment_us: u64, now_us: u64) -> Result<u64, u64> {
    let interval_us = (limit.period.as_micros() as u64 / u64::from(limit.requests)).max(1);
    let ahead_us = moment_us.saturating_sub(now_us) + interval_us;
    match ahead_us.saturating_sub(interval_us * u64::from(limit.burst)) {
        0 => Ok(now_us + ahead_us),
        wait_us => Err(wait_us),
    }
}

/// Log lines about clients that send too many requests: one line for many requests.
#[derive(Debug, Default)]
pub(crate) struct RateLog(Tally);

impl RateLog {
    /// Counts a refused request.
    pub(crate) fn note(&self, app: &str, limit: &RateRule, address: &str) {
        if let Some(refused) = self.0.note(LOG_MS) {
            tracing::warn!(
                application = app,
                limit = %limit,
                last = address,
                refused,
                "clients that send too many requests get 429 (rate_limit)"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::settings::PathPattern;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const S: u64 = 1_000_000;
    const APP: AppId = AppId(1);

    fn limit(path: Option<&str>, requests: u32, seconds: u64, burst: u32) -> RateRule {
        let pattern = path.map(|path| PathPattern(path.to_owned()));
        RateRule { pattern, requests, period: Duration::from_secs(seconds), burst }
    }

    fn client(number: u32) -> Option<Origin> {
        Origin::of(&Ipv4Addr::from(0x0a00_0000 + number).to_string())
    }

    /// How many of these are let through, one after the other at the same moment.
    fn passed(
        table: &mut RateTable,
        limits: &[RateRule],
        path: &[u8],
        now_us: u64,
        requests: usize,
    ) -> usize {
        (0..requests).filter(|_| table.count((APP, client(1)), path, limits, now_us).is_ok()).count()
    }

    #[test]
    fn a_client_gets_its_burst_and_then_its_rate() {
        let (mut table, limits) = (RateTable::default(), [limit(None, 60, 60, 5)]);
        assert_eq!(passed(&mut table, &limits, b"/", S, 100), 5);
        assert_eq!(table.count((APP, client(1)), b"/", &limits, S).unwrap_err().wait_us, S);
        assert_eq!(passed(&mut table, &limits, b"/", 2 * S - 1, 100), 0);
        assert_eq!(passed(&mut table, &limits, b"/", 2 * S, 100), 1);
        assert_eq!(passed(&mut table, &limits, b"/", 5 * S, 100), 3);
        assert_eq!(passed(&mut table, &limits, b"/", 1000 * S, 100), 5);
        assert!(table.count((APP, client(2)), b"/", &limits, S).is_ok());
        assert!(table.count((AppId(2), client(1)), b"/", &limits, 1000 * S).is_ok());
    }

    #[test]
    fn all_limits_count_that_are_about_the_path() {
        let mut table = RateTable::default();
        let limits = [limit(None, 10, 1, 10), limit(Some("/login"), 5, 60, 5)];
        assert_eq!(passed(&mut table, &limits, b"/login", S, 100), 5);
        assert_eq!(passed(&mut table, &limits, b"/", S, 100), 5, "refused requests count towards none");
        let reached = table.count((APP, client(1)), b"/login", &limits, S).unwrap_err();
        assert_eq!((reached.limit, reached.wait_us), (&limits[1], 12 * S));
    }

    /// Another limit in its place begins again: the moment of a limit for a day would lock clients out.
    #[test]
    fn a_changed_limit_begins_again() {
        let mut table = RateTable::default();
        assert_eq!(passed(&mut table, &[limit(None, 1, 86_400, 1)], b"/", S, 2), 1);
        assert_eq!(passed(&mut table, &[limit(None, 10, 1, 10)], b"/", S, 20), 10);
    }

    proptest! {
        /// No client gets more than its burst and its rate in any time, and a client that keeps to the rate is never refused.
        #[test]
        fn the_rate_holds(requests in 1u32..1000, seconds in 1u64..100, burst in 1u32..100, steps in proptest::collection::vec(0u64..2_000_000, 1..200)) {
            let limit = limit(None, requests, seconds, burst);
            let interval_us = (seconds * S / u64::from(requests)).max(1);
            let (mut moment_us, mut now_us, mut passed) = (0, S, 0u64);
            for step in &steps {
                now_us += step;
                if let Ok(next) = next_moment(&limit, moment_us, now_us) {
                    (moment_us, passed) = (next, passed + 1);
                }
            }
            prop_assert!(passed <= u64::from(burst) + (now_us - S) / interval_us + 1);
            let (mut moment_us, mut now_us) = (0, S);
            for _ in &steps {
                now_us += interval_us;
                moment_us = next_moment(&limit, moment_us, now_us).unwrap();
            }
        }
    }

    #[test]
    fn a_million_clients_take_little_memory() {
        const CLIENTS: u32 = 1_000_000;
        let (mut table, limits) = (RateTable::default(), [limit(None, 1, 3600, 1)]);
        for number in 0..CLIENTS {
            assert!(table.count((APP, client(number)), b"/", &limits, S).is_ok());
        }
        let remembered =
            (0..CLIENTS).filter(|number| table.count((APP, client(*number)), b"/", &limits, S).is_err());
        let remembered = remembered.count();
        eprintln!("{remembered} of {CLIENTS} clients in {} KiB", table.bytes() >> 10);
        assert!(table.bytes() <= 64 << 20 && remembered >= 980_000, "{remembered}: {} bytes", table.bytes());
        (0..256).for_each(|_| table.tick(3602 * S));
        assert_eq!(table.bytes() >> 10, 0, "what has passed takes none");
    }

    /// An attacker with any number of addresses can have others forgotten, but neither locks them out nor frees itself.
    #[test]
    fn a_full_table_locks_nobody_out() {
        let (mut table, limits) = (RateTable::default(), [limit(None, 60, 3600, 60)]);
        assert_eq!(passed(&mut table, &limits, b"/", S, 100), 60);
        for number in 1000..4_000_000 {
            assert!(table.count((APP, client(number)), b"/", &limits, S).is_ok());
        }
        assert!(table.bytes() <= 64 << 20);
        assert_eq!(passed(&mut table, &limits, b"/", S, 100), 0, "the client that owes the most stays");
        assert!(table.count((APP, client(2)), b"/", &limits, S).is_ok());
    }
}
