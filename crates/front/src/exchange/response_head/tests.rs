use super::*;
use crate::http_syntax::{write_number, DateCache};
use crate::message::answer::AnswerEvents;
use crate::message::request_head::Version;
use crate::protocol::http1::writer::Writer;
use crate::tests::answers::written;

fn payload(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = status.to_le_bytes().to_vec();
    bytes.extend([0, 0]);
    for (name, value) in fields {
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(name.bytes());
        bytes.extend(value.bytes());
    }
    bytes
}

/// A request, as far as the head of its answer depends on it.
#[derive(Clone, Copy)]
struct Asked {
    version: Version,
    keep_alive: bool,
    context: HeadContext,
}

const HTTP11: Asked = Asked {
    version: Version::Http11,
    keep_alive: true,
    context: HeadContext {
        head_method: false,
        upgrade: true,
        complete_body_length: None,
        hijack: false,
        sent_file: None,
        recipient: Recipient::Unknown,
        cable: false,
    },
};
const HTTP10: Asked = Asked { version: Version::Http10, ..HTTP11 };

/// What became of a head.
struct Encoded {
    head: AnswerHead,
    body_is_chunked: bool,
    /// Whether the connection is kept after the answer.
    keep_alive: bool,
    /// What the client gets.
    text: String,
}

fn encode(asked: Asked, status: u16, fields: &[(&str, &str)]) -> Encoded {
    let mut body_is_chunked = false;
    let mut events = AnswerEvents::default();
    let pushed = events.push_head(|lines| {
        let head = read(&payload(status, fields), &asked.context, lines)?;
        body_is_chunked = head.body_is_chunked;
        Ok::<_, BadHead>(head.head)
    });
    let head = pushed.unwrap();
    let mut writer = Writer::default();
    writer.begin(asked.version, asked.keep_alive);
    let text = String::from_utf8(written(&mut events, &mut writer)).unwrap();
    Encoded { head, body_is_chunked, keep_alive: writer.keep_alive(), text }
}

fn refused(payload: &[u8]) -> BadHead {
    let mut events = AnswerEvents::default();
    let pushed = events.push_head(|lines| Ok(read(payload, &HTTP11.context, lines)?.head));
    assert!(events.is_empty() && events.waiting_bytes() == 0, "nothing of a refused head may stay");
    pushed.unwrap_err()
}

fn breach(payload: &[u8]) -> &'static str {
    let BadHead::Breach(why) = refused(payload) else { panic!("not a breach") };
    why
}

fn unsendable(payload: &[u8]) -> &'static str {
    let BadHead::Unsendable(why) = refused(payload) else { panic!("a breach") };
    why
}

#[test]
fn fields_are_copied_in_order() {
    let fields =
        [("content-type", "text/html"), ("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-empty", "")];
    let encoded = encode(HTTP11, 200, &fields);
    let Encoded { text, .. } = &encoded;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\ndate: "), "{text}");
    assert!(
        text.ends_with(
            " GMT\r\ncontent-type: text/html\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-empty: \r\n\
             transfer-encoding: chunked\r\n\r\n"
        ),
        "{text}"
    );
    assert_eq!(encoded.head.body, AnswerBody::Unknown);
    assert!(encoded.keep_alive);
}

#[test]
fn the_date_is_added_unless_the_application_gave_one() {
    let encoded = encode(HTTP11, 200, &[]);
    assert_eq!(encoded.text.matches("date: ").count(), 1);
    let encoded = encode(HTTP11, 200, &[("Date", "Thu, 01 Jan 1970 00:00:00 GMT")]);
    assert!(encoded.text.contains("Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"));
    assert!(!encoded.text.contains("date: "));
}

#[test]
fn a_declared_length_frames_the_body() {
    let encoded = encode(HTTP11, 200, &[("Content-Length", "12")]);
    assert_eq!(encoded.head.body, AnswerBody::Length(12));
    assert!(encoded.text.contains("content-length: 12\r\n") && !encoded.text.contains("transfer-encoding"));
}

