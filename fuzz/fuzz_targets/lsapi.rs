//! LSAPI packets: the same events however they are cut, and heads that hold to the rules of HTTP.
#![no_main]

mod cgi_events;
mod limits;
mod pieces;

use cgi_events::read;
use highball_front::protocol::lsapi::Reader;
use libfuzzer_sys::fuzz_target;
use pieces::split_input;

fuzz_target!(|input: &[u8]| {
    let (pieces, bytes) = split_input(input);
    assert_eq!(read(Reader::default(), &pieces), read(Reader::default(), &[bytes]));
});
