//! Listening sockets: binding them, with errors that say what to do, and accepting from them.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdTcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use highball_config::{Bind, BindAddress, BindProtocol};
use highball_users::{Found, Place, PlaceError, User};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use thiserror::Error;
use tracing::warn;

use crate::transport::activated;
use crate::transport::stream::{Peer, Stream};

/// Connections that the kernel holds for us; it cuts this down to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// An address could not be bound.
#[derive(Debug, Error)]
#[error("cannot listen on {address}: {why}")]
pub struct BindError {
    /// The address.
    pub address: String,
    /// Why, and what to do.
    pub why: BindFault,
}

/// Why an address could not be bound.
#[derive(Debug, Error)]
pub enum BindFault {
    /// Somebody else has it.
    #[error("another program is using it already. Stop that program (`ss -ltnp` shows which one it is), or choose another port with --port")]
    InUse,
    /// Low port, or a folder that is not ours.
    #[error("permission denied. A port below 1024 needs the capability CAP_NET_BIND_SERVICE (the unit that `highball config systemd` prints has it) or root; a Unix socket needs a folder that this user may write to")]
    Denied,
    /// The address is not one of this machine.
    #[error("this machine has no such address. Use 127.0.0.1 for this machine only, 0.0.0.0 for all its addresses")]
    NoSuchAddress,
    /// A file that is not a socket stands at the path.
    #[error(
        "there is a file of that name already, and it is not a socket. Remove it or choose another path"
    )]
    NotASocket,
    /// A stale socket of this user's stands at the path.
    #[error("there is a socket of {0}'s already, in a folder where all users have files. Have {0} remove it, or choose another path")]
    NotOurs(String),
    /// Somebody else could swap what root makes there.
    #[error(transparent)]
    UnsafeFolder(PlaceError),
    /// Anything else.
    #[error(transparent)]
    Other(io::Error),
}

impl BindError {
    /// The short name of the cause, which never changes.
    pub fn cause(&self) -> &'static str {
        match self.why {
            BindFault::InUse => "address_in_use",
            BindFault::Denied => "permission_denied",
            BindFault::NoSuchAddress => "no_such_address",
            BindFault::NotASocket => "not_a_socket",
            BindFault::NotOurs(_) => "not_our_socket",
            BindFault::UnsafeFolder(_) => "unsafe_folder",
            BindFault::Other(_) => "address",
        }
    }
}

impl From<io::Error> for BindFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => BindFault::InUse,
            io::ErrorKind::PermissionDenied => BindFault::Denied,
            io::ErrorKind::AddrNotAvailable => BindFault::NoSuchAddress,
            _ => BindFault::Other(error),
        }
    }
}

impl From<PlaceError> for BindFault {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Folder { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                BindFault::Denied
            }
            PlaceError::Unsafe { .. } => BindFault::UnsafeFolder(error),
            other => BindFault::Other(io::Error::other(other)),
        }
    }
}

/// A bound, listening socket.
#[derive(Debug)]
pub struct Listener {
    /// The address, with the port that it has got.
    bind: Bind,
    socket: Bound,
    /// Another server has bound it, and may still accept from it.
    inherited: bool,
}

#[derive(Debug)]
enum Bound {
    Tcp(StdTcpListener),
    Unix(SocketPath, StdUnixListener),
}

/// Binds an address and listens. A Unix socket without a process that answers is replaced.
///
/// # Errors
/// [`BindError`] says what to do about it.
pub fn bind(bind: &Bind) -> Result<Listener, BindError> {
    if let Some(socket) = activated::take(&bind.address) {
        return over(bind, socket, false);
    }
    let bound = match &bind.address {
        BindAddress::Tcp(address) => bind_tcp(*address).map(Bound::Tcp).map_err(BindFault::from),
        BindAddress::Unix(path) => bind_unix(path).map(|(path, listener)| Bound::Unix(path, listener)),
    };
    Listener::of(bind, bound, false)
}

/// Takes over a socket that another server has bound to this address, and listens on.
///
/// # Errors
/// It is not such a socket.
pub fn adopt(bind: &Bind, socket: OwnedFd) -> Result<Listener, BindError> {
    let mut listener = over(bind, socket, true)?;
    if let Bound::Unix(path, _) = &mut listener.socket {
        *path = SocketPath::inherited(&path.path);
    }
    Ok(listener)
}

