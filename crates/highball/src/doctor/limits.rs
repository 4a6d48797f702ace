//! For `highball doctor`: whether the kernel enforces the hard limits of an application, and whether they are too small for it.

use super::check::{Check, CheckState};
use crate::control::finding::Instance;
use crate::control::selection::is_selected;
use highball_cgroups::{outlook, REMEDY};
use highball_config::{App, AppSelector};
use highball_link::KernelLimitsReport;
use highball_text::counted;

/// Names of the checks.
const KEPT: &str = "limits";
const NOT_KEPT: &str = "limits_not_kept";
const THROTTLED: &str = "cpu_throttled";
const OUT_OF_MEMORY: &str = "out_of_memory";

/// Periods after which the throttled share says something: a minute in which the application computed.
const ENOUGH_PERIODS: u64 = 600;
/// A larger percentage of them is much.
const MUCH_PERCENT: f64 = 25.0;

/// The checks; none, where the application has no limits.
pub(crate) fn checks(app: &App, selector: &AppSelector, running: &[Instance]) -> Vec<Check> {
    let wanted = app.kernel_limits();
    if !wanted.any() {
        return Vec::new();
    }
    let apps = running.iter().flat_map(|instance| &instance.status.apps);
    let mut apps = apps.filter(|one| is_selected(selector, one) && one.environment == app.environment);
    if let Some(limits) = apps.find_map(|one| one.kernel_limits.as_ref()) {
        return of_running(limits);
    }
    let options = KernelLimitsReport {
        cpu_max: wanted.cpu.map(|cpus| cpus.cpus()),
        memory_max_bytes: wanted.memory,
        ..KernelLimitsReport::default()
    };
    let options = options.wanted().join(" and ");
    vec![match outlook(&[wanted]) {
        None => Check::ok(KEPT, format!("the kernel can enforce {options}")),
        Some(problem) => {
            let who =
                format!("the kernel would not enforce {options} for a server started like this command");
            not_kept(&who, &problem.to_string())
        }
    }]
}

/// What the server that runs reports.
fn of_running(limits: &KernelLimitsReport) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(problem) = &limits.problem {
        let options = match &limits.not_kept[..] {
            [] => limits.wanted().join(" and "), // an older server does not name them
            not_kept => not_kept.join(" and "),
        };
        checks
            .push(not_kept(&format!("the kernel does not enforce {options} of the running server"), problem));
    }
    checks.extend(out_of_memory(limits));
    checks.extend(throttled(limits));
    if checks.is_empty() {
        checks.push(Check::ok(KEPT, limits.text()));
    }
    checks
}

/// The problem has what to do at its end, where that is known.
fn not_kept(what: &str, problem: &str) -> Check {
    let (why, remedy) = match problem.split_once(REMEDY) {
        Some((why, _)) => (why.trim_end_matches(['.', ' ']), Some(REMEDY.to_owned())),
        None => (problem, None),
    };
    Check { state: CheckState::Warning, remedy, ..Check::ok(NOT_KEPT, format!("{what}: {why}")) }
}

fn out_of_memory(limits: &KernelLimitsReport) -> Option<Check> {
    let kills = limits.oom_kills;
    let memory_max = limits.memory_max_bytes.filter(|_| kills > 0)? >> 20;
    let what = format!(
        "the kernel has killed {} of the application, as it needed more than memory_max, {memory_max} MiB; its memory \
         has reached that {}",
        counted(kills, "process"),
        counted(limits.memory_max_hits, "time")
    );
    let remedy =
        "Look with `highball memory` what its processes have; set a larger memory_max, or fewer workers.";
    Some(Check { state: CheckState::Warning, remedy: Some(remedy.into()), ..Check::ok(OUT_OF_MEMORY, what) })
}

fn throttled(limits: &KernelLimitsReport) -> Option<Check> {
    let cpus = limits.cpu_max?;
    let percent = limits.throttled_percent(&KernelLimitsReport::default())?;
    if limits.periods < ENOUGH_PERIODS || percent <= MUCH_PERCENT {
        return None;
    }
    let what = format!(
        "because of cpu_max, {cpus} CPUs, processes of the application had to wait in {percent:.0}% of the time in which they had \
         something to compute, so its answers take longer"
    );
    let remedy = "Set a larger cpu_max, or look with `highball top` what computes.";
    Some(Check { state: CheckState::Warning, remedy: Some(remedy.into()), ..Check::ok(THROTTLED, what) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(limits: &KernelLimitsReport) -> Vec<String> {
        of_running(limits).into_iter().map(|check| check.name).collect()
    }

    #[test]
    fn what_happens_rarely_is_no_warning() {
        let limits = KernelLimitsReport {
            cpu_max: Some(1.5),
            periods: 1000,
            throttled_periods: 250,
            memory_max_bytes: Some(512 << 20),
            memory_bytes: Some(310 << 20),
            memory_max_hits: 9,
            ..KernelLimitsReport::default()
        };
        let checks = of_running(&limits);
        assert_eq!((checks[0].name.as_str(), checks[0].state), (KEPT, CheckState::Ok));
        assert_eq!(checks[0].what, "memory 310 of 512 MiB; CPU 1.5 cores, throttled 25% of the time");
        let soon = KernelLimitsReport { periods: 599, throttled_periods: 599, ..limits.clone() };
        assert_eq!(names(&soon), [KEPT]);
        let much = KernelLimitsReport { throttled_periods: 260, oom_kills: 1, ..limits };
        assert_eq!(names(&much), [OUT_OF_MEMORY, THROTTLED]);
    }

    #[test]
    fn what_is_not_kept_is_said_with_what_to_do() {
        let limits = KernelLimitsReport {
            cpu_max: Some(0.5),
            not_kept: vec!["cpu_max".into()],
            problem: Some(format!("cgroups v2 is missing here. {REMEDY}")),
            ..KernelLimitsReport::default()
        };
        let checks = of_running(&limits);
        assert_eq!(names(&limits), [NOT_KEPT]);
        let what = "the kernel does not enforce cpu_max of the running server: cgroups v2 is missing here";
        assert_eq!(checks[0].what, what);
        assert_eq!(checks[0].remedy.as_deref(), Some(REMEDY));
        let other = not_kept("x", "the application was loaded before Highball was started");
        assert_eq!(other.remedy, None);
    }
}
