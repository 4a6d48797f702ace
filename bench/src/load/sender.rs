//! What wrk cannot send: requests at a given rate, `HEAD`, and what is answered by an error status or by an answer that ends with its
//! connection. Each connection has a thread, which sends one request after the other.
//!
//! At a rate, a request counts from when it is due, whatever came back until then. While a server stalls, requests wait for a free
//! connection, and their latencies show it.

use super::connection::{ask, error, wire};
use super::latencies::Latencies;
use super::{Outcome, Target};
use crate::interrupt;
use crate::results::{Errors, Load};
use rustix::time::{clock_gettime, ClockId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The stack of a thread that sends one request at a time.
const STACK_BYTES: usize = 256 * 1024;
/// Time after the end of the load in which requests that are due may still find a connection.
const LATE: Duration = Duration::from_millis(250);

/// As many requests as the connections carry.
pub(super) fn saturate(target: &Target, load: &Load, time: Duration) -> Outcome {
    send(target, load, time, &|_, elapsed| (elapsed < time).then_some(elapsed)).0
}

/// This number of requests per second. Requests that find no connection in time have timed out.
pub(super) fn at_rate(target: &Target, load: &Load, rate: f64, time: Duration) -> Outcome {
    let wanted = (rate * time.as_secs_f64()).round() as u64;
    let due = |number: u64, elapsed: Duration| {
        (number < wanted && elapsed < time + LATE).then(|| Duration::from_secs_f64(number as f64 / rate))
    };
    let (mut outcome, sent) = send(target, load, time, &due);
    outcome.errors.time_out += wanted - sent;
    outcome
}

/// Sends requests while `due` says when the next is due: it gets the request's number, and the time since the beginning. Returns also the
/// number of requests that were sent.
fn send(
    target: &Target,
    load: &Load,
    time: Duration,
    due: &(dyn Fn(u64, Duration) -> Option<Duration> + Sync),
) -> (Outcome, u64) {
    let bytes: Vec<Vec<u8>> =
        target.requests.iter().map(|request| wire(request, target.host, load.keep_alive)).collect();
    let (begun, next) = (Instant::now(), AtomicU64::new(0));
    let sender = || {
        let (mut counted, mut connection) = (Counted::default(), None);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(due) = due(number, begun.elapsed()) else { break };
            #[expect(clippy::disallowed_methods, reason = "a rate is made of times, not of conditions")]
            thread::sleep((begun + due).saturating_duration_since(Instant::now()));
            if interrupt::came() {
                break;
            }
            let index = (number % bytes.len() as u64) as usize;
            let request = &target.requests[index];
            let answer = ask(&mut connection, target, &bytes[index], request.method == "HEAD");
            counted.sent += 1;
            if answer.is_ok() {
                counted.latencies_us.push((begun + due).elapsed().as_micros() as u64);
            }
            counted.errors = counted.errors.plus(&error(&answer, request.status));
        }
        counted.cpu_us = thread_cpu_us();
        counted
    };
    let all = thread::scope(|scope| {
        let start = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, sender).ok();
        // Fewer threads than wanted make requests wait, which their latencies show.
        let senders: Vec<_> = (0..load.connections).map_while(start).collect();
        let all = senders.into_iter().map(|sender| sender.join().expect("a sender does not panic"));
        all.fold(Counted::default(), Counted::and)
    });
    let sent = all.sent;
    (all.outcome(begun.elapsed().max(time)), sent)
}

/// What a thread counted, or several.
#[derive(Default)]
struct Counted {
    sent: u64,
    latencies_us: Vec<u64>,
    errors: Errors,
    cpu_us: f64,
}

impl Counted {
    fn and(mut self, other: Counted) -> Counted {
        self.latencies_us.extend(other.latencies_us);
        Counted {
            sent: self.sent + other.sent,
            latencies_us: self.latencies_us,
            errors: self.errors.plus(&other.errors),
            cpu_us: self.cpu_us + other.cpu_us,
        }
    }

    fn outcome(self, time: Duration) -> Outcome {
        let latencies = Latencies::measured(self.latencies_us);
        // To a generator, an answer that is cut off is a broken connection.
        let Errors { reset, length, .. } = self.errors;
        Outcome {
            requests: latencies.count(),
            requests_per_second: latencies.count() as f64 / time.as_secs_f64(),
            latency: latencies.summary(),
            errors: Errors { reset: reset + length, length: 0, ..self.errors },
            cpu_us: self.cpu_us,
        }
    }
}

/// CPU time of this thread.
fn thread_cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
