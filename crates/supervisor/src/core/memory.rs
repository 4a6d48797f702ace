//! Which worker has to be replaced for its memory, and when to look again: pure functions of what was measured. A look is
//! cheap and shows at most how much memory a process has; only where that would exceed a limit is the exact number asked for.

use crate::core::sizing::Room;
use crate::core::Process;
use highball_config::settings::USABLE_PERCENT;
use highball_config::{AppId, MemoryBound, MemoryLimits};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// The longest time between two looks, and the shortest.
const LONGEST: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(100);
/// The time until the next look where a limit is exceeded, and nothing can be done about it now.
const EXCEEDED: Duration = Duration::from_secs(1);
/// Growth that is expected without a warning, in bytes a second: a limit that is far away is looked at less often.
const SUDDEN_GROWTH: u64 = 256 * MIB;
/// Looks before a limit is reached, at the rate of the last look.
const LOOKS_BEFORE: u64 = 4;
/// An exact number counts for this long.
const EXACT_TIME: Duration = Duration::from_secs(30);
/// The time over which growth is recent, at least.
const RECENT: Duration = Duration::from_secs(30);
/// A worker that has grown by less is not replaced: the new one would have as much.
const LEAST_GROWTH: u64 = 8 * MIB;
/// Memory that a worker gives back is waited for so long before another application pays.
const COMING_BACK: Duration = Duration::from_secs(3);
/// What a new worker takes, until one was seen.
const NEW_WORKER: u64 = 32 * MIB;

/// What may be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// `memory_limit`.
    Worker,
    /// `memory_budget`.
    App,
    /// The part of `memory_max` that is left to the application's processes before the kernel kills one.
    Max,
    /// The memory of the machine or container, of all applications together.
    Machine,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bound::Worker => "memory_limit",
            Bound::App => "memory_budget",
            Bound::Max => "memory_max",
            Bound::Machine => "the memory of the machine or container (memory_budget = auto)",
        })
    }
}

/// A worker that makes a limit be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverMemory {
    pub(crate) bound: Bound,
    /// What the worker has.
    pub(crate) worker_bytes: u64,
    /// Whose memory is above the limit: the worker's, the application's, or all applications'.
    pub(crate) bytes: u64,
    pub(crate) limit: u64,
    /// Whether there is memory for one more worker.
    pub(crate) has_room: bool,
}

impl OverMemory {
    /// Why replacing workers does not help, and what to do.
    pub(crate) fn too_small(&self) -> String {
        let (has, limit) = (self.bytes >> 20, self.limit >> 20);
        let option = match self.bound {
            Bound::Worker => "memory_limit",
            Bound::App | Bound::Machine => "memory_budget",
            Bound::Max => "memory_max",
        };
        format!(
            "{has} MiB are in use, of {limit} MiB by {}, and new workers do not change that: the limit is too small for this \
             application, or it leaks as soon as it serves. Workers are not replaced for this again and again. Raise {option}, or \
             start fewer workers",
            self.bound
        )
    }
}

/// An application whose processes were looked at.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) app: AppId,
    pub(crate) limits: MemoryLimits,
    /// For how long one of its workers is being replaced for its memory, if one is: that is about to come back.
    pub(crate) replacing_for: Option<Duration>,
    /// One was replaced for its memory before.
    pub(crate) has_replaced: bool,
    pub(crate) readings: Vec<Reading>,
}

/// What was seen of one process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) process: Process,
    /// A worker to which the front gives requests.
    pub(crate) is_serving: bool,
    /// A signal has stopped it.
    pub(crate) is_stopped: bool,
    /// A companion's limit.
    pub(crate) limit: MemoryBound,
    /// At most this much memory is its own.
    pub(crate) at_most: u64,
    /// Exactly this much is, where that was asked for. (If it could not be found out, all of the above counts.)
    pub(crate) exact: Option<u64>,
}

/// What comes of a look.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// This worker should be replaced.
    Replace(AppId, u32, OverMemory),
    /// The limit is exceeded, and new workers would not change that.
    TooSmall(AppId, OverMemory),
    /// This companion has more memory than its limit, both in bytes.
    EndCompanion { app: AppId, number: u32, bytes: u64, limit: u64 },
}

