//! What the front and the supervisor report about themselves. Their event loops answer.

use highball_front::Command;
use highball_supervisor::Order;
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
