//! `highball bench idle`: what a keep-alive connection takes in Highball while its client does nothing, and whether a new
//! client is served at once when there may be no more of them.
//!
//! What counts is the private dirty memory of Highball's own processes: molds and workers know no connections.

use std::fs;
use std::time::Instant;

use highball_proc::allow_open_files;
use serde::Serialize;

use crate::data::{data_folder, highball};
use crate::deployment::Deployment;
use crate::load::connection::{Connection, Rest};
use crate::load::request;
use crate::method::{setting, Candidate};
use crate::options::Options;
use crate::process_tree::{memory_of, ProcessTree};
use crate::results::Machine;
use crate::statistics::Spread;
use crate::workload::Workload;
use crate::{interrupt, machine, Failure};

/// The workload: its requests.
const WORKLOAD: &str = "hello";
/// Connections that are open at a time, and the most that the server may have.
const CONNECTIONS: usize = 10_000;
/// Requests over one connection before the memory is read for the first time.
const WARM_UP: usize = 1000;
/// Clients that come when there are as many connections as there may be.
const NEW_CLIENTS: usize = 100;
/// The largest number of KiB that an idle connection may take.
const TARGET_KIB: f64 = 10.0;
/// Descriptors of this process and the server beside those of connections.
const OTHER_FILES: u64 = 1000;
/// No connection is closed for being idle while all of them are opened.
const SETTINGS: [(&str, &str); 2] = [("HIGHBALL_MAX_CONNECTIONS", "10000"), ("HIGHBALL_IDLE_TIMEOUT", "10m")];

/// All that was measured.
#[derive(Debug, Serialize)]
struct Idle {
    command: String,
    machine: Machine,
    version: String,
    connections: usize,
    rounds: Vec<Round>,
}

#[derive(Debug, Serialize)]
struct Round {
    /// KiB of each connection that has sent nothing yet.
    fresh_kib: f64,
    /// KiB of each connection after an answer.
    idle_kib: f64,
    new_clients: NewClients,
}

/// Clients that came at the limit.
#[derive(Debug, Serialize)]
struct NewClients {
    /// ms from the begin of each one's connection to the end of its answer, in ascending order.
    waited_ms: Vec<f64>,
    /// Clients that got none.
    refused: usize,
    /// Idle connections that were closed for them.
    closed: usize,
}

/// Measures, prints the table, and writes `idle.json` and `IDLE.md`.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let data = data_folder()?;
    options.refuse_unwritable_output()?;
    allow_files(CONNECTIONS as u64 + OTHER_FILES)?;
    let scheme = highball(&data)?;
    let mut workload = Workload::read(&data.join("workloads").join(WORKLOAD).with_extension("toml"))?;
    workload.env.extend(SETTINGS.map(|(name, value)| (name.into(), value.into())));
    let version = scheme.version();
    let candidate = options.candidate(scheme);
    let mut rounds = Vec::new();
    for number in 1..=options.rounds {
        let round = round(&candidate, &workload)?;
        eprintln!("round {number}: {}", round.in_words());
        rounds.push(round);
    }
    let idle = Idle {
        command: options.command.clone(),
        machine: machine::describe(),
        version,
        connections: CONNECTIONS,
        rounds,
    };
    let table = idle.table();
    options.report("idle", &idle, &table, idle.markdown(&table))
}

fn round(candidate: &Candidate, workload: &Workload) -> Result<Round, Failure> {
    let deployment = Deployment::start(&candidate.scheme, &setting(candidate, workload))?;
    let clients =
        Clients { deployment: &deployment, request: request::head(&workload.requests[0], "127.0.0.1", true) };
    let round = clients.measure().map_err(|Failure(what)| {
        Failure(format!("{what}. The end of Highball's log:\n{}", deployment.log_tail()))
    })?;
    deployment.stop()?;
    Ok(round)
}

/// The clients of a server, which all send the same request.
struct Clients<'a> {
    deployment: &'a Deployment,
    request: String,
}

