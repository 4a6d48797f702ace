//! Which requests are for the same answer.
//!
//! An attacker who has one answer stored in the place of another has it sent to everyone. So everything that the
//! application gets of a request is part of the key, byte by byte, unless it is known that answers for all do not depend on
//! it: [`is_harmless`] has a list of header fields, and the version of HTTP and the client's address are the same as such
//! fields. All other fields are part of the key, also unheard of ones, such as `X-Forwarded-Host` or
//! `X-Original-URL`. Beside the key, `Vary` counts. A test compares keys with what the application gets.

use crate::message::request_head::{Head, Method};

/// What the answer to a request is stored under: `base`, its URI, and beside that the host as it was sent, and the fields that
/// are part of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    bytes: Box<[u8]>,
    base_bytes: usize,
}

impl Key {
    /// The key of a request, of a client that uses TLS or not. `None`: it names no host, or its target is no path.
    pub fn of(head: Head<'_>, is_tls: bool) -> Option<Key> {
        let host = head.host()?.whole(head.text);
        let target = head.target();
        let mut bytes = base_of(is_tls, host, target)?;
        let base_bytes = bytes.len();
        // The application gets it so, and may compare it so.
        add_part(host, &mut bytes);
        let mut keyed: Vec<(Vec<u8>, &[u8])> = head
            .passed_fields()
            .filter(|(name, _)| !is_harmless(name))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        // Of one name, they stay in their order.
        keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, value) in &keyed {
            add_part(name, &mut bytes);
            add_part(value, &mut bytes);
        }
        Some(Key { bytes: bytes.into(), base_bytes })
    }

    /// What it has in common with all answers of this URI.
    pub fn base(&self) -> &[u8] {
        &self.bytes[..self.base_bytes]
    }

    /// All of it.
    pub fn whole(&self) -> &[u8] {
        &self.bytes
    }
}

/// What the answers of a URI are stored under, and forgotten together. The case of a host's name makes no difference, and
/// everything else does: a port that is the usual one, a dot at the end of the name, percent-encoding, the order of
/// parameters. `None`: the target is no path.
pub fn base_of(is_tls: bool, host: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    if !target.starts_with(b"/") {
        return None;
    }
    let mut base = Vec::with_capacity(1 + 8 + host.len() + target.len());
    base.push(u8::from(is_tls));
    add_part(&host.to_ascii_lowercase(), &mut base);
    add_part(target, &mut base);
    Some(base)
}

/// Adds a part with its length before it: no other parts look the same.
fn add_part(part: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    out.extend_from_slice(part);
}

/// Fields on which an answer for all clients does not depend, unless `Vary` names them. They are of three kinds: fields of
/// content negotiation, for which applications have `Vary`; fields about this cache, the connection or the content, of
/// which there is none; and fields that differ from one request to the next, such as ids and addresses.
const HARMLESS: [&[u8]; 55] = [
    b"accept",
    b"accept-charset",
    b"accept-encoding",
    b"accept-language",
    b"baggage",
    b"cache-control",
    b"cdn-loop",
    b"cf-connecting-ip",
    b"cf-connecting-ipv6",
    b"cf-ray",
    b"client-ip",
    b"connection",
    b"cookie",
    b"date",
    b"dnt",
    b"early-data",
    b"fastly-client-ip",
    b"fly-client-ip",
    b"fly-request-id",
    b"from",
    b"host",
    b"if-modified-since",
    b"if-none-match",
    b"keep-alive",
    b"max-forwards",
    b"pragma",
    b"priority",
    b"referer",
    b"save-data",
    b"te",
    b"traceparent",
    b"tracestate",
    b"true-client-ip",
    b"upgrade-insecure-requests",
    b"user-agent",
    b"via",
    b"x-amz-cf-id",
    b"x-amzn-trace-id",
    b"x-b3-parentspanid",
    b"x-b3-sampled",
    b"x-b3-spanid",
    b"x-b3-traceid",
    b"x-client-ip",
    b"x-cloud-trace-context",
    b"x-cluster-client-ip",
    b"x-correlation-id",
    b"x-datadog-parent-id",
    b"x-datadog-trace-id",
    b"x-forwarded-for",
    b"x-original-forwarded-for",
    b"x-queue-start",
    b"x-real-ip",
    b"x-request-id",
    b"x-request-start",
    b"x-turbo-request-id",
];