/// Takes over a socket that was bound to this address for this server, or for one before it (`inherited`), and listens on.
/// Another process looks after its path.
///
/// # Errors
/// It is not such a socket.
pub fn over(bind: &Bind, socket: OwnedFd, inherited: bool) -> Result<Listener, BindError> {
    let bound = match &bind.address {
        BindAddress::Tcp(_) => Bound::Tcp(StdTcpListener::from(socket)),
        BindAddress::Unix(path) => {
            let path = SocketPath { path: path.clone(), file: None, stays: Cell::new(true) };
            Bound::Unix(path, StdUnixListener::from(socket))
        }
    };
    Listener::of(bind, Ok(bound), inherited)
}

fn bind_tcp(address: SocketAddr) -> io::Result<StdTcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn bind_unix(path: &Path) -> Result<(SocketPath, StdUnixListener), BindFault> {
    let place = Place::open(path)?;
    let lock = place.lock()?;
    if let Some(found) = place.find()? {
        if !found.is_socket() {
            return Err(BindFault::NotASocket);
        }
        if !place.may_replace(&found) {
            return Err(BindFault::NotOurs(User::with_uid(found.uid(), 0).name));
        }
        if is_answered(&found)? {
            return Err(BindFault::InUse);
        }
        lock.remove(&found)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // By the path itself, which is what ss(8) and lsof(8) show then: no other user can change where it leads. It
    // fails where something is there by now. The mode is as the umask has it: by that, people let a web server in.
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    socket.listen(BACKLOG)?;
    let file = place.find()?.filter(Found::is_socket);
    let removed = || io::Error::new(io::ErrorKind::NotFound, "another process has removed the socket");
    let file = file.ok_or_else(removed)?;
    drop(lock);
    let path = SocketPath { path: path.into(), file: Some(Box::new((place, file))), stays: Cell::new(false) };
    Ok((path, socket.into()))
}

/// Whether a process listens on a Unix socket.
fn is_answered(found: &Found) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&socket2::SockAddr::unix(found.address())?) {
        Ok(()) => Ok(true),
        // With a full backlog it would block: the listener is there, but busy.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
        Err(error) => Err(error),
    }
}

impl Listener {
    /// The TCP address is the one chosen by the system.
    fn of(bind: &Bind, bound: Result<Bound, BindFault>, inherited: bool) -> Result<Listener, BindError> {
        let listener = bound.and_then(|socket| {
            let mut bind = bind.clone();
            match &socket {
                Bound::Tcp(listener) => bind.address = BindAddress::Tcp(listener.local_addr()?),
                Bound::Unix(_, listener) => {
                    listener.local_addr()?;
                }
            }
            Ok(Listener { bind, socket, inherited })
        });
        listener.map_err(|why| BindError { address: bind.url(), why })
    }

    /// The address as one would type it: `http://127.0.0.1:3000`, `unix:/path`, `fastcgi://127.0.0.1:9000`.
    pub fn address(&self) -> String {
        self.bind.url()
    }

    /// Whether another server has bound it.
    pub fn is_inherited(&self) -> bool {
        self.inherited
    }

    /// The same socket for another server: both accept from one backlog.
    ///
    /// # Errors
    /// There are no file descriptors left.
    pub fn share(&self) -> io::Result<OwnedFd> {
        match &self.socket {
            Bound::Tcp(listener) => listener.as_fd().try_clone_to_owned(),
            Bound::Unix(_, listener) => listener.as_fd().try_clone_to_owned(),
        }
    }

    /// The socket alone, for another process, and its path.
    pub fn into_parts(self) -> (OwnedFd, Option<SocketPath>) {
        match self.socket {
            Bound::Tcp(listener) => (listener.into(), None),
            Bound::Unix(path, listener) => (listener.into(), Some(path)),
        }
    }

    /// The TCP port.
    pub fn port(&self) -> Option<u16> {
        self.bind.tcp_address().map(|address| address.port())
    }

    /// The TCP port, if it is for HTTPS.
    pub(crate) fn https_port(&self) -> Option<u16> {
        self.port().filter(|_| self.bind.protocol == BindProtocol::Https)
    }

