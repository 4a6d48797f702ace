//! A given rate, by oha, which measures a request from when it was queued for sending (`--latency-correction`): what
//! waits because all connections are busy counts as latency.
//!
//! - It was taken because it passes the tests of truth (`tests/ruler.rs`), and the cargo that builds Highball builds
//!   it. Without the correction it fails them. vegeta, which could send requests of several kinds, needs a newer Go
//!   (1.22) than Debian 12 has; hey, which Debian has, corrects nothing.
//! - 1.11.0 is the last version for Rust 1.85. The rate is given with a duration and never with a number of requests:
//!   there this version corrects just when it was not asked to.
//! - Its summary has no deviation and no raw figures, so each answer is read from the database that it writes, after
//!   the load, by sqlite3.
//! - It picks URLs by chance, and sends one method, one set of headers and one body: for requests of several kinds
//!   one oha runs for each, all at the same time, with its part of the connections and of the rate.
//! - A request is due when oha's timer wakes, to a millisecond: at more than 1,000 requests/s several are due at once,
//!   and a delay of oha itself, which has no part in a server's latency, is not in it.
//! - It uses twice wrk's CPU time per request under saturation, and 40 to 60 µs at 2,000 requests/s.

use super::generator::{Ended, Generator};
use super::latencies::Latencies;
use super::{request, Outcome, Target, TIME_OUT};
use crate::results::{Errors, Load};
use crate::workload::Request;
use crate::Failure;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// What brings it: 1.11.0 is the last version for Rust 1.85.
pub(crate) const INSTALL: &str = "cargo install oha --locked --version 1.11.0";
/// How it is built: not for hours.
const PROFILE: [(&str, &str); 2] =
    [("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")];

/// The fields of an answer that are read from the database, one line each.
const ANSWERS: &str = "SELECT CAST(duration * 1e6 AS INTEGER), status, url FROM oha";

/// "oha 1.11.0".
pub(super) fn version() -> Result<String, Failure> {
    let reader = Command::new("sqlite3").arg("-version").stdin(Stdio::null()).output();
    reader.map_err(|_| Failure::new("sqlite3 is missing: apt-get install sqlite3"))?;
    let asked = Command::new(program()?).arg("--version").stdin(Stdio::null()).output();
    let answer = asked.map_err(|error| Failure(format!("oha cannot be started: {error}")))?;
    Ok(String::from_utf8_lossy(&answer.stdout).trim().into())
}

/// Where oha is: in PATH, or where cargo or `bin/test` puts it.
fn program() -> Result<PathBuf, Failure> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(variable("CARGO_HOME").map(|cargo| cargo.join("bin")));
    folders.extend(variable("HOME").map(|home| home.join(".cargo/bin")));
    folders.push("/var/cache/highball/cargo-tools/bin".into());
    folders.extend(variable("XDG_CACHE_HOME").map(|cache| cache.join("highball/cargo-tools/bin")));
    folders.extend(variable("HOME").map(|home| home.join(".cache/highball/cargo-tools/bin")));
    let found = folders.into_iter().map(|folder| folder.join("oha")).find(|file| file.is_file());
    found.ok_or_else(|| Failure(format!("oha is missing: {INSTALL}")))
}

/// The command that builds it with cargo, into the folder where `bin/test` has it; `None` where it is there.
pub(crate) fn installation(cache: &Path) -> Option<Command> {
    if program().is_ok() {
        return None;
    }
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo/bin/cargo"));
    let cargo = home.filter(|cargo| cargo.is_file()).unwrap_or_else(|| "cargo".into());
    let tools = cache.join("cargo-tools");
    let mut command = Command::new(cargo);
    command.args(INSTALL.split(' ').skip(1)).arg("--root").arg(&tools).envs(PROFILE);
    command.env("CARGO_TARGET_DIR", tools.join("target"));
    Some(command)
}

/// Runs oha for this time.
pub(super) fn run(target: &Target, load: &Load, time: Duration) -> Result<Outcome, Failure> {
    version()?;
    let runs = Kind::all(target.requests)
        .into_iter()
        .map(|kind| Run::start(kind, target, load, time))
        .collect::<Result<Vec<Run>, Failure>>()?;
    let mut all = Counted::default();
    for run in runs {
        all.add(run.finish(time)?);
    }
    let latencies = Latencies::measured(all.latencies_us);
    Ok(Outcome {
        requests: latencies.count(),
        requests_per_second: latencies.count() as f64 / all.seconds.max(time.as_secs_f64()),
        latency: latencies.summary(),
        errors: all.errors,
        cpu_us: all.cpu_us,
    })
}

