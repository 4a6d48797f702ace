//! The text format of Prometheus, version 0.0.4: families of samples, each with its help and type.

use highball_link::Times;
use highball_text::visible_lines;
use std::fmt::{Display, Write};

/// A text that is written.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Begins a family: the samples that follow are of this one.
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}"); // a String takes everything
        Family { text: &mut self.0, name }
    }

    /// A family of one sample without labels.
    pub(super) fn one(&mut self, name: &'static str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    pub(super) fn text(self) -> String {
        self.0
    }
}

/// A family that is written.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.write("", labels, value);
    }

    /// The samples of a histogram.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], times: &Times) {
        for (limit, count) in times.buckets() {
            let limit = limit.as_secs_f64().to_string();
            self.write("_bucket", &[labels, &[("le", &limit)]].concat(), count);
        }
        self.write("_bucket", &[labels, &[("le", "+Inf")]].concat(), times.count());
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

/// A label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    visible_lines(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_help_type_and_samples() {
        let mut text = Exposition::default();
        let mut family = text.family("a_total", "counter", "What is counted.");
        family.sample(&[("app", "a\"b\\c\nd"), ("x", "y")], 1);
        text.one("b", "gauge", "What is.", 0.5);
        let expected = "# HELP a_total What is counted.\n# TYPE a_total counter\na_total{app=\"a\\\"b\\\\c\\nd\",x=\"y\"} 1\n\
                        # HELP b What is.\n# TYPE b gauge\nb 0.5\n";
        assert_eq!(text.text(), expected);
    }

    #[test]
    fn a_histogram_ends_with_all() {
        let mut text = Exposition::default();
        text.family("t_seconds", "histogram", "How long.").histogram(&[("app", "a")], &Times::default());
        let text = text.text();
        assert!(text.contains("t_seconds_bucket{app=\"a\",le=\"0.00025\"} 0\n"), "{text}");
        assert!(
            text.ends_with("le=\"+Inf\"} 0\nt_seconds_sum{app=\"a\"} 0\nt_seconds_count{app=\"a\"} 0\n"),
            "{text}"
        );
    }
}
