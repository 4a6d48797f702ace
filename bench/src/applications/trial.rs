//! One application under some servers: all are started, get pages and a load that is not measured, and then their parts of the load in
//! turns. Memory is read after the round in which there were enough requests.

use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::clients::Outcome;
use super::heaps::{self, Heap};
use super::{clients, pages, Load};
use crate::deployment::Deployment;
use crate::machine::CpuShares;
use crate::method::{self, others, setting, target, Candidate};
use crate::process_tree::{called, memory_of, CpuTime, ProcessTree, Stat};
use crate::report::errors_in_words;
use crate::results::{Errors, Latency, Memory};
use crate::waiting::wait_for;
use crate::workload::{Request, Workload};
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
    /// One of each round.
    pub(super) turns: Vec<LoadTurn>,
}

/// A part of the load, while the other servers were idle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct LoadTurn {
    pub(super) requests_per_second: f64,
    /// Of all processes, per request, until all servers have had this turn: what one does between its turns is part of its work.
    pub(super) cpu_us: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Trial {
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_user_us + self.cpu_system_us
    }
}

/// Measures an application under these servers.
pub(super) fn measure(
    candidates: &[Candidate],
    workload: &Workload,
    load: &Load,
) -> Result<Vec<Trial>, Failure> {
    let mut running: Vec<Running> = Vec::new();
    for candidate in candidates {
        let known = running.first().map(|first| first.page_bytes.as_slice());
        let one = Running::start(candidate, workload, load, known)?;
        let seconds = one.deployment.cold_start().as_secs_f64();
        eprintln!("    {}: first answer after {seconds:.2} s", candidate.scheme.title);
        running.push(one);
    }
    let memory_after = (MEMORY * f64::from(load.turns)).ceil() as u32;
    for round in 1..=load.turns {
        for place in 0..running.len() {
            // Each is first, and behind each other one, equally often.
            let index = (place + round as usize) % running.len();
            let words = running[index].turn(round);
            if interrupt::came() {
                return Err(interrupt::failure());
            }
            eprintln!("    {}", words?);
        }
        running.iter_mut().for_each(Running::end_round);
        if round == memory_after {
            for one in &mut running {
                one.read_memory()?;
            }
        }
    }
    running.into_iter().map(Running::end).collect()
}

/// The failure of a server that has started, with the end of its log.
fn failed(deployment: &Deployment, (title, workload): (&str, &str), why: &Failure) -> Failure {
    if interrupt::came() {
        return interrupt::failure();
    }
    Failure(format!("{title}, {workload}: {why}\nThe end of its log:\n{}", deployment.log_tail()))
}

/// A server that serves, and what was measured of it so far.
struct Running<'a> {
    candidate: &'a Candidate,
    workload: &'a Workload,
    load: &'a Load,
    deployment: Deployment,
    requests: Vec<Request>,
    page_bytes: Vec<u64>,
    began: u64,
    /// Requests that were sent, measured or not.
    sent: usize,
    warm_up: usize,
    outcome: Outcome,
    used: Used,
    /// CPU time of its processes, in turns and between them.
    user_us: f64,
    system_us: f64,
    /// Of the turn of this round.
    at_turn: Option<(CpuTime, Outcome)>,
    turns: Vec<LoadTurn>,
    memory: Option<Occupied>,
}

/// Memory, and when.
struct Occupied {
    after: usize,
    all: Memory,
    of_workers: Memory,
    heaps: Vec<Heap>,
}

