//! Stands in for the front until it is there: listens, and has nothing in flight.

use highball_config::{Bind, Settings};
use highball_ring::FrontRing;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

pub(crate) enum Command {
    AppBooted { public: Option<PathBuf>, headers: Vec<(String, String)> },
    AddWorker { worker: u32, threads: u16, ring: FrontRing },
    RetireWorker { worker: u32 },
    RemoveWorker { worker: u32 },
    Drain,
    Report(oneshot::Sender<Report>),
}

#[allow(dead_code)]
pub(crate) enum Event {
    WorkerBroken { worker: u32, why: String },
    WorkerIdle { worker: u32 },
    Drained,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) workers: Vec<WorkerReport>,
    pub(crate) queue: usize,
    pub(crate) connections: usize,
    pub(crate) hijacked: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerReport {
    pub(crate) worker: u32,
    pub(crate) in_flight: usize,
    pub(crate) served: u64,
}

pub(crate) struct Listener(pub(crate) String);

pub(crate) fn bind(bind: &Bind) -> std::io::Result<Listener> {
    Ok(Listener(match bind {
        Bind::Tcp(address) => format!("http://{address}"),
        Bind::Unix(path) => format!("unix:{}", path.display()),
    }))
}

pub(crate) async fn run(
    _settings: Arc<Settings>,
    _listeners: Vec<Listener>,
    mut commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<Event>,
) {
    let mut rings = Vec::new();
    while let Some(command) = commands.recv().await {
        match command {
            Command::AppBooted { public, headers } => drop((public, headers)),
            Command::AddWorker { worker, threads, ring } => rings.push((worker, threads, ring)),
            Command::RetireWorker { worker } => drop(events.send(Event::WorkerIdle { worker }).await),
            Command::RemoveWorker { worker } => rings.retain(|ring| ring.0 != worker),
            Command::Drain => drop(events.send(Event::Drained).await),
            Command::Report(to) => drop(to.send(Report::default())),
        }
    }
}
