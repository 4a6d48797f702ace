//! `highball bench memory`: what one more worker of a real application takes, with each way to share memory.
//!
//! Every way serves the same requests: for each worker 500, then a refork where there is one, then 250. (A refork that a server
//! makes automatically may come earlier.) What counts is memory that only one process has: the private dirty pages of the workers,
//! and Highball's rings. It is looked at when the last request has its answer, and again after a pause.

use std::process::Command;
use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};
use serde::Serialize;

use crate::data::data_folder;
use crate::deployment::Deployment;
use crate::machine::{self, CpuShares};
use crate::method::{setting, target, Candidate};
use crate::options::Options;
use crate::process_tree::{called, memory_of, ProcessTree};
use crate::results::{Errors, Machine, Memory};
use crate::scheme::{programs, Scheme};
use crate::statistics::Spread;
use crate::waiting::{pause, wait_for};
use crate::workload::Workload;
use crate::{check, interrupt, Failure};

/// The workload: its requests.
const WORKLOAD: &str = "redmine";
/// Requests before the refork, and after it, for each worker.
const REQUESTS: [usize; 2] = [500, 250];
/// Connections, enough that all workers have work.
const CONNECTIONS: usize = 16;
/// How many arenas the C library's allocator may have: what is recommended for all servers but Highball, which has its own
/// default.
const ARENAS: (&str, &str) = ("MALLOC_ARENA_MAX", "2");
/// Reforks only on request.
const NO_REFORKS: (&str, &str) = ("HIGHBALL_REFORK_AFTER", "off");
/// How long such requests may take.
const REQUESTS_TIME: Duration = Duration::from_secs(300);
/// How long a refork may take.
const REFORK_TIME: Duration = Duration::from_secs(180);
/// The pause after the requests.
const PAUSE: Duration = Duration::from_secs(15);
/// The most that Highball's workers may have, in those of the best other server.
const TARGET: f64 = 0.6;
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A way to share memory.
struct Way {
    name: &'static str,
    title: &'static str,
    scheme: &'static str,
    /// Its workers have several threads.
    threads: bool,
    /// How the command lines of its workers begin.
    workers_begin: &'static str,
    /// Variables of its environment.
    env: &'static [(&'static str, &'static str)],
    refork: Option<Refork>,
}

/// How a refork is asked for.
enum Refork {
    /// Not at all: the server decides.
    ByItself,
    /// `highball refork`.
    Command,
    /// A signal to the first process.
    Signal(Signal),
}

const WAYS: [Way; 6] = [
    Way {
        name: "highball",
        title: "Highball",
        scheme: "highball",
        threads: true,
        workers_begin: "highball worker",
        env: &[],
        refork: Some(Refork::ByItself),
    },
    Way {
        name: "highball-refork",
        title: "Highball, refork by command",
        scheme: "highball",
        threads: true,
        workers_begin: "highball worker",
        env: &[NO_REFORKS],
        refork: Some(Refork::Command),
    },
    Way {
        name: "highball-no-refork",
        title: "Highball, no refork",
        scheme: "highball",
        threads: true,
        workers_begin: "highball worker",
        env: &[NO_REFORKS],
        refork: None,
    },
    Way {
        name: "puma-preload",
        title: "Puma, preload_app",
        scheme: "puma-cluster",
        threads: true,
        workers_begin: "puma: cluster worker",
        env: &[ARENAS],
        refork: None,
    },
    Way {
        name: "puma-fork-worker",
        title: "Puma, fork_worker",
        scheme: "puma-fork-worker",
        threads: true,
        workers_begin: "puma: cluster worker",
        env: &[ARENAS],
        refork: Some(Refork::Signal(Signal::URG)),
    },
    Way {
        name: "passenger",
        title: "Passenger, smart spawning",
        scheme: "passenger",
        threads: false,
        workers_begin: "Passenger RubyApp",
        env: &[ARENAS],
        refork: None,
    },
];

/// All that was measured.
#[derive(Debug, Serialize)]
struct Report {
    command: String,
    machine: Machine,
    workload: String,
    workers: u32,
    threads: u32,
    ways: Vec<Measured>,
}

