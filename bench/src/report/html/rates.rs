//! Latency over the offered rate, from the search for the most throughput within a latency: a small chart for each
//! scheme, in which the others stand faintly behind it.

use super::charts::{milliseconds, percent, Logarithmic};
use super::{escape, Colours};
use crate::report::{bounds, words};
use crate::results::{Bound, BoundStep, Results, SchemeInfo, WorkloadInfo};

/// Height of a chart, in pixels.
const HEIGHT: f64 = 120.0;
/// As many as have room in a chart that is 150 pixels wide.
const TICKS: usize = 4;

/// All charts of a workload, best first; empty where nothing was searched.
pub(super) fn charts(results: &Results, workload: &WorkloadInfo, colours: &Colours) -> String {
    let bounds = bounds::best_first(results, &workload.name);
    if bounds.is_empty() {
        return String::new();
    }
    let steps = || bounds.iter().flat_map(|bound| &bound.steps);
    let mut latencies: Vec<f64> = steps().map(|step| step.p99_ms).collect();
    latencies.extend(bounds.iter().map(|bound| bound.p99_ms));
    let scales = Scales {
        rate: Logarithmic::of(&steps().map(rate).collect::<Vec<_>>()),
        latency: Logarithmic::of(&latencies),
    };
    let place = results.workloads.iter().position(|one| one.name == workload.name).unwrap_or(0);
    let lines: String = bounds.iter().map(|bound| scales.line(bound)).collect();
    let mut text = format!(
        "<section class=\"rates\">\n<h3>Latency over the offered rate</h3>\n<p class=\"note\">p99 over requests/s, both \
         logarithmic. The dashed line is the bound; the others are faint. Red: errors.</p>\n\
         <svg class=\"shared\" aria-hidden=\"true\"><defs><g id=\"rates-{place}\">{lines}</g></defs></svg>\n\
         <div class=\"multiples\">\n"
    );
    for bound in bounds {
        let scheme = results.schemes.iter().find(|scheme| scheme.name == bound.scheme);
        text += &chart(bound, scheme, &scales, place, colours);
    }
    text + "</div>\n</section>\n"
}

fn chart(
    bound: &Bound,
    scheme: Option<&SchemeInfo>,
    scales: &Scales,
    place: usize,
    colours: &Colours,
) -> String {
    let class = scheme.map_or("c1".into(), |scheme| colours.class(scheme, false));
    let within = words::number(bound.p99_ms, 1);
    let caption = match bound.requests_per_second {
        Some(most) => format!("<b>{}</b>/s within {within} ms", words::number(most, 0)),
        None => format!("nothing stayed within {within} ms"),
    };
    let points: String = bound.steps.iter().map(|step| scales.point(step)).collect();
    format!(
        "<figure class=\"{class}\"><figcaption><span class=\"name\">{}</span> <span>{caption}</span></figcaption>\
         <svg width=\"100%\" height=\"{}\" role=\"img\" aria-label=\"p99 over requests per second\">{}\
         <use class=\"faint\" href=\"#rates-{place}\"/>\
         <line class=\"bound\" x1=\"0\" x2=\"99%\" y1=\"{y}\" y2=\"{y}\"/>{}{points}</svg></figure>\n",
        escape(scheme.map_or(&bound.scheme, |scheme| &scheme.title)),
        HEIGHT + 18.0,
        scales.grid(),
        scales.line(bound),
        y = scales.y(bound.p99_ms),
    )
}

/// What was offered: a rate, or what the connections carried.
fn rate(step: &BoundStep) -> f64 {
    step.load.rate.unwrap_or(step.requests_per_second)
}

struct Scales {
    rate: Logarithmic,
    latency: Logarithmic,
}

impl Scales {
    fn x(&self, step: &BoundStep) -> String {
        percent(self.rate.share(rate(step)))
    }

    fn y(&self, ms: f64) -> String {
        format!("{:.1}", HEIGHT * (1.0 - self.latency.share(ms)).clamp(0.0, 1.0))
    }

    /// From step to step, by rate.
    fn line(&self, bound: &Bound) -> String {
        let mut steps: Vec<&BoundStep> = bound.steps.iter().collect();
        steps.sort_by(|one, other| rate(one).total_cmp(&rate(other)));
        steps
            .windows(2)
            .map(|pair| {
                let [x1, x2] = [pair[0], pair[1]].map(|step| self.x(step));
                let [y1, y2] = [pair[0], pair[1]].map(|step| self.y(step.p99_ms));
                format!("<line class=\"step\" x1=\"{x1}%\" x2=\"{x2}%\" y1=\"{y1}\" y2=\"{y2}\"/>")
            })
            .collect()
    }

    fn point(&self, step: &BoundStep) -> String {
        let failed = if step.errors > 0 { " failed" } else { "" };
        let errors = if step.errors > 0 {
            format!(", ! {}", words::count(step.errors, "error"))
        } else {
            String::new()
        };
        format!(
            "<circle class=\"point{failed}\" cx=\"{}%\" cy=\"{}\" r=\"3\"><title>{} requests/s: p99 {} ms{errors}</title></circle>",
            self.x(step),
            self.y(step.p99_ms),
            words::number(rate(step), 0),
            words::number(step.p99_ms, 2)
        )
    }

    fn grid(&self) -> String {
        let mut text = String::new();
        for requests in &self.rate.ticks(TICKS) {
            let anchor = match self.rate.share(*requests) {
                ..0.1 => "start",
                0.9.. => "end",
                _ => "middle",
            };
            let x = percent(self.rate.share(*requests));
            let words =
                if *requests >= 1000.0 { format!("{}k", requests / 1000.0) } else { requests.to_string() };
            text += &format!(
                "<line class=\"grid\" x1=\"{x}%\" x2=\"{x}%\" y1=\"0\" y2=\"{HEIGHT}\"/>\
                 <text x=\"{x}%\" y=\"{}\" text-anchor=\"{anchor}\">{words}</text>",
                HEIGHT + 14.0
            );
        }
        for ms in self.latency.ticks(TICKS) {
            let y = self.y(ms);
            // Below its line at the top, above it elsewhere.
            let base = if self.latency.share(ms) > 0.95 { 11.0 } else { -3.0 };
            text += &format!("<line class=\"grid\" x1=\"0\" x2=\"99%\" y1=\"{y}\" y2=\"{y}\"/>");
            text += &format!(
                "<text x=\"2\" y=\"{:.1}\">{}</text>",
                HEIGHT * (1.0 - self.latency.share(ms)) + base,
                milliseconds(ms)
            );
        }
        text
    }
}
