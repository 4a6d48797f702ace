//! What `highball doctor` finds about the number of threads, where a server of the application runs: from what its requests do
//! with their time.
//!
//! Ruby runs one thread of a worker at a time, so more threads are of use while others wait for something else. If requests
//! compute a fifth of their time, five threads keep a CPU busy. While another thread of the worker computes, it is not known
//! whether a request waits for that thread or for something else, so there are a lower and an upper limit.

use super::check::{Check, CheckState};
use crate::control::finding::Instance;
use crate::control::selection::is_selected;
use highball_config::{App, AppSelector};
use highball_link::{RequestTimesReport, WorkerReport};
use highball_text::counted;
use std::fmt;

const NAME: &str = "threads";
/// Requests whose time has to be known.
const ENOUGH: u64 = 100;
/// No more threads than this are advised: each takes memory, and a connection to the database.
const MOST: u64 = 32;
/// No number of threads up to this one is too large: with a single thread, a response that streams keeps all others waiting.
const FEW: u64 = 3;
/// The advice is an estimate: a number that differs from it by less than this factor is right.
const FACTOR: u64 = 2;

/// The numbers of threads that keep a CPU busy, from the lowest to the highest that it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Right {
    least: u64,
    most: u64,
}

impl Right {
    fn of(times: &RequestTimesReport) -> Right {
        let RequestTimesReport { computed_ms, beside_ms, waited_ms, .. } = *times;
        let threads = |waited: u64| (1.0 + waited as f64 / computed_ms.max(1) as f64).round() as u64;
        let limited = |threads: u64| threads.min(MOST);
        Right {
            least: limited(threads(waited_ms)),
            most: limited(threads(waited_ms.saturating_add(beside_ms))),
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Right { least: MOST, .. } => write!(f, "{MOST} or more threads"),
            Right { least, most } if least == most => f.write_str(&counted(least, "thread")),
            Right { least, most } => write!(f, "{least} to {most} threads"),
        }
    }
}

/// The check; `None`, where no server runs that could tell.
pub(crate) fn check(app: &App, selector: &AppSelector, running: &[Instance]) -> Option<Check> {
    if app.is_development() {
        return None; // what it costs to load code again says nothing about production
    }
    let apps = running.iter().flat_map(|instance| &instance.status.apps);
    let apps = apps.filter(|one| is_selected(selector, one) && one.environment == app.environment);
    let (mut times, mut threads, mut growing) = (RequestTimesReport::default(), None, Vec::new());
    for status in apps {
        times = times + status.requests.request_times;
        threads = threads.max(status.workers.iter().map(|worker| worker.process.threads).max());
        growing.extend(status.workers.iter().filter(|worker| worker.requests.threads_kept_by.is_some()));
    }
    match growing.is_empty() {
        true => threads.map(|threads| advice(&times, threads.into())),
        false => Some(of_range(&growing)),
    }
}

/// What the doctor says where the number follows the requests: what keeps it from growing.
fn of_range(workers: &[&WorkerReport]) -> Check {
    let kept_by =
        |what: &str| workers.iter().any(|worker| worker.requests.threads_kept_by.as_deref() == Some(what));
    let now = workers.iter().map(|worker| worker.process.threads).max().unwrap_or_default();
    let range = &workers[0].requests;
    let what = format!("{now} of {}..{}", range.threads_least, range.threads_most);
    if kept_by("pool") || kept_by("pool_wait") {
        return warning(
            format!("{what}: requests queue, and a pool has no connections for more threads"),
            format!(
                "Set `pool: {}` in config/database.yml, if the database allows it: two more than threads, for other threads of the application.",
                range.threads_most + 2
            ),
        );
    }
    if kept_by("system") {
        let remedy = "Raise the limit on processes and threads (ulimit -u, TasksMax= in systemd, pids.max).";
        return warning(format!("{what}: the system refuses to start more threads"), remedy.into());
    }
    Check::ok(
        NAME,
        if kept_by("limit") {
            format!("{what}: some workers have all that they may have")
        } else if kept_by("computing") {
            format!("{what}: requests compute, so more threads would only wait for each other")
        } else {
            what
        },
    )
}

