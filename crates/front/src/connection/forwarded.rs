//! Whose a request is that a proxy passes on: what a trusted one reports counts for this request, and what any other reports
//! reaches no application.

use highball_config::Network;

use super::Connection;
use crate::budget::Origin;
use crate::exchange::response_head::Recipient;
use crate::message::forwarded::{
    is_about_sending, is_by_forwarded, is_report, reported, Malformed, Reported,
};
use crate::message::refusal::Refusal;
use crate::message::request_head::known_key;
use crate::transport::stream::Peer;

impl Connection {
    /// Makes the peer the client that a trusted proxy reports in the head, which was read from `bytes`, until
    /// [`Connection::forget_client`].
    pub(super) fn learn_client(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let networks = &self.shared.settings.trusted_proxies;
        if networks.is_empty() {
            self.request.head.drop_fields(bytes, is_about_sending);
            return Ok(());
        }
        if !self.stream.is_trusted(&self.peer, networks) {
            self.request.head.drop_fields(bytes, |name| is_report(name) || is_about_sending(name));
            if self.shared.settings.request_id {
                self.request.head.drop_known(known_key::X_REQUEST_ID); // visitors could have their requests pass for others
            }
            return Ok(());
        }
        let is_trusted = |address| Network::any_contains(networks, address);
        let reported =
            reported(&self.request.head, bytes, is_trusted).map_err(|Malformed| Refusal::BadForwarded)?;
        if !is_by_forwarded(&self.request.head, bytes) {
            // Frameworks that prefer it would believe what the client has sent.
            self.request.head.drop_fields(bytes, |name| name.eq_ignore_ascii_case(b"forwarded"));
        }
        if reported != Reported::default() {
            let mut client = Peer { is_reported: true, ..self.peer.clone() };
            client.is_tls = reported.is_tls.unwrap_or(client.is_tls);
            if let Some(address) = reported.address {
                client.remote_addr = address.to_string();
            }
            self.become_client(client);
        }
        Ok(())
    }

    /// Who gets the answer to the request at hand.
    pub(super) fn recipient(&self) -> Recipient {
        let networks = &self.shared.settings.trusted_proxies;
        match networks.is_empty() {
            true => Recipient::Unknown,
            // Only a trusted proxy reports another client.
            false if self.request.proxy.is_some() || self.stream.is_trusted(&self.peer, networks) => {
                Recipient::Proxy
            }
            false => Recipient::Client,
        }
    }

    /// The client that is reported for the request at hand stands in the place of the peer.
    pub(super) fn become_client(&mut self, client: Peer) {
        let peer = std::mem::replace(&mut self.peer, client);
        // A proxy may be another's client.
        self.request.proxy.get_or_insert_with(|| Box::new(peer));
        self.belongs.origin = Origin::of(&self.peer.remote_addr);
    }

    /// The peer is the other end of the connection again: the next request may be another client's.
    pub(super) fn forget_client(&mut self) {
        if let Some(proxy) = self.request.proxy.take() {
            self.peer = *proxy;
            self.belongs.origin = Origin::of(&self.peer.remote_addr);
        }
    }
}
