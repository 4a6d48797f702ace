//! `/livez` (does the server's event loop run?) and `/readyz` (should it get requests?).
//!
//! A server is ready when each of its applications has come up or failed for the first time, and one of them can answer.
//! So one application that fails or is stuck does not take the others from their clients; `/readyz/NAME` is about one.

use super::request::{Request, Response};
use super::Sources;
use highball_link::{AppRequests, FrontReport};
use highball_text::json;
use serde::Serialize;
use std::time::Duration;

/// How the server is.
#[derive(Debug, Serialize)]
struct Health {
    /// `live`, `ready` or `not ready`.
    status: &'static str,
    /// Why it is not ready, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    apps: Vec<AppHealth>,
}

/// How an application is.
#[derive(Debug, Serialize)]
pub(super) struct AppHealth {
    pub(super) name: String,
    /// `serving`, `booting`, `failed`, `asleep`, `stuck` or `crashing`.
    state: &'static str,
    is_ready: bool,
    workers: usize,
    threads: usize,
    busy_threads: usize,
    /// Requests that wait for a worker.
    queue: usize,
    /// Time since it last had a free thread, or ended an answer.
    busy_seconds: f64,
}

/// Whether the event loop of the front runs. The applications do not count, but are named.
pub(super) async fn live(sources: &Sources, request: &Request) -> Response {
    match sources.front().await {
        Some(report) => {
            let health = Health { status: "live", why: None, apps: apps(sources, &report) };
            health.response(200, request)
        }
        None => stuck_front(request),
    }
}

/// Whether the server, or this application, should get requests.
pub(super) async fn ready(sources: &Sources, request: &Request, name: Option<&str>) -> Response {
    let Some(report) = sources.front().await else { return stuck_front(request) };
    let mut apps = apps(sources, &report);
    if let Some(name) = name {
        apps.retain(|app| app.name == name);
        if apps.is_empty() {
            return Response::text(404, "there is no such application\n");
        }
    }
    let why = why_not(report.server.is_stopping, &apps);
    let (code, status) = if why.is_none() { (200, "ready") } else { (503, "not ready") };
    Health { status, why, apps }.response(code, request)
}

fn stuck_front(request: &Request) -> Response {
    let why = Some("the event loop of the server does not answer".to_owned());
    Health { status: "not live", why, apps: Vec::new() }.response(503, request)
}

/// Why the server should get no requests, or these applications should not.
pub(super) fn why_not(is_stopping: bool, apps: &[AppHealth]) -> Option<String> {
    let those = |state| {
        let names: Vec<&str> =
            apps.iter().filter(|app| app.state == state && !app.is_ready).map(|app| &*app.name).collect();
        (!names.is_empty()).then(|| format!("{state}: {}", names.join(", ")))
    };
    if is_stopping {
        return Some("stopping".into());
    }
    those("booting").or_else(|| {
        let is_ready = apps.iter().any(|app| app.is_ready);
        let why = ["failed", "stuck", "crashing"].into_iter().filter_map(those);
        (!is_ready).then(|| why.collect::<Vec<_>>().join("; "))
    })
}

/// All applications.
pub(super) fn apps(sources: &Sources, report: &FrontReport) -> Vec<AppHealth> {
    let settings = sources.configuration.now();
    let named = |load: &AppRequests| {
        let app = settings.app(load.app)?;
        Some(AppHealth::of(app.name.clone(), load, settings.admin.stuck_after))
    };
    report.apps.iter().filter_map(named).collect()
}

impl AppHealth {
    fn of(name: String, load: &AppRequests, stuck_after: Option<Duration>) -> AppHealth {
        let (state, is_ready) = load.state(stuck_after);
        let serving = || load.workers.iter().filter(|worker| worker.serves);
        AppHealth {
            name,
            state,
            is_ready,
            workers: serving().count(),
            threads: serving().map(|worker| worker.threads).sum(),
            busy_threads: serving().map(|worker| worker.in_flight).sum(),
            queue: load.queue,
            busy_seconds: load.busy_for.as_secs_f64(),
        }
    }

    fn line(&self) -> String {
        let AppHealth { name, state, workers, threads, busy_threads, queue, busy_seconds, .. } = self;
        let since = match *state {
            "stuck" if *busy_seconds > 0.0 => {
                format!(": no thread was free and no request answered for {busy_seconds:.1} s")
            }
            "crashing" => ": its workers die soon after they were started".into(),
            _ => String::new(),
        };
        format!(
            "{name}: {state}{since}; workers: {workers}, threads: {threads}, busy: {busy_threads}, waiting requests: {queue}\n"
        )
    }
}

impl Health {
    fn response(&self, code: u16, request: &Request) -> Response {
        if request.wants_json {
            return Response::new(code, "application/json", json::compact(self) + "\n");
        }
        let why = self.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let apps: String = self.apps.iter().map(AppHealth::line).collect();
        Response::text(code, format!("{}{why}\n{apps}", self.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_link::Availability;

    fn app(availability: Availability, has_served: bool, busy_seconds: u64) -> AppHealth {
        let busy_for = Duration::from_secs(busy_seconds);
        let requests = AppRequests { availability, has_served, busy_for, ..AppRequests::default() };
        AppHealth::of("a".into(), &requests, Some(Duration::from_secs(15)))
    }

    #[test]
    fn one_that_boots_for_the_first_time_keeps_the_server_from_being_ready() {
        let serving = || app(Availability::Serving, true, 0);
        assert_eq!(why_not(false, &[serving()]), None);
        let booting = why_not(false, &[serving(), app(Availability::Booting, false, 0)]);
        assert_eq!(booting.as_deref(), Some("booting: a"));
        assert_eq!(why_not(false, &[serving(), app(Availability::Booting, true, 0)]), None);
        assert_eq!(why_not(true, &[serving()]).as_deref(), Some("stopping"));
    }

    #[test]
    fn one_of_several_that_fails_or_is_stuck_does_not_matter_to_the_others() {
        let failed = || app(Availability::Failed, true, 0);
        let stuck = || app(Availability::Serving, true, 15);
        assert_eq!(why_not(false, &[failed(), stuck(), app(Availability::Asleep, false, 0)]), None);
        assert_eq!(why_not(false, &[failed(), stuck()]).as_deref(), Some("failed: a; stuck: a"));
        assert_eq!(why_not(false, &[app(Availability::Booting, true, 15)]).as_deref(), Some("stuck: a"));
        assert_eq!(why_not(false, &[app(Availability::Stuck, true, 0)]).as_deref(), Some("stuck: a"));
        let crashing = || app(Availability::Crashing, true, 0);
        assert_eq!(why_not(false, &[crashing(), app(Availability::Serving, true, 0)]), None);
        assert_eq!(why_not(false, &[crashing(), failed()]).as_deref(), Some("failed: a; crashing: a"));
    }
}
