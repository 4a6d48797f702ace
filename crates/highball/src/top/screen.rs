//! The layout of a live screen: what matters comes first, and fits at 80×24. Failures are red, with their cause below.

use super::picture::{
    app_table, at, cause, companion_table, facts, heading, held_table, limits_table, worker_table,
};
use super::table::{cut, width, wrap, Row, Table};
use super::view::{id, requests, Confirmation, Panel, View};
use crate::log::has_colours;
use crate::status::overview::rates::History;
use crate::status::overview::report::{AppOverview, DiagnosisOverview, Overview, RequestOverview};
use crate::status::overview::words::{age, or_dash};
use highball_text::visible;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};

/// Smallest screen.
const LEAST: (u16, u16) = (40, 10);
/// Largest share of the screen for applications, and for workers: requests get the rest.
const PART: usize = 3;
/// Ages from which a request counts as old, and as stuck.
const OLD_MS: u64 = 2_000;
const STUCK_MS: u64 = 10_000;
/// Widths of the line of an application's requests.
const LINE_WIDTHS: std::ops::RangeInclusive<usize> = 12..=60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The meaning of a text, which decides its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Title,
    Soft,
    Good,
    Warning,
    Bad,
    Selected,
}

/// The looks of texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Without colors, weights show the same.
    pub(super) is_coloured: bool,
}

impl Look {
    pub(super) fn of_environment() -> Look {
        Look { is_coloured: has_colours() }
    }

    fn of(self, tone: Tone) -> Style {
        let style = Style::new();
        let coloured = |colour| if self.is_coloured { style.fg(colour) } else { style };
        match tone {
            Tone::Plain => style,
            Tone::Title => style.add_modifier(Modifier::BOLD),
            Tone::Soft => style.add_modifier(Modifier::DIM),
            Tone::Good => coloured(Color::Green).add_modifier(Modifier::BOLD),
            Tone::Warning => coloured(Color::Yellow).add_modifier(Modifier::BOLD),
            Tone::Bad if self.is_coloured => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Bad => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Tone::Selected => style.add_modifier(Modifier::REVERSED),
        }
    }

    fn span(self, text: impl AsRef<str>, tone: Tone) -> Span<'static> {
        Span::styled(visible(text.as_ref()).into_owned(), self.of(tone))
    }

    fn line(self, text: impl AsRef<str>, tone: Tone) -> Line<'static> {
        Line::from(self.span(text, tone))
    }
}

/// Draws a screen of this size.
pub(super) fn screen(history: &History, view: &mut View, area: Rect, look: Look) -> Text<'static> {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (least_columns, least_rows) = LEAST;
        let text = format!("This terminal has {columns}×{rows} characters. highball top needs {least_columns}×{least_rows}. q quits.");
        return wrap(&text, columns).iter().map(|text| look.line(text, Tone::Warning)).collect();
    }
    let Some(now) = history.now() else {
        let text = view.problem.clone().unwrap_or_else(|| "asking the server…".into());
        return wrap(&text, columns).iter().map(|text| look.line(text, Tone::Plain)).collect();
    };
    view.settle(now);
    let footer = footer(now, view, columns, look);
    let room = rows.saturating_sub(footer.len() + 2);
    let mut lines = vec![title(history, now, columns, look), Line::default()];
    lines.extend(match view.panel {
        Panel::Lists => lists(&Shown { history, now, look, columns }, view, room),
        panel => {
            let text = match panel {
                Panel::Request => request_texts(now, view),
                Panel::Diagnosis => view.app(now).map(diagnosis_texts).unwrap_or_default(),
                _ => help_texts(),
            };
            scrolled(&text, view, columns, room, look)
        }
    });
    lines.resize(rows.saturating_sub(footer.len()), Line::default());
    lines.extend(footer);
    Text::from(lines)
}

/// What the parts of the lists share.
struct Shown<'a> {
    history: &'a History,
    now: &'a Overview,
    look: Look,
    columns: usize,
}

