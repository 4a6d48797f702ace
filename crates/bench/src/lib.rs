//! Measures ways to deploy a Ruby application, side by side.
//!
//! In reading order: `scheme` (a way to deploy, read from `bench/schemes`), `workload` (what is asked of it, read
//! from `bench/workloads`), `deployment` (a scheme that runs, and how it leaves nothing behind), `process_tree`
//! (what its processes use), `machine` (where it runs, and who else uses that), `load` (the generators that send
//! requests), `check` (whether the answers are right), `method` (the rounds), `bound` (the most throughput within
//! a latency), `results` (all that was measured; what every report is made of), `statistics` (medians and spreads),
//! `report` (table, JSON, HTML, Markdown), `command` (the command line).

pub mod deployment;
pub mod install;
pub mod results;
pub mod scheme;
pub mod statistics;
pub mod workload;

use thiserror::Error;

/// A benchmark that cannot go on; the words say what failed and what to do.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl Failure {
    /// What failed, and why.
    pub fn new(what: impl Into<String>) -> Self {
        Failure(what.into())
    }
}
