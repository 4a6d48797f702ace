//! Tables with all figures; each scrolls in a separate box where it is wider than the page.

use super::{escape, Colours};
use crate::report::comparison::{best_first, Comparison, Row};
use crate::report::figure::{
    Figure, CALLS, COLD_START, CPU, DEVIATION, DIRTY, GC, MAX, MEAN, MEMORY, OBJECTS, P50, P90, P99, P999,
    PROCESSES, PSS, REQUESTS, RINGS, SWITCHES, SYSTEM, USER,
};
use crate::report::weaknesses::Beaten;
use crate::report::{origins, ratios, words};
use crate::results::Results;

const ALL: [Figure; 20] = [
    CPU, USER, SYSTEM, REQUESTS, MEAN, DEVIATION, P50, P90, P99, P999, MAX, DIRTY, RINGS, PSS, PROCESSES,
    SWITCHES, CALLS, OBJECTS, GC, COLD_START,
];

/// A cell: the class of its text (`number`, or nothing), and its HTML.
type Cell = (&'static str, String);

fn attribute(class: &str) -> String {
    if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    }
}

fn text(words: &str) -> Cell {
    ("", escape(words))
}

fn figure(words: &str) -> Cell {
    ("number", escape(words))
}

/// What a table becomes where it has no room.
#[derive(Clone, Copy, PartialEq)]
enum Narrow {
    /// A table still, that scrolls in its box.
    Scrolls,
    /// A list of rows, in which each cell is led by the head of its column.
    Stacks,
}

