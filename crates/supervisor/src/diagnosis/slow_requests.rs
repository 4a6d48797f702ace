//! The last slow requests of an application, and where their time went: what its workers report, in bounds. A worker may say
//! anything.

use crate::control::message::{SlowPart, SlowRequest};
use highball_link::{SlowPartReport, SlowRequestReport};
use highball_secrets::path_without_tokens;
use highball_text::visible;
use std::collections::VecDeque;
use std::time::Instant;

/// Requests that are kept.
const MOST: usize = 50;
/// The same in bytes of their texts.
const MOST_BYTES: usize = 64 * 1024;
/// Parts of one request.
const PARTS: usize = 5;
/// Limits on texts, in characters.
const REQUEST_CHARACTERS: usize = 300;
const FILE_CHARACTERS: usize = 300;
const NAME_CHARACTERS: usize = 200;
/// The longest time that is believed, in milliseconds: a year.
const LONGEST_MS: u64 = 365 * 86_400_000;

/// The last slow requests, oldest first.
#[derive(Debug, Default)]
pub(crate) struct SlowRequests {
    kept: VecDeque<Kept>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    ticket: u64,
    at: Instant,
    bytes: usize,
    report: SlowRequestReport,
}

impl Kept {
    fn is_open(&self, worker: u32) -> bool {
        self.report.worker == worker && self.ticket != 0
    }
}

impl SlowRequests {
    /// A worker reports a request. Returns it when it has ended.
    pub(crate) fn add(
        &mut self,
        worker: u32,
        request: SlowRequest,
        now: Instant,
    ) -> Option<SlowRequestReport> {
        let (ticket, has_ended) = (request.ticket, request.ended);
        let mut report = report(worker, request);
        let earlier = self.kept.iter().position(|kept| kept.is_open(worker) && kept.ticket == ticket);
        if let Some(earlier) = earlier.and_then(|at| self.kept.remove(at)) {
            self.bytes -= earlier.bytes;
            if earlier.report.state == "timed_out" {
                report.state = earlier.report.state;
            }
        }
        let ended = has_ended.then(|| report.clone());
        let bytes = bytes_of(&report);
        self.bytes += bytes;
        // The worker uses the ticket again for another request.
        self.kept.push_back(Kept { ticket: if has_ended { 0 } else { ticket }, at: now, bytes, report });
        while self.kept.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.bytes;
        }
        ended
    }

    /// The front says that a request has exceeded its time limit.
    pub(crate) fn timed_out(&mut self, worker: u32, ticket: u64) {
        let its = self.kept.iter_mut().find(|kept| kept.is_open(worker) && kept.ticket == ticket);
        if let Some(kept) = its {
            kept.report.state = "timed_out".into();
        }
    }

    /// A worker has ended. Returns the requests that it was at.
    pub(crate) fn worker_ended(&mut self, worker: u32) -> Vec<SlowRequestReport> {
        let open = self.kept.iter_mut().filter(|kept| kept.is_open(worker));
        let end = |kept: &mut Kept| {
            kept.ticket = 0;
            if kept.report.state == "running" {
                kept.report.state = "died".into();
            }
            kept.report.clone()
        };
        open.map(end).collect()
    }

    /// The newest ones, oldest first: at most this number.
    pub(crate) fn last(&self, most: usize) -> Vec<SlowRequestReport> {
        let aged = |kept: &Kept| SlowRequestReport {
            seconds_ago: kept.at.elapsed().as_secs(),
            ..kept.report.clone()
        };
        self.kept.iter().skip(self.kept.len().saturating_sub(most)).map(aged).collect()
    }

    pub(crate) fn all(&self) -> Vec<SlowRequestReport> {
        self.last(MOST)
    }
}

fn report(worker: u32, request: SlowRequest) -> SlowRequestReport {
    let SlowRequest { request, ms, ended, samples, parts, other_ms, .. } = request;
    let (method, path) = request.split_once(' ').unwrap_or(("", &request));
    let path = path_without_tokens(path.split('?').next().unwrap_or_default());
    SlowRequestReport {
        worker,
        request: text(&format!("{method} {path}"), REQUEST_CHARACTERS),
        state: if ended { "ended" } else { "running" }.into(),
        seconds: seconds(ms),
        samples,
        parts: parts.into_iter().take(PARTS).map(part).collect(),
        other_seconds: seconds(other_ms),
        seconds_ago: 0,
    }
}

fn part(part: SlowPart) -> SlowPartReport {
    let SlowPart { ms, what, file, line, label, below } = part;
    SlowPartReport {
        seconds: seconds(ms),
        what,
        file: text(&file, FILE_CHARACTERS),
        line,
        method: text(&label, NAME_CHARACTERS),
        below: below.map(|below| text(&below, NAME_CHARACTERS)),
    }
}

