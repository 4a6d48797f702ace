use super::*;
use crate::protocol::http1::reader::Reader;
use crate::test_limits::limits;

fn is_open_for(request_line: &str, probe_path: &str, prefix: &str) -> bool {
    let bytes = format!("{request_line} HTTP/1.1\r\nHost: a\r\n\r\n");
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    reader.parse(bytes.as_bytes(), &limits(), &mut head).unwrap();
    is_open(&head, bytes.as_bytes(), prefix.len(), probe_path)
}

#[test]
fn probes_and_challenges_need_no_password() {
    assert!(is_open_for("GET /up", "/up", ""));
    assert!(is_open_for("HEAD /up", "/up", ""));
    assert!(is_open_for("GET /shop/up", "/up", "/shop"));
    assert!(is_open_for("GET /up?deep=1", "/up?deep=1", ""));
    assert!(is_open_for("GET /.well-known/acme-challenge/aB3-_x", "/", ""));
}

#[test]
fn nothing_like_them_is_open() {
    for line in [
        "GET /",
        "GET /?x",
        "GET /up/",
        "GET /up/../admin",
        "GET /UP",
        "GET /%75p",
        "GET /up?x=1",
        "GET //up",
        "GET /up;x",
        "POST /up",
        "OPTIONS /up",
        "DELETE /.well-known/acme-challenge/a",
        "GET /.well-known/acme-challenge/",
        "GET /.well-known/acme-challenge/a/b",
        "GET /.well-known/acme-challenge/../x",
        "GET /.well-known/acme-challenge/..%2fx",
        "GET /.well-known/acme-challenge/a.b",
        "GET /.well-known/acme-challenge//a",
        "GET /x/.well-known/acme-challenge/a",
    ] {
        assert!(!is_open_for(line, "/up", ""), "{line}");
    }
    assert!(!is_open_for("GET /", "/", ""), "the page at the root is the application's");
    assert!(!is_open_for("GET /up", "/up?deep=1", ""));
    assert!(!is_open_for("GET /shop/up", "/shop/up", "/shop"));
}
