//! The hard limits of applications, and what they use of them: for the status, metrics, `highball top` and
//! the dashboard.
//!
//! The files are the kernel's (cgroups(7)), and all users may read them. An application that is another user's than the server's
//! cannot change them, nor the folder that they are in. A thread of the pool reads them when somebody asks, for one after the
//! other.

use crate::apps::cgroups::problem;
use highball_cgroups::Figures;
use highball_config::{App, AppId, KernelLimits, Settings};
use highball_link::{KernelLimitsReport, CPU_MAX, MEMORY_MAX};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// The largest page that kernels have, in bytes.
const LARGEST_PAGE: u64 = 64 << 10;

/// What is known of the applications that have a limit.
pub(crate) type Known = BTreeMap<AppId, KernelLimitsReport>;

/// The turn of those who ask: with many applications it takes milliseconds, and never more than one thread.
static TURN: Mutex<()> = Mutex::const_new(());

/// The hard limits of each of these applications, and what it uses of them.
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
fn read(app: &App) -> Option<KernelLimitsReport> {
    let wanted = app.kernel_limits();
    if !wanted.any() {
        return None;
    }
    match highball_cgroups::current().map(|cgroups| cgroups.figures(&app.path())) {
        Some(Some(figures)) => Some(status(wanted, &figures)),
        // It has no process yet, and its first one will be in a cgroup with these limits.
        Some(None) if problem().is_none() => Some(KernelLimitsReport {
            not_kept: Vec::new(),
            problem: None,
            ..status(wanted, &Figures::default())
        }),
        _ => Some(status(wanted, &Figures::default())),
    }
}

fn status(wanted: KernelLimits, figures: &Figures) -> KernelLimitsReport {
    let not_kept = not_kept(wanted, figures);
    let problem = (!not_kept.is_empty()).then(|| {
        let usual = "a limit takes effect for processes that start from now on, and the first limit of a server when Highball starts again";
        problem().unwrap_or(usual).to_owned()
    });
    KernelLimitsReport {
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
        let KernelLimitsReport { problem, throttled_periods, .. } = status(limits, &kept);
        assert_eq!((problem, throttled_periods), (None, 4));
        assert!(status(limits, &Figures::default()).problem.is_some());
    }
}
