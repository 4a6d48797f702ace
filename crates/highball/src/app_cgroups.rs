//! The cgroups of the applications: made at the start, where one of them has a limit, or a predecessor has made them.

use crate::instance::KernelLimitsStatus;
use highball_cgroups::{Cgroups, Figures};
use highball_config::{App, KernelLimits, Settings};
use highball_supervisor::Launcher;
use std::sync::{Arc, OnceLock};
use tracing::warn;

/// The variable by which the spawner tells the server why limits are not kept.
const PROBLEM_VARIABLE: &str = "HIGHBALL_CGROUPS_PROBLEM";

/// The largest page that kernels have, in bytes.
const LARGEST_PAGE: u64 = 64 << 10;

/// Why limits are not kept, if so.
static PROBLEM: OnceLock<String> = OnceLock::new();

/// Makes cgroups, if one of these limits asks for it, and they are not made yet. To be called before this process starts others.
pub(crate) fn set_up(limits: impl Iterator<Item = KernelLimits>) {
    let wanted: Vec<KernelLimits> = limits.filter(|limits| limits.any()).collect();
    let is_done = highball_cgroups::current().is_some() || PROBLEM.get().is_some();
    if is_done || (wanted.is_empty() && Cgroups::of_server().is_none()) {
        return;
    }
    let problem = match Cgroups::set_up(&wanted) {
        Ok((cgroups, problem)) => {
            highball_cgroups::follow(cgroups);
            problem
        }
        Err(problem) => Some(problem),
    };
    problem.map(|problem| PROBLEM.set(problem.to_string()));
}

/// Starts the server: it learns why limits are not kept, and no other process does.
pub(crate) fn telling_server<T>(start: impl FnOnce() -> T) -> T {
    if let Some(problem) = PROBLEM.get() {
        std::env::set_var(PROBLEM_VARIABLE, problem);
    }
    let started = start();
    std::env::remove_var(PROBLEM_VARIABLE);
    started
}

/// This process is one of a server that a spawner has started. To be called before there are threads.
pub(crate) fn join() {
    if let Ok(problem) = std::env::var(PROBLEM_VARIABLE) {
        let _ = PROBLEM.set(problem);
        std::env::remove_var(PROBLEM_VARIABLE);
    }
    Cgroups::of_server().map(highball_cgroups::follow);
}

/// Makes cgroups where there is no spawner, and logs which limits are not kept.
pub(crate) fn begin(settings: &Settings, launcher: &Launcher) {
    if crate::is_given_as_object() {
        let _ = PROBLEM.set("the application was loaded before Highball was started".into());
    } else if let Launcher::Direct = launcher {
        set_up(settings.apps.iter().map(|app| app.kernel_limits()));
    }
    let limited = settings.apps.iter().filter(|app| app.kernel_limits().any());
    let names: Vec<&str> = limited.map(|app| app.name.as_str()).collect();
    if let (Some(problem), false) = (PROBLEM.get(), names.is_empty()) {
        let apps = names.join(" ");
        warn!(apps, problem, "the kernel does not keep all limits of memory_max and cpu_max");
    }
}

/// The configuration has changed.
pub(crate) fn change(settings: &Settings, removed: &[Arc<App>], launcher: &Launcher) {
    let is_late = highball_cgroups::current().is_none() && PROBLEM.get().is_none();
    if is_late && settings.apps.iter().any(|app| app.kernel_limits().any()) {
        warn!("the first limits of memory_max and cpu_max are kept from the next start on, not after a reload or a hot restart");
    }
    let (Some(cgroups), Launcher::Direct) = (highball_cgroups::current(), launcher) else { return };
    for app in &settings.apps {
        if let Err(error) = cgroups.change(&app.path(), app.kernel_limits()) {
            warn!(app = app.name, %error, "the limits of an application stay as they were");
        }
    }
    removed.iter().for_each(|app| cgroups.leave(&app.path()));
}

/// All applications have ended.
pub(crate) fn end(launcher: &Launcher) {
    if let (Some(cgroups), Launcher::Direct) = (highball_cgroups::current(), launcher) {
        cgroups.end();
    }
}

/// What the kernel keeps an application within, and what that uses; `None`: it has no limit.
pub(crate) fn status(app: &App) -> Option<KernelLimitsStatus> {
    let wanted = app.kernel_limits();
    if !wanted.any() {
        return None;
    }
    let figures = highball_cgroups::current().and_then(|cgroups| cgroups.figures(&app.path()));
    let figures = figures.unwrap_or_default();
    let problem = (!are_kept(wanted, &figures)).then(|| {
        let usual = "a limit counts when a process of the application is started; the first one of a server, when Highball is started again";
        PROBLEM.get().map_or(usual, String::as_str).to_owned()
    });
    Some(KernelLimitsStatus {
        cpu_max: wanted.cpu.map(|cpus| cpus.cpus()),
        throttled_ms: figures.throttled.as_millis() as u64,
        memory_max_bytes: wanted.memory,
        memory_bytes: figures.memory,
        oom_kills: figures.oom_kills,
        problem,
    })
}

/// Whether the kernel has these limits. It counts memory in whole pages.
fn are_kept(wanted: KernelLimits, figures: &Figures) -> bool {
    let is_kept = |bytes: u64| {
        let rest = figures.memory_max.and_then(|kept| bytes.checked_sub(kept));
        rest.is_some_and(|rest| rest < LARGEST_PAGE)
    };
    wanted.memory.is_none_or(is_kept) && (wanted.cpu.is_none() || figures.cpu_max == wanted.cpu)
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
        assert!(are_kept(limits, &figures));
        assert!(!are_kept(limits, &Figures { cpu_max: None, ..figures }));
        assert!(!are_kept(limits, &Figures { memory_max: Some(200 << 20), ..figures }));
        assert!(are_kept(KernelLimits::default(), &Figures::default()));
    }
}