/// A way's figures.
#[derive(Debug, Serialize)]
struct Measured {
    name: String,
    title: String,
    version: String,
    threads: u32,
    rounds: Vec<Round>,
}

#[derive(Debug, Serialize)]
struct Round {
    /// Of the workers together.
    workers: Memory,
    /// The same after the pause.
    idle_workers: Memory,
    /// Of all processes together: first processes, molds and proxies too.
    all: Memory,
    errors: Errors,
    stolen: f64,
}

/// Measures, prints the table, and writes `memory.json` and `MEMORY.md`.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let folder = data_folder()?;
    options.refuse_unwritable_output()?;
    let workload = workload(options)?;
    let mut ways = Vec::new();
    for way in
        WAYS.iter().filter(|way| options.only.is_empty() || options.only.iter().any(|only| only == way.name))
    {
        let scheme = Scheme::read(&folder.join("schemes").join(way.scheme).with_extension("toml"))?;
        options.install_missing(std::slice::from_ref(&scheme), &[])?;
        if let Some(missing) = scheme.missing() {
            return Err(Failure(format!("{}: {} (--install installs it)", way.title, missing.why)));
        }
        let threads = if way.threads { options.threads } else { 1 };
        let candidate = Candidate { name: way.name.into(), scheme, workers: options.workers, threads };
        ways.push((way, candidate, Vec::new()));
    }
    if ways.is_empty() {
        return Err(Failure(format!("--only names none of these: {}", WAYS.map(|way| way.name).join(", "))));
    }
    for number in 1..=options.rounds {
        for (way, candidate, rounds) in &mut ways {
            let round = way.round(candidate, &workload)?;
            eprintln!("round {number}, {}: {:.1} MiB a worker", way.name, round.per_worker());
            rounds.push(round);
        }
    }
    let report = Report {
        command: options.command.clone(),
        machine: machine::describe(),
        workload: workload.title,
        workers: options.workers,
        threads: options.threads,
        ways: ways
            .into_iter()
            .map(|(way, candidate, rounds)| Measured::new(way, &candidate, rounds))
            .collect(),
    };
    let table = report.table();
    options.report("memory", &report, &table, report.markdown(&table))
}

/// The application, prepared.
fn workload(options: &Options) -> Result<Workload, Failure> {
    let file = data_folder()?.join("workloads").join(WORKLOAD).with_extension("toml");
    let workload = Workload::read(&file)?;
    options.install_missing(&[], std::slice::from_ref(&workload))?;
    workload.prepare(&interrupt::came)?;
    Ok(workload)
}