/// Requests that one oha can send.
struct Kind<'a> {
    requests: Vec<&'a Request>,
    /// Its part of all requests.
    share: f64,
}

impl<'a> Kind<'a> {
    fn all(requests: &'a [Request]) -> Vec<Kind<'a>> {
        let mut kinds: Vec<Kind> = Vec::new();
        let part = 1.0 / requests.len() as f64;
        for request in requests {
            match kinds.iter_mut().find(|kind| is_alike(kind.requests[0], request)) {
                Some(kind) => {
                    kind.requests.push(request);
                    kind.share += part;
                }
                None => kinds.push(Kind { requests: vec![request], share: part }),
            }
        }
        kinds
    }
}

/// Whether they differ by no more than their path and the status that is expected.
fn is_alike(one: &Request, other: &Request) -> bool {
    one.method == other.method && one.headers == other.headers && one.body_bytes == other.body_bytes
}

/// An oha that runs.
struct Run {
    generator: Generator,
    /// URLs, body, summary and database.
    folder: TempDir,
    /// Path and query, and the status that is expected.
    expected: BTreeMap<String, u16>,
    connections: u32,
    rate: Option<f64>,
}

impl Run {
    fn start(kind: Kind, target: &Target, load: &Load, time: Duration) -> Result<Run, Failure> {
        let unwritten = |error| Failure(format!("oha's files cannot be written: {error}"));
        let folder = tempfile::tempdir().map_err(unwritten)?;
        let file = |name: &str| folder.path().join(name);
        let first = kind.requests[0];
        let urls = kind.requests.iter().map(|one| format!("http://{}{}\n", target.address, one.path));
        std::fs::write(file("urls"), urls.collect::<String>()).map_err(unwritten)?;
        std::fs::write(file("body"), vec![request::BODY_BYTE; first.body_bytes as usize])
            .map_err(unwritten)?;

        let connections = ((f64::from(load.connections) * kind.share).round() as u32).max(1);
        let rate = load.rate.map(|rate| rate * kind.share);
        let mut command = Command::new(program()?);
        command.args(["--no-tui", "--output-format", "json", "--disable-compression"]);
        command.args(["-c", &connections.to_string(), "-z", &format!("{}ms", time.as_millis()), "-w"]);
        command.args(["-r", "0", "-t", &format!("{}s", TIME_OUT.as_secs())]);
        if let Some(rate) = rate {
            command.args(["--latency-correction", "-q", &rate.to_string()]);
        }
        if !load.keep_alive {
            command.arg("--disable-keepalive");
        }
        command.args(["-m", &first.method, "--host", target.host]);
        for (name, value) in &first.headers {
            command.args(["-H", &format!("{name}: {value}")]);
        }
        if first.body_bytes > 0 {
            command.arg("-D").arg(file("body"));
        }
        command.arg("--db-url").arg(file("answers")).arg("--output").arg(file("summary"));
        command.arg("--urls-from-file").arg(file("urls"));
        let generator = Generator::start(&mut command)?;
        let expected = kind.requests.iter().map(|one| (one.path.clone(), one.status)).collect();
        Ok(Run { generator, folder, expected, connections, rate })
    }

    fn finish(self, time: Duration) -> Result<Counted, Failure> {
        // Requests that wait for their answer at the end are waited for.
        let Ended { cpu_us, .. } = self.generator.finish(time + 3 * TIME_OUT)?;
        let summary = Summary::read(&self.folder.path().join("summary"))?;
        let mut counted = Counted { cpu_us, seconds: summary.summary.total, ..Counted::default() };
        for (words, count) in &summary.error_distribution {
            counted.errors = counted.errors.plus(&errors_of(words, *count));
        }
        for (us, status, url) in answers(&self.folder.path().join("answers"))? {
            counted.latencies_us.push(us);
            let is_expected = match self.expected.get(&url) {
                Some(expected) => *expected == status,
                None => self.expected.values().any(|expected| *expected == status), // written in another way
            };
            counted.errors.status += u64::from(!is_expected);
        }
        counted.errors.time_out += unsent(self.rate, time, self.connections, &counted);
        Ok(counted)
    }
}

/// Requests that were due and never got a connection. What is due in the last quarter of a second may be left over
/// because oha itself had to wait for its turn.
fn unsent(rate: Option<f64>, time: Duration, connections: u32, counted: &Counted) -> u64 {
    let Some(rate) = rate else { return 0 };
    let due = (rate * time.as_secs_f64()) as u64;
    let few = u64::from(connections) + (rate / 4.0) as u64;
    let missing = due.saturating_sub(counted.latencies_us.len() as u64 + counted.errors_without_status());
    if missing > few {
        missing
    } else {
        0
    }
}

/// What an oha counted, or several.
#[derive(Default)]
struct Counted {
    latencies_us: Vec<u64>,
    errors: Errors,
    /// How long it took.
    seconds: f64,
    cpu_us: f64,
}

impl Counted {
    fn add(&mut self, other: Counted) {
        self.latencies_us.extend(other.latencies_us);
        self.errors = self.errors.plus(&other.errors);
        self.seconds = self.seconds.max(other.seconds);
        self.cpu_us += other.cpu_us;
    }

