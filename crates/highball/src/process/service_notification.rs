//! Notifies systemd (`sd_notify(3)`), if it has set `NOTIFY_SOCKET`: that the server serves, reloads or stops, or lives.

use highball_spawner::ServiceState;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{sendto, socket_with, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::time::{clock_gettime, ClockId};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// How long a change of state waits for a service manager that does not read. Nothing else goes on meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// What waits for so long.
const PATIENTLY: SendFlags = SendFlags::empty();

/// The notification socket.
fn address() -> Option<OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty())
}

/// Notifies it. After a hot restart the first process stays its main process, as the PID proxy: systemd waits for the end
/// of no main process that it has not started, and would kill the successor when the service stops.
///
/// # Errors
/// systemd does not read, or is not there.
pub(crate) fn notify(state: ServiceState) -> io::Result<()> {
    match state {
        ServiceState::Ready => send("READY=1\nSTATUS=Serving", PATIENTLY),
        ServiceState::HandedOver(_) => {
            send("STATUS=Serving, by the process of the last hot restart", PATIENTLY)
        }
        // It does not wait: where systemd has many messages to read, it knows that the server lives when it has read them.
        ServiceState::Alive => send("WATCHDOG=1", SendFlags::DONTWAIT),
        ServiceState::Reloading => {
            let now = clock_gettime(ClockId::Monotonic);
            let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
            let state = format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=Reloading the configuration");
            send(&state, PATIENTLY)
        }
        ServiceState::Stopping => {
            send("STOPPING=1\nSTATUS=Stopping; requests in flight are finished", PATIENTLY)
        }
    }
}

/// Sends variables as `NAME=value`, one a line.
fn send(state: &str, how: SendFlags) -> io::Result<()> {
    let Some(address) = address() else { return Ok(()) };
    match send_to(&address, state, how) {
        Err(Errno::AGAIN) if how.contains(SendFlags::DONTWAIT) => Ok(()),
        Err(error) => {
            let error = io::Error::from(error);
            Err(io::Error::new(
                error.kind(),
                format!("{error} (NOTIFY_SOCKET is {})", address.to_string_lossy()),
            ))
        }
        Ok(()) => Ok(()),
    }
}

fn send_to(address: &OsStr, state: &str, how: SendFlags) -> rustix::io::Result<()> {
    let name = address.as_bytes();
    let address = match name {
        [b'@', rest @ ..] => SocketAddrUnix::new_abstract_name(rest)?,
        _ => SocketAddrUnix::new(name)?,
    };
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    sendto(&socket, state.as_bytes(), how | SendFlags::NOSIGNAL, &address).map(drop)
}
