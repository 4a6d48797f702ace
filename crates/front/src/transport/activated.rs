//! Listening sockets that systemd has opened for this server (socket activation). [`super::listener::bind`] takes one of these where
//! it is for the same address, and opens one otherwise.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use highball_config::{Bind, BindAddress};
use socket2::{SockRef, Type};

static ACTIVATED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

fn activated() -> MutexGuard<'static, Vec<OwnedFd>> {
    ACTIVATED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many sockets systemd has opened for this process.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Keeps the sockets for the addresses that will be listened on.
pub fn activate(sockets: Vec<OwnedFd>) {
    COUNT.store(sockets.len(), Ordering::Relaxed);
    *activated() = sockets;
}

/// How many sockets systemd has opened for this process, whatever has become of them.
pub fn activated_count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// The socket for this address, if systemd has opened it. It does not block.
pub(super) fn take(address: &BindAddress) -> Option<OwnedFd> {
    let mut sockets = activated();
    let index = sockets.iter().position(|socket| is_for(socket, address))?;
    let socket = sockets.swap_remove(index);
    SockRef::from(&socket).set_nonblocking(true).ok()?;
    Some(socket)
}

/// Closes the sockets for other addresses than these. Returns a warning of each: its clients would wait in vain.
pub fn close_other_activated<'a>(binds: impl Iterator<Item = &'a Bind> + Clone) -> Vec<String> {
    let mut sockets = activated();
    let is_used = |socket: &OwnedFd| binds.clone().any(|bind| is_for(socket, &bind.address));
    let (used, others): (Vec<_>, Vec<_>) = std::mem::take(&mut *sockets).into_iter().partition(is_used);
    *sockets = used;
    let warning = |socket| {
        let address = name(socket);
        format!("systemd has passed a socket for {address}, which is not used: name the same address with `bind` or `admin`")
    };
    others.iter().map(warning).collect()
}

fn is_for(socket: &OwnedFd, address: &BindAddress) -> bool {
    let socket = SockRef::from(socket);
    let is_listener =
        socket.is_listener().unwrap_or(false) && socket.r#type().is_ok_and(|kind| kind == Type::STREAM);
    let Some(local) = socket.local_addr().ok().filter(|_| is_listener) else { return false };
    match address {
        BindAddress::Tcp(address) => local.as_socket() == Some(*address),
        BindAddress::Unix(path) => local.as_pathname() == Some(path.as_path()),
    }
}

fn name(socket: &OwnedFd) -> String {
    let local = SockRef::from(socket).local_addr().ok();
    let tcp = || Some(local.as_ref()?.as_socket()?.to_string());
    let unix = || Some(format!("unix:{}", local.as_ref()?.as_pathname()?.display()));
    tcp().or_else(unix).unwrap_or_else(|| "something else than a stream".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn a_socket_is_taken_once_and_only_for_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addresses = [listener.local_addr().unwrap(), udp.local_addr().unwrap()].map(BindAddress::Tcp);
        activate(vec![listener.into(), udp.into()]);
        assert!(take(&BindAddress::Tcp("127.0.0.1:1".parse().unwrap())).is_none());
        assert!(take(&addresses[1]).is_none(), "it is no listener");
        assert!(take(&addresses[0]).is_some());
        assert!(take(&addresses[0]).is_none());
        assert!(close_other_activated([].iter())[0].contains("127.0.0.1:"), "the one for UDP");
        assert!(close_other_activated([].iter()).is_empty());
    }
}
