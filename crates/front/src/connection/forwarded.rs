//! Whose a request is that a proxy passes on: what a trusted one reports counts for this request, and what any other reports
//! reaches no application.

use std::net::IpAddr;

use super::Connection;
use crate::budget::Origin;
use crate::message::forwarded::{is_report, reported, Malformed, Reported};
use crate::message::refusal::Refusal;
use crate::message::request_head::known_key;

impl Connection {
    /// Makes the peer the client that a trusted proxy reports in the head, which was read from `bytes`, until
    /// [`Connection::forget_client`].
    pub(super) fn learn_client(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let networks = &self.shared.settings.trusted_proxies;
        if networks.is_empty() {
            return Ok(());
        }
        let is_trusted = |address| networks.iter().any(|network| network.contains(address));
        let address = self.peer.remote_addr.parse::<IpAddr>();
        // The permissions of a Unix socket's file decide who can connect to it.
        let is_by_file = !self.stream.is_tcp() && !self.peer.is_reported;
        if !is_by_file && !address.is_ok_and(is_trusted) {
            self.head.drop_fields(bytes, is_report);
            return Ok(());
        }
        let reported = reported(&self.head, bytes, is_trusted).map_err(|Malformed| Refusal::BadForwarded)?;
        let has = |key| self.head.field(key, bytes).is_some();
        if has(known_key::X_FORWARDED_FOR) || has(known_key::X_FORWARDED_PROTO) {
            // Frameworks that prefer it would believe what the client has sent.
            self.head.drop_fields(bytes, |name| name.eq_ignore_ascii_case(b"forwarded"));
        }
        self.become_client(reported);
        Ok(())
    }

    fn become_client(&mut self, reported: Reported) {
        if reported == Reported::default() {
            return;
        }
        let mut client = self.peer.clone();
        client.is_reported = true;
        client.is_tls = reported.is_tls.unwrap_or(client.is_tls);
        if let Some(address) = reported.address {
            client.remote_addr = address.to_string();
        }
        self.proxy = Some(Box::new(std::mem::replace(&mut self.peer, client)));
        self.origin = Origin::of(&self.peer.remote_addr);
    }

    /// The peer is the other end of the connection again: the next request may be another client's.
    pub(super) fn forget_client(&mut self) {
        if let Some(proxy) = self.proxy.take() {
            self.peer = *proxy;
            self.origin = Origin::of(&self.peer.remote_addr);
        }
    }
}
