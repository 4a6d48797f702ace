//! What the supervisor tells `highball status`: the core's state, with the process ids.

use super::app::AppSupervisor;
use super::memory_sampler::MemorySampler;
use super::Supervisor;
use crate::core::app::App as Core;
use crate::core::crash_loop::Crashes;
use crate::core::mold::Mold;
use crate::core::restart::{Stage, Wish};
use crate::core::restarts::Restart;
use crate::core::sizing::Sizing;
use crate::report::{
    AppReport, CrashLoopReport, MoldReport, ReforkReport, Report, RestartReport, SizingReport, UpgradeReport,
    WorkerReport,
};
use std::time::{Duration, Instant};

impl Supervisor {
    pub(super) fn report(&self, now: Instant) -> Report {
        let apps = self
            .apps
            .iter()
            .filter_map(|(id, app)| Some(app.report(self.core.apps.get(id)?, &self.memory, now)));
        let apps: Vec<AppReport> = apps.collect();
        let upgrade = self.core.upgrades.report(now).map(|report| {
            let pid = report.pid.or_else(|| self.upgrading.pid_of(report.number));
            UpgradeReport { pid, ..report }
        });
        Report {
            phase: match &apps[..] {
                [app] => app.phase,
                _ if self.core.is_over() => "draining",
                _ => "serving",
            },
            apps,
            memory: self.memory.machine(),
            upgrade,
            successor: self.upgrading.serving_pid(),
        }
    }
}

impl AppSupervisor {
    fn report(&self, core: &Core, memory: &MemorySampler, now: Instant) -> AppReport {
        let workers = core.staff.workers().iter().map(|(worker, state)| WorkerReport {
            worker,
            generation: state.generation,
            pid: self.pid_of_worker(worker),
            state: state.state.name(),
            replaced_for: state.replacement.map(|replacement| replacement.cause.name()),
            threads: self.app.threads,
            memory_bytes: memory.bytes_of_worker(self.app.id, worker),
            uptime: now - state.forked_at,
        });
        AppReport {
            id: self.app.id,
            phase: core.phase_name(),
            app: core.current.app().map(|app| (**app).clone()),
            folder: core.current.folder().into(),
            generation: core.current.number(),
            mold: core.molds.of(core.current.line()).map(|mold| self.mold_report(mold)),
            mold_rests: core.boots.rests(),
            wanted: core.staff.wanted(),
            sizing: core.staff.sizing().map(|sizing| sizing_report(sizing, memory.available(), now)),
            workers: workers.collect(),
            crash_loop: core.staff.crashes(now).map(crash_loop_report),
            replaced: core.staff.replacements().counts().by_name(),
            memory: memory.report(self, core),
            overruns: self.overruns.all(),
            restartable: core.current.app().map(|app| app.restartable),
            restarts: self.restart_reports(core, now),
            restart_counts: core.restarts.past().counts(),
            refork: self.refork_report(core, now),
            no_refork: core.reforks.unfit().map(String::from),
            last_failure: core.trouble.last_failure.clone(),
            diagnosis: core.trouble.diagnosis.as_deref().cloned(),
        }
    }

    fn mold_report(&self, mold: &Mold) -> MoldReport {
        MoldReport {
            pid: self.pid_of_mold(mold.boot),
            state: mold.state.name(),
            promoted_from: mold.promoted_from,
        }
    }

    fn restart_reports(&self, core: &Core, now: Instant) -> Vec<RestartReport> {
        let report = |wish: Wish, state, took, mold| RestartReport {
            generation: wish.generation,
            asked_by: wish.asked.to_string(),
            state,
            took,
            failure: None,
            mold,
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
        core.restarts.past().iter().cloned().chain(going).chain(queued).collect()
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
    CrashLoopReport { deaths, within, what: crashes.to_string(), remedy: crashes.remedy() }
}

fn sizing_report(sizing: &Sizing, memory: Option<u64>, now: Instant) -> SizingReport {
    let range = sizing.range();
    SizingReport {
        min: range.min,
        max: range.max,
        cpus: range.cpus.to_string(),
        memory,
        decided: sizing.decided().map(|(decision, at)| (decision.to_string(), now - at)),
        hindered: sizing.hindered(now).map(|hindrance| hindrance.to_string()),
    }
}
