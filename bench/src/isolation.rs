//! `highball bench isolation`: what seven applications notice of three others that burn.
//!
//! One of the three raises when it boots, again and again; one is at a request that has no end; one keeps all that it
//! allocates, until it is killed, again and again. Once they are served beside the seven, by one Highball, and once they
//! are plain processes outside of it. They burn the processor either way: only what else the seven share with them
//! differs. `server_folder` makes what is served, `burning` runs the burners.

mod burning;
mod server_folder;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::data::{data_folder, highball};
use crate::deployment::{readiness, Deployment, Setting};
use crate::load::Target;
use crate::machine::{self, CpuShares};
use crate::options::Options;
use crate::report::errors_in_words;
use crate::results::{Errors, Latency, Machine};
use crate::scheme::Scheme;
use crate::statistics::Spread;
use crate::workload::Request;
use crate::{arrivals, interrupt, method, Failure};
use burning::Burning;
use server_folder::ServerFolder;

/// Applications that do no harm.
const WELL: u32 = 7;
/// Applications that do: folders of `bench/apps/burners`.
const BURNERS: [&str; 3] = ["crash", "loop", "allocate"];
/// Requests per second to the seven together; each takes 2 ms of CPU time (`bench/apps/work`).
const RATE: f64 = 140.0;
const WORK: &str = "/2";
/// The largest ratio of the p99 of the seven beside burners to that with burners outside.
const TARGET: f64 = 1.5;
/// Load before a round that is not measured.
const WARM_UP: Duration = Duration::from_secs(2);
/// How often an application that boots is asked, for up to 5 s each time.
const BOOT_ATTEMPTS: usize = 12;

/// Where the burners are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// Served beside the seven.
    Inside,
    /// Plain processes.
    Outside,
}

/// All that was measured.
#[derive(Debug, Serialize)]
struct Isolation {
    command: String,
    machine: Machine,
    version: String,
    workers: u32,
    threads: u32,
    seconds: f64,
    /// Requests per second that arrived.
    rate: f64,
    inside: Vec<Round>,
    outside: Vec<Round>,
}

/// A round; its number is the seed of its arrivals.
#[derive(Debug, Serialize)]
struct Round {
    round: u32,
    way: Way,
    /// Of the seven together.
    seven: Latency,
    /// Of each of the seven.
    each: Vec<Latency>,
    answered: u64,
    errors: Errors,
    /// How often each of the burners began to burn.
    burnt: BTreeMap<String, u64>,
    /// The share of the machine's CPU time that was used.
    busy: f64,
    stolen: f64,
}

/// Measures, prints the table, and writes `isolation.json` and `ISOLATION.md`.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let data = data_folder()?;
    options.refuse_unwritable_output()?;
    let scheme = highball(&data)?;
    let version = scheme.version();
    let plan = Plan { options, data, scheme };
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for number in 1..=options.rounds {
        for (way, rounds) in [(Way::Inside, &mut inside), (Way::Outside, &mut outside)] {
            let round = plan.round(way, number)?;
            eprintln!("round {number}, burners {}: {}", way.in_words(), round.in_words());
            rounds.push(round);
        }
    }
    let isolation = Isolation {
        command: options.command.clone(),
        machine: machine::describe(),
        version,
        workers: options.workers,
        threads: options.threads,
        seconds: options.time.as_secs_f64(),
        rate: RATE,
        inside,
        outside,
    };
    let table = isolation.table();
    options.report("isolation", &isolation, &table, isolation.markdown(&table))
}

/// What is measured, and with what.
struct Plan<'a> {
    options: &'a Options,
    /// The folder `bench`.
    data: PathBuf,
    scheme: Scheme,
}

