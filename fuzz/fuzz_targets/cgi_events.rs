//! Events of the readers of FastCGI and LSAPI as values that can be compared.

use highball_front::protocol::cgi::{CgiHead, Event, ReadError};

/// What a reader has found, with the pieces of a body joined.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Begin(bool),
    Head(Vec<u8>),
    Body(Vec<u8>),
    BodyEnd,
    Abort,
    Reply(Vec<u8>, bool),
    Error(ReadError),
}

impl Found {
    pub fn of(event: Event<'_, '_>) -> Self {
        match event {
            Event::Begin { keep_connection } => Found::Begin(keep_connection),
            Event::Head(head) => {
                check_head(head);
                Found::Head(head.buffer().to_vec())
            }
            Event::Body(bytes) => Found::Body(bytes.to_vec()),
            Event::BodyEnd => Found::BodyEnd,
            Event::Abort => Found::Abort,
            Event::Reply { bytes, close } => Found::Reply(bytes.to_vec(), close),
        }
    }

    pub fn push_to(self, found: &mut Vec<Found>) {
        match (found.last_mut(), self) {
            (Some(Found::Body(body)), Found::Body(more)) => body.extend(more),
            (_, next) => found.push(next),
        }
    }
}

/// The pieces of these lengths (each less by one), and the rest.
pub fn cut_up<'a>(mut bytes: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, rest) = bytes.split_at(bytes.len().min(usize::from(*cut) + 1));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

/// A head holds to the rules of HTTP, and fits the limits.
pub fn check_head(head: &CgiHead) {
    let buffer = head.buffer();
    assert!(buffer.len() <= 1000, "beyond the limit of a head");
    assert!(!head.head().method_name(buffer).is_empty());
    assert!(head.head().fields(buffer).count() <= 12, "beyond the limit of fields");
    for (name, value) in head.head().fields(buffer) {
        assert!(!name.is_empty() && name.iter().all(u8::is_ascii_graphic));
        assert!(!name.contains(&b'_') && !name.eq_ignore_ascii_case(b"proxy"));
        assert!(!value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t'));
    }
    let path = head.head().path(buffer);
    assert!(path == b"*" || path.starts_with(b"/"));
    assert!(path.iter().all(|byte| !byte.is_ascii() || byte.is_ascii_graphic()));
}