/// A table; each row has a class. The first cell of a row is its head.
fn table(narrow: Narrow, heads: &[&str], rows: &[(String, Vec<Cell>)]) -> String {
    let stacks = narrow == Narrow::Stacks;
    let class = if stacks { "scroll stack" } else { "scroll" };
    let mut html = format!("<div class=\"{class}\" tabindex=\"0\"><table>\n<thead><tr>");
    for (index, head) in heads.iter().enumerate() {
        // A head stands where the cells below it stand.
        let class = rows.first().and_then(|(_, cells)| cells.get(index)).map_or("", |(class, _)| class);
        html += &format!("<th scope=\"col\"{}>{}</th>", attribute(class), escape(head));
    }
    html += "</tr></thead>\n<tbody>\n";
    for (class, cells) in rows {
        html += &format!("<tr{}>", attribute(class));
        for (index, (class, inside)) in cells.iter().enumerate() {
            let class = attribute(class);
            html += &match index {
                0 => format!("<th scope=\"row\">{inside}</th>"),
                _ if stacks => {
                    format!("<td{class} data-head=\"{}\"><div>{inside}</div></td>", escape(heads[index]))
                }
                _ => format!("<td{class}>{inside}</td>"),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table></div>\n"
}

/// Every figure of a comparison.
pub(super) fn all_figures(comparison: &Comparison, colours: &Colours) -> String {
    let named: Vec<String> = ALL.iter().map(Figure::head).collect();
    let mut heads = vec!["scheme", "place", "errors"];
    heads.extend(named.iter().map(String::as_str));
    let row = |row: &Row| {
        let place = comparison.places(row, &CPU).map(|places| words::places(&places));
        let without = if row.scheme.floor { "floor" } else { "–" };
        let mut cells =
            vec![text(&row.scheme.title), figure(place.as_deref().unwrap_or(without)), errors(row)];
        cells.extend(ALL.iter().map(|one| spread(row, one)));
        (class(row, colours), cells)
    };
    let rows: Vec<_> = comparison.all_rows().map(row).collect();
    table(Narrow::Scrolls, &heads, &rows)
}

fn class(row: &Row, colours: &Colours) -> String {
    let failed = if row.has_errors() { " failed" } else { "" };
    colours.class(&row.scheme) + failed
}

fn errors(row: &Row) -> Cell {
    if row.has_errors() {
        ("errors", escape(&format!("! {}", words::errors(&row.errors))))
    } else {
        figure("0")
    }
}

/// The median, and smaller below it the smallest and the largest.
fn spread(row: &Row, of: &Figure) -> Cell {
    let Some(spread) = row.spread(of) else { return figure("–") };
    let [median, least, most] =
        [spread.median, spread.least, spread.most].map(|value| escape(&of.write(value)));
    if least == most {
        ("number", median)
    } else {
        ("number", format!("{median}<small>{least}–{most}</small>"))
    }
}

/// The schemes of 2006.
pub(super) fn origins(comparison: &Comparison, colours: &Colours) -> String {
    let figures = [REQUESTS, CPU, P99, MEMORY];
    let named = figures.map(|one| one.head());
    let mut heads = vec!["today", "in 2006"];
    heads.extend(named.iter().map(String::as_str));
    heads.push("errors");
    let row = |row: &Row| {
        let then = row.scheme.stands_for.as_deref().unwrap_or("–");
        let mut cells = vec![text(&row.scheme.title), text(then)];
        cells.extend(figures.iter().map(|one| spread(row, one)));
        cells.push(errors(row));
        (class(row, colours), cells)
    };
    let rows: Vec<_> = best_first(&origins::rows(comparison), &REQUESTS).iter().map(row).collect();
    table(Narrow::Scrolls, &heads, &rows)
}

/// Highball's figures divided by those of other servers; empty where there is nothing to divide.
pub(super) fn against_others(comparison: &Comparison) -> String {
    let named = ratios::FIGURES.map(|one| one.head());
    let mut heads = vec!["ratio, round by round"];
    heads.extend(named.iter().map(String::as_str));
    let row = |one: ratios::Ratios| {
        let cells = one.with_spreads().map(|cell| figure(&cell));
        (String::new(), [text(&one.title)].into_iter().chain(cells).collect())
    };
    let rows: Vec<_> = ratios::of(comparison).into_iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    table(Narrow::Scrolls, &heads, &rows)
}

/// The best of every comparison.
pub(super) fn glance(comparisons: &[Comparison]) -> String {
    let figures = [
        ("least CPU per request", CPU),
        ("most requests/s", REQUESTS),
        ("least p99", P99),
        ("least memory", MEMORY),
    ];
    let mut heads = vec![""];
    heads.extend(figures.iter().map(|(head, _)| *head));
    let row = |one: &Comparison| {
        let mut cells = vec![text(&format!("{}, {}", one.workload_title, words::load(&one.load)))];
        cells.extend(figures.iter().map(|(_, figure)| leaders(one, figure)));
        (String::new(), cells)
    };
    table(Narrow::Stacks, &heads, &comparisons.iter().map(row).collect::<Vec<_>>())
}

fn leaders(comparison: &Comparison, figure: &Figure) -> Cell {
    let leaders = comparison.leaders(figure);
    let Some(best) = leaders.first() else { return text("–") };
    let median = best.spread(figure).map_or("–".into(), |spread| figure.with_unit(spread));
    let others = match leaders.len() - 1 {
        0 => String::new(),
        1 => format!("<small>no clear order with {}</small>", escape(&leaders[1].scheme.title)),
        more => format!("<small>no clear order with {more} others</small>"),
    };
    ("wrap", format!("{} <b>{}</b>{others}", escape(&best.scheme.title), escape(&median)))
}

/// Where Highball is beaten, and by whom.
pub(super) fn beaten(these: &[Beaten]) -> String {
    let row = |one: &Beaten| {
        let cells = vec![
            text(&format!("{}, {}", one.comparison.workload_title, words::load(&one.comparison.load))),
            text(&one.figure.head()),
            ("wrap", escape(&format!("{} ({})", one.highball.title, one.figure.write(one.spread.median)))),
            ("wide", escape(&one.by_whom())),
        ];
        (String::new(), cells)
    };
    let heads = ["", "figure", "Highball", "clearly better"];
    table(Narrow::Stacks, &heads, &these.iter().map(row).collect::<Vec<_>>())
}

/// What was not measured; empty where all was.
pub(super) fn skipped(results: &Results) -> String {
    let row = |one: words::SkippedWords| {
        let remedy = if one.remedy.is_empty() {
            "–".into()
        } else {
            format!("<code>{}</code>", escape(&one.remedy))
        };
        (
            String::new(),
            vec![text(&one.scheme), text(&one.workloads), ("wide", escape(&one.why)), ("", remedy)],
        )
    };
    let rows: Vec<_> = words::skipped(results).into_iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    table(Narrow::Stacks, &["scheme", "workloads", "why", "what would bring it"], &rows)
}

/// What each scheme runs.
pub(super) fn versions(results: &Results) -> String {
    let row = |scheme: &crate::results::SchemeInfo| {
        (String::new(), vec![text(&scheme.title), ("wide", escape(&scheme.version))])
    };
    table(Narrow::Stacks, &["scheme", "versions"], &results.schemes.iter().map(row).collect::<Vec<_>>())
}