/// What is known of one process.
#[derive(Debug, Clone, Copy)]
struct Known {
    bytes: u64,
    /// What was read last, of which `bytes` is exact or an estimate.
    at_most: u64,
    /// When it was exact.
    exact_at: Instant,
    is_exact: bool,
    is_serving: bool,
    /// What it had when it began to serve.
    at_first: Option<u64>,
    /// What it had some time ago, and when a newer number was taken.
    before: (u64, u64, Instant),
    /// Growth in bytes a second.
    rate: u64,
    seen_at: Instant,
}

impl Known {
    fn recent_growth(&self) -> u64 {
        self.bytes.saturating_sub(self.before.0)
    }
}

/// The memory of the machine or container at this moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MachineNow {
    /// All of it.
    pub(crate) available: Option<u64>,
    /// What no program uses.
    pub(crate) free: Option<u64>,
}

/// All processes that are looked at.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    known: BTreeMap<(AppId, Process), Known>,
    /// The least that a worker of each application had when it was looked at first: others may have served by then.
    at_first: BTreeMap<AppId, u64>,
    /// Applications of which the next look has to be exact.
    asks_exactly: BTreeSet<AppId>,
    /// What all applications may have together, and what they have with the server, as of the last look.
    machine: Option<(u64, u64)>,
}

impl MemoryWatch {
    /// Whether the exact number is needed at the next look.
    pub(crate) fn asks_exactly(&self, app: AppId, process: Process, now: Instant) -> bool {
        let known = self.known.get(&(app, process));
        self.asks_exactly.contains(&app) || known.is_none_or(|known| known.exact_at + EXACT_TIME <= now)
    }

    /// The memory of a process, as far as it is known.
    pub(crate) fn bytes_of(&self, app: AppId, process: Process) -> Option<u64> {
        self.known.get(&(app, process)).map(|known| known.bytes)
    }

    /// What the processes of an application have together.
    pub(crate) fn bytes_of_app(&self, app: AppId) -> u64 {
        self.of_app(app).map(|(_, known)| known.bytes).sum()
    }

    /// What all may have, and what they have.
    pub(crate) fn machine(&self) -> Option<(u64, u64)> {
        self.machine
    }

    /// The memory for more workers of an application, with these limits. `coming`: workers of each application that are
    /// wanted. `None`: none has been looked at while it served.
    pub(crate) fn room(
        &self,
        app: AppId,
        limits: MemoryLimits,
        machine: MachineNow,
        coming: &[(AppId, usize)],
    ) -> Option<Room> {
        let worker = self.worker_bytes(app)?;
        let Some(free) = self.free(app, limits, machine, coming) else { return Some(Room::UNLIMITED) };
        // One more has to fit while a worker is replaced.
        let workers = (free / worker).saturating_sub(1).min(u64::from(u16::MAX)) as u16;
        Some(Room { workers, worker_bytes: worker, free_bytes: free })
    }

    /// What an application can still get: within its budget, of what all share, and of what other programs leave. `None`: there
    /// is no limit.
    pub(crate) fn free(
        &self,
        app: AppId,
        limits: MemoryLimits,
        machine: MachineNow,
        coming: &[(AppId, usize)],
    ) -> Option<u64> {
        // What is wanted and was not looked at yet takes as much as the others.
        let promised = |(of, wanted): &(AppId, usize)| {
            let seen = self.of_app(*of).filter(|(_, known)| known.at_first.is_some()).count();
            wanted.saturating_sub(seen) as u64 * self.worker_bytes(*of).unwrap_or(NEW_WORKER)
        };
        let left = |limit: u64, used: u64, coming: &[(AppId, usize)]| {
            limit.saturating_sub(used + coming.iter().map(promised).sum::<u64>())
        };
        let of_app: Vec<_> = coming.iter().copied().filter(|(of, _)| *of == app).collect();
        let budget = limits.budget(machine.available.unwrap_or(u64::MAX));
        let of_budget = budget.map(|budget| left(budget, self.bytes_of_app(app), &of_app));
        let of_machine = self.machine.map(|(usable, used)| left(usable, used, coming));
        let of_all_programs = machine.free.map(|free| left(free, 0, coming));
        of_budget.into_iter().chain(of_machine).chain(of_all_programs).min()
    }

