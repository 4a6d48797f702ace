//! Notifies systemd (`sd_notify(3)`), if it has set `NOTIFY_SOCKET`: that the server serves, reloads or stops, or lives.

use highball_spawner::ServiceState;
use rustix::net::{sendto, socket_with, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::time::{clock_gettime, ClockId};
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
        ServiceState::Ready => send("READY=1\nSTATUS=Serving"),
        ServiceState::HandedOver(_) => send("STATUS=Serving, by the process of the last hot restart"),
        ServiceState::Alive => send("WATCHDOG=1"),
        ServiceState::Reloading => {
            let now = clock_gettime(ClockId::Monotonic);
            let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
            send(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=Reloading the configuration"));
        }
        ServiceState::Stopping => send("STOPPING=1\nSTATUS=Stopping; requests in flight are finished"),
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
        warn!(
            name: "systemd_not_notified", %error, "cannot notify systemd: NOTIFY_SOCKET is {}", address.to_string_lossy()
        );
    }
}
