//! For the terminal.

use super::comparison::{Comparison, Row};
use super::figure::{Figure, CALLS, CPU, MEMORY, OBJECTS, P50, P99, REQUESTS};
use super::{bounds, ratios, remarks, words};
use crate::results::Results;

/// No line is longer.
const COLUMNS: usize = 100;
/// What the figures beside it leave for a scheme's title.
const TITLE_COLUMNS: usize = 33;

/// At most 100 columns wide: the answer, a block per workload and load, bounds, what was skipped.
pub(super) fn table(results: &Results) -> String {
    let comparisons = Comparison::all(results);
    let mut lines = wrapped(&results.title, "");
    if let Some(answer) = &results.answer {
        lines.push(String::new());
        lines.extend(wrapped(answer, ""));
    }
    for warning in remarks::warnings(results, &comparisons) {
        lines.push(String::new());
        lines.extend(wrapped(&warning, "  "));
    }
    for comparison in &comparisons {
        lines.push(String::new());
        lines.extend(block(comparison));
    }
    lines.extend(within_a_latency(results));
    lines.extend(skipped(results));
    if !comparisons.is_empty() {
        lines.push(String::new());
        lines.extend(wrapped(LEGEND, ""));
    }
    lines.push(String::new());
    lines.extend(wrapped(&format!("To measure again: {}", results.command), "  "));
    lines.into_iter().map(|line| line.trim_end().to_string() + "\n").collect()
}

const LEGEND: &str = "Sorted by CPU per request (all processes, user and system): medians of the rounds, ± the \
    larger distance to the smallest or largest. A place of 2-4 says that spreads overlap: no clear order among \
    these. MiB: private dirty memory and rings. -: not measured. !: with errors, so it has no place. floor: runs no Ruby.";

fn block(comparison: &Comparison) -> Vec<String> {
    let mut lines =
        wrapped(&format!("{} · {}", comparison.workload_title, words::load(&comparison.load)), "  ");
    lines.extend(wrapped(&remarks::disturbance(comparison), ""));
    let heads = ["CPU µs", "requests/s", "p50 ms", "p99 ms", "MiB", "errors"];
    lines.push(line("place", "scheme", heads.map(String::from)));
    lines.extend(comparison.rows.iter().map(|row| {
        let places = comparison.places(row, &CPU).map_or("-".into(), |places| words::places(&places));
        scheme(if row.has_errors() { "!" } else { &places }, row)
    }));
    lines.extend(comparison.floors.iter().map(|row| scheme("floor", row)));
    for row in comparison.all_rows().filter(|row| row.has_errors()) {
        lines.extend(wrapped(&format!("! {}: {}", row.scheme.title, words::errors(&row.errors)), "  "));
    }
    lines.extend(against_others(comparison));
    lines.extend(counted(comparison));
    lines
}

/// System calls and Ruby objects per request, below the first columns; none where nothing was counted.
fn counted(comparison: &Comparison) -> Vec<String> {
    let of = |row: &Row| {
        [CALLS, OBJECTS].map(|figure| row.spread(&figure).map(|spread| figure.write(spread.median)))
    };
    let figures = |title: &str, [calls, objects]: [String; 2]| {
        let none = String::new;
        line("", title, [calls, objects, none(), none(), none(), none()])
    };
    let rows = comparison
        .all_rows()
        .map(|row| (row, of(row)))
        .filter(|(_, [calls, objects])| calls.is_some() || objects.is_some());
    let mut lines: Vec<String> = rows
        .map(|(row, counts)| figures(&row.scheme.title, counts.map(|count| count.unwrap_or("-".into()))))
        .collect();
    if !lines.is_empty() {
        lines.insert(
            0,
            figures("per request, counted separately", ["system calls", "Ruby objects"].map(String::from)),
        );
    }
    lines
}

/// Highball's figures divided by the others', below the columns of these.
fn against_others(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for one in ratios::of(comparison) {
        let [cpu, requests, p99] = one.medians();
        let none = String::new;
        lines.push(line("", &one.title, [cpu, requests, none(), p99, none(), none()]));
    }
    if !lines.is_empty() {
        lines.insert(0, "       ratios, round by round".into());
    }
    lines
}

