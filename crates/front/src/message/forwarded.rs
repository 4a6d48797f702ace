//! What a proxy that speaks HTTP reports of the client of a request: `X-Forwarded-For` and `X-Forwarded-Proto`, or `Forwarded`
//! (RFC 7239). Each proxy on the way adds the address that it was asked from behind the addresses that it was sent, so that only
//! addresses added by trusted proxies can be believed: they are read from the end.

use std::net::{IpAddr, SocketAddr};

use super::request_head::{known_key, Head};

/// Beside all fields that begin with `x-forwarded-`, the fields in which proxies, and services in front, report who asks, where,
/// how and when.
const NAMES: [&[u8]; 15] = [
    b"forwarded",
    b"client-ip",
    b"x-real-ip",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-original-forwarded-for",
    b"x-original-host",
    b"x-original-proto",
    b"cf-connecting-ip",
    b"cf-connecting-ipv6",
    b"true-client-ip",
    b"fastly-client-ip",
    b"fly-client-ip",
    b"x-request-start",
    b"x-queue-start",
];

/// Whether proxies report something of the client in a field of this name.
pub(crate) fn is_report(name: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"x-forwarded-";
    let beginning = name.get(..BEGINNING.len());
    beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(BEGINNING))
        || NAMES.iter().any(|report| name.eq_ignore_ascii_case(report))
}

/// Whether a proxy says in a field of this name how the application may have it send a file. `Rack::Sendfile` believes
/// clients, too: one could choose which of the proxy's own paths it names (CVE-2025-61780).
pub(crate) fn is_about_sending(name: &[u8]) -> bool {
    name.len() == 15
        && (name.eq_ignore_ascii_case(b"x-sendfile-type") || name.eq_ignore_ascii_case(b"x-accel-mapping"))
}

/// What is reported of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reported {
    /// Its address.
    pub address: Option<IpAddr>,
    /// Whether it uses TLS.
    pub is_tls: Option<bool>,
}

/// A `Forwarded` field that is not what RFC 7239 section 4 says: which part of it the proxy has added is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// What the fields of a request report that a trusted proxy has sent. `Forwarded` counts where there is no other: most
/// proxies pass it on as they get it.
///
/// # Errors
/// `Forwarded` would count, and is malformed.
pub fn reported(head: Head<'_>, is_trusted: impl Fn(IpAddr) -> bool) -> Result<Reported, Malformed> {
    if is_by_forwarded(head) {
        return by_forwarded(head, is_trusted);
    }
    let addresses = head.values_of(known_key::X_FORWARDED_FOR);
    let addresses = addresses.rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
    let senders = addresses.map(|text| Reported { address: address(text), is_tls: None });
    // Proxies replace it. Where one has added to it, what the client uses comes first.
    let scheme = head.field(known_key::X_FORWARDED_PROTO);
    let scheme = scheme.and_then(|value| value.split(|byte| *byte == b',').next());
    Ok(Reported { is_tls: scheme.and_then(is_tls), ..client(senders, is_trusted) })
}

/// Whether `Forwarded` counts.
pub(crate) fn is_by_forwarded(head: Head<'_>) -> bool {
    let has = |key| head.field(key).is_some();
    !has(known_key::X_FORWARDED_FOR) && !has(known_key::X_FORWARDED_PROTO)
}

fn by_forwarded(head: Head<'_>, is_trusted: impl Fn(IpAddr) -> bool) -> Result<Reported, Malformed> {
    let mut senders = Vec::new();
    for value in head.values_of(known_key::FORWARDED) {
        for element in split(value, b',')? {
            senders.push(Reported::of_element(element)?);
        }
    }
    Ok(client(senders.into_iter().rev(), is_trusted))
}

/// The client among the senders that were reported, the last one first: the first that is no trusted proxy. Behind an
/// unknown one, none can be believed.
fn client(senders: impl Iterator<Item = Reported>, is_trusted: impl Fn(IpAddr) -> bool) -> Reported {
    let mut client = Reported::default();
    for sender in senders {
        let Some(address) = sender.address else { break };
        client = sender;
        if !is_trusted(address) {
            break;
        }
    }
    client
}

impl Reported {
    /// What one proxy reports: an element of `Forwarded`.
    fn of_element(text: &[u8]) -> Result<Reported, Malformed> {
        let mut element = Reported::default();
        for pair in split(text, b';')? {
            let pair = pair.trim_ascii();
            if pair.is_empty() {
                continue;
            }
            let equals = pair.iter().position(|byte| *byte == b'=').ok_or(Malformed)?;
            let (name, value) = (&pair[..equals], unquoted(&pair[equals + 1..]));
            if name.eq_ignore_ascii_case(b"for") {
                element.address = address(&value);
            } else if name.eq_ignore_ascii_case(b"proto") {
                element.is_tls = is_tls(&value);
            }
        }
        Ok(element)
    }
}

/// The parts between separators that stand in no quoted string (RFC 9110 section 5.6.4).
fn split(text: &[u8], separator: u8) -> Result<Vec<&[u8]>, Malformed> {
    let (mut parts, mut begin, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if byte == separator && !is_quoted => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    if is_quoted {
        Err(Malformed)
    } else {
        Ok(parts)
    }
}

/// A value without the quotes around it and the backslashes in it.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let Some(text) = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return value.to_vec();
    };
    let mut is_escaped = false;
    let kept = text.iter().filter(|&&byte| {
        is_escaped = byte == b'\\' && !is_escaped;
        !is_escaped
    });
    kept.copied().collect()
}

/// An address, with a port or without; one of IPv6 with brackets or without.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