impl<'a> Running<'a> {
    fn start(
        candidate: &'a Candidate,
        workload: &'a Workload,
        load: &'a Load,
        known: Option<&[u64]>,
    ) -> Result<Running<'a>, Failure> {
        let mut with_heaps = workload.clone();
        with_heaps.env.extend([heaps::env(&workload.bench)]);
        let began =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let deployment = Deployment::start(&candidate.scheme, &setting(candidate, &with_heaps))?;
        let requests = method::requests(&deployment, workload)?;
        let page_bytes = pages::read(&target(&deployment, &requests), known)
            .map_err(|why| failed(&deployment, (&candidate.scheme.title, &workload.name), &why))?;
        let warm_up = ((f64::from(load.requests) * WARM_UP) as usize).max(requests.len());
        let mut running = Running {
            candidate,
            workload,
            load,
            deployment,
            sent: requests.len(),
            requests,
            page_bytes,
            began,
            warm_up,
            outcome: Outcome::default(),
            used: Used::default(),
            user_us: 0.0,
            system_us: 0.0,
            at_turn: None,
            turns: Vec::new(),
            memory: None,
        };
        running.send(warm_up.saturating_sub(running.sent));
        Ok(running)
    }

    fn failed(&self, why: &Failure) -> Failure {
        failed(&self.deployment, (&self.candidate.scheme.title, &self.workload.name), why)
    }

    /// Its processes. Their heads change: Passenger's preloader ends when it has been idle for five minutes.
    fn tree(&self) -> ProcessTree {
        ProcessTree::new(&self.deployment.roots())
    }

    /// The next requests.
    fn send(&mut self, count: usize) -> Outcome {
        let target = target(&self.deployment, &self.requests);
        let next = self.sent..self.sent + count;
        self.sent = next.end;
        clients::send(&target, &self.page_bytes, next, self.load.clients)
    }

    /// Sends this server's part of the load of a round, and returns words for people who wait.
    fn turn(&mut self, round: u32) -> Result<String, Failure> {
        let share = |rounds: u32| {
            (u64::from(self.load.requests) * u64::from(rounds) / u64::from(self.load.turns)) as usize
        };
        let part = share(round) - share(round - 1);
        let tree = self.tree();
        let at_turn = tree.cpu();
        let (outcome, used, cpu_us) = metered(&tree, &at_turn, || self.send(part));
        if outcome.answered() == 0 {
            return Err(self.failed(&Failure::new("no request of a turn was answered")));
        }
        let latency = outcome.latency();
        let words = format!(
            "{round}  {:32} {:6.1} requests/s, {:.0} µs of CPU each, p50 {:.0} ms, p99 {:.0} ms, {}",
            self.candidate.scheme.title,
            outcome.requests_per_second(),
            cpu_us / outcome.answered() as f64,
            latency.p50,
            latency.p99,
            match outcome.errors.total() {
                0 => "none failed".into(),
                _ => errors_in_words(&outcome.errors),
            }
        );
        self.used = self.used.and(&used);
        self.at_turn = Some((at_turn, outcome));
        Ok(words)
    }

    /// Every server has had its turn.
    fn end_round(&mut self) {
        let Some((at_turn, outcome)) = self.at_turn.take() else { return };
        let (user_us, system_us) = self.tree().cpu().since(&at_turn);
        let latency = outcome.latency();
        self.turns.push(LoadTurn {
            requests_per_second: outcome.requests_per_second(),
            cpu_us: (user_us + system_us) / outcome.answered() as f64,
            p50: latency.p50,
            p99: latency.p99,
        });
        self.user_us += user_us;
        self.system_us += system_us;
        self.outcome = std::mem::take(&mut self.outcome).and(outcome);
    }

    fn read_memory(&mut self) -> Result<(), Failure> {
        let tree = self.tree();
        let workers = workers_of(&tree, self.load.workers as usize).map_err(|why| self.failed(&why))?;
        let heaps =
            heaps::collect(&workers, &self.deployment.temporary()).map_err(|why| self.failed(&why))?;
        let (all, of_workers) = (tree.memory(), memory_of(&workers));
        self.memory = Some(Occupied { after: self.sent, all, of_workers, heaps });
        Ok(())
    }

    fn end(self) -> Result<Trial, Failure> {
        let memory = self.memory.ok_or_else(|| Failure::new("memory was not read"))?;
        let each = |us: f64| us / self.outcome.answered().max(1) as f64;
        let trial = Trial {
            workload: self.workload.name.clone(),
            application: self.workload.title.clone(),
            scheme: self.candidate.name.clone(),
            title: self.candidate.scheme.title.replace(" of N", &format!(" of {}", self.load.workers)),
            version: self.candidate.scheme.version(),
            load: *self.load,
            began: self.began,
            cold_start_ms: self.deployment.cold_start().as_secs_f64() * 1e3,
            page_bytes: self.page_bytes,
            warm_up: self.warm_up as u32,
            requests_before_memory: memory.after as u32,
            memory: memory.all,
            memory_of_workers: memory.of_workers,
            heaps: memory.heaps,
            answered: self.outcome.answered(),
            requests_per_second: self.outcome.requests_per_second(),
            cpu_user_us: each(self.user_us),
            cpu_system_us: each(self.system_us),
            clients_us: each(self.used.clients_us),
            latency: self.outcome.latency(),
            errors: self.outcome.errors,
            stolen: self.used.stolen,
            others: self.used.others,
            turns: self.turns,
        };
        self.deployment.stop()?;
        Ok(trial)
    }
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

/// What was used during turns, but for the server's CPU time.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    time: Duration,
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
            clients_us: self.clients_us + more.clients_us,
            stolen: mean(|used| used.stolen),
            others: mean(|used| used.others),
        }
    }
}

/// What came of a turn that begins now, with `cpu` as the CPU time of the server's processes; and the µs of it that they used.
fn metered(tree: &ProcessTree, cpu: &CpuTime, run: impl FnOnce() -> Outcome) -> (Outcome, Used, f64) {
    let own_cpu_us = || Stat::of(std::process::id() as i32).map_or(0.0, |own| own.cpu_us());
    let (begun, own, shares) = (Instant::now(), own_cpu_us(), CpuShares::now());
    let outcome = run();
    let (user_us, system_us) = tree.cpu().since(cpu);
    let (shares, time, clients_us) = (CpuShares::now().since(&shares), begun.elapsed(), own_cpu_us() - own);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let cpu_us = user_us + system_us;
    let others = others(shares.busy, time, cores, cpu_us + clients_us);
    (outcome, Used { time, clients_us, stolen: shares.stolen, others }, cpu_us)
}
