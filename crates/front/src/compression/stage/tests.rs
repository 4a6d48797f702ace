use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::aside::file_reads::{Ahead, ServedFile};
use crate::aside::PoolShare;
use crate::compression::encoder::tests::{decoded, ALL};
use crate::compression::room::Room;
use crate::tests::heads::head_of;
use crate::tests::runtime;

/// Room for some encoders of each kind.
const MEMORY: u64 = 64 << 20;

fn stage_for(fields: &str, room: &AppRoom) -> Box<Stage> {
    let text = format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
    Stage::new(head_of(&text).with(text.as_bytes()), room, Holder::default())
        .expect("it asks for compression")
}

fn room() -> AppRoom {
    Room::new(MEMORY, Rc::default()).of_app("app")
}

/// What a client gets.
#[derive(Debug, Default)]
struct Got {
    head: Option<AnswerHead>,
    lines: String,
    body: Vec<u8>,
    ending: Option<&'static str>,
}

impl Got {
    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.lines.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn coding(&self) -> Option<Coding> {
        let name = self.field("content-encoding")?;
        Some(*ALL.iter().find(|coding| coding.name() == name).unwrap())
    }

    fn decoded(&self) -> Vec<u8> {
        let is_whole = self.ending == Some("end");
        self.coding().map_or_else(|| self.body.clone(), |coding| decoded(coding, &self.body, is_whole))
    }

