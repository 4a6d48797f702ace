//! What the workers of an application take at the moment: what the front reports of requests, with the processor time that the
//! kernel counts. Reading that waits for no process. What comes of it is the core's to decide ([`crate::core::sizing`]).

use super::Supervisor;
use crate::core::rolling::ROLLED_PART;
use crate::core::sizing::{Load, Room};
use crate::core::worker::WorkerState;
use crate::core::{AppEvent, Event};
use crate::shell::event::{Discovery, SeenLoad};
use highball_config::AppId;
use highball_link::ReportedLoad;
use highball_proc::process_figures;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;

/// Processor times that were read sooner after the ones before cannot be distinguished well enough.
const LEAST_TIME: Duration = Duration::from_millis(50);
/// A pool with at least this number of workers may replace several at a time.
const LARGE_POOL: u16 = 2 * ROLLED_PART;

/// What was read last.
#[derive(Debug, Default)]
pub(super) struct LoadProbe {
    /// By worker, in milliseconds.
    cpu_ms: BTreeMap<u32, u64>,
    read_at: Option<Instant>,
    /// Processors that they used, on average.
    cpus: f64,
}

impl LoadProbe {
    /// Processors that the workers have used since they were looked at last. A worker that was not there then does not count:
    /// it has taken some to start.
    fn cpus(&mut self, seen: &SeenLoad) -> f64 {
        let elapsed = self.read_at.map(|at| seen.at.saturating_duration_since(at));
        if elapsed.is_some_and(|elapsed| elapsed < LEAST_TIME) {
            return self.cpus;
        }
        let used = seen.cpu_ms.iter().filter_map(|(worker, now)| {
            let before = self.cpu_ms.get(worker)?;
            Some(now.saturating_sub(*before))
        });
        let used_ms: u64 = used.sum();
        self.cpus = elapsed.map_or(0.0, |elapsed| used_ms as f64 / elapsed.as_millis() as f64);
        (self.cpu_ms, self.read_at) = (seen.cpu_ms.clone(), Some(seen.at));
        self.cpus
    }
}

impl Supervisor {
    /// The front has reported the load of an application.
    pub(super) fn load_reported(&mut self, id: AppId, reported: ReportedLoad) {
        let (Some(app), Some(core)) = (self.apps.get(&id), self.core.apps.get(&id)) else { return };
        let serving = core.staff.workers().which(|worker| worker.state == WorkerState::Serving);
        let pids: Vec<(u32, i32)> =
            serving.into_iter().filter_map(|worker| Some((worker, app.pid_of_worker(worker)?))).collect();
        let inbox = self.inbox.of_app(id);
        tokio::spawn(async move {
            let read = |(worker, pid): (u32, i32)| Some((worker, process_figures(pid).ok()?.cpu_ms));
            let cpu_ms = spawn_blocking(move || pids.into_iter().filter_map(read).collect());
            let cpu_ms = cpu_ms.await.unwrap_or_default();
            inbox.put(Discovery::Load(SeenLoad { reported, cpu_ms, at: Instant::now() })).await;
        });
    }

    pub(super) fn load_seen(&mut self, id: AppId, seen: &SeenLoad) {
        let room = self.room(id);
        let Some(app) = self.apps.get_mut(&id) else { return };
        let ReportedLoad { elapsed, busy, queue, waited } = seen.reported;
        let load = Load { elapsed, busy, queue, waited, cpus: app.load.cpus(seen), room };
        self.happened.push_back(Event::OfApp(id, AppEvent::Load(load)));
    }

    /// The memory for more workers of an application.
    fn room(&self, id: AppId) -> Option<Room> {
        self.memory.room(self.apps.get(&id)?, &self.wanted_workers())
    }

    /// The memory that an application can still get.
    pub(super) fn free_memory(&self, id: AppId) -> Option<u64> {
        self.memory.free(self.apps.get(&id)?, &self.wanted_workers())
    }

    fn wanted_workers(&self) -> Vec<(AppId, usize)> {
        let wanted = self.core.apps.iter().map(|(id, core)| {
            let wanted = usize::from(core.staff.wanted()).max(core.staff.workers().counting());
            (*id, if core.can_answer() { wanted } else { 0 })
        });
        wanted.collect()
    }

    /// Memory was looked at: large pools get to know what is left, for rolling restarts.
    pub(super) fn tell_room(&mut self) {
        let large = self.core.apps.iter().filter(|(_, core)| core.staff.wanted() >= LARGE_POOL);
        for id in large.map(|(id, _)| *id).collect::<Vec<AppId>>() {
            let event = self.room(id).map(|room| Event::OfApp(id, AppEvent::MemoryRoom(room)));
            self.happened.extend(event);
        }
    }
}
