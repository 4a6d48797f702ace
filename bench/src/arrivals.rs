//! Requests that arrive by a schedule, whatever comes back: at moments, and of kinds, that a seed decides.
//!
//! No generator sends the same arrivals twice, and without that the luck of who meets how many long requests
//! at a time would decide between two servers. At the few hundred requests per second that this is for, a thread for
//! each request that is under way is all the machinery it needs.

use crate::load::connection::{ask, error, wire};
use crate::load::latencies::Latencies;
use crate::load::Target;
use crate::results::{Errors, Latency};
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most requests under way; another arrival waits, and its latency counts from then.
const UNDER_WAY: usize = 256;
/// The stack of a thread that sends one request at a time.
const STACK_BYTES: usize = 256 * 1024;

/// A request that arrives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrival {
    /// After the beginning.
    at: Duration,
    /// Which of the workload's requests.
    request: usize,
}

/// Arrivals at this rate (per second) on average, each independent of the others (a Poisson process), each of them one
/// of `requests` requests.
pub(crate) fn schedule(rate: f64, time: Duration, requests: usize, seed: u64) -> Vec<Arrival> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut at = 0.0;
    let mut arrivals = Vec::new();
    loop {
        at += -(1.0 - random.f64()).ln() / rate;
        if at >= time.as_secs_f64() {
            return arrivals;
        }
        arrivals.push(Arrival { at: Duration::from_secs_f64(at), request: random.usize(..requests) });
    }
}

/// What came of all arrivals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrived {
    /// Times from the arrival of a request to the end of its answer, of requests that are not long by nature.
    pub(crate) short: Latency,
    /// The same, of requests that are long by nature.
    pub(crate) long: Latency,
    pub(crate) answered: u64,
    pub(crate) errors: Errors,
}

/// Sends them when they are due; ends early when `stopped` says so.
pub(crate) fn send(target: &Target<'_>, arrivals: &[Arrival], stopped: &dyn Fn() -> bool) -> Arrived {
    let (due, waiting) = sync_channel::<(usize, Instant)>(arrivals.len().max(1));
    let waiting = Mutex::new(waiting);
    let sent: Vec<Sent> = std::thread::scope(|scope| {
        let sender = |_| {
            let send = || send_what_is_due(target, &waiting);
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, send)
        };
        // Fewer threads than wanted make requests wait, which their latency shows.
        let senders: Vec<_> =
            (0..UNDER_WAY.min(arrivals.len())).map_while(|number| sender(number).ok()).collect();
        let begun = Instant::now();
        for arrival in arrivals {
            if stopped() {
                break;
            }
            let at = begun + arrival.at;
            #[expect(clippy::disallowed_methods, reason = "a schedule is made of times, not of conditions")]
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if due.send((arrival.request, at)).is_err() {
                break;
            }
        }
        drop(due);
        senders.into_iter().flat_map(|sender| sender.join().expect("a sender does not panic")).collect()
    });
    sum_up(target, &sent)
}

/// A request that was sent.
struct Sent {
    request: usize,
    us: u64,
    error: Errors,
}

fn send_what_is_due(target: &Target<'_>, due: &Mutex<Receiver<(usize, Instant)>>) -> Vec<Sent> {
    let next = || due.lock().unwrap_or_else(PoisonError::into_inner).recv();
    let mut connection = None;
    let mut sent = Vec::new();
    while let Ok((index, at)) = next() {
        let request = &target.requests[index];
        let bytes = wire(request, target.host, true);
        let result = ask(&mut connection, target, &bytes, request.method == "HEAD");
        let us = at.elapsed().as_micros() as u64;
        sent.push(Sent { request: index, us, error: error(&result, request.status) });
    }
    sent
}

fn sum_up(target: &Target<'_>, sent: &[Sent]) -> Arrived {
    let latency = |counts: &dyn Fn(&Sent) -> bool| {
        let these = sent.iter().filter(|one| counts(one));
        Latencies::measured(these.map(|one| one.us).collect()).summary()
    };
    let is_long = |one: &Sent| target.requests[one.request].long;
    let errors = sent.iter().fold(Errors::default(), |sum, one| sum.plus(&one.error));
    Arrived {
        short: latency(&|one| !is_long(one)),
        long: latency(&is_long),
        answered: sent.len() as u64 - errors.total(),
        errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_arrivals_again_and_another_seed_others() {
        let of = |seed| schedule(200.0, Duration::from_secs(30), 100, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn arrivals_are_as_many_and_as_irregular_as_chance_makes_them() {
        let arrivals = schedule(1000.0, Duration::from_secs(100), 4, 7);
        let count = arrivals.len() as f64;
        assert!((count - 100_000.0).abs() < 2_000.0, "{count}");
        let gaps: Vec<f64> =
            arrivals.windows(2).map(|two| (two[1].at - two[0].at).as_secs_f64() * 1e3).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((deviation / mean - 1.0).abs() < 0.05, "mean {mean} ms, deviation {deviation} ms");
        let first = arrivals.iter().filter(|arrival| arrival.request == 0).count() as f64;
        assert!((first / count - 0.25).abs() < 0.01);
    }
}
