//! The limits that the kernel keeps applications within, and what they use of them: for the status, metrics, `highball top` and
//! the dashboard.
//!
//! The files are the kernel's (cgroups(7)), and all users may read them. An application that is another user's than the server's
//! cannot change them, nor the folder that they are in. A thread of the pool reads them when somebody asks, for one after the
//! other.

use crate::apps::cgroups::problem;
use highball_cgroups::Figures;
use highball_config::{App, AppId, KernelLimits, Settings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// The largest page that kernels have, in bytes.
const LARGEST_PAGE: u64 = 64 << 10;

/// The options.
pub(crate) const CPU_MAX: &str = "cpu_max";
pub(crate) const MEMORY_MAX: &str = "memory_max";

/// What is known of the applications that have a limit.
pub(crate) type Known = BTreeMap<AppId, KernelLimitsStatus>;

/// The turn of those who ask: with many applications it takes milliseconds, and never more than one thread.
static TURN: Mutex<()> = Mutex::const_new(());

/// The limits that the kernel keeps for the cgroup of an application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KernelLimitsStatus {
    /// CPUs that its processes may use at a time,
    pub(crate) cpu_max: Option<f64>,
    /// the time of CPUs that they have used,
    pub(crate) cpu_ms: u64,
    /// the periods of 100 ms in which they had something to compute,
    pub(crate) periods: u64,
    /// those of them in which they had to wait because of the limit,
    pub(crate) throttled_periods: u64,
    /// and for how long they have waited, on all CPUs together.
    pub(crate) throttled_ms: u64,
    /// Memory that they may have,
    pub(crate) memory_max_bytes: Option<u64>,
    /// have, with files that are kept in memory for them,
    pub(crate) memory_bytes: Option<u64>,
    /// how often it has reached the limit, so that the kernel had to free some,
    pub(crate) memory_max_hits: u64,
    /// and how many processes the kernel has killed for lack of it.
    pub(crate) oom_kills: u64,
    /// The options that are not kept.
    pub(crate) not_kept: Vec<String>,
    /// Why not all of it is kept, and what to do.
    pub(crate) problem: Option<String>,
}

impl KernelLimitsStatus {
    /// The options that are set.
    pub(crate) fn wanted(&self) -> Vec<&'static str> {
        let all = [(CPU_MAX, self.cpu_max.is_some()), (MEMORY_MAX, self.memory_max_bytes.is_some())];
        all.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect()
    }

    /// Whether this option is set, and the kernel keeps it: only then there are figures.
    pub(crate) fn keeps(&self, option: &str) -> bool {
        self.wanted().contains(&option) && !self.not_kept.iter().any(|not_kept| not_kept == option)
    }

    /// `memory 310 of 512 MiB; CPU 1.5 cores, throttled 12% of the time`. The share is that since `before`.
    pub(crate) fn text(&self, before: &KernelLimitsStatus) -> String {
        let mib = |bytes: u64| bytes >> 20;
        let memory = self.memory_max_bytes.map(|most| {
            let used = self.memory_bytes.map_or_else(|| "–".into(), |bytes| mib(bytes).to_string());
            format!("memory {used} of {} MiB", mib(most))
        });
        let cpu = self.cpu_max.map(|cpus| {
            let percent = self.throttled_percent(before).unwrap_or(0.0);
            format!("CPU {cpus} cores, throttled {percent:.0}% of the time")
        });
        memory.into_iter().chain(cpu).collect::<Vec<_>>().join("; ")
    }

    /// The percentage of the periods in which its processes had to wait for CPUs, of those since `before`.
    pub(crate) fn throttled_percent(&self, before: &KernelLimitsStatus) -> Option<f64> {
        let periods = self.periods.checked_sub(before.periods)?;
        let throttled = self.throttled_periods.checked_sub(before.throttled_periods)?;
        (periods > 0).then(|| throttled as f64 * 100.0 / periods as f64)
    }
}

