//! The cgroups of the applications: made at the start, where one of them has a limit, or a predecessor has made them.

use highball_cgroups::Cgroups;
use highball_config::{App, KernelLimits, Settings};
use highball_supervisor::Launcher;
use std::sync::{Arc, OnceLock};
use tracing::warn;

/// The variable by which the spawner tells the server why limits are not kept.
const PROBLEM_VARIABLE: &str = "HIGHBALL_CGROUPS_PROBLEM";

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
    if crate::apps::source::is_given_as_object() {
        let _ = PROBLEM.set("the application was loaded before Highball was started".into());
    } else if let Launcher::Direct = launcher {
        set_up(settings.apps.iter().map(|app| app.kernel_limits()));
    }
    let limited = settings.apps.iter().filter(|app| app.kernel_limits().any());
    let names: Vec<&str> = limited.map(|app| app.name.as_str()).collect();
    if let (Some(problem), false) = (PROBLEM.get(), names.is_empty()) {
        let apps = names.join(" ");
        warn!(
            name: "limits_not_enforced",
            apps, problem, "the kernel does not enforce all limits of memory_max and cpu_max"
        );
    }
}

/// The configuration has changed.
pub(crate) fn change(settings: &Settings, removed: &[Arc<App>], launcher: &Launcher) {
    let is_late = highball_cgroups::current().is_none() && PROBLEM.get().is_none();
    if is_late && settings.apps.iter().any(|app| app.kernel_limits().any()) {
        warn!(
            name: "limits_after_restart",
            "the first memory_max or cpu_max takes effect at the next start, not after a reload or a hot restart"
        );
    }
    let (Some(cgroups), Launcher::Direct) = (highball_cgroups::current(), launcher) else { return };
    for app in &settings.apps {
        if let Err(error) = cgroups.change(&app.path(), app.kernel_limits()) {
            warn!(
                name: "limits_not_changed",
                app = app.name, %error, "cannot change the limits of an application: keeping the old ones"
            );
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

/// Why limits are not kept, if so.
pub(crate) fn problem() -> Option<&'static str> {
    PROBLEM.get().map(String::as_str)
}
