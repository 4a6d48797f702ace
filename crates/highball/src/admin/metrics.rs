//! `/metrics`: what front and supervisor report, for Prometheus. The number of series does not depend on what clients send,
//! and grows with the configuration alone: applications and certificates.

use super::exposition::{Exposition, Format};
use super::heaps::AppHeaps;
use super::limits::limits;
use super::request::Response;
use super::Sources;
use crate::status::kernel_limits;
use crate::status::processes::Taken;
use crate::status::reports;
use highball_config::{AppId, Settings};
use highball_link::{
    AppProcesses, AppRequests, Figures, FrontReport, HubReport, RestartCount, SessionsReport,
    SupervisorReport, Times, TlsReport,
};
use highball_proc::{open_files, open_files_limit, started_at};
use highball_supervisor::WORKER_STATES;
use highball_trace::SpanCounts;
use std::collections::BTreeMap;
use tokio::task::spawn_blocking;

/// The phases of an application.
const PHASES: [&str; 8] =
    ["booting", "failed", "serving", "asleep", "stuck", "crashing", "draining", "ending"];

/// An application, as front and supervisor report it.
struct App<'a> {
    name: String,
    load: &'a AppRequests,
    report: Option<&'a AppProcesses>,
    /// Its phase, if the supervisor reports it.
    phase: Option<&'a str>,
}

/// Everything, or 503 where the front does not answer. In the format OpenMetrics, times have requests as examples.
pub(super) async fn metrics(sources: &Sources, open_metrics: bool) -> Response {
    let Some(front) = sources.front().await else {
        return Response::text(503, "the event loop of the server does not answer\n");
    };
    let supervisor = sources.supervisor().await;
    let settings = sources.configuration.now();
    let of_apps = supervisor.as_ref().map(|report| &*report.apps).unwrap_or_default();
    fn named<'a>(load: &'a AppRequests, settings: &Settings, of_apps: &'a [AppProcesses]) -> Option<App<'a>> {
        let name = settings.app(load.app)?.name.clone();
        let report = of_apps.iter().find(|report| report.id == load.app);
        let phase = report.map(|report| reports::phase(report, Some(load), settings.admin.stuck_after));
        Some(App { name, load, report, phase })
    }
    let apps: Vec<App<'_>> = front.apps.iter().filter_map(|load| named(load, &settings, of_apps)).collect();
    let taken = sources.processes.of(pids(supervisor.as_ref())).await;
    let mut text = Exposition::new(if open_metrics { Format::OpenMetrics } else { Format::Prometheus });
    requests(&mut text, &front, &apps);
    times(&mut text, &apps);
    load(&mut text, &front, &apps);
    hubs(&mut text, &apps);
    workers(&mut text, &apps);
    rollouts(&mut text, &apps);
    companions(&mut text, &apps);
    memory(&mut text, &apps, &taken);
    let kept = kernel_limits::of(&settings).await;
    let limited = apps.iter().filter_map(|app| Some((&*app.name, kept.get(&app.load.app)?)));
    limits(&mut text, &limited.collect::<Vec<_>>());
    if supervisor.is_some() {
        garbage(&mut text, &apps, &sources.heaps.of(sources.supervisor.upgrade()).await);
    }
    if let Some(tls) = &sources.tls {
        certificates(&mut text, &tls.report());
    }
    if let Some(spans) = &sources.spans {
        traces(&mut text, &spans.counts());
    }
    own(&mut text, &taken);
    own_limits(&mut text).await;
    Response::new(200, text.content_type(), text.text())
}

