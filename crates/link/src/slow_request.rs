//! Slow requests, and where their time went.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A request that has taken longer than the option `slow_request` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowRequestReport {
    /// The worker's number.
    pub worker: u32,
    /// Method and path, without what may be a token, and without the query.
    pub request: String,
    /// `running`, `ended`, `timed_out` (it has exceeded its time limit) or `died` (its worker has ended before it).
    pub state: String,
    /// How long it took, in seconds; if it did not end, as far as is known.
    pub seconds: f64,
    /// How often its thread was looked at.
    pub samples: u64,
    /// Where most of its time went, the largest part first.
    pub parts: Vec<SlowPartReport>,
    /// The time of all other parts, in seconds.
    pub other_seconds: f64,
    /// Time since this was reported, in seconds.
    pub seconds_ago: u64,
}

/// A part of the time of a slow request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowPartReport {
    /// How long that was.
    pub seconds: f64,
    /// What its thread did.
    pub what: SlowKind,
    /// The file of the application's innermost call, in its folder; of any innermost call, if none is the application's.
    pub file: String,
    /// The line in which it was most of this time; 0: not known.
    pub line: u32,
    /// The method.
    pub method: String,
    /// What that called most of this time; `None`: nothing.
    pub below: Option<String>,
}

/// What a thread does with the time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowKind {
    /// It computes, or waits for a processor.
    Computing,
    /// It waits for something else than the GVL.
    Waiting,
    /// It waits while other threads of its worker compute.
    Gvl,
    /// It collects garbage.
    Gc,
}

impl SlowKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            SlowKind::Computing => "computing",
            SlowKind::Waiting => "waiting",
            SlowKind::Gvl => "waiting for the GVL",
            SlowKind::Gc => "garbage collection",
        }
    }
}

impl SlowRequestReport {
    /// Where its time went, in a few lines.
    pub fn lines(&self) -> Vec<String> {
        if self.samples == 0 {
            return vec!["not sampled: the GVL was not let go until the request had ended".into()];
        }
        let total = self.parts.iter().map(|part| part.seconds).sum::<f64>() + self.other_seconds;
        let percent = |seconds: f64| (100.0 * seconds / total.max(f64::MIN_POSITIVE)).round();
        let parts = self.parts.iter().map(|part| format!("{}% {part}", percent(part.seconds)));
        let other = percent(self.other_seconds);
        parts.chain((other >= 1.0).then(|| format!("{other}% elsewhere"))).collect()
    }

    /// How it ended, if it was not by its answer.
    pub fn ending(&self) -> &'static str {
        match &*self.state {
            "running" => ", and goes on",
            "timed_out" => ", timed out",
            "died" => ", its worker ended",
            _ => "",
        }
    }
}

impl fmt::Display for SlowPartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SlowPartReport { what, file, line, method, below, .. } = self;
        write!(f, "{}", what.words())?;
        match (&**file, line) {
            ("", _) => {}
            (file, 0) => write!(f, " {file}")?,
            (file, line) => write!(f, " {file}:{line}")?,
        }
        write!(f, " {method}")?;
        match below {
            Some(below) => write!(f, " → {below}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(seconds: f64, what: SlowKind, below: Option<&str>) -> SlowPartReport {
        SlowPartReport {
            seconds,
            what,
            file: "app/models/report.rb".into(),
            line: 48,
            method: "Report#totals".into(),
            below: below.map(Into::into),
        }
    }

    #[test]
    fn a_few_lines_say_where_the_time_went() {
        let report = SlowRequestReport {
            worker: 2,
            request: "GET /reports".into(),
            state: "ended".into(),
            seconds: 3.4,
            samples: 70,
            parts: vec![
                part(2.4, SlowKind::Computing, None),
                part(0.8, SlowKind::Waiting, Some("PG::Connection#exec")),
            ],
            other_seconds: 0.2,
            seconds_ago: 3,
        };
        let lines = report.lines();
        assert_eq!(
            lines,
            [
                "71% computing app/models/report.rb:48 Report#totals",
                "24% waiting app/models/report.rb:48 Report#totals → PG::Connection#exec",
                "6% elsewhere"
            ]
        );
        let unseen = SlowRequestReport { parts: Vec::new(), samples: 0, ..report };
        assert_eq!(unseen.lines(), ["not sampled: the GVL was not let go until the request had ended"]);
    }
}
