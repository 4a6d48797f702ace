//! Answers as an HTTP/1 client gets them, for tests.

use std::os::unix::fs::FileExt;

use crate::http_syntax::DateCache;
use crate::message::answer::{AnswerEvent, AnswerEvents, FilePart};
use crate::message::request_head::Version;
use crate::protocol::http1::writer::Writer;

/// A writer for a client that keeps the connection.
pub(crate) fn writer() -> Writer {
    let mut writer = Writer::default();
    writer.begin(Version::Http11, true);
    writer
}

/// All bytes of an answer, with those of its files.
pub(crate) fn written(events: &mut AnswerEvents, writer: &mut Writer) -> Vec<u8> {
    let date = DateCache::new();
    let mut out = Vec::new();
    while let Some(event) = events.take_unless(|_| false) {
        match event {
            AnswerEvent::Interim(head) | AnswerEvent::Head(head) => {
                writer.head(&head, &[events.take_bytes(head.field_bytes)], &date, &mut out);
            }
            AnswerEvent::Bytes(length) => write_part(events.take_bytes(length), writer, &mut out),
            AnswerEvent::File(part) => write_part(&content(&part), writer, &mut out),
            AnswerEvent::End => writer.end(&mut out),
            other => panic!("not an answer: {other:?}"),
        }
    }
    out
}

fn write_part(bytes: &[u8], writer: &mut Writer, out: &mut Vec<u8>) {
    assert_eq!(writer.begin_part(bytes.len() as u64, out), bytes.len() as u64);
    out.extend_from_slice(bytes);
    writer.end_part(out);
}

fn content(part: &FilePart) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(part.length).unwrap()];
    part.file.read_exact_at(&mut bytes, part.offset).unwrap();
    bytes
}
