//! For `bench/RESULTS.md`.

use super::comparison::{best_first, Comparison, Row};
use super::figure::{
    Figure, CALLS, COLD_START, CPU, DIRTY, GC, MEMORY, OBJECTS, P50, P90, P99, P999, PROCESSES, PSS,
    REQUESTS, RINGS, SWITCHES, SYSTEM, USER,
};
use super::weaknesses::{standings, Beaten};
use super::{bounds, origins, ratios, remarks, words};
use crate::results::Results;

const SPEED: [Figure; 8] = [CPU, USER, SYSTEM, REQUESTS, P50, P90, P99, P999];
const RESOURCES: [Figure; 9] = [DIRTY, RINGS, PSS, PROCESSES, SWITCHES, CALLS, OBJECTS, GC, COLD_START];

/// The whole report.
pub(super) fn markdown(results: &Results) -> String {
    let comparisons = Comparison::all(results);
    let mut text = format!("# {}\n\n", escape(&results.title));
    if let Some(answer) = &results.answer {
        text += &format!("**{}**\n\n", escape(answer));
    }
    text += &format!(
        "Measured on {} in {} by\n\n    {}\n\n",
        words::time(results.started_unix),
        words::duration(results.took_seconds),
        results.command.replace(['\n', '\r'], " "),
    );
    for warning in remarks::warnings(results, &comparisons) {
        text += &format!("> {}\n\n", escape(&warning));
    }
    text += &glance(&comparisons);
    text += &weaknesses(&comparisons);
    text += &origins_table(&comparisons);
    text += &comparisons.iter().map(tables).collect::<String>();
    text += &within_a_latency(results);
    text += &skipped(results);
    text += &machine(results);
    text += &method(results);
    text.trim_end().to_string() + "\n"
}

fn glance(comparisons: &[Comparison]) -> String {
    let figures = [CPU, REQUESTS, P99, MEMORY];
    let mut table =
        Table::new(["workload".into(), "load".into()].into_iter().chain(figures.map(|f| f.head())));
    for one in comparisons {
        let best = figures.map(|figure| leaders(one, &figure));
        table.row([one.workload_title.to_string(), words::load(&one.load)].into_iter().chain(best));
    }
    section("The best at a glance", &table)
}

/// `Highball 10.6`, and how many are in no clear order with it.
fn leaders(comparison: &Comparison, figure: &Figure) -> String {
    let leaders = comparison.leaders(figure);
    let Some(best) = leaders.first() else { return "–".into() };
    let median = best.spread(figure).map_or("–".into(), |spread| figure.write(spread.median));
    let others: Vec<&str> = leaders[1..].iter().map(|row| row.scheme.title.as_str()).collect();
    match others.len() {
        0 => format!("{} {median}", best.scheme.title),
        1..=2 => format!("{} {median}; no clear order with {}", best.scheme.title, others.join(" and ")),
        more => format!("{} {median}; no clear order with {more} others", best.scheme.title),
    }
}

