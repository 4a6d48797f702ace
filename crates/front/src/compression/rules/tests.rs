use super::*;
use crate::message::answer::{AnswerEvent, AnswerEvents};
use crate::message::request_head::RequestHead;
use crate::protocol::http1::reader::{Parsed, Reader};
use crate::tests::limits::limits;

/// What a request with these fields says.
fn asked_by(method_and_target: &str, fields: &[&str]) -> Option<Asked> {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let text = format!("{method_and_target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut head = RequestHead::new();
    let limits = highball_config::Limits { head_bytes: 1 << 20, ..limits() };
    let parsed = Reader::default().parse(text.as_bytes(), &limits, &mut head).unwrap();
    assert!(matches!(parsed, Parsed::Complete { .. }), "{text}");
    Asked::of(head.with(text.as_bytes()))
}

fn get(fields: &[&str]) -> Asked {
    asked_by("GET /", fields).unwrap()
}

fn of(status: u16, body: AnswerBody, lines: &str, asked: &Asked) -> Verdict {
    judge(asked, &AnswerHead { body, ..AnswerHead::new(status) }, lines.as_bytes(), None)
}

const HTML: &str = "content-type: text/html\r\n";
const ZSTD: Verdict = Verdict::Compressed(Coding::Zstd);

#[test]
fn without_accept_encoding_nothing_is_looked_at() {
    assert_eq!(asked_by("GET /", &["cookie: a=b"]), None);
    assert!(asked_by("GET /", &["accept-encoding:"]).is_some());
}

#[test]
fn only_what_becomes_shorter_and_may_be_changed_is_compressed() {
    let asked = get(&["accept-encoding: gzip, br, zstd"]);
    let verdict = |status, lines: &str| of(status, AnswerBody::Unknown, lines, &asked);
    for status in [200, 201, 203, 404, 422, 500] {
        assert_eq!(verdict(status, HTML), ZSTD, "{status}");
    }
    for status in [101, 103, 204, 205, 206, 304] {
        assert_eq!(verdict(status, HTML), Verdict::AsItIs, "{status}");
    }
    assert_eq!(of(200, AnswerBody::Connection, HTML, &asked), Verdict::AsItIs, "taken over");
    for lines in [
        "",
        "content-type: image/png\r\n",
        "content-type: text/html\r\ncontent-encoding: gzip\r\n",
        "content-type: text/html\r\ncontent-encoding: identity\r\n",
        "content-type: text/html\r\nCache-Control: public, No-Transform\r\n",
        "content-type: text/html\r\ncontent-range: bytes 0-1/2\r\n",
        "content-type: text/html\r\ncontent-md5: Q2hlY2sgSW50ZWdyaXR5IQ==\r\n",
        "content-type: text/html\r\ndigest: sha-256=x\r\n",
        "content-type: text/html\r\nrepr-digest: sha-256=:x:\r\n",
        "content-type: text/html\r\ncontent-digest: sha-256=:x:\r\n",
    ] {
        assert_eq!(verdict(200, lines), Verdict::AsItIs, "{lines}");
    }
    let with_length = |length| judge(&asked, &AnswerHead::new(200), HTML.as_bytes(), Some(length));
    assert_eq!([with_length(LEAST_BYTES - 1), with_length(LEAST_BYTES)], [Verdict::AsItIs, ZSTD]);
}

#[test]
fn one_who_takes_none_of_ours_gets_it_as_it_is_and_caches_learn_that_it_varies() {
    for accept in ["identity", "deflate", "gzip;q=0", "gzip;q=0.5, identity", "", "gzip;q=\"x\""] {
        let asked = get(&[&format!("accept-encoding: {accept}")]);
        assert_eq!(of(200, AnswerBody::Unknown, HTML, &asked), Verdict::Varies, "{accept}");
        assert_eq!(of(200, AnswerBody::Unknown, "", &asked), Verdict::AsItIs, "{accept}");
    }
    let garbage = format!("accept-encoding: {}gzip", ",;q=".repeat(16_000));
    assert_eq!(of(200, AnswerBody::Unknown, HTML, &get(&[&garbage])), Verdict::Varies);
}

#[test]
fn lengths_tell_other_sites_nothing_about_secrets() {
    let cookie = "content-type: text/html\r\nset-cookie: a=b\r\n";
    for (target, fields, plain, with_cookie) in [
        ("GET /?q=guess", &[][..], ZSTD, ZSTD),
        ("GET /", &["cookie: a"], ZSTD, ZSTD),
        ("GET /?q=guess", &["cookie: a"], ZSTD, Verdict::Varies),
        ("GET /?q=guess", &["authorization: Basic x"], ZSTD, Verdict::Varies),
        ("POST /", &["cookie: a", "content-length: 5"], ZSTD, Verdict::Varies),
        ("GET /?q=guess", &["cookie: a", "sec-fetch-site: same-origin"], ZSTD, ZSTD),
        ("GET /?q=guess", &["cookie: a", "sec-fetch-site: none"], ZSTD, ZSTD),
        ("GET /?q=guess", &["cookie: a", "sec-fetch-site: cross-site"], Verdict::Varies, Verdict::Varies),
        ("GET /guess", &["cookie: a", "sec-fetch-site: same-site"], Verdict::Varies, Verdict::Varies),
        ("GET /?q=guess", &["sec-fetch-site: cross-site"], ZSTD, ZSTD),
    ] {
        let asked = asked_by(target, &[&["accept-encoding: zstd"], fields].concat()).unwrap();
        let verdicts = [HTML, cookie].map(|lines| of(200, AnswerBody::Unknown, lines, &asked));
        assert_eq!(verdicts, [plain, with_cookie], "{target} {fields:?}");
    }
}

#[test]
fn a_client_that_has_it_compressed_does_not_get_it_again() {
    let lines = "content-type: text/html\r\netag: \"a\"\r\n";
    let verdict = |status, tags: &str, lines: &str| {
        let fields = ["accept-encoding: gzip, zstd", &format!("if-none-match: {tags}")];
        of(status, AnswerBody::Unknown, lines, &get(&fields))
    };
    for tags in ["W/\"a\"", "\"b\", W/\"a\""] {
        assert_eq!(verdict(200, tags, lines), Verdict::NotModified, "{tags}");
        assert_eq!(verdict(304, tags, "etag: \"a\"\r\n"), Verdict::StillNotModified, "{tags}");
        assert_eq!(verdict(404, tags, lines), ZSTD, "{tags}");
    }
    for tags in ["W/\"b\"", "\"a\"", "W/\"a", "*"] {
        assert_eq!(verdict(200, tags, lines), ZSTD, "{tags}");
        assert_eq!(verdict(304, tags, "etag: \"a\"\r\n"), Verdict::AsItIs, "{tags}");
    }
    assert_eq!(
        verdict(200, "W/\"a\"", "content-type: text/html\r\netag: W/\"a\"\r\n"),
        ZSTD,
        "the application's"
    );
    let post = ["accept-encoding: zstd", "if-none-match: W/\"a\"", "content-length: 0"];
    assert_eq!(of(200, AnswerBody::Unknown, lines, &asked_by("POST /", &post).unwrap()), ZSTD);
}

#[test]
fn the_head_says_what_was_done() {
    let written = |lines: &str, verdict| {
        let mut events = AnswerEvents::default();
        events
            .push_head::<()>(|fields| {
                write_fields(lines.as_bytes(), verdict, fields);
                Ok(AnswerHead::new(200))
            })
            .unwrap();
        let Some(AnswerEvent::Head(head)) = events.take_unless(|_| false) else { panic!("no head") };
        String::from_utf8(events.take_bytes(head.field_bytes).to_vec()).unwrap()
    };
    let lines = "ETag: \"a\"\r\nVary: Cookie\r\nAccept-Ranges: bytes\r\ncontent-type: text/css\r\nx: y\r\n";
    assert_eq!(written(lines, Verdict::AsItIs), lines);
    assert_eq!(
        written(lines, ZSTD),
        "ETag: W/\"a\"\r\nVary: Cookie, accept-encoding\r\ncontent-type: text/css\r\nx: y\r\ncontent-encoding: zstd\r\n"
    );
    assert_eq!(
        written(lines, Verdict::NotModified),
        "ETag: W/\"a\"\r\nVary: Cookie, accept-encoding\r\nx: y\r\n"
    );
    assert_eq!(
        written(lines, Verdict::Varies),
        "ETag: \"a\"\r\nVary: Cookie, accept-encoding\r\nAccept-Ranges: bytes\r\ncontent-type: text/css\r\nx: y\r\n"
    );
    assert_eq!(
        written("etag: W/\"a\"\r\n", ZSTD),
        "etag: W/\"a\"\r\nvary: accept-encoding\r\ncontent-encoding: zstd\r\n"
    );
    for vary in ["vary: *\r\n", "vary: a, Accept-Encoding\r\n"] {
        assert_eq!(written(vary, Verdict::Varies), vary);
    }
}
