//! `highball bench fairness`: how long short requests wait when a few others take long.
//!
//! Requests arrive independently of each other and of the answers, at 70 % of what the slowest of the schemes can
//! carry; all schemes meet the very same arrivals. What a scheme makes of it is how well it sends requests to workers that
//! have time for them.

use std::time::Duration;

use serde::Serialize;

use crate::data::{data_folder, present};
use crate::deployment::Deployment;
use crate::load::{self, Target};
use crate::machine::{self, CpuShares};
use crate::method::{setting, target, Candidate};
use crate::options::Options;
use crate::results::{Errors, Latency, Load, Machine};
use crate::scheme::Scheme;
use crate::statistics::Spread;
use crate::workload::Workload;
use crate::{arrivals, interrupt, Failure};

/// The workload: its requests.
const WORKLOAD: &str = "long-requests";
/// The scheme, and whether its workers have several threads.
const SCHEMES: [(&str, bool); 4] =
    [("highball", true), ("puma-cluster", true), ("passenger", false), ("puma-haproxy-tcp", false)];
/// Of the least capacity.
const SHARE: f64 = 0.7;
/// For how long a scheme's capacity is measured: it has to contain the expected number of long requests.
const CAPACITY_TIME: Duration = Duration::from_secs(15);
/// Load before a round that is not measured.
const WARM_UP: Duration = Duration::from_secs(2);

/// All that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Fairness {
    command: String,
    machine: Machine,
    workload: String,
    workers: u32,
    /// In each worker of a scheme whose workers have several.
    threads: u32,
    seconds: f64,
    schemes: Vec<Measured>,
    /// Requests per second that arrived.
    rate: f64,
}

/// A scheme's figures.
#[derive(Debug, Serialize)]
struct Measured {
    scheme: String,
    title: String,
    version: String,
    threads: u32,
    /// Requests per second under saturation.
    capacity: f64,
    rounds: Vec<Round>,
}

/// A round; its number is the seed of its arrivals.
#[derive(Debug, Serialize)]
struct Round {
    round: u32,
    /// Latency of requests that are not long by nature.
    short: Latency,
    long: Latency,
    answered: u64,
    errors: Errors,
    stolen: f64,
}

/// Measures, prints the table, and writes `fairness.json` and `FAIRNESS.md`.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let folder = data_folder()?;
    let workload = Workload::read(&folder.join("workloads").join(WORKLOAD).with_extension("toml"))?;
    options.refuse_unwritable_output()?;
    let candidates = candidates(options, &folder.join("schemes"))?;
    let capacities =
        candidates.iter().map(|candidate| capacity(candidate, &workload)).collect::<Result<Vec<f64>, _>>()?;
    let rate = SHARE * capacities.iter().copied().fold(f64::INFINITY, f64::min);
    let measured = |(candidate, capacity): (&Candidate, f64)| Measured {
        scheme: candidate.name.clone(),
        title: candidate.scheme.title.clone(),
        version: candidate.scheme.version(),
        threads: candidate.threads,
        capacity,
        rounds: Vec::new(),
    };
    let mut fairness = Fairness {
        command: options.command.clone(),
        machine: machine::describe(),
        workload: workload.title.clone(),
        workers: options.workers,
        threads: options.threads,
        seconds: options.time.as_secs_f64(),
        schemes: candidates.iter().zip(capacities).map(measured).collect(),
        rate,
    };
    for number in 1..=options.rounds {
        for (candidate, scheme) in candidates.iter().zip(&mut fairness.schemes) {
            let round = round(candidate, &workload, rate, options.time, number)?;
            eprintln!(
                "round {number}, {}: short requests p50 {:.0} ms, p99 {:.0} ms, {} errors",
                scheme.scheme,
                round.short.p50,
                round.short.p99,
                round.errors.total()
            );
            scheme.rounds.push(round);
        }
    }
    let table = fairness.table();
    options.report("fairness", &fairness, &table, fairness.markdown(&table))
}

fn candidates(options: &Options, schemes: &std::path::Path) -> Result<Vec<Candidate>, Failure> {
    let read = |(name, several): &(&str, bool)| {
        let scheme = Scheme::read(&schemes.join(name).with_extension("toml"))?;
        let threads = if *several { options.threads } else { 1 };
        Ok(Candidate { name: (*name).into(), scheme, workers: options.workers, threads })
    };
    let wanted = SCHEMES
        .iter()
        .filter(|(name, _)| options.only.is_empty() || options.only.iter().any(|only| only == name));
    let candidates = wanted.map(read).collect::<Result<Vec<Candidate>, Failure>>()?;
    let schemes: Vec<Scheme> = candidates.iter().map(|candidate| candidate.scheme.clone()).collect();
    options.install_missing(&schemes, &[])?;
    match present(schemes).1.first() {
        Some(missing) => Err(Failure(format!("{}: {} (--install installs it)", missing.scheme, missing.why))),
        None if candidates.is_empty() => {
            Err(Failure(format!("--only names none of these: {}", SCHEMES.map(|(name, _)| name).join(", "))))
        }
        None => Ok(candidates),
    }
}