fn pids(report: Option<&SupervisorReport>) -> Vec<i32> {
    let apps = report.iter().flat_map(|report| &report.apps);
    let pids = apps.flat_map(|app| {
        let workers = app.workers.iter().filter_map(|worker| worker.pid);
        workers.chain(app.mold.iter().filter_map(|mold| mold.pid))
    });
    pids.chain([own_pid()]).collect()
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

fn requests(text: &mut Exposition, front: &FrontReport, apps: &[App<'_>]) {
    let help = "Requests that were answered, by application, method and class of the status; class left: the client left before.";
    let mut family = text.family("highball_http_requests_total", "counter", help);
    for App { name, load, .. } in apps {
        for (method, class, count) in load.figures.requests.iter() {
            family.sample(&[("app", name), ("method", method), ("status", class)], count);
        }
    }
    let help = "Requests for no application, or that could not be read.";
    let mut family = text.family("highball_http_unrouted_requests_total", "counter", help);
    for (method, class, count) in front.server.unrouted.iter() {
        family.sample(&[("method", method), ("status", class)], count);
    }
}

fn times(text: &mut Exposition, apps: &[App<'_>]) {
    type Of = fn(&Figures) -> &Times;
    let families: [(&'static str, &str, Of); 3] = [
        ("highball_http_queue_time_seconds", "Time that requests waited for a worker.", |figures| {
            &figures.queue_time
        }),
        (
            "highball_http_service_time_seconds",
            "Time that workers had requests, to the ends of their answers.",
            |figures| &figures.service_time,
        ),
        (
            "highball_http_first_byte_time_seconds",
            "Time from the head of a request to the beginning of the application's answer.",
            |figures| &figures.first_byte_time,
        ),
    ];
    for (name, help, of) in families {
        let mut family = text.family(name, "histogram", help);
        for App { name, load, .. } in apps {
            family.histogram(&[("app", name)], of(&load.figures));
        }
    }
}

/// A family with one number for each application.
fn each(
    text: &mut Exposition,
    name: &'static str,
    kind: &str,
    help: &str,
    apps: &[App<'_>],
    of: fn(&AppRequests) -> f64,
) {
    let mut family = text.family(name, kind, help);
    for App { name, load, .. } in apps {
        family.sample(&[("app", name)], of(load));
    }
}

fn load(text: &mut Exposition, front: &FrontReport, apps: &[App<'_>]) {
    let help = "Requests refused because the queue was full.";
    each(text, "highball_http_shed_requests_total", "counter", help, apps, |load| load.figures.shed as f64);
    let help = "Requests refused by a rate limit.";
    each(text, "highball_http_rate_limited_requests_total", "counter", help, apps, |load| {
        load.figures.rate_limited as f64
    });
    sessions(text, apps);
    let help = "1 while visitors get the maintenance page instead of the application.";
    each(text, "highball_app_maintenance", "gauge", help, apps, |load| {
        f64::from(u8::from(load.maintenance.is_some()))
    });
    let help = "Requests that wait for a worker.";
    each(text, "highball_queue_length", "gauge", help, apps, |load| load.queue as f64);
    let help = "Requests that workers have begun, or are about to.";
    each(text, "highball_requests_in_flight", "gauge", help, apps, |load| {
        load.workers.iter().map(|worker| worker.in_flight + worker.placed).sum::<usize>() as f64
    });
    let help = "Streaming responses outside of their worker's threads.";
    each(text, "highball_streams", "gauge", help, apps, |load| {
        load.workers.iter().map(|worker| worker.streams).sum::<usize>() as f64
    });
    let help = "Serving threads of the workers that get requests.";
    each(text, "highball_threads", "gauge", help, apps, |load| {
        load.workers.iter().filter(|worker| worker.serves).map(|worker| worker.threads).sum::<usize>() as f64
    });
    let help = "The largest number of serving threads that these workers may have.";
    each(text, "highball_threads_limit", "gauge", help, apps, |load| {
        load.workers.iter().filter(|worker| worker.serves).map(|worker| worker.threads_most).sum::<usize>()
            as f64
    });
    let help = "Time since the application last had a free thread, or ended an answer.";
    each(text, "highball_busy_seconds", "gauge", help, apps, |load| load.busy_for.as_secs_f64());
    text.one("highball_connections", "gauge", "Open connections of clients.", front.server.connections);
    let help = "Open connections that applications have taken over, such as WebSockets.";
    text.one("highball_hijacked_connections", "gauge", help, front.server.hijacked);
    text.one(
        "highball_accepted_connections_total",
        "counter",
        "Connections of clients.",
        front.server.accepted,
    );
    text.one("highball_spool_bytes", "gauge", "Bytes in spool files.", front.server.spool_bytes);
    text.one(
        "highball_buffer_bytes",
        "gauge",
        "Bytes of requests and answers in memory.",
        front.server.buffer_bytes,
    );
}

fn sessions(text: &mut Exposition, apps: &[App<'_>]) {
    let help = "Requests of sessions that stay with their workers.";
    let mut family = text.family("highball_session_requests_total", "counter", help);
    for App { name, load, .. } in apps {
        let SessionsReport { kept, moved, begun } = load.sessions.unwrap_or_default();
        for (outcome, requests) in [("kept", kept), ("moved", moved), ("begun", begun)] {
            family.sample(&[("app", name), ("outcome", outcome)], requests);
        }
    }
}

fn hubs(text: &mut Exposition, apps: &[App<'_>]) {
    type Of = fn(&HubReport) -> u64;
    let families: [(&'static str, &str, &str, Of); 8] = [
        ("highball_held_responses", "gauge", "Responses that are held open for published messages.", |hub| {
            hub.held as u64
        }),
        ("highball_cable_clients", "gauge", "WebSockets of Action Cable that the front holds.", |hub| {
            hub.cable_clients as u64
        }),
        (
            "highball_cable_commands_total",
            "counter",
            "Questions about these that workers got: commands of clients, and ends.",
            |hub| hub.cable_commands,
        ),
        (
            "highball_hub_streams",
            "gauge",
            "Streams of messages that have subscribers or keep messages.",
            |hub| hub.streams as u64,
        ),
        (
            "highball_hub_kept_messages",
            "gauge",
            "Messages that are kept for clients that reconnect.",
            |hub| hub.kept as u64,
        ),
        ("highball_hub_bytes", "gauge", "Memory of streams and kept messages.", |hub| hub.bytes),
        ("highball_hub_messages_total", "counter", "Messages that were published.", |hub| hub.published),
        (
            "highball_held_responses_slow_total",
            "counter",
            "Held responses and WebSockets that ended because their clients were too slow.",
            |hub| hub.slow_closed,
        ),
    ];
    for (name, kind, help, of) in families {
        let mut family = text.family(name, kind, help);
        for App { name, load, .. } in apps {
            family.sample(&[("app", name)], load.hub.as_ref().map_or(0, of));
        }
    }
}

fn workers(text: &mut Exposition, apps: &[App<'_>]) {
    let reports = || apps.iter().filter_map(|app| Some((&*app.name, app.report?)));
    let mut family = text.family("highball_workers", "gauge", "Workers by state.");
    for (name, report) in reports() {
        for state in WORKER_STATES {
            let count = report.workers.iter().filter(|worker| worker.state == state).count();
            family.sample(&[("app", name), ("state", state)], count);
        }
    }
    let mut family = text.family("highball_workers_wanted", "gauge", "Workers that there should be.");
    reports().for_each(|(name, report)| family.sample(&[("app", name)], report.workers_wanted));
    let mut family =
        text.family("highball_app_phase", "gauge", "1 for the phase of the application, 0 for the others.");
    for App { name, phase: now, .. } in apps.iter().filter(|app| app.phase.is_some()) {
        for phase in PHASES {
            family.sample(&[("app", name), ("phase", phase)], u8::from(*now == Some(phase)));
        }
    }
    let help = "Workers that died in the current crash loop; otherwise 0.";
    let mut family = text.family("highball_crash_loop_deaths", "gauge", help);
    reports().for_each(|(name, report)| {
        family.sample(&[("app", name)], report.crash_loop.as_ref().map_or(0, |crashes| crashes.deaths));
    });
    let help = "Number of the version that is served: 1 from the start, larger after each restart.";
    let mut family = text.family("highball_app_generation", "gauge", help);
    reports().for_each(|(name, report)| family.sample(&[("app", name)], report.generation));
    restarts(text, reports());
    let help = "Workers that were replaced because of a request over its time limit, requests that they did not begin, memory, or an operator.";
    let mut family = text.family("highball_worker_replacements_total", "counter", help);
    for (name, report) in reports() {
        for (cause, count) in &report.replaced {
            family.sample(&[("app", name), ("cause", cause)], *count);
        }
    }
    let help = "Workers that became ready.";
    each(text, "highball_worker_starts_total", "counter", help, apps, |load| {
        load.figures.workers_started as f64
    });
    let help =
        "Workers that ended: retired (restarts, reforks, fewer workers), killed on purpose, or crashed.";
    let mut family = text.family("highball_worker_ends_total", "counter", help);
    for App { name, load, .. } in apps {
        let Figures { workers_retired, workers_killed, workers_crashed, .. } = load.figures;
        let causes = [("retired", workers_retired), ("killed", workers_killed), ("crashed", workers_crashed)];
        causes.iter().for_each(|(cause, count)| family.sample(&[("app", name), ("cause", cause)], count));
    }
}

fn companions(text: &mut Exposition, apps: &[App<'_>]) {
    let all = || {
        let reports = apps.iter().filter_map(|app| Some((&*app.name, app.report?)));
        reports.flat_map(|(name, report)| report.companions.iter().map(move |one| (name, one)))
    };
    let help = "1 while the process beside the workers runs, otherwise 0.";
    let mut family = text.family("highball_process_up", "gauge", help);
    all().for_each(|(app, one)| {
        family.sample(&[("app", app), ("process", &one.name)], u8::from(one.state == "running"));
    });
    let help = "Processes beside the workers that were started again after they had ended unasked.";
    let mut family = text.family("highball_process_restarts_total", "counter", help);
    all().for_each(|(app, one)| family.sample(&[("app", app), ("process", &one.name)], one.restarts));
    let help = "Memory of the process beside the workers, with the processes that it has started.";
    let mut family = text.family("highball_process_memory_bytes", "gauge", help);
    for (app, one) in all() {
        if let Some(bytes) = one.memory_bytes {
            family.sample(&[("app", app), ("process", &one.name)], bytes);
        }
    }
}

/// Both versions of applications in a rollout. The counts end with it.
fn rollouts(text: &mut Exposition, apps: &[App<'_>]) {
    let all = || {
        let rollouts = apps.iter().filter_map(|app| Some((&*app.name, app.load.rollout.as_ref()?)));
        rollouts.flat_map(|(name, rollout)| {
            [("old", &rollout.old), ("new", &rollout.new)]
                .map(|(version, report)| (name, rollout, version, report))
        })
    };
    let help = "Share of the visitors that get the new version of a rollout, from 0 to 1.";
    let mut family = text.family("highball_rollout_share", "gauge", help);
    for (app, rollout, version, _) in all() {
        if version == "new" {
            family.sample(&[("app", app)], rollout.share_percent / 100.0);
        }
    }
    let help = "Requests of a rollout's visitors for workers, by the version that the visitor gets.";
    let mut family = text.family("highball_rollout_requests_total", "counter", help);
    for (app, _, version, report) in all() {
        family.sample(&[("app", app), ("version", version)], report.requests);
    }
    let help = "Such requests that were answered with a status of 500 or more.";
    let mut family = text.family("highball_rollout_errors_total", "counter", help);
    for (app, _, version, report) in all() {
        family.sample(&[("app", app), ("version", version)], report.errors);
    }
    let help = "Time from the head of such a request to the first byte of the answer.";
    let mut family = text.family("highball_rollout_first_byte_seconds", "histogram", help);
    for (app, _, version, report) in all() {
        family.histogram(&[("app", app), ("version", version)], &report.figures.first_byte_time);
    }
}

fn restarts<'a>(text: &mut Exposition, reports: impl Iterator<Item = (&'a str, &'a AppProcesses)>) {
    let help = "Rolling restarts that have ended, by what asked for them and their outcome; a failed one leaves the version that was served.";
    let mut family = text.family("highball_restarts_total", "counter", help);
    for (name, report) in reports {
        for RestartCount { asked_by, outcome, count } in &report.restart_counts {
            family.sample(&[("app", name), ("asked_by", asked_by), ("outcome", outcome)], *count);
        }
    }
}

fn memory(text: &mut Exposition, apps: &[App<'_>], taken: &BTreeMap<i32, Taken>) {
    let kinds = |report: &AppProcesses| {
        let molds: Vec<i32> = report.mold.iter().filter_map(|mold| mold.pid).collect();
        [("mold", molds), ("worker", report.workers.iter().filter_map(|worker| worker.pid).collect())]
    };
    type Of = fn(&Taken) -> Option<u64>;
    let families: [(&'static str, &str, Of); 2] = [
        (
            "highball_resident_memory_bytes",
            "Memory of all processes of a kind; what they share counts for each.",
            |taken| Some(taken.figures.resident_bytes),
        ),
        (
            "highball_proportional_memory_bytes",
            "Memory of all processes of a kind; what processes share is divided by their number.",
            |taken| taken.proportional_bytes,
        ),
    ];
    for (family, help, of) in families {
        let mut family = text.family(family, "gauge", help);
        for (name, report) in apps.iter().filter_map(|app| Some((&*app.name, app.report?))) {
            for (kind, pids) in kinds(report) {
                let known: Vec<u64> = pids.iter().filter_map(|pid| of(taken.get(pid)?)).collect();
                if !known.is_empty() {
                    family.sample(&[("app", name), ("kind", kind)], known.iter().sum::<u64>());
                }
            }
        }
    }
}

/// What Ruby's garbage collectors do in the workers.
fn garbage(text: &mut Exposition, apps: &[App<'_>], heaps: &BTreeMap<AppId, AppHeaps>) {
    let known = || apps.iter().filter_map(|app| Some((&*app.name, heaps.get(&app.load.app)?)));
    let help = "Garbage collections in workers, of young objects (minor) and of all objects (major).";
    let mut family = text.family("highball_ruby_gc_total", "counter", help);
    for (name, heap) in known() {
        family.sample(&[("app", name), ("kind", "minor")], heap.minor_collections);
        family.sample(&[("app", name), ("kind", "major")], heap.major_collections);
    }
    let help = "Time that garbage collections in workers have taken.";
    let mut family = text.family("highball_ruby_gc_seconds_total", "counter", help);
    known().for_each(|(name, heap)| family.sample(&[("app", name)], heap.collecting_ms as f64 / 1000.0));
    let help = "Objects that workers have allocated.";
    let mut family = text.family("highball_ruby_allocated_objects_total", "counter", help);
    known().for_each(|(name, heap)| family.sample(&[("app", name)], heap.allocated_objects));
    let help = "Slots of the workers' Ruby heaps: with an object (live), or without one (free).";
    let mut family = text.family("highball_ruby_heap_slots", "gauge", help);
    for (name, heap) in known() {
        family.sample(&[("app", name), ("state", "live")], heap.live_slots);
        family.sample(&[("app", name), ("state", "free")], heap.free_slots);
    }
    let help = "Pages of the workers' Ruby heaps; what processes share counts for each.";
    let mut family = text.family("highball_ruby_heap_bytes", "gauge", help);
    known().for_each(|(name, heap)| family.sample(&[("app", name)], heap.page_bytes));
}

fn certificates(text: &mut Exposition, report: &TlsReport) {
    let help = "When the certificate expires, in seconds since 1970.";
    let mut family = text.family("highball_certificate_expiry_timestamp_seconds", "gauge", help);
    // Several may be for one host, with other kinds of keys: the first to expire counts.
    let mut first: BTreeMap<&str, u64> = BTreeMap::new();
    for certificate in &report.certificates {
        let host = certificate.hosts.first().map_or("", String::as_str);
        let expiry = first.entry(host).or_insert(certificate.expires_at);
        *expiry = certificate.expires_at.min(*expiry);
    }
    first.iter().for_each(|(host, expiry)| family.sample(&[("host", host)], expiry));
    let mut family =
        text.family("highball_tls_handshakes_total", "counter", "TLS handshakes by their outcome.");
    let TlsReport { handshakes, failed_handshakes, slow_handshakes, refused_handshakes, .. } = report;
    let outcomes = [
        ("completed", handshakes),
        ("failed", failed_handshakes),
        ("timed_out", slow_handshakes),
        ("refused", refused_handshakes),
    ];
    outcomes.iter().for_each(|(outcome, count)| family.sample(&[("outcome", outcome)], count));
}

fn traces(text: &mut Exposition, counts: &SpanCounts) {
    let help =
        "Spans of requests: the collector has them (exported), or has not taken them in time (dropped).";
    let mut family = text.family("highball_trace_spans_total", "counter", help);
    family.sample(&[("outcome", "exported")], counts.exported);
    family.sample(&[("outcome", "dropped")], counts.dropped);
    let help = "Spans of requests that wait to be exported.";
    text.one("highball_trace_spans_waiting", "gauge", help, counts.waiting);
}

/// What the kernel knows of this process alone.
async fn own_limits(text: &mut Exposition) {
    let read = || (open_files(), started_at(own_pid()));
    let (open, started) = spawn_blocking(read).await.unwrap_or((None, None));
    if let Some(started) = started {
        let help = "When the server's process started, in seconds since 1970.";
        text.one("process_start_time_seconds", "gauge", help, started);
    }
    if let Some(open) = open {
        text.one("process_open_fds", "gauge", "Open files of the server's process.", open);
    }
    let most = open_files_limit();
    text.one("process_max_fds", "gauge", "The most files that it may open.", most);
}

fn own(text: &mut Exposition, taken: &BTreeMap<i32, Taken>) {
    let mut family = text.family("highball_build_info", "gauge", "The version of Highball.");
    family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let Some(Taken { figures, .. }) = taken.get(&own_pid()) else { return };
    let cpu_seconds = figures.cpu_ms as f64 / 1000.0;
    text.one("process_cpu_seconds_total", "counter", "Processor time of the server's process.", cpu_seconds);
    text.one(
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory of the server's process.",
        figures.resident_bytes,
    );
    text.one(
        "process_virtual_memory_bytes",
        "gauge",
        "Mapped memory of the server's process.",
        figures.virtual_bytes,
    );
    text.one("process_threads", "gauge", "Threads of the server's process.", figures.threads);
}