impl Clients<'_> {
    fn measure(&self) -> Result<Round, Failure> {
        let mut one = self.connect()?;
        for _ in 0..WARM_UP {
            self.ask(&mut one)?;
        }
        drop(one);
        let kib_each = |before: f64| (self.server_kib() - before) / CONNECTIONS as f64;
        let before = self.server_kib();
        let mut open = Vec::with_capacity(CONNECTIONS);
        while open.len() < CONNECTIONS {
            open.push(self.connect()?);
            if interrupt::came() {
                return Err(interrupt::failure());
            }
        }
        // The server accepts connections in their order: when the last has an answer, it has all of them.
        self.ask(open.last_mut().expect("there are some"))?;
        let fresh_kib = kib_each(before);
        for connection in &mut open {
            self.ask(connection)?;
        }
        let idle_kib = kib_each(before);
        Ok(Round { fresh_kib, idle_kib, new_clients: self.come_at_the_limit(&mut open) })
    }

    /// The private dirty memory of Highball's own processes.
    fn server_kib(&self) -> f64 {
        let program = |pid: i32| fs::read_link(format!("/proc/{pid}/exe")).ok();
        let roots = self.deployment.roots();
        let own = roots.first().and_then(|first| program(*first));
        let mut pids = ProcessTree::new(&roots).pids();
        pids.retain(|pid| program(*pid) == own);
        memory_of(&pids).private_dirty_mib * 1024.0
    }

    /// New clients come while these connections are all that there may be.
    fn come_at_the_limit(&self, open: &mut [Connection]) -> NewClients {
        let (mut waited_ms, mut refused, mut new) = (Vec::new(), 0, Vec::new());
        for _ in 0..NEW_CLIENTS {
            let begun = Instant::now();
            let answered = Connection::open(self.deployment.address(), self.deployment.protocol()).and_then(
                |mut connection| connection.ask(self.request.as_bytes(), false).map(|_| connection),
            );
            match answered {
                Ok(connection) => {
                    waited_ms.push(begun.elapsed().as_secs_f64() * 1e3);
                    new.push(connection);
                }
                Err(_) => refused += 1,
            }
        }
        waited_ms.sort_by(f64::total_cmp);
        let closed = open.iter_mut().map(Connection::rest).filter(|rest| *rest == Rest::End).count();
        NewClients { waited_ms, refused, closed }
    }

    fn connect(&self) -> Result<Connection, Failure> {
        Connection::open(self.deployment.address(), self.deployment.protocol())
            .map_err(|why| Failure(format!("a client got no connection: {why:?}")))
    }

    fn ask(&self, connection: &mut Connection) -> Result<(), Failure> {
        match connection.ask(self.request.as_bytes(), false) {
            Ok((answer, true)) if answer.status == 200 => Ok(()),
            Ok((answer, kept)) => Err(Failure(format!(
                "an answer had the status {}, and its connection was {}",
                answer.status,
                if kept { "kept" } else { "closed" }
            ))),
            Err(why) => Err(Failure(format!("a client got no answer: {why:?}"))),
        }
    }
}

/// Raises this process's limit on open files, which the server inherits.
fn allow_files(wanted: u64) -> Result<(), Failure> {
    match allow_open_files(wanted) {
        Ok(allowed) if allowed >= wanted => Ok(()),
        Ok(allowed) => Err(Failure(format!(
            "{CONNECTIONS} connections need {wanted} open files, and this user may have {allowed}: raise the limit \
             (`ulimit -Hn`)"
        ))),
        Err(error) => Err(Failure(format!("{CONNECTIONS} connections need {wanted} open files: {error}"))),
    }
}

impl NewClients {
    fn median_ms(&self) -> f64 {
        Spread::of(self.waited_ms.iter().copied()).map_or(f64::NAN, |spread| spread.median)
    }

    fn slowest_ms(&self) -> f64 {
        self.waited_ms.last().copied().unwrap_or(f64::NAN)
    }
}

