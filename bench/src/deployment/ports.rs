//! Ports of a deployment's own.

use crate::Failure;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};

/// Where the kernel says which ports it gives to outgoing connections.
const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const USUAL_FIRST: u16 = 32768;
/// Below that are ports of well-known services.
const LEAST: u16 = 10240;

/// Free ports of 127.0.0.1.
///
/// They are taken from below the range of outgoing connections: a load generator uses up that range, and leaves most of
/// it in TIME_WAIT for a minute, so that a port found free there may be gone when the server binds it.
///
/// # Errors
/// There are too few.
pub(super) fn free(count: usize) -> Result<Vec<u16>, Failure> {
    let outgoing =
        fs::read_to_string(RANGE).ok().and_then(|range| range.split_whitespace().next()?.parse().ok());
    let end = outgoing.filter(|first| *first > LEAST).unwrap_or(USUAL_FIRST);
    // Another benchmark on this machine begins somewhere else.
    let somewhere = LEAST + (RandomState::new().build_hasher().finish() % u64::from(end - LEAST)) as u16;
    let candidates = (somewhere..end).chain(LEAST..somewhere);
    // All are held until all are found, so that none is found twice.
    let found =
        candidates.filter_map(|port| Some((TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?, port)));
    let held: Vec<(TcpListener, u16)> = found.take(count).collect();
    match held.len() == count {
        true => Ok(held.into_iter().map(|(_, port)| port).collect()),
        false => {
            Err(Failure(format!("{count} free ports are needed on 127.0.0.1; there are {}", held.len())))
        }
    }
}