impl Way {
    fn round(&self, candidate: &Candidate, workload: &Workload) -> Result<Round, Failure> {
        let mut setting = setting(candidate, workload);
        setting.env.extend(self.env.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let deployment = Deployment::start(&candidate.scheme, &setting)?;
        let target = target(&deployment, &workload.requests);
        let shares = CpuShares::now();
        self.wait_for_workers(&deployment, candidate, &[])?;
        let first = self.workers(&deployment);
        let [before, after] = REQUESTS.map(|requests| requests * candidate.workers as usize);
        let mut errors = check::send_exactly(&target, 0..before, CONNECTIONS, REQUESTS_TIME);
        if let Some(refork) = &self.refork {
            let old = if matches!(refork, Refork::ByItself) { first } else { self.workers(&deployment) };
            refork.ask(&deployment)?;
            self.wait_for_workers(&deployment, candidate, &old)?;
        }
        errors =
            errors.plus(&check::send_exactly(&target, before..before + after, CONNECTIONS, REQUESTS_TIME));
        if interrupt::came() {
            return Err(Failure::new("ended by a signal"));
        }
        let all = ProcessTree::new(&deployment.roots()).memory();
        let workers = memory_of(&self.workers(&deployment));
        let stolen = CpuShares::now().since(&shares).stolen;
        pause(PAUSE, LOOK_EVERY)?;
        let idle_workers = memory_of(&self.workers(&deployment));
        deployment.stop()?;
        Ok(Round { workers, idle_workers, all, errors, stolen })
    }

    fn workers(&self, deployment: &Deployment) -> Vec<i32> {
        called(&[self.workers_begin], &ProcessTree::new(&deployment.roots()).pids())
    }

    /// Returns when there are as many workers as there should be, and at most one of these is still among them: Puma's
    /// refork keeps the first worker.
    fn wait_for_workers(
        &self,
        deployment: &Deployment,
        candidate: &Candidate,
        old: &[i32],
    ) -> Result<(), Failure> {
        let waited = wait_for(REFORK_TIME, LOOK_EVERY, || {
            let workers = self.workers(deployment);
            let left = workers.iter().filter(|pid| old.contains(pid)).count();
            match workers.len() == candidate.workers as usize && left <= 1 {
                true => Ok(()),
                false => Err(Failure(format!(
                    "{} of {} workers are there, {left} of them from before the refork",
                    workers.len(),
                    candidate.workers
                ))),
            }
        });
        waited.map_err(|Failure(why)| {
            Failure(format!("{}: {why}. The end of its log:\n{}", self.title, deployment.log_tail()))
        })
    }
}

impl Refork {
    fn ask(&self, deployment: &Deployment) -> Result<(), Failure> {
        let problem = |why: String| Failure(format!("ask for a refork: {why}"));
        match self {
            Refork::ByItself => Ok(()),
            Refork::Command => {
                let port = deployment.address().port().to_string();
                let asked = Command::new(programs::highball()).args(["refork", "--port", &port]).output();
                let output = asked.map_err(|error| problem(error.to_string()))?;
                match output.status.success() {
                    true => Ok(()),
                    false => Err(problem(String::from_utf8_lossy(&output.stderr).into_owned())),
                }
            }
            Refork::Signal(signal) => {
                let first = deployment.roots().first().copied().and_then(Pid::from_raw);
                let first = first.ok_or_else(|| problem("its first process is gone".into()))?;
                kill_process(first, *signal).map_err(|error| problem(error.to_string()))
            }
        }
    }
}

impl Round {
    /// MiB that one worker does not share.
    fn per_worker(&self) -> f64 {
        self.each(&self.workers)
    }

    /// The same after the pause.
    fn per_idle_worker(&self) -> f64 {
        self.each(&self.idle_workers)
    }

    fn each(&self, workers: &Memory) -> f64 {
        let rings = self.all.ring_mib; // the front has pages of them that no worker has touched
        (workers.private_dirty_mib + rings) / f64::from(workers.processes.max(1))
    }
}

impl Measured {
    fn new(way: &Way, candidate: &Candidate, rounds: Vec<Round>) -> Measured {
        Measured {
            name: way.name.into(),
            title: way.title.into(),
            version: candidate.scheme.version(),
            threads: candidate.threads,
            rounds,
        }
    }

    fn spread(&self, figure: impl Fn(&Round) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(figure)).expect("there is a round")
    }

    fn errors(&self) -> u64 {
        self.rounds.iter().map(|round| round.errors.total()).sum()
    }

    fn row(&self, first: f64) -> String {
        let one = self.spread(Round::per_worker);
        let errors = self.errors();
        let mark = if errors > 0 { "!" } else { "" };
        format!(
            "| {} | {} | {:.1} ({:.1}–{:.1}) | {:.2} | {:.1} | {:.1} | {:.0} | {:.0} | {mark}{errors} |\n",
            self.title,
            self.threads,
            one.median,
            one.least,
            one.most,
            one.median / first,
            self.spread(Round::per_idle_worker).median,
            self.spread(|round| round.all.ring_mib / f64::from(round.workers.processes.max(1))).median,
            self.spread(|round| round.all.own_mib()).median,
            self.spread(|round| round.all.pss_mib).median,
        )
    }
}

