//! Events of the readers of FastCGI and LSAPI as values that can be compared.

use highball_front::protocol::cgi::{CgiHead, CgiReader, Event, ReadError};

use crate::limits::limits;

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
    fn of(event: Event<'_, '_>) -> Self {
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
}

/// What is found in these pieces. Requests are answered as soon as they are complete.
pub fn read(mut reader: impl CgiReader, pieces: &[&[u8]]) -> Vec<Found> {
    let mut found = Vec::new();
    for mut piece in pieces.iter().copied() {
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
                assert!(reader.finish());
            }
            match (found.last_mut(), next) {
                (Some(Found::Body(body)), Found::Body(more)) => body.extend(more),
                (_, next) => found.push(next),
            }
        }
    }
    found
}

/// A head holds to the rules of HTTP, and fits the limits.
fn check_head(head: &CgiHead) {
    let buffer = head.buffer();
    assert!(buffer.len() <= 1000, "beyond the limit of a head");
    assert!(!head.head().with(buffer).method_name().is_empty());
    assert!(head.head().with(buffer).fields().count() <= 12, "beyond the limit of fields");
    for (name, value) in head.head().with(buffer).fields() {
        assert!(!name.is_empty() && name.iter().all(u8::is_ascii_graphic));
        assert!(!name.contains(&b'_') && !name.eq_ignore_ascii_case(b"proxy"));
        assert!(!value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t'));
    }
    let path = head.head().with(buffer).path();
    assert!(path == b"*" || path.starts_with(b"/"));
    assert!(path.iter().all(|byte| !byte.is_ascii() || byte.is_ascii_graphic()));
}
