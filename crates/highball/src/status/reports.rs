//! What the front and the supervisor report about themselves. Their event loops answer. What both know of an application is
//! put together here.

use highball_front::{AppLoad, Command};
use highball_supervisor::{AppReport, Order, WorkerReport};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The front's report; `None`: it has ended. It is not kept from ending meanwhile.
pub(crate) async fn of_front(front: mpsc::Sender<Command>) -> Option<highball_front::Report> {
    let (to, report) = oneshot::channel();
    front.send(Command::Report(to)).await.ok()?;
    drop(front);
    report.await.ok()
}

/// The same, for the supervisor.
pub(crate) async fn of_supervisor(supervisor: mpsc::Sender<Order>) -> Option<highball_supervisor::Report> {
    let (to, report) = oneshot::channel();
    supervisor.send(Order::Report(to)).await.ok()?;
    drop(supervisor);
    report.await.ok()
}

/// The phase of an application: that of its processes, unless these serve and their workers take no requests, as the front says.
pub(crate) fn phase(
    report: &AppReport,
    load: Option<&AppLoad>,
    stuck_after: Option<Duration>,
) -> &'static str {
    let of_front = load.map(|load| load.state(stuck_after).0);
    match (report.phase, of_front) {
        ("serving" | "booting", Some(state @ ("stuck" | "crashing"))) => state,
        (phase, _) => phase,
    }
}

/// The state of a worker, in a word; `is_stuck`: it begins no requests, as the front says.
pub(crate) fn worker_state(worker: &WorkerReport, is_stuck: bool) -> &'static str {
    match worker.state {
        "serving" if is_stuck => "stuck",
        state => state,
    }
}