/// Returns the lines about the server: first whether something has failed.
fn title(history: &History, now: &Overview, columns: usize, look: Look) -> Line<'static> {
    let (state, has_failed) = now.headline();
    let tone = match (has_failed, &*now.phase) {
        (true, _) => Tone::Bad,
        (false, "serving") => Tone::Good,
        (false, _) => Tone::Warning,
    };
    let name = format!("Highball {}", now.version);
    let mut room = columns.saturating_sub(width(&name) + 2 + width(&state));
    let mut spans = vec![look.span(name, Tone::Title), Span::raw("  "), look.span(state, tone)];
    let [up, connections, rate, waiting] = facts(history, now);
    for fact in [waiting, rate, format!("pid {}", now.pid), up, connections] {
        let Some(rest) = room.checked_sub(width(&fact) + 2) else { break };
        room = rest;
        spans.push(look.span(format!("  {fact}"), Tone::Plain));
    }
    Line::from(spans)
}

/// Returns the last line: a question, the outcome of an action, or the keys.
fn footer(now: &Overview, view: &View, columns: usize, look: Look) -> Vec<Line<'static>> {
    let wrapped = |text: &str, tone| -> Vec<_> {
        wrap(text, columns).iter().map(|text| look.line(text, tone)).collect()
    };
    if let Some(Confirmation { question, .. }) = &view.confirmation {
        wrapped(&format!("(y/n) {question}"), Tone::Selected)
    } else if let Some(problem) = &view.problem {
        wrapped(problem, Tone::Bad)
    } else if let Some((notice, _)) = &view.notice {
        wrapped(notice, Tone::Warning)
    } else {
        let is_listed = view.panel == Panel::Lists;
        let keys = [
            ("q quit", true),
            ("? help", true),
            ("⏎ back", !is_listed),
            ("↑↓ scroll", !is_listed),
            ("↑↓ request", is_listed),
            ("⏎ backtrace", is_listed),
            ("d diagnosis", is_listed && now.apps.iter().any(|app| app.diagnosis.is_some())),
            ("Tab application", is_listed && now.apps.len() > 1),
            ("k replace worker", view.request(now).is_some()),
            ("r restart", is_listed),
            ("f refork", is_listed),
            ("+/- workers", is_listed),
        ];
        let mut text = String::new();
        for (key, _) in keys.iter().filter(|(_, is_shown)| *is_shown) {
            let gap = if text.is_empty() { "" } else { "  " };
            if width(&text) + gap.len() + width(key) <= columns {
                text = text + gap + key;
            }
        }
        vec![look.line(text, Tone::Soft)]
    }
}