fn weaknesses(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for standing in standings(comparisons) {
        text += &format!("### {}\n\n{}\n\n", standing.title, standing.summary());
        for failure in standing.failures() {
            text += &format!("> {}\n\n", escape(&failure));
        }
        if !standing.beaten.is_empty() {
            let heads = ["workload", "load", "figure", "Highball", "clearly better"];
            let mut table = Table::new(heads.map(String::from));
            standing.beaten.iter().for_each(|one| table.row(beaten(one)));
            text += &format!("{}\n", table.text());
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("## Where Highball is not the best\n\n{text}")
    }
}

fn beaten(one: &Beaten) -> [String; 5] {
    [
        one.comparison.workload_title.to_string(),
        words::load(&one.comparison.load),
        one.figure.head(),
        format!("{} {}", one.highball.title, one.figure.with_spread(one.spread)),
        one.by_whom(),
    ]
}

fn origins_table(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for one in origins::closest(comparisons) {
        text += &format!("### {}, {}\n\n", escape(one.workload_title), words::load(&one.load));
        let figures = [REQUESTS, CPU, P99, MEMORY];
        let heads = ["2006".to_string(), "today".to_string()].into_iter();
        let mut table = Table::new(heads.chain(figures.map(|f| f.head())).chain(["errors".to_string()]));
        for row in best_first(&origins::rows(one), &REQUESTS) {
            let then = row.scheme.stands_for.clone().unwrap_or("–".into());
            let cells = figures.map(|figure| cell(&row, &figure));
            let names = [then, row.scheme.title.clone()].into_iter();
            table.row(names.chain(cells).chain([errors(&row)]));
        }
        text += &table.text();
        text.push('\n');
    }
    if text.is_empty() {
        return text;
    }
    format!("## The schemes of 2006, by today's stand-ins\n\n{text}")
}

fn tables(comparison: &Comparison) -> String {
    let mut text = format!("## {}, {}\n\n", escape(comparison.workload_title), words::load(&comparison.load));
    text +=
        &format!("By CPU per request. CPU time of the machine: {}.\n\n", remarks::disturbance(comparison));
    let heads = ["place".to_string(), "scheme".to_string()].into_iter();
    let mut speed = Table::new(heads.chain(SPEED.map(|f| f.head())).chain(["errors".to_string()]));
    let mut resources = Table::new(["scheme".to_string()].into_iter().chain(RESOURCES.map(|f| f.head())));
    for row in comparison.all_rows() {
        let title = row.scheme.title.clone();
        let names = [place(comparison, row), title.clone()].into_iter();
        speed.row(names.chain(SPEED.map(|figure| cell(row, &figure))).chain([errors(row)]));
        resources.row([title].into_iter().chain(RESOURCES.map(|figure| cell(row, &figure))));
    }
    text + &speed.text() + "\n" + &resources.text() + "\n" + &against_others(comparison)
}

fn against_others(comparison: &Comparison) -> String {
    let heads = ["ratio, round by round".to_string()].into_iter();
    let mut table = Table::new(heads.chain(ratios::FIGURES.map(|figure| figure.head())));
    for one in ratios::of(comparison) {
        table.row([one.title.clone()].into_iter().chain(one.with_spreads()));
    }
    if table.rows.len() < 2 {
        String::new()
    } else {
        table.text() + "\n"
    }
}

fn place(comparison: &Comparison, row: &Row) -> String {
    if row.has_errors() {
        return "!".into();
    }
    if row.scheme.floor {
        return "floor".into();
    }
    comparison.places(row, &CPU).map_or("–".into(), |places| words::places(&places))
}

fn cell(row: &Row, figure: &Figure) -> String {
    row.spread(figure).map_or("–".into(), |spread| figure.with_spread(spread))
}

fn errors(row: &Row) -> String {
    if row.has_errors() {
        format!("! {}", words::errors(&row.errors))
    } else {
        "0".into()
    }
}

fn within_a_latency(results: &Results) -> String {
    let heads = ["workload", "scheme", "requests/s", "p99 within ms"];
    let mut table = Table::new(heads.map(String::from));
    for workload in &results.workloads {
        for bound in bounds::best_first(results, &workload.name) {
            table.row([
                workload.title.clone(),
                bounds::title(results, bound).to_string(),
                bound.requests_per_second.map_or("none stayed within".into(), |rate| words::number(rate, 0)),
                P99.write(bound.p99_ms),
            ]);
        }
    }
    section("The most requests/s within a latency", &table)
}

fn skipped(results: &Results) -> String {
    let heads = ["scheme", "workloads", "why", "what would bring it"];
    let mut table = Table::new(heads.map(String::from));
    for one in words::skipped(results) {
        let remedy = if one.remedy.is_empty() { "–".into() } else { one.remedy };
        table.row([one.scheme, one.workloads, one.why, remedy]);
    }
    section("Not measured", &table)
}

fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "## Machine and versions\n\n- CPU: {} × {}\n- Memory: {} MiB\n- System: {}, Linux {}\n- Ruby: {}\n",
        machine.cores,
        escape(&machine.cpu),
        words::number(machine.memory_mib as f64, 0),
        escape(&machine.system),
        escape(&machine.kernel),
        escape(&machine.ruby)
    );
    text += &format!("- Load: {}\n\n", escape(&results.method.generators.join(", ")));
    let mut table = Table::new(["scheme", "versions"].map(String::from));
    for scheme in &results.schemes {
        table.row([scheme.title.clone(), scheme.version.clone()]);
    }
    text + &table.text() + "\n"
}

fn method(results: &Results) -> String {
    let mut text = format!("## Method\n\n{}\n\n", words::method(results));
    for (term, meaning) in words::FIGURES {
        text += &format!("- {term}: {meaning}\n");
    }
    text + &format!("\nTo measure again:\n\n    {}\n", results.command.replace(['\n', '\r'], " "))
}

/// Empty without rows.
fn section(title: &str, table: &Table) -> String {
    if table.rows.len() < 2 {
        String::new()
    } else {
        format!("## {title}\n\n{}\n", table.text())
    }
}

/// Wider columns are not aligned in the source.
const ALIGNED: usize = 60;

/// A table whose columns are aligned in the source as well; the first row is its head.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(heads: impl IntoIterator<Item = String>) -> Table {
        Table { rows: vec![heads.into_iter().collect()] }
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| escape(&cell)).collect());
    }

    fn text(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).map(|width| width.min(ALIGNED)).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            text += &format!("| {} |\n", cells.join(" | "));
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                text += &format!("| {} |\n", rule.join(" | "));
            }
        }
        text
    }
}

/// Text that Markdown shows as it is, on one line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => escaped.extend(['\\', letter]),
            _ if letter.is_control() => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}
