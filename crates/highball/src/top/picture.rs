//! What is shown: the server, its applications, their workers, and the requests that these are at, oldest first.
//!
//! Everything that comes from clients and applications has lost what a terminal obeys before it comes here (`asking`).

use super::rates::History;
use super::terminal::{Line, Size, Style};
use crate::control::actions::AppAction;
use crate::status::overview::report::{AppOverview, Overview, RequestOverview, WorkerOverview};
use highball_link::{KernelLimitsReport, CPU_MAX};
use highball_text::{cut_line, visible};
use std::time::Instant;

/// The share of the rows that workers may have.
const ROWS_PER_ROW_OF_WORKERS: usize = 3;
/// Lines of a text that is not on a screen.
const LONG: usize = 120;

/// A request, as it is found again in the next report.
type RequestId = (u32, Option<u32>, Option<String>);

/// What is chosen and asked.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The request that is chosen.
    pub(super) selected: Option<RequestId>,
    /// Its backtrace is shown.
    pub(super) is_open: bool,
    /// The application for `r`, `+` and `-`: its place among all.
    app: usize,
    pub(super) confirmation: Option<Confirmation>,
    /// The outcome of an order, and until when it is shown.
    pub(super) notice: Option<(String, Instant)>,
    /// Why the picture does not follow, if so.
    pub(super) problem: Option<String>,
}

/// An order that waits for `y`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Confirmation {
    pub(super) app: u32,
    pub(super) action: AppAction,
    question: String,
}

impl View {
    /// Chooses the request that is this many rows below the one that is chosen.
    pub(super) fn select(&mut self, now: &Overview, rows: isize) {
        let all: Vec<RequestId> = requests(now).into_iter().map(|(app, request)| id(app, request)).collect();
        let place = self.selected.as_ref().and_then(|selected| all.iter().position(|id| id == selected));
        let next =
            place.map_or(0, |place| place.saturating_add_signed(rows)).min(all.len().saturating_sub(1));
        self.selected = all.into_iter().nth(next);
    }

    pub(super) fn choose_next_app(&mut self, now: &Overview) {
        self.app = (self.app + 1) % now.apps.len().max(1);
    }

    fn request<'a>(&self, now: &'a Overview) -> Option<(&'a AppOverview, &'a RequestOverview)> {
        let selected = self.selected.as_ref()?;
        requests(now).into_iter().find(|(app, request)| id(app, request) == *selected)
    }
}

/// The order that a key stands for, as a question.
pub(super) fn confirmation(letter: char, now: &Overview, view: &View) -> Option<Confirmation> {
    let app = now.apps.get(view.app).or_else(|| now.apps.first())?;
    let of_app = |action, question: String| Some(Confirmation { app: app.id, action, question });
    match letter {
        'r' => of_app(AppAction::Restart, format!("Restart {}?", app.name)),
        'f' => of_app(AppAction::Refork, format!("Refork {}?", app.name)),
        '+' | '=' => of_app(AppAction::MoreWorkers, format!("One worker more for {}?", app.name)),
        '-' => of_app(AppAction::FewerWorkers, format!("One worker fewer for {}?", app.name)),
        'k' => {
            let (app, request) = view.request(now)?;
            let worker = request.worker?;
            let question = format!(
                "Replace the worker of {} {}? (worker {worker} of {}; its other requests finish)",
                request.method, request.path, app.name
            );
            Some(Confirmation { app: app.id, action: AppAction::ReplaceWorker { worker }, question })
        }
        _ => None,
    }
}

fn id(app: &AppOverview, request: &RequestOverview) -> RequestId {
    (app.id, request.worker, request.ticket.clone())
}

/// Those of all applications, oldest first.
fn requests(now: &Overview) -> Vec<(&AppOverview, &RequestOverview)> {
    let mut all: Vec<_> =
        now.apps.iter().flat_map(|app| app.requests.iter().map(move |request| (app, request))).collect();
    all.sort_by_key(|(_, request)| std::cmp::Reverse(request.age_ms));
    all
}

