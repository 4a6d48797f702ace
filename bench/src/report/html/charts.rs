//! Bars, latencies and memory: one row per scheme, best first, floors below.

use super::{escape, Colours};
use crate::report::comparison::{best_first, Comparison, Row};
use crate::report::figure::{Figure, CPU, DIRTY, MEMORY, P50, P90, P99, P999, REQUESTS, RINGS};
use crate::report::{origins, words};

/// As many as have room beside each other on a phone.
const AXIS_TICKS: usize = 6;

/// A chart with its head. `rows` are made by [`row`].
fn chart(title: &str, note: &str, rows: &str) -> String {
    format!(
        "<section class=\"chart\">\n<h4>{}</h4>\n<p class=\"note\">{}</p>\n<ol class=\"rows\">\n{rows}</ol>\n</section>\n",
        escape(title),
        escape(note)
    )
}

/// One scheme: its place and title (as HTML), what is drawn, and the figure in words. `drawing` is SVG; its x is in
/// percent.
fn row(class: &str, place: &str, title: &str, value: &str, drawing: &str) -> String {
    format!(
        "<li class=\"{class}\"><span class=\"place\">{}</span><span class=\"name\">{}</span>\
         <span class=\"value\">{}</span><svg width=\"100%\" height=\"16\" aria-hidden=\"true\">{drawing}</svg></li>\n",
        escape(place),
        title,
        escape(value)
    )
}

/// The classes of a row: its colour, and whether it failed.
fn class(row: &Row, colours: &Colours) -> String {
    colours.class(&row.scheme, row.has_errors())
}

/// The place by a figure, `!` where there were errors.
fn place(comparison: &Comparison, row: &Row, figure: &Figure) -> String {
    if row.has_errors() {
        return "!".into();
    }
    comparison.places(row, figure).map_or(String::new(), |places| words::places(&places))
}

/// The title as HTML, and smaller below it the errors where there were any.
fn title(row: &Row) -> String {
    let title = escape(&row.scheme.title);
    if row.has_errors() {
        format!("{title}<small>! {}</small>", words::errors(&row.errors))
    } else {
        title
    }
}

/// A bar from 0 and a whisker from the smallest to the largest, in percent of the width.
fn bar(row: &Row, figure: &Figure, all: f64) -> String {
    let Some(spread) = row.spread(figure) else { return String::new() };
    let [width, least, most] = [spread.median, spread.least, spread.most].map(|value| percent(value / all));
    let mut drawing = format!("<rect class=\"bar\" y=\"2\" width=\"{width}%\" height=\"12\" rx=\"2\"/>");
    if row.samples.len() > 1 {
        drawing += &format!(
            "<g class=\"whisker\"><line x1=\"{least}%\" x2=\"{most}%\" y1=\"8\" y2=\"8\"/>\
             <line x1=\"{least}%\" x2=\"{least}%\" y1=\"4\" y2=\"12\"/>\
             <line x1=\"{most}%\" x2=\"{most}%\" y1=\"4\" y2=\"12\"/></g>"
        );
    }
    drawing
}

/// A share of the width (0 to 1) in percent; the last one is left for the end of a line.
pub(super) fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.2}", 99.0 * share)
}

/// The largest value of a figure, that the bars have room for.
fn most<'a>(rows: impl Iterator<Item = &'a Row<'a>>, figure: &Figure) -> f64 {
    let most = rows.filter_map(|row| row.spread(figure)).map(|spread| spread.most);
    most.fold(f64::MIN_POSITIVE, f64::max)
}

/// Bars of one figure with whiskers.
fn bars(comparison: &Comparison, figure: &Figure, note: &str, colours: &Colours) -> String {
    let most = most(comparison.all_rows(), figure);
    let floors = best_first(&comparison.floors, figure);
    let mut rows = String::new();
    for one in best_first(&comparison.rows, figure).iter().chain(&floors) {
        let value = one.spread(figure).map_or("–".into(), |spread| figure.with_unit(spread));
        let place = place(comparison, one, figure);
        rows += &row(&class(one, colours), &place, &title(one), &value, &bar(one, figure, most));
    }
    let title = if figure.title == REQUESTS.title { "Requests per second" } else { figure.title };
    chart(title, note, &rows)
}

