//! What the supervisor tells `highball status`: the core's state, with the process ids.

use super::app::AppSupervisor;
use super::memory_sampler::MemorySampler;
use super::Supervisor;
use crate::core::app::App as Core;
use crate::core::companions::Place;
use crate::core::crash_loop::Crashes;
use crate::core::mold::Mold;
use crate::core::restart::{Stage, Wish};
use crate::core::restarts::Restart;
use crate::core::sizing::Sizing;
use highball_config::AppId;
use highball_link::{
    AppProcesses, CompanionProcess, CrashLoopReport, MoldReport, ReforkReport, RestartReport,
    ServerProcesses, SizingReport, SlowRequestReport, SupervisorReport, UpgradeReport, WorkerProcess,
};
use std::time::{Duration, Instant};

/// Slow requests that are part of each report.
const NEWEST_SLOW: usize = 3;

impl Supervisor {
    /// The slow requests of an application that are kept.
    pub(super) fn slow_requests(&self, app: AppId) -> Vec<SlowRequestReport> {
        self.apps.get(&app).map_or_else(Vec::new, |app| app.slow_requests.all())
    }

    pub(super) fn report(&self, now: Instant) -> SupervisorReport {
        let apps = self
            .apps
            .iter()
            .filter_map(|(id, app)| Some(app.report(self.core.apps.get(id)?, &self.memory, now)));
        let apps: Vec<AppProcesses> = apps.collect();
        let upgrade = self.core.upgrades.report(now).map(|report| {
            let pid = report.pid.or_else(|| self.upgrading.pid_of(report.number));
            UpgradeReport { pid, ..report }
        });
        let phase = match &apps[..] {
            [app] => app.phase.clone(),
            _ if self.core.is_over() => "draining".into(),
            _ => "serving".into(),
        };
        let (memory, successor) = (self.memory.machine(), self.upgrading.serving_pid());
        SupervisorReport { server: ServerProcesses { phase, memory, upgrade, successor }, apps }
    }
}

impl AppSupervisor {
    fn report(&self, core: &Core, memory: &MemorySampler, now: Instant) -> AppProcesses {
        let workers = core.staff.workers().iter().map(|(worker, state)| WorkerProcess {
            worker,
            generation: state.generation,
            pid: self.pid_of_worker(worker),
            state: state.state.name().into(),
            replaced_for: state.replacement.map(|replacement| replacement.cause.name()),
            threads: self.app.threads.least,
            memory_bytes: memory.bytes_of_worker(self.app.id, worker),
            uptime_seconds: (now - state.forked_at).as_secs(),
        });
        let app = core.current.app();
        AppProcesses {
            id: self.app.id,
            phase: core.phase_name().into(),
            framework: app.map(|app| app.framework.clone()),
            runtime: app.map(|app| app.runtime.clone()).unwrap_or_default(),
            restartable: app.map(|app| app.restartable),
            folder: core.current.folder().into(),
            generation: core.current.number(),
            mold: core.molds.of(core.current.line()).map(|mold| self.mold_report(mold)),
            mold_rests: core.boots.rests(),
            workers_wanted: core.staff.wanted(),
            sizing: core.staff.sizing().map(|sizing| sizing_report(sizing, memory.available(), now)),
            workers: workers.collect(),
            companions: core
                .companions
                .places()
                .map(|place| self.companion_report(place, memory, now))
                .collect(),
            crash_loop: core.staff.crashes(now).map(crash_loop_report),
            replaced: core.staff.replacements().counts().by_name(),
            memory: memory.report(self, core),
            overruns: self.overruns.all(),
            slow_requests: self.slow_requests.last(NEWEST_SLOW),
            restarts: self.restart_reports(core, now),
            restart_counts: core.restarts.past().counts(),
            refork: self.refork_report(core, now),
            no_refork: core.reforks.unfit().map(String::from),
            last_failure: core.trouble.last_failure.as_ref().map(|(what, _)| what.clone()),
            last_failure_seconds_ago: core.trouble.last_failure.as_ref().map(|(_, at)| (now - *at).as_secs()),
            diagnosis: core.trouble.diagnosis.as_deref().cloned(),
        }
    }

    fn mold_report(&self, mold: &Mold) -> MoldReport {
        MoldReport {
            pid: self.pid_of_mold(mold.boot),
            state: mold.state.name().into(),
            promoted_from: mold.promoted_from,
        }
    }

    fn companion_report(&self, place: &Place, memory: &MemorySampler, now: Instant) -> CompanionProcess {
        let occupant = place.occupant.as_ref();
        let last = place.last_end.as_ref();
        CompanionProcess {
            name: place.label(),
            state: place.state().into(),
            generation: occupant.map(|occupant| occupant.generation),
            pid: occupant.and_then(|occupant| self.companions.get(&occupant.number)?.program),
            uptime_seconds: occupant.map(|occupant| (now - occupant.since).as_secs()),
            memory_bytes: occupant
                .and_then(|occupant| memory.bytes_of_companion(self.app.id, occupant.number)),
            restarts: place.restarts,
            crash_loop: place.crash_loop(),
            last_end: last.map(|(how, _)| how.clone()),
            last_end_seconds_ago: last.map(|(_, at)| (now - *at).as_secs()),
        }
    }

    fn restart_reports(&self, core: &Core, now: Instant) -> Vec<RestartReport> {
        let report = |wish: Wish, state: &str, took: Duration, mold| RestartReport {
            generation: wish.generation,
            asked_by: wish.asked.to_string(),
            state: state.into(),
            seconds: took.as_secs_f64(),
            failure: None,
            mold,
            ended_seconds_ago: None,
        };
        // For a client that waits, a restart that is being undone has ended; unless the reason for its failure is still
        // to be found out.
        let is_open = |restart: &&Restart| restart.stage != Stage::Undoing || restart.explaining.is_some();
        let going = core.restarts.going().filter(is_open).map(|restart| {
            let stage = restart.explaining.map_or(restart.stage, |(_, failed)| failed);
            let mold = core.molds.of(restart.next.line()).map(|mold| self.mold_report(mold));
            report(restart.wish(), stage.name(), restart.took(now), mold)
        });
        let queued = core.restarts.wish().map(|wish| report(wish, "queued", Duration::ZERO, None));
        core.restarts.past().reports(now).chain(going).chain(queued).collect()
    }

    /// The refork that is under way, or the last one.
    fn refork_report(&self, core: &Core, now: Instant) -> Option<ReforkReport> {
        let promoted = core.reforks.line().and_then(|line| core.molds.of(line));
        let mold = promoted.map(|mold| self.mold_report(mold));
        core.reforks.report(now).map(|report| ReforkReport { mold, ..report })
    }
}

fn crash_loop_report(crashes: Crashes) -> CrashLoopReport {
    let Crashes { deaths, within, .. } = crashes;
    CrashLoopReport {
        deaths,
        seconds: within.as_secs(),
        what: crashes.to_string(),
        remedy: crashes.remedy().into(),
    }
}

fn sizing_report(sizing: &Sizing, memory: Option<u64>, now: Instant) -> SizingReport {
    let range = sizing.range();
    let (decided, decided_at) = sizing.decided().unzip();
    SizingReport {
        min: range.min,
        max: range.max,
        cpus: range.cpus.to_string(),
        memory_bytes: memory,
        decided: decided.map(|decision| decision.to_string()),
        decided_seconds_ago: decided_at.map(|at| (now - at).as_secs()),
        hindered: sizing.hindered(now).map(|hindrance| hindrance.to_string()),
    }
}
