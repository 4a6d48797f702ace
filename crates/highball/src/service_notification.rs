//! Notifies systemd (`sd_notify(3)`), if it has set `NOTIFY_SOCKET`.

use highball_spawner::ServiceState;
use rustix::net::{sendto, socket_with, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use tracing::warn;

/// The notification socket.
fn address() -> Option<OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty())
}

/// Whether systemd expects notifications. Then it also knows which process serves, and no process has to keep the old
/// pid.
pub(crate) fn is_wanted() -> bool {
    address().is_some()
}

/// Notifies it.
pub(crate) fn notify(state: ServiceState) {
    match state {
        ServiceState::Ready => send("READY=1"),
        ServiceState::HandedOver(pid) => send(&format!("MAINPID={}\nREADY=1", pid.as_raw_pid())),
    }
}

/// Sends variables as `NAME=value`, one a line.
fn send(state: &str) {
    let Some(address) = address() else { return };
    let sent = || {
        let name = address.as_bytes();
        let address = match name {
            [b'@', rest @ ..] => SocketAddrUnix::new_abstract_name(rest)?,
            _ => SocketAddrUnix::new(name)?,
        };
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        sendto(&socket, state.as_bytes(), SendFlags::NOSIGNAL, &address)
    };
    if let Err(error) = sent() {
        warn!(%error, "cannot notify systemd: NOTIFY_SOCKET is {}", address.to_string_lossy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn it_is_one_datagram() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        std::env::set_var("NOTIFY_SOCKET", &path);
        assert!(is_wanted());
        notify(ServiceState::HandedOver(rustix::process::Pid::from_raw(42).unwrap()));
        std::env::remove_var("NOTIFY_SOCKET");
        notify(ServiceState::Ready); // without a receiver
        let mut received = [0; 64];
        let length = systemd.recv(&mut received).unwrap();
        assert_eq!(&received[..length], b"MAINPID=42\nREADY=1");
    }
}
