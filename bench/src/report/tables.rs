//! The tables of a report, whatever its form is: `markdown` and `html` write them.

use super::comparison::{best_first, Comparison, Row};
use super::figure::{Figure, CPU, MEMORY, P99, REQUESTS};
use super::weaknesses::Beaten;
use super::{bounds, origins, ratios, words};
use crate::results::{Results, SchemeInfo};
use crate::statistics::Spread;

/// What a cell holds, and so how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Figure,
    Errors,
    /// Of a few words.
    Wrapped,
    /// Of a sentence.
    Wide,
    Command,
}

/// A cell: its text, a figure that stands out behind it, and what is smaller below or behind both.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) strong: String,
    pub(super) small: String,
}

/// A line of a table. `scheme`: whose it is, and whether that had errors.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) scheme: Option<(SchemeInfo, bool)>,
    pub(super) cells: Vec<Cell>,
}

/// A table. `stacks`: where it has no room, it is a list of rows, in which each cell is led by the head of its column.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) heads: Vec<String>,
    pub(super) stacks: bool,
    pub(super) lines: Vec<Line>,
}

impl Cell {
    fn new(kind: Kind, text: impl Into<String>) -> Cell {
        Cell { kind, text: text.into(), strong: String::new(), small: String::new() }
    }

    fn text(text: impl Into<String>) -> Cell {
        Cell::new(Kind::Text, text)
    }
}

impl Table {
    fn new(stacks: bool, heads: &[&str], lines: impl Iterator<Item = Line>) -> Table {
        Table { heads: heads.iter().map(|head| (*head).to_owned()).collect(), stacks, lines: lines.collect() }
    }

    fn of_cells(stacks: bool, heads: &[&str], lines: impl Iterator<Item = Vec<Cell>>) -> Table {
        Table::new(stacks, heads, lines.map(|cells| Line { scheme: None, cells }))
    }
}

impl Line {
    fn of(row: &Row, cells: Vec<Cell>) -> Line {
        Line { scheme: Some((row.scheme.clone(), row.has_errors())), cells }
    }
}

/// The best of every comparison.
pub(super) fn glance(comparisons: &[Comparison]) -> Table {
    let heads = ["workload", "least CPU per request", "most requests/s", "least p99", "least memory"];
    let cells = |one: &Comparison| {
        let best = [CPU, REQUESTS, P99, MEMORY].map(|figure| leaders(one, &figure));
        [Cell::text(title(one))].into_iter().chain(best).collect()
    };
    Table::of_cells(true, &heads, comparisons.iter().map(cells))
}

/// The best scheme, and how many are in no clear order with it.
fn leaders(comparison: &Comparison, figure: &Figure) -> Cell {
    let leaders = comparison.leaders(figure);
    let Some(best) = leaders.first() else { return Cell::text("–") };
    let small = match leaders.len() - 1 {
        0 => String::new(),
        1 => format!("no clear order with {}", leaders[1].scheme.title),
        more => format!("no clear order with {more} others"),
    };
    let strong = best.spread(figure).map_or("–".into(), |spread| figure.with_unit(spread));
    Cell { strong, small, ..Cell::new(Kind::Wrapped, &best.scheme.title) }
}

/// `Hello world, 25 connections`.
fn title(comparison: &Comparison) -> String {
    format!("{}, {}", comparison.workload_title, words::load(&comparison.load))
}

/// Where Highball is beaten, and by whom.
pub(super) fn beaten(these: &[Beaten]) -> Table {
    let cells = |one: &Beaten| {
        let mut ours = spread(&one.figure, one.spread);
        (ours.kind, ours.text) = (Kind::Wrapped, format!("{} {}", one.highball.title, ours.text));
        let figure = Cell::text(one.figure.head());
        vec![Cell::text(title(one.comparison)), figure, ours, Cell::new(Kind::Wide, one.by_whom())]
    };
    Table::of_cells(true, &["workload", "figure", "Highball", "clearly better"], these.iter().map(cells))
}

/// The schemes of 2006.
pub(super) fn origins(comparison: &Comparison) -> Table {
    let figures = [REQUESTS, CPU, P99, MEMORY];
    let heads = figures.map(|one| one.head());
    let heads: Vec<&str> =
        ["today", "in 2006"].into_iter().chain(heads.iter().map(String::as_str)).chain(["errors"]).collect();
    let line = |row: &Row| {
        let then = row.scheme.stands_for.as_deref().unwrap_or("–");
        let mut cells = vec![Cell::text(&row.scheme.title), Cell::text(then)];
        cells.extend(figures.iter().map(|one| measured(row, one)));
        cells.push(errors(row));
        Line::of(row, cells)
    };
    Table::new(false, &heads, best_first(&origins::rows(comparison), &REQUESTS).iter().map(line))
}

