//! Measures ways to deploy a Ruby application, side by side.
//!
//! In reading order: `scheme` (a way to deploy, read from `bench/schemes`), `workload` (the requests to send, read
//! from `bench/workloads`), `install` (the packages that it needs), `deployment` (a scheme that runs, and how it leaves nothing behind),
//! `process_tree` (what a scheme's processes use), `system_calls` (how often they call the kernel),
//! `ruby_work` (objects and garbage collection), `machine` (where it runs, and who else
//! uses that), `socket` (what clients speak), `load` (the generators that send requests), `visitors` (clients with cookies, and slow ones), `check` (whether the answers are right), `arrivals` (requests by a schedule that a seed decides, which no generator can send), `method` (the
//! rounds), `progress` (what is shown meanwhile), `bound` (the most throughput within a latency), `results` (all that was measured; what every report is
//! made of), `statistics` (medians and spreads), `report` (table, JSON, HTML, Markdown), `data` (the folder of schemes and workloads), `options` (what people ask), `run` (from the plan to the results), `app` and `compare`
//! (the two questions with one answer), `fairness`, `worker_memory` and `idle` (three claims, each with a separate
//! measurement), `applications` (three real applications), `pstore` (what Ruby measures), `interrupt` (INT and TERM), `waiting` (for what nothing tells), `output` (what it prints), `command` (the command line).

mod app;
mod applications;
mod arrivals;
mod bound;
pub mod check;
pub mod command;
mod compare;
mod data;
pub mod deployment;
mod fairness;
mod idle;
pub mod install;
mod interrupt;
pub mod load;
pub mod machine;
pub mod method;
mod options;
mod output;
pub mod process_tree;
mod progress;
mod pstore;
pub mod report;
pub mod results;
mod ruby_work;
mod run;
pub mod scheme;
pub mod socket;
pub mod statistics;
pub mod system_calls;
mod visitors;
mod waiting;
mod worker_memory;
pub mod workload;

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A benchmark that cannot go on; the words say what failed and what to do.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// The TOML files of a folder, sorted by their names.
pub(crate) fn data_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let problem = |error| Failure(format!("the folder {} cannot be read: {error}", folder.display()));
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(problem)?.collect();
    let mut files: Vec<PathBuf> = entries.map_err(problem)?.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
    Ok(files)
}

impl Failure {
    /// What failed, and why.
    pub fn new(what: impl Into<String>) -> Self {
        Failure(what.into())
    }
}
