//! Who sends a request: the other end of the connection, or the client that it reports as a proxy. What a trusted proxy
//! reports counts for this request, and what any other reports reaches no application.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use highball_config::{Network, Settings};

use crate::budget::{Account, Holder, Joint, Origin, Share};
use crate::exchange::response_head::Recipient;
use crate::message::forwarded::{
    is_about_sending, is_by_forwarded, is_report, reported, Malformed, Reported,
};
use crate::message::refusal::Refusal;
use crate::message::request_head::{known_key, RequestHead};
use crate::transport::stream::{Peer, Stream};

/// The client of the current request.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    /// The peer itself, if the request reports another client.
    proxy: Option<Box<Peer>>,
    /// Whose share of the budgets its requests take.
    pub(crate) origin: Option<Origin>,
    /// What the requests on the connection hold together, if they come at the same time.
    joints: Option<Rc<Joints>>,
}

/// What the streams of a connection may hold together.
#[derive(Debug)]
pub(crate) struct Joints {
    /// Bodies and answers in memory.
    pub(crate) buffers: Arc<Joint>,
    /// Encoders.
    pub(crate) encoders: Arc<Joint>,
}

impl Client {
    /// The other end of a connection.
    pub(crate) fn new(peer: Peer, joints: Option<Rc<Joints>>) -> Self {
        Client { origin: Origin::of(&peer.remote_addr), peer, proxy: None, joints }
    }

    /// Its address. A client of a Unix socket has none: it is on this machine.
    pub(crate) fn address(&self) -> IpAddr {
        self.peer.remote_addr.parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    // --- Behind a proxy ------------------------------------------------------------------------------

    /// Makes the peer the client that a trusted proxy reports in the head, which was read from `text`, until
    /// [`Client::forget_reported`].
    ///
    /// # Errors
    /// The report is malformed.
    pub(crate) fn learn(
        &mut self,
        head: &mut RequestHead,
        text: &[u8],
        stream: &Stream,
        settings: &Settings,
    ) -> Result<(), Refusal> {
        let networks = &settings.trusted_proxies;
        if networks.is_empty() {
            head.drop_fields(text, is_about_sending);
            return Ok(());
        }
        if !stream.is_trusted(&self.peer, networks) {
            head.drop_fields(text, |name| is_report(name) || is_about_sending(name));
            if settings.request_id {
                head.drop_known(known_key::X_REQUEST_ID); // visitors could have their requests pass for others
            }
            return Ok(());
        }
        let is_trusted = |address| Network::any_contains(networks, address);
        let reported = reported(head.with(text), is_trusted).map_err(|Malformed| Refusal::BadForwarded)?;
        if !is_by_forwarded(head.with(text)) {
            // Frameworks that prefer it would believe what the client has sent.
            head.drop_fields(text, |name| name.eq_ignore_ascii_case(b"forwarded"));
        }
        if reported != Reported::default() {
            let mut client = Peer { is_reported: true, ..self.peer.clone() };
            client.is_tls = reported.is_tls.unwrap_or(client.is_tls);
            if let Some(address) = reported.address {
                client.remote_addr = address.to_string();
            }
            self.become_reported(client);
        }
        Ok(())
    }

    /// Takes the client that is reported for the current request for the peer.
    pub(crate) fn become_reported(&mut self, client: Peer) {
        let peer = std::mem::replace(&mut self.peer, client);
        // A proxy may be another's client.
        self.proxy.get_or_insert_with(|| Box::new(peer));
        self.origin = Origin::of(&self.peer.remote_addr);
    }

    /// The peer is the other end of the connection again: the next request may be another client's.
    pub(crate) fn forget_reported(&mut self) {
        if let Some(proxy) = self.proxy.take() {
            self.peer = *proxy;
            self.origin = Origin::of(&self.peer.remote_addr);
        }
    }

    /// Who gets the answer to the current request.
    pub(crate) fn recipient(&self, stream: &Stream, settings: &Settings) -> Recipient {
        let networks = &settings.trusted_proxies;
        match networks.is_empty() {
            true => Recipient::Unknown,
            false if self.shares_connection(stream, settings) => Recipient::Proxy,
            false => Recipient::Client,
        }
    }

    /// Whether requests of other clients may come over the same connection. Only trusted proxies and web servers report clients.
    pub(crate) fn shares_connection(&self, stream: &Stream, settings: &Settings) -> bool {
        self.proxy.is_some() || stream.is_trusted(&self.peer, &settings.trusted_proxies)
    }

    // --- Its share of the budgets --------------------------------------------------------------------

    /// What it may hold of an application's spool files.
    pub(crate) fn spool(&self, share: &Arc<Share>) -> Account {
        Account::new(share, self.origin)
    }

    /// What it may hold of an application's memory, together with the other requests on its connection.
    pub(crate) fn buffers(&self, share: &Arc<Share>) -> Account {
        Account::new(share, self.holder(|joints| &joints.buffers))
    }

    /// Who holds the encoders of its answers.
    pub(crate) fn encoders(&self) -> Holder {
        self.holder(|joints| &joints.encoders)
    }

    fn holder(&self, joint: impl Fn(&Joints) -> &Arc<Joint>) -> Holder {
        let joint = self.joints.as_ref().map(|joints| Arc::clone(joint(joints)));
        Holder { origin: self.origin, joint }
    }
}
