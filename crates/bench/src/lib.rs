//! Measures ways to deploy a Ruby application, side by side.
//!
//! In reading order: `scheme` (a way to deploy, read from `bench/schemes`), `workload` (what is asked of it, read
//! from `bench/workloads`), `deployment` (a scheme that runs, and how it leaves nothing behind), `process_tree`
//! (what its processes use), `machine` (where it runs, and who else uses that), `load` (the generators that send
//! requests), `check` (whether the answers are right), `method` (the rounds), `bound` (the most throughput within
//! a latency), `results` (all that was measured; what every report is made of), `statistics` (medians and spreads),
//! `report` (table, JSON, HTML, Markdown), `command` (the command line).

pub mod results;
pub mod scheme;
pub mod statistics;
pub mod workload;

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A benchmark that cannot go on; the words say what failed and what to do.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// The TOML files of a folder, sorted by name.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn data_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let problem =
        |error: std::io::Error| Failure(format!("cannot read the folder {}: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(problem)?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(problem)?;
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    Ok(files)
}

impl Failure {
    /// What failed, and why.
    pub fn new(what: impl Into<String>) -> Self {
        Failure(what.into())
    }
}
