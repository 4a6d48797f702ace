//! Notifies systemd (`sd_notify(3)`), if it has set `NOTIFY_SOCKET`: that the server serves, reloads or stops, and, for
//! `WatchdogSec=`, that its event loops run.

use crate::root::at_root;
use crate::status::reports;
use highball_front::Command;
use highball_spawner::ServiceState;
use highball_supervisor::Launcher;
use rustix::net::{sendto, socket_with, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::time::{clock_gettime, ClockId};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{interval, timeout, MissedTickBehavior};
use tracing::warn;

/// Signs of life in the time within which systemd expects one.
const SIGNS: u32 = 3;

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

/// Within which time systemd expects a sign of life, by the environment of the process with this number.
fn watchdog_time(pid: i32) -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_for_us =
        std::env::var_os("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == u64::try_from(pid).ok();
    let time = Duration::from_micros(number("WATCHDOG_USEC").filter(|_| is_for_us)?);
    Some(time).filter(|time| !time.is_zero())
}

/// Notifies systemd that the event loops of front and supervisor run, as long as they do, if it wants to know. The second is
/// the one that this runs on. Once there is no front, another process serves, for which this one stays as its PID proxy.
pub(crate) async fn keep_alive(front: mpsc::WeakSender<Command>, launcher: Launcher) {
    let Some(time) = watchdog_time(launcher.pid().as_raw_pid()) else { return };
    let mut ticks = interval(time / SIGNS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let answers = match front.upgrade() {
            None => true,
            Some(front) => {
                timeout(time / SIGNS, reports::of_front(front)).await.is_ok_and(|report| report.is_some())
            }
        };
        if answers {
            at_root::tell(ServiceState::Alive, &launcher);
        } else {
            warn!("the event loop of the server does not answer: systemd gets no sign of life, and will restart it");
        }
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
        notify(ServiceState::Ready);
        notify(ServiceState::Reloading);
        std::env::remove_var("NOTIFY_SOCKET");
        notify(ServiceState::Ready); // without a receiver
        let mut received = [0; 128];
        let length = systemd.recv(&mut received).unwrap();
        assert_eq!(&received[..length], b"READY=1\nSTATUS=Serving");
        let length = systemd.recv(&mut received).unwrap();
        let text = std::str::from_utf8(&received[..length]).unwrap();
        assert!(text.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{text}");
    }
}
