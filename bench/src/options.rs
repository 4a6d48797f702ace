//! What people ask for, and where the answer goes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::method::{Candidate, Plan};
use crate::output::print;
use crate::results::Load;
use crate::scheme::Scheme;
use crate::workload::Workload;
use crate::{install, load, machine, Failure};

/// What people may ask.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) command: String,
    pub(crate) only: Vec<String>,
    pub(crate) workloads: Vec<String>,
    pub(crate) loads: Vec<Load>,
    pub(crate) rounds: u32,
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) workers: u32,
    pub(crate) threads: u32,
    pub(crate) counts: bool,
    pub(crate) bound: Option<Option<f64>>,
    pub(crate) install: bool,
    pub(crate) output: PathBuf,
    pub(crate) paths: Vec<String>,
}

impl Options {
    /// Before anything is measured, as an error half an hour later would be a waste.
    ///
    /// # Errors
    /// The reports could not be written.
    pub(crate) fn refuse_unwritable_output(&self) -> Result<(), Failure> {
        let problem =
            |error| Failure(format!("cannot write reports to {} (--output): {error}", self.output.display()));
        std::fs::create_dir_all(&self.output).map_err(problem)?;
        tempfile::tempfile_in(&self.output).map_err(problem)?;
        Ok(())
    }

    /// Installs what these need, if that was asked for.
    pub(crate) fn install_missing(&self, schemes: &[Scheme], workloads: &[Workload]) -> Result<(), Failure> {
        if !self.install {
            return Ok(());
        }
        install::install(&wanted(schemes, workloads))
    }

    /// Prints a table, and writes all figures and a page with the table into the output folder, to files of this name.
    pub(crate) fn report(
        &self,
        name: &str,
        figures: &impl Serialize,
        table: &str,
        page: String,
    ) -> Result<(), Failure> {
        print(table)?;
        let json = serde_json::to_string_pretty(figures)
            .map_err(|error| Failure(format!("write the results as JSON: {error}")))?;
        self.write(&[(&format!("{name}.json"), json), (&format!("{}.md", name.to_uppercase()), page)])
    }

    /// Writes these files into the output folder, and says so.
    pub(crate) fn write(&self, files: &[(&str, String)]) -> Result<(), Failure> {
        self.write_silently(files)?;
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        print(&format!("\nWritten to {}: {}\n", self.output.display(), names.join(", ")))
    }

    /// Writes these files into the output folder.
    pub(crate) fn write_silently(&self, files: &[(&str, String)]) -> Result<(), Failure> {
        let problem =
            |path: &Path, error: std::io::Error| Failure(format!("cannot write {}: {error}", path.display()));
        for (name, text) in files {
            let path = self.output.join(name);
            std::fs::write(&path, text).map_err(|error| problem(&path, error))?;
        }
        Ok(())
    }

    /// A scheme in the size that was asked for.
    pub(crate) fn candidate(&self, scheme: Scheme) -> Candidate {
        Candidate { name: scheme.name.clone(), scheme, workers: self.workers, threads: self.threads }
    }

    pub(crate) fn plan(&self, candidates: Vec<Candidate>, workloads: Vec<Workload>) -> Plan {
        Plan {
            candidates,
            workloads,
            loads: self.loads.clone(),
            rounds: self.rounds,
            warm_up: self.warm_up,
            time: self.time,
            cores: machine::describe().cores,
            counts: self.counts,
        }
    }
}

/// Packages that these need and that may be missing, and where.
fn wanted(schemes: &[Scheme], workloads: &[Workload]) -> install::Wanted {
    // The generators, and what prepares the applications, are this machine's in any case.
    let mut wanted = install::Wanted::from([(None, BTreeSet::new())]);
    for scheme in schemes {
        let is_missing = scheme.missing().is_some();
        for (root, packages) in scheme.packages() {
            let packages = packages.iter().filter(|_| is_missing).cloned();
            wanted.entry(root.cloned()).or_default().extend(packages);
        }
    }
    for (root, packages) in &mut wanted {
        packages.extend(workloads.iter().flat_map(|workload| workload.packages.clone()));
        if root.is_none() {
            packages.extend(load::PACKAGES.map(String::from));
        }
    }
    wanted
}