#[test]
fn a_declared_length_wins_over_a_known_one() {
    let known = Asked { context: HeadContext { complete_body_length: Some(5), ..HTTP11.context }, ..HTTP11 };
    let encoded = encode(known, 200, &[("Content-Length", "12")]);
    assert_eq!(encoded.head.body, AnswerBody::Length(12));
    assert_eq!(encoded.head.content_length, Some(12));
    assert!(encoded.text.contains("content-length: 12\r\n"));
    let encoded = encode(known, 200, &[]);
    assert_eq!(encoded.head.body, AnswerBody::Length(5));
}

#[test]
fn a_protocol_that_was_not_offered_is_refused() {
    let context = HeadContext { upgrade: false, ..HTTP11.context };
    let payload = payload(101, &[("upgrade", "chat")]);
    let refused = AnswerEvents::default().push_head(|lines| Ok(read(&payload, &context, lines)?.head));
    assert!(matches!(refused, Err(BadHead::Unsendable(_))), "{refused:?}");
}

#[test]
fn http10_without_a_length_ends_with_the_connection() {
    let encoded = encode(HTTP10, 200, &[]);
    assert_eq!(encoded.head.body, AnswerBody::Unknown);
    assert!(!encoded.keep_alive);
    assert!(encoded.text.contains("connection: close\r\n") && !encoded.text.contains("transfer-encoding"));
    let encoded = encode(HTTP10, 200, &[("content-length", "1")]);
    assert!(encoded.keep_alive);
    assert!(encoded.text.contains("connection: keep-alive\r\n"));
}

#[test]
fn answers_without_a_body_say_so() {
    let head_request = Asked {
        context: HeadContext { head_method: true, complete_body_length: Some(0), ..HTTP11.context },
        ..HTTP11
    };
    let encoded = encode(head_request, 200, &[("content-length", "99")]);
    assert_eq!(encoded.head.body, AnswerBody::None);
    assert!(encoded.text.contains("content-length: 99\r\n"));
    let encoded = encode(head_request, 200, &[]);
    assert!(!encoded.text.contains("content-length"), "the length of what GET would give is not known");
    for status in [204, 304] {
        let encoded = encode(HTTP11, status, &[("content-length", "3")]);
        assert_eq!(encoded.head.body, AnswerBody::None);
        assert!(
            !encoded.text.contains("content-length") && !encoded.text.contains("transfer-encoding"),
            "{}",
            encoded.text
        );
        assert!(encoded.keep_alive);
    }
    let encoded = encode(HTTP11, 205, &[("content-length", "3")]);
    assert_eq!(encoded.head.body, AnswerBody::None);
    assert!(encoded.text.contains("content-length: 0\r\n"));
}

