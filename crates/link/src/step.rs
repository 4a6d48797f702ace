//! The named steps of booting an application, so that a failure can say where it was.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One step on the way from nothing to a worker that serves, in their order. The mold reports all but the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The application's own configuration file is read. Only its failure is a step of a journey.
    ReadConfiguration,
    /// The Ruby interpreter is started.
    StartRuby,
    /// Highball's own Ruby code and extension are loaded.
    LoadHighball,
    /// What the application is, is found out from its files.
    FindApp,
    /// Bundler resolves the gems of the Gemfile.
    LoadBundler,
    /// The application itself is loaded.
    LoadApp,
    /// Connections are closed and the heap is made ready to be shared.
    PrepareFork,
    /// A worker is forked, runs the application's `after_fork` blocks, and gets ready to serve.
    StartWorker,
}

impl Step {
    /// All steps in their order, with what became of each where this one failed: `done`, `failed` or `left`.
    pub fn journey(self) -> impl Iterator<Item = (Step, &'static str)> {
        let steps = [
            Step::StartRuby,
            Step::LoadHighball,
            Step::FindApp,
            Step::LoadBundler,
            Step::LoadApp,
            Step::PrepareFork,
            Step::StartWorker,
        ];
        let first = (self == Step::ReadConfiguration).then_some(self);
        let mut state = "done";
        first.into_iter().chain(steps).map(move |step| {
            if step == self {
                state = "left";
                return (step, "failed");
            }
            (step, state)
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::ReadConfiguration => "reading the configuration",
            Step::StartRuby => "starting Ruby",
            Step::LoadHighball => "loading Highball",
            Step::FindApp => "finding the app",
            Step::LoadBundler => "loading the gems",
            Step::LoadApp => "loading the app",
            Step::PrepareFork => "preparing to fork",
            Step::StartWorker => "starting a worker",
        })
    }
}
