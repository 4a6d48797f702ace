//! Whether the ruler measures what is there: servers and programs whose figures are known, measured by it.
//!
//! Figures of time depend on who else uses the machine. A measurement that is off is made again, a few times: noise
//! differs from time to time, and a wrong ruler is wrong every time. `bin/test rulers` runs what measures, alone.

mod programs;
mod server;

use highball_bench::check::{check, ends_by_closing};
use highball_bench::load::{at_rate, generator, saturate, Outcome, Target};
use highball_bench::process_tree::ProcessTree;
use highball_bench::results::{Errors, Latency, Load};
use highball_bench::socket::Protocol;
use highball_bench::workload::Request;
use highball_bench::{system_calls, Failure};
use programs::Program;
use server::{Reaction, Server, HELLO};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const ATTEMPTS: u32 = 10;

/// One test at a time: they would be one another's noise.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One at a time; `None`, with the reason printed, where no load can be sent by wrk.
fn alone_with_wrk() -> Option<MutexGuard<'static, ()>> {
    generator().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
    Some(alone())
}

/// Passes when one of a few attempts does.
fn in_one_of_some_attempts(mut attempt: impl FnMut() -> Result<(), String>) {
    for number in 1..=ATTEMPTS {
        match attempt() {
            Ok(()) => return,
            Err(off) => eprintln!("attempt {number} of {ATTEMPTS}: {off}"),
        }
    }
    panic!("off in each of {ATTEMPTS} attempts");
}

/// Whether a figure is as far as this from the truth at most (0.05: 5 %).
fn near(name: &str, measured: f64, truth: f64, share: f64) -> Result<(), String> {
    eprintln!("{name}: {measured:.3}, in truth {truth:.3}");
    if (measured - truth).abs() <= share * truth {
        Ok(())
    } else {
        Err(format!("{name} is off"))
    }
}

fn request(method: &str) -> Request {
    Request { method: method.into(), ..Request::default() }
}

fn target(address: SocketAddr, requests: &[Request]) -> Target<'_> {
    Target { address, protocol: Protocol::Http, host: "localhost", requests, ends_by_closing: false }
}

/// Closed loop.
fn saturated(address: SocketAddr, connections: u32, method: &str, seconds: u64) -> Outcome {
    let load = Load { connections, rate: None, keep_alive: true };
    let requests = [request(method)];
    let target = target(address, &requests);
    let target = Target { ends_by_closing: ends_by_closing(&target), ..target };
    saturate(&target, &load, Duration::from_secs(seconds)).expect("wrk runs")
}

/// Open loop.
fn offered(address: SocketAddr, connections: u32, rate: f64, seconds: u64) -> Outcome {
    let load = Load { connections, rate: Some(rate), keep_alive: true };
    let requests = [request("GET")];
    let target = target(address, &requests);
    at_rate(&target, &load, Duration::from_secs(seconds)).expect("a rate can be sent")
}

/// Sends a request many times and compares the answers.
fn checked(react: impl Fn(u64) -> Reaction + Send + Sync + 'static) -> Errors {
    let server = Server::start(react);
    let requests = [request("GET")];
    let target = target(server.address, &requests);
    check(&target, 1000, Duration::from_secs(30)).expect("the server listens")
}

#[allow(clippy::disallowed_methods)] // taking its time is what such a server is for
fn take(time: Duration) {
    std::thread::sleep(time);
}

/// 85 of 100 requests take 5 ms, 12 take 20 ms, 3 take 60 ms, in an order that repeats and is not sorted.
fn server_with_known_delays() -> Server {
    Server::start(|number| {
        let ms = match (number * 37) % 100 {
            0..85 => 5,
            85..97 => 20,
            _ => 60,
        };
        take(Duration::from_millis(ms));
        HELLO
    })
}

