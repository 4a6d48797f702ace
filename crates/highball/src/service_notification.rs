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

/// Notifies it. After a hot restart the first process stays its main process, as the PID proxy: systemd waits for the end
/// of no main process that it has not started, and would kill the successor when the service stops.
pub(crate) fn notify(state: ServiceState) {
    match state {
        ServiceState::Ready => send("READY=1"),
        ServiceState::HandedOver(_) => {}
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
        notify(ServiceState::HandedOver(rustix::process::Pid::from_raw(42).unwrap()));
        notify(ServiceState::Ready);
        std::env::remove_var("NOTIFY_SOCKET");
        notify(ServiceState::Ready); // without a receiver
        let mut received = [0; 64];
        let length = systemd.recv(&mut received).unwrap();
        assert_eq!(&received[..length], b"READY=1");
    }
}
