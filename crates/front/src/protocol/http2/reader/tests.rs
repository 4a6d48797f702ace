use highball_config::Limits;
use http::request::Parts;
use http::Request;

use super::read;
use crate::message::refusal::Refusal;
use crate::message::request_head::{known_key, BodyFraming, Method, RequestHead, Version};
use crate::tests::heads::CONTEXT;
use crate::tests::limits::limits;

/// A request for `http://example.org/a?b`, unless `fields` say otherwise.
fn request(method: &str, uri: &str, fields: &[(&str, &str)]) -> Parts {
    let request = Request::builder().method(method).uri(uri);
    let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn get(fields: &[(&str, &str)]) -> Parts {
    request("GET", "http://example.org/a?b", fields)
}

fn read_with(request: &Parts, has_body: bool, limits: &Limits) -> Result<(RequestHead, Vec<u8>), Refusal> {
    let mut head = RequestHead::new();
    let text = read(request, has_body, limits, &mut head)?;
    Ok((head, text))
}

fn refusal(request: &Parts, has_body: bool) -> Refusal {
    read_with(request, has_body, &limits()).unwrap_err()
}

fn framing(fields: &[(&str, &str)], has_body: bool) -> BodyFraming {
    read_with(&request("POST", "http://example.org/", fields), has_body, &limits()).unwrap().0.framing
}

#[test]
fn a_head_says_what_the_pseudo_header_fields_and_the_others_say() {
    let request = get(&[("user-agent", "curl"), ("x-one", "1"), ("x-one", "2")]);
    let (head, text) = read_with(&request, false, &limits()).unwrap();
    assert_eq!((head.method, head.version), (Method::Get, Version::Http2));
    assert_eq!(
        (head.with(&text).target(), head.with(&text).path(), head.with(&text).query()),
        (&b"/a?b"[..], &b"/a"[..], &b"b"[..])
    );
    assert_eq!(head.host().unwrap().name(&text), b"example.org");
    assert_eq!(head.with(&text).field(known_key::USER_AGENT), Some(&b"curl"[..]));
    assert_eq!(head.with(&text).fields().filter(|(name, _)| *name == b"x-one").count(), 2);
    assert!(!head.keep_alive && !head.upgrade);
    assert!(head.may_be_for_file());
}

#[test]
fn crumbs_of_a_cookie_are_joined() {
    let request = get(&[("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2"), ("cookie", "c=3")]);
    let (head, text) = read_with(&request, false, &limits()).unwrap();
    let mut block = Vec::new();
    head.encode_for_ring(&text, &CONTEXT, &mut block);
    let has = |part: &[u8]| block.windows(part.len()).any(|window| window == part);
    assert!(has(b"a=1; b=2; c=3"));
    assert!(has(b"HTTP/2"), "SERVER_PROTOCOL");
}

#[test]
fn the_host_is_named_once() {
    let by_field = |host| read_with(&request("GET", "/", &[("host", host)]), false, &limits());
    let (head, text) = by_field("example.org:81").unwrap();
    assert_eq!(head.host().unwrap().name(&text), b"example.org");
    assert_eq!(by_field("a b").unwrap_err(), Refusal::HostInvalid);
    assert!(read_with(&get(&[("host", "EXAMPLE.org")]), false, &limits()).is_ok());
    assert_eq!(refusal(&get(&[("host", "example.net")]), false), Refusal::HostDiffers);
    assert_eq!(refusal(&get(&[("host", "example.org:80")]), false), Refusal::HostDiffers);
    assert_eq!(
        refusal(&get(&[("host", "example.org"), ("host", "example.org")]), false),
        Refusal::HostRepeated
    );
    assert_eq!(refusal(&request("GET", "/", &[]), false), Refusal::HostMissing);
    assert_eq!(refusal(&request("GET", "http://user@example.org/", &[]), false), Refusal::HostInvalid);
}

#[test]
fn a_body_is_as_long_as_announced_or_as_its_stream() {
    assert_eq!(framing(&[], false), BodyFraming::None);
    assert_eq!(framing(&[], true), BodyFraming::Unknown);
    assert_eq!(framing(&[("content-length", "5")], true), BodyFraming::Length(5));
    assert_eq!(framing(&[("content-length", "0")], true), BodyFraming::None);
    for (fields, expected) in [
        (&[("content-length", "5 ")][..], Refusal::BadFieldValue),
        (&[("content-length", "+5")], Refusal::BadContentLength),
        (&[("content-length", "5"), ("content-length", "5")], Refusal::ContentLengthRepeated),
    ] {
        assert_eq!(refusal(&request("POST", "http://example.org/", fields), true), expected);
    }
}

#[test]
fn only_one_expectation_is_known() {
    let post = |value| request("POST", "http://example.org/", &[("expect", value)]);
    assert!(read_with(&post("100-continue"), true, &limits()).unwrap().0.expect_continue);
    assert!(!read_with(&post("100-continue"), false, &limits()).unwrap().0.expect_continue, "no body");
    assert_eq!(refusal(&post("tea"), true), Refusal::UnknownExpectation);
}

#[test]
fn limits_are_those_of_every_protocol() {
    let long = format!("http://example.org/{}", "a".repeat(1000));
    assert_eq!(refusal(&request("GET", &long, &[]), false), Refusal::TargetTooLong);
    let many: Vec<(String, &str)> = (0..51).map(|number| (format!("x-{number}"), "1")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&name[..], *value)).collect();
    assert_eq!(refusal(&get(&many), false), Refusal::TooManyFields);
    assert!(read_with(&get(&many[1..]), false, &limits()).is_ok());
    assert_eq!(refusal(&get(&[("x-large", &"a".repeat(10_000))]), false), Refusal::HeadTooLarge);
}

