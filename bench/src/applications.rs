//! `highball bench origins`: three real applications under four servers, as the account of 2008 has it.
//!
//! The servers of an application run at the same time and get their parts of the load in turns, as the speed of most machines drifts.
//! What was found is kept in `origins.json`, and a call measures only applications that are not there yet: so an ended run goes on,
//! and a run that would take too long is split by `--workload`.
//!
//! In reading order: `trial` (the steps), `pages` (whether all servers serve the same), `clients` (what sends the load), `heaps`
//! (garbage collections and Ruby heaps), `account` (the figures of 2008), `report` (the page), `graph` (its picture); `runtime` (variants of Highball in the place
//! of servers).

mod account;
mod clients;
mod graph;
mod heaps;
mod pages;
mod report;
pub(crate) mod runtime;
#[cfg(test)]
mod sample;
mod trial;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::data_folder;
use crate::method::Candidate;
use crate::options::Options;
use crate::output::print;
use crate::results::Machine;
use crate::scheme::Scheme;
use crate::workload::Workload;
use crate::{install, interrupt, machine, Failure};
use trial::Trial;

/// The workloads, in the order of the report.
const WORKLOADS: [&str; 3] = ["blog", "shop", "redmine"];
/// The schemes, in the order of the turns.
const SCHEMES: [&str; 4] = ["puma-cluster", "passenger", "unicorn-nginx-unix", "highball"];
/// What `--tuned` adds to the environment of the other servers.
const TUNED: [(&str, &str); 2] = [("RUBY_YJIT_ENABLE", "1"), ("LD_PRELOAD", "libjemalloc.so.2")];
/// What is kept.
const RESULTS: &str = "origins.json";

/// The size of the load, and of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Measured for each server, after others that are not.
    pub(crate) requests: u32,
    /// Clients at a time. Each has a new connection for each request.
    pub(crate) clients: u32,
    pub(crate) workers: u32,
    pub(crate) threads: u32,
    /// Turns of each server.
    pub(crate) turns: u32,
    /// Whether the other servers have YJIT and jemalloc, as people configure them by hand.
    pub(crate) tuned: bool,
}

/// All that was measured on this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Results {
    machine: Machine,
    trials: Vec<Trial>,
}

/// Measures what is missing, and writes `ORIGINS.md`, `origins.svg` and `origins.json`.
pub(crate) fn run(options: &Options, load: Load) -> Result<(), Failure> {
    let folder = data_folder()?;
    let schemes = named(&SCHEMES, &options.only, "scheme", |name| {
        Scheme::read(&folder.join("schemes").join(name).with_extension("toml"))
    })?;
    let workloads = workloads(&folder, options)?;
    options.install_missing(&schemes, &workloads)?;
    refuse_missing(&schemes, &workloads)?;
    options.refuse_unwritable_output()?;
    let mut results = Results::read(&options.output)?;
    results.refuse_other_loads(&workloads, load)?;
    let configured = |scheme: Scheme| match load.tuned && scheme.server != "Highball" {
        true => {
            let title = format!("{}, YJIT and jemalloc", scheme.title);
            scheme.with(&[], &TUNED, title)
        }
        false => scheme,
    };
    let candidates: Vec<Candidate> =
        schemes.into_iter().map(|scheme| options.candidate(configured(scheme))).collect();
    for workload in &workloads {
        if candidates.iter().all(|candidate| results.of(&workload.name, &candidate.name).next().is_some()) {
            continue;
        }
        eprintln!("{}:", workload.name);
        workload.prepare(&interrupt::came)?;
        let trials = trial::measure(&candidates, workload, &load)?;
        results.trials.retain(|trial| trial.workload != workload.name);
        results.trials.extend(trials);
        results.write(options)?; // what comes next may fail
    }
    let page = report::markdown(&results);
    print(&report::table(&results))?;
    options.write(&[("ORIGINS.md", page), ("origins.svg", graph::svg(&results))])
}

/// The named workloads, or all three.
fn workloads(folder: &Path, options: &Options) -> Result<Vec<Workload>, Failure> {
    named(&WORKLOADS, &options.workloads, "workload", |name| {
        Workload::read(&folder.join("workloads").join(name).with_extension("toml"))
    })
}

/// The items with the given names, or all of them.
fn named<T>(
    all: &[&str],
    names: &[String],
    what: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    if let Some(unknown) = names.iter().find(|name| !all.contains(&name.as_str())) {
        return Err(Failure(format!(
            "there is no {what} {unknown} in this benchmark; there are: {}",
            all.join(", ")
        )));
    }
    let is_chosen = |name: &&&str| names.is_empty() || names.iter().any(|one| one == **name);
    all.iter().filter(is_chosen).map(|name| read(name)).collect()
}

/// Everything that is missing at once, with the command that brings it.
fn refuse_missing(schemes: &[Scheme], workloads: &[Workload]) -> Result<(), Failure> {
    let mut why: Vec<String> = schemes
        .iter()
        .filter_map(|scheme| scheme.missing().map(|missing| format!("{}: {}", scheme.title, missing.why)))
        .collect();
    let of_schemes = schemes.iter().filter_map(Scheme::missing).flat_map(|missing| missing.packages);
    let of_workloads = install::not_installed(workloads.iter().flat_map(|workload| &workload.packages));
    let missing: BTreeSet<String> = of_schemes.chain(of_workloads).collect();
    if !missing.is_empty() {
        let missing: Vec<String> = missing.into_iter().collect();
        let names = missing.join(" ");
        why.push(format!("packages that are not installed: apt-get install --no-install-recommends {names}"));
    }
    if why.is_empty() {
        return Ok(());
    }
    Err(Failure(format!(
        "something is missing (--install installs it; --only and --workload leave it out):\n  {}",
        why.join("\n  ")
    )))
}

impl Results {
    /// What is kept in this folder, if it was measured on this machine.
    fn read(folder: &Path) -> Result<Results, Failure> {
        let empty = Results { machine: machine::describe(), trials: Vec::new() };
        let file = folder.join(RESULTS);
        let problem = |error: &dyn std::fmt::Display| Failure(format!("results {}: {error}", file.display()));
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(empty),
            read => read.map_err(|error| problem(&error))?,
        };
        let kept: Results = serde_json::from_str(&text).map_err(|error| problem(&error))?;
        if kept.machine != empty.machine {
            let why = "it was measured on another machine: move it away, or name another --output";
            return Err(problem(&why));
        }
        eprintln!("{} holds what was measured before ({})", file.display(), kept.trials.len());
        Ok(kept)
    }

    /// All servers of an application get the same load.
    fn refuse_other_loads(&self, workloads: &[Workload], load: Load) -> Result<(), Failure> {
        let is_other = |trial: &&Trial| {
            trial.load != load && workloads.iter().any(|workload| workload.name == trial.workload)
        };
        match self.trials.iter().find(is_other) {
            None => Ok(()),
            Some(trial) => Err(Failure(format!(
                "{} was measured with another load before ({} requests): move {RESULTS} away, or name another --output",
                trial.workload, trial.load.requests
            ))),
        }
    }

    fn write(&self, options: &Options) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Failure(format!("write the results as JSON: {error}")))?;
        options.write_silently(&[(RESULTS, text)])
    }

    /// The trials of an application under a server.
    fn of<'a>(&'a self, workload: &'a str, scheme: &'a str) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().filter(move |trial| trial.workload == workload && trial.scheme == scheme)
    }
}