/// Compares with the delays that the server itself measured: what its sleep overshoots is no fault of the ruler.
fn percentiles_are_true(latency: &Latency, server: &Server) -> Result<(), String> {
    let delays = server.take_delays();
    let truth = |share: f64| delays[(delays.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    near("p50", latency.p50, truth(0.5), 0.05)?;
    near("p90", latency.p90, truth(0.9), 0.05)?;
    near("p99", latency.p99, truth(0.99), 0.05)?;
    near("p99.9", latency.p999, truth(0.999), 0.05)?;
    let mean = delays.iter().map(Duration::as_secs_f64).sum::<f64>() / delays.len() as f64 * 1e3;
    let squares = delays.iter().map(|delay| (delay.as_secs_f64() * 1e3 - mean).powi(2)).sum::<f64>();
    near("mean", latency.mean, mean, 0.05)?;
    near("deviation", latency.deviation, (squares / delays.len() as f64).sqrt(), 0.05)
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn percentiles_of_the_closed_loop_are_true() {
    let Some(_alone) = alone_with_wrk() else { return };
    let server = server_with_known_delays();
    in_one_of_some_attempts(|| {
        server.take_delays();
        percentiles_are_true(&saturated(server.address, 8, "GET", 2).latency, &server)
    });
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn percentiles_of_the_open_loop_are_true() {
    let _alone = alone();
    let server = server_with_known_delays();
    in_one_of_some_attempts(|| {
        server.take_delays();
        let outcome = offered(server.address, 50, 500.0, 2);
        near("requests", outcome.requests as f64, 1000.0, 0.01)?;
        percentiles_are_true(&outcome.latency, &server)
    });
}

/// wrk sends `GET`, and the benchmark's own client `HEAD`.
#[test]
#[ignore = "measures: bin/test rulers"]
fn wrk_and_our_client_agree() {
    let Some(_alone) = alone_with_wrk() else { return };
    let server = server_with_known_delays();
    in_one_of_some_attempts(|| {
        let (wrk, ours) = (saturated(server.address, 8, "GET", 2), saturated(server.address, 8, "HEAD", 2));
        near("requests/s", ours.requests_per_second, wrk.requests_per_second, 0.05)?;
        near("p50", ours.latency.p50, wrk.latency.p50, 0.05)?;
        near("p90", ours.latency.p90, wrk.latency.p90, 0.05)?;
        near("p99", ours.latency.p99, wrk.latency.p99, 0.05)
    });
}

/// No request is answered for a second, from the 300th on.
fn server_that_stalls_once() -> Server {
    let until = Mutex::new(None);
    Server::start(move |number| {
        if number == 300 {
            *until.lock().expect("no thread panics") = Some(Instant::now() + Duration::from_secs(1));
        }
        let until: Option<Instant> = *until.lock().expect("no thread panics");
        take(Duration::from_millis(2));
        take(until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now())));
        HELLO
    })
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn a_stall_shows_in_the_open_loop_and_hides_in_the_closed_one() {
    let Some(_alone) = alone_with_wrk() else { return };
    // 200 of 1,000 requests are due while it stalls, and wait half a second on average.
    in_one_of_some_attempts(|| {
        let open = offered(server_that_stalls_once().address, 20, 200.0, 5);
        near("p90 of the open loop", open.latency.p90, 500.0, 0.2)?;
        near("p99 of the open loop", open.latency.p99, 950.0, 0.1)?;
        near("mean of the open loop", open.latency.mean, 102.0, 0.2)
    });
    // It asks 8 times in that second.
    in_one_of_some_attempts(|| {
        let closed = saturated(server_that_stalls_once().address, 8, "GET", 3).latency;
        near("max of the closed loop", closed.max, 1000.0, 0.05)?;
        if closed.p99 > 50.0 {
            Err(format!("p99 is {} ms", closed.p99))
        } else {
            Ok(())
        }
    });
}

/// `other` for one request in a hundred.
fn mostly(other: Reaction) -> impl Fn(u64) -> Reaction + Send + Sync + 'static {
    move |number| if number % 100 == 50 { other } else { HELLO }
}

#[test]
fn wrong_answers_are_counted_by_kind() {
    let _alone = alone();
    let none = Errors::default();
    let began = Instant::now();
    assert_eq!(checked(|_| HELLO), none);
    eprintln!("1,000 requests took {:?}", began.elapsed());
    assert_eq!(checked(mostly(Reaction::Answer(200, "hello, w0rld"))), Errors { content: 10, ..none });
    assert_eq!(checked(mostly(Reaction::Answer(200, "hello, worl"))), Errors { length: 10, ..none });
    assert_eq!(checked(mostly(Reaction::Cut("hello", 12))), Errors { length: 10, ..none });
    assert_eq!(checked(mostly(Reaction::Surplus("hello, world", "!"))), Errors { length: 10, ..none });
    assert_eq!(checked(mostly(Reaction::Answer(500, "sorry"))), Errors { status: 10, ..none });
    assert_eq!(checked(mostly(Reaction::Drop)), Errors { reset: 10, ..none });
    assert_eq!(checked(mostly(Reaction::Reset)), Errors { reset: 10, ..none });
}

#[test]
fn pages_that_are_dynamic_are_not_wrong() {
    let _alone = alone();
    let pages = ["one", "two", "three", "four", "five"];
    let errors = checked(move |number| Reaction::Answer(200, pages[(number * 7 % 5) as usize]));
    assert_eq!(errors, Errors::default());
}

/// Bound and not listening: as long as the socket is there, no other program gets the port, and no client gets it as
/// the port to connect from, which would connect it to the client.
fn address_that_refuses() -> (OwnedFd, SocketAddr) {
    let (family, kind) = (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM);
    let socket = rustix::net::socket(family, kind, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

#[test]
fn refused_connections_are_a_failure() {
    let _alone = alone();
    let (_socket, address) = address_that_refuses();
    let requests = [request("GET")];
    let target = target(address, &requests);
    let words = check(&target, 1, Duration::from_secs(30)).map(|_| ()).unwrap_err().to_string();
    assert!(words.contains(&address.to_string()), "{words}");
}

/// Whether errors of this kind, and no others, are such a part of the requests.
fn errors_are(outcome: &Outcome, truth: f64, kind: fn(&Errors) -> u64) -> Result<(), String> {
    let share = kind(&outcome.errors) as f64 / outcome.requests as f64;
    let others = outcome.errors.total() - kind(&outcome.errors);
    if (share - truth).abs() <= truth / 2.0 && others == 0 {
        Ok(())
    } else {
        Err(format!("{outcome:?}"))
    }
}

/// By wrk, and by the benchmark's own client.
fn errors_of_both_are(reaction: Reaction, truth: f64, kind: fn(&Errors) -> u64) {
    in_one_of_some_attempts(|| {
        let server = Server::start(move |number| {
            take(Duration::from_micros(500)); // as many requests as a second of the open loop has, or a few times that
            mostly(reaction)(number)
        });
        errors_are(&saturated(server.address, 4, "GET", 1), truth, kind)?;
        errors_are(&offered(server.address, 10, 1000.0, 1), truth, kind)
    });
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn errors_are_counted_by_kind() {
    let Some(_alone) = alone_with_wrk() else { return };
    errors_of_both_are(HELLO, 0.0, Errors::total);
    errors_of_both_are(Reaction::Answer(500, "sorry"), 0.01, |errors| errors.status);
    errors_of_both_are(Reaction::Drop, 0.01, |errors| errors.reset);
    errors_of_both_are(Reaction::Reset, 0.01, |errors| errors.reset);
    errors_of_both_are(Reaction::Cut("hello", 12), 0.01, |errors| errors.reset);
}

/// As Thin and Unicorn end what has no length.
#[test]
#[ignore = "measures: bin/test rulers"]
fn answers_that_end_with_their_connection_are_whole() {
    let Some(_alone) = alone_with_wrk() else { return };
    assert_eq!(checked(|_| Reaction::Closed("hello, world")), Errors::default());
    in_one_of_some_attempts(|| {
        let server = Server::start(|_| Reaction::Closed("hello, world"));
        errors_are(&saturated(server.address, 4, "GET", 1), 0.0, Errors::total)?;
        errors_are(&offered(server.address, 10, 100.0, 1), 0.0, Errors::total)
    });
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn connections_that_are_refused_are_errors() {
    let _alone = alone();
    let (_socket, address) = address_that_refuses();
    let outcome = offered(address, 5, 100.0, 1);
    assert_eq!(outcome.requests, 0);
    assert!(outcome.errors.connect > 50, "{outcome:?}");
    assert_eq!(outcome.errors.total(), outcome.errors.connect);
}

/// Several kinds of request, bodies among them.
#[test]
#[ignore = "measures: bin/test rulers"]
fn requests_are_sent_as_they_are_given() {
    let Some(_alone) = alone_with_wrk() else { return };
    let server = Server::start(|_| HELLO);
    let upload = Request { body_bytes: 100_000, ..request("POST") };
    let requests = [request("GET"), upload, Request { path: "/\"a\\b".into(), ..request("GET") }];
    let target = target(server.address, &requests);
    for keep_alive in [true, false] {
        let load = Load { connections: 6, rate: None, keep_alive };
        let closed = saturate(&target, &load, Duration::from_secs(1)).expect("wrk runs");
        assert_eq!(closed.errors, Errors::default());
        assert!(closed.requests > 500, "{closed:?}");
        let load = Load { rate: Some(300.0), ..load };
        let open = at_rate(&target, &load, Duration::from_secs(1)).expect("a rate can be sent");
        assert_eq!(open.errors, Errors::default());
        assert!(open.requests > 200, "{open:?}");
    }
    assert_eq!(check(&target, 100, Duration::from_secs(30)).expect("it listens"), Errors::default());
}

/// CPU time per request, in µs: user and system.
fn cpu_per_request(burn_us: u64, keep_alive: bool) -> (f64, f64) {
    let mut program = Program::burning(burn_us);
    let address = program.address();
    let tree = ProcessTree::new(&[program.pid()]);
    let requests = [request("GET")];
    let target = target(address, &requests);
    let load = Load { connections: 4, rate: None, keep_alive };
    let before = tree.cpu();
    let outcome = saturate(&target, &load, Duration::from_secs(2)).expect("wrk runs");
    let (user, system) = tree.cpu().since(&before);
    assert_eq!(outcome.errors, Errors::default());
    (user / outcome.requests as f64, system / outcome.requests as f64)
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn cpu_time_per_request_is_true() {
    let Some(_alone) = alone_with_wrk() else { return };
    in_one_of_some_attempts(|| {
        let (user, system) = cpu_per_request(200, true);
        near("µs per request", user + system, 200.0, 0.05)
    });
}

/// A thread for each connection begins and ends between both looks at the clocks. It burns so much that what the kernel
/// takes to start and end a thread, which is not in the known amount, is a small part of it.
#[test]
#[ignore = "measures: bin/test rulers"]
fn cpu_time_of_threads_that_come_and_go_is_true() {
    let Some(_alone) = alone_with_wrk() else { return };
    in_one_of_some_attempts(|| {
        let (user, system) = cpu_per_request(20_000, false);
        near("µs per request", user + system, 20_000.0, 0.05)
    });
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn memory_is_true() {
    let _alone = alone();
    let used = |mib| {
        let mut program = Program::dirtying(mib);
        program.ready();
        ProcessTree::new(&[program.pid()]).memory()
    };
    let (without, with) = (used(0), used(50));
    let grown = |figure: f64, truth: f64| (figure - 50.0).abs() <= 0.02 * truth;
    assert!(grown(with.private_dirty_mib - without.private_dirty_mib, 50.0), "{without:?} {with:?}");
    assert!(grown(with.pss_mib - without.pss_mib, 50.0), "{without:?} {with:?}");
    assert_eq!((with.processes, with.ring_mib), (1, 0.0));
}

#[test]
#[ignore = "measures: bin/test rulers"]
fn system_calls_are_true() {
    let Some(_alone) = alone_with_wrk() else { return };
    let mut program = Program::burning(0);
    let address = program.address();
    in_one_of_some_attempts(|| {
        // Those threads have to be there that serve while it counts, or to be their children.
        let mut requests = 0;
        let load = || {
            let outcome = saturated(address, 4, "GET", 1);
            requests = outcome.requests;
            Ok::<_, Failure>(outcome)
        };
        let Some(calls) = system_calls::count(&[program.pid()], load).expect("perf ends") else {
            eprintln!("skipped: perf is missing, or may not count (apt-get install linux-perf; root)");
            return Ok(());
        };
        // One to read, one to write. Where its threads wait for one another, they call the kernel as well.
        let per_request = calls as f64 / requests as f64;
        if (2.0..2.1).contains(&per_request) {
            Ok(())
        } else {
            Err(format!("{per_request} calls per request"))
        }
    });
}

#[test]
fn a_program_when_it_is_asked_to_be_one() {
    programs::be_one();
}
