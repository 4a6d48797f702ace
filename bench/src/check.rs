//! Whether the answers are right, which no load generator looks at.
//!
//! Each request is sent many times, and all answers to it are compared: a server that mixes up, cuts off or damages
//! one answer in a hundred is found out.

use crate::load::connection::{ask, error, wire, Answer, Body, Broken, Connection, Rest};
use crate::load::Target;
use crate::results::Errors;
use crate::{interrupt, Failure};
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Connections at a time.
const CONNECTIONS: usize = 4;

/// Timeouts or failures to connect after which a connection's thread gives up: the server hangs.
const PATIENCE: u32 = 3;

/// Sends every request `times` times over a few keep-alive connections, and counts the errors. It begins no other
/// request after `at_most`.
///
/// - `status`: another one than the workload expects, or no HTTP at all.
/// - `length`: the body is shorter or longer than its head says, or than it is in most answers.
/// - `content`: the length of most answers and other bytes.
///
/// Answers are only compared where they tend to be the same: where no body makes up half of them, the page is
/// dynamic by nature. Nor is a body wrong that is never seen both before and after another: pages that show the time
/// change like that.
///
/// # Errors
/// There is nothing to send, or no server listens.
pub fn check(target: &Target, times: u32, at_most: Duration) -> Result<Errors, Failure> {
    let total = target.requests.len() * times as usize;
    if total == 0 {
        return Err(Failure::new("there are no requests to check the answers to"));
    }
    if Connection::open(target.address, target.protocol).is_err() {
        return Err(Failure(format!("no server listens at {}", target.address)));
    }
    let until = Instant::now() + at_most;
    let mut errors = Errors::default();
    let mut whole: Vec<Vec<Seen>> = vec![Vec::new(); target.requests.len()];
    for Asked { request, sent, result, ended } in ask_together(target, 0..total, CONNECTIONS, until) {
        errors = errors.plus(&error(&result, target.requests[request].status));
        if let Ok(Answer { status, body, .. }) = result {
            if status == target.requests[request].status {
                whole[request].push(Seen { body, sent, ended });
            }
        }
    }
    Ok(whole.iter().fold(errors, |sum, answers| sum.plus(&differences(answers))))
}

/// Sends exactly these requests, counted through the workload's again and again, over this number of connections; what
/// fails is counted, what is not sent in time too, and bodies are not compared.
pub(crate) fn send_exactly(
    target: &Target,
    indices: Range<usize>,
    connections: usize,
    at_most: Duration,
) -> Errors {
    let wanted = indices.len() as u64;
    let asked = ask_together(target, indices, connections, Instant::now() + at_most);
    let error_of = |one: &Asked| error(&one.result, target.requests[one.request].status);
    let unasked = Errors { time_out: wanted - asked.len() as u64, ..Errors::default() };
    asked.iter().map(error_of).fold(unasked, |sum, error| sum.plus(&error))
}

/// Sends these requests over this number of connections at a time, until `until`.
fn ask_together(target: &Target, indices: Range<usize>, connections: usize, until: Instant) -> Vec<Asked> {
    std::thread::scope(|scope| {
        let ask = |first: usize| {
            let indices = indices.clone().skip(first).step_by(connections);
            scope.spawn(move || ask_all(target, indices, until))
        };
        let askers: Vec<_> = (0..connections).map(ask).collect();
        askers.into_iter().flat_map(|asker| asker.join().expect("an asker does not panic")).collect()
    })
}

/// Whether the server ends the body of its first answer by closing the connection, as some do for answers without a
/// length.
pub fn ends_by_closing(target: &Target) -> bool {
    let Some(request) = target.requests.first() else { return false };
    let answer = ask(&mut None, target, &wire(request, target.host, true), request.method == "HEAD");
    answer.is_ok_and(|answer| answer.ends_by_closing)
}

/// A request that was sent, by its index, and what came of it.
struct Asked {
    request: usize,
    sent: Instant,
    result: Result<Answer, Broken>,
    ended: Instant,
}

/// Asks these requests (counted through all rounds) over one connection where that lasts, until this time.
fn ask_all(target: &Target, indices: impl Iterator<Item = usize>, until: Instant) -> Vec<Asked> {
    let bytes: Vec<Vec<u8>> = target.requests.iter().map(|one| wire(one, target.host, true)).collect();
    let mut connection = None;
    let mut patience = PATIENCE;
    let mut asked = Vec::new();
    for index in indices {
        let request = index % bytes.len();
        let is_head = target.requests[request].method == "HEAD";
        let sent = Instant::now();
        let result = ask(&mut connection, target, &bytes[request], is_head);
        if matches!(result, Err(Broken::Connect | Broken::TimeOut)) {
            patience -= 1;
        }
        asked.push(Asked { request, sent, result, ended: Instant::now() });
        if patience == 0 || Instant::now() >= until || interrupt::came() {
            break;
        }
    }
    // No request follows the last answer that would find what is behind it.
    let is_surplus = connection.is_some_and(|mut connection: Connection| connection.rest() == Rest::Surplus);
    if let Some(last) = asked.last_mut().filter(|_| is_surplus) {
        last.result = Err(Broken::Length);
    }
    asked
}

/// A body that came whole, and when.
#[derive(Clone, Copy)]
struct Seen {
    body: Body,
    sent: Instant,
    ended: Instant,
}

/// Answers to one request that are unlike most of them.
fn differences(answers: &[Seen]) -> Errors {
    let mut counts: HashMap<Body, usize> = HashMap::new();
    for answer in answers {
        *counts.entry(answer.body).or_default() += 1;
    }
    let usual = counts.into_iter().max_by_key(|&(_, count)| count);
    let Some((usual, _)) = usual.filter(|&(_, count)| 2 * count >= answers.len()) else {
        return Errors::default();
    };
    let of_usual = || answers.iter().filter(|answer| answer.body == usual);
    let (first_end, last_start) =
        (of_usual().map(|answer| answer.ended).min(), of_usual().map(|answer| answer.sent).max());
    let is_amid = |answer: &Seen| Some(answer.sent) > first_end && Some(answer.ended) < last_start;

    let mut errors = Errors::default();
    for answer in answers.iter().filter(|answer| answer.body != usual && is_amid(answer)) {
        if answer.body.bytes == usual.bytes {
            errors.content += 1;
        } else {
            errors.length += 1;
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies by length and hash, one after the other.
    fn seen(bodies: &[(u64, u64)]) -> Vec<Seen> {
        let start = Instant::now();
        let at = |index: usize| start + Duration::from_millis(index as u64);
        let one = |(index, &(bytes, hash)): (usize, &(u64, u64))| Seen {
            body: Body { bytes, hash },
            sent: at(2 * index),
            ended: at(2 * index + 1),
        };
        bodies.iter().enumerate().map(one).collect()
    }

    #[test]
    fn what_differs_from_most_is_wrong() {
        let errors = differences(&seen(&[(5, 1), (5, 1), (5, 2), (5, 1), (4, 3), (5, 1), (5, 1)]));
        assert_eq!(errors, Errors { content: 1, length: 1, ..Errors::default() });
    }

    #[test]
    fn pages_that_change_are_not_wrong() {
        assert_eq!(differences(&seen(&[(5, 1), (5, 2), (5, 3), (6, 4), (5, 1)])), Errors::default());
        assert_eq!(differences(&seen(&[(5, 1), (5, 2), (5, 2), (5, 2), (5, 3)])), Errors::default());
    }
}
