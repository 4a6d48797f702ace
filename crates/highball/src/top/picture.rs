//! The content of `highball top` as tables: the applications, their workers, and the requests that these have, oldest first.
//! This file makes text of them, [`super::screen`] lines of a screen.
//!
//! `asking` has already escaped what clients and applications could use to control a terminal.

use super::table::{left, right, Column, Row, Table};
use super::view::requests;
use crate::status::overview::rates::History;
use crate::status::overview::report::{
    AppOverview, DiagnosisOverview, Overview, RequestOverview, WorkerOverview,
};
use crate::status::overview::words::{age, at_most, duration, mib, number, or_dash};
use highball_link::{CompanionProcess, HubReport, KernelLimitsReport, CPU_MAX};
use highball_text::{counted, visible};
use std::fmt::Display;

const APPS: &[Column] = &[
    left("APPLICATION", 20, 0),
    left("STATE", 9, 0),
    right("WORKERS", 7, 6),
    right("BUSY", 7, 5),
    right("QUEUE", 6, 3),
    right("REQ/S", 7, 1),
    right("5XX/S", 6, 1),
    right("P50", 8, 4),
    right("P95", 8, 2),
    right("MEMORY", 9, 7),
];
const WORKERS: &[Column] = &[
    left("WORKER", 24, 0),
    right("PID", 8, 4),
    left("STATE", 10, 0),
    right("GEN", 4, 6),
    right("REQUESTS", 8, 1),
    right("MEMORY", 9, 2),
    right("CPU", 6, 1),
    right("SERVED", 9, 3),
    right("UP", 7, 5),
];
const COMPANIONS: &[Column] = &[
    left("PROCESS", 24, 0),
    right("PID", 8, 2),
    left("STATE", 10, 0),
    right("GEN", 4, 5),
    right("RESTARTS", 8, 3),
    right("MEMORY", 9, 1),
    right("UP", 7, 4),
];
const LIMITS: &[Column] = &[
    left("LIMITS", 20, 0),
    right("MEMORY", 18, 1),
    right("CPUS", 13, 2),
    right("THROTTLED", 10, 3),
    right("OOM KILLS", 10, 4),
];
const HELD: &[Column] = &[
    left("HELD", 20, 0),
    right("WEBSOCKETS", 10, 1),
    right("RESPONSES", 10, 2),
    right("STREAMS", 8, 4),
    right("MESSAGES/S", 10, 3),
    right("SLOW CLOSED", 12, 5),
];

/// Returns the snapshot as text.
pub(super) fn text(history: &History, backtraces: bool) -> String {
    let Some(now) = history.now() else { return String::new() };
    let mut lines = vec![server(history, now), String::new()];
    lines.extend(app_table(history, now).text());
    lines.push(String::new());
    let has_rows = |table: &Table| !table.rows.is_empty();
    let before = [limits_table(history, now), held_table(history, now, usize::MAX).0];
    let workers = worker_table(history, now, usize::MAX).0;
    let companions = Some(companion_table(now, usize::MAX).0).filter(has_rows);
    for table in before.into_iter().filter(has_rows).chain([workers]).chain(companions) {
        lines.extend(table.text());
        lines.push(String::new());
    }
    let all = requests(now);
    lines.push(format!("  {:>9} {:<16} {:<10} {}", "AGE", "WORKER", "STATE", heading(now, all.len())));
    for (app, request) in all {
        let doing = request.doing.as_ref().map(|doing| format!("  – {doing}")).unwrap_or_default();
        let RequestOverview { stage, method, path, .. } = request;
        let worker = at(now, app, request);
        lines.push(format!("  {:>9} {worker:<16} {stage:<10} {method} {path}{doing}", age(request.age_ms)));
        if backtraces {
            let backtrace = request.backtrace.as_deref().unwrap_or("(no backtrace)");
            lines.extend(backtrace.lines().map(|line| format!("            {line}")));
        }
    }
    lines.iter().map(|line| format!("{}\n", visible(line.trim_end()))).collect()
}

fn server(history: &History, now: &Overview) -> String {
    let Overview { version, phase, .. } = now;
    format!("Highball {version} (pid {})  {phase}  {}", now.pid, facts(history, now).join("  "))
}