    /// Requests without an answer.
    fn errors_without_status(&self) -> u64 {
        self.errors.total() - self.errors.status
    }
}

/// What is read of oha's JSON.
#[derive(Deserialize)]
struct Summary {
    summary: Total,
    /// By oha's words for it.
    #[serde(rename = "errorDistribution")]
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Total {
    /// Seconds.
    total: f64,
}

impl Summary {
    fn read(file: &Path) -> Result<Summary, Failure> {
        let unreadable =
            |error: &dyn std::fmt::Display| Failure(format!("oha's summary cannot be read: {error}"));
        let text = std::fs::read_to_string(file).map_err(|error| unreadable(&error))?;
        // Without a single answer its figures are no numbers, which its JSON says with `null`.
        serde_json::from_str(&text).map_err(|error| unreadable(&error))
    }
}

/// The kind of an error, by oha's words: its own, the system's for a connection that was not made, else hyper's for
/// a broken one.
fn errors_of(words: &str, count: u64) -> Errors {
    let none = Errors::default();
    match words {
        "timeout" | "aborted due to deadline" => Errors { time_out: count, ..none },
        _ if words.contains("(os error ") => Errors { connect: count, ..none },
        _ => Errors { reset: count, ..none },
    }
}

/// Latency in µs, status, and path with query of each answer.
fn answers(database: &Path) -> Result<Vec<(u64, u16, String)>, Failure> {
    let unreadable = |why: &str| Failure(format!("oha's answers cannot be read by sqlite3: {why}"));
    let mut command = Command::new("sqlite3");
    command.args(["-readonly", "-batch", "-list", "-separator", " "]).arg(database).arg(ANSWERS);
    let asked = command.stdin(Stdio::null()).output().map_err(|error| unreadable(&error.to_string()))?;
    if !asked.status.success() {
        return Err(unreadable(&String::from_utf8_lossy(&asked.stderr)));
    }
    let answer = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?, fields.next()?.to_owned()))
    };
    let text = String::from_utf8_lossy(&asked.stdout);
    text.lines().map(|line| answer(line).ok_or_else(|| unreadable(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str) -> Request {
        let (method, path) = (method.into(), path.into());
        Request { method, path, ..Request::default() }
    }

    #[test]
    fn requests_are_sorted_by_what_one_oha_can_send() {
        let requests =
            [request("GET", "/a"), request("HEAD", "/a"), request("GET", "/b"), request("GET", "/c")];
        let kinds = Kind::all(&requests);
        let shares: Vec<(usize, f64)> = kinds.iter().map(|kind| (kind.requests.len(), kind.share)).collect();
        assert_eq!(shares, [(3, 0.75), (1, 0.25)]);
    }

    #[test]
    fn errors_have_kinds() {
        assert_eq!(errors_of("Connection refused (os error 111)", 2).connect, 2);
        assert_eq!(errors_of("timeout", 3).time_out, 3);
        assert_eq!(errors_of("connection closed before message completed", 4).reset, 4);
    }

    #[test]
    fn what_never_got_a_connection_timed_out() {
        let counted = |answers| Counted { latencies_us: vec![1000; answers], ..Counted::default() };
        let time = Duration::from_secs(2);
        assert_eq!(unsent(Some(100.0), time, 5, &counted(180)), 0);
        assert_eq!(unsent(Some(100.0), time, 5, &counted(120)), 80);
        assert_eq!(unsent(None, time, 5, &counted(0)), 0);
    }
}