impl Round {
    fn in_words(&self) -> String {
        format!(
            "{:.1} KiB before a request, {:.1} KiB after an answer; new clients p50 {:.1} ms, slowest {:.1} ms, {} refused",
            self.fresh_kib,
            self.idle_kib,
            self.new_clients.median_ms(),
            self.new_clients.slowest_ms(),
            self.new_clients.refused
        )
    }
}

impl Idle {
    fn spread(&self, figure: impl Fn(&Round) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(figure)).expect("there is a round")
    }

    /// `3.1 (2.9–3.4)`.
    fn cell(&self, figure: impl Fn(&Round) -> f64) -> String {
        let Spread { median, least, most } = self.spread(figure);
        format!("{median:.1} ({least:.1}–{most:.1})")
    }

    fn sum(&self, figure: impl Fn(&NewClients) -> usize) -> usize {
        self.rounds.iter().map(|round| figure(&round.new_clients)).sum()
    }

    /// A table that reads as well in a terminal as in Markdown, and two sentences.
    fn table(&self) -> String {
        let idle_kib = self.spread(|round| round.idle_kib).median;
        let refused = self.sum(|clients| clients.refused);
        format!(
            "| connections | KiB each before a request (rounds) | KiB each after an answer | new clients: p50 ms | slowest ms \
             | refused | closed for them |\n| --: | --: | --: | --: | --: | --: | --: |\n\
             | {} | {} | {} | {} | {} | {refused} | {} |\n\n\
             An idle keep-alive connection takes {idle_kib:.1} KiB; at most {TARGET_KIB:.0} is the target, which is {}.\n\
             At the limit on connections, {} of {} new clients were served.\n",
            self.connections,
            self.cell(|round| round.fresh_kib),
            self.cell(|round| round.idle_kib),
            self.cell(|round| round.new_clients.median_ms()),
            self.cell(|round| round.new_clients.slowest_ms()),
            self.sum(|clients| clients.closed),
            if idle_kib <= TARGET_KIB { "met" } else { "missed" },
            self.rounds.len() * NEW_CLIENTS - refused,
            self.rounds.len() * NEW_CLIENTS,
        )
    }

    fn markdown(&self, table: &str) -> String {
        format!(
            "# Idle connections\n\nMade by `{}`. {}, {} cores, {}; {}. Memory is the private dirty memory of Highball's own \
             processes, divided by the connections. Each of them is idle after one answer; then {NEW_CLIENTS} new clients come, \
             while the server may have no more connections. They wait from the begin of a connection to the end of the \
             answer.\n\n{table}",
            self.command, self.machine.cpu, self.machine.cores, self.machine.ruby, self.version,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(each_kib: &[f64], refused: usize) -> Idle {
        let round = |&idle_kib: &f64| Round {
            fresh_kib: idle_kib - 1.0,
            idle_kib,
            new_clients: NewClients { waited_ms: vec![0.5, 1.0, 2.0], refused, closed: 3 },
        };
        Idle {
            command: "highball bench idle".into(),
            machine: Machine::default(),
            version: "Highball 0".into(),
            connections: 10_000,
            rounds: each_kib.iter().map(round).collect(),
        }
    }

    #[test]
    fn the_table_says_whether_the_target_is_met() {
        let table = idle(&[4.0, 3.0, 3.5], 0).table();
        assert!(table.contains("takes 3.5 KiB; at most 10 is the target, which is met."), "{table}");
        assert!(table.contains("300 of 300 new clients were served."), "{table}");
        let row = "| 10000 | 2.5 (2.0–3.0) | 3.5 (3.0–4.0) | 1.0 (1.0–1.0) | 2.0 (2.0–2.0) | 0 | 9 |";
        assert!(table.contains(row), "{table}");
        let missed = idle(&[10.5], 4).table();
        assert!(missed.contains("which is missed"), "{missed}");
        assert!(missed.contains("96 of 100 new clients"), "{missed}");
    }
}