pub(super) fn cpu(comparison: &Comparison, colours: &Colours) -> String {
    bars(comparison, &CPU, "µs of all processes, user and system; less is better", colours)
}

pub(super) fn requests(comparison: &Comparison, colours: &Colours) -> String {
    let note = match comparison.load.rate {
        Some(_) => "what was answered of the offered rate",
        None => "more is better",
    };
    bars(comparison, &REQUESTS, note, colours)
}

/// The schemes of 2006 and Highball: requests per second, as they were compared then.
pub(super) fn origins(comparison: &Comparison, colours: &Colours) -> String {
    let rows = origins::rows(comparison);
    let most = most(rows.iter(), &REQUESTS);
    let mut drawn = String::new();
    for one in best_first(&rows, &REQUESTS) {
        let title = match &one.scheme.stands_for {
            Some(then) => format!("{}<small>in 2006: {}</small>", title(&one), escape(then)),
            None => title(&one),
        };
        let value = one.spread(&REQUESTS).map_or("–".into(), |spread| REQUESTS.write(spread.median));
        let place = if one.has_errors() { "!" } else { "" };
        drawn += &row(&class(&one, colours), place, &title, &value, &bar(&one, &REQUESTS, most));
    }
    // This chart is also cut out of the page.
    let what = format!("{}, {}", comparison.workload_title, words::load(&comparison.load));
    chart("Requests per second", &format!("{what}; more is better"), &drawn)
}

/// Private dirty memory, and the rings after it.
pub(super) fn memory(comparison: &Comparison, colours: &Colours) -> String {
    let most = most(comparison.all_rows(), &MEMORY);
    let floors = best_first(&comparison.floors, &MEMORY);
    let mut rows = String::new();
    for one in best_first(&comparison.rows, &MEMORY).iter().chain(&floors) {
        let median = |figure| one.spread(figure).map_or(0.0, |spread| spread.median);
        let (dirty, rings) = (median(&DIRTY), median(&RINGS));
        let mut drawing = format!(
            "<rect class=\"bar\" y=\"2\" width=\"{}%\" height=\"12\" rx=\"2\"/>",
            percent(dirty / most)
        );
        let mut value = DIRTY.write(dirty);
        if rings > 0.0 {
            drawing += &format!(
                "<rect class=\"rings\" x=\"{}%\" y=\"2\" width=\"{}%\" height=\"12\"/>",
                percent(dirty / most),
                percent(rings / most)
            );
            value += &format!(" + {}", RINGS.write(rings));
        }
        let place = place(comparison, one, &MEMORY);
        rows += &row(&class(one, colours), &place, &title(one), &(value + " MiB"), &drawing);
    }
    let note = "private dirty, and (paler) rings that processes share, after the load; less is better";
    chart("Memory", note, &rows)
}

/// p50, p90, p99 and p99.9 on a logarithmic scale.
pub(super) fn latency(comparison: &Comparison, colours: &Colours) -> String {
    let medians =
        |row: &Row| [P50, P90, P99, P999].map(|figure| row.spread(&figure).map(|spread| spread.median));
    let all: Vec<f64> = comparison.all_rows().flat_map(&medians).flatten().collect();
    let scale = Logarithmic::of(&all);
    let grid: String = scale
        .ticks(AXIS_TICKS)
        .into_iter()
        .map(|ms| {
            format!(
                "<line class=\"grid\" x1=\"{0}%\" x2=\"{0}%\" y1=\"0\" y2=\"16\"/>",
                percent(scale.share(ms))
            )
        })
        .collect();
    let mut rows = row("axis", "", "", "p50 · p99 ms", &axis(&scale));
    let floors = best_first(&comparison.floors, &P99);
    for one in best_first(&comparison.rows, &P99).iter().chain(&floors) {
        let ([Some(p50), Some(p90), Some(p99), Some(p999)], place) =
            (medians(one), place(comparison, one, &P99))
        else {
            continue;
        };
        let at = [p50, p90, p99, p999].map(|ms| percent(scale.share(ms)));
        let drawing = format!(
            "{grid}<line class=\"range\" x1=\"{0}%\" x2=\"{3}%\" y1=\"8\" y2=\"8\"/>\
             <line class=\"end\" x1=\"{3}%\" x2=\"{3}%\" y1=\"3\" y2=\"13\"/>\
             <circle class=\"p99\" cx=\"{2}%\" cy=\"8\" r=\"4.5\"/><circle class=\"p90\" cx=\"{1}%\" cy=\"8\" r=\"3\"/>\
             <circle class=\"p50\" cx=\"{0}%\" cy=\"8\" r=\"5\"/>",
            at[0], at[1], at[2], at[3]
        );
        let value = format!("{} · {}", P50.write(p50), P99.write(p99));
        rows += &row(&class(one, colours), &place, &title(one), &value, &drawing);
    }
    chart("Latency", "● p50  • p90  ○ p99  | p99.9, logarithmic; less is better; by p99", &rows)
}

