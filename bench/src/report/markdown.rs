//! For `bench/RESULTS.md`.

use super::comparison::Comparison;
use super::figure::{
    Figure, CALLS, COLD_START, CPU, DIRTY, GC, OBJECTS, P50, P90, P99, P999, PROCESSES, PSS, REQUESTS, RINGS,
    SWITCHES, SYSTEM, USER,
};
use super::tables::{self, Cell, Table};
use super::weaknesses::standings;
use super::{origins, remarks, words};
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
    text += &section("The best at a glance", &tables::glance(&comparisons));
    text += &weaknesses(&comparisons);
    text += &origins_tables(&comparisons);
    text += &comparisons.iter().map(figures).collect::<String>();
    text += &section("The most requests/s within a latency", &tables::bounds(results));
    text += &section("Not measured", &tables::skipped(results));
    text += &machine(results);
    text += &method(results);
    text.trim_end().to_string() + "\n"
}

fn weaknesses(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for standing in standings(comparisons) {
        text += &format!("### {}\n\n{}\n\n", standing.title, standing.summary());
        for failure in standing.failures() {
            text += &format!("> {}\n\n", escape(&failure));
        }
        text += &table(&tables::beaten(&standing.beaten));
    }
    under("Where Highball is not the best", text)
}

fn origins_tables(comparisons: &[Comparison]) -> String {
    let of_one = |one: &Comparison| {
        let title = format!("### {}, {}\n\n", escape(one.workload_title), words::load(&one.load));
        title + &table(&tables::origins(one))
    };
    let text = origins::closest(comparisons).into_iter().map(of_one).collect();
    under("The schemes of 2006, by today's stand-ins", text)
}

fn figures(comparison: &Comparison) -> String {
    let title = format!("{}, {}", escape(comparison.workload_title), words::load(&comparison.load));
    let machine = remarks::disturbance(comparison);
    let mut text = format!("By CPU per request. CPU time of the machine: {machine}.\n\n");
    text += &table(&tables::figures(comparison, &SPEED, true));
    text += &table(&tables::figures(comparison, &RESOURCES, false));
    under(&title, text + &table(&tables::against_others(comparison)))
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
    text + &table(&tables::versions(results))
}

fn method(results: &Results) -> String {
    let mut text = format!("## Method\n\n{}\n\n", words::method(results));
    for (term, meaning) in words::FIGURES {
        text += &format!("- {term}: {meaning}\n");
    }
    text + &format!("\nTo measure again:\n\n    {}\n", results.command.replace(['\n', '\r'], " "))
}

fn section(title: &str, of: &Table) -> String {
    under(title, table(of))
}

/// Empty without text.
fn under(title: &str, text: String) -> String {
    if text.is_empty() {
        text
    } else {
        format!("## {title}\n\n{text}")
    }
}

/// Wider columns are not aligned in the source.
const ALIGNED: usize = 60;

/// The table, whose columns are aligned in the source as well, and an empty line; empty without lines.
fn table(table: &Table) -> String {
    if table.lines.is_empty() {
        return String::new();
    }
    let heads = table.heads.iter().map(|head| escape(head)).collect();
    let lines = table.lines.iter().map(|line| line.cells.iter().map(in_line).collect());
    let rows: Vec<Vec<String>> = [heads].into_iter().chain(lines).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).map(|width| width.min(ALIGNED)).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += &format!("| {} |\n", cells.join(" | "));
        if index == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text += &format!("| {} |\n", rule.join(" | "));
        }
    }
    text + "\n"
}

/// `Puma 10.6 (9.3–12.0)`.
fn in_line(cell: &Cell) -> String {
    let small = if cell.small.is_empty() { String::new() } else { format!("({})", cell.small) };
    let parts = [&cell.text, &cell.strong, &small].into_iter().filter(|part| !part.is_empty());
    parts.map(|part| escape(part)).collect::<Vec<String>>().join(" ")
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
