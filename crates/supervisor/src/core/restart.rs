//! A rolling restart: a transaction that puts one generation in the place of another, or leaves everything as it was.

use crate::probe::ProbeFailure;
use highball_link::{Diagnosis, RestartCount, RestartReport};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// Lines of a backtrace that are reported.
pub(crate) const BACKTRACE_LINES: usize = 20;
/// Restarts that have ended and are still reported.
const REMEMBERED: usize = 8;

/// How far a restart has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The new mold loads the application.
    Booting,
    /// The canary, its first worker, starts and is asked for the probe path. Clients know nothing of it.
    Probing,
    /// New workers take the places of old ones.
    Rolling,
    /// It has failed: old workers take their places again.
    Undoing,
}

impl Stage {
    /// The word for it in `highball status`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Booting => "booting",
            Stage::Probing => "probing",
            Stage::Rolling => "rolling",
            Stage::Undoing => "undoing",
        }
    }
}

/// Who wanted a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `highball restart`.
    Command,
    /// USR1.
    Signal,
    /// A configuration that has changed.
    Configuration,
    /// tmp/restart.txt, as `rails restart` touches it.
    File,
    /// A change of the application's files, while there is tmp/always_restart.txt.
    Change,
}

impl Asked {
    /// All of them.
    const ALL: [Asked; 5] = [Asked::Command, Asked::Signal, Asked::Configuration, Asked::File, Asked::Change];

    /// The word for it in metrics.
    fn name(self) -> &'static str {
        match self {
            Asked::Command => "command",
            Asked::Signal => "signal",
            Asked::Configuration => "configuration",
            Asked::File => "file",
            Asked::Change => "change",
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Asked::Command => "highball restart",
            Asked::Signal => "USR1",
            Asked::Configuration => "its configuration",
            Asked::File => "tmp/restart.txt",
            Asked::Change => "tmp/always_restart.txt",
        })
    }
}

/// A restart that was asked for, and the number that its generation has or will have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) generation: u32,
    pub(crate) asked: Asked,
}

/// Why a restart came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What failed, and at which step.
    pub(crate) what: String,
    /// The place in the application that it points to.
    pub(crate) at: Option<String>,
    /// The calls that led there, one a line.
    pub(crate) backtrace: Option<String>,
    /// What to do.
    pub(crate) remedy: String,
}

impl Failure {
    pub(crate) fn new(what: String, remedy: &str) -> Failure {
        Failure { what, at: None, backtrace: None, remedy: remedy.into() }
    }

    pub(crate) fn of_probe(ProbeFailure { what, remedy }: ProbeFailure<'_>) -> Failure {
        Failure::new(what, remedy)
    }

    /// The new mold did not come up.
    pub(crate) fn of_diagnosis(diagnosis: &Diagnosis) -> Failure {
        Failure {
            what: diagnosis.summary(),
            at: diagnosis.error.place(),
            backtrace: diagnosis.own_calls(BACKTRACE_LINES),
            remedy: diagnosis.remedy_with_command().unwrap_or_else(|| "Fix it, and restart again.".into()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (name, text) in [("at", &self.at), ("backtrace", &self.backtrace)] {
            if let Some(text) = text {
                write!(f, "\n{name}: {}", text.replace('\n', "\n    "))?;
            }
        }
        write!(f, "\n{}", self.remedy)
    }
}

/// The restarts that have ended: as many as are remembered, and the numbers of all.
#[derive(Debug, Default)]
pub(crate) struct PastRestarts {
    last: VecDeque<(RestartReport, Instant)>,
    /// By [`Asked`]: the restarts that succeeded, and the failed ones.
    counts: [[u64; 2]; Asked::ALL.len()],
}

impl PastRestarts {
    pub(crate) fn add(&mut self, wish: Wish, took: Duration, failure: Option<&Failure>, now: Instant) {
        self.counts[wish.asked as usize][usize::from(failure.is_some())] += 1;
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        let report = RestartReport {
            generation: wish.generation,
            asked_by: wish.asked.to_string(),
            state: if failure.is_some() { "failed" } else { "done" }.into(),
            seconds: took.as_secs_f64(),
            failure: failure.map(Failure::to_string),
            mold: None,
            ended_seconds_ago: None,
        };
        self.last.push_back((report, now));
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RestartReport> {
        self.last.iter().map(|(report, _)| report)
    }

    /// The reports, with the time since each restart ended.
    pub(crate) fn reports(&self, now: Instant) -> impl Iterator<Item = RestartReport> + '_ {
        let aged = move |(report, ended): &(RestartReport, Instant)| {
            let ended_seconds_ago = Some(now.saturating_duration_since(*ended).as_secs());
            RestartReport { ended_seconds_ago, ..report.clone() }
        };
        self.last.iter().map(aged)
    }

    /// How many there were.
    pub(crate) fn counts(&self) -> Vec<RestartCount> {
        let counts = |asked: Asked| {
            let [done, failed] = self.counts[asked as usize];
            [("done", done), ("failed", failed)].map(|(outcome, count)| RestartCount {
                asked_by: asked.name(),
                outcome,
                count,
            })
        };
        Asked::ALL.into_iter().flat_map(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_and_where_and_what_to_do() {
        let failure = Failure {
            what: "loading the app failed: NameError: no".into(),
            at: Some("app.rb:3".into()),
            backtrace: Some("app.rb:3\nconfig.ru:1".into()),
            remedy: "Fix it.".into(),
        };
        let text = "loading the app failed: NameError: no\nat: app.rb:3\nbacktrace: app.rb:3\n    config.ru:1\nFix it.";
        assert_eq!(failure.to_string(), text);
    }

    #[test]
    fn only_the_last_restarts_are_remembered() {
        let mut past = PastRestarts::default();
        for generation in 2..20 {
            past.add(Wish { generation, asked: Asked::Signal }, Duration::ZERO, None, Instant::now());
        }
        let numbers: Vec<u32> = past.iter().map(|restart| restart.generation).collect();
        assert_eq!(numbers, (12..20).collect::<Vec<u32>>());
    }

    #[test]
    fn all_restarts_are_counted() {
        let mut past = PastRestarts::default();
        let failure = Failure::new("it does not boot".into(), "Fix it.");
        let fails = [None, Some(&failure), Some(&failure)];
        for _ in 0..REMEMBERED {
            for failed in fails {
                past.add(Wish { generation: 2, asked: Asked::File }, Duration::ZERO, failed, Instant::now());
            }
        }
        let counts = past.counts();
        let of = |asked_by, outcome| {
            counts.iter().find(|one| one.asked_by == asked_by && one.outcome == outcome).unwrap().count
        };
        assert_eq!([of("file", "done"), of("file", "failed"), of("command", "done")], [8, 16, 0]);
        assert_eq!(counts.len(), 2 * Asked::ALL.len());
    }
}
