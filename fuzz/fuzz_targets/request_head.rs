//! Request heads: the same verdict however they are cut, and nothing accepted that another server could
//! read in another way.
#![no_main]

mod limits;
mod pieces;

use std::collections::HashSet;
use std::sync::LazyLock;

use highball_front::message::refusal::Refusal;
use highball_front::message::request_head::{RequestHead, RingContext};
use highball_front::protocol::http1::reader::{Parsed, Reader};
use highball_front::route::router::{Route, Router};
use highball_ring::request::{Fields, Fixed, FIXED_BYTES};
use libfuzzer_sys::fuzz_target;
use limits::limits;
use pieces::split_input;

fuzz_target!(|input: &[u8]| {
    let (pieces, bytes) = split_input(input);
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    let whole = reader.parse(bytes, &limits(), &mut head);
    check_pieces(bytes, &pieces, &whole);
    if let Ok(Parsed::Complete { length }) = whole {
        check_lines(&bytes[..length]);
        for (name, value) in head.with(bytes).fields() {
            assert!(!name.is_empty() && name.iter().all(u8::is_ascii_graphic));
            assert!(!value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t'));
        }
        let path = head.with(bytes).path();
        assert!(path == b"*" || path.starts_with(b"/"));
        let host = head.host().map(|host| host.name(bytes));
        let route = TWO_APPS.route(host, path).expect("one is reached by everything");
        check_prefix(&route, path);
        check_env(&head, bytes, &route);
    }
});

/// An application that is reached by everything, and one below a prefix; the prefix identifies each.
static TWO_APPS: LazyLock<Router<&str>> = LazyLock::new(|| {
    let mut router = Router::default();
    for prefix in ["", "/a"] {
        router.add(&[], prefix, &prefix);
    }
    router
});

fn check_prefix(route: &Route<'_, &str>, path: &[u8]) {
    let rest = &path[route.prefix_bytes..];
    if route.to.is_empty() {
        assert_eq!(rest, path);
    } else {
        assert!(route.prefix_bytes >= route.to.len() && (rest.is_empty() || rest[0] == b'/'));
    }
}

fn check_pieces(bytes: &[u8], pieces: &[&[u8]], whole: &Result<Parsed, Refusal>) {
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    let mut end = 0;
    for piece in pieces {
        end += piece.len();
        match reader.parse(&bytes[..end], &limits(), &mut head) {
            Ok(Parsed::Partial) if end < bytes.len() => {}
            // Which of several faults is seen first may depend on the cuts.
            Err(_) => return assert!(whole.is_err()),
            result => return assert_eq!(&result, whole),
        }
    }
}

fn check_lines(head: &[u8]) {
    assert!(head.ends_with(b"\r\n\r\n"));
    for (index, &byte) in head.iter().enumerate() {
        assert_eq!(byte == b'\n', index > 0 && head[index - 1] == b'\r', "every CR and LF ends a line");
    }
}

fn check_env(head: &RequestHead, bytes: &[u8], route: &Route<'_, &str>) {
    let context = RingContext {
        remote_addr: "127.0.0.1",
        server_name: "localhost",
        server_port: 3000,
        script_name: route.to,
        prefix_bytes: route.prefix_bytes,
        request_id: None,
        remote_user: None,
        https: false,
        takeover: true,
        received_us: 1,
        content_length: None,
    };
    let mut block = Vec::new();
    head.encode_for_ring(bytes, &context, &mut block);
    let fixed = Fixed::decode(block[..FIXED_BYTES].try_into().unwrap());
    assert_eq!(fixed.head_bytes as usize, block.len());
    let mut keys = HashSet::new();
    for field in Fields::new(&block[FIXED_BYTES..]) {
        assert!(!field.name.contains(&0));
        assert!(keys.insert((field.key, field.name)), "an env key twice");
    }
    assert_eq!(keys.len(), fixed.fields as usize);
}
