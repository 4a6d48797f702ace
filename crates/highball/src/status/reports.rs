//! What front and supervisor report about themselves, and one report of both. Their event loops answer.

use highball_link::{
    AppProcesses, AppReport, AppRequests, Diagnosis, FrontCommand, FrontReport, ServerReport,
    SupervisorReport, WorkerProcess, WorkerReport, WorkerRequests,
};
use highball_supervisor::Order;
use highball_text::{cut, LONGEST};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The front's report; `None`: it has ended. It is not kept from ending meanwhile.
pub(crate) async fn of_front(front: mpsc::Sender<FrontCommand>) -> Option<FrontReport> {
    let (to, report) = oneshot::channel();
    front.send(FrontCommand::Report(to)).await.ok()?;
    drop(front);
    report.await.ok()
}

/// The same, for the supervisor.
pub(crate) async fn of_supervisor(supervisor: mpsc::Sender<Order>) -> Option<SupervisorReport> {
    let (to, report) = oneshot::channel();
    supervisor.send(Order::Report(to)).await.ok()?;
    drop(supervisor);
    report.await.ok()
}

/// The phase of an application: its processes', unless these serve and their workers take no requests, as the front
/// reports.
pub(crate) fn phase<'a>(
    processes: &'a AppProcesses,
    requests: Option<&AppRequests>,
    stuck_after: Option<Duration>,
) -> &'a str {
    let of_front = requests.map(|requests| requests.state(stuck_after).0);
    match (processes.phase.as_str(), of_front) {
        ("serving" | "booting", Some(state @ ("stuck" | "crashing"))) => state,
        (phase, _) => phase,
    }
}

/// A worker, with what the front reports about it, if it knows the worker at all. Its state is `stuck` if it begins no requests,
/// as the front reports.
pub(crate) fn worker(process: &WorkerProcess, requests: &[WorkerRequests]) -> WorkerReport {
    let requests =
        requests.iter().find(|requests| requests.worker == process.worker).cloned().unwrap_or_default();
    let mut process = process.clone();
    if process.state == "serving" && requests.is_stuck {
        process.state = "stuck".into();
    }
    if requests.threads > 0 {
        process.threads = u16::try_from(requests.threads).unwrap_or(u16::MAX);
    }
    WorkerReport { process, requests }
}

/// Shortens what applications say: all of them share one answer.
pub(crate) fn shorten(report: &mut ServerReport) {
    report.processes.upgrade.iter_mut().filter_map(|upgrade| upgrade.failure.as_mut()).for_each(shorten_text);
    for AppReport { processes, .. } in &mut report.apps {
        let AppProcesses { no_refork, last_failure, restarts, refork, diagnosis, .. } = processes;
        let restarts = restarts.iter_mut().map(|restart| &mut restart.failure);
        let reforks = refork.iter_mut().map(|refork| &mut refork.failure);
        [no_refork, last_failure].into_iter().chain(restarts).chain(reforks).flatten().for_each(shorten_text);
        if let Some(Diagnosis { error, causes, .. }) = diagnosis {
            std::iter::once(error).chain(causes).for_each(|error| shorten_text(&mut error.message));
        }
    }
}

fn shorten_text(text: &mut String) {
    let short = cut(text, LONGEST).into_owned();
    *text = short;
}