/// Returns the figures of the server.
pub(super) fn facts(history: &History, now: &Overview) -> [String; 4] {
    let rates = now.apps.iter().map(|app| history.rate(app, |app| app.answered));
    let queue: usize = now.apps.iter().map(|app| app.queue).sum();
    [
        format!("up {}", duration(now.uptime_seconds)),
        counted(now.connections as u64, "connection"),
        format!("{} requests/s", number(rates.sum::<Option<f64>>())),
        format!("{queue} waiting"),
    ]
}

/// Returns what failed and what to do, in a line each.
pub(super) fn cause(diagnosis: &DiagnosisOverview) -> Vec<String> {
    let DiagnosisOverview { cause, summary, place, remedy, command, .. } = diagnosis;
    let place =
        place.as_ref().filter(|place| !summary.contains(*place)).map(|place| format!(" (at {place})"));
    let summary = summary.lines().next().unwrap_or_default();
    let prefix = if cause.is_empty() { String::new() } else { format!("{cause}: ") };
    let to_do = match (remedy, command) {
        (Some(remedy), Some(command)) => Some(format!("{remedy} {command}")),
        (remedy, command) => remedy.clone().or_else(|| command.clone()),
    };
    let first = format!("{prefix}{summary}{}", place.unwrap_or_default());
    std::iter::once(first).chain(to_do.map(|text| format!("What to do: {text}"))).collect()
}

/// Returns a row for each application, failed ones first.
pub(super) fn app_table(history: &History, now: &Overview) -> Table {
    let row = |app: &AppOverview| {
        let serving = app.workers.iter().filter(|worker| worker.state == "serving");
        let threads: usize = serving.clone().map(|worker| usize::from(worker.threads)).sum();
        let busy: usize = app.workers.iter().map(|worker| worker.in_flight).sum();
        let memory: u64 = app.workers.iter().filter_map(|worker| worker.memory_bytes).sum();
        let quantile = |share| history.quantile_ms(app, share).map_or_else(|| "–".into(), at_most);
        let note = app.diagnosis.as_ref().and_then(|diagnosis| cause(diagnosis).into_iter().next());
        let cells = vec![
            app.name.clone(),
            app.phase.clone(),
            format!("{}/{}", serving.count(), app.workers_wanted),
            format!("{busy}/{threads}"),
            app.queue.to_string(),
            number(history.rate(app, |app| app.answered)),
            number(history.rate(app, |app| app.errors)),
            quantile(0.5),
            quantile(0.95),
            mib((memory > 0).then_some(memory)),
        ];
        Row { cells, note: note.or_else(|| app.under_way.clone()).unwrap_or_default() }
    };
    Table { columns: APPS, rows: now.failed_first().into_iter().map(row).collect() }
}

/// Returns a row for each application with hard limits, with its use of them.
pub(super) fn limits_table(history: &History, now: &Overview) -> Table {
    let limited = now.apps.iter().filter_map(|app| Some((app, app.kernel_limits.as_ref()?)));
    let row = |(app, limits): (&AppOverview, &KernelLimitsReport)| {
        let unknown = || "–".into();
        let memory = limits.memory_max_bytes.map_or_else(unknown, |most| {
            format!("{} of {} MiB", or_dash(limits.memory_bytes.map(|bytes| bytes >> 20)), most >> 20)
        });
        let cpu = limits.cpu_max.map_or_else(unknown, |most| {
            let used = history.cpus(app).filter(|_| limits.keeps(CPU_MAX));
            format!("{} of {most}", or_dash(used.map(|used| format!("{used:.1}"))))
        });
        let throttled = history.throttled_percent(app).filter(|_| limits.keeps(CPU_MAX));
        let throttled = or_dash(throttled.map(|percent| format!("{percent:.0}%")));
        let kills = or_dash(limits.memory_max_bytes.map(|_| limits.oom_kills));
        let not_kept = limits.not_kept.join(", ");
        let note = if not_kept.is_empty() { not_kept } else { format!("not enforced: {not_kept}") };
        Row { cells: vec![app.name.clone(), memory, cpu, throttled, kills], note }
    };
    Table { columns: LIMITS, rows: limited.map(row).collect() }
}