#[test]
fn what_concerns_one_connection_is_ours_to_say() {
    let fields = [
        ("Connection", "foo, Close"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("rack.hijack", "x"),
        ("Rack.Other", "x"),
    ];
    let encoded = encode(HTTP11, 200, &fields);
    assert!(!encoded.keep_alive);
    assert_eq!(encoded.text.matches("connection: ").count(), 1);
    assert!(encoded.text.contains("connection: close\r\n"));
    assert!(
        !encoded.text.to_lowercase().contains("rack.") && !encoded.text.contains("Keep-Alive"),
        "{}",
        encoded.text
    );
    let closing = Asked { keep_alive: false, ..HTTP11 };
    assert!(encode(closing, 200, &[]).text.contains("connection: close\r\n"));
}

#[test]
fn an_upgrade_keeps_its_fields() {
    let encoded = encode(HTTP11, 101, &[("Upgrade", "websocket"), ("Connection", "Upgrade")]);
    assert_eq!(encoded.head.body, AnswerBody::Connection);
    assert!(encoded.text.starts_with("HTTP/1.1 101 Switching Protocols\r\ndate: "));
    assert!(encoded.text.contains("\r\nUpgrade: websocket\r\n"));
    assert!(encoded.text.contains("connection: upgrade\r\n") && !encoded.text.contains("connection: close"));
    assert!(!encoded.text.contains("transfer-encoding") && !encoded.head.is_interim());
}

#[test]
fn a_hijacked_answer_ends_with_the_connection() {
    let hijack = Asked { context: HeadContext { hijack: true, ..HTTP11.context }, ..HTTP11 };
    let encoded = encode(hijack, 200, &[("content-type", "text/event-stream")]);
    assert_eq!(encoded.head.body, AnswerBody::Connection);
    assert!(encoded.text.contains("connection: close\r\n"));
}

#[test]
fn interim_heads_are_short_and_only_for_http11() {
    let encoded = encode(HTTP11, 103, &[("link", "</a.css>; rel=preload")]);
    assert!(encoded.head.is_interim() && encoded.keep_alive);
    assert_eq!(encoded.text, "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n");
    assert_eq!(encode(HTTP10, 103, &[]).text, "");
}

#[test]
fn a_body_that_the_application_chunked_is_framed_by_us() {
    let encoded = encode(HTTP11, 200, &[("Transfer-Encoding", "chunked")]);
    assert!(encoded.body_is_chunked);
    assert_eq!(encoded.head.body, AnswerBody::Unknown);
    assert_eq!(encoded.text.matches("transfer-encoding").count(), 1);
    let encoded = encode(HTTP10, 200, &[("Transfer-Encoding", "chunked"), ("content-length", "4")]);
    assert_eq!(encoded.head.body, AnswerBody::Unknown);
    assert!(!encoded.text.contains("ransfer-") && !encoded.text.contains("content-length"));
}

#[test]
fn statuses_without_a_phrase_keep_the_space() {
    assert!(encode(HTTP11, 599, &[]).text.starts_with("HTTP/1.1 599 \r\n"));
}

#[test]
fn malformed_bytes_are_a_breach() {
    assert_eq!(breach(b""), "is too short");
    assert_eq!(breach(&payload(99, &[])), "has a status outside 100 to 999");
    assert_eq!(breach(&payload(1000, &[])), "has a status outside 100 to 999");
    let whole = payload(200, &[("a", "b"), ("name", "value")]);
    for length in 5..whole.len() {
        if length != payload(200, &[("a", "b")]).len() {
            assert_eq!(breach(&whole[..length]), "is cut off in a field", "{length}");
        }
    }
    for name in ["", "a b", "a:", "a\r\n", "é"] {
        assert_eq!(breach(&payload(200, &[(name, "")])), "has a field name that is not a token");
    }
    for value in ["a\r\nb: c", "a\n", "\r", "\0", "\x01", "\x7f"] {
        assert_eq!(breach(&payload(200, &[("a", value)])), "has a field value with a control character");
    }
}

#[test]
fn an_application_that_contradicts_itself_breaks_no_worker() {
    for value in ["", "+5", "5, 5", "-1", "18446744073709551616", " 5"] {
        let fields = [("content-length", value)];
        assert_eq!(unsendable(&payload(200, &fields)), "has a malformed Content-Length", "{value}");
    }
    let twice = [("content-length", "5"), ("Content-Length", "5")];
    assert_eq!(unsendable(&payload(200, &twice)), "has two Content-Length fields");
    let gzip = [("transfer-encoding", "gzip, chunked")];
    assert_eq!(unsendable(&payload(200, &gzip)), "has a transfer coding other than chunked");
}

#[test]
fn a_length_beyond_the_payload_is_a_breach() {
    let mut bytes = payload(200, &[("a", "b")]);
    bytes[6..10].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(breach(&bytes), "is cut off in a field");
}

#[test]
fn dates_are_well_formed() {
    let date = DateCache::new();
    let text = String::from_utf8(date.now().to_vec()).unwrap();
    assert!(httpdate::parse_http_date(&text).is_ok(), "{text}");
}

#[test]
fn numbers_are_written_whole() {
    for number in [0, 7, 10, 999, u64::MAX] {
        let mut out = Vec::new();
        write_number(number, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        assert_eq!(parse_length(number.to_string().as_bytes()), Some(number));
    }
}

/// The head that a client gets of an answer whose body is a file.
fn sent(fields: &[(&str, &str)], status: u16) -> Option<(AnswerHead, String)> {
    let payload = payload(status, fields);
    let context = HeadContext { sent_file: Some(sent_file(&payload, None)?), ..HTTP11.context };
    let mut events = AnswerEvents::default();
    let head = events.push_head(|lines| Ok::<_, BadHead>(read(&payload, &context, lines)?.head)).unwrap();
    let mut writer = Writer::default();
    writer.begin(Version::Http11, true);
    Some((head, String::from_utf8(written(&mut events, &mut writer)).unwrap()))
}

#[test]
fn the_body_of_a_file_has_a_length_and_parts() {
    let (head, text) = sent(&[("Content-Length", "7"), ("ETag", "\"a\"")], 200).unwrap();
    assert_eq!((head.status, head.body), (200, AnswerBody::Length(7)));
    assert!(text.contains("\r\naccept-ranges: bytes\r\n"), "{text}");
    let (_, text) = sent(&[("content-length", "7"), ("Accept-Ranges", "none")], 200).unwrap();
    assert!(text.contains("Accept-Ranges: none") && !text.contains("bytes"), "{text}");
}

#[test]
fn what_is_no_whole_file_is_sent_as_the_head_says() {
    for (fields, status) in [
        (&[("content-length", "7")][..], 404),
        (&[("content-length", "7"), ("content-range", "bytes 0-6/9")], 200),
        (&[("content-length", "7"), ("transfer-encoding", "chunked")], 200),
        (&[("content-length", "x")], 200),
        (&[], 200),
    ] {
        assert!(sent(fields, status).is_none(), "{status} {fields:?}");
    }
}

#[test]
fn paths_are_for_proxies() {
    let fields = [("X-Sendfile", "/srv/a"), ("x-accel-redirect", "/b"), ("X-Accel-Buffering", "no")];
    assert!(encode(HTTP11, 200, &fields).text.contains("X-Sendfile: /srv/a\r\nx-accel-redirect: /b\r\n"));
    let direct = Asked { context: HeadContext { recipient: Recipient::Client, ..HTTP11.context }, ..HTTP11 };
    let text = encode(direct, 200, &fields).text;
    assert!(
        !text.contains("/srv/a") && !text.contains("/b") && text.contains("X-Accel-Buffering: no"),
        "{text}"
    );
}

#[test]
fn streams_are_named_by_event_streams_alone_and_never_sent_on() {
    let named = |status, fields: &[(&str, &str)]| {
        held_streams(&payload(status, fields)).map(|names| String::from_utf8(names).unwrap())
    };
    let (kind, streams) = (("Content-Type", "Text/Event-Stream; charset=utf-8"), ("Highball-Stream", "a, b"));
    let twice = named(200, &[kind, streams, ("highball-stream", "c")]);
    assert_eq!(twice.as_deref(), Some("a, b,c,"));
    let html = ("content-type", "text/html");
    let others = [named(404, &[kind, streams]), named(200, &[streams]), named(200, &[html, streams])];
    assert!(others.iter().all(Option::is_none));
    assert_eq!(named(200, &[kind]), None);
    for status in [200, 404] {
        let encoded = encode(HTTP11, status, &[kind, streams]);
        assert!(!encoded.text.to_ascii_lowercase().contains("highball"), "{}", encoded.text);
    }
}

#[test]
fn an_answer_for_the_front_is_believed_only_where_the_front_has_asked() {
    let is_for_front = |status, cable, upgrade| {
        let context = HeadContext { cable, upgrade, ..HTTP11.context };
        let mut events = AnswerEvents::default();
        let mut is_for_front = false;
        let pushed = events.push_head(|lines| {
            let read = read(&payload(status, &[("Highball-Cable", "1")]), &context, lines)?;
            is_for_front = read.is_for_front;
            Ok::<_, BadHead>(read.head)
        });
        pushed.unwrap();
        is_for_front
    };
    assert!(is_for_front(101, true, true) && is_for_front(200, true, false));
    assert!(!is_for_front(200, true, true) && !is_for_front(404, true, false));
    assert!(!is_for_front(101, false, true) && !is_for_front(200, false, false));
    let encoded = encode(HTTP11, 200, &[("Highball-Cable", "1")]);
    assert!(!encoded.text.to_ascii_lowercase().contains("highball"), "{}", encoded.text);
}