/// Returns the lines of applications, workers and requests.
fn lists(shown: &Shown<'_>, view: &View, room: usize) -> Vec<Line<'static>> {
    let mut lines = app_lines(shown, view, room / PART);
    lines.push(Line::default());
    let limits = limits_table(shown.history, shown.now);
    if !limits.rows.is_empty() {
        lines.extend(shown.table(&limits, |_| Tone::Plain));
        lines.push(Line::default());
    }
    let room_for_processes = (room / PART).saturating_sub(2).max(1);
    let held = held_table(shown.history, shown.now, (room_for_processes / 2).max(1));
    let companions = companion_table(shown.now, (room_for_processes / 2).max(1));
    let others = [&held, &companions].iter().map(|(table, _)| table.rows.len()).sum::<usize>();
    let others = others + usize::from(!held.0.rows.is_empty()); // its title
    let room_for_workers = room_for_processes.saturating_sub(others).max(1);
    let workers = worker_table(shown.history, shown.now, room_for_workers);
    let [held, companions] =
        [held, companions].map(|of| Some(of).filter(|(table, _)| !table.rows.is_empty()));
    for (table, left_out) in held.into_iter().chain([workers]).chain(companions) {
        lines
            .extend(shown.table(&table, |row| if row.note.is_empty() { Tone::Plain } else { Tone::Warning }));
        if left_out > 0 {
            lines.push(shown.look.line(format!("  and {left_out} more"), Tone::Soft));
        }
        lines.push(Line::default());
    }
    lines.extend(request_lines(shown, view, room.saturating_sub(lines.len())));
    lines
}

/// Returns a line for each application, with the cause below a failed one.
fn app_lines(shown: &Shown<'_>, view: &View, room: usize) -> Vec<Line<'static>> {
    let Shown { history, now, look, columns } = shown;
    let table = app_table(history, now);
    let fitting = table.that_fit(columns - 2);
    let room_for_line = columns.saturating_sub(width(&table.title(&fitting)) + 4);
    let has_line = LINE_WIDTHS.contains(&room_for_line.min(*LINE_WIDTHS.end()));
    let line_title = if has_line { "  REQ/S SO FAR" } else { "" };
    let mut lines = vec![look.line(format!("  {}{line_title}", table.title(&fitting)), Tone::Soft)];
    let all = now.failed_first();
    let chosen = view.app(now).and_then(|app| all.iter().position(|one| one.id == app.id)).unwrap_or(0);
    let mut blocks: Vec<Vec<Line<'static>>> = Vec::new();
    for (place, (app, row)) in all.iter().zip(&table.rows).enumerate() {
        let mark = if place == chosen && all.len() > 1 { "▸ " } else { "  " };
        let tone = if app.has_failed() { Tone::Bad } else { Tone::Plain };
        let mut spans = vec![look.span(format!("{mark}{}", table.row(&fitting, row)), tone)];
        if has_line {
            spans.push(look.span(
                format!("  {}", bars(history.line(app), room_for_line.min(*LINE_WIDTHS.end()))),
                Tone::Good,
            ));
        }
        let mut block = vec![Line::from(spans)];
        block.extend(below(app, *columns, look));
        blocks.push(block);
    }
    // If there is no room for all, those around the chosen one.
    let room = room.max(2).saturating_sub(1);
    let sizes: Vec<usize> = blocks.iter().map(Vec::len).collect();
    let mut first = 0;
    while first < chosen && sizes[first..=chosen].iter().sum::<usize>() > room {
        first += 1;
    }
    let mut last = first;
    let mut taken = 0;
    while last < blocks.len() && (last == first || taken + sizes[last] <= room) {
        taken += sizes[last];
        last += 1;
    }
    let left_out = blocks.len() - (last - first);
    lines.extend(blocks.drain(first..last).flatten());
    if left_out > 0 {
        lines.push(look.line(format!("  and {left_out} more (Tab)"), Tone::Soft));
    }
    lines
}

/// Returns why an application has failed, or what is under way.
fn below(app: &AppOverview, columns: usize, look: &Look) -> Vec<Line<'static>> {
    let indented =
        |text: &str, tone| look.line(format!("    {}", cut(text, columns.saturating_sub(4))), tone);
    match (&app.diagnosis, &app.under_way) {
        (Some(diagnosis), _) => {
            let texts = cause(diagnosis);
            let what = texts.iter().take(1).flat_map(|text| wrap(text, columns.saturating_sub(4))).take(2);
            let what = what.map(|text| indented(&text, Tone::Bad));
            what.chain(texts.iter().skip(1).map(|text| indented(text, Tone::Plain))).collect()
        }
        (None, Some(under_way)) => vec![indented(under_way, Tone::Warning)],
        (None, None) => Vec::new(),
    }
}

/// Returns the last values as bars, from zero to the largest.
fn bars(values: impl DoubleEndedIterator<Item = f64>, room: usize) -> String {
    let last: Vec<f64> = values.rev().take(room).collect();
    let most = last.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |value: &f64| BARS[((value / most * 7.0).round() as usize).min(7)];
    last.iter().rev().map(bar).collect()
}

/// Returns the requests, oldest first, with the chosen one among them.
fn request_lines(shown: &Shown<'_>, view: &View, room: usize) -> Vec<Line<'static>> {
    let Shown { now, look, columns, .. } = shown;
    let all = requests(now);
    let place = all.iter().position(|(app, request)| view.selected == Some(id(app, request)));
    let room = room.saturating_sub(1);
    let first = place.map_or(0, |place| (place + 1).saturating_sub(room));
    let listed = all.iter().enumerate().skip(first).take(room);
    let workers = listed.clone().map(|(_, (app, request))| width(&at(now, app, request)));
    let worker_width = workers.max().unwrap_or(0).clamp(6, 16);
    let title =
        format!("  {:>7} {:<worker_width$} {:<9} {}", "AGE", "WORKER", "STATE", heading(now, all.len()));
    let mut lines = vec![look.line(cut(&title, *columns), Tone::Soft)];
    for (index, (app, request)) in listed {
        let tone = match request.age_ms {
            STUCK_MS.. => Tone::Bad,
            OLD_MS.. => Tone::Warning,
            _ => Tone::Plain,
        };
        let worker = cut(&at(now, app, request), worker_width);
        let head = format!("  {:>7}", age(request.age_ms));
        let middle = format!(
            " {worker}{} {:<9} ",
            " ".repeat(worker_width.saturating_sub(width(&worker))),
            request.stage
        );
        let room = columns.saturating_sub(width(&head) + width(&middle));
        let (what, doing) = request_text(request, room);
        lines.push(if Some(index) == place {
            let text = format!("{head}{middle}{what}{doing}");
            look.line(format!("{text}{}", " ".repeat(columns.saturating_sub(width(&text)))), Tone::Selected)
        } else {
            Line::from(vec![
                look.span(head, tone),
                look.span(middle + &what, Tone::Plain),
                look.span(doing, Tone::Soft),
            ])
        });
    }
    lines
}

/// Returns the request and what its thread does, which has at least half of the room, and what the path leaves. A path that is
/// too long loses its middle.
fn request_text(request: &RequestOverview, room: usize) -> (String, String) {
    let doing = request.doing.as_ref().map(|doing| format!("  – {doing}")).unwrap_or_default();
    let what = format!("{} {}", request.method, request.path);
    let doing = cut(&doing, (room / 2).max(room.saturating_sub(width(&what))));
    let room = room.saturating_sub(width(&doing));
    let letters: Vec<char> = what.chars().collect();
    if width(&what) <= room || letters.len() < room {
        return (cut(&what, room), doing);
    }
    let end = room.saturating_sub(1) / 3;
    let begin: String = letters[..room.saturating_sub(end + 1)].iter().collect();
    let end: String = letters[letters.len() - end..].iter().collect();
    (cut(&format!("{begin}…{end}"), room), doing)
}

/// Returns a text of a panel in lines of the screen.
fn scrolled(
    texts: &[(String, Tone)],
    view: &mut View,
    columns: usize,
    room: usize,
    look: Look,
) -> Vec<Line<'static>> {
    let lines = texts
        .iter()
        .flat_map(|(text, tone)| wrap(&visible(text), columns).into_iter().map(|text| (text, *tone)));
    let lines: Vec<_> = lines.collect();
    view.scrolled = view.scrolled.min(lines.len().saturating_sub(room));
    let shown = lines.iter().skip(view.scrolled).take(room);
    shown.map(|(text, tone)| look.line(text, *tone)).collect()
}

/// Returns the panel of the chosen request, with its backtrace.
fn request_texts(now: &Overview, view: &View) -> Vec<(String, Tone)> {
    let Some((app, request)) = view.request(now) else { return Vec::new() };
    let RequestOverview { method, path, client, stage, body_bytes, answer_bytes, .. } = request;
    let pid = app.workers.iter().find(|worker| Some(worker.worker) == request.worker);
    let pid = or_dash(pid.and_then(|worker| worker.pid));
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
    let facts = facts.iter().map(|(name, value)| (format!("{name:<12} {value}"), Tone::Plain));
    let none = "(no backtrace: its worker does not answer, or has not begun it)";
    let backtrace = request.backtrace.as_deref().unwrap_or(none);
    let backtrace = backtrace.lines().map(|line| (line.to_owned(), Tone::Plain));
    facts.chain([(String::new(), Tone::Plain)]).chain(backtrace).collect()
}

/// Returns the panel with the cause of a failure, as far as the server reports it here.
fn diagnosis_texts(app: &AppOverview) -> Vec<(String, Tone)> {
    let Some(DiagnosisOverview { cause, summary, place, source, remedy, command }) = &app.diagnosis else {
        return Vec::new();
    };
    let mut texts =
        vec![(format!("{} ({})", app.name, app.phase), Tone::Title), (String::new(), Tone::Plain)];
    let cause = if cause.is_empty() { String::new() } else { format!("{cause}: ") };
    texts.extend(format!("{cause}{summary}").lines().map(|line| (line.to_owned(), Tone::Bad)));
    let mut add = |text: String| texts.push((text, Tone::Plain));
    place.iter().for_each(|place| add(format!("at {place}")));
    add(String::new());
    source.iter().flat_map(|source| source.lines()).for_each(|line| add(line.into()));
    add(String::new());
    remedy.iter().for_each(|remedy| add(format!("What to do: {remedy}")));
    command.iter().for_each(|command| add(format!("    {command}")));
    add(String::new());
    add(format!("`highball status {}` shows everything that is known.", app.name));
    texts
}

fn help_texts() -> Vec<(String, Tone)> {
    const HELP: &str = "\
Keys
  ↑ ↓ PgUp PgDn   choose a request; scroll a backtrace
  ⏎               show the request's backtrace, client and worker; ⏎ or Esc goes back
  k               replace the request's worker: another one starts first
  Tab             choose an application (marked ▸)
  d               show why the application failed
  r  f            restart the application, refork it
  +  -            one worker more, one worker fewer
  q               quit; Ctrl-Z stops, and fg continues
Every action asks for confirmation: y.

Columns
  BUSY            threads that have a request, of all threads
  QUEUE           requests that wait for a worker
  P50 P95         half of the answers, 95 % of them, began within this time
  GEN             version of the application that a worker runs
  SLOW CLOSED     clients that were too slow for their messages, so far
Requests are yellow after 2 s and red after 10 s.";
    HELP.lines()
        .map(|line| (line.to_owned(), if line.starts_with(' ') { Tone::Plain } else { Tone::Title }))
        .collect()
}

impl Shown<'_> {
    /// Returns a table. A note follows its row if there is room, otherwise it is below.
    fn table(&self, table: &Table, tone: impl Fn(&Row) -> Tone) -> Vec<Line<'static>> {
        let fitting = table.that_fit(self.columns - 2);
        let mut lines = vec![self.look.line(format!("  {}", table.title(&fitting)), Tone::Soft)];
        for row in &table.rows {
            let text = format!("  {}", table.row(&fitting, row));
            let is_beside = width(&text) + 2 + width(&row.note) <= self.columns;
            let beside = if is_beside { format!("{text}  {}", row.note) } else { text };
            lines.push(self.look.line(beside, tone(row)));
            if !is_beside && !row.note.is_empty() {
                lines.push(
                    self.look
                        .line(format!("    {}", cut(&row.note, self.columns.saturating_sub(4))), tone(row)),
                );
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::actions::AppAction;
    use crate::status::overview::report::WorkerOverview;
    use crate::top::view::confirmation;
    use highball_link::{CompanionProcess, HubReport};

    const PLAIN: Look = Look { is_coloured: false };

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
            phase: "serving".into(),
            workers: vec![worker],
            requests: (0..requests).map(request).collect(),
            ..AppOverview::default()
        };
        Overview { pid: 1, phase: "serving".into(), apps: vec![app], ..Overview::default() }
    }

    /// Twenty applications, of which the last has failed.
    fn many() -> Overview {
        let mut now = overview(3);
        let app =
            |number: u32| AppOverview { id: number, name: format!("app{number}"), ..now.apps[0].clone() };
        now.apps = (0..20).map(app).collect();
        let summary = "loading the app failed: LoadError: cannot load such file -- nokogirl".into();
        let remedy = Some("Add it to the Gemfile, and run:".into());
        let command = Some("bundle install".into());
        now.apps[19].phase = "failed".into();
        now.apps[19].diagnosis = Some(DiagnosisOverview {
            cause: "missing_gem".into(),
            summary,
            remedy,
            command,
            ..Default::default()
        });
        now
    }

    fn shown(now: Overview, view: &mut View, columns: u16, rows: u16) -> Text<'static> {
        let mut history = History::default();
        history.add(now);
        screen(&history, view, Rect::new(0, 0, columns, rows), PLAIN)
    }

    fn selected(text: &Text<'_>) -> Vec<String> {
        let reversed = |line: &&Line<'_>| {
            line.spans.iter().any(|span| span.style.add_modifier.contains(Modifier::REVERSED))
        };
        text.lines.iter().filter(reversed).map(ToString::to_string).collect()
    }

    #[test]
    fn the_screen_is_filled_and_never_exceeded() {
        for (columns, rows) in [(40, 10), (80, 24), (100, 30), (120, 40), (200, 50), (250, 90)] {
            for now in [overview(100), many(), Overview::default()] {
                for panel in [Panel::Lists, Panel::Request, Panel::Diagnosis, Panel::Help] {
                    let text = shown(now.clone(), &mut View { panel, ..View::default() }, columns, rows);
                    assert_eq!(text.lines.len(), usize::from(rows), "{columns}×{rows} {panel:?}");
                    assert!(
                        text.lines.iter().all(|line| line.width() <= columns.into()),
                        "{columns}×{rows}\n{text}"
                    );
                }
            }
        }
        let small = shown(overview(1), &mut View::default(), 20, 5).to_string().replace('\n', "");
        assert_eq!(small, "This terminal has 20×5 characters. highball top needs 40×10. q quits.");
    }

    #[test]
    fn at_80_columns_all_that_matters_is_there() {
        let text = shown(overview(100), &mut View::default(), 80, 24).to_string();
        for part in [
            "REQ/S",
            "5XX/S",
            "P50",
            "P95",
            "QUEUE",
            "BUSY",
            "SERVED",
            "UP",
            "q quit",
            "? help",
            "k replace worker",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn processes_beside_the_workers_are_there_and_those_that_fail_first() {
        let companion = |number: u64| CompanionProcess {
            name: format!("jobs.{number}"),
            state: "running".into(),
            pid: Some(4711),
            memory_bytes: Some(98 << 20),
            restarts: number,
            crash_loop: (number == 9).then_some(4),
            ..CompanionProcess::default()
        };
        let mut now = overview(3);
        now.apps[0].companions = (1..=9).map(companion).collect();
        let text = shown(now, &mut View::default(), 80, 24).to_string();
        let lines: Vec<&str> = text.lines().collect();
        let title = lines.iter().position(|line| line.starts_with("  PROCESS ")).unwrap();
        assert!(lines[title + 1].starts_with("  jobs.9 ") && lines[title + 1].contains("98 MiB"), "{text}");
        assert!(text.contains("crash loop: ended 4 times"), "{text}");
        assert!(lines[title..].iter().any(|line| line.trim_start().starts_with("and 7 more")), "{text}");
        assert!(text.contains("GET /2"), "requests have room, too\n{text}");
    }

    #[test]
    fn applications_that_hold_clients_have_a_table() {
        let hub = |held, slow_closed| HubReport {
            held,
            cable_clients: 120,
            streams: 7,
            published: 10,
            slow_closed,
            ..HubReport::default()
        };
        let mut now = many();
        now.apps[3].hub = Some(HubReport::default()); // it had clients
        assert!(!shown(now.clone(), &mut View::default(), 80, 24).to_string().contains("WEBSOCKETS"));
        (4..9).for_each(|place| now.apps[place].hub = Some(hub(place, 2)));
        let mut history = History::default();
        history.add(now.clone());
        now.at_ms = 2000;
        now.apps.iter_mut().flat_map(|app| &mut app.hub).for_each(|hub| hub.published += 50);
        history.add(now);
        let text = screen(&history, &mut View::default(), Rect::new(0, 0, 80, 24), PLAIN).to_string();
        let lines: Vec<&str> = text.lines().collect();
        let title = lines.iter().position(|line| line.starts_with("  HELD ")).unwrap();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[title])[..3], ["HELD", "WEBSOCKETS", "RESPONSES"], "{text}");
        assert_eq!(words(lines[title + 1]), ["app8", "120", "8", "7", "25", "2"], "the most first\n{text}");
        assert!(lines[title..].iter().any(|line| line.trim_start().starts_with("and 3 more")), "{text}");
        assert!(text.contains("GET /2"), "requests have room, too\n{text}");
    }

    #[test]
    fn what_has_failed_comes_first_with_its_cause() {
        let text = shown(many(), &mut View::default(), 80, 24).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("1 of 20 applications failing"), "{text}");
        assert!(lines[3].starts_with("▸ app19       failed"), "{text}");
        let cause = "missing_gem: loading the app failed: LoadError: cannot load such file -- nokogirl";
        assert_eq!([lines[4].trim_start(), lines[5].trim_start()].concat(), cause, "{text}");
        assert!(lines[6].contains("What to do: Add it to the Gemfile, and run: bundle install"), "{text}");
    }

    #[test]
    fn the_oldest_is_chosen_and_the_choice_is_followed() {
        let mut view = View::default();
        let mut of = |requests, rows: isize| {
            view.select(&overview(requests), rows);
            selected(&shown(overview(requests), &mut view, 100, 24))
        };
        assert!(of(100, 0)[0].contains("GET /99"));
        assert!(of(100, 60)[0].contains("GET /39"));
        assert!(of(50, 0)[0].contains("GET /39"), "it goes on while others end");
        assert!(of(10, 0)[0].contains("GET /9"), "it has ended");
        assert!(of(0, 0).is_empty());
    }

    #[test]
    fn what_a_thread_does_is_shown_beside_a_long_path() {
        let path = format!("/{}/end", "long".repeat(60));
        let request = RequestOverview {
            method: "GET".into(),
            path,
            doing: Some("sleeps".into()),
            ..Default::default()
        };
        let (what, doing) = request_text(&request, 50);
        assert!(what.starts_with("GET /long") && what.ends_with("long/end") && what.contains('…'), "{what}");
        assert_eq!((width(&what) + width(&doing), doing.as_str()), (50, "  – sleeps"));
    }

    #[test]
    fn the_backtrace_of_a_request_is_shown() {
        let mut view = View::default();
        view.select(&overview(3), 0);
        view.toggle(Panel::Request);
        let text = shown(overview(3), &mut view, 80, 30);
        assert!(text.lines.iter().any(|line| line.to_string() == "a.rb:1:in `sleep'"), "{text}");
    }

    #[test]
    fn questions_are_whole() {
        let mut now = overview(2);
        now.apps[0].requests[1].path = format!("/{}", "x".repeat(150));
        let mut view = View::default();
        assert_eq!(confirmation('k', &now, &view), None, "no request is chosen");
        view.select(&now, 0);
        let asked = confirmation('k', &now, &view).unwrap();
        assert_eq!(asked.action, AppAction::ReplaceWorker { worker: 1 });
        let question = asked.question.clone();
        view.confirmation = Some(asked);
        let text = shown(now.clone(), &mut view, 80, 24).to_string().replace('\n', "");
        assert!(text.ends_with(&format!("(y/n) {question}")), "{text}");
        assert_eq!(confirmation('+', &now, &view).unwrap().action, AppAction::MoreWorkers);
        assert_eq!(confirmation('x', &now, &view), None);
    }

    #[test]
    fn bars_grow_with_their_values() {
        assert_eq!(bars([0.0, 5.0, 10.0].into_iter(), 60), "▁▅█");
        assert_eq!(bars([0.0, 5.0, 10.0].into_iter(), 2), "▅█");
        assert_eq!(bars([0.0, 0.0].into_iter(), 9), "▁▁");
    }
}