/// Requests per second that it carries, with as many connections as it can work on at a time.
fn capacity(candidate: &Candidate, workload: &Workload) -> Result<f64, Failure> {
    let deployment = Deployment::start(&candidate.scheme, &setting(candidate, workload))?;
    let connections = candidate.workers * candidate.threads;
    let load = Load { connections, rate: None, keep_alive: true };
    let target = target(&deployment, &workload.requests);
    load::saturate(&target, &load, WARM_UP)?;
    let outcome = load::saturate(&target, &load, CAPACITY_TIME)?;
    deployment.stop()?;
    eprintln!("capacity of {}: {:.0} requests/s", candidate.name, outcome.requests_per_second);
    Ok(outcome.requests_per_second)
}

fn round(
    candidate: &Candidate,
    workload: &Workload,
    rate: f64,
    time: Duration,
    number: u32,
) -> Result<Round, Failure> {
    let deployment = Deployment::start(&candidate.scheme, &setting(candidate, workload))?;
    let target: Target<'_> = target(&deployment, &workload.requests);
    let arrive = |time, seed| {
        let arrivals = arrivals::schedule(rate, time, workload.requests.len(), seed);
        arrivals::send(&target, &arrivals, &interrupt::came)
    };
    arrive(WARM_UP, 0);
    let shares = CpuShares::now();
    let arrived = arrive(time, number.into());
    let stolen = CpuShares::now().since(&shares).stolen;
    deployment.stop()?;
    if interrupt::came() {
        return Err(Failure::new("ended by a signal"));
    }
    let arrivals::Arrived { short, long, answered, errors, .. } = arrived;
    Ok(Round { round: number, short, long, answered, errors, stolen })
}

impl Measured {
    fn spread(&self, figure: impl Fn(&Round) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(figure)).expect("there is a round")
    }

    fn errors(&self) -> u64 {
        self.rounds.iter().map(|round| round.errors.total()).sum()
    }

    fn row(&self, first: f64) -> String {
        let p99 = self.spread(|round| round.short.p99);
        let errors = self.errors();
        let mark = if errors > 0 { "!" } else { "" };
        format!(
            "| {} × {} | {:.0} | {:.0} | {:.0} ({:.0}–{:.0}) | {:.2} | {:.0} | {} | {mark}{errors} |\n",
            self.title,
            self.threads,
            self.capacity,
            self.spread(|round| round.short.p50).median,
            p99.median,
            p99.least,
            p99.most,
            first / p99.median,
            self.spread(|round| round.long.p50).median,
            self.rounds.iter().map(|round| round.answered).sum::<u64>(),
        )
    }
}

impl Fairness {
    /// A table that reads as well in a terminal as in Markdown.
    fn table(&self) -> String {
        let first = &self.schemes[0];
        let p99 = first.spread(|round| round.short.p99).median;
        let rows: String = self.schemes.iter().map(|scheme| scheme.row(p99)).collect();
        format!(
            "| {} workers × threads | capacity, requests/s | short: p50 ms | short: p99 ms (rounds) | {}'s p99 as a \
             multiple of it | long: p50 ms | answered | errors |\n| --- | --: | --: | --: | --: | --: | --: | --: |\n{rows}",
            self.workers, first.title
        )
    }

    fn markdown(&self, table: &str) -> String {
        let versions: Vec<&str> = self.schemes.iter().map(|scheme| scheme.version.as_str()).collect();
        let stolen = self.schemes.iter().flat_map(|scheme| &scheme.rounds).map(|round| round.stolen);
        format!(
            "# Short requests beside long ones\n\nMade by `{}`. {}, {} cores, {}; {}. {}; {:.0} requests arrive per second, \
             independently of each other and of the answers: {:.0}% of the least capacity. Each round has other arrivals, \
             the same for all ({} s; at most {:.0}% of the CPU time was stolen).\n\n{table}",
            self.command,
            self.machine.cpu,
            self.machine.cores,
            self.machine.ruby,
            versions.join("; "),
            self.workload,
            self.rate,
            100.0 * SHARE,
            self.seconds,
            100.0 * stolen.fold(0.0, f64::max),
        )
    }
}