impl Plan<'_> {
    fn round(&self, way: Way, number: u32) -> Result<Round, Failure> {
        let folder = ServerFolder::make(&self.data, way)?;
        let requests: Vec<Request> = (1..=WELL)
            .map(|app| Request {
                path: format!("/{}{WORK}", server_folder::name_of_well(app)),
                ..Request::default()
            })
            .collect();
        let setting = Setting {
            workers: self.options.workers,
            threads: self.options.threads,
            env: folder.environment(),
            ready_path: requests[0].path.clone(),
            ..Setting::new(folder.path())
        };
        let deployment = Deployment::start(&self.scheme, &setting)?;
        wait_until_all_serve(&deployment, &requests)?;
        let target = method::target(&deployment, &requests);
        let burning = Burning::begin(way, &folder, deployment.address());
        let all_burn = folder.wait_until_all_burn().map_err(|failure| with_log(&failure, &deployment));
        let round = all_burn.and_then(|()| self.measure(way, number, &target, &folder));
        burning.end()?;
        deployment.stop()?;
        round
    }

    fn measure(
        &self,
        way: Way,
        number: u32,
        target: &Target<'_>,
        folder: &ServerFolder,
    ) -> Result<Round, Failure> {
        let arrive = |time, seed| {
            let arrivals = arrivals::schedule(RATE, time, target.requests.len(), seed);
            arrivals::send(target, &arrivals, &interrupt::came)
        };
        arrive(WARM_UP, 0);
        let shares = CpuShares::now();
        let arrived = arrive(self.options.time, number.into());
        let shares = CpuShares::now().since(&shares);
        if interrupt::came() {
            return Err(Failure::new("ended by a signal"));
        }
        let arrivals::Arrived { short: seven, each, answered, errors, .. } = arrived;
        let (busy, stolen) = (shares.busy, shares.stolen);
        Ok(Round { round: number, way, seven, each, answered, errors, burnt: folder.burnt(), busy, stolen })
    }
}

fn wait_until_all_serve(deployment: &Deployment, requests: &[Request]) -> Result<(), Failure> {
    let serves = |request: &&Request| {
        (0..BOOT_ATTEMPTS).any(|_| {
            readiness::status(deployment.address(), deployment.protocol(), &request.path)
                .is_ok_and(|status| status == 200)
        })
    };
    match requests.iter().find(|request| !serves(request)) {
        None => Ok(()),
        Some(request) => {
            Err(with_log(&Failure(format!("{} was not answered well", request.path)), deployment))
        }
    }
}

fn with_log(failure: &Failure, deployment: &Deployment) -> Failure {
    Failure(format!("{failure}. The end of Highball's log:\n{}", deployment.log_tail()))
}

impl Way {
    fn in_words(self) -> &'static str {
        match self {
            Way::Inside => "on the same server",
            Way::Outside => "as plain processes",
        }
    }
}

impl Round {
    fn worst_p99(&self) -> f64 {
        self.each.iter().map(|one| one.p99).fold(0.0, f64::max)
    }

    fn in_words(&self) -> String {
        format!(
            "p50 {:.1} ms, p99 {:.1} ms, the worst of the seven {:.1} ms, {} errors",
            self.seven.p50,
            self.seven.p99,
            self.worst_p99(),
            self.errors.total()
        )
    }
}