/// Figures of a comparison; `judged`: with places by CPU per request, and errors.
pub(super) fn figures(comparison: &Comparison, figures: &[Figure], judged: bool) -> Table {
    let heads: Vec<String> = figures.iter().map(Figure::head).collect();
    let judgement: &[&str] = if judged { &["place", "errors"] } else { &[] };
    let heads: Vec<&str> =
        ["scheme"].iter().chain(judgement).copied().chain(heads.iter().map(String::as_str)).collect();
    let line = |row: &Row| {
        let mut cells = vec![Cell::text(&row.scheme.title)];
        if judged {
            cells.extend([Cell::new(Kind::Figure, place(comparison, row)), errors(row)]);
        }
        cells.extend(figures.iter().map(|one| measured(row, one)));
        Line::of(row, cells)
    };
    Table::new(false, &heads, comparison.all_rows().map(line))
}

fn place(comparison: &Comparison, row: &Row) -> String {
    if row.has_errors() {
        return "!".into();
    }
    let without = if row.scheme.floor { "floor" } else { "–" };
    comparison.places(row, &CPU).map_or(without.into(), |places| words::places(&places))
}

fn errors(row: &Row) -> Cell {
    if row.has_errors() {
        Cell::new(Kind::Errors, format!("! {}", words::errors(&row.errors)))
    } else {
        Cell::new(Kind::Figure, "0")
    }
}

fn measured(row: &Row, figure: &Figure) -> Cell {
    row.spread(figure).map_or(Cell::new(Kind::Figure, "–"), |found| spread(figure, found))
}

/// The median, and smaller the smallest and the largest.
fn spread(figure: &Figure, Spread { median, least, most }: Spread) -> Cell {
    let [median, least, most] = [median, least, most].map(|value| figure.write(value));
    let small = if least == most { String::new() } else { format!("{least}–{most}") };
    Cell { small, ..Cell::new(Kind::Figure, median) }
}

/// Highball's figures divided by those of other servers.
pub(super) fn against_others(comparison: &Comparison) -> Table {
    let [cpu, requests, p99] = ratios::FIGURES.map(|one| one.head());
    let cells = |one: ratios::Ratios| {
        let figures = one.with_spreads().map(|words| Cell::new(Kind::Figure, words));
        [Cell::text(&one.title)].into_iter().chain(figures).collect()
    };
    let heads = ["ratio, round by round", &cpu, &requests, &p99];
    Table::of_cells(false, &heads, ratios::of(comparison).into_iter().map(cells))
}

/// The most throughput within a latency.
pub(super) fn bounds(results: &Results) -> Table {
    let each = results.workloads.iter().flat_map(|workload| {
        let bounds = bounds::best_first(results, &workload.name).into_iter();
        bounds.map(move |bound| {
            let most = bound.requests_per_second;
            vec![
                Cell::text(&workload.title),
                Cell::text(bounds::title(results, bound)),
                Cell::text(most.map_or("none stayed within".into(), |rate| words::number(rate, 0))),
                Cell::text(P99.write(bound.p99_ms)),
            ]
        })
    });
    Table::of_cells(false, &["workload", "scheme", "requests/s", "p99 within ms"], each)
}

/// What was not measured.
pub(super) fn skipped(results: &Results) -> Table {
    let cells = |one: words::SkippedWords| {
        let command = |remedy: String| Cell::new(Kind::Command, remedy);
        let remedy = Some(one.remedy).filter(|remedy| !remedy.is_empty());
        let remedy = remedy.map_or(Cell::text("–"), command);
        vec![Cell::text(one.scheme), Cell::text(one.workloads), Cell::new(Kind::Wide, one.why), remedy]
    };
    let heads = ["scheme", "workloads", "why", "what would bring it"];
    Table::of_cells(true, &heads, words::skipped(results).into_iter().map(cells))
}

/// What each scheme runs.
pub(super) fn versions(results: &Results) -> Table {
    let cells = |scheme: &SchemeInfo| vec![Cell::text(&scheme.title), Cell::new(Kind::Wide, &scheme.version)];
    Table::of_cells(true, &["scheme", "versions"], results.schemes.iter().map(cells))
}
