//! Charts of up to the last hour, as inline SVG: drawn by the server, so that they are there at the first paint, without a
//! script. A line is as wide as its chart is on the screen; texts are HTML beside it, which stays as it is.

use super::super::last_hour::{Point, POINTS};
use highball_front::refusals::page::Escaped;
use std::fmt::Write;

/// Points of a minute.
const OF_A_MINUTE: usize = POINTS / 60;
/// Minutes that a chart shows: the fewest that its points fill. A server that began to serve has no empty hour before it.
const SPANS: [usize; 3] = [10, 30, 60];
/// Size of a chart, in its own units.
const WIDTH: f32 = 180.0;
const HEIGHT: f32 = 60.0;

/// A line of a chart.
pub(super) struct Series<'a> {
    /// Its class in the style.
    pub(super) class: &'static str,
    /// A value for each point, the latest last; NaN: there is none.
    pub(super) values: &'a [f32],
}

/// A chart.
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    /// The current value of each line, as text.
    pub(super) now: &'a [String],
    /// Writes a value of the scale.
    pub(super) unit: fn(f32) -> String,
    pub(super) series: &'a [Series<'a>],
}

impl Chart<'_> {
    pub(super) fn write(&self, html: &mut String) {
        let (title, scale) = (Escaped(self.title), (self.unit)(values_of(self.series).fold(0.0, f32::max)));
        let minutes = minutes_of(self.series);
        let (title_text, now) = (self.title, self.now.join(", "));
        let label = format!("{title_text}, last {minutes} minutes: at most {scale}, now {now}");
        let _ = write!(html, "<figure><figcaption>{title} <span>");
        for (series, now) in self.series.iter().zip(self.now) {
            let _ = write!(html, "<b class=\"{}\">{}</b>", series.class, Escaped(now));
        }
        let scale = Escaped(&scale);
        let _ = write!(html, "</span></figcaption><div class=\"plot\"><span class=\"scale\">{scale}</span>");
        lines(html, self.series, &label);
        let _ = write!(
            html,
            "</div><div class=\"axis\" aria-hidden=\"true\"><span>{minutes} min ago</span><span>{}</span><span>now</span></div></figure>",
            minutes / 2
        );
    }
}

/// The lines alone, for a table.
pub(super) fn sparkline(html: &mut String, title: &str, values: &[f32]) {
    let series = [Series { class: "first", values }];
    lines(html, &series, title);
}

/// Minutes that the points of these lines fill.
fn minutes_of(series: &[Series<'_>]) -> usize {
    let points = series.iter().map(|series| series.values.len()).max().unwrap_or_default();
    SPANS.into_iter().find(|minutes| points <= minutes * OF_A_MINUTE).unwrap_or(60)
}

fn values_of<'a>(series: &'a [Series<'_>]) -> impl Iterator<Item = f32> + 'a {
    series.iter().flat_map(|series| series.values).copied()
}

fn lines(html: &mut String, series: &[Series<'_>], label: &str) {
    let most = values_of(series).filter(|value| value.is_finite()).fold(0.0, f32::max);
    let _ = write!(
        html,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        Escaped(label)
    );
    for Series { class, values } in series {
        let path = path(values, minutes_of(series) * OF_A_MINUTE, most);
        let _ = write!(html, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    html.push_str("</svg>");
}

/// The line, of `span` points across: an interrupted one, where there are no values.
fn path(values: &[f32], span: usize, most: f32) -> String {
    let values = &values[values.len().saturating_sub(span)..];
    let (left, step) = (span - values.len(), WIDTH / span as f32);
    let mut path = String::new();
    let mut is_drawing = false;
    for (place, value) in values.iter().enumerate() {
        if value.is_nan() {
            is_drawing = false;
            continue;
        }
        let height = match value {
            value if value.is_infinite() => 1.0, // it is longer than what is measured
            value if most > 0.0 => value.min(most) / most,
            _ => 0.0,
        };
        let (x, y) = ((left + place + 1) as f32 * step - 1.0, (HEIGHT - 1.0) - height * (HEIGHT - 2.0));
        let _ = if is_drawing { write!(path, "L{x} {y:.1}") } else { write!(path, "M{x} {y:.1}h.5") };
        is_drawing = true;
    }
    path
}

/// The values of a figure, with those of the last seconds.
pub(super) fn values(points: impl Iterator<Item = Point>, figure: fn(&Point) -> f32) -> Vec<f32> {
    points.map(|point| figure(&point)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_right_and_stop_where_there_is_nothing() {
        assert_eq!(path(&[0.0, f32::NAN, 10.0, 5.0], POINTS, 10.0), "M176 59.0h.5M178 1.0h.5L179 30.0");
        assert_eq!(path(&[0.0; 300], POINTS, 0.0).matches('L').count(), POINTS - 1);
        assert_eq!(path(&[f32::INFINITY], POINTS, 0.0), "M179 1.0h.5");
        assert_eq!(path(&[0.0, 1.0], 30, 1.0), "M173 59.0h.5L179 1.0");
    }

    #[test]
    fn a_chart_is_as_long_as_what_was_kept() {
        let minutes = |points: usize| minutes_of(&[Series { class: "first", values: &vec![0.0; points] }]);
        assert_eq!([0, 30, 31, 91, POINTS, POINTS + 1].map(minutes), [10, 10, 30, 60, 60, 60]);
    }

    #[test]
    fn a_chart_says_what_it_shows() {
        let mut html = String::new();
        let series = [Series { class: "first", values: &[1.0, 4.0] }];
        Chart { title: "<a>", now: &["4".into()], unit: |value| format!("{value:.0}"), series: &series }
            .write(&mut html);
        assert!(html.contains("aria-label=\"&lt;a&gt;, last 10 minutes: at most 4, now 4\""), "{html}");
        assert!(!html.contains("<a>") && !html.contains("style="), "{html}");
    }
}