    /// The memory that a new worker of this application is expected to take: the average of the serving workers.
    fn worker_bytes(&self, app: AppId) -> Option<u64> {
        let serving = || self.of_app(app).filter(|(_, known)| known.is_serving && known.at_first.is_some());
        let count = serving().count() as u64;
        let mean = serving().map(|(_, known)| known.bytes).sum::<u64>().checked_div(count)?;
        let first = serving().filter_map(|(_, known)| known.at_first).max().unwrap_or(0);
        Some(mean.max(first).max(MIB))
    }

    fn of_app(&self, app: AppId) -> impl Iterator<Item = (Process, &Known)> {
        let known = self.known.iter().filter(move |((of, _), _)| *of == app);
        known.map(|((_, process), known)| (*process, known))
    }

    /// Takes note of what was seen. `available`: the memory of the machine or container; `server`: what the server has itself.
    /// Returns what comes of it, and the time until the next look.
    pub(crate) fn look(
        &mut self,
        apps: &[Watched],
        (available, server): (Option<u64>, u64),
        now: Instant,
    ) -> (Vec<Verdict>, Duration) {
        self.note(apps, now);
        let judged = Judged { watch: self, apps, available, server };
        let (exceeded, next) = (judged.exceeded(), judged.next_look());
        let is_known = |app: &AppId| self.of_app(*app).all(|(_, known)| known.is_exact);
        let are_known = exceeded.iter().all(is_known);
        let verdicts = judged.verdicts();
        self.machine = judged.usable().map(|usable| (usable, judged.total()));
        if are_known {
            self.asks_exactly.clear();
            return (verdicts, next);
        }
        // What is exceeded by an estimate is looked at exactly, at once.
        self.asks_exactly = exceeded;
        (Vec::new(), Duration::ZERO)
    }

    fn note(&mut self, apps: &[Watched], now: Instant) {
        let mut known = BTreeMap::new();
        for app in apps {
            for reading in &app.readings {
                let key = (app.app, reading.process);
                known.insert(key, noted(self.known.get(&key), reading, now));
            }
        }
        self.known = known;
        self.at_first.retain(|app, _| apps.iter().any(|watched| watched.app == *app));
        for ((app, _), known) in &self.known {
            if let Some(first) = known.at_first {
                let least = self.at_first.entry(*app).or_insert(first);
                *least = first.min(*least);
            }
        }
    }

    /// What a worker has more than a new one.
    fn growth(&self, app: AppId, known: &Known) -> u64 {
        known.bytes.saturating_sub(self.at_first.get(&app).copied().unwrap_or(known.bytes))
    }
}

/// What is known of a process after it was looked at.
fn noted(before: Option<&Known>, reading: &Reading, now: Instant) -> Known {
    let estimate = before.map(|known| (known.bytes + reading.at_most).saturating_sub(known.at_most));
    let bytes = reading.exact.unwrap_or(estimate.unwrap_or(reading.at_most).min(reading.at_most));
    let first = (reading.is_serving && reading.exact.is_some()).then_some(bytes);
    let since = before.map_or(Duration::ZERO, |known| now.saturating_duration_since(known.seen_at));
    let grown = before.map_or(0, |known| bytes.saturating_sub(known.bytes));
    let slots = match before.map(|known| known.before) {
        Some((_, newer, at)) if at + RECENT <= now => (newer, bytes, now),
        Some(slots) => slots,
        None => (bytes, bytes, now),
    };
    Known {
        bytes,
        at_most: reading.at_most,
        exact_at: if reading.exact.is_some() { now } else { before.map_or(now, |known| known.exact_at) },
        is_exact: reading.exact.is_some(),
        is_serving: reading.is_serving,
        at_first: before.and_then(|known| known.at_first).or(first),
        before: slots,
        rate: grown.saturating_mul(1000) / since.as_millis().max(50) as u64,
        seen_at: now,
    }
}

/// What is known, with the limits.
struct Judged<'a> {
    watch: &'a MemoryWatch,
    apps: &'a [Watched],
    available: Option<u64>,
    server: u64,
}

