//! Which requests are for the same answer.
//!
//! An attacker who has one answer stored in the place of another has it sent to everyone. So everything that the
//! application gets of a request is part of the key, byte by byte, unless it is known that answers for all do not depend on
//! it: [`is_harmless`] has a list of header fields. All others are part of the key, also those that are unheard
//! of, such as `X-Forwarded-Host` or `X-Original-URL`. Beside the key, `Vary` counts.

use crate::message::request_head::{Method, RequestHead};

/// What the answer to a request is stored under: `base`, its URI, and beside that the fields that are part of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    bytes: Box<[u8]>,
    base_bytes: usize,
}

impl Key {
    /// That of a request, of a client that uses TLS or not. `None`: it names no host, or its target is no path.
    pub fn of(head: &RequestHead, buffer: &[u8], is_tls: bool) -> Option<Key> {
        let host = head.host()?.whole(buffer);
        let target = head.target(buffer);
        let mut bytes = base_of(is_tls, host, target)?;
        let base_bytes = bytes.len();
        let mut keyed: Vec<(Vec<u8>, &[u8])> = head
            .passed_fields(buffer)
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

/// What the answers of a URI are stored under. The case of a host's name makes no difference, and everything else does: a
/// port that is the usual one, a dot at the end of the name, percent-encoding, the order of parameters. `None`: the target
/// is no path.
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

/// Fields on which an answer for all clients does not depend, unless `Vary` names them. They are of three kinds: those by
/// which clients and servers negotiate, for which applications have `Vary`; those about this cache, the connection or the
/// content, of which there is none; and those that differ from one request to the next, such as ids and addresses.
const HARMLESS: [&[u8]; 56] = [
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
    b"content-length",
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
    use super::*;
    use crate::cache::tests::head_of;

    fn key(text: &str) -> Option<Key> {
        let (head, buffer) = head_of(text);
        Key::of(&head, &buffer, false)
    }

    const PLAIN: &str = "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n";

    #[test]
    fn what_makes_no_difference() {
        for other in [
            "GET /a?b=c HTTP/1.1\r\nHost: EXAMPLE.org\r\n\r\n",
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
    fn what_makes_a_difference() {
        for other in [
            "GET /A?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET /a? HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET /%61?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET //a?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET /./a?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET /a?b=c&d HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org.\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org:80\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org:\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-Host: evil.example\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-Proto: https\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nForwarded: host=evil.example\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Original-URL: /admin\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-HTTP-Method-Override: DELETE\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nTurbo-Frame: list\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nOrigin: https://evil.example\r\n\r\n",
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Nobody-Knows: 1\r\n\r\n",
        ] {
            let (other_key, plain) = (key(other), key(PLAIN));
            assert!(other_key.is_some() && other_key != plain, "{other}");
        }
        let (head, buffer) = head_of(PLAIN);
        assert_ne!(Key::of(&head, &buffer, true), key(PLAIN), "the scheme");
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
}
