use super::*;

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

const HTTP11: HeadContext = HeadContext {
    request_version: Version::Http11,
    head_method: false,
    keep_alive: true,
    complete_body_length: None,
    hijack: false,
    upgrade: true,
};
const HTTP10: HeadContext = HeadContext { request_version: Version::Http10, ..HTTP11 };

fn encoded(context: HeadContext, status: u16, fields: &[(&str, &str)]) -> (ResponseHead, String) {
    let mut out = b"before".to_vec();
    let head = encode(&payload(status, fields), &context, &DateCache::new(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    (head, text.strip_prefix("before").unwrap().to_owned())
}

fn refused(payload: &[u8]) -> BadHead {
    let mut out = b"before".to_vec();
    let result = encode(payload, &HTTP11, &DateCache::new(), &mut out);
    assert_eq!(out, b"before", "nothing of a refused head may stay");
    result.unwrap_err()
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
    let (head, text) = encoded(HTTP11, 200, &fields);
    assert!(
        text.starts_with(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-empty: \r\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("transfer-encoding: chunked\r\n\r\n"), "{text}");
    assert_eq!(head.framing, ResponseFraming::Chunked);
    assert!(head.keep_alive);
}

#[test]
fn the_date_is_added_unless_the_application_gave_one() {
    let (_, text) = encoded(HTTP11, 200, &[]);
    assert_eq!(text.matches("date: ").count(), 1);
    let (_, text) = encoded(HTTP11, 200, &[("Date", "Thu, 01 Jan 1970 00:00:00 GMT")]);
    assert!(text.contains("Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"));
    assert!(!text.contains("date: "));
}

#[test]
fn a_declared_length_frames_the_body() {
    let (head, text) = encoded(HTTP11, 200, &[("Content-Length", "12")]);
    assert_eq!(head.framing, ResponseFraming::Length(12));
    assert!(text.contains("content-length: 12\r\n") && !text.contains("transfer-encoding"));
}

#[test]
fn a_declared_length_wins_over_a_known_one() {
    let known = HeadContext { complete_body_length: Some(5), ..HTTP11 };
    let (head, text) = encoded(known, 200, &[("Content-Length", "12")]);
    assert_eq!(head.framing, ResponseFraming::Length(12));
    assert_eq!(head.declared_length, Some(12));
    assert!(text.contains("content-length: 12\r\n"));
    let (head, _) = encoded(known, 200, &[]);
    assert_eq!(head.framing, ResponseFraming::Length(5));
}

#[test]
fn a_protocol_that_was_not_offered_is_refused() {
    let context = HeadContext { upgrade: false, ..HTTP11 };
    let payload = payload(101, &[("upgrade", "chat")]);
    let refused = encode(&payload, &context, &DateCache::new(), &mut Vec::new());
    assert!(matches!(refused, Err(BadHead::Unsendable(_))), "{refused:?}");
}

#[test]
fn http10_without_a_length_ends_with_the_connection() {
    let (head, text) = encoded(HTTP10, 200, &[]);
    assert_eq!(head.framing, ResponseFraming::UntilClose);
    assert!(!head.keep_alive);
    assert!(text.contains("connection: close\r\n") && !text.contains("transfer-encoding"));
    let (head, text) = encoded(HTTP10, 200, &[("content-length", "1")]);
    assert!(head.keep_alive);
    assert!(text.contains("connection: keep-alive\r\n"));
}

#[test]
fn answers_without_a_body_say_so() {
    let head_request = HeadContext { head_method: true, complete_body_length: Some(0), ..HTTP11 };
    let (head, text) = encoded(head_request, 200, &[("content-length", "99")]);
    assert_eq!(head.framing, ResponseFraming::None);
    assert!(text.contains("content-length: 99\r\n"));
    let (_, text) = encoded(head_request, 200, &[]);
    assert!(!text.contains("content-length"), "the length of what GET would give is not known");
    for status in [204, 304] {
        let (head, text) = encoded(HTTP11, status, &[("content-length", "3")]);
        assert_eq!(head.framing, ResponseFraming::None);
        assert!(!text.contains("content-length") && !text.contains("transfer-encoding"), "{text}");
        assert!(head.keep_alive);
    }
    let (head, text) = encoded(HTTP11, 205, &[("content-length", "3")]);
    assert_eq!(head.framing, ResponseFraming::None);
    assert!(text.contains("content-length: 0\r\n"));
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
    let (head, text) = encoded(HTTP11, 200, &fields);
    assert!(!head.keep_alive);
    assert_eq!(text.matches("connection: ").count(), 1);
    assert!(text.contains("connection: close\r\n"));
    assert!(!text.to_lowercase().contains("rack.") && !text.contains("Keep-Alive"), "{text}");
    let closing = HeadContext { keep_alive: false, ..HTTP11 };
    assert!(encoded(closing, 200, &[]).1.contains("connection: close\r\n"));
}

#[test]
fn an_upgrade_keeps_its_fields() {
    let (head, text) = encoded(HTTP11, 101, &[("Upgrade", "websocket"), ("Connection", "Upgrade")]);
    assert_eq!(head.framing, ResponseFraming::UntilClose);
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"));
    assert!(text.contains("connection: upgrade\r\n") && !text.contains("connection: close"));
    assert!(!text.contains("transfer-encoding") && !head.is_interim());
}

#[test]
fn a_hijacked_answer_ends_with_the_connection() {
    let hijack = HeadContext { hijack: true, ..HTTP11 };
    let (head, text) = encoded(hijack, 200, &[("content-type", "text/event-stream")]);
    assert_eq!(head.framing, ResponseFraming::UntilClose);
    assert!(text.contains("connection: close\r\n"));
}

#[test]
fn interim_heads_are_short_and_only_for_http11() {
    let (head, text) = encoded(HTTP11, 103, &[("link", "</a.css>; rel=preload")]);
    assert!(head.is_interim() && head.keep_alive);
    assert_eq!(text, "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n");
    assert_eq!(encoded(HTTP10, 103, &[]).1, "");
}

#[test]
fn a_body_that_the_application_chunked_is_framed_by_us() {
    let (head, text) = encoded(HTTP11, 200, &[("Transfer-Encoding", "chunked")]);
    assert!(head.body_is_chunked);
    assert_eq!(head.framing, ResponseFraming::Chunked);
    assert_eq!(text.matches("transfer-encoding").count(), 1);
    let (head, text) = encoded(HTTP10, 200, &[("Transfer-Encoding", "chunked"), ("content-length", "4")]);
    assert_eq!(head.framing, ResponseFraming::UntilClose);
    assert!(!text.contains("ransfer-") && !text.contains("content-length"));
}

#[test]
fn statuses_without_a_phrase_keep_the_space() {
    assert!(encoded(HTTP11, 599, &[]).1.starts_with("HTTP/1.1 599 \r\n"));
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
