//! FastCGI records: the same events however they are cut, bounded variables, and heads that hold to the rules of HTTP.
#![no_main]

mod cgi_events;
mod limits;
mod pieces;

use cgi_events::{check_head, cut_up, Found};
use highball_front::protocol::fastcgi::{Reader, Record, Writer, HEADER_BYTES};
use libfuzzer_sys::fuzz_target;
use limits::limits;
use pieces::split_input;

fuzz_target!(|input: &[u8]| {
    let (cuts, bytes) = split_input(input);
    let whole = read(bytes, &[]);
    assert_eq!(read(bytes, cuts), whole);
    check_answer(bytes);
});

/// What is found in pieces of these lengths. Requests are answered as soon as they are complete.
fn read(bytes: &[u8], cuts: &[u8]) -> Vec<Found> {
    let mut reader = Reader::new();
    let mut found = Vec::new();
    for mut piece in cut_up(bytes, cuts) {
        loop {
            let next = match reader.next(&mut piece, &limits()) {
                Ok(None) => break,
                Err(error) => {
                    found.push(Found::Error(error));
                    return found;
                }
                Ok(Some(event)) => Found::of(event),
            };
            if matches!(next, Found::BodyEnd | Found::Abort) {
                reader.head().into_iter().for_each(check_head);
                reader.finish();
            }
            next.push_to(&mut found);
        }
    }
    found
}

/// An answer with this body is read as it was written.
fn check_answer(body: &[u8]) {
    let writer = Writer::new(7);
    let mut out = Vec::new();
    writer.bytes(body, &mut out);
    let (mut rest, mut read) = (&out[..], Vec::new());
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let record = Record::decode(*header).unwrap();
        assert_eq!((record.request_id, record.padding_bytes), (7, 0));
        let (content, after) = after.split_at(usize::from(record.content_bytes));
        assert!(!content.is_empty(), "an empty record ends the answer");
        read.extend_from_slice(content);
        rest = after;
    }
    assert_eq!(read, body);
}
