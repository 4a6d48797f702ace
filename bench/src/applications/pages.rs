//! Whether all servers serve the same pages: each is asked once before the load, and must have the workload's status and marker, and
//! the length that other servers' pages have.

use std::time::Duration;

use crate::load::connection::{wire, Connection};
use crate::load::Target;
use crate::workload::Request;
use crate::{interrupt, Failure};

/// Clients at a time.
const CLIENTS: usize = 4;
/// How long a page may take.
const TIME_OUT: Duration = Duration::from_secs(30);
/// Pages that say how long ago something was differ by some bytes.
const TOLERANCE: f64 = 0.02;

/// Whether two lengths can be those of the same page.
pub(super) fn are_alike(one: u64, other: u64) -> bool {
    one.abs_diff(other) as f64 <= TOLERANCE * one.max(other) as f64
}

/// Asks for every page once, and returns the length of each.
///
/// # Errors
/// A page is not as the workload has it, or not as long as `known`, what another server has served.
pub(super) fn read(target: &Target, known: Option<&[u64]>) -> Result<Vec<u64>, Failure> {
    let part = target.requests.len().div_ceil(CLIENTS);
    let read = |first: usize| {
        let indices = first..(first + part).min(target.requests.len());
        indices.map(|index| read_one(target, index, known)).collect::<Result<Vec<u64>, Failure>>()
    };
    let parts: Vec<Result<Vec<u64>, Failure>> = std::thread::scope(|scope| {
        let firsts = (0..target.requests.len()).step_by(part);
        let clients: Vec<_> = firsts.map(|first| scope.spawn(move || read(first))).collect();
        clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect()
    });
    Ok(parts.into_iter().collect::<Result<Vec<Vec<u64>>, Failure>>()?.concat())
}

fn read_one(target: &Target, index: usize, known: Option<&[u64]>) -> Result<u64, Failure> {
    if interrupt::came() {
        return Err(interrupt::failure());
    }
    let request = &target.requests[index];
    let answer = Connection::open_for(target.address, target.protocol, TIME_OUT)
        .and_then(|connection| connection.ask_all(&wire(request, target.host, true)));
    let (status, body) =
        answer.map_err(|why| Failure(format!("{} has no whole answer ({why:?})", request.path)))?;
    let length = known.and_then(|known| known.get(index)).copied();
    check(request, status, &body, length).map_err(|why| Failure(format!("{}: {why}", request.path)))?;
    Ok(body.len() as u64)
}

fn check(request: &Request, status: u16, body: &[u8], known: Option<u64>) -> Result<(), String> {
    if status != request.status {
        return Err(format!("the status is {status}"));
    }
    let length = body.len() as u64;
    if request.bytes.is_some_and(|bytes| bytes != length) {
        return Err(format!("it has {length} bytes"));
    }
    if let Some(marker) = &request.marker {
        if !String::from_utf8_lossy(body).contains(marker.as_str()) {
            return Err(format!("it does not contain {marker:?}"));
        }
    }
    match known {
        Some(bytes) if !are_alike(bytes, length) => {
            Err(format!("it has {length} bytes, and {bytes} by the server that was measured first"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_status_marker_and_length() {
        let request = Request { marker: Some("Journey".into()), ..Request::default() };
        let page = b"<h1>Journey 1</h1>";
        assert_eq!(check(&request, 200, page, None), Ok(()));
        assert_eq!(check(&request, 200, page, Some(18)), Ok(()));
        let why = |status, body: &[u8], known| check(&request, status, body, known).unwrap_err();
        assert_eq!(why(500, page, None), "the status is 500");
        assert_eq!(why(200, b"Welcome", None), "it does not contain \"Journey\"");
        assert!(why(200, page, Some(20)).contains("18 bytes, and 20"));
        let exact = Request { bytes: Some(17), ..request.clone() };
        assert_eq!(check(&exact, 200, page, None).unwrap_err(), "it has 18 bytes");
    }
}