fn is_tls(scheme: &[u8]) -> Option<bool> {
    let is = |name: &[u8]| scheme.trim_ascii().eq_ignore_ascii_case(name);
    match () {
        () if is(b"https") || is(b"wss") => Some(true),
        () if is(b"http") || is(b"ws") => Some(false),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::heads::head_of;
    use proptest::{prop_assert, proptest};

    /// What the fields report where 127.0.0.0/8 and 10.0.0.0/8 are trusted: "ADDRESS SCHEME".
    fn report(fields: &[&str]) -> String {
        let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", fields.join("\r\n"));
        let head = head_of(&bytes);
        let is_trusted = |address: IpAddr| {
            address.is_loopback() || matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10)
        };
        match reported(head.with(bytes.as_bytes()), is_trusted) {
            Ok(Reported { address, is_tls }) => {
                let address = address.map_or_else(|| "-".into(), |address| address.to_string());
                format!("{address} {}", is_tls.map_or("-", |is_tls| if is_tls { "https" } else { "http" }))
            }
            Err(Malformed) => "malformed".into(),
        }
    }

    #[test]
    fn the_client_is_the_last_that_is_no_trusted_proxy() {
        for (fields, expected) in [
            (&["X-Forwarded-For: 192.0.2.7"][..], "192.0.2.7 -"),
            (&["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"], "192.0.2.7 https"),
            (&["X-Forwarded-Proto: http"], "- http"),
            (&["X-Forwarded-Proto: HTTPS, http"], "- https"),
            (&["X-Forwarded-Proto: gopher"], "- -"),
            // What the client itself has sent comes first.
            (&["X-Forwarded-For: 127.0.0.1, 192.0.2.7"], "192.0.2.7 -"),
            (&["X-Forwarded-For: 203.0.113.1, 192.0.2.7, 10.0.0.2,10.0.0.3"], "192.0.2.7 -"),
            (&["X-Forwarded-For: 203.0.113.1", "X-Forwarded-For: 192.0.2.7"], "192.0.2.7 -"),
            (&["X-Forwarded-For: 10.0.0.1, 10.0.0.2"], "10.0.0.1 -"),
            (&["X-Forwarded-For: unknown, 10.0.0.2"], "10.0.0.2 -"),
            (&["X-Forwarded-For: 192.0.2.7, unknown"], "- -"),
            (&["X-Forwarded-For: 192.0.2.7, "], "- -"),
            (&["X-Forwarded-For: 192.0.2.7:4711"], "192.0.2.7 -"),
            (&["X-Forwarded-For: [2001:db8::7]:4711"], "2001:db8::7 -"),
            (&["X-Forwarded-For: [2001:db8::7]"], "2001:db8::7 -"),
            (&["X-Forwarded-For: ::ffff:192.0.2.7"], "192.0.2.7 -"),
            (&["X-Forwarded-For: 192.0.2.7 "], "192.0.2.7 -"),
            (&["X-Forwarded-For: 192.0.2.700"], "- -"),
        ] {
            assert_eq!(report(fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn forwarded_counts_where_there_is_no_other() {
        for (fields, expected) in [
            (&["Forwarded: for=192.0.2.7;proto=https;by=10.0.0.1"][..], "192.0.2.7 https"),
            (&["Forwarded: For=\"[2001:db8::7]:4711\"; Proto=\"http\""], "2001:db8::7 http"),
            (
                &["Forwarded: for=127.0.0.1, for=192.0.2.7;proto=https, for=10.0.0.2;proto=http"],
                "192.0.2.7 https",
            ),
            (&["Forwarded: for=203.0.113.1", "Forwarded: for=192.0.2.7"], "192.0.2.7 -"),
            (&["Forwarded: for=\"192.0.2.7\\:80\""], "192.0.2.7 -"),
            (&["Forwarded: for=\"a,b;c\", for=10.0.0.2"], "10.0.0.2 -"),
            (&["Forwarded: for=_hidden"], "- -"),
            (&["Forwarded: for=unknown;proto=https"], "- -"),
            (&["Forwarded: for=203.0.113.1", "X-Forwarded-For: 192.0.2.7"], "192.0.2.7 -"),
            (&["Forwarded: for=203.0.113.1;proto=https", "X-Forwarded-Proto: http"], "- http"),
            // Nothing that a client begins swallows what the proxy adds.
            (&["Forwarded: for=\"203.0.113.1, for=192.0.2.7"], "malformed"),
            (&["Forwarded: for=\"\\\", for=192.0.2.7"], "malformed"),
            (&["Forwarded: 203.0.113.1"], "malformed"),
            (&["Forwarded: for=\"203.0.113.1", "X-Forwarded-For: 192.0.2.7"], "192.0.2.7 -"),
            (&[], "- -"),
        ] {
            assert_eq!(report(fields), expected, "{fields:?}");
        }
    }

    proptest! {
        /// Whatever a client sends, the address that a trusted proxy adds behind it is the client's.
        #[test]
        fn no_client_forges_its_address(sent in "[ -~]{0,40}", is_forwarded: bool) {
            let field = if is_forwarded {
                format!("Forwarded: {sent}, for=192.0.2.7;proto=https")
            } else {
                format!("X-Forwarded-For: {sent}, 192.0.2.7")
            };
            let found = report(&[&field]);
            prop_assert!(found.starts_with("192.0.2.7 ") || (is_forwarded && found == "malformed"), "{found}");
        }
    }

    #[test]
    fn fields_of_proxies_are_known() {
        for name in [
            "Forwarded",
            "X-Forwarded-For",
            "x-forwarded-ssl",
            "X-FORWARDED-PREFIX",
            "X-Real-IP",
            "Client-Ip",
        ] {
            assert!(is_report(name.as_bytes()), "{name}");
        }
        for name in ["X-Forwarded", "Forwarded-For", "Host", "X-Real", "Via", ""] {
            assert!(!is_report(name.as_bytes()), "{name}");
        }
    }
}