/// The picture, as it is printed.
pub(super) fn text(history: &History, backtraces: bool) -> String {
    let Some(now) = history.now() else { return String::new() };
    let mut lines = vec![server(history, now), String::new()];
    lines.extend(apps(history, now, None));
    lines.push(String::new());
    lines.extend(limits(history, now));
    lines.extend(workers(history, now, usize::MAX));
    lines.push(String::new());
    let all = requests(now);
    lines.push(heading(now, &all));
    for (app, request) in all {
        lines.push(row(now, app, request));
        if backtraces {
            let backtrace = request.backtrace.as_deref().unwrap_or("(no backtrace)");
            lines.extend(backtrace.lines().map(|line| format!("            {line}")));
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The picture, for a screen of this size.
pub(super) fn screen(history: &History, view: &mut View, size: Size) -> Vec<Line> {
    let Some(now) = history.now() else {
        let text = view.problem.clone().unwrap_or_else(|| "asking the server…".into());
        return vec![line(text, Style::Plain)];
    };
    if view.request(now).is_none() {
        // It has ended.
        view.selected = None;
        view.is_open = false;
        view.select(now, 0);
    }
    let last = last_line(view);
    let mut lines = vec![line(server(history, now), Style::Title), line(String::new(), Style::Plain)];
    if view.is_open {
        lines.extend(open_request(now, view, size));
    } else {
        let heads = |rows: Vec<String>| {
            let styled = rows.into_iter().enumerate();
            styled.map(|(row, text)| line(text, if row == 0 { Style::Soft } else { Style::Plain }))
        };
        lines.extend(heads(apps(history, now, Some(view.app))));
        lines.push(line(String::new(), Style::Plain));
        lines.extend(heads(limits(history, now)));
        lines.extend(heads(workers(history, now, size.rows / ROWS_PER_ROW_OF_WORKERS)));
        lines.push(line(String::new(), Style::Plain));
        let room = size.rows.saturating_sub(lines.len() + 2);
        lines.extend(request_rows(now, view, room));
    }
    lines.truncate(size.rows.saturating_sub(1));
    lines.resize(size.rows.saturating_sub(1), line(String::new(), Style::Plain));
    lines.push(last);
    lines
        .into_iter()
        .map(|line| Line { text: cut_line(&line.text, size.columns).into_owned(), ..line })
        .collect()
}

fn line(text: String, style: Style) -> Line {
    Line { text: visible(&text).into_owned(), style }
}

/// What is asked, what has come of an order, or the keys.
fn last_line(view: &mut View) -> Line {
    view.notice.take_if(|(_, until)| *until <= Instant::now());
    if let Some(Confirmation { question, .. }) = &view.confirmation {
        line(format!("(y/n) {question}"), Style::Selected)
    } else if let Some(problem) = &view.problem {
        line(problem.clone(), Style::Warning)
    } else if let Some((notice, _)) = &view.notice {
        line(notice.clone(), Style::Warning)
    } else {
        let keys = "q quit  ↑↓ request  ⏎ backtrace  k replace its worker  Tab application  r restart  f refork  +/- workers";
        line(keys.into(), Style::Soft)
    }
}

fn request_rows(now: &Overview, view: &View, room: usize) -> Vec<Line> {
    let all = requests(now);
    let place = all.iter().position(|(app, request)| view.selected == Some(id(app, request)));
    let first = place.map_or(0, |place| (place + 1).saturating_sub(room));
    let mut lines = vec![line(heading(now, &all), Style::Soft)];
    for (index, (app, request)) in all.iter().enumerate().skip(first).take(room) {
        let style = if Some(index) == place { Style::Selected } else { Style::Plain };
        lines.push(line(row(now, app, request), style));
    }
    lines
}

/// The request that is chosen, with its backtrace.
fn open_request(now: &Overview, view: &View, size: Size) -> Vec<Line> {
    let Some((app, request)) = view.request(now) else { return Vec::new() };
    let RequestOverview { method, path, client, stage, body_bytes, answer_bytes, .. } = request;
    let pid = app.workers.iter().find(|worker| Some(worker.worker) == request.worker);
    let pid = pid.and_then(|worker| worker.pid).map_or_else(|| "–".into(), |pid| pid.to_string());
    let worker = request.worker.map_or_else(|| "none yet".into(), |worker| format!("{worker} (pid {pid})"));
    let facts = [
        ("request", format!("{method} {path}")),
        ("application", app.name.clone()),
        ("client", client.clone().unwrap_or_default()),
        ("worker", worker),
        ("age", age(request.age_ms)),
        ("state", stage.clone()),
        ("does", request.doing.clone().unwrap_or_else(|| "not known".into())),
        ("bytes", format!("{body_bytes} received, {answer_bytes} answered")),
    ];
    let mut lines: Vec<Line> =
        facts.iter().map(|(name, value)| line(format!("{name:<12} {value}"), Style::Plain)).collect();
    lines.push(line(String::new(), Style::Plain));
    let none = "(no backtrace: its worker does not answer, or has not begun it)";
    let backtrace = request.backtrace.as_deref().unwrap_or(none);
    let wrapped = backtrace.lines().flat_map(|text| wrap(text, size.columns));
    lines.extend(wrapped.map(|text| line(text, Style::Plain)));
    lines
}

fn server(history: &History, now: &Overview) -> String {
    let Overview { pid, version, phase, connections, .. } = now;
    let rates = now.apps.iter().map(|app| history.rate(app, |app| app.answered));
    let per_second = number(rates.sum::<Option<f64>>());
    let queue: usize = now.apps.iter().map(|app| app.queue).sum();
    format!(
        "Highball {version} (pid {pid})  {phase}  up {}  {connections} connections  {per_second} requests/s  {queue} waiting",
        duration(now.uptime_seconds)
    )
}

/// One row each; `chosen` is marked.
fn apps(history: &History, now: &Overview, chosen: Option<usize>) -> Vec<String> {
    let title = format!(
        "  {:<20} {:<10} {:>7} {:>7} {:>6} {:>8} {:>6} {:>8} {:>8}",
        "APPLICATION", "STATE", "WORKERS", "BUSY", "QUEUE", "REQ/S", "5XX/S", "P50", "P95"
    );
    let row = |(place, app): (usize, &AppOverview)| {
        let serving = app.workers.iter().filter(|worker| worker.state == "serving");
        let threads: usize = serving.clone().map(|worker| usize::from(worker.threads)).sum();
        let busy: usize = app.workers.iter().map(|worker| worker.in_flight).sum();
        let mark = if chosen == Some(place) && now.apps.len() > 1 { '▸' } else { ' ' };
        let workers = format!("{}/{}", serving.count(), app.workers_wanted);
        let milliseconds = |share| history.quantile_ms(app, share).map_or_else(|| "–".into(), milliseconds);
        format!(
            "{mark} {:<20} {:<10} {workers:>7} {:>7} {:>6} {:>8} {:>6} {:>8} {:>8}  {}",
            cut_line(&app.name, 20),
            app.phase,
            format!("{busy}/{threads}"),
            app.queue,
            number(history.rate(app, |app| app.answered)),
            number(history.rate(app, |app| app.failed)),
            milliseconds(0.5),
            milliseconds(0.95),
            app.under_way.as_deref().or(app.crash_loop.as_deref()).unwrap_or_default()
        )
    };
    std::iter::once(title).chain(now.apps.iter().enumerate().map(row)).collect()
}

/// What the kernel keeps applications within, and what they use of it: one row for each that has such limits, and an empty one.
fn limits(history: &History, now: &Overview) -> Vec<String> {
    let limited = now.apps.iter().filter_map(|app| Some((app, app.kernel_limits.as_ref()?)));
    let row = |(app, limits): (&AppOverview, &KernelLimitsReport)| {
        let unknown = || "–".into();
        let memory = limits.memory_max_bytes.map_or_else(unknown, |most| {
            let used = limits.memory_bytes.map_or_else(unknown, |bytes| (bytes >> 20).to_string());
            format!("{used} of {} MiB", most >> 20)
        });
        let cpu = limits.cpu_max.map_or_else(unknown, |most| {
            let used = history.cpus(app).filter(|_| limits.keeps(CPU_MAX));
            let used = used.map_or_else(unknown, |used| format!("{used:.1}"));
            format!("{used} of {most}")
        });
        let throttled = history.throttled_percent(app).filter(|_| limits.keeps(CPU_MAX));
        let not_kept = limits.not_kept.join(", ");
        let problem = if not_kept.is_empty() { not_kept } else { format!("  not kept: {not_kept}") };
        format!(
            "  {:<20} {memory:>18} {cpu:>13} {:>10} {:>10}{problem}",
            cut_line(&app.name, 20),
            throttled.map_or_else(unknown, |percent| format!("{percent:.0} %")),
            limits.memory_max_bytes.map_or_else(unknown, |_| limits.oom_kills.to_string()),
        )
    };
    let rows: Vec<String> = limited.map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    let title =
        format!("  {:<20} {:>18} {:>13} {:>10} {:>10}", "LIMITS", "MEMORY", "CPUS", "THROTTLED", "OOM KILLS");
    std::iter::once(title).chain(rows).chain([String::new()]).collect()
}

/// One row each, the busiest first where there is no room for all.
fn workers(history: &History, now: &Overview, room: usize) -> Vec<String> {
    let title = format!(
        "  {:<24} {:>8} {:<10} {:>4} {:>8} {:>9} {:>6} {:>9} {:>8}",
        "WORKER", "PID", "STATE", "GEN", "REQUESTS", "MEMORY", "CPU", "SERVED", "UP"
    );
    let mut all: Vec<(&AppOverview, &WorkerOverview)> =
        now.apps.iter().flat_map(|app| app.workers.iter().map(move |worker| (app, worker))).collect();
    let left_out = all.len().saturating_sub(room.max(1));
    if left_out > 0 {
        all.sort_by_key(|(_, worker)| std::cmp::Reverse(worker.in_flight));
        all.truncate(room.max(1));
    }
    let row = |(app, worker): &(&AppOverview, &WorkerOverview)| {
        let why = worker.replaced_for.as_ref().map(|why| format!("  is replaced: {why}"));
        format!(
            "  {:<24} {:>8} {:<10} {:>4} {:>8} {:>9} {:>6} {:>9} {:>8}{}",
            name_of(now, app, worker.worker, 24),
            worker.pid.map_or_else(|| "–".into(), |pid| pid.to_string()),
            worker.state,
            worker.generation,
            format!("{}/{}", worker.in_flight, worker.threads),
            worker.memory_bytes.map_or_else(|| "–".into(), |bytes| format!("{} MiB", bytes >> 20)),
            history.cpu_percent(app, worker).map_or_else(|| "–".into(), |share| format!("{share:.0} %")),
            worker.served,
            duration(worker.uptime_seconds),
            why.unwrap_or_default()
        )
    };
    let mut rows: Vec<String> = std::iter::once(title).chain(all.iter().map(row)).collect();
    if left_out > 0 {
        rows.push(format!("  and {left_out} more"));
    }
    rows
}

fn heading(now: &Overview, all: &[(&AppOverview, &RequestOverview)]) -> String {
    let more: usize = now.apps.iter().map(|app| app.more_requests).sum();
    let more = if more > 0 { format!(", {more} younger ones left out") } else { String::new() };
    format!("  {:>9} {:<16} {:<10} REQUEST ({}{more})", "AGE", "WORKER", "STATE", all.len())
}

fn row(now: &Overview, app: &AppOverview, request: &RequestOverview) -> String {
    let worker = request.worker.map_or_else(|| app_alone(now, app), |worker| name_of(now, app, worker, 16));
    let doing = request.doing.as_ref().map(|doing| format!("  – {doing}")).unwrap_or_default();
    format!(
        "  {:>9} {worker:<16} {:<10} {} {}{doing}",
        age(request.age_ms),
        request.stage,
        request.method,
        request.path
    )
}

/// `shop 3`, or `3` where there is one application.
fn name_of(now: &Overview, app: &AppOverview, worker: u32, room: usize) -> String {
    match &now.apps[..] {
        [_] => worker.to_string(),
        _ => format!("{} {worker}", cut_line(&app.name, room - 6)),
    }
}

fn app_alone(now: &Overview, app: &AppOverview) -> String {
    if now.apps.len() > 1 {
        cut_line(&app.name, 16).into_owned()
    } else {
        "–".into()
    }
}

fn age(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => duration(ms / 1000),
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn number(rate: Option<f64>) -> String {
    match rate {
        None => "–".into(),
        Some(rate) if rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    }
}

fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms.is_infinite() => "> 1 min".into(),
        ms if ms < 1.0 => "< 1 ms".into(),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

/// In lines of this length.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(columns.clamp(20, LONG)).map(|line| line.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(requests: usize) -> Overview {
        let request = |number: usize| RequestOverview {
            worker: Some(1),
            ticket: Some(number.to_string()),
            stage: "running".into(),
            method: "GET".into(),
            path: format!("/{number}"),
            age_ms: 1000 * (number as u64 + 1),
            doing: Some("sleeps".into()),
            backtrace: Some("a.rb:1:in `sleep'\nb.rb:2".into()),
            ..RequestOverview::default()
        };
        let worker =
            WorkerOverview { worker: 1, state: "serving".into(), threads: 3, ..WorkerOverview::default() };
        let app = AppOverview {
            name: "shop".into(),
            workers: vec![worker],
            requests: (0..requests).map(request).collect(),
            ..AppOverview::default()
        };
        Overview { pid: 1, apps: vec![app], ..Overview::default() }
    }

    fn history(requests: usize) -> History {
        let mut history = History::default();
        history.add(overview(requests));
        history
    }

    fn selected(lines: &[Line]) -> Vec<&str> {
        lines.iter().filter(|line| line.style == Style::Selected).map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn the_screen_is_filled_and_never_exceeded() {
        for (columns, rows) in [(80, 24), (20, 5), (1, 1), (200, 60)] {
            let size = Size { columns, rows };
            let lines = screen(&history(100), &mut View::default(), size);
            assert_eq!(lines.len(), rows);
            assert!(lines.iter().all(|line| line.text.chars().count() <= columns), "{lines:?}");
        }
    }

    #[test]
    fn the_oldest_is_chosen_and_the_choice_is_followed() {
        let (size, mut view) = (Size { columns: 100, rows: 24 }, View::default());
        assert!(selected(&screen(&history(100), &mut view, size))[0].contains("GET /99"));
        view.select(&overview(100), 60);
        assert!(selected(&screen(&history(100), &mut view, size))[0].contains("GET /39"));
        // It goes on while others end.
        assert!(selected(&screen(&history(50), &mut view, size))[0].contains("GET /39"));
        assert!(selected(&screen(&history(10), &mut view, size))[0].contains("GET /9"), "it has ended");
        assert!(selected(&screen(&history(0), &mut view, size)).is_empty());
    }

    #[test]
    fn the_backtrace_of_the_request_is_shown() {
        let mut view = View { is_open: true, ..View::default() };
        view.select(&overview(3), 0);
        let lines = screen(&history(3), &mut view, Size { columns: 80, rows: 30 });
        assert!(lines.iter().any(|line| line.text == "a.rb:1:in `sleep'"), "{lines:?}");
        let text = text(&history(3), true);
        assert!(text.contains("– sleeps\n            a.rb:1:in `sleep'\n"), "{text}");
    }

    #[test]
    fn orders_are_confirmed() {
        let (now, mut view) = (overview(2), View::default());
        assert_eq!(confirmation('k', &now, &view), None, "no request is chosen");
        view.select(&now, 0);
        let asked = confirmation('k', &now, &view).unwrap();
        assert_eq!(asked.action, AppAction::ReplaceWorker { worker: 1 });
        assert!(asked.question.contains("GET /1"), "{asked:?}");
        assert_eq!(confirmation('+', &now, &view).unwrap().action, AppAction::MoreWorkers);
        assert_eq!(confirmation('x', &now, &view), None);
    }
}
