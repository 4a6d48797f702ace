//! One application under one server: pages, warm-up, memory, load.

use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::heaps::{self, Heap};
use super::{clients, pages, Load};
use crate::deployment::Deployment;
use crate::interrupt::Interrupt;
use crate::machine::CpuShares;
use crate::method::{self, others, setting, target, Candidate};
use crate::process_tree::{called, memory_of, ProcessTree, Stat};
use crate::report::errors_in_words;
use crate::results::{Errors, Latency, Memory};
use crate::waiting::wait_for;
use crate::workload::Workload;
use crate::{interrupt, Failure};

/// Of 10,000 requests that are measured: those before them, and those before and among them after which memory is read.
const WARM_UP: f64 = 0.1;
const MEMORY: f64 = 0.3;

/// How long a server may take to replace its workers, and how often their number is looked at.
const REPLACEMENT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Trial {
    pub(super) workload: String,
    pub(super) application: String,
    pub(super) scheme: String,
    pub(super) title: String,
    pub(super) version: String,
    pub(super) load: Load,
    /// Seconds since 1970.
    pub(super) began: u64,
    pub(super) cold_start_ms: f64,
    /// How long each page is.
    pub(super) page_bytes: Vec<u64>,
    /// Requests that are not measured.
    pub(super) warm_up: u32,
    pub(super) requests_before_memory: u32,
    /// Of all processes, after these requests and a garbage collection in each worker.
    pub(super) memory: Memory,
    /// Of the workers alone.
    pub(super) memory_of_workers: Memory,
    pub(super) heaps: Vec<Heap>,
    /// Requests that did not fail.
    pub(super) answered: u64,
    pub(super) requests_per_second: f64,
    /// Of all processes, per request.
    pub(super) cpu_user_us: f64,
    pub(super) cpu_system_us: f64,
    /// Of the clients, per request.
    pub(super) clients_us: f64,
    pub(super) latency: Latency,
    pub(super) errors: Errors,
    pub(super) stolen: f64,
    pub(super) others: f64,
}

impl Trial {
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_user_us + self.cpu_system_us
    }

    /// For people who wait for the next.
    pub(super) fn words(&self) -> String {
        let failed = match self.errors.total() {
            0 => "none failed".into(),
            _ => errors_in_words(&self.errors),
        };
        format!(
            "{:.1} requests/s, {:.0} µs of CPU each, p50 {:.0} ms, p99 {:.0} ms, {:.1} MiB, {failed}",
            self.requests_per_second,
            self.cpu_us(),
            self.latency.p50,
            self.latency.p99,
            self.memory.own_mib()
        )
    }
}

/// Starts the server, measures it, and stops it.
pub(super) fn measure(
    candidate: &Candidate,
    workload: &Workload,
    load: &Load,
    known: Option<&[u64]>,
    interrupt: Interrupt,
) -> Result<Trial, Failure> {
    let mut workload = workload.clone();
    workload.env.extend([heaps::env(&workload.bench)]);
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let deployment = Deployment::start(&candidate.scheme, &setting(candidate, &workload, interrupt))?;
    let measured = loaded(&deployment, candidate, &workload, load, known);
    let mut trial = measured.map_err(|Failure(why)| match interrupt.came() {
        true => interrupt::failure(),
        false => {
            let log = deployment.log_tail();
            Failure(format!(
                "{}, {}: {why}\nThe end of its log:\n{log}",
                candidate.scheme.title, workload.name
            ))
        }
    })?;
    trial.began = began;
    trial.cold_start_ms = deployment.cold_start().as_secs_f64() * 1e3;
    deployment.stop()?;
    match interrupt.came() {
        true => Err(interrupt::failure()),
        false => Ok(trial),
    }
}