fn seconds(ms: u64) -> f64 {
    ms.min(LONGEST_MS) as f64 / 1000.0
}

/// The text in one line, shortened.
fn text(text: &str, characters: usize) -> String {
    let short: String = text.chars().take(characters).collect();
    visible(&short).replace('\n', "\\n")
}

fn bytes_of(report: &SlowRequestReport) -> usize {
    let part = |part: &SlowPartReport| {
        part.file.len() + part.method.len() + part.below.as_ref().map_or(0, String::len)
    };
    report.request.len() + report.parts.iter().map(part).sum::<usize>() + size_of::<Kept>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_link::SlowKind;

    fn request(ticket: u64, ended: bool, text: &str) -> SlowRequest {
        let part = || SlowPart {
            ms: 1500,
            what: SlowKind::Waiting,
            file: text.into(),
            line: 3,
            label: text.into(),
            below: Some(text.into()),
        };
        SlowRequest {
            ticket,
            request: format!("GET /{text}?password=x"),
            ms: 2500,
            ended,
            samples: 9,
            parts: (0..9).map(|_| part()).collect(),
            other_ms: 1000,
        }
    }

    fn states(slow: &SlowRequests) -> Vec<String> {
        slow.all().into_iter().map(|report| report.state).collect()
    }

    #[test]
    fn a_request_is_kept_once_however_often_it_is_reported() {
        let (mut slow, now) = (SlowRequests::default(), Instant::now());
        assert_eq!(slow.add(1, request(7, false, "a"), now), None);
        assert_eq!(slow.add(2, request(7, false, "a"), now), None);
        let ended = slow.add(1, request(7, true, "a"), now).unwrap();
        assert_eq!((&*ended.request, ended.seconds, ended.parts.len()), ("GET /a", 2.5, PARTS));
        assert_eq!(states(&slow), ["running", "ended"]);
        assert_eq!(slow.add(1, request(7, false, "a"), now), None);
        assert_eq!(states(&slow), ["running", "ended", "running"], "the ticket has another request");
    }

    #[test]
    fn what_was_reported_of_a_request_stays_when_its_worker_ends() {
        let (mut slow, now) = (SlowRequests::default(), Instant::now());
        slow.add(1, request(7, false, "a"), now);
        slow.add(1, request(8, false, "b"), now);
        slow.add(1, request(9, true, "c"), now);
        slow.timed_out(1, 8);
        slow.timed_out(1, 9);
        slow.timed_out(2, 7);
        let ended = slow.worker_ended(1);
        assert_eq!(ended.iter().map(|report| &*report.request).collect::<Vec<_>>(), ["GET /a", "GET /b"]);
        assert_eq!(states(&slow), ["died", "timed_out", "ended"]);
        assert!(slow.worker_ended(1).is_empty());
    }

    #[test]
    fn a_request_that_timed_out_and_ends_has_timed_out() {
        let (mut slow, now) = (SlowRequests::default(), Instant::now());
        slow.add(1, request(7, false, "a"), now);
        slow.timed_out(1, 7);
        slow.add(1, request(7, false, "a"), now);
        assert_eq!(slow.add(1, request(7, true, "a"), now).unwrap().state, "timed_out");
    }

    #[test]
    fn the_last_ones_are_kept_within_limits() {
        let (mut slow, now) = (SlowRequests::default(), Instant::now());
        (0..1000)
            .for_each(|ticket| drop(slow.add(ticket as u32, request(ticket, ticket % 2 == 0, "a"), now)));
        let all = slow.all();
        assert_eq!((all.len(), all[0].worker, all[49].worker), (MOST, 950, 999));
        assert_eq!(slow.last(3).iter().map(|report| report.worker).collect::<Vec<_>>(), [997, 998, 999]);
        let long = "ä\u{1b}[2J\n".repeat(10_000);
        (0..100).for_each(|ticket| drop(slow.add(1, request(ticket, true, &long), now)));
        assert!(slow.bytes <= MOST_BYTES && !slow.kept.is_empty() && slow.kept.len() < 20, "{}", slow.bytes);
        assert_eq!(slow.bytes, slow.kept.iter().map(|kept| kept.bytes).sum::<usize>());
        let texts = slow
            .all()
            .into_iter()
            .map(|report| report.request + &report.parts[0].file + &report.parts[0].method);
        assert!(
            texts.into_iter().all(|text| !text.contains(['\u{1b}', '\n'])),
            "what a worker says is escaped"
        );
    }
}
