//! Bounds how many passwords a client can try.

use std::collections::HashMap;

use crate::budget::Origin;

/// Wrong passwords that a client may send in the time below.
const MOST: u32 = 10;

const TIME_MS: u64 = 60_000;

/// Most clients that are remembered; beyond that, the client that began first is forgotten.
const MOST_CLIENTS: usize = 4096;

/// Wrong passwords, by client. All on this machine count as one client: they may be a proxy.
#[derive(Debug, Default)]
pub(super) struct Failures(HashMap<Option<Origin>, Failed>);

#[derive(Debug, Clone, Copy)]
struct Failed {
    count: u32,
    since_ms: u64,
}

impl Failed {
    fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.since_ms + TIME_MS
    }
}

impl Failures {
    /// How long a client has to wait before it may try another, in seconds, if it has to.
    pub(super) fn wait_seconds(&self, client: Option<Origin>, now_ms: u64) -> Option<u32> {
        let failed = self.0.get(&client).filter(|failed| failed.count >= MOST && !failed.is_over(now_ms))?;
        Some((failed.since_ms + TIME_MS - now_ms).div_ceil(1000) as u32)
    }

    /// A client has sent a wrong one.
    pub(super) fn note(&mut self, client: Option<Origin>, now_ms: u64) {
        if !self.0.contains_key(&client) {
            self.make_room(now_ms);
        }
        let failed = self.0.entry(client).or_insert(Failed { count: 0, since_ms: now_ms });
        if failed.is_over(now_ms) {
            *failed = Failed { count: 0, since_ms: now_ms };
        }
        failed.count += 1;
    }

    fn make_room(&mut self, now_ms: u64) {
        if self.0.len() < MOST_CLIENTS {
            return;
        }
        self.forget_old(now_ms);
        if self.0.len() >= MOST_CLIENTS {
            let first = self.0.iter().min_by_key(|(_, failed)| failed.since_ms).map(|(client, _)| *client);
            if let Some(first) = first {
                self.0.remove(&first);
            }
        }
    }

    pub(super) fn forget_old(&mut self, now_ms: u64) {
        self.0.retain(|_, failed| !failed.is_over(now_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_waits_after_too_many() {
        let (mut failures, client, other) =
            (Failures::default(), Origin::of("192.0.2.7"), Origin::of("192.0.2.8"));
        (0..MOST - 1).for_each(|_| failures.note(client, 1000));
        assert_eq!(failures.wait_seconds(client, 1000), None);
        failures.note(client, 2000);
        assert_eq!(failures.wait_seconds(client, 2000), Some(59));
        assert_eq!(failures.wait_seconds(client, 60_999), Some(1));
        assert_eq!(failures.wait_seconds(other, 2000), None);
        assert_eq!(failures.wait_seconds(client, 61_000), None);
        failures.note(client, 61_000);
        assert_eq!(failures.wait_seconds(client, 61_000), None, "it begins again");
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let mut failures = Failures::default();
        (0..MOST).for_each(|host| failures.note(Origin::of(&format!("2001:db8::{host}")), 0));
        assert!(failures.wait_seconds(Origin::of("2001:db8::ffff"), 1).is_some());
        assert!(failures.wait_seconds(Origin::of("2001:db8:1::1"), 1).is_none());
    }

    #[test]
    fn not_many_are_remembered() {
        let mut failures = Failures::default();
        for client in 0..MOST_CLIENTS as u32 + 100 {
            failures.note(
                Origin::of(&std::net::Ipv4Addr::from(0x0a00_0000 + client).to_string()),
                u64::from(client),
            );
        }
        assert_eq!(failures.0.len(), MOST_CLIENTS);
        failures.forget_old(TIME_MS + MOST_CLIENTS as u64 + 100);
        assert!(failures.0.is_empty());
    }
}
