//! What sends the load: as many requests as are wanted, by a number of clients at a time. As with `ab` in 2008, each request has a new
//! connection, and each client sends its next when it has the answer to the last.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::interrupt;
use crate::load::connection::{error, Answer, Broken, Connection};
use crate::load::latencies::Latencies;
use crate::load::{request, Target};
use crate::results::{Errors, Latency};

/// An answer, or a part of it, that takes longer does not come: as `ab` has it.
const TIME_OUT: Duration = Duration::from_secs(30);
/// The longest that a load may take. Requests that are not sent by then have failed.
const LONGEST: Duration = Duration::from_secs(1800);

/// What came of a load.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) elapsed: Duration,
    /// Of the requests that did not fail.
    latencies_us: Vec<u64>,
    pub(super) errors: Errors,
}

impl Outcome {
    /// What came of both.
    pub(super) fn and(mut self, other: Outcome) -> Outcome {
        self.latencies_us.extend(other.latencies_us);
        Outcome {
            elapsed: self.elapsed + other.elapsed,
            latencies_us: self.latencies_us,
            errors: self.errors.plus(&other.errors),
        }
    }

    /// Requests that did not fail.
    pub(super) fn answered(&self) -> u64 {
        self.latencies_us.len() as u64
    }

    pub(super) fn requests_per_second(&self) -> f64 {
        self.answered() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(super) fn latency(&self) -> Latency {
        Latencies::measured(self.latencies_us.clone()).summary()
    }
}

/// Sends these requests, counted through the target's again and again. `page_bytes` is how long their answers are.
pub(super) fn send(target: &Target, page_bytes: &[u64], indices: Range<usize>, clients: u32) -> Outcome {
    let begun = Instant::now();
    let wanted = indices.len() as u64;
    let next = AtomicUsize::new(indices.start);
    let ask = || {
        let mut outcomes = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= indices.end || begun.elapsed() > LONGEST || interrupt::came() {
                return outcomes;
            }
            outcomes.push(ask_one(target, page_bytes, index % target.requests.len()));
        }
    };
    let outcomes: Vec<Result<u64, Errors>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client does not panic")).collect()
    });
    let unsent = Errors { time_out: wanted - outcomes.len() as u64, ..Errors::default() };
    Outcome {
        elapsed: begun.elapsed(),
        latencies_us: outcomes.iter().filter_map(|outcome| outcome.ok()).collect(),
        errors: outcomes.iter().filter_map(|outcome| outcome.err()).fold(unsent, |sum, one| sum.plus(&one)),
    }
}

/// The latency of a request in µs, with that of its connection.
fn ask_one(target: &Target, page_bytes: &[u64], index: usize) -> Result<u64, Errors> {
    let wanted = &target.requests[index];
    let bytes = request::head(wanted, target.host, false).into_bytes();
    let sent = Instant::now();
    let answer: Result<Answer, Broken> = Connection::open_for(target.address, target.protocol, TIME_OUT)
        .and_then(|mut connection| connection.ask(&bytes, false))
        .map(|(answer, _)| answer);
    let us = sent.elapsed().as_micros() as u64;
    let failed = error(&answer, wanted.status);
    if failed.total() > 0 {
        return Err(failed);
    }
    let is_as_long = answer.is_ok_and(|answer| super::pages::are_alike(answer.body.bytes, page_bytes[index]));
    if is_as_long {
        Ok(us)
    } else {
        Err(Errors { length: 1, ..Errors::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Protocol;
    use crate::workload::Request;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Answers each request on a new connection: `/broken` by closing it, `/wrong` by 500, `/short` by another page.
    fn serve(listener: &TcpListener, requests: usize) {
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap();
            let head = String::from_utf8_lossy(&bytes[..length]).into_owned();
            assert!(head.contains("Connection: close\r\n"), "{head}");
            let answer = match head.split(' ').nth(1).unwrap() {
                "/broken" => continue,
                "/wrong" => "HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\npage",
                "/short" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\npa",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage",
            };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    }

    #[test]
    fn every_request_is_an_answer_or_has_failed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let requests = ["/", "/broken", "/wrong", "/short"]
            .map(|path| Request { path: path.into(), ..Request::default() });
        let target = Target {
            address: listener.local_addr().unwrap(),
            protocol: Protocol::Http,
            host: "127.0.0.1",
            requests: &requests,
            ends_by_closing: false,
        };
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, 18));
            let first = send(&target, &[4; 4], 2..10, 3);
            first.and(send(&target, &[4; 4], 0..10, 3))
        });
        assert_eq!(outcome.answered(), 5);
        let errors = Errors { reset: 5, status: 4, length: 4, ..Errors::default() };
        assert_eq!(outcome.errors, errors);
        assert!(outcome.latency().max > 0.0);
    }
}