fn axis(scale: &Logarithmic) -> String {
    scale
        .ticks(AXIS_TICKS)
        .into_iter()
        .map(|ms| {
            let share = scale.share(ms);
            let anchor = if share > 0.9 {
                "end"
            } else if share < 0.1 {
                "start"
            } else {
                "middle"
            };
            format!(
                "<text x=\"{}%\" y=\"12\" text-anchor=\"{anchor}\">{}</text>",
                percent(share),
                milliseconds(ms)
            )
        })
        .collect()
}

/// A round latency: `0.1 ms`, `10 ms`, `1 s`.
pub(super) fn milliseconds(ms: f64) -> String {
    // Six decimals, and no zeros at their end: 0.05 and not 0.05000000000000001.
    let (value, unit) = if ms >= 1000.0 { (ms / 1000.0, "s") } else { (ms, "ms") };
    format!("{} {unit}", (value * 1e6).round() / 1e6)
}

/// A logarithmic scale that begins and ends at 1, 2 or 5 times a power of ten.
pub(super) struct Logarithmic {
    first: f64,
    last: f64,
}

impl Logarithmic {
    /// With room for these; what is not above 0 stands at the beginning.
    pub(super) fn of(values: &[f64]) -> Logarithmic {
        let positive = || values.iter().copied().filter(|value| *value > 0.0 && value.is_finite());
        let least = positive().fold(f64::INFINITY, f64::min);
        let most = positive().fold(0.0, f64::max);
        if most == 0.0 {
            return Logarithmic { first: 1.0, last: 10.0 };
        }
        let first = round_at_most(least);
        Logarithmic { first, last: round_at_least(most).max(2.0 * first) }
    }

    /// Where a value is: 0 at the beginning, 1 at the end.
    pub(super) fn share(&self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        (value / self.first).log10() / (self.last / self.first).log10()
    }

    /// Round values to write at the scale: 1, 2 and 5 times powers of ten, or these alone where those are too many.
    pub(super) fn ticks(&self, at_most: usize) -> Vec<f64> {
        let from = self.first.log10().floor() as i32;
        let within = |multiples: &'static [f64]| -> Vec<f64> {
            let all = (from..from + 24)
                .flat_map(|power| multiples.iter().map(move |one| one * power_of_ten(power)));
            // A little more than the ends, as 0.1 is no power of ten to a computer.
            all.filter(|tick| (0.999 * self.first..1.001 * self.last).contains(tick)).collect()
        };
        let fine = within(&[1.0, 2.0, 5.0]);
        if fine.len() <= at_most {
            fine
        } else {
            within(&[1.0])
        }
    }
}

fn power_of_ten(power: i32) -> f64 {
    // Divided, a negative power is written without a tail: 0.01 and not 0.010000000000000002.
    if power < 0 {
        1.0 / 10_f64.powi(-power)
    } else {
        10_f64.powi(power)
    }
}

/// 1, 2 or 5 times a power of ten.
fn round_at_most(value: f64) -> f64 {
    let ten = power_of_ten(value.log10().floor() as i32);
    ten * if value >= 5.0 * ten {
        5.0
    } else if value >= 2.0 * ten {
        2.0
    } else {
        1.0
    }
}

fn round_at_least(value: f64) -> f64 {
    let ten = power_of_ten(value.log10().floor() as i32);
    ten * if value <= ten {
        1.0
    } else if value <= 2.0 * ten {
        2.0
    } else if value <= 5.0 * ten {
        5.0
    } else {
        10.0
    }
}