    /// The same socket, to accept from on this thread's runtime.
    pub(crate) fn open(self) -> io::Result<Acceptor> {
        let (address, inherited, protocol) = (self.address(), self.inherited, self.bind.protocol);
        let socket = match self.socket {
            Bound::Tcp(listener) => {
                // Answers are written whole; waiting to fill a segment would only delay them. Accepted sockets inherit it.
                SockRef::from(&listener).set_tcp_nodelay(true)?;
                let local = listener.local_addr()?;
                Accepting::Tcp(tokio::net::TcpListener::from_std(listener)?, local)
            }
            Bound::Unix(path, listener) => {
                path.stays.set(false);
                Accepting::Unix(path, tokio::net::UnixListener::from_std(listener)?)
            }
        };
        Ok(Acceptor { address, inherited, protocol, socket })
    }
}

/// The path of a Unix socket. It is removed before the last acceptor ends, but only if it still is that socket's.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// The socket's file; none where it was inherited, and is not there to be held.
    file: Option<Box<(Place, Found)>>,
    /// Another server accepts on it.
    stays: Cell<bool>,
}

impl SocketPath {
    /// Of a socket that another server has bound, which looks after the path until this one accepts.
    pub fn inherited(path: &Path) -> SocketPath {
        let find = || {
            let place = Place::open(path).ok()?;
            let found = place.find().ok()??;
            found.is_socket().then(|| Box::new((place, found)))
        };
        SocketPath { path: path.into(), file: find(), stays: Cell::new(true) }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another server looks after it from here on, or this one does.
    pub fn stays(&self, stays: bool) {
        self.stays.set(stays);
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let Some((place, file)) = self.file.as_deref().filter(|_| !self.stays.get()) else { return };
        if let Err(error) = place.remove(file) {
            warn!(
                name: "socket_not_removed",
                path = %self.path.display(), %error, "cannot remove the socket's file; the next start replaces it"
            );
        }
    }
}

/// A listening socket on the runtime.
#[derive(Debug)]
pub(crate) struct Acceptor {
    /// As [`Listener::address`].
    pub(crate) address: String,
    /// Another server has bound it.
    pub(crate) inherited: bool,
    /// What its clients speak.
    pub(crate) protocol: BindProtocol,
    socket: Accepting,
}

#[derive(Debug)]
enum Accepting {
    Tcp(tokio::net::TcpListener, SocketAddr),
    /// In this order: once the socket is closed, the path may be another server's.
    Unix(SocketPath, tokio::net::UnixListener),
}

impl Acceptor {
    /// Another server accepts here: neither what is in the backlog nor the path is ours to deal with.
    pub(crate) fn leave_to_another(&self) {
        if let Accepting::Unix(path, _) = &self.socket {
            path.stays.set(true);
        }
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match &self.socket {
            Accepting::Tcp(listener, local) => {
                let (stream, remote) = listener.accept().await?;
                // Where it listens on all addresses, this one is the client's choice.
                let local = if local.ip().is_unspecified() { stream.local_addr()? } else { *local };
                let peer = Peer {
                    remote_addr: remote.ip().to_canonical().to_string(),
                    server_name: as_host(local.ip()),
                    server_port: local.port(),
                    is_tls: false,
                    is_reported: false,
                    is_plain_http_on_tls_port: false,
                    proof: None,
                };
                Ok((Stream::Tcp(stream), peer))
            }
            Accepting::Unix(_, listener) => {
                let (stream, _) = listener.accept().await?;
                let peer = Peer {
                    remote_addr: "127.0.0.1".into(),
                    server_name: "localhost".into(),
                    server_port: 80,
                    is_tls: false,
                    is_reported: false,
                    is_plain_http_on_tls_port: false,
                    proof: None,
                };
                Ok((Stream::Unix(stream), peer))
            }
        }
    }
}

/// An address as it stands in a URL.
pub(crate) fn as_host(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_are_not_delayed_to_fill_a_segment() {
        let acceptor = bind(&Bind::tcp("127.0.0.1:0".parse().unwrap())).unwrap().open().unwrap();
        let port = acceptor.address.rsplit(':').next().unwrap().parse::<u16>().unwrap();
        let _client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (Stream::Tcp(stream), _) = acceptor.accept().await.unwrap() else { panic!("not TCP") };
        assert!(stream.nodelay().unwrap());
    }
}