#[test]
fn methods_and_schemes_are_those_of_every_protocol() {
    assert_eq!(refusal(&request(&"A".repeat(33), "http://example.org/", &[]), false), Refusal::MethodTooLong);
    assert!(read_with(&request(&"A".repeat(32), "http://example.org/", &[]), false, &limits()).is_ok());
    for scheme in ["ftp", "htt", "httpsx", "1http"] {
        let uri = format!("{scheme}://example.org/");
        assert_eq!(refusal(&request("GET", &uri, &[]), false), Refusal::BadTarget, "{scheme}");
    }
    for scheme in ["http", "https", "HTTP"] {
        let uri = format!("{scheme}://example.org/");
        assert!(read_with(&request("GET", &uri, &[]), false, &limits()).is_ok(), "{scheme}");
    }
}

#[test]
fn there_are_no_tunnels() {
    assert_eq!(refusal(&request("CONNECT", "example.org:443", &[]), true), Refusal::ConnectMethod);
    assert_eq!(refusal(&connect("connect-udp", &[]), true), Refusal::ConnectMethod);
}

fn connect(protocol: &'static str, fields: &[(&str, &str)]) -> Parts {
    let mut request = request("CONNECT", "http://example.org/cable", fields);
    request.extensions.insert(h2::ext::Protocol::from_static(protocol));
    request
}

#[test]
fn a_websocket_is_what_it_is_in_http_1() {
    let fields = [("sec-websocket-version", "13"), ("sec-websocket-key", "of the client")];
    let (head, text) = read_with(&connect("websocket", &fields), true, &limits()).unwrap();
    assert_eq!(
        (head.method, head.with(&text).method_name(), head.framing),
        (Method::Get, &b"GET"[..], BodyFraming::None)
    );
    assert!(head.upgrade && !head.may_be_for_file());
    assert_eq!(head.with(&text).field(known_key::UPGRADE), Some(&b"websocket"[..]));
    assert_eq!(head.with(&text).field(known_key::CONNECTION), Some(&b"upgrade"[..]));
    let keys = head.with(&text).fields().filter(|(name, _)| *name == b"sec-websocket-key");
    assert_eq!(keys.collect::<Vec<_>>(), [(&b"sec-websocket-key"[..], &b"dGhlIHNhbXBsZSBub25jZQ=="[..])]);
}

#[test]
fn the_whole_server_is_a_star() {
    let (head, text) =
        read_with(&request("OPTIONS", "*", &[("host", "example.org")]), false, &limits()).unwrap();
    assert_eq!(head.with(&text).path(), b"*");
    assert_eq!(refusal(&request("GET", "*", &[("host", "example.org")]), false), Refusal::BadTarget);
}
