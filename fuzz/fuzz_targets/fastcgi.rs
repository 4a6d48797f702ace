//! FastCGI records: the same events however they are cut, bounded variables, and heads that hold to the rules of HTTP.
#![no_main]

mod cgi_events;
mod limits;
mod pieces;

use cgi_events::read;
use highball_front::protocol::cgi::CgiWriter;
use highball_front::protocol::fastcgi::{Reader, Record, Writer, HEADER_BYTES};
use libfuzzer_sys::fuzz_target;
use pieces::split_input;

fuzz_target!(|input: &[u8]| {
    let (pieces, bytes) = split_input(input);
    assert_eq!(read(Reader::default(), &pieces), read(Reader::default(), &[bytes]));
    check_answer(bytes);
});

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