/// `3.1 (2.9–3.4)`.
fn spread(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> String {
    let Spread { median, least, most } = Spread::of(rounds.iter().map(figure)).expect("there is a round");
    format!("{median:.1} ({least:.1}–{most:.1})")
}

fn row(rounds: &[Round]) -> String {
    let errors = rounds.iter().fold(Errors::default(), |sum, round| sum.plus(&round.errors));
    let errors = if errors.total() > 0 { format!("!{}", errors_in_words(&errors)) } else { "0".into() };
    let burnt = BURNERS.map(|burner| {
        rounds
            .iter()
            .map(|round| round.burnt.get(burner).copied().unwrap_or_default())
            .sum::<u64>()
            .to_string()
    });
    let busy = Spread::of(rounds.iter().map(|round| 100.0 * round.busy)).expect("there is a round");
    format!(
        "| {} | {} | {} | {} | {:.0} | {} | {} | {errors} |\n",
        rounds[0].way.in_words(),
        spread(rounds, |round| round.seven.p50),
        spread(rounds, |round| round.seven.p99),
        spread(rounds, Round::worst_p99),
        busy.median,
        burnt.join(" / "),
        rounds.iter().map(|round| round.answered).sum::<u64>(),
    )
}

impl Isolation {
    /// The p99 inside in terms of that outside: the medians, then round by round.
    fn ratio(&self) -> (f64, Spread) {
        let p99 = |rounds: &[Round]| {
            Spread::of(rounds.iter().map(|round| round.seven.p99)).expect("there is a round").median
        };
        let pairs = self.inside.iter().zip(&self.outside);
        let each = Spread::of(pairs.map(|(inside, outside)| inside.seven.p99 / outside.seven.p99));
        (p99(&self.inside) / p99(&self.outside), each.expect("there is a round"))
    }

    /// A table that reads as well in a terminal as in Markdown, and a sentence.
    fn table(&self) -> String {
        let (ratio, each) = self.ratio();
        format!(
            "| the burners are | p50 ms (rounds) | p99 ms (rounds) | worst p99 of the seven, ms | CPU busy % | they began: \
             {} | answered | errors |\n| --- | --: | --: | --: | --: | --: | --: | --: |\n{}{}\n\
             The p99 of the seven with the burners on the same server is {ratio:.2} times that with the burners as plain \
             processes (round by round {:.2}–{:.2}); at most {TARGET} is the target, which is {}.\n",
            BURNERS.join(" / "),
            row(&self.inside),
            row(&self.outside),
            each.least,
            each.most,
            if ratio <= TARGET { "met" } else { "missed" },
        )
    }

    fn markdown(&self, table: &str) -> String {
        let stolen = self.inside.iter().chain(&self.outside).map(|round| round.stolen);
        format!(
            "# Seven applications beside three that burn\n\nMade by `{}`. {}, {} cores, {}; {}. Each of the seven has {} × {} \
             (workers × threads); {:.0} requests per second arrive at them, each of which takes 2 ms of CPU time, \
             independently of each other and of the answers. Each round has other arrivals, the same for both ways ({} s; \
             at most {:.0}% of the CPU time was stolen).\n\n{table}",
            self.command,
            self.machine.cpu,
            self.machine.cores,
            self.machine.ruby,
            self.version,
            self.workers,
            self.threads,
            self.rate,
            self.seconds,
            100.0 * stolen.fold(0.0, f64::max),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(way: Way, p99s: &[f64], errors: u64) -> Vec<Round> {
        let round = |(index, &p99): (usize, &f64)| Round {
            round: index as u32 + 1,
            way,
            seven: Latency { p50: 2.0, p99, ..Latency::default() },
            each: [p99, 2.0 * p99].map(|p99| Latency { p99, ..Latency::default() }).into(),
            answered: 100,
            errors: Errors { reset: errors, ..Errors::default() },
            burnt: BURNERS.map(|burner| (burner.to_owned(), 3)).into(),
            busy: 0.99,
            stolen: 0.0,
        };
        p99s.iter().enumerate().map(round).collect()
    }

    fn isolation(inside: &[f64], outside: &[f64], errors: u64) -> Isolation {
        Isolation {
            command: "highball bench isolation".into(),
            machine: Machine::default(),
            version: "Highball 0".into(),
            workers: 1,
            threads: 3,
            seconds: 10.0,
            rate: RATE,
            inside: rounds(Way::Inside, inside, errors),
            outside: rounds(Way::Outside, outside, 0),
        }
    }

    #[test]
    fn the_ratio_is_that_of_the_medians_and_its_rounds_are_shown() {
        let table = isolation(&[12.0, 10.0, 30.0], &[10.0, 8.0, 10.0], 0).table();
        assert!(table.contains("is 1.20 times that"), "{table}");
        assert!(
            table.contains("(round by round 1.20–3.00); at most 1.5 is the target, which is met."),
            "{table}"
        );
        let inside = "| on the same server | 2.0 (2.0–2.0) | 12.0 (10.0–30.0) | 24.0 (20.0–60.0) | 99 | 9 / 9 / 9 | 300 | 0 |";
        assert!(table.contains(inside), "{table}");
        assert!(isolation(&[16.0], &[10.0], 0).table().contains("which is missed"));
    }

    #[test]
    fn errors_are_counted_by_kind() {
        let table = isolation(&[12.0], &[10.0], 4).table();
        assert!(table.contains("| !4 errors: 4 reset |"), "{table}");
    }
}
