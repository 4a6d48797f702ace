//! Where connections come from.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Who is at the other end, as far as that is known at no cost: a limit for one does not limit others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallerSource {
    /// An address; of IPv6, the network of 64 bits that a site has at least.
    Address(IpAddr),
    /// A user of this machine, by a Unix socket.
    User(u32),
    /// The kernel does not say.
    Unknown,
}

impl CallerSource {
    pub(super) fn of_address(address: SocketAddr) -> CallerSource {
        CallerSource::Address(match address.ip().to_canonical() {
            IpAddr::V6(ip) if !ip.is_loopback() => {
                let [a, b, c, d, ..] = ip.segments();
                Ipv6Addr::from([a, b, c, d, 0, 0, 0, 0]).into()
            }
            ip => ip,
        })
    }

    fn of_user(stream: &UnixStream) -> CallerSource {
        stream.peer_cred().map_or(CallerSource::Unknown, |user| CallerSource::User(user.uid()))
    }
}

/// A listener of which the connections come.
pub(crate) trait Listens {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(Self::Stream, CallerSource)>>;
}

impl Listens for TcpListener {
    type Stream = TcpStream;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(TcpStream, CallerSource)>> {
        let accepted = TcpListener::poll_accept(self, context);
        accepted.map_ok(|(stream, address)| (stream, CallerSource::of_address(address)))
    }
}

impl Listens for UnixListener {
    type Stream = UnixStream;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(UnixStream, CallerSource)>> {
        let accepted = UnixListener::poll_accept(self, context);
        accepted.map_ok(|(stream, _)| {
            let source = CallerSource::of_user(&stream);
            (stream, source)
        })
    }
}
