//! The text format of Prometheus, version 0.0.4, and that of OpenMetrics 1.0, which also has exemplars: families of samples, each
//! with its help and type.

use highball_link::{Exemplar, Times};
use highball_text::visible_lines;
use std::fmt::{Display, Write};
use std::time::UNIX_EPOCH;

/// How metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Prometheus,
    OpenMetrics,
}

/// A text that is written.
#[derive(Debug)]
pub(super) struct Exposition {
    text: String,
    format: Format,
}

impl Exposition {
    pub(super) fn new(format: Format) -> Exposition {
        Exposition { text: String::new(), format }
    }

    /// Begins a family: the samples that follow are of this one.
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        // There, `_total` belongs to the samples of a counter alone.
        let of_samples = match (self.format, kind) {
            (Format::OpenMetrics, "counter") => name.strip_suffix("_total"),
            _ => None,
        };
        let family = of_samples.unwrap_or(name);
        let _ = writeln!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}"); // a String takes everything
        Family { text: &mut self.text, name, format: self.format }
    }

    /// A family of one sample without labels.
    pub(super) fn one(&mut self, name: &'static str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self.format {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    pub(super) fn text(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// A family that is written.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    format: Format,
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.write("", labels, value);
    }

    /// The samples of a histogram.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], times: &Times) {
        let limits = times.buckets().map(|(limit, count)| (limit.as_secs_f64().to_string(), count));
        let all = limits.chain([("+Inf".into(), times.count())]);
        for (octave, (limit, count)) in all.enumerate() {
            let exemplar = times.exemplar(octave).filter(|_| self.format == Format::OpenMetrics);
            let exemplar = exemplar.map(exemplar_text).unwrap_or_default();
            self.write("_bucket", &[labels, &[("le", &limit)]].concat(), format_args!("{count}{exemplar}"));
        }
        self.write("_sum", labels, times.sum().as_secs_f64());
        self.write("_count", labels, times.count());
    }

    fn write(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (index, (name, value)) in labels.iter().enumerate() {
            let begin = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{begin}{name}=\"{}\"", escaped(value));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// What stands behind the number of a bucket.
fn exemplar_text(Exemplar { trace_id, time, at }: &Exemplar) -> String {
    let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    format!(" # {{trace_id=\"{trace_id}\"}} {} {at:.3}", time.as_secs_f64())
}

/// A label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    visible_lines(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_help_type_and_samples() {
        let mut text = Exposition::new(Format::Prometheus);
        let mut family = text.family("a_total", "counter", "What is counted.");
        family.sample(&[("app", "a\"b\\c\nd"), ("x", "y")], 1);
        text.one("b", "gauge", "What is.", 0.5);
        let expected = "# HELP a_total What is counted.\n# TYPE a_total counter\na_total{app=\"a\\\"b\\\\c\\nd\",x=\"y\"} 1\n\
                        # HELP b What is.\n# TYPE b gauge\nb 0.5\n";
        assert_eq!(text.text(), expected);
    }

    #[test]
    fn a_histogram_ends_with_all() {
        let mut text = Exposition::new(Format::Prometheus);
        text.family("t_seconds", "histogram", "How long.").histogram(&[("app", "a")], &Times::default());
        let text = text.text();
        assert!(text.contains("t_seconds_bucket{app=\"a\",le=\"0.00025\"} 0\n"), "{text}");
        assert!(
            text.ends_with("le=\"+Inf\"} 0\nt_seconds_sum{app=\"a\"} 0\nt_seconds_count{app=\"a\"} 0\n"),
            "{text}"
        );
    }

    #[test]
    fn open_metrics_have_exemplars_and_an_end() {
        let mut times = Times::default();
        times.add_traced(300, Some("0af7"));
        let written = |format| {
            let mut text = Exposition::new(format);
            text.one("a_total", "counter", "What is counted.", 1);
            text.family("t_seconds", "histogram", "How long.").histogram(&[], &times);
            text.text()
        };
        let text = written(Format::OpenMetrics);
        assert!(text.starts_with("# HELP a What is counted.\n# TYPE a counter\na_total 1\n"), "{text}");
        let exemplar = "t_seconds_bucket{le=\"0.0005\"} 1 # {trace_id=\"0af7\"} 0.0003 1";
        assert!(text.contains(exemplar) && text.ends_with("t_seconds_count 1\n# EOF\n"), "{text}");
        assert_eq!(text.matches("trace_id").count(), 1);
        assert!(!written(Format::Prometheus).contains("trace_id"));
    }
}
