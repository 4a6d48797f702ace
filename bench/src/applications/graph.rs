//! The picture of the page: requests per second of each application, 2008 on the left and today on the right, for readers with light
//! and with dark pages.

use std::fmt::Write;

use super::account::{self, APPLICATIONS};
use super::report::rows;
use super::{trial::Trial, Results};
use crate::report::{escape, number};

/// Widths and heights in the picture's units, which are pixels at its natural size.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 20.0;
const BAR: f64 = 20.0;
const LINE: f64 = 27.0;
const HEAD: f64 = 62.0;
/// Between applications.
const GAP: f64 = 40.0;
/// Where the columns of a year begin, and those of their bars; and the longest bar of each.
const YEARS: [(f64, f64, f64); 2] = [(LEFT, 172.0, 130.0), (388.0, 596.0, 150.0)];

const STYLE: &str = "text{font:14px system-ui,sans-serif;fill:#333}.year{font-size:17px;font-weight:600}.app{font-weight:600}\
    .soft{fill:#666}.bar{fill:#8fa3b3}.ours{fill:#1f55c4}.failed{fill:#b3261e;font-weight:600}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.soft{fill:#a5a5a5}.bar{fill:#5f7485}.ours{fill:#6c9bff}.failed{fill:#ff8a80}}";

/// A bar and what is written beside it.
struct Bar<'a> {
    title: &'a str,
    requests_per_second: f64,
    /// Behind the requests per second.
    beside: String,
    failed: u64,
    is_ours: bool,
}

/// The picture.
pub(super) fn svg(results: &Results) -> String {
    let mut parts = String::new();
    let mut top = HEAD;
    for one in &APPLICATIONS {
        let rows = rows(results, one.workload);
        if rows.is_empty() {
            continue;
        }
        let then: Vec<Bar> = account::SERVERS
            .iter()
            .zip(one.requests_per_second)
            .map(|(title, rate)| Bar::then(title, rate))
            .collect();
        let now: Vec<Bar> = rows.into_iter().map(Bar::now).collect();
        let lines = then.len().max(now.len()) as f64;
        group(&mut parts, top, one.kind, &then, YEARS[0]);
        group(&mut parts, top, one.workload, &now, YEARS[1]);
        top += lines * LINE + GAP;
    }
    let [then, now] = YEARS.map(|(left, ..)| left);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Requests per second of three \
         applications under the servers of 2008 and of today\">\n<style>{STYLE}</style>\n<text class=\"year\" x=\"{then}\" y=\"24\">2008, \
         requests/s</text><text class=\"year\" x=\"{now}\" y=\"24\">Today, requests/s (µs of CPU per request)</text>\n{parts}</svg>\n",
        top - GAP + 8.0
    )
}

impl<'a> Bar<'a> {
    fn then(title: &'a str, requests_per_second: f64) -> Bar<'a> {
        Bar { title, requests_per_second, beside: String::new(), failed: 0, is_ours: false }
    }

    fn now(row: &'a Trial) -> Bar<'a> {
        Bar {
            title: &row.title,
            requests_per_second: row.requests_per_second,
            beside: format!(" ({})", number(row.cpu_us(), 0)),
            failed: row.errors.total(),
            is_ours: row.scheme == "highball",
        }
    }
}

/// An application's bars, whose scale is its own.
fn group(
    parts: &mut String,
    top: f64,
    name: &str,
    bars: &[Bar],
    (left, bars_left, longest): (f64, f64, f64),
) {
    let most = bars.iter().map(|bar| bar.requests_per_second).fold(0.0, f64::max);
    put(
        parts,
        format_args!("<text class=\"app\" x=\"{left}\" y=\"{:.0}\">{}</text>", top - 4.0, escape(name)),
    );
    for (bar, number_of) in bars.iter().zip(0_u32..) {
        let y = top + 4.0 + f64::from(number_of) * LINE;
        let width = (longest * bar.requests_per_second / most.max(1.0)).max(1.0);
        let class = if bar.is_ours { "ours" } else { "bar" };
        let text = y + 15.0;
        put(
            parts,
            format_args!(
                "<text x=\"{:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{}</text><rect class=\"{class}\" x=\"{bars_left:.0}\" y=\"{y:.0}\" \
                 width=\"{width:.1}\" height=\"{BAR}\"/>",
                bars_left - 8.0,
                escape(bar.title)
            ),
        );
        let failed = match bar.failed {
            0 => String::new(),
            count => format!("<tspan class=\"failed\"> {} failed</tspan>", number(count as f64, 0)),
        };
        put(
            parts,
            format_args!(
                "<text x=\"{:.0}\" y=\"{text:.0}\">{}<tspan class=\"soft\">{}</tspan>{failed}</text>",
                bars_left + width + 7.0,
                number(bar.requests_per_second, 0),
                bar.beside
            ),
        );
    }
}

fn put(parts: &mut String, line: std::fmt::Arguments) {
    writeln!(parts, "{line}").expect("a string takes all");
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let picture = svg(&sample::results());
        assert!(picture.contains("class=\"ours\" x=\"596\" y=\"93\" width=\"150.0\""), "{picture}");
        assert!(picture.contains("width=\"135.0\""), "900 of 1,000: {picture}");
        assert!(picture.contains("<tspan class=\"failed\"> 3 failed</tspan>"), "{picture}");
        assert!(picture.contains(">398<"), "{picture}");
        assert!(!picture.contains("redmine"), "it was not measured");
    }

    #[test]
    fn what_was_measured_cannot_end_an_element() {
        let mut results = sample::results();
        results.trials[0].title = "<b> & co".into();
        assert!(svg(&results).contains("&lt;b&gt; &amp; co"));
    }
}
