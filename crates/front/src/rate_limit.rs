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

/// What a limit leaves to a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Quota<'a> {
    /// The limit.
    pub(crate) limit: &'a RateRule,
    /// Number of requests that the client may send at once.
    pub(crate) remaining: u32,
    /// Time until the client may send one more, in µs.
    pub(crate) more_in_us: u64,
}

impl RateTable {
    /// Counts a request of a client for this [plain] path towards all limits that apply to it. Returns the tightest of them, if
    /// there is one.
    ///
    /// # Errors
    /// The client has reached a limit: of several, the limit with the longest wait. Then the request counts towards none.
    pub(crate) fn count<'a>(
        &mut self,
        (app, client): (AppId, Option<Origin>),
        path: &[u8],
        limits: &'a [RateRule],
        now_us: u64,
    ) -> Result<Option<Quota<'a>>, Quota<'a>> {
        let (mut passed, mut reached) = (None, None);
        self.next.clear();
        for limit in limits.iter().filter(|limit| is_about(limit.pattern.as_ref(), path)) {
            let key = self.hasher.hash_one((app, client, limit));
            match next_moment(limit, self.moments.get(key), now_us) {
                Ok(moment_us) => {
                    self.next.push((key, moment_us));
                    keep_tighter(&mut passed, Quota::left_by(limit, moment_us - now_us));
                }
                Err(wait_us) => {
                    keep_tighter(&mut reached, Quota { limit, remaining: 0, more_in_us: wait_us })
                }
            }
        }
        if let Some(reached) = reached {
            return Err(reached);
        }
        self.next.iter().for_each(|(key, moment_us)| self.moments.set(*key, *moment_us, now_us));
        Ok(passed)
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

impl<'a> Quota<'a> {
    /// Returns what the limit leaves to a client whose requests take this time at the allowed rate, at most that of the burst.
    fn left_by(limit: &'a RateRule, taken_us: u64) -> Self {
        let interval_us = interval_us(limit);
        let used = taken_us.div_ceil(interval_us);
        let remaining = u64::from(limit.burst).saturating_sub(used);
        Quota {
            limit,
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            more_in_us: taken_us.saturating_sub(used.saturating_sub(1) * interval_us),
        }
    }

    fn is_tighter_than(&self, other: &Self) -> bool {
        (self.remaining, other.more_in_us) < (other.remaining, self.more_in_us)
    }
}

fn keep_tighter<'a>(kept: &mut Option<Quota<'a>>, other: Quota<'a>) {
    if kept.as_ref().is_none_or(|kept| other.is_tighter_than(kept)) {
        *kept = Some(other);
    }
}

/// Returns the time from one request to the next at the allowed rate, in µs.
fn interval_us(limit: &RateRule) -> u64 {
    (limit.period.as_micros() as u64 / u64::from(limit.requests)).max(1)
}

/// Returns the client's moment after one more request, or the time it has to wait, in µs.
fn next_moment(limit: &RateRule, moment_us: u64, now_us: u64) -> Result<u64, u64> {
    let interval_us = interval_us(limit);
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
                name: "rate_limited",
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
        assert_eq!(table.count((APP, client(1)), b"/", &limits, S).unwrap_err().more_in_us, S);
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
        assert_eq!((reached.limit, reached.more_in_us), (&limits[1], 12 * S));
    }

    #[test]
    fn the_tightest_limit_says_what_is_left() {
        let mut table = RateTable::default();
        let limits = [limit(None, 10, 1, 20), limit(Some("/login"), 5, 60, 5)];
        let mut left = |path: &[u8], now_us| {
            let quota = table.count((APP, client(1)), path, &limits, now_us).ok().flatten();
            quota.map(|quota| (quota.limit.requests, quota.remaining, quota.more_in_us))
        };
        assert_eq!(left(b"/", S), Some((10, 19, S / 10)));
        assert_eq!(left(b"/", S), Some((10, 18, S / 10)));
        assert_eq!(left(b"/", S + 1), Some((10, 17, S / 10 - 1)));
        assert_eq!(left(b"/login", 2 * S), Some((5, 4, 12 * S)));
        assert_eq!(left(b"/login", 8 * S), Some((5, 3, 6 * S)));
        for remaining in (0..3).rev() {
            assert_eq!(left(b"/login", 8 * S).map(|(_, left, _)| left), Some(remaining));
        }
        assert_eq!(left(b"/login", 8 * S), None, "refused");
        assert_eq!(table.count((APP, client(1)), b"/", &limits[1..], S), Ok(None), "no limit covers it");
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