/// What the kernel keeps each of these applications within, and what that uses.
pub(crate) async fn of(settings: &Arc<Settings>) -> Known {
    if !settings.apps.iter().any(|app| app.kernel_limits().any()) {
        return Known::default();
    }
    let _turn = TURN.lock().await;
    let all = Arc::clone(settings);
    let read = move || all.apps.iter().filter_map(|app| Some((app.id, read(app)?))).collect();
    spawn_blocking(read).await.unwrap_or_default() // it does not panic
}

/// `None`: it has no limit.
fn read(app: &App) -> Option<KernelLimitsStatus> {
    let wanted = app.kernel_limits();
    if !wanted.any() {
        return None;
    }
    match highball_cgroups::current().map(|cgroups| cgroups.figures(&app.path())) {
        Some(Some(figures)) => Some(status(wanted, &figures)),
        // It has no process yet, and its first one will be in a cgroup with these limits.
        Some(None) if problem().is_none() => Some(KernelLimitsStatus {
            not_kept: Vec::new(),
            problem: None,
            ..status(wanted, &Figures::default())
        }),
        _ => Some(status(wanted, &Figures::default())),
    }
}

fn status(wanted: KernelLimits, figures: &Figures) -> KernelLimitsStatus {
    let not_kept = not_kept(wanted, figures);
    let problem = (!not_kept.is_empty()).then(|| {
        let usual = "a limit counts when a process of the application is started; the first one of a server, when Highball is started again";
        problem().unwrap_or(usual).to_owned()
    });
    KernelLimitsStatus {
        cpu_max: wanted.cpu.map(|cpus| cpus.cpus()),
        cpu_ms: figures.cpu.as_millis() as u64,
        periods: figures.periods,
        throttled_periods: figures.throttled_periods,
        throttled_ms: figures.throttled.as_millis() as u64,
        memory_max_bytes: wanted.memory,
        memory_bytes: figures.memory,
        memory_max_hits: figures.memory_max_hits,
        oom_kills: figures.oom_kills,
        not_kept: not_kept.into_iter().map(str::to_owned).collect(),
        problem,
    }
}

/// The limits that the kernel does not have. It counts memory in whole pages.
fn not_kept(wanted: KernelLimits, figures: &Figures) -> Vec<&'static str> {
    let is_kept = |bytes: u64| {
        let rest = figures.memory_max.and_then(|kept| bytes.checked_sub(kept));
        rest.is_some_and(|rest| rest < LARGEST_PAGE)
    };
    let all = [
        (CPU_MAX, wanted.cpu.is_none() || figures.cpu_max == wanted.cpu),
        (MEMORY_MAX, wanted.memory.is_none_or(is_kept)),
    ];
    all.iter().filter(|(_, is_kept)| !is_kept).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::CpuMax;

    #[test]
    fn a_limit_is_kept_when_the_kernel_has_it() {
        let limits = KernelLimits { cpu: Some(CpuMax(150)), memory: Some((100 << 20) + 1) };
        let figures =
            Figures { cpu_max: Some(CpuMax(150)), memory_max: Some(100 << 20), ..Figures::default() };
        let none: [&str; 0] = [];
        assert_eq!(not_kept(limits, &figures), none);
        assert_eq!(not_kept(limits, &Figures { cpu_max: None, ..figures }), [CPU_MAX]);
        assert_eq!(not_kept(limits, &Figures { memory_max: Some(200 << 20), ..figures }), [MEMORY_MAX]);
        assert_eq!(not_kept(limits, &Figures::default()), [CPU_MAX, MEMORY_MAX]);
        assert_eq!(not_kept(KernelLimits::default(), &Figures::default()), none);
    }

    #[test]
    fn what_is_not_kept_has_a_reason() {
        let limits = KernelLimits { cpu: Some(CpuMax(50)), memory: None };
        let kept = Figures { cpu_max: Some(CpuMax(50)), throttled_periods: 4, ..Figures::default() };
        let KernelLimitsStatus { problem, throttled_periods, .. } = status(limits, &kept);
        assert_eq!((problem, throttled_periods), (None, 4));
        assert!(status(limits, &Figures::default()).problem.is_some());
    }
}