/// Whether a field is not part of the key.
pub fn is_harmless(name: &[u8]) -> bool {
    // Browsers say in these what they are and what they want a page for, as in User-Agent.
    let is_of_browser = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"sec-"));
    is_of_browser || HARMLESS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a request with this method changes nothing (RFC 9110 section 9.2.1).
pub(super) fn is_safe(method: Method) -> bool {
    matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use highball_ring::env_keys::KEYS;
    use highball_ring::request::{Fields, Fixed, FIXED_BYTES, HTTPS};
    use proptest::prelude::*;

    use super::*;
    use crate::cache::question::Question;
    use crate::cache::tests::head_of;
    use crate::cache::Asking;
    use crate::message::request_head::{RequestHead, RingContext};
    use crate::protocol::http1::reader::Reader;
    use crate::tests::heads::CONTEXT;
    use crate::tests::limits::limits;

    fn key(text: &str) -> Option<Key> {
        let (head, buffer) = head_of(text);
        Key::of(head.with(&buffer), false)
    }

    const PLAIN: &str = "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n";

    #[test]
    fn what_makes_no_difference() {
        for other in [
            "HEAD /a?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET /a?b=c HTTP/1.0\r\nHost: example.org\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nUser-Agent: x\r\nhost: example.org\r\nCookie: a=b\r\nAccept: */*\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-For: 192.0.2.1\r\nX-Request-Id: 1\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nSec-Fetch-Mode: navigate\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX_Forwarded_Host: never.passed.on\r\n\r\n",
        ] {
            assert_eq!(key(other), key(PLAIN), "{other}");
        }
    }

    #[test]
    fn fields_are_compared_one_by_one() {
        let with = |fields: &str| key(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).unwrap();
        assert_eq!(with("X-A: 1\r\nX-B: 2\r\n"), with("x-b: 2\r\nx-a: 1\r\n"));
        assert_ne!(with("X-A: 1\r\nX-A: 2\r\n"), with("X-A: 2\r\nX-A: 1\r\n"));
        assert_ne!(with("X-A: 1\r\n"), with("X-A: 1\r\nX-A: 1\r\n"));
        assert_ne!(with("X-A: 12\r\n"), with("X-A1: 2\r\n"));
        assert_eq!(with("X-A: 1\r\n").base(), with("X-B: 1\r\n").base());
    }

    #[test]
    fn what_has_no_key() {
        assert_eq!(key("GET http://example.org/a HTTP/1.1\r\nHost: example.org\r\n\r\n"), None);
        assert_eq!(key("GET /a HTTP/1.0\r\n\r\n"), None);
        assert_eq!(key("OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n"), None);
    }

    #[test]
    fn the_list_is_sorted_and_in_small_letters() {
        assert!(HARMLESS.is_sorted() && HARMLESS.iter().all(|name| **name == *name.to_ascii_lowercase()));
    }

    // --- What the application gets -------------------------------------------------------------------

    /// The parts of the env that a key leaves out on purpose, beside fields that are harmless.
    const LEFT_OUT: [&str; 2] = ["REQUEST_METHOD", "SERVER_PROTOCOL"];

    type Env = BTreeMap<Vec<u8>, Vec<u8>>;

    fn env(head: &RequestHead, buffer: &[u8], is_tls: bool) -> Env {
        let context = RingContext { https: is_tls, ..CONTEXT };
        let mut block = Vec::new();
        head.encode_for_ring(buffer, &context, &mut block);
        let fixed = Fixed::decode(block[..FIXED_BYTES].try_into().unwrap());
        let mut env = BTreeMap::from([(b"https".to_vec(), vec![u8::from(fixed.flags & HTTPS != 0)])]);
        for field in Fields::new(&block[FIXED_BYTES..]) {
            let known = KEYS.get(usize::from(field.key)).map(|key| key.as_bytes());
            env.insert(known.unwrap_or(field.name).to_vec(), field.value.to_vec());
        }
        env.retain(|name, _| {
            let field = name.strip_prefix(b"HTTP_").filter(|field| *field != b"HOST");
            let field = field.map(|field| field.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }));
            !field.is_some_and(|field| is_harmless(&field.collect::<Vec<u8>>()))
                && !LEFT_OUT.iter().any(|other| other.as_bytes() == name)
        });
        env
    }

    const HOSTS: &[&str] = &[
        "a.example",
        "A.example",
        "a.EXAMPLE",
        "a.example.",
        "a.example:80",
        "a.example:080",
        "a.example:443",
        "a.example:",
        "a%2eexample",
        "[::1]",
        "[0:0::1]",
        "[::1]:80",
        "127.0.0.1",
        "127.1",
    ];
    const TARGETS: &[&str] = &[
        "/p?q=1",
        "/P?q=1",
        "/p?q=1&",
        "/p?q=%31",
        "/%70?q=1",
        "/%7a",
        "/%7A",
        "/p",
        "/p?",
        "/p??",
        "//p",
        "/./p",
        "/p/",
        "/x/../p",
        "/p;x",
        "/p?a&b",
        "/p?b&a",
        "/p%2f",
        "/p%2F",
        "/\u{e9}",
        "/%C3%A9",
        "http://a.example/p?q=1",
    ];
    const FIELDS: &[&str] = &[
        "X-Forwarded-Host: b.example",
        "x-forwarded-host: b.example",
        "X-Forwarded-Host: B.example",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Port: 443",
        "X-Forwarded-Prefix: /x",
        "X-Script-Name: /x",
        "X-HTTP-Method-Override: PUT",
        "X-Original-URL: /x",
        "X-Rewrite-URL: /x",
        "Forwarded: host=b.example",
        "Content-Type: text/plain",
        "Content-Length: 0",
        "Content-Length: 00",
        "Content-Encoding: gzip",
        "Cookie: a=b",
        "Accept: a/b",
        "User-Agent: x",
        "X-Request-Id: 7",
        "TE: trailers",
        "Origin: null",
        "X-A: 1",
        "X-A: 2",
        "X-A: 1, 2",
        "X-A:",
        "X-A1: 2",
        "x_a: 1",
        "Proxy: x",
        "Trailer: x",
        "Expect: 100-continue",
        "Purpose: prefetch",
        "X-Forwarded-For: 192.0.2.9",
        "Via: 1.1 x",
        "Keep-Alive: 1",
        "Proxy-Authorization: x",
        "Upgrade: h2c",
        "Transfer-Encoding: chunked",
        "Authorization: Basic YTpi",
        "Range: bytes=0-1",
    ];

    /// One of these, mostly the first.
    fn one_of(choices: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
        prop_oneof![3 => Just(choices[0]), 2 => proptest::sample::select(choices)]
    }

    fn request() -> impl Strategy<Value = (String, bool)> {
        let (host, target) = (one_of(HOSTS), one_of(TARGETS));
        let fields = proptest::sample::select(FIELDS);
        let method = one_of(&["GET", "HEAD", "POST", "get"]);
        let version = one_of(&["1.1", "1.0", "1.2"]);
        let fields = proptest::collection::vec(fields, 0..3);
        (method, target, version, host, fields, prop_oneof![4 => Just(false), 1 => Just(true)]).prop_map(
            |(method, target, version, host, fields, is_tls)| {
                let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
                (format!("{method} {target} HTTP/{version}\r\nHost: {host}\r\n{fields}\r\n"), is_tls)
            },
        )
    }

    /// The key and the env of a request that the cache is asked for.
    fn asked(request: &(String, bool)) -> Option<(Key, Env)> {
        let (text, is_tls) = request;
        let (mut reader, mut head) = (Reader::default(), RequestHead::new());
        reader.parse(text.as_bytes(), &limits(), &mut head).ok()?;
        let buffer = text.as_bytes();
        let asking = Asking { head: head.with(buffer), is_tls: *is_tls, waits: 0, now_ms: 0 };
        let question = Question::of(&asking).ok()?;
        Some((question.key, env(&head, buffer, *is_tls)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, max_global_rejects: 100_000, ..ProptestConfig::default() })]
        #[test]
        fn requests_with_the_same_key_are_the_same_for_the_application(requests in proptest::collection::vec(request(), 2..12)) {
            let asked: Vec<_> = requests.iter().filter_map(asked).collect();
            for (one, one_env) in &asked {
                for (other, other_env) in &asked {
                    prop_assert!(one != other || one_env == other_env, "{one_env:?}\n{other_env:?}");
                }
            }
        }
    }
}
