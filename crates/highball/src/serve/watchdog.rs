//! Signs of life for systemd (`WatchdogSec=`): it restarts a server without them.

use crate::root::at_root;
use crate::status::reports;
use highball_link::FrontCommand;
use highball_spawner::ServiceState;
use highball_supervisor::Launcher;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{interval, timeout, MissedTickBehavior};
use tracing::warn;

/// Signs of life in the time within which systemd expects one.
const SIGNS: u32 = 3;

/// Within which time systemd expects a sign of life, by the environment of the process with this number.
fn watchdog_time(pid: i32) -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_for_us =
        std::env::var_os("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == u64::try_from(pid).ok();
    let time = Duration::from_micros(number("WATCHDOG_USEC").filter(|_| is_for_us)?);
    Some(time).filter(|time| !time.is_zero())
}

/// Notifies systemd that the event loops of front and supervisor run, as long as they do, if it wants to know. The second is
/// the loop that this runs on. Once there is no front, another process serves, and this one stays as its PID proxy.
pub(super) async fn keep_alive(front: mpsc::WeakSender<FrontCommand>, launcher: Launcher) {
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
            warn!(
                name: "event_loop_stuck",
                "the server's event loop does not respond: systemd gets no notification, and will restart the service"
            );
        }
    }
}