/// Returns a row for each application that holds responses or WebSockets, those with the most first; and how many are left out.
pub(super) fn held_table(history: &History, now: &Overview, room: usize) -> (Table, usize) {
    let mut all: Vec<_> = now.apps.iter().filter_map(|app| Some((app, app.hub_in_use()?))).collect();
    all.sort_by_key(|(_, hub)| std::cmp::Reverse(hub.held + hub.cable_clients));
    let left_out = cut_to(room, &mut all);
    let row = |(app, hub): &(&AppOverview, &HubReport)| Row {
        cells: vec![
            app.name.clone(),
            hub.cable_clients.to_string(),
            hub.held.to_string(),
            hub.streams.to_string(),
            number(history.rate(app, AppOverview::published)),
            hub.slow_closed.to_string(),
        ],
        note: String::new(),
    };
    (Table { columns: HELD, rows: all.iter().map(row).collect() }, left_out)
}

/// Returns a row for each worker, and how many are left out. If there is no room for all, the busiest come first.
pub(super) fn worker_table(history: &History, now: &Overview, room: usize) -> (Table, usize) {
    let mut all: Vec<(&AppOverview, &WorkerOverview)> =
        now.apps.iter().flat_map(|app| app.workers.iter().map(move |worker| (app, worker))).collect();
    let left_out = all.len().saturating_sub(room);
    if left_out > 0 {
        all.sort_by_key(|(_, worker)| std::cmp::Reverse(worker.in_flight));
        all.truncate(room);
    }
    let row = |(app, worker): &(&AppOverview, &WorkerOverview)| Row {
        cells: vec![
            name_of(now, app, &worker.worker),
            or_dash(worker.pid),
            worker.state.clone(),
            worker.generation.to_string(),
            format!("{}/{}", worker.in_flight, worker.threads),
            mib(worker.memory_bytes),
            or_dash(history.cpu_percent(app, worker).map(|share| format!("{share:.0}%"))),
            worker.served.to_string(),
            duration(worker.uptime_seconds),
        ],
        note: worker.replaced_for.as_ref().map(|why| format!("is replaced: {why}")).unwrap_or_default(),
    };
    (Table { columns: WORKERS, rows: all.iter().map(row).collect() }, left_out)
}

/// One row for each process beside the workers, those first that are in a crash loop; and how many are left out.
pub(super) fn companion_table(now: &Overview, room: usize) -> (Table, usize) {
    let mut all: Vec<(&AppOverview, &CompanionProcess)> =
        now.apps.iter().flat_map(|app| app.companions.iter().map(move |one| (app, one))).collect();
    all.sort_by_key(|(_, one)| one.crash_loop.is_none());
    let left_out = cut_to(room, &mut all);
    let row = |(app, one): &(&AppOverview, &CompanionProcess)| Row {
        cells: vec![
            name_of(now, app, &one.name),
            or_dash(one.pid),
            one.state.clone(),
            or_dash(one.generation),
            one.restarts.to_string(),
            mib(one.memory_bytes),
            or_dash(one.uptime_seconds.map(duration)),
        ],
        note: one.crash_loop.map(|ends| format!("crash loop: ended {ends} times")).unwrap_or_default(),
    };
    (Table { columns: COMPANIONS, rows: all.iter().map(row).collect() }, left_out)
}

/// Leaves out what there is no room for. Returns how many that are.
fn cut_to<T>(room: usize, all: &mut Vec<T>) -> usize {
    let left_out = all.len().saturating_sub(room);
    all.truncate(room);
    left_out
}

/// `REQUEST (200, 100 younger ones left out)`
pub(super) fn heading(now: &Overview, listed: usize) -> String {
    let more: usize = now.apps.iter().map(|app| app.more_requests).sum();
    let more = if more > 0 { format!(", {more} younger ones left out") } else { String::new() };
    format!("REQUEST ({listed}{more})")
}

/// Returns the worker of a request, or its application if it has none yet.
pub(super) fn at(now: &Overview, app: &AppOverview, request: &RequestOverview) -> String {
    match (request.worker, &now.apps[..]) {
        (Some(worker), _) => name_of(now, app, &worker),
        (None, [_]) => "–".into(),
        (None, _) => app.name.clone(),
    }
}

/// Returns `shop 3`, or `3` with a single application.
fn name_of(now: &Overview, app: &AppOverview, process: &impl Display) -> String {
    match &now.apps[..] {
        [_] => process.to_string(),
        _ => format!("{} {process}", app.name),
    }
}
