//! Saturation, by wrk: it is packaged, and uses the least CPU time per request (8 µs), so that it takes little
//! from the server on the same machine.
//!
//! - One thread, on one CPU. Its figures come from a Lua function that runs after the load; none runs per answer, and one per
//!   request only when there are several.
//! - A new connection with TLS costs it 230 µs, more than it costs servers. With one thread its own rate is what would be measured, so it
//!   has [`THREADS_FOR_HANDSHAKES`] there, on any CPU.
//! - Without keep-alive each request has `Connection: close`, which the server has to repeat. Latency then does not
//!   contain the kernel's part of the connection's set-up, and does contain the wait for the server's `accept`.
//!   (`ab`, the other candidate, speaks HTTP/1.0, can ask for one URL only, and compares no dynamic page.)
//! - wrk means to correct latencies for coordinated omission: for each measurement above twice the mean it adds
//!   invented ones, in steps of the mean. That is no open loop, and on a server with a known distribution of delays
//!   it moves the mean by a third and p90 by a quarter. Since it is known exactly what is added, it is taken away again here; what is
//!   left must be as many as there were answers.
//! - It waits for the body of an answer to `HEAD`, for ever, and counts every status from 400 on as an error:
//!   `sender` sends workloads with either.
//! - It counts a late answer as a time-out, but not a missing one.

use super::generator::Generator;
use super::latencies::Latencies;
use super::{request, Outcome, Target, TIME_OUT};
use crate::results::{Errors, Load};
use crate::workload::Request;
use crate::Failure;
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Prints, behind a separate line, the figures in one line and then each latency in µs and its count.
const REPORT: &str = r#"
function done(summary, latency)
  local errors = summary.errors
  print("figures")
  print(summary.duration, summary.requests, errors.connect, errors.read, errors.write, errors.timeout, errors.status)
  for index = 1, #latency do print(latency(index)) end
end
"#;

/// Threads where each request needs a TLS handshake.
const THREADS_FOR_HANDSHAKES: u32 = 2;

/// Whether wrk can send these requests and judge the answers.
pub(super) fn can_send(requests: &[Request]) -> bool {
    requests.iter().all(|request| request.method != "HEAD" && request.status < 400)
}

/// "wrk 4.1.0".
pub(super) fn version() -> Result<String, Failure> {
    let missing = |_| Failure::new("wrk is missing: apt-get install wrk");
    // It ends with 1 and tells how it is used, whatever it is asked.
    let asked = Command::new("wrk").arg("-v").stdin(Stdio::null()).output().map_err(missing)?;
    let words = String::from_utf8_lossy(&asked.stdout).into_owned();
    let number = words.strip_prefix("wrk ").and_then(|rest| rest.split_whitespace().next());
    Ok(format!("wrk {}", number.unwrap_or_default().trim_start_matches("debian/")))
}

/// Runs wrk for this number of seconds.
pub(super) fn run(target: &Target, load: &Load, time: Duration) -> Result<Outcome, Failure> {
    version()?;
    let unwritten = |error| Failure(format!("the script for wrk cannot be written: {error}"));
    let script = tempfile::NamedTempFile::new().map_err(unwritten)?;
    std::fs::write(script.path(), script_for(target, load.keep_alive)).map_err(unwritten)?;

    let seconds = time.as_secs_f64().ceil().max(1.0);
    let mut command = Command::new("wrk");
    let makes_handshakes = target.protocol.has_tls() && !load.keep_alive;
    let threads = if makes_handshakes { THREADS_FOR_HANDSHAKES.min(load.connections) } else { 1 };
    command.args(["--threads", &threads.to_string(), "--connections", &load.connections.to_string()]);
    command.args(["--duration", &format!("{seconds}s"), "--timeout", &format!("{}s", TIME_OUT.as_secs())]);
    command.arg("--script").arg(script.path()).arg(format!(
        "{}://{}/",
        target.protocol.scheme(),
        target.address
    ));
    let generator =
        if threads == 1 { Generator::start_on_one_cpu(&mut command) } else { Generator::start(&mut command) };
    let ended = generator?.finish(Duration::from_secs_f64(seconds) + 3 * TIME_OUT)?;
    outcome(&ended.output, load.connections, ended.cpu_us)
}

/// The script. What wrk itself would make of its command line is replaced: it sends the bytes given here.
fn script_for(target: &Target, keep_alive: bool) -> String {
    let mut script = String::from("local requests = {\n");
    for one in target.requests {
        let head = lua_string(&request::head(one, target.host, keep_alive));
        let (byte, bytes) = (char::from(request::BODY_BYTE), one.body_bytes);
        writeln!(script, "  {head} .. string.rep(\"{byte}\", {bytes}),").expect("a string takes all");
    }
    script.push_str("}\n");
    script.push_str(match target.requests.len() {
        // Asked for once, and sent again and again.
        1 => "wrk.init = function() wrk.request = function() return requests[1] end end\n",
        _ => "local last = 0\nfunction request() last = last % #requests + 1 return requests[last] end\n",
    });
    script + REPORT
}