fn advice(times: &RequestTimesReport, threads: u64) -> Check {
    let RequestTimesReport { requests, computed_ms, beside_ms, waited_ms } = *times;
    if requests < ENOUGH {
        return Check::ok(
            NAME,
            format!("{threads}; not enough data to judge that: {requests} of {ENOUGH} requests measured"),
        );
    }
    let all = computed_ms.saturating_add(beside_ms).saturating_add(waited_ms).max(1);
    let percent = |part: u64| format!("{:.0}%", part as f64 * 100.0 / all as f64);
    let shares = format!(
        "requests compute for {} of their time, and wait for something else, such as the database, for {}{}",
        percent(computed_ms),
        percent(waited_ms),
        match percent(beside_ms).as_str() {
            "0%" => String::new(),
            beside => format!(" (for {beside}, another thread of the worker computes)"),
        }
    );
    let right = Right::of(times);
    if right.least >= threads * FACTOR {
        let remedy = format!(
            "If requests wait in the queue at times, set `threads = {0}`, and a pool of at least {0} database connections.",
            right.least
        );
        return warning(format!("{shares}; so {right} would be right, and there are {threads}"), remedy);
    }
    let enough = right.most.max(FEW);
    if threads >= enough * FACTOR {
        let remedy =
            format!("Set `threads = {enough}`: more threads only wait for each other, and take memory.");
        return warning(format!("{shares}; so {right} would be enough, and there are {threads}"), remedy);
    }
    if beside_ms > all / 2 {
        return Check::ok(
            NAME,
            format!(
                "{shares}; so {} keep{} a CPU busy, and only more workers would serve more",
                counted(threads, "thread"),
                if threads == 1 { "s" } else { "" }
            ),
        );
    }
    Check::ok(NAME, format!("{shares}; that fits the number of threads, {threads}"))
}

fn warning(what: String, remedy: String) -> Check {
    Check { state: CheckState::Warning, remedy: Some(remedy), ..Check::ok(NAME, what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_for(computed_ms: u64, beside_ms: u64, waited_ms: u64, threads: u64) -> (CheckState, String) {
        let times = RequestTimesReport { requests: ENOUGH, computed_ms, beside_ms, waited_ms };
        let check = advice(&times, threads);
        (check.state, check.what)
    }

    #[test]
    fn requests_that_mostly_wait_need_more_threads() {
        let (state, what) = advice_for(1000, 0, 9000, 3);
        assert_eq!(state, CheckState::Warning);
        let shares = "requests compute for 10% of their time, and wait for something else, such as the database, for 90%";
        assert_eq!(what, format!("{shares}; so 10 threads would be right, and there are 3"));
        let (state, what) = advice_for(1000, 0, 9000, 6);
        assert_eq!((state, what), (CheckState::Ok, format!("{shares}; that fits the number of threads, 6")));
        assert!(advice_for(1, 0, 90_000, 3).1.contains("so 32 or more threads"), "it is limited");
    }

    #[test]
    fn requests_that_compute_need_few() {
        assert_eq!(advice_for(10_000, 0, 100, 3).0, CheckState::Ok, "a few are never too many");
        let (state, what) = advice_for(10_000, 0, 100, 6);
        assert_eq!(state, CheckState::Warning);
        assert!(what.ends_with("so 1 thread would be enough, and there are 6"), "{what}");
    }

    #[test]
    fn what_other_threads_hide_is_not_guessed() {
        // 16 threads, of which one always has the GVL: their requests may compute all the time, or hardly.
        let (state, what) = advice_for(1000, 14_900, 100, 16);
        assert_eq!(state, CheckState::Ok);
        assert!(
            what.ends_with("so 16 threads keep a CPU busy, and only more workers would serve more"),
            "{what}"
        );
        let (state, what) = advice_for(1000, 2000, 4000, 2);
        assert_eq!(state, CheckState::Warning);
        assert!(
            what.contains("(for 29%, another thread of the worker computes); so 5 to 7 threads"),
            "{what}"
        );
    }

    #[test]
    fn a_few_requests_say_nothing() {
        let times =
            RequestTimesReport { requests: ENOUGH - 1, waited_ms: 1000, ..RequestTimesReport::default() };
        assert_eq!(advice(&times, 3).state, CheckState::Ok);
        let nothing = RequestTimesReport { requests: ENOUGH, ..RequestTimesReport::default() };
        assert_eq!(advice(&nothing, 3).state, CheckState::Ok, "requests that take no time");
        let rubbish = RequestTimesReport {
            requests: u64::MAX,
            computed_ms: u64::MAX,
            beside_ms: u64::MAX,
            waited_ms: u64::MAX,
        };
        assert_eq!(advice(&(rubbish + rubbish), 3).state, CheckState::Ok);
    }
}
