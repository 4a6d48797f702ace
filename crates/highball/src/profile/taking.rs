//! In the server: the workers of an application make profiles, side by side, and these become one.

use super::merging::{read_result, Merger};
use crate::control::messages::PROFILE_SLACK;
use crate::status::profile_report::ProfileReport;
use highball_config::AppId;
use highball_supervisor::{Order, ProfileOrder};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// Takes a profile; or says why there is none. `None`: the run is ending. Results are added one by one, as each may be large.
///
/// `worker`: this one alone; `None`: all of the application.
pub(crate) async fn take(
    supervisor: &mpsc::Sender<Order>,
    app: AppId,
    worker: Option<u32>,
    order: ProfileOrder,
) -> Option<Result<ProfileReport, String>> {
    let began = Instant::now();
    let (to, asked) = oneshot::channel();
    supervisor.send(Order::Profile { app, worker, order, to }).await.ok()?;
    let asked = match asked.await.ok()? {
        Ok(asked) => asked,
        Err(why) => return Some(Err(why)),
    };
    let time = Duration::from_millis(order.milliseconds) + PROFILE_SLACK;
    let mut merger = Merger::new(order.mode);
    for asked in asked {
        let worker = asked.worker;
        let result = asked.result(began, time).await;
        let added = spawn_blocking(move || {
            merger.add(worker, result.and_then(|file| read_result(&file)));
            merger
        });
        merger = added.await.ok()?;
    }
    Some(merger.finish())
}