/// A literal of Lua.
fn lua_string(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Reads what [`REPORT`] printed.
fn outcome(output: &str, connections: u32, cpu_us: f64) -> Result<Outcome, Failure> {
    let unreadable = || Failure(format!("wrk's figures cannot be read: {}", output.trim()));
    let (_, report) = output.split_once("\nfigures\n").ok_or_else(unreadable)?;
    let numbers = |line: &str| line.split_whitespace().map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>();
    let lines: Vec<Vec<u64>> = report.lines().map(numbers).collect::<Option<_>>().ok_or_else(unreadable)?;
    let Some(&[duration_us, requests, connect, read, write, late, status]) = lines.first().map(Vec::as_slice)
    else {
        return Err(unreadable());
    };
    let counts: Vec<(u64, u64)> =
        lines[1..].iter().filter_map(|line| Some((*line.first()?, *line.get(1)?))).collect();
    // wrk's own: how long a connection takes for a request, on average.
    let interval_us = duration_us / (requests / u64::from(connections)).max(1);
    let latencies = taken_back(counts, requests.saturating_sub(late), interval_us)?;

    let mut errors = Errors { connect, reset: read + write, time_out: late, status, ..Errors::default() };
    if requests == 0 && errors.total() == 0 {
        errors.time_out = connections.into(); // none of them had an answer all the time
    }
    Ok(Outcome {
        requests,
        requests_per_second: requests as f64 * 1e6 / duration_us.max(1) as f64,
        latency: latencies.summary(),
        errors,
        cpu_us,
    })
}

/// The latencies that were measured, from (µs, count), wrk's invented ones among them.
fn taken_back(mut counts: Vec<(u64, u64)>, measured: u64, interval_us: u64) -> Result<Latencies, Failure> {
    if counts.iter().map(|&(_, count)| count).sum::<u64>() > measured {
        counts = without_invented(&counts, interval_us);
    }
    let latencies = Latencies::counted(counts);
    if latencies.count() != measured {
        return Err(Failure(format!(
            "wrk counted {measured} answers and {} latencies: this version keeps them in a way that is not known here",
            latencies.count()
        )));
    }
    Ok(latencies)
}

/// For each latency of at least twice the interval wrk added another, an interval less, then two and so on, as
/// long as that is above the interval. Nothing was added to the slowest, so they are taken away from there down.
fn without_invented(counts: &[(u64, u64)], interval_us: u64) -> Vec<(u64, u64)> {
    let slowest_us = counts.last().map_or(0, |&(us, _)| us);
    let mut by_us = vec![0; slowest_us as usize + 1];
    for &(us, count) in counts {
        by_us[us as usize] = count;
    }
    let interval = interval_us.max(1) as usize;
    for us in (2 * interval..by_us.len()).rev() {
        let count = by_us[us];
        let mut invented = us - interval;
        while count > 0 && invented > interval {
            by_us[invented] = by_us[invented].saturating_sub(count);
            invented -= interval;
        }
    }
    (0..).zip(by_us).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What wrk does to its measurements.
    fn with_invented(measured: &[(u64, u64)], interval: u64) -> Vec<(u64, u64)> {
        let mut all = vec![0; measured.last().map_or(0, |&(us, _)| us as usize) + 1];
        for &(us, count) in measured {
            all[us as usize] = count;
            let mut invented = us as i64 - interval as i64;
            while us >= 2 * interval && invented > interval as i64 {
                all[invented as usize] += count;
                invented -= interval as i64;
            }
        }
        (0..).zip(all).filter(|&(_, count)| count > 0).collect()
    }

    #[test]
    fn what_wrk_invents_is_taken_back() -> Result<(), Failure> {
        let measured = [(4, 50), (5, 850), (12, 3), (13, 20), (20, 60), (21, 7), (60, 10)];
        let all = with_invented(&measured, 6);
        assert!(all.iter().map(|&(_, count)| count).sum::<u64>() > 1000);
        assert_eq!(taken_back(all.clone(), 1000, 6)?, Latencies::counted(measured));
        // Another interval than wrk's leaves another number of them.
        assert!(taken_back(all, 1000, 7).is_err());
        Ok(())
    }

    #[test]
    fn its_report_is_read() -> Result<(), Failure> {
        let output = "Requests/sec: 1\n\nfigures\n2000000\t4\t1\t2\t3\t0\t5\n500\t3\n1500\t1\n";
        let outcome = outcome(output, 4, 7.0)?;
        assert_eq!((outcome.requests, outcome.requests_per_second), (4, 2.0));
        assert_eq!(outcome.errors, Errors { connect: 1, reset: 5, status: 5, ..Errors::default() });
        assert_eq!((outcome.latency.p50, outcome.latency.max), (0.5, 1.5));
        Ok(())
    }

    #[test]
    fn answers_that_never_come_are_errors() -> Result<(), Failure> {
        let outcome = outcome("\nfigures\n2000000 0 0 0 0 0 0\n", 25, 0.0)?;
        assert_eq!(outcome.errors.time_out, 25);
        Ok(())
    }

    #[test]
    fn a_script_holds_the_bytes() {
        assert_eq!(lua_string("a\"\\\r\n"), "\"a\\\"\\\\\\013\\010\"");
    }
}
