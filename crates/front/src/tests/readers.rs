//! What the readers of FastCGI and LSAPI find, for tests.

use crate::message::request_head::BodyFraming;
use crate::protocol::cgi::{CgiHead, CgiReader, Event, ReadError};
use crate::tests::limits::limits;

/// What a reader has found, with the pieces of a body joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Whether the connection is kept.
    Begin(bool),
    /// The target, and the fields as `name=value`.
    Head(String, BodyFraming, Vec<String>),
    Body(Vec<u8>),
    BodyEnd,
    Abort,
    /// Whether the connection is closed then.
    Reply(Vec<u8>, bool),
    Error(ReadError),
}

impl Found {
    fn of(event: Event<'_, '_>) -> Self {
        match event {
            Event::Begin { keep_connection } => Found::Begin(keep_connection),
            Event::Head(head) => Found::head(head),
            Event::Body(bytes) => Found::Body(bytes.to_vec()),
            Event::BodyEnd => Found::BodyEnd,
            Event::Abort => Found::Abort,
            Event::Reply { bytes, close } => Found::Reply(bytes.to_vec(), close),
        }
    }

    fn head(cgi: &CgiHead) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (head, buffer) = (cgi.head(), cgi.buffer());
        let fields =
            head.with(buffer).fields().map(|(name, value)| format!("{}={}", text(name), text(value)));
        Found::Head(text(head.with(buffer).target()), head.framing, fields.collect())
    }
}

/// Reads `input`, which arrives in pieces that end at `cuts`; requests are answered as soon as they are whole.
pub(crate) fn read_in_pieces(mut reader: impl CgiReader, input: &[u8], cuts: &[usize]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut begin = 0;
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    ends.push(input.len());
    ends.sort_unstable();
    for end in ends {
        let mut piece = &input[begin..end];
        begin = end;
        loop {
            let next = match reader.next(&mut piece, &limits()) {
                Ok(None) => break,
                Err(error) => {
                    found.push(Found::Error(error));
                    return found;
                }
                Ok(Some(event)) => Found::of(event),
            };
            assert!(
                reader.head().is_some() || !matches!(next, Found::Head(..) | Found::Body(_) | Found::BodyEnd)
            );
            if matches!(next, Found::BodyEnd | Found::Abort) {
                assert!(reader.finish());
                assert_eq!(reader.head(), None);
            }
            match (found.last_mut(), next) {
                (Some(Found::Body(body)), Found::Body(more)) => body.extend(more),
                (_, next) => found.push(next),
            }
        }
        assert!(piece.is_empty());
    }
    found
}