fn scheme(place: &str, row: &Row) -> String {
    let errors = row.errors.total();
    let errors = if errors == 0 { "0".into() } else { format!("!{errors}") };
    let plain = |figure: &Figure| row.spread(figure).map_or("-".into(), |spread| figure.write(spread.median));
    line(
        place,
        &row.scheme.title,
        [
            more_or_less(row, &CPU),
            more_or_less(row, &REQUESTS),
            plain(&P50),
            plain(&P99),
            plain(&MEMORY),
            errors,
        ],
    )
}

/// `10.6 ±13%`; a single round has no spread.
fn more_or_less(row: &Row, figure: &Figure) -> String {
    let Some(spread) = row.spread(figure) else { return "-".into() };
    let distance = (spread.most - spread.median).max(spread.median - spread.least);
    let percent = 100.0 * distance / spread.median;
    let percent = match percent {
        _ if row.samples.len() < 2 || !percent.is_finite() => "    ".into(),
        99.5.. => ">99%".into(),
        _ => format!("±{percent:.0}%"),
    };
    format!("{} {percent:>4}", figure.write(spread.median))
}

fn line(place: &str, scheme: &str, [cpu, requests, p50, p99, memory, errors]: [String; 6]) -> String {
    let scheme = shortened(scheme, TITLE_COLUMNS);
    format!(
        "{place:>5}  {scheme:<TITLE_COLUMNS$} {cpu:>12} {requests:>12} {p50:>8} {p99:>8} {memory:>7} {errors:>7}"
    )
}

fn within_a_latency(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for workload in &results.workloads {
        let bounds = bounds::best_first(results, &workload.name);
        if bounds.is_empty() {
            continue;
        }
        lines.push(String::new());
        lines.extend(wrapped(&format!("{} · the most requests/s within a latency", workload.title), "  "));
        for bound in bounds {
            let title = shortened(bounds::title(results, bound), TITLE_COLUMNS);
            let most = bound.requests_per_second.map_or("none".into(), |rate| words::number(rate, 0));
            let within = P99.write(bound.p99_ms);
            lines.push(format!("       {title:<TITLE_COLUMNS$} {most:>12}  p99 within {within} ms"));
        }
    }
    lines
}

fn skipped(results: &Results) -> Vec<String> {
    let skipped = words::skipped(results);
    if skipped.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "Not measured".to_string()];
    for one in skipped {
        let workloads = if one.workloads == "all" { String::new() } else { format!(" ({})", one.workloads) };
        let remedy = if one.remedy.is_empty() { String::new() } else { format!(": {}", one.remedy) };
        lines.extend(wrapped(&format!("- {}{workloads}: {}{remedy}", one.scheme, one.why), "  "));
    }
    lines
}

/// Without what a terminal would obey. What has no room is cut out before the end, as schemes of one server differ
/// there.
fn shortened(text: &str, columns: usize) -> String {
    let letters: Vec<char> = printable(text).chars().collect();
    if letters.len() <= columns {
        return letters.into_iter().collect();
    }
    let begin = columns / 3;
    let end = letters.len() - (columns - begin - 1);
    letters[..begin].iter().chain(['…'].iter()).chain(&letters[end..]).collect()
}

fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Lines of at most 100 columns; those after the first are indented. A longer word is cut into pieces.
fn wrapped(text: &str, indent: &str) -> Vec<String> {
    let room = COLUMNS - indent.chars().count();
    let mut lines: Vec<String> = Vec::new();
    let text = printable(text);
    let letters: Vec<Vec<char>> = text.split_whitespace().map(|word| word.chars().collect()).collect();
    for piece in letters.iter().flat_map(|word| word.chunks(room)) {
        let piece: String = piece.iter().collect();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + piece.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(&piece);
            }
            Some(_) => lines.push(format!("{indent}{piece}")),
            None => lines.push(piece),
        }
    }
    lines
}