fn loaded(
    deployment: &Deployment,
    candidate: &Candidate,
    workload: &Workload,
    load: &Load,
    known: Option<&[u64]>,
) -> Result<Trial, Failure> {
    let requests = method::requests(deployment, workload)?;
    let target = target(deployment, &requests);
    let page_bytes = pages::read(&target, known)?;
    let pages = requests.len();
    let part = |share: f64| (f64::from(load.requests) * share) as usize;
    let warm_up = part(WARM_UP).max(pages);
    let before_memory = part(MEMORY).max(warm_up);
    let send = |indices| clients::send(&target, &page_bytes, indices, load.clients);
    send(pages..warm_up);
    let tree = ProcessTree::new(&deployment.roots());
    let middle = before_memory.min(warm_up + load.requests as usize);
    let (first, used) = metered(&tree, || send(warm_up..middle));
    let workers = workers_of(&tree, load.workers as usize)?;
    let heaps = heaps::collect(&workers, &deployment.temporary())?;
    let (memory, memory_of_workers) = (tree.memory(), memory_of(&workers));
    let (second, more) = metered(&tree, || send(middle..warm_up + load.requests as usize));
    let (outcome, used) = (first.and(second), used.and(&more));
    let each = |us: f64| us / outcome.answered().max(1) as f64;
    Ok(Trial {
        workload: workload.name.clone(),
        application: workload.title.clone(),
        scheme: candidate.name.clone(),
        title: candidate.scheme.title.replace(" of N", &format!(" of {}", load.workers)),
        version: candidate.scheme.version(),
        load: *load,
        began: 0,
        cold_start_ms: 0.0,
        page_bytes,
        warm_up: warm_up as u32,
        requests_before_memory: middle as u32,
        memory,
        memory_of_workers,
        heaps,
        answered: outcome.answered(),
        requests_per_second: outcome.answered() as f64 / outcome.elapsed.as_secs_f64().max(1e-9),
        cpu_user_us: each(used.user_us),
        cpu_system_us: each(used.system_us),
        clients_us: each(used.clients_us),
        latency: outcome.latency(),
        errors: outcome.errors,
        stolen: used.stolen,
        others: used.others,
    })
}

/// The workers. A server that replaces them while it serves (a refork) may have more for a moment.
fn workers_of(tree: &ProcessTree, number: usize) -> Result<Vec<i32>, Failure> {
    wait_for(REPLACEMENT, LOOK_EVERY, || {
        let workers = called(&heaps::WORKERS_BEGIN, &tree.pids());
        match workers.len() == number {
            true => Ok(workers),
            false => Err(Failure(format!("there are {} workers instead of {number}", workers.len()))),
        }
    })
}

/// What was used meanwhile.
struct Used {
    time: Duration,
    user_us: f64,
    system_us: f64,
    clients_us: f64,
    stolen: f64,
    others: f64,
}

impl Used {
    /// In both times.
    fn and(&self, more: &Used) -> Used {
        let all = (self.time + more.time).as_secs_f64().max(1e-9);
        let mean = |share: fn(&Used) -> f64| {
            (share(self) * self.time.as_secs_f64() + share(more) * more.time.as_secs_f64()) / all
        };
        Used {
            time: self.time + more.time,
            user_us: self.user_us + more.user_us,
            system_us: self.system_us + more.system_us,
            clients_us: self.clients_us + more.clients_us,
            stolen: mean(|used| used.stolen),
            others: mean(|used| used.others),
        }
    }
}

fn metered(tree: &ProcessTree, run: impl FnOnce() -> clients::Outcome) -> (clients::Outcome, Used) {
    let own_cpu_us = || Stat::of(std::process::id() as i32).map_or(0.0, |own| own.cpu_us());
    let (begun, own) = (Instant::now(), own_cpu_us());
    let (shares, cpu) = (CpuShares::now(), tree.cpu());
    let outcome = run();
    let (user_us, system_us) = tree.cpu().since(&cpu);
    let (shares, time, clients_us) = (CpuShares::now().since(&shares), begun.elapsed(), own_cpu_us() - own);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let others = others(shares.busy, time, cores, user_us + system_us + clients_us);
    (outcome, Used { time, user_us, system_us, clients_us, stolen: shares.stolen, others })
}