    /// Takes what the connection would send.
    fn take(&mut self, out: &mut AnswerEvents) {
        while let Some(event) = out.take_unless(|_| false) {
            assert_eq!(self.ending, None, "{event:?} after the end");
            match event {
                AnswerEvent::Head(head) => {
                    assert!(self.head.replace(head).is_none(), "a second head");
                    self.lines = String::from_utf8(out.take_bytes(head.field_bytes).to_vec()).unwrap();
                }
                AnswerEvent::Bytes(length) => self.body.extend_from_slice(out.take_bytes(length)),
                AnswerEvent::File(part) => {
                    let begin = self.body.len();
                    self.body.resize(begin + part.length as usize, 0);
                    part.file.read_exact_at(&mut self.body[begin..], part.offset).unwrap();
                }
                AnswerEvent::End => self.ending = Some("end"),
                AnswerEvent::CutOff => self.ending = Some("cut off"),
                other => panic!("{other:?}"),
            }
        }
        out.clear();
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// Passes what has come through the stage.
async fn pass(stage: &mut Stage, mut come: AnswerEvents, got: &mut Got) {
    stage.take_in(&mut come);
    let mut out = AnswerEvents::default();
    while poll_fn(|context| stage.poll_next(context, &mut out)).await {
        got.take(&mut out);
    }
}

/// What a client gets that takes this coding, once all of these events have come.
fn got(accepted: &str, events: AnswerEvents) -> Got {
    run(async {
        let (mut stage, mut got) =
            (stage_for(&format!("accept-encoding: {accepted}\r\n"), &room()), Got::default());
        pass(&mut stage, events, &mut got).await;
        got
    })
}

fn head(body: AnswerBody, lines: &str) -> AnswerEvents {
    let mut events = AnswerEvents::default();
    let content_length = if let AnswerBody::Length(length) = body { Some(length) } else { None };
    let head = AnswerHead { body, content_length, ..AnswerHead::new(200) };
    events
        .push_head::<()>(|fields| {
            fields.add_lines(lines.as_bytes());
            Ok(head)
        })
        .unwrap();
    events
}

const HTML: &str = "content-type: text/html\r\netag: \"a\"\r\n";

fn whole(body: &[u8]) -> AnswerEvents {
    let mut events = head(AnswerBody::Length(body.len() as u64), HTML);
    events.push_bytes(body);
    events.push(AnswerEvent::End);
    events
}

fn file_of(bytes: &[u8]) -> Arc<ServedFile> {
    use std::io::Write;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Arc::new(ServedFile::opened(file, &PoolShare::of_reads()))
}

fn page(length: usize) -> Vec<u8> {
    (0..)
        .flat_map(|row: u64| format!("<li>row {}</li>\n", row * 7919 % 1013).into_bytes())
        .take(length)
        .collect()
}

#[test]
fn a_whole_answer_keeps_a_length() {
    run(async {
        for coding in ALL {
            for length in [1024, 5000, 200_000] {
                let mut stage = stage_for(&format!("accept-encoding: {}\r\n", coding.name()), &room());
                let mut got = Got::default();
                pass(&mut stage, whole(&page(length)), &mut got).await;
                assert_eq!(got.coding(), Some(coding));
                assert_eq!(got.decoded(), page(length));
                let head = got.head.unwrap();
                assert_eq!(head.content_length, Some(got.body.len() as u64));
                assert_eq!(head.body, AnswerBody::Length(got.body.len() as u64));
                assert!(got.body.len() < length / 2);
                assert_eq!(got.field("etag"), Some("W/\"a\""));
                assert_eq!(stage.sent(), Some((200, got.body.len() as u64)));
            }
        }
    });
}

#[test]
fn the_event_loop_compresses_a_page_itself_while_it_has_time() {
    run(async {
        for (coding, length) in [(Coding::Gzip, 40_000), (Coding::Zstd, 40_000), (Coding::Brotli, 15_000)] {
            let mut stage = stage_for(&format!("accept-encoding: {}\r\n", coding.name()), &room());
            stage.take_in(&mut whole(&page(length)));
            let mut out = AnswerEvents::default();
            let at_once = poll_fn(|context| Poll::Ready(stage.poll_next(context, &mut out))).await;
            assert!(at_once.is_ready(), "{coding:?}: no thread of the pool");
        }
    });
}

#[test]
fn what_becomes_no_shorter_stays_as_it_is() {
    let noise: Vec<u8> =
        (0..3000_u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ (i * i) as u8).collect();
    let noise: Vec<u8> = noise
        .iter()
        .scan(1_u64, |state, byte| {
            *state = (*state ^ u64::from(*byte)).wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(23);
            Some((*state >> 32) as u8)
        })
        .collect();
    let got = got("gzip", whole(&noise));
    assert_eq!((got.coding(), &got.body), (None, &noise));
    assert_eq!((got.field("etag"), got.field("vary")), (Some("\"a\""), Some("accept-encoding")));
    assert_eq!(got.head.unwrap().content_length, Some(3000));
}

#[test]
fn a_client_can_read_each_event_of_a_stream_when_it_has_come() {
    run(async {
        for coding in ALL {
            let fields = format!("accept-encoding: {}\r\n", coding.name());
            let (mut stage, mut got) = (stage_for(&fields, &room()), Got::default());
            pass(&mut stage, head(AnswerBody::Unknown, "content-type: text/event-stream\r\n"), &mut got)
                .await;
            assert_eq!(got.head.unwrap().content_length, None, "the head is not held back");
            let mut sent = Vec::new();
            for event in 0..50 {
                let mut events = AnswerEvents::default();
                let text = format!("data: event {event}\n\n");
                events.push_bytes(text.as_bytes());
                sent.extend_from_slice(text.as_bytes());
                pass(&mut stage, events, &mut got).await;
                assert_eq!(got.decoded(), sent);
            }
            let mut end = AnswerEvents::default();
            end.push(AnswerEvent::End);
            pass(&mut stage, end, &mut got).await;
            assert_eq!((got.ending, got.decoded()), (Some("end"), sent));
        }
    });
}

#[test]
fn a_body_that_is_about_to_be_whole_is_waited_for_but_not_for_long() {
    let body = page(50_000);
    let beginning = || {
        let mut events = head(AnswerBody::Length(50_000), HTML);
        events.push_bytes(&body[..20_000]);
        events
    };
    let mut end = AnswerEvents::default();
    end.push_bytes(&body[20_000..]);
    end.push(AnswerEvent::End);
    run(async {
        let (mut stage, mut got) = (stage_for("accept-encoding: zstd\r\n", &room()), Got::default());
        pass(&mut stage, beginning(), &mut got).await;
        assert!(got.head.is_none());
        pass(&mut stage, end, &mut got).await;
        assert_eq!((got.decoded(), got.ending), (body.clone(), Some("end")));
        assert_eq!(got.head.unwrap().content_length, Some(got.body.len() as u64));

        let (mut stage, mut got) = (stage_for("accept-encoding: zstd\r\n", &room()), Got::default());
        pass(&mut stage, beginning(), &mut got).await;
        let mut out = AnswerEvents::default();
        poll_fn(|context| match stage.poll_next(context, &mut out) {
            Poll::Ready(true) => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
        got.take(&mut out);
        while poll_fn(|context| stage.poll_next(context, &mut out)).await {
            got.take(&mut out);
        }
        assert_eq!(got.decoded(), body[..20_000]);
        assert_eq!(got.head.unwrap().body, AnswerBody::Unknown);
    });
}

fn part_of(file: &[u8], offset: u64, length: u64) -> FilePart {
    FilePart { file: file_of(file), offset, length, ahead: Ahead::default() }
}

#[test]
fn a_file_is_compressed_piece_by_piece() {
    let body = page(300_000);
    let mut events = head(AnswerBody::Length(299_000), HTML);
    events.push_file(part_of(&body, 1000, 299_000));
    events.push(AnswerEvent::End);
    let got = got("zstd", events);
    assert_eq!((got.ending, got.decoded()), (Some("end"), body[1000..].to_vec()));
    assert_eq!(got.head.unwrap().body, AnswerBody::Unknown);
}

#[test]
fn what_is_cut_off_or_became_shorter_is_cut_off() {
    let of_length = || head(AnswerBody::Length(20_000), HTML);
    let (mut shorter, mut cut_off) = (of_length(), of_length());
    shorter.push_file(part_of(&page(5000), 0, 20_000));
    shorter.push(AnswerEvent::End);
    cut_off.push_bytes(&page(5000));
    cut_off.push(AnswerEvent::CutOff);
    for events in [shorter, cut_off] {
        assert_eq!(got("gzip", events).ending, Some("cut off"));
    }
}

#[test]
fn head_says_what_get_would() {
    let mut events = AnswerEvents::default();
    events
        .push_head::<()>(|fields| {
            fields.add_lines(HTML.as_bytes());
            Ok(AnswerHead { content_length: Some(20_000), ..AnswerHead::new(200) })
        })
        .unwrap();
    events.push(AnswerEvent::End);
    let got = got("gzip", events);
    assert_eq!((got.coding(), got.ending, got.body.len()), (Some(Coding::Gzip), Some("end"), 0));
    assert_eq!(got.head.unwrap().content_length, None);
    assert_eq!((got.field("etag"), got.field("vary")), (Some("W/\"a\""), Some("accept-encoding")));
}

#[test]
fn a_client_that_has_it_gets_304_and_nothing_of_the_body() {
    run(async {
        let fields = "accept-encoding: gzip\r\nif-none-match: W/\"a\"\r\n";
        let (mut stage, mut got) = (stage_for(fields, &room()), Got::default());
        let mut events = head(AnswerBody::Unknown, HTML);
        events.push_bytes(&page(5000));
        events.push_file(part_of(b"file", 0, 4));
        pass(&mut stage, events, &mut got).await;
        let mut end = AnswerEvents::default();
        end.push_bytes(b"more");
        end.push(AnswerEvent::End);
        pass(&mut stage, end, &mut got).await;
        let head = got.head.unwrap();
        assert_eq!((head.status, head.body, head.content_length), (304, AnswerBody::None, None));
        assert_eq!((got.body.len(), got.ending, stage.sent()), (0, Some("end"), Some((304, 0))));
        assert_eq!(got.field("content-type"), None);
    });
}

#[test]
fn without_memory_for_an_encoder_an_answer_is_sent_as_it_is() {
    run(async {
        let room = Room::new(4 << 20, Rc::default());
        let (one, other) = (room.of_app("one"), room.of_app("other"));
        let streams: Vec<_> =
            (0..4).map(|_| (stage_for("accept-encoding: gzip\r\n", &one), Got::default())).collect();
        let mut codings = Vec::new();
        let mut open = Vec::new();
        for (mut stage, mut got) in streams {
            pass(&mut stage, head(AnswerBody::Unknown, HTML), &mut got).await;
            codings.push(got.coding());
            open.push((stage, got));
        }
        assert_eq!(codings, [Some(Coding::Gzip), None, None, None], "half of the memory");
        let (mut stage, mut got) = (stage_for("accept-encoding: gzip\r\n", &other), Got::default());
        pass(&mut stage, head(AnswerBody::Unknown, HTML), &mut got).await;
        assert_eq!(got.coding(), Some(Coding::Gzip), "another application has the other half");
        let mut rest = AnswerEvents::default();
        rest.push_bytes(b"hello");
        rest.push(AnswerEvent::End);
        let (mut stage, mut got) = open.pop().unwrap();
        pass(&mut stage, rest, &mut got).await;
        assert_eq!((got.body.as_slice(), got.ending), (&b"hello"[..], Some("end")));
        drop(open);
        let (mut stage, mut got) = (stage_for("accept-encoding: gzip\r\n", &one), Got::default());
        pass(&mut stage, head(AnswerBody::Unknown, HTML), &mut got).await;
        assert_eq!(got.coding(), Some(Coding::Gzip), "given back");
    });
}

/// A part of a body.
#[derive(Debug, Clone)]
enum Part {
    Bytes(usize),
    File(usize),
    /// All that came before is sent before the next comes.
    Pause,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_body_in_any_parts_reaches_the_client(
        parts in prop::collection::vec(
            prop_oneof![
                (0..60_000_usize).prop_map(Part::Bytes),
                (1..150_000_usize).prop_map(Part::File),
                Just(Part::Pause),
            ],
            0..8,
        ),
        coding in 0..3_usize,
    ) {
        run(async {
            let fields = format!("accept-encoding: {}\r\n", ALL[coding].name());
            let (mut stage, mut got) = (stage_for(&fields, &room()), Got::default());
            let mut events = head(AnswerBody::Unknown, HTML);
            let mut plain = Vec::new();
            for part in parts {
                match part {
                    Part::Bytes(length) => {
                        events.push_bytes(&page(length));
                        plain.extend(page(length));
                    }
                    Part::File(length) => {
                        let file = file_of(&page(length));
                        events.push_file(FilePart { file, offset: 0, length: length as u64, ahead: Ahead::default() });
                        plain.extend(page(length));
                    }
                    Part::Pause => {
                        pass(&mut stage, take(&mut events), &mut got).await;
                        assert_eq!(got.decoded().len(), plain.len());
                    }
                }
            }
            events.push(AnswerEvent::End);
            pass(&mut stage, events, &mut got).await;
            assert_eq!(got.ending, Some("end"));
            assert!(got.decoded() == plain);
        });
    }
}
