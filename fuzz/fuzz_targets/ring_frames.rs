//! What a worker writes into its ring: frames in pieces become an answer that every client reads in one way, or
//! a breach; the same however they are cut.
#![no_main]

mod pieces;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use highball_front::exchange::frame_reader::{Frame, FrameReader};
use highball_front::exchange::response::{Descriptors, Progress, Response};
use highball_front::exchange::response_head::HeadContext;
use highball_front::http_syntax::DateCache;
use highball_front::message::answer::{AnswerEvent, AnswerEvents};
use highball_front::message::request_head::Version;
use highball_front::protocol::http1::body::BodyDecoder;
use highball_front::protocol::http1::writer::Writer;
use highball_ring::RingError;
use libfuzzer_sys::fuzz_target;
use pieces::split_input;

/// Files longer than this are cut, and played by this number of bytes.
const FILE_BYTES: u64 = 1000;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, input)) = input.split_first() else { return };
    let (pieces, bytes) = split_input(input);
    assert_eq!(frames(&pieces), frames(&[bytes]));
    let (whole, cut) = (answer(flags, &[bytes]), answer(flags, &pieces));
    let (Some(whole), Some(cut)) = (whole.ok(), cut.ok()) else {
        // Which bytes came together does not make the worker a good or a bad one.
        return assert_eq!(answer(flags, &[bytes]).is_ok(), answer(flags, &pieces).is_ok());
    };
    whole.check(flags);
    cut.check(flags);
});

/// What the frames say, with the pieces of bodies joined; `None` at the end: a breach.
fn frames(pieces: &[&[u8]]) -> Vec<Option<(u8, Vec<u8>)>> {
    let mut reader = FrameReader::default();
    let mut read: Vec<Option<(u8, Vec<u8>)>> = Vec::new();
    for mut piece in pieces.iter().copied() {
        loop {
            let next = reader.next(&mut piece, |frame, _| {
                let (kind, payload) = match frame {
                    Frame::Head(payload) => (1, payload.to_vec()),
                    Frame::Body(bytes) => (2, bytes.to_vec()),
                    Frame::File { offset, length } => {
                        (3, [offset.to_le_bytes(), length.to_le_bytes()].concat())
                    }
                    Frame::Hijack => (4, Vec::new()),
                    Frame::End => (5, Vec::new()),
                    Frame::Abort => (6, Vec::new()),
                    Frame::Failure(payload) => (7, payload.to_vec()),
                    Frame::Stream => (8, Vec::new()),
                };
                match read.last_mut() {
                    Some(Some((2, body))) if kind == 2 => body.extend(payload),
                    _ => read.push(Some((kind, payload))),
                }
                Ok(())
            });
            match next {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(_) => {
                    read.push(None);
                    return read;
                }
            }
        }
    }
    read
}

/// What came of the frames.
struct Outcome {
    progress: Progress,
    status: u16,
    keep_alive: bool,
    hijacked: bool,
    /// What is sent to the client; `None` if a file is too long to be played.
    sent: Option<Vec<u8>>,
}

/// Descriptors as the ring hands them over: files that it has checked, its own sockets, or none.
struct Given(u8);

impl Descriptors for Given {
    fn receive_file(&mut self) -> Result<OwnedFd, RingError> {
        match self.0 & 8 {
            0 => Ok(OwnedFd::from(File::open("/proc/self/exe").unwrap())),
            _ => Err(RingError::Breach("no descriptor")),
        }
    }

    fn connect(&mut self) -> Result<OwnedFd, RingError> {
        match self.0 & 16 {
            0 => Ok(OwnedFd::from(UnixStream::pair().unwrap().0)),
            _ => Err(RingError::Breach("no descriptor socket")),
        }
    }

    fn may_stream(&mut self) -> bool {
        self.0 & 32 == 0
    }
}

fn answer(flags: u8, pieces: &[&[u8]]) -> Result<Outcome, RingError> {
    let mut response = Response::new();
    response.reset(HeadContext {
        head_method: flags & 2 != 0,
        upgrade: flags & 8 != 0,
        ..HeadContext::default()
    });
    for piece in pieces {
        response.feed(piece, &mut Given(flags))?;
    }
    let hijacked = response.is_taken_over();
    let mut writer = Writer::default();
    writer.begin(if flags & 1 != 0 { Version::Http10 } else { Version::Http11 }, flags & 4 != 0);
    let sent = written(&mut response.events, &mut writer);
    let (progress, status, keep_alive) = (response.progress(), response.status, writer.keep_alive());
    Ok(Outcome { progress, status, keep_alive, hijacked, sent })
}

/// What a client gets; `None`: files that are too large to be made up here.
fn written(events: &mut AnswerEvents, writer: &mut Writer) -> Option<Vec<u8>> {
    let date = DateCache::new();
    let mut out = Vec::new();
    while let Some(event) = events.take_unless(|_| false) {
        match event {
            AnswerEvent::Interim(head) | AnswerEvent::Head(head) => {
                writer.head(&head, &[events.take_bytes(head.field_bytes)], &date, &mut out);
            }
            AnswerEvent::Bytes(length) => writer.bytes(events.take_bytes(length), &mut out),
            AnswerEvent::File(part) if part.length <= FILE_BYTES => {
                writer.begin_part(part.length, &mut out);
                out.extend(vec![b'f'; part.length as usize]);
                writer.end_part(&mut out);
            }
            AnswerEvent::File(_) => return None,
            AnswerEvent::End => writer.end(&mut out),
            AnswerEvent::CutOff | AnswerEvent::Refused(_) | AnswerEvent::GivenBack => {}
            AnswerEvent::TakenOver(_) | AnswerEvent::Held => {}
        }
    }
    Some(out)
}

impl Outcome {
    /// A client that reads what was sent finds one answer, ended where it should end.
    fn check(&self, flags: u8) {
        let Some(mut rest) = self.sent.as_deref() else { return };
        if self.progress != Progress::Ended || self.hijacked {
            return;
        }
        let (status, head) = loop {
            let end = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
            let (head, after) = rest.split_at(end);
            rest = after;
            let head = String::from_utf8_lossy(head).to_ascii_lowercase();
            let status: u16 = head["http/1.1 ".len()..][..3].parse().unwrap();
            if status >= 200 || status == 101 {
                break (status, head);
            }
        };
        assert_eq!(status, self.status);
        let fields = |name: &str| head.lines().filter(|line| line.starts_with(name)).count();
        let (lengths, chunked) = (fields("content-length:"), fields("transfer-encoding:"));
        assert!(lengths + chunked <= 1, "two ways to read it: {head}");
        if flags & 2 != 0 || matches!(status, 204 | 205 | 304) {
            assert!(rest.is_empty());
        } else if chunked == 1 {
            let progress = BodyDecoder::of_chunked_response().decode(rest, |_| {}).expect("good chunks");
            assert!(progress.done && progress.consumed == rest.len());
        } else if lengths == 1 {
            let line = head.lines().find(|line| line.starts_with("content-length:")).unwrap();
            assert_eq!(line["content-length: ".len()..].parse(), Ok(rest.len()));
        } else {
            assert!(!self.keep_alive, "it has no visible end: {head}");
        }
    }
}
