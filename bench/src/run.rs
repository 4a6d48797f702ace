//! One run: a plan, measured from its first sample to the results.

use std::time::{Instant, SystemTime};

use crate::method::{measure, Candidate, Measured, Plan};
use crate::options::Options;
use crate::progress::Progress;
use crate::results::{self, Results, Skipped, WorkloadInfo};
use crate::{bound, interrupt, load, machine, Failure};

/// Measures a plan and puts the results together.
pub(crate) fn run_plan(
    options: &Options,
    plan: &Plan,
    skipped: Vec<Skipped>,
    title: &str,
) -> Result<Results, Failure> {
    if plan.candidates.is_empty() {
        let why: Vec<String> = skipped.iter().map(|one| format!("  {}: {}", one.scheme, one.why)).collect();
        return Err(Failure(format!(
            "nothing can be measured here (--install installs what is missing):\n{}",
            why.join("\n")
        )));
    }
    let generators = vec![load::generator()?];
    let (started, begun) = (SystemTime::now(), Instant::now());
    let mut progress = Progress::begin(plan);
    let mut measured = measure(plan, |event| progress.show(&event));
    let bounds = search_bounds(options, plan, &mut measured);
    measured.skipped.splice(0..0, skipped);
    Ok(Results {
        format: results::FORMAT,
        title: title.into(),
        command: options.command.clone(),
        started_unix: started.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        took_seconds: begun.elapsed().as_secs_f64(),
        machine: machine::describe(),
        method: results::Method {
            rounds: plan.rounds,
            warm_up_seconds: plan.warm_up.as_secs_f64(),
            seconds: plan.time.as_secs_f64(),
            workers: options.workers,
            threads: options.threads,
            generators,
        },
        schemes: plan.candidates.iter().map(Candidate::info).collect(),
        workloads: plan
            .workloads
            .iter()
            .map(|one| WorkloadInfo { name: one.name.clone(), title: one.title.clone() })
            .collect(),
        skipped: measured.skipped,
        samples: measured.samples,
        bounds,
        answer: None,
        interrupted: interrupt::came(),
    })
}

fn search_bounds(options: &Options, plan: &Plan, measured: &mut Measured) -> Vec<results::Bound> {
    let Some(p99_ms) = options.bound else { return Vec::new() };
    let mut bounds = Vec::new();
    for workload in &plan.workloads {
        for candidate in &plan.candidates {
            let of_this = |sample: &&results::Sample| {
                sample.scheme == candidate.name && sample.workload == workload.name
            };
            let saturated = measured
                .samples
                .iter()
                .filter(of_this)
                .map(|sample| sample.requests_per_second)
                .fold(0.0, f64::max);
            if saturated == 0.0 || interrupt::came() {
                continue;
            }
            eprintln!("searching the bound of {} with {}", candidate.name, workload.name);
            match bound::search(plan, candidate, workload, saturated, p99_ms) {
                Ok(bound) => bounds.push(bound),
                Err(_) if interrupt::came() => {}
                Err(failure) => measured.skipped.push(Skipped {
                    scheme: candidate.name.clone(),
                    workload: Some(workload.name.clone()),
                    why: format!("the search for its bound: {failure}"),
                    packages: Vec::new(),
                }),
            }
        }
    }
    bounds
}

impl Candidate {
    fn info(&self) -> results::SchemeInfo {
        results::SchemeInfo { name: self.name.clone(), ..self.scheme.info() }
    }
}
