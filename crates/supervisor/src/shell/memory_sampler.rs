//! Looks at the memory of all processes, aside from the loop; and at whether they are stopped, which is in the same file. What comes of it is the core's to decide
//! ([`crate::core::memory`]).
//!
//! The kernel keeps the quick numbers ready, and reading them waits for no process. The exact ones wait while the process
//! changes its mappings, which an application can draw out: so applications do not wait for each other, and there is a time limit. If
//! there is no exact number then, the quick one counts, which is never too small.

use super::app::AppSupervisor;
use super::Supervisor;
use crate::core::app::App as Core;
use crate::core::memory::{MachineNow, MemoryWatch, Reading, Verdict, Watched};
use crate::core::replacement::ReplacementCause;
use crate::core::sizing::Room;
use crate::core::worker::WorkerState;
use crate::core::{AppEvent, Event, Process};
use crate::facts::ending::Ending;
use crate::inbox::Inbox;
use crate::shell::app_files::in_turn;
use crate::shell::event::{Discovery, Measured};
use highball_cgroups::{available_memory, free_memory, oom_kills};
use highball_config::{AppId, MemoryBound, MemoryLimits, User};
use highball_link::{AppCommand, MachineMemory, MemoryReport};
use highball_proc::{family, glance, own_bytes_at_most};
use highball_tenant::own_memory;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long the exact numbers of an application may take.
const EXACT_LIMIT: Duration = Duration::from_secs(1);
/// How long the memory of the machine or container counts before it is read again.
const AVAILABLE_TIME: Duration = Duration::from_secs(10);
/// A worker that has begun to serve is looked at after this time: what it has then is what new workers have.
const FIRST_LOOK: Duration = Duration::from_millis(200);
/// The longest time from the kernel's count of a killed process until its end is reported: its memory is freed before.
const KILLED_TIME: Duration = Duration::from_secs(5);
/// The time until the next look where there is nothing to look at.
const IDLE: Duration = Duration::from_secs(5);

/// Looks at memory, and what is known of it.
#[derive(Debug)]
pub(super) struct MemorySampler {
    watch: MemoryWatch,
    due: Instant,
    /// When to look at a worker that has begun to serve.
    first_look: Option<Instant>,
    is_looking: bool,
    machine: MachineNow,
    available_due: Instant,
    /// The kernel's count of processes that it has killed for lack of memory, those included that were heard of.
    oom_kills: Option<u64>,
    /// The same as it was read last, and since when.
    oom_kills_read: (Option<u64>, Instant),
    /// The turn of each application for what may take long.
    turns: BTreeMap<AppId, Arc<Semaphore>>,
}

/// What is to be looked at of one application.
struct Wanted {
    app: AppId,
    limits: MemoryLimits,
    replacing_for: Option<Duration>,
    has_replaced: bool,
    user: Option<User>,
    turn: Arc<Semaphore>,
    processes: Vec<WantedProcess>,
}

#[derive(Debug, Clone, Copy)]
struct WantedProcess {
    process: Process,
    pid: i32,
    is_serving: bool,
    is_exact: bool,
    limit: MemoryBound,
}

impl MemorySampler {
    pub(super) fn new(now: Instant) -> MemorySampler {
        MemorySampler {
            watch: MemoryWatch::default(),
            due: now,
            first_look: None,
            is_looking: false,
            machine: MachineNow::default(),
            available_due: now,
            oom_kills: oom_kills(),
            oom_kills_read: (oom_kills(), now),
            turns: BTreeMap::new(),
        }
    }

