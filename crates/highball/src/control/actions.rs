//! What operators do with a running server, from `highball top` and from the dashboard. (`highball restart` and the like
//! ask other questions, and wait for the results.)

use crate::status::reports;
use highball_config::AppId;
use highball_link::AppProcesses;
use highball_supervisor::{AppOrder, Order};
use highball_text::counted;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// An order for an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum AppAction {
    /// Load new code.
    Restart,
    /// Fork the workers again, from a warm one.
    Refork,
    /// One worker more.
    MoreWorkers,
    /// One worker fewer.
    FewerWorkers,
    /// Let another worker take the place of this one.
    ReplaceWorker { worker: u32 },
}

impl AppAction {
    /// Does it: what was begun, in words, or why not. `None`: the run is ending.
    pub(crate) async fn perform(
        self,
        app: AppId,
        supervisor: &mpsc::Sender<Order>,
    ) -> Option<Result<String, String>> {
        let report = reports::of_supervisor(supervisor.clone()).await?;
        let Some(report) = report.apps.iter().find(|report| report.id == app) else {
            return Some(Err("there is no such application any more".into()));
        };
        match self {
            AppAction::Restart => {
                let begun = ask(app, supervisor, AppOrder::Restart).await?;
                Some(begun.map(|generation| format!("the restart to generation {generation} has begun")))
            }
            AppAction::Refork => {
                let begun = ask(app, supervisor, AppOrder::Refork).await?;
                Some(begun.map(|number| format!("refork {number} has begun")))
            }
            AppAction::MoreWorkers => change_workers(1, report, supervisor).await,
            AppAction::FewerWorkers => change_workers(-1, report, supervisor).await,
            AppAction::ReplaceWorker { worker } => replace_worker(worker, report, supervisor).await,
        }
    }
}

async fn ask(
    app: AppId,
    supervisor: &mpsc::Sender<Order>,
    order: impl FnOnce(oneshot::Sender<Result<u32, String>>) -> AppOrder,
) -> Option<Result<u32, String>> {
    let (to, answer) = oneshot::channel();
    supervisor.send(Order::ToApp(app, order(to))).await.ok()?;
    answer.await.ok()
}

async fn change_workers(
    more: i32,
    report: &AppProcesses,
    supervisor: &mpsc::Sender<Order>,
) -> Option<Result<String, String>> {
    if report.mold.is_none() && report.workers.is_empty() {
        return Some(Err(format!("the application has no workers; it is {}", report.phase)));
    }
    let wanted = i32::from(report.workers_wanted) + more;
    if wanted < 1 {
        return Some(Err("this is the last worker; there is always one".into()));
    }
    supervisor.send(Order::ToApp(report.id, AppOrder::MoreWorkers(more))).await.ok()?;
    Some(Ok(format!("{} from now on", counted(wanted.unsigned_abs().into(), "worker"))))
}

async fn replace_worker(
    worker: u32,
    report: &AppProcesses,
    supervisor: &mpsc::Sender<Order>,
) -> Option<Result<String, String>> {
    let Some(found) = report.workers.iter().find(|one| one.worker == worker) else {
        return Some(Err(format!("worker {worker} has ended")));
    };
    if found.state != "serving" {
        return Some(Err(format!("worker {worker} is {} already", found.state)));
    }
    let order = AppOrder::ReplaceWorker { worker };
    supervisor.send(Order::ToApp(report.id, order)).await.ok()?;
    Some(Ok(format!("worker {worker} is replaced: another one starts first, and it ends with its requests")))
}
