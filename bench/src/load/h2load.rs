//! Saturation over HTTP/2, by h2load of nghttp2, which Debian packages.
//!
//! - Each connection has [`STREAMS`] requests under way. One thread, on one CPU, as wrk.
//! - Its summary has no percentiles, so each answer is read from its log (microseconds since 1970, status, duration in µs).
//! - A new connection for each request it cannot make; nor does it send requests of several kinds.

use super::generator::Generator;
use super::latencies::Latencies;
use super::{Outcome, Target, TIME_OUT};
use crate::results::{Errors, Load};
use crate::Failure;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Requests of a connection at a time.
pub(crate) const STREAMS: u32 = 4;

/// "h2load nghttp2/1.52.0".
pub(super) fn version() -> Result<String, Failure> {
    let missing = |_| Failure::new("h2load is missing: apt-get install nghttp2-client");
    let asked = Command::new("h2load").arg("--version").stdin(Stdio::null()).output().map_err(missing)?;
    Ok(String::from_utf8_lossy(&asked.stdout).trim().into())
}

/// Runs h2load for this number of seconds.
pub(super) fn run(target: &Target, load: &Load, time: Duration) -> Result<Outcome, Failure> {
    let [request] = target.requests else {
        return Err(Failure::new("h2load sends one kind of request"));
    };
    if !load.keep_alive || request.method != "GET" {
        return Err(Failure::new(
            "over HTTP/2, GET is sent over connections that are kept, and nothing else",
        ));
    }
    version()?;
    let log = tempfile::NamedTempFile::new();
    let log = log.map_err(|error| Failure(format!("a file for h2load's log cannot be made: {error}")))?;
    let seconds = time.as_secs_f64().ceil().max(1.0);
    let mut command = Command::new("h2load");
    command.args(["--threads", "1", "--clients", &load.connections.to_string()]);
    command.args(["--max-concurrent-streams", &STREAMS.to_string(), "--duration", &seconds.to_string()]);
    command.arg("--log-file").arg(log.path());
    for (name, value) in &request.headers {
        command.arg("--header").arg(format!("{name}: {value}"));
    }
    command.arg(format!("https://{}{}", target.address, request.path));
    let most = Duration::from_secs_f64(seconds) + 3 * TIME_OUT;
    let ended = Generator::start_on_one_cpu(&mut command)?.finish(most)?;
    let answers = std::fs::read_to_string(log.path());
    let answers = answers.map_err(|error| Failure(format!("h2load's log cannot be read: {error}")))?;
    outcome(&ended.output, &answers, (request.status, load.connections), seconds, ended.cpu_us)
}

/// Reads the summary's errors and the log's answers.
fn outcome(
    summary: &str,
    log: &str,
    (status, connections): (u16, u32),
    seconds: f64,
    cpu_us: f64,
) -> Result<Outcome, Failure> {
    let unreadable = || Failure(format!("h2load's figures cannot be read: {}", summary.trim()));
    let line = summary.lines().find_map(|line| line.strip_prefix("requests: ")).ok_or_else(unreadable)?;
    let count = |what: &str| {
        let part = line.split(", ").find_map(|part| part.strip_suffix(what))?;
        part.trim().parse::<u64>().ok()
    };
    let (Some(errored), Some(time_out)) = (count(" errored"), count(" timeout")) else {
        return Err(unreadable());
    };
    let mut errors = Errors { reset: errored, time_out, ..Errors::default() };
    let mut latencies_us = Vec::new();
    for answer in log.lines() {
        let mut fields = answer.split_ascii_whitespace().skip(1).map(str::parse::<i64>);
        let (Some(Ok(answered)), Some(Ok(took))) = (fields.next(), fields.next()) else {
            return Err(unreadable());
        };
        // -1: the stream was reset.
        if answered != i64::from(status) {
            errors.status += 1;
        }
        latencies_us.push(took.max(0).unsigned_abs());
    }
    let latencies = Latencies::measured(latencies_us);
    if latencies.count() == 0 && errors.total() == 0 {
        errors.time_out = connections.into(); // none of them had an answer all the time
    }
    Ok(Outcome {
        requests: latencies.count(),
        requests_per_second: latencies.count() as f64 / seconds,
        latency: latencies.summary(),
        errors,
        cpu_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "finished in 2.00s, 2.00 req/s, 90.47MB/s\n\
        requests: 5 total, 5 started, 4 done, 3 succeeded, 1 failed, 2 errored, 1 timeout\n\
        status codes: 3 2xx, 0 3xx, 0 4xx, 1 5xx\n";

    #[test]
    fn the_figures_are_read() -> Result<(), Failure> {
        let log = "1700000000000001\t200\t500\n1700000000000002\t200\t1500\n1700000000000003\t503\t700\n\
                   1700000000000003\t200\t700\n";
        let outcome = outcome(SUMMARY, log, (200, 5), 2.0, 7.0)?;
        assert_eq!((outcome.requests, outcome.requests_per_second, outcome.cpu_us), (4, 2.0, 7.0));
        assert_eq!(outcome.errors, Errors { reset: 2, time_out: 1, status: 1, ..Errors::default() });
        assert_eq!((outcome.latency.p50, outcome.latency.max), (0.7, 1.5));
        Ok(())
    }

    #[test]
    fn figures_of_another_form_are_a_failure() {
        assert!(outcome("requests: many\n", "", (200, 5), 1.0, 0.0).is_err());
        assert!(outcome(SUMMARY, "not a line\n", (200, 5), 1.0, 0.0).is_err());
    }
}
