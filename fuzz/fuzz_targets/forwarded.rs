//! What a proxy reports of a client: whatever the client has sent in the same field, the address that a trusted proxy adds behind
//! it counts.
#![no_main]

mod limits;

use std::net::IpAddr;

use highball_front::message::forwarded::{reported, Malformed, Reported};
use highball_front::message::request_head::RequestHead;
use highball_front::protocol::http1::reader::Reader;
use libfuzzer_sys::fuzz_target;
use limits::limits;

const CLIENT: &str = "192.0.2.7";

fuzz_target!(|input: &[u8]| {
    let Some((&flags, sent)) = input.split_first() else { return };
    let is_forwarded = flags & 1 != 0;
    let (name, added) =
        if is_forwarded { ("Forwarded", "for=192.0.2.7;proto=https") } else { ("X-Forwarded-For", CLIENT) };
    let separator = if flags & 2 == 0 { ", ".to_owned() } else { format!("\r\n{name}: ") };
    let begin = format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: ");
    let bytes = [begin.as_bytes(), sent, separator.as_bytes(), added.as_bytes(), b"\r\n\r\n"].concat();
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    // With an end of a line in it, the input is more than one field.
    if sent.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
        || reader.parse(&bytes, &limits(), &mut head).is_err()
    {
        return;
    }
    match reported(head.with(&bytes), |address| address.is_loopback()) {
        Ok(Reported { address, is_tls }) => {
            assert_eq!(address, CLIENT.parse::<IpAddr>().ok());
            assert_eq!(is_tls, is_forwarded.then_some(true));
        }
        Err(Malformed) => assert!(is_forwarded),
    }
});
