//! The corpus of `hostile_requests.txt`: each line gets its verdict, however it is cut.

use std::time::Duration;

use highball_config::Limits;

use super::body::BodyDecoder;
use super::reader::{Parsed, Reader};
use crate::message::refusal::Refusal;
use crate::message::request_head::RequestHead;
use crate::tests::limits;

const CORPUS: &str = include_str!("hostile_requests.txt");

/// The largest body.
const MOST_BYTES: Option<u64> = Some(1000);

fn limits() -> Limits {
    Limits { target_bytes: 300, head_bytes: 2048, header_fields: 12, ..limits::limits() }
}

/// What a connection does with its bytes: head, body, head, body.
#[derive(Default)]
struct Client {
    reader: Reader,
    head: RequestHead,
    body: Option<BodyDecoder>,
    consumed: usize,
}

impl Client {
    /// Takes what has come so far; gives "ok" or "partial".
    fn receive(&mut self, bytes: &[u8]) -> Result<&'static str, Refusal> {
        loop {
            let rest = &bytes[self.consumed..];
            match &mut self.body {
                Some(body) => {
                    let progress = body.decode(rest, |_| {})?;
                    self.consumed += progress.consumed;
                    if !progress.done {
                        return Ok("partial");
                    }
                    self.body = None;
                }
                None if rest.is_empty() => return Ok("ok"),
                None => match self.reader.parse(rest, &limits(), &mut self.head)? {
                    Parsed::Partial => return Ok("partial"),
                    Parsed::Complete { length } => {
                        self.consumed += length;
                        if self.head.framing.is_beyond(MOST_BYTES) {
                            return Err(Refusal::BodyTooLarge);
                        }
                        self.body = Some(BodyDecoder::new(self.head.framing, &limits(), MOST_BYTES));
                    }
                },
            }
        }
    }
}

fn verdict(bytes: &[u8], step: usize) -> String {
    let mut client = Client::default();
    let mut end = 0;
    loop {
        end = bytes.len().min(end + step);
        match client.receive(&bytes[..end]) {
            Err(refusal) => return format!("{} {refusal:?}", refusal.status()),
            Ok(state) if end == bytes.len() => return state.to_owned(),
            Ok(_) => {}
        }
    }
}

/// The bytes that a line of the corpus stands for.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((repeated, count, after)) = parse_repetition(rest) {
            let once = unescape(repeated);
            (0..count).for_each(|_| bytes.extend_from_slice(&once));
            rest = after;
        } else if let Some(hexadecimal) = rest.strip_prefix("\\x") {
            bytes.push(u8::from_str_radix(&hexadecimal[..2], 16).unwrap());
            rest = &hexadecimal[2..];
        } else if let Some(escaped) = rest.strip_prefix('\\') {
            let byte = match escaped.as_bytes()[0] {
                b'r' => b'\r',
                b'n' => b'\n',
                b't' => b'\t',
                b'0' => 0,
                other => other,
            };
            bytes.push(byte);
            rest = &escaped[1..];
        } else {
            assert!(first.is_ascii_graphic() || first == ' ', "write {first:?} as an escape");
            bytes.push(first as u8);
            rest = &rest[1..];
        }
    }
    bytes
}

fn parse_repetition(text: &str) -> Option<(&str, usize, &str)> {
    let (inner, after) = text.strip_prefix('{')?.split_once('}')?;
    let (repeated, count) = inner.rsplit_once('*')?;
    Some((repeated, count.parse().ok()?, after))
}

#[test]
fn every_hostile_request_gets_its_verdict_however_it_is_cut() {
    let lines: Vec<&str> = CORPUS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(lines.len() > 250);
    let mut wrong = String::new();
    for line in lines {
        let (expected, bytes) = line.split_once(" |").unwrap();
        let bytes = unescape(bytes.strip_suffix('|').unwrap());
        for step in [usize::MAX / 2, 7, 1] {
            let verdict = verdict(&bytes, step);
            if verdict != expected {
                wrong += &format!("{verdict} in pieces of {step}: {line}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_head_that_arrives_byte_by_byte_costs_no_more_than_its_length() {
    // 60,000 bytes in as many pieces: were each looked at again, this would be 1.8 billion steps.
    let limits = Limits { head_bytes: 64 * 1024, target_bytes: 64 * 1024, ..limits() };
    let bytes = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(60_000));
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    let started = std::time::Instant::now();
    for end in 1..bytes.len() {
        assert_eq!(reader.parse(&bytes.as_bytes()[..end], &limits, &mut head), Ok(Parsed::Partial));
    }
    assert!(matches!(reader.parse(bytes.as_bytes(), &limits, &mut head), Ok(Parsed::Complete { .. })));
    assert!(started.elapsed() < Duration::from_secs(5));
}
