//! The header of the PROXY protocol on a connection: read before anything else, from trusted peers alone, in limited time.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::IpAddr;
use std::task::{ready, Context, Poll};

use highball_config::ProxyProtocol;

use super::{parse, ProxyHeader, Versions};
use crate::clock::{now_ms, Deadline};
use crate::shared::{Leaving, Shared};
use crate::stream::{Peer, Stream};

/// Refused connections are logged once in this time, as every client can cause them.
const LOG_EVERY_MS: u64 = 60_000;

/// Reads the header with which a connection has to begin, where the configuration says so, and makes `peer` the client that
/// it reports. Returns the bytes behind it; `None`: the connection is to be closed.
pub(crate) async fn read(
    stream: &mut Stream,
    peer: &mut Peer,
    shared: &Shared,
    deadline: &Deadline,
) -> Option<Vec<u8>> {
    let rules = &shared.settings.proxy_protocol;
    if !rules.is_on() {
        return Some(Vec::new());
    }
    let refuse = |why: &str| shared.proxy_refusals.note(peer, why);
    if !is_trusted(stream, peer, rules) {
        refuse("its address is not in `proxy_protocol_from`");
        return None;
    }
    deadline.set(Some(shared.settings.limits.head_timeout));
    let mut bytes = Vec::new();
    match poll_fn(|context| poll_header(stream, shared, deadline, &mut bytes, context)).await {
        Ok(header) => {
            peer.become_client_of(&header);
            Some(bytes)
        }
        Err(why) => {
            refuse(&why);
            None
        }
    }
}

/// The permissions of a Unix socket's file decide who can connect to it.
fn is_trusted(stream: &Stream, peer: &Peer, rules: &ProxyProtocol) -> bool {
    match stream {
        Stream::Unix(_) => true,
        Stream::Tcp(_) => {
            let address = peer.remote_addr.parse::<IpAddr>();
            address.is_ok_and(|address| rules.from.iter().any(|network| network.contains(address)))
        }
    }
}

/// Reads until the header is whole; what is behind it stays in `bytes`.
fn poll_header(
    stream: &mut Stream,
    shared: &Shared,
    deadline: &Deadline,
    bytes: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<Result<ProxyHeader, String>> {
    let rules = &shared.settings.proxy_protocol;
    let versions = Versions { v1: rules.v1, v2: rules.v2 };
    loop {
        if shared.leaving() != Leaving::No {
            deadline.at_most(shared.time_for_last_request());
        }
        if deadline.has_passed(context) {
            return Poll::Ready(Err("its PROXY header did not arrive in time (`head_timeout`)".into()));
        }
        let mut scratch = shared.scratch.borrow_mut();
        let read = match ready!(stream.poll_read_some(context, &mut scratch)) {
            Ok(0) => return Poll::Ready(Err("it ended before its PROXY header did".into())),
            Ok(length) => &scratch[..length],
            Err(error) => return Poll::Ready(Err(format!("its PROXY header could not be read: {error}"))),
        };
        bytes.extend_from_slice(read);
        match parse(bytes, versions) {
            Ok(None) => {}
            Ok(Some((header, length))) => {
                bytes.drain(..length);
                return Poll::Ready(Ok(header));
            }
            Err(why) => return Poll::Ready(Err(why.to_string())),
        }
    }
}

/// Connections that were closed for the lack of a header; logged now and then.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    since_log: Cell<u64>,
    next_log_ms: Cell<u64>,
}

impl Refusals {
    fn note(&self, peer: &Peer, why: &str) {
        self.since_log.set(self.since_log.get() + 1);
        let now = now_ms();
        if now < self.next_log_ms.get() {
            return;
        }
        self.next_log_ms.set(now + LOG_EVERY_MS);
        let (from, connections) = (&peer.remote_addr, self.since_log.take());
        tracing::warn!(%from, connections, "a connection was closed: {why}");
    }
}
