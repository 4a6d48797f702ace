use super::*;
use crate::message::request_head::{BodyFraming, Method, Version};
use crate::tests::limits::limits;

type Pair<'a> = (&'a str, &'a str);

fn read_with(pairs: &[Pair<'_>], has_body: bool) -> Result<CgiHead, Refusal> {
    let mut variables = Variables::default();
    for (name, value) in pairs {
        variables.note(name.as_bytes(), value.as_bytes());
    }
    let mut head = CgiHead::default();
    head.read(&variables, true, has_body, &limits()).map(|()| head)
}

fn read(pairs: &[Pair<'_>]) -> Result<CgiHead, Refusal> {
    read_with(&[&[("REQUEST_METHOD", "GET"), ("HTTP_HOST", "test")], pairs].concat(), false)
}

fn target(pairs: &[Pair<'_>]) -> Result<String, Refusal> {
    let head = read(pairs)?;
    Ok(String::from_utf8(head.head().with(head.buffer()).target().to_vec()).unwrap())
}

fn fields(head: &CgiHead) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    head.head()
        .with(head.buffer())
        .fields()
        .map(|(name, value)| format!("{}={}", text(name), text(value)))
        .collect()
}

/// What each web server sends for `GET /a%20b/c%2Fd//x/../y;z|?q=%41&r=+1` to `Example.com:81`.
#[test]
fn the_target_is_the_clients_behind_every_web_server() {
    const TARGET: &str = "/a%20b/c%2Fd//x/../y;z|?q=%41&r=+1";
    for (server, script_name, path_info, query) in [
        ("nginx", "/a b/c/d/y;z|", None, "q=%41&r=+1"),
        ("lighttpd", "/a b", Some("/c/d/y;z|"), "q=A&r=+1"),
        ("Apache", "/a b/c%2Fd/y;z|", None, "q=%41&r=+1"),
        ("HAProxy", "/a b/c/d//x/../y;z|", None, "q=%41&r=+1"),
    ] {
        let mut pairs = vec![("SCRIPT_NAME", script_name), ("QUERY_STRING", query), ("REQUEST_URI", TARGET)];
        pairs.extend(path_info.map(|path_info| ("PATH_INFO", path_info)));
        let head = read(&pairs).unwrap();
        let request = head.head().with(head.buffer());
        assert_eq!(request.target(), TARGET.as_bytes(), "{server}");
        assert_eq!(request.path(), b"/a%20b/c%2Fd//x/../y;z|", "{server}");
        assert_eq!(request.query(), b"q=%41&r=+1", "{server}");
    }
}

#[test]
fn without_request_uri_the_target_is_encoded_again() {
    for (script_name, path_info, query, expected) in [
        ("", "", "", "/"),
        ("/app", "/a b?c#d%", "q=%41", "/app/a%20b%3Fc%23d%25?q=%41"),
        ("", "/\u{e9}\n", "", "/%C3%A9%0A"),
        ("/app", "", "q", "/app?q"),
    ] {
        let pairs = [("SCRIPT_NAME", script_name), ("PATH_INFO", path_info), ("QUERY_STRING", query)];
        assert_eq!(target(&pairs).as_deref(), Ok(expected));
    }
}

#[test]
fn a_head_is_held_to_the_rules_of_http() {
    let long = "x".repeat(2000);
    for (pairs, refusal) in [
        (vec![("REQUEST_METHOD", "")], Refusal::BadRequestLine),
        (vec![("REQUEST_METHOD", "GET /other")], Refusal::BadRequestLine),
        (vec![("REQUEST_METHOD", "G\r\nX: y")], Refusal::BadRequestLine),
        (vec![("REQUEST_METHOD", "CONNECT")], Refusal::ConnectMethod),
        (vec![("REQUEST_METHOD", &long[..40])], Refusal::MethodTooLong),
        (vec![("REQUEST_URI", "/a b")], Refusal::BadTarget),
        (vec![("REQUEST_URI", "/a\r\nX: y")], Refusal::BadTarget),
        (vec![("REQUEST_URI", "/a#b")], Refusal::BadTarget),
        (vec![("REQUEST_URI", "a")], Refusal::BadTarget),
        (vec![("QUERY_STRING", "a b")], Refusal::BadTarget),
        (vec![("REQUEST_URI", &long)], Refusal::TargetTooLong),
        (vec![("SERVER_PROTOCOL", "INCLUDED")], Refusal::UnknownVersion),
        (vec![("HTTP_HOST", "a b")], Refusal::HostInvalid),
        (vec![("HTTP_HOST", "a\r\nX: y")], Refusal::BadFieldValue),
        (vec![("HTTP_X", "a\0")], Refusal::BadFieldValue),
        (vec![("HTTP_X", "a\r\n\r\nGET / HTTP/1.1")], Refusal::BadFieldValue),
        (vec![("CONTENT_TYPE", "a\n")], Refusal::BadFieldValue),
        (vec![("CONTENT_LENGTH", "5, 5")], Refusal::BadContentLength),
        (vec![("CONTENT_LENGTH", "+5")], Refusal::BadContentLength),
        (vec![("HTTP_X", "y"); 50], Refusal::TooManyFields),
        (vec![("HTTP_X", long.as_str()); 6], Refusal::HeadTooLarge),
    ] {
        assert_eq!(read(&pairs).map(|_| ()), Err(refusal), "{pairs:?}");
    }
}

#[test]
fn fields_of_the_web_servers_connection_and_the_proxy_are_dropped() {
    let head = read(&[
        ("HTTP_PROXY", "evil"),
        ("HTTP_CONNECTION", "close, upgrade"),
        ("HTTP_UPGRADE", "websocket"),
        ("HTTP_TRANSFER_ENCODING", "chunked"),
        ("HTTP_CONTENT_LENGTH", "7"),
        ("HTTP_CONTENT_TYPE", "text/other"),
        ("HTTP_EXPECT", "100-continue"),
        ("CONTENT_LENGTH", "5"),
        ("CONTENT_TYPE", "text/plain"),
        ("HTTP_X_FOO", "1"),
        ("HTTP_X_FOO", "2"),
        ("HTTP_X.DOT", "d"),
        ("HTTP_lower", "d"),
        ("HTTP_", "d"),
        ("HTTP_X\r\nY", "d"),
        ("HTTP_COOKIE", "a=b"),
        ("DOCUMENT_ROOT", "/srv"),
        ("REDIRECT_STATUS", "200"),
    ])
    .unwrap();
    let expected =
        ["host=test", "content-type=text/plain", "content-length=5", "X-FOO=1", "X-FOO=2", "COOKIE=a=b"];
    assert_eq!(fields(&head), expected);
    let request = head.head();
    assert_eq!(request.framing, BodyFraming::Length(5));
    assert!(!request.expect_continue && !request.upgrade);
}

#[test]
fn variables_that_nginx_sends_empty_count_as_absent() {
    let head =
        read(&[("CONTENT_LENGTH", ""), ("CONTENT_TYPE", ""), ("HTTPS", ""), ("SERVER_NAME", "")]).unwrap();
    assert_eq!(fields(&head), ["host=test"]);
    assert_eq!(head.head().framing, BodyFraming::None);
    assert!(!head.https);
    assert_eq!(head.server_name(), "");
    let old =
        read_with(&[("REQUEST_METHOD", "GET"), ("SERVER_PROTOCOL", "HTTP/1.0"), ("HTTP_HOST", "")], false);
    let old = old.unwrap();
    assert_eq!(old.head().version, Version::Http10);
    assert_eq!(old.head().host(), None);
}

#[test]
fn of_a_variable_that_is_sent_twice_the_last_counts() {
    let head = read(&[("HTTP_HOST", "other"), ("HTTPS", "on"), ("HTTPS", "off"), ("REQUEST_METHOD", "POST")])
        .unwrap();
    assert_eq!(fields(&head), ["host=other"]);
    assert_eq!(head.head().method, Method::Post);
    assert!(!head.https);
}

#[test]
fn a_request_without_host_has_the_web_servers_name() {
    let host = |pairs: &[Pair<'_>]| {
        let pairs = [&[("REQUEST_METHOD", "GET"), ("SERVER_PROTOCOL", "HTTP/3.0")], pairs].concat();
        read_with(&pairs, false).map(|head| fields(&head)[0].clone())
    };
    let named = |name: &str| Ok(format!("host={name}"));
    assert_eq!(host(&[("SERVER_NAME", "a.example"), ("SERVER_PORT", "80")]), named("a.example"));
    assert_eq!(host(&[("SERVER_NAME", "a.example"), ("SERVER_PORT", "8080")]), named("a.example:8080"));
    let https = [("SERVER_NAME", "a"), ("SERVER_PORT", "443"), ("REQUEST_SCHEME", "https")];
    assert_eq!(host(&https), named("a"));
    assert_eq!(host(&[("SERVER_NAME", "~^www\\.")]), Err(Refusal::HostMissing));
}

#[test]
fn an_absolute_target_names_the_host() {
    let head = read(&[("REQUEST_URI", "http://abs.example/x?y")]).unwrap();
    assert_eq!(head.head().host().unwrap().name(head.buffer()), b"abs.example");
    assert_eq!(head.head().with(head.buffer()).path(), b"/x");
}

#[test]
fn the_client_is_known_where_it_has_an_address() {
    let head = read(&[
        ("REMOTE_ADDR", "2001:db8::1"),
        ("REMOTE_PORT", "4711"),
        ("SERVER_PORT", "443"),
        ("HTTPS", "on"),
        ("SERVER_NAME", "www.example.com"),
    ])
    .unwrap();
    assert_eq!(head.remote_addr, Some("2001:db8::1".parse().unwrap()));
    assert_eq!((head.remote_port, head.server_port), (Some(4711), Some(443)));
    assert!(head.https);
    assert_eq!(head.server_name(), "www.example.com");
    let nowhere = read(&[("REMOTE_ADDR", "unix:"), ("REMOTE_PORT", "")]).unwrap();
    assert_eq!((nowhere.remote_addr, nowhere.remote_port), (None, None));
}

#[test]
fn a_body_may_have_an_unknown_length() {
    let pairs = [("REQUEST_METHOD", "POST"), ("HTTP_HOST", "a"), ("CONTENT_LENGTH", "-1")];
    assert_eq!(read_with(&pairs, true).unwrap().head().framing, BodyFraming::Unknown);
    assert_eq!(read_with(&pairs, false).unwrap().head().framing, BodyFraming::None);
}

#[test]
fn raw_names_follow_the_rules_of_names() {
    let note = |name: &str| {
        let mut variables = Variables { host: b"a", ..Variables::default() };
        variables.note_raw_field(name.as_bytes(), b"v").map(|()| variables.fields.len())
    };
    assert_eq!(note("X-Foo"), Ok(1));
    for dropped in ["X_Foo", "Proxy", "Connection", "Content-Length", "transfer-encoding"] {
        assert_eq!(note(dropped), Ok(0), "{dropped}");
    }
    for bad in ["", "a b", "a:", "a\r\nb"] {
        assert_eq!(note(bad), Err(Refusal::BadFieldName), "{bad:?}");
    }
    assert_eq!(note("Host"), Err(Refusal::HostRepeated));
}

#[test]
fn the_lines_of_an_answer_are_fields() {
    let fields: Vec<_> = fields_of(b"a: b\r\nSet-Cookie: c=d; e\r\nempty: \r\n").collect();
    assert_eq!(fields, [(&b"a"[..], &b"b"[..]), (b"Set-Cookie", b"c=d; e"), (b"empty", b"")]);
    assert_eq!(fields_of(b"").count(), 0);
}
