//! A rolling restart: a transaction that puts one generation in the place of another, or leaves everything as it was.

use crate::probe::ProbeFailure;
use highball_config::VisitorShare;
use highball_link::{Diagnosis, RestartCount, RestartReport};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// Lines of a backtrace that are reported.
pub(crate) const BACKTRACE_LINES: usize = 20;
/// Restarts that have ended and are still reported.
const REMEMBERED: usize = 8;

/// What to do before something else can be done.
pub(crate) const END_ROLLOUT_FIRST: &str =
    "a rollout is under way: finish it (highball rollout 100%), or go back (highball rollout undo)";

/// How far a restart has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The new mold loads the application.
    Booting,
    /// The canary, its first worker, starts and is asked for the probe path. Clients know nothing of it.
    Probing,
    /// A rollout: both versions serve, each of them its visitors.
    Holding,
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
            Stage::Holding => "holding",
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
    /// `highball rollout`.
    Rollout,
}

impl Asked {
    /// All of them.
    const ALL: [Asked; 6] =
        [Asked::Command, Asked::Signal, Asked::Configuration, Asked::File, Asked::Change, Asked::Rollout];

    /// The word for it in metrics.
    fn name(self) -> &'static str {
        match self {
            Asked::Command => "command",
            Asked::Signal => "signal",
            Asked::Configuration => "configuration",
            Asked::File => "file",
            Asked::Change => "change",
            Asked::Rollout => "rollout",
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
            Asked::Rollout => "highball rollout",
        })
    }
}

/// A restart that was asked for, and the number that its generation has or will have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) generation: u32,
    pub(crate) asked: Asked,
    /// The share of the visitors at which it holds; `None`: it does not.
    pub(crate) share: Option<VisitorShare>,
}

/// How a restart ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RestartOutcome<'a> {
    Done,
    Failed(&'a Failure),
    /// An operator has gone back to the old version.
    Undone,
}

impl RestartOutcome<'_> {
    /// The words for it, in the order of their numbers.
    const NAMES: [&'static str; 3] = ["done", "failed", "undone"];

    fn number(self) -> usize {
        match self {
            RestartOutcome::Done => 0,
            RestartOutcome::Failed(_) => 1,
            RestartOutcome::Undone => 2,
        }
    }
}

impl<'a> From<Option<&'a Failure>> for RestartOutcome<'a> {
    fn from(failure: Option<&'a Failure>) -> Self {
        failure.map_or(RestartOutcome::Done, RestartOutcome::Failed)
    }
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
    /// By [`Asked`] and [`RestartOutcome`].
    counts: [[u64; RestartOutcome::NAMES.len()]; Asked::ALL.len()],
}

impl PastRestarts {
    pub(crate) fn add(&mut self, wish: Wish, took: Duration, outcome: RestartOutcome<'_>, now: Instant) {
        self.counts[wish.asked as usize][outcome.number()] += 1;
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        let report = RestartReport {
            generation: wish.generation,
            asked_by: wish.asked.to_string(),
            state: RestartOutcome::NAMES[outcome.number()].into(),
            seconds: took.as_secs_f64(),
            failure: match outcome {
                RestartOutcome::Failed(failure) => Some(failure.to_string()),
                RestartOutcome::Done | RestartOutcome::Undone => None,
            },
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
            let counts = RestartOutcome::NAMES.into_iter().zip(self.counts[asked as usize]);
            counts.map(move |(outcome, count)| RestartCount { asked_by: asked.name(), outcome, count })
        };
        // Only rollouts are undone by operators.
        let may_be =
            |count: &RestartCount| count.outcome != "undone" || count.asked_by == Asked::Rollout.name();
        Asked::ALL.into_iter().flat_map(counts).filter(may_be).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(generation: u32, asked: Asked) -> Wish {
        Wish { generation, asked, share: None }
    }

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
            past.add(wish(generation, Asked::Signal), Duration::ZERO, RestartOutcome::Done, Instant::now());
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
                past.add(wish(2, Asked::File), Duration::ZERO, failed.into(), Instant::now());
            }
        }
        past.add(wish(3, Asked::Rollout), Duration::ZERO, RestartOutcome::Undone, Instant::now());
        let counts = past.counts();
        let of = |asked_by, outcome| {
            counts.iter().find(|one| one.asked_by == asked_by && one.outcome == outcome).unwrap().count
        };
        assert_eq!([of("file", "done"), of("file", "failed"), of("command", "done")], [8, 16, 0]);
        assert_eq!(of("rollout", "undone"), 1);
        assert_eq!(counts.len(), 2 * Asked::ALL.len() + 1);
    }
}
