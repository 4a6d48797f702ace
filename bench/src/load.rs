//! The load: well-kept generators send what they can, and this reads what they counted.
//!
//! In reading order: `request` (what goes over the wire), `wrk` (saturation), `h2load` (the same over HTTP/2), `sender` (a given
//! rate, and what wrk cannot send) over `connection` (a client), `latencies` (mean, deviation and percentiles of all measurements, by
//! one definition), `generator` (a generator that runs, for a limited time).

pub(crate) mod connection;
mod generator;
pub(crate) mod h2load;
pub(crate) mod latencies;
pub(crate) mod request;
mod sender;
mod wrk;

use crate::results::{Errors, Latency, Load};
use crate::socket::Protocol;
use crate::{workload, Failure};
use std::net::SocketAddr;
use std::time::Duration;

/// A request without an answer for this time has timed out.
const TIME_OUT: Duration = Duration::from_secs(10);

/// Debian packages of what they need, and of what counts system calls.
pub(crate) const PACKAGES: [&str; 3] = ["linux-perf", "nghttp2-client", "wrk"];

/// The server, and the requests to it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Where clients connect to.
    pub address: SocketAddr,
    /// What they speak there.
    pub protocol: Protocol,
    /// What they send as `Host`.
    pub host: &'a str,
    /// What they ask for; at least one.
    pub requests: &'a [workload::Request],
    /// It ends an answer's body by closing the connection, as [`crate::check::ends_by_closing`] finds out.
    pub ends_by_closing: bool,
}

/// What a generator counted.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Requests that were answered, with whatever status.
    pub requests: u64,
    /// The same per second.
    pub requests_per_second: f64,
    /// From the sending of a request (at a given rate: from when it was due) to the end of its answer.
    pub latency: Latency,
    /// What failed, as far as the generator tells. `length` and `content` are for [`crate::check::check`].
    pub errors: Errors,
    /// CPU time of the generator itself, in µs.
    pub cpu_us: f64,
}

/// Sends as many requests as the connections carry: each sends its next one when it has the answer to the last
/// (closed loop). Latencies are what such clients see: while a server stalls, they send no requests.
///
/// `time` is rounded up to whole seconds; `load.rate` is not looked at.
///
/// # Errors
/// The generator is missing, cannot reach the server, or fails.
pub fn saturate(target: &Target, load: &Load, time: Duration) -> Result<Outcome, Failure> {
    let load = Load { rate: None, ..*load };
    if target.protocol == Protocol::Http2 {
        return h2load::run(target, &load, time);
    }
    // wrk takes an answer that ends so for a broken connection.
    if wrk::can_send(target.requests) && !target.ends_by_closing {
        wrk::run(target, &load, time)
    } else {
        Ok(sender::saturate(target, &load, time))
    }
}

/// Sends requests at a rate, whatever comes back (open loop), over a limited number of connections. A request that
/// finds none of them free waits, and its latency counts from when it was due: a server that stalls for a second shows
/// it in all requests of that second.
///
/// # Errors
/// `load` has no rate, or the server speaks another protocol.
pub fn at_rate(target: &Target, load: &Load, time: Duration) -> Result<Outcome, Failure> {
    match load.rate {
        Some(_) if target.protocol != Protocol::Http => {
            Err(Failure::new("a given rate is sent over HTTP/1.1 without TLS, and no other way"))
        }
        Some(rate) if rate > 0.0 => Ok(sender::at_rate(target, load, rate, time)),
        _ => Err(Failure::new("an open-loop load needs a rate above 0 requests per second")),
    }
}

/// The generator of loads without a rate, and its version.
///
/// # Errors
/// It is missing; the words tell the command that brings it.
pub fn generator() -> Result<String, Failure> {
    wrk::version()
}