impl Judged<'_> {
    /// What all applications and the server may have together.
    fn usable(&self) -> Option<u64> {
        self.available.map(|available| available / 100 * USABLE_PERCENT)
    }

    fn total(&self) -> u64 {
        self.watch.known.values().map(|known| known.bytes).sum::<u64>() + self.server
    }

    fn worker_limit(&self, app: &Watched) -> Option<u64> {
        app.limits.worker.bytes(self.available.unwrap_or(u64::MAX))
    }

    fn budget(&self, app: &Watched) -> Option<u64> {
        app.limits.budget(self.available.unwrap_or(u64::MAX))
    }

    /// Applications that share the memory of the machine.
    fn sharing(&self) -> impl Iterator<Item = &Watched> {
        self.apps.iter().filter(|app| app.limits.app == MemoryBound::Auto)
    }

    fn serving(&self, app: &Watched) -> Vec<(u32, &Known)> {
        let serving = self.watch.of_app(app.app).filter_map(|(process, known)| match process {
            Process::Worker(number) if known.is_serving => Some((number, known)),
            _ => None,
        });
        serving.collect()
    }

    /// The companions that have a limit, with it.
    fn limited<'a>(&'a self, app: &'a Watched) -> impl Iterator<Item = (u32, u64, &'a Known)> {
        let available = self.available.unwrap_or(u64::MAX);
        app.readings.iter().filter_map(move |reading| {
            let Process::Companion(number) = reading.process else { return None };
            let known = self.watch.known.get(&(app.app, reading.process))?;
            Some((number, reading.limit.bytes(available)?, known))
        })
    }

    /// The limits of an application, with what counts against each, and how fast that grows.
    fn limits_of(&self, app: &Watched) -> Vec<(u64, u64, u64)> {
        let mut limits = Vec::new();
        if let Some(limit) = self.worker_limit(app) {
            limits.extend(self.serving(app).iter().map(|(_, known)| (limit, known.bytes, known.rate)));
        }
        limits.extend(self.limited(app).map(|(_, limit, known)| (limit, known.bytes, known.rate)));
        if let Some(budget) = self.budget(app) {
            let rate = self.watch.of_app(app.app).map(|(_, known)| known.rate).sum();
            limits.push((budget, self.watch.bytes_of_app(app.app), rate));
        }
        limits
    }

    /// The same, of all together.
    fn limit_of_machine(&self) -> Option<(u64, u64, u64)> {
        self.sharing().next()?;
        Some((self.usable()?, self.total(), self.watch.known.values().map(|known| known.rate).sum()))
    }

    /// Applications that have too much, or may have their part in it.
    fn exceeded(&self) -> BTreeSet<AppId> {
        let is_exceeded = |(limit, bytes, _): &(u64, u64, u64)| bytes > limit;
        if self.limit_of_machine().as_ref().is_some_and(is_exceeded) {
            return self.apps.iter().map(|app| app.app).collect();
        }
        let exceeded = self.apps.iter().filter(|app| self.limits_of(app).iter().any(is_exceeded));
        exceeded.map(|app| app.app).collect()
    }

    /// The sooner, the nearer a limit is, and the faster it comes nearer.
    fn next_look(&self) -> Duration {
        let until = |(limit, bytes, rate): (u64, u64, u64)| {
            if bytes > limit {
                return EXCEEDED;
            }
            let rate = rate.saturating_mul(LOOKS_BEFORE).max(SUDDEN_GROWTH);
            Duration::from_millis((limit - bytes).saturating_mul(1000) / rate)
        };
        let limits = self.apps.iter().flat_map(|app| self.limits_of(app)).chain(self.limit_of_machine());
        limits.map(until).min().unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let waits = |app: &&Watched| app.replacing_for.is_some();
        let mut verdicts: Vec<Verdict> =
            self.apps.iter().filter(|app| !waits(app)).filter_map(|app| self.of_app(app)).collect();
        let is_coming_back = self.apps.iter().any(|app| app.replacing_for.is_some_and(|it| it < COMING_BACK))
            || verdicts.iter().any(|verdict| matches!(verdict, Verdict::Replace(..)));
        if let Some(usable) = self.usable().filter(|usable| self.total() > *usable && !is_coming_back) {
            verdicts.extend(self.of_machine(usable));
        }
        verdicts.extend(self.apps.iter().flat_map(|app| self.of_companions(app)));
        verdicts
    }

    fn of_companions<'a>(&'a self, app: &'a Watched) -> impl Iterator<Item = Verdict> + 'a {
        let over = self.limited(app).filter(|(_, limit, known)| known.bytes > *limit);
        over.map(|(number, limit, known)| Verdict::EndCompanion {
            app: app.app,
            number,
            bytes: known.bytes,
            limit,
        })
    }

    fn of_app(&self, app: &Watched) -> Option<Verdict> {
        let serving = self.serving(app);
        let over = |limit, bound, bytes, worker: &Known| OverMemory {
            bound,
            worker_bytes: worker.bytes,
            bytes,
            limit,
            has_room: self.has_room(app),
        };
        if let Some(limit) = self.worker_limit(app) {
            let over_limit = serving.iter().filter(|(_, known)| known.bytes > limit);
            if let Some((number, known)) = over_limit.max_by_key(|(_, known)| known.bytes) {
                let over = over(limit, Bound::Worker, known.bytes, known);
                let is_too_small = self.watch.at_first.get(&app.app).is_none_or(|first| *first > limit);
                return Some(if is_too_small && app.has_replaced {
                    Verdict::TooSmall(app.app, over)
                } else {
                    Verdict::Replace(app.app, *number, over)
                });
            }
        }
        let (budget, bytes) = (self.budget(app)?, self.watch.bytes_of_app(app.app));
        if bytes <= budget {
            return None;
        }
        let (number, known) = serving.into_iter().max_by_key(|(_, known)| known.bytes)?;
        let bound = if app.limits.below_max() == Some(budget) { Bound::Max } else { Bound::App };
        let over = over(budget, bound, bytes, known);
        Some(if self.watch.growth(app.app, known) < LEAST_GROWTH && app.has_replaced {
            Verdict::TooSmall(app.app, over)
        } else {
            Verdict::Replace(app.app, number, over)
        })
    }

    /// All have too much: the worker that has grown most lately. If none has, the worker that has grown most in an
    /// application that has more than its part, so that others do not pay for it.
    fn of_machine(&self, usable: u64) -> Option<Verdict> {
        let part = usable / self.sharing().count().max(1) as u64;
        let workers: Vec<(&Watched, u32, &Known)> = self
            .sharing()
            .filter(|app| app.replacing_for.is_none())
            .flat_map(|app| self.serving(app).into_iter().map(move |(number, known)| (app, number, known)))
            .collect();
        let growth = |(app, _, known): &&(&Watched, u32, &Known)| self.watch.growth(app.app, known);
        let recent_growth = |worker: &&(&Watched, u32, &Known)| worker.2.recent_growth().min(growth(worker));
        let recent = workers.iter().max_by_key(recent_growth);
        let recent = recent.filter(|worker| recent_growth(worker) >= LEAST_GROWTH);
        let is_large = |app: &Watched| self.watch.bytes_of_app(app.app) > part;
        let of_large = || workers.iter().filter(|(app, _, _)| is_large(app)).max_by_key(growth);
        let chosen = recent.or_else(of_large)?;
        let (app, number, known) = chosen;
        let over = OverMemory {
            bound: Bound::Machine,
            worker_bytes: known.bytes,
            bytes: self.total(),
            limit: usable,
            has_room: false,
        };
        Some(if growth(&chosen) < LEAST_GROWTH {
            Verdict::TooSmall(app.app, over)
        } else {
            Verdict::Replace(app.app, *number, over)
        })
    }

    /// Whether there is memory for one more worker of this application.
    fn has_room(&self, app: &Watched) -> bool {
        let new =
            self.serving(app).iter().filter_map(|(_, known)| known.at_first).max().unwrap_or(NEW_WORKER);
        let fits = |limit: Option<u64>, bytes: u64| limit.is_none_or(|limit| bytes + new <= limit);
        fits(self.usable(), self.total()) && fits(self.budget(app), self.watch.bytes_of_app(app.app))
    }
}

#[cfg(test)]
mod tests;
