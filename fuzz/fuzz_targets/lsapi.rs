//! LSAPI packets: the same events however they are cut, and heads that hold to the rules of HTTP.
#![no_main]

mod cgi_events;
mod limits;
mod pieces;

use cgi_events::{check_head, cut_up, Found};
use highball_front::protocol::lsapi::Reader;
use libfuzzer_sys::fuzz_target;
use limits::limits;
use pieces::split_input;

fuzz_target!(|input: &[u8]| {
    let (cuts, bytes) = split_input(input);
    assert_eq!(read(bytes, cuts), read(bytes, &[]));
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
            if next == Found::BodyEnd {
                reader.head().into_iter().for_each(check_head);
                assert!(reader.finish());
            }
            next.push_to(&mut found);
        }
    }
    found
}
