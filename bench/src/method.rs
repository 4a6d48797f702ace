//! The rounds: every scheme in turn, A B C A B C, so that what disturbs the machine disturbs all alike.

use std::time::{Duration, Instant};

use crate::deployment::{Deployment, Setting};
use crate::load::{self, Target};
use crate::machine::CpuShares;
use crate::process_tree::ProcessTree;
use crate::results::{Load, RubyWork, Sample, Skipped};
use crate::scheme::Scheme;
use crate::socket::Protocol;
use crate::visitors::{self, SlowReaders};
use crate::workload::{Request, Workload};
use crate::{check, interrupt, ruby_work, system_calls, Failure};

/// How many answers are checked for each load, in all rounds together.
const CHECKED_REQUESTS: u32 = 2000;

/// How long that may take for each sample; a slow server is asked less often.
const CHECK_TIME: Duration = Duration::from_secs(2);

/// For how long system calls and objects are counted.
pub(crate) const COUNTED: Duration = Duration::from_secs(1);

/// What is measured, and for how long.
#[derive(Debug)]
pub struct Plan {
    /// The ways to deploy, each with how many workers and threads.
    pub candidates: Vec<Candidate>,
    /// The requests to send.
    pub workloads: Vec<Workload>,
    /// Each sample's load.
    pub loads: Vec<Load>,
    /// How often each scheme has its turn.
    pub rounds: u32,
    /// Load before each sample, which is not measured.
    pub warm_up: Duration,
    /// A sample's length.
    pub time: Duration,
    /// Cores of the machine.
    pub cores: u32,
    /// Whether system calls and objects are counted, in a separate run in the first round.
    pub counts: bool,
}

/// A scheme with its size.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What the results call it.
    pub name: String,
    /// The scheme.
    pub scheme: Scheme,
    /// Worker processes.
    pub workers: u32,
    /// Threads in each.
    pub threads: u32,
}