    /// When to look next.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.is_looking).then_some(self.first_look.map_or(self.due, |at| at.min(self.due)))
    }

    /// A worker begins to serve.
    pub(super) fn note(&mut self, command: &AppCommand<()>) {
        if matches!(command, AppCommand::AddWorker(_) | AppCommand::AdmitCanary { .. }) {
            self.first_look = Some(Instant::now() + FIRST_LOOK);
        }
    }

    /// Kills that were counted some time ago were not of processes that are ours to watch.
    fn note_oom_kills(&mut self, now: Instant) {
        let (before, since) = self.oom_kills_read;
        let count = oom_kills();
        if count != before {
            self.oom_kills_read = (count, now);
        } else if since + KILLED_TIME <= now {
            self.oom_kills = count;
        }
    }

    /// How a process has ended: SIGKILL that was not sent from here is the kernel's where it has counted one more.
    pub(super) fn ending(&mut self, ending: Ending, is_ours: bool) -> Ending {
        if ending != Ending::Killed(9) || is_ours {
            return ending;
        }
        match (self.oom_kills, oom_kills()) {
            (Some(before), Some(now)) if now > before => {
                self.oom_kills = Some(before + 1);
                Ending::OutOfMemory
            }
            _ => ending,
        }
    }

    fn wanted(&mut self, id: AppId, app: &AppSupervisor, core: &Core, now: Instant) -> Wanted {
        let serves =
            |number| core.staff.get(number).is_some_and(|worker| worker.state == WorkerState::Serving);
        let workers = app
            .workers
            .keys()
            .filter_map(|number| Some((Process::Worker(*number), app.pid_of_worker(*number)?)));
        let molds = app.molds.keys().filter_map(|boot| Some((Process::Mold(*boot), app.pid_of_mold(*boot)?)));
        let companions = app.companions.iter().filter_map(|(number, companion)| {
            Some((Process::Companion(*number), companion.pid?.as_raw_pid()))
        });
        let processes = workers.chain(molds).chain(companions).map(|(process, pid)| WantedProcess {
            process,
            pid,
            is_serving: matches!(process, Process::Worker(number) if serves(number)),
            is_exact: self.watch.asks_exactly(id, process, now),
            limit: limit_of(core, process),
        });
        Wanted {
            app: id,
            limits: app.app.memory,
            replacing_for: core.staff.replacing_for_memory(core.config.boot_timeout, now),
            has_replaced: core.staff.replacements().counts().of(ReplacementCause::OverMemory) > 0,
            user: app.app.runs_as.another().cloned(),
            processes: processes.collect(),
            turn: Arc::clone(self.turns.entry(id).or_insert_with(|| Arc::new(Semaphore::new(1)))),
        }
    }

    /// What is known of an application's memory, for `highball status`.
    pub(super) fn report(&self, app: &AppSupervisor, core: &Core) -> MemoryReport {
        let available = self.machine.available.unwrap_or(u64::MAX);
        MemoryReport {
            bytes: self.watch.bytes_of_app(app.app.id),
            worker_limit_bytes: app.app.memory.worker.bytes(available),
            budget_bytes: app.app.memory.budget(available),
            problem: core.staff.replacements().too_small().map(|over| over.too_small()),
            replaced: core.staff.replacements().counts().of(ReplacementCause::OverMemory),
            oom_kills: core.trouble.oom_kills,
        }
    }

    /// The memory for more workers of an application. `wanted`: the workers of all of them.
    pub(super) fn room(&self, app: &AppSupervisor, wanted: &[(AppId, usize)]) -> Option<Room> {
        self.watch.room(app.app.id, app.app.memory, self.machine, wanted)
    }

    /// The memory that an application can still get, as far as that is known. `wanted`: as above.
    pub(super) fn free(&self, app: &AppSupervisor, wanted: &[(AppId, usize)]) -> Option<u64> {
        self.watch.free(app.app.id, app.app.memory, self.machine, wanted)
    }

    /// The memory of the machine or container.
    pub(super) fn available(&self) -> Option<u64> {
        self.machine.available
    }

    pub(super) fn bytes_of_worker(&self, app: AppId, worker: u32) -> Option<u64> {
        self.watch.bytes_of(app, Process::Worker(worker))
    }

    pub(super) fn bytes_of_companion(&self, app: AppId, number: u32) -> Option<u64> {
        self.watch.bytes_of(app, Process::Companion(number))
    }

    /// What all applications may have, and what they have.
    pub(super) fn machine(&self) -> Option<MachineMemory> {
        self.watch.machine().map(|(usable_bytes, used_bytes)| MachineMemory { usable_bytes, used_bytes })
    }
}

impl Supervisor {
    /// Begins a look, if it is time.
    pub(super) fn look_at_memory(&mut self) {
        let now = Instant::now();
        let is_due = self.memory.due().is_some_and(|due| due <= now);
        if !is_due || self.core.is_over() {
            return;
        }
        self.memory.first_look = self.memory.first_look.filter(|at| *at > now);
        let mut wanted = Vec::new();
        self.memory.turns.retain(|app, _| self.apps.contains_key(app));
        for (id, app) in &self.apps {
            let Some(core) = self.core.apps.get(id).filter(|core| core.phase.is_running()) else { continue };
            wanted.push(self.memory.wanted(*id, app, core, now));
        }
        if wanted.iter().all(|app| app.processes.is_empty()) {
            self.memory.due = now + IDLE;
            return;
        }
        let reads_available = self.memory.available_due <= now;
        if reads_available {
            self.memory.available_due = now + AVAILABLE_TIME;
        }
        self.memory.is_looking = true;
        tokio::spawn(measure(wanted, reads_available, self.inbox.clone()));
    }

