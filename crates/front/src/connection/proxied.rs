//! The header of the PROXY protocol on a connection: read before anything else, from trusted peers alone, in limited time.

use std::future::poll_fn;
use std::task::{ready, Context, Poll};

use crate::clock::Deadline;
use crate::shared::{Leaving, Shared};
use crate::transport::listener::as_host;
use crate::transport::proxy_header::{parse, Addresses, ProxyHeader, Versions};
use crate::transport::stream::{Peer, Stream};

/// Reads the header with which a connection has to begin, where the configuration says so, and makes `peer` the client that
/// it reports. Returns the bytes behind it; `None`: the connection is to be closed.
pub(super) async fn read(
    stream: &mut Stream,
    peer: &mut Peer,
    shared: &Shared,
    deadline: &Deadline,
) -> Option<Vec<u8>> {
    let rules = &shared.settings.proxy_protocol;
    if !rules.is_on() {
        return Some(Vec::new());
    }
    let refuse = |why: &str| shared.proxy_refusals.note(&peer.remote_addr, why);
    if !stream.is_trusted(peer, &rules.from) {
        refuse("its address is not in `proxy_protocol_from`");
        return None;
    }
    deadline.set(Some(shared.settings.limits.head_timeout));
    let mut bytes = Vec::new();
    match poll_fn(|context| poll_header(stream, shared, deadline, &mut bytes, context)).await {
        Ok(header) => {
            become_client(peer, &header);
            Some(bytes)
        }
        Err(why) => {
            refuse(&why);
            None
        }
    }
}

/// Makes the peer the client that the header reports. Of a connection for which the proxy reports no addresses, they are
/// the connection's.
fn become_client(peer: &mut Peer, header: &ProxyHeader) {
    (peer.is_reported, peer.is_tls) = (true, header.is_tls);
    if let Some(Addresses { source, destination }) = header.addresses {
        peer.remote_addr = source.ip().to_canonical().to_string();
        if !destination.ip().is_unspecified() {
            peer.server_name = as_host(destination.ip());
        }
        peer.server_port = destination.port();
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
