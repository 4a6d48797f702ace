//! What processes take, as the kernel counts it. Reading it takes the kernel milliseconds where a process is large, so a
//! thread does that, and for all who ask within some seconds once.

use highball_proc::{process_figures, proportional_bytes, ProcessFigures};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// How long what was read counts.
const FRESH: Duration = Duration::from_secs(5);

/// What a process takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) figures: ProcessFigures,
    /// Each page divided by the number of processes that share it; `None`, where this process may not know it.
    pub(crate) proportional_bytes: Option<u64>,
}

/// What was read last, of each process.
#[derive(Debug, Default)]
pub(crate) struct Processes(Mutex<Option<(Instant, BTreeMap<i32, Taken>)>>);

impl Processes {
    /// What these processes take, without ended ones.
    pub(crate) async fn of(&self, pids: Vec<i32>) -> BTreeMap<i32, Taken> {
        let mut last = self.0.lock().await;
        if let Some((at, taken)) = &*last {
            if at.elapsed() < FRESH && pids.iter().all(|pid| taken.contains_key(pid)) {
                return taken.clone();
            }
        }
        let read = |pid: i32| {
            let figures = process_figures(pid).ok()?;
            Some((pid, Taken { figures, proportional_bytes: proportional_bytes(pid).ok() }))
        };
        let taken = spawn_blocking(move || pids.into_iter().filter_map(read).collect::<BTreeMap<_, _>>());
        let taken = taken.await.unwrap_or_default();
        *last = Some((Instant::now(), taken.clone()));
        taken
    }
}