    /// A look has ended.
    pub(super) fn measured(&mut self, measured: Measured) {
        let now = Instant::now();
        self.memory.is_looking = false;
        if let Some(available) = measured.available {
            self.memory.machine.available = available;
        }
        self.memory.machine.free = measured.free;
        self.memory.note_oom_kills(now);
        self.look_for_signs_of_life(&measured.apps, now);
        let memory = (self.memory.machine.available, measured.server);
        let (verdicts, next) = self.memory.watch.look(&measured.apps, memory, now);
        self.memory.due = now + next;
        for verdict in verdicts {
            let (app, event) = match verdict {
                Verdict::Replace(app, worker, over) => (app, AppEvent::OverMemory { worker, over }),
                Verdict::TooSmall(app, over) => (app, AppEvent::MemoryLimitTooSmall { over }),
                Verdict::EndCompanion { app, number, bytes, limit } => {
                    (app, AppEvent::CompanionOverLimit { number, bytes, limit })
                }
            };
            self.happened.push_back(Event::OfApp(app, event));
        }
        self.tell_room();
    }
}

/// A companion's own limit: those of workers hold for the whole application.
fn limit_of(core: &Core, process: Process) -> MemoryBound {
    let companion = match process {
        Process::Companion(number) => core.companions.configured(number),
        Process::Mold(_) | Process::Worker(_) => None,
    };
    companion.map_or(MemoryBound::None, |companion| companion.memory_limit)
}

/// Looks, and sends what was seen.
async fn measure(wanted: Vec<Wanted>, reads_available: bool, inbox: Inbox<Discovery>) {
    let quick = spawn_blocking(move || {
        let apps: Vec<_> = wanted.into_iter().map(quickly).collect();
        let server = own_bytes_at_most(std::process::id() as i32).unwrap_or(0);
        (apps, reads_available.then(available_memory), free_memory(), server)
    });
    let (apps, available, free, server) = quick.await.unwrap_or_default();
    let exact: Vec<_> =
        apps.into_iter().map(|(wanted, quick)| tokio::spawn(exactly(wanted, quick))).collect();
    let mut seen = Vec::new();
    for app in exact {
        seen.extend(app.await.ok());
    }
    let measured = Measured { apps: seen, available, free, server };
    inbox.put(Discovery::Measured(Box::new(measured))).await;
}

/// A process, with its descendants.
struct Quick {
    wanted: WantedProcess,
    family: Vec<i32>,
    at_most: u64,
    is_stopped: bool,
}

/// The quick numbers of the living processes.
fn quickly(wanted: Wanted) -> (Wanted, Vec<Quick>) {
    let quick = wanted.processes.iter().filter_map(|wanted| {
        let family = match wanted.process {
            Process::Worker(_) => family(wanted.pid),
            Process::Mold(_) => vec![wanted.pid], // what it has started becomes workers
            // Without the process that watches over it, into which its user cannot look.
            Process::Companion(_) => family(wanted.pid).split_off(1),
        };
        let own = glance(*family.first()?).ok()?;
        let others = family.iter().skip(1).filter_map(|pid| own_bytes_at_most(*pid).ok());
        let at_most = own.own_bytes_at_most + others.sum::<u64>();
        Some(Quick { wanted: *wanted, family, at_most, is_stopped: own.is_stopped })
    });
    let quick = quick.collect();
    (wanted, quick)
}

/// Adds the exact numbers that are needed.
async fn exactly(wanted: Wanted, quick: Vec<Quick>) -> Watched {
    let Wanted { app, limits, replacing_for, has_replaced, user, turn, .. } = wanted;
    let needed = quick.iter().filter(|quick| quick.wanted.is_exact);
    let needed: Vec<(Process, Vec<i32>)> =
        needed.map(|quick| (quick.wanted.process, quick.family.clone())).collect();
    let act = move || -> Vec<(Process, u64)> {
        let exact = |(process, family): (Process, Vec<i32>)| {
            Some((process, own_memory(user.as_ref(), &family).ok()?))
        };
        needed.into_iter().filter_map(exact).collect()
    };
    let is_needed = quick.iter().any(|quick| quick.wanted.is_exact);
    let exact = match is_needed {
        true => timeout(EXACT_LIMIT, in_turn(turn, act)).await.ok().flatten().unwrap_or_default(),
        false => Vec::new(),
    };
    let reading = |Quick { wanted, at_most, is_stopped, .. }: Quick| {
        let exact = exact.iter().find(|(process, _)| *process == wanted.process).map(|(_, bytes)| *bytes);
        let exact = if wanted.is_exact { exact.or(Some(at_most)) } else { None };
        let WantedProcess { process, is_serving, limit, .. } = wanted;
        Reading { process, is_serving, is_stopped, limit, at_most, exact }
    };
    Watched { app, limits, replacing_for, has_replaced, readings: quick.into_iter().map(reading).collect() }
}