/// What happens while it is measured.
#[derive(Debug)]
#[allow(missing_docs)] // where a name says all
pub enum Event<'a> {
    /// A workload's application gets what it needs.
    Preparing(&'a str),
    /// A scheme's turn begins.
    Turn { round: u32, candidate: &'a str, workload: &'a str },
    /// A sample was taken.
    Sampled(&'a Sample),
    /// A scheme cannot be measured, in this round or at all.
    Failed(&'a Skipped),
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// The samples, in order.
    pub samples: Vec<Sample>,
    /// What could not be measured.
    pub skipped: Vec<Skipped>,
}

/// Measures; until the end of the plan or an interrupt.
pub fn measure(plan: &Plan, mut tell: impl FnMut(Event<'_>)) -> Measured {
    let mut measured = Measured::default();
    let workloads = prepare(plan, &mut measured, &mut tell);
    for round in 1..=plan.rounds {
        for &workload in &workloads {
            for candidate in &plan.candidates {
                if interrupt::came() {
                    break;
                }
                if !workload.suits(&candidate.scheme) || measured.has_skipped(candidate, workload) {
                    continue;
                }
                tell(Event::Turn { round, candidate: &candidate.name, workload: &workload.name });
                let turn = SchemeTurn { plan, round, candidate, workload };
                match turn.take(&mut |sample| tell(Event::Sampled(sample))) {
                    Ok(samples) => measured.samples.extend(samples),
                    Err(_) if interrupt::came() => {}
                    Err(failure) => {
                        let skipped = turn.skipped(failure);
                        tell(Event::Failed(&skipped));
                        measured.skipped.push(skipped);
                    }
                }
            }
        }
    }
    measured
}

/// Makes what the applications need; workloads without it are left out.
fn prepare<'a>(
    plan: &'a Plan,
    measured: &mut Measured,
    tell: &mut impl FnMut(Event<'_>),
) -> Vec<&'a Workload> {
    let mut prepared = Vec::new();
    for workload in &plan.workloads {
        tell(Event::Preparing(&workload.name));
        match workload.prepare(&interrupt::came) {
            Ok(()) => prepared.push(workload),
            Err(_) if interrupt::came() => break,
            Err(failure) => {
                let skipped = Skipped {
                    scheme: "all schemes".into(),
                    workload: Some(workload.name.clone()),
                    why: failure.to_string(),
                    packages: workload.packages.clone(),
                };
                tell(Event::Failed(&skipped));
                measured.skipped.push(skipped);
            }
        }
    }
    prepared
}

impl Measured {
    fn has_skipped(&self, candidate: &Candidate, workload: &Workload) -> bool {
        let is_this = |skipped: &Skipped| {
            skipped.scheme == candidate.name
                && skipped.workload.as_ref().is_none_or(|name| *name == workload.name)
        };
        self.skipped.iter().any(is_this)
    }
}

/// Per request, where it could be counted.
#[derive(Default)]
struct Counted {
    system_calls: Option<f64>,
    ruby: Option<RubyWork>,
}

/// One scheme with one workload in one round.
struct SchemeTurn<'a> {
    plan: &'a Plan,
    round: u32,
    candidate: &'a Candidate,
    workload: &'a Workload,
}

impl SchemeTurn<'_> {
    /// Starts it, measures it under every load, and stops it.
    fn take(&self, tell: &mut dyn FnMut(&Sample)) -> Result<Vec<Sample>, Failure> {
        let setting = setting(self.candidate, self.workload);
        let deployment = Deployment::start(&self.candidate.scheme, &setting)?;
        let slow = self.workload.slow_clients.as_ref();
        let _slow_readers = slow.map(|slow| SlowReaders::begin(deployment.address(), slow)).transpose()?;
        let requests = requests(&deployment, self.workload)?;
        let target = target(&deployment, &requests);
        let mut samples = Vec::new();
        for load in &self.plan.loads {
            if interrupt::came() {
                break;
            }
            let sample = self.sample(&deployment, &target, load).map_err(|failure| {
                Failure(format!("{failure}\nThe end of its log:\n{}", deployment.log_tail()))
            })?;
            tell(&sample);
            samples.push(sample);
        }
        deployment.stop()?;
        Ok(samples)
    }

    fn sample(&self, deployment: &Deployment, target: &Target<'_>, load: &Load) -> Result<Sample, Failure> {
        send(target, load, self.plan.warm_up)?;
        let tree = ProcessTree::new(&deployment.roots());
        let begun = Instant::now();
        let (shares, cpu, switches) = (CpuShares::now(), tree.cpu(), tree.context_switches());
        let outcome = send(target, load, self.plan.time)?;
        let (user_us, system_us) = tree.cpu().since(&cpu);
        let switched = tree.context_switches().saturating_sub(switches);
        let (shares, window) = (CpuShares::now().since(&shares), begun.elapsed());
        let memory = tree.memory();
        let times = CHECKED_REQUESTS / self.plan.rounds / target.requests.len() as u32;
        let checked = check::check(target, times.max(1), CHECK_TIME)?;
        let counted = self.count(&tree, target, load)?;
        let answered = outcome.requests.max(1) as f64;
        Ok(Sample {
            scheme: self.candidate.name.clone(),
            workload: self.workload.name.clone(),
            load: *load,
            round: self.round,
            requests: outcome.requests,
            requests_per_second: outcome.requests_per_second,
            cpu_user_us: user_us / answered,
            cpu_system_us: system_us / answered,
            latency: outcome.latency,
            errors: outcome.errors.plus(&checked),
            memory,
            context_switches_per_request: switched as f64 / answered,
            system_calls_per_request: counted.system_calls,
            cold_start_ms: deployment.cold_start().as_secs_f64() * 1e3,
            stolen: shares.stolen,
            others: others(shares.busy, window, self.plan.cores, user_us + system_us + outcome.cpu_us),
            ruby: counted.ruby,
        })
    }

    /// Counts in a separate run, as counting slows what is counted.
    fn count(&self, tree: &ProcessTree, target: &Target<'_>, load: &Load) -> Result<Counted, Failure> {
        if !self.plan.counts || self.round > 1 || interrupt::came() {
            return Ok(Counted::default());
        }
        let heaps = || self.heap_page(target)?.ask();
        let before = heaps();
        let mut requests = 0;
        let mut run = || send(target, load, COUNTED).inspect(|outcome| requests = outcome.requests);
        let calls = system_calls::count(&tree.pids(), &mut run)?;
        if calls.is_none() && before.is_some() {
            run()?;
        }
        let ruby = before.and_then(|before| heaps()?.since(&before, requests));
        let per_request = |calls: u64| (requests > 0).then(|| calls as f64 / requests as f64);
        Ok(Counted { system_calls: calls.and_then(per_request), ruby })
    }

    /// `None`: there is no Ruby, or the application has no such page, which is asked without TLS.
    fn heap_page<'t>(&'t self, target: &Target<'_>) -> Option<ruby_work::Page<'t>> {
        let scheme = &self.candidate.scheme;
        let workers = if scheme.takes_workers() { self.candidate.workers } else { 1 };
        let path = self
            .workload
            .heap
            .as_deref()
            .filter(|_| scheme.floor.is_none() && scheme.protocol == Protocol::Http)?;
        Some(ruby_work::Page { address: target.address, path, workers })
    }

    fn skipped(&self, failure: Failure) -> Skipped {
        Skipped {
            scheme: self.candidate.name.clone(),
            workload: Some(self.workload.name.clone()),
            why: failure.to_string(),
            packages: Vec::new(),
        }
    }
}

/// How a candidate serves a workload's application.
pub(crate) fn setting(candidate: &Candidate, workload: &Workload) -> Setting {
    Setting {
        workers: candidate.workers,
        threads: candidate.threads,
        env: workload.env.clone(),
        ready_path: workload.requests[0].path.clone(),
        ..Setting::new(&workload.app)
    }
}

/// The share of the machine's CPU time that was neither the scheme's nor the generator's.
pub(crate) fn others(busy: f64, window: Duration, cores: u32, used_us: f64) -> f64 {
    let all_us = window.as_secs_f64() * 1e6 * f64::from(cores.max(1));
    (busy - used_us / all_us.max(1.0)).max(0.0)
}

/// What clients send: a workload's requests, with cookies where it needs them.
pub(crate) fn requests(deployment: &Deployment, workload: &Workload) -> Result<Vec<Request>, Failure> {
    match workload.cookies {
        true => visitors::with_cookies(deployment.address(), &workload.requests),
        false => Ok(workload.requests.clone()),
    }
}

/// What the generators ask, once the server was found to answer.
pub(crate) fn target<'a>(deployment: &Deployment, requests: &'a [Request]) -> Target<'a> {
    let address = deployment.address();
    let protocol = deployment.protocol();
    let target = Target { address, protocol, host: "127.0.0.1", requests, ends_by_closing: false };
    Target { ends_by_closing: check::ends_by_closing(&target), ..target }
}

/// Sends this load.
pub(crate) fn send(target: &Target<'_>, load: &Load, time: Duration) -> Result<load::Outcome, Failure> {
    match load.rate {
        None => load::saturate(target, load, time),
        Some(_) => load::at_rate(target, load, time),
    }
}