impl Report {
    /// A table that reads as well in a terminal as in Markdown.
    fn table(&self) -> String {
        let first = &self.ways[0];
        let one = first.spread(Round::per_worker).median;
        let rows: String = self.ways.iter().map(|way| way.row(one)).collect();
        format!(
            "| {} workers | threads | MiB a worker (rounds) | × {} | MiB after {} s | of it ring | all processes, MiB | PSS, MiB \
             | errors |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n{rows}{}",
            self.workers,
            first.title,
            PAUSE.as_secs(),
            self.verdict().unwrap_or_default()
        )
    }

    /// Highball with default options, compared with the best server of others that has answered all requests. `None` if
    /// either is missing.
    fn verdict(&self) -> Option<String> {
        let ours = self.ways.iter().find(|way| way.name == WAYS[0].name)?;
        let others = self.ways.iter().filter(|way| !way.name.starts_with(WAYS[0].name) && way.errors() == 0);
        let each = |way: &Measured| way.spread(Round::per_worker).median;
        let best = others.min_by(|one, other| each(one).total_cmp(&each(other)))?;
        let share = each(ours) / each(best);
        let idle = |way: &Measured| way.spread(Round::per_idle_worker).median;
        Some(format!(
            "\nA worker of {} takes {share:.2} × what one of {} takes, the best of the others that has answered all requests; \
             at most {TARGET} is the target, which is {}. After the pause it is {:.2} ×.\n",
            ours.title,
            best.title,
            if share <= TARGET && ours.errors() == 0 { "met" } else { "missed" },
            idle(ours) / idle(best)
        ))
    }

    fn markdown(&self, table: &str) -> String {
        let versions: Vec<String> =
            self.ways.iter().map(|way| format!("{}: {}", way.title, way.version)).collect();
        let [before, after] = REQUESTS.map(|requests| requests * self.workers as usize);
        format!(
            "# Memory of one more worker\n\nMade by `{}`. {}, {} cores, {}. {}. {}: {} requests, {after} of them after the \
             refork where there is one, over {CONNECTIONS} connections; {}={} for all but Highball. A worker's memory is what only it \
             has: private dirty pages, and the resident pages of its ring.\n\n{table}",
            self.command,
            self.machine.cpu,
            self.machine.cores,
            self.machine.ruby,
            versions.join("; "),
            self.workload,
            before + after,
            ARENAS.0,
            ARENAS.1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &str, each_mib: f64, failed: u64) -> Measured {
        let workers = |each: f64| Memory { private_dirty_mib: each * 4.0, processes: 4, ..Memory::default() };
        let errors = Errors { status: failed, ..Errors::default() };
        let round = Round {
            workers: workers(each_mib),
            idle_workers: workers(each_mib / 2.0),
            all: Memory::default(),
            errors,
            stolen: 0.0,
        };
        Measured {
            name: name.into(),
            title: name.to_uppercase(),
            version: String::new(),
            threads: 3,
            rounds: vec![round],
        }
    }

    fn verdict(ways: Vec<Measured>) -> Option<String> {
        let machine = Machine::default();
        let (command, workload) = (String::new(), String::new());
        Report { command, machine, workload, workers: 4, threads: 3, ways }.verdict()
    }

    #[test]
    fn the_best_of_others_that_has_answered_everything_is_what_counts() {
        let ways = |ours| {
            vec![
                way("highball", ours, 0),
                way("puma", 50.0, 3),
                way("passenger", 100.0, 0),
                way("other", 120.0, 0),
            ]
        };
        let met = verdict(ways(60.0)).unwrap();
        assert!(met.contains("takes 0.60 × what one of PASSENGER takes"), "{met}");
        assert!(met.contains("which is met"), "{met}");
        assert!(verdict(ways(61.0)).unwrap().contains("which is missed"));
        assert_eq!(verdict(vec![way("highball", 60.0, 0), way("highball-refork", 30.0, 0)]), None);
    }

    #[test]
    fn errors_of_ours_miss_the_target() {
        let missed = verdict(vec![way("highball", 10.0, 1), way("passenger", 100.0, 0)]).unwrap();
        assert!(missed.contains("which is missed"), "{missed}");
    }
}
