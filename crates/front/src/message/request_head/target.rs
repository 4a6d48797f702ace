//! Request targets and hosts (RFC 9112 section 3.2, RFC 3986 section 3.2).

use super::{Method, Span};
use crate::message::refusal::Refusal;

/// The host a request asks for: from the target if that names one, else from the Host field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Name and port as they were sent.
    pub(super) whole: Span,
    /// The name: a registered name, an IPv4 address, or an IPv6 address in brackets.
    pub(super) name: Span,
    /// The port, if one was named.
    pub port: Option<u16>,
}

impl Host {
    /// The name: a registered name, an IPv4 address, or an IPv6 address in brackets.
    pub fn name<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        self.name.of_buffer(buffer)
    }

    /// Name and port as they were sent.
    pub fn whole<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        self.whole.of_buffer(buffer)
    }

    /// The digits of the port, if one was named, and as numbers are written.
    pub(super) fn port_digits<'a>(&self, buffer: &'a [u8]) -> Option<&'a [u8]> {
        let digits = self.whole(buffer).get(self.name(buffer).len() + 1..)?;
        Some(digits).filter(|digits| digits.first().is_some_and(|first| *first != b'0'))
    }
}

/// The host of the request before, on the same connection: most clients name the same one again, and to compare it costs a tenth
/// of reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownHost {
    /// As it was sent, in the first bytes. None is empty.
    text: [u8; KnownHost::MOST_BYTES],
    length: usize,
    name_length: usize,
    port: Option<u16>,
}

impl Default for KnownHost {
    fn default() -> Self {
        KnownHost { text: [0; KnownHost::MOST_BYTES], length: 0, name_length: 0, port: None }
    }
}

impl KnownHost {
    /// A longer one is read again each time.
    const MOST_BYTES: usize = 48;

    /// What [`parse_host`] says.
    ///
    /// # Errors
    /// As there.
    pub(super) fn parse(&mut self, value: &[u8], head: &[u8]) -> Result<Host, Refusal> {
        if self.length > 0 && &self.text[..self.length] == value {
            let name = Span::of(&value[..self.name_length], head);
            return Ok(Host { whole: Span::of(value, head), name, port: self.port });
        }
        let host = parse_host(value, head)?;
        self.length = 0;
        if let Some(text) = self.text.get_mut(..value.len()) {
            text.copy_from_slice(value);
            (self.length, self.name_length, self.port) = (value.len(), host.name(head).len(), host.port);
        }
        Ok(host)
    }
}

/// The parts of a target.
pub(super) struct Target<'a> {
    /// The authority of an absolute-form target.
    pub(super) authority: Option<&'a [u8]>,
    /// The path; empty stands for `/`, or for `*` for the whole server.
    pub(super) path: &'a [u8],
    /// The target means the server as a whole.
    pub(super) whole_server: bool,
    /// What follows the first `?`.
    pub(super) query: &'a [u8],
}

/// Splits a target in origin-form, absolute-form or asterisk-form. CONNECT, the one method with another form, is
/// refused.
pub(super) fn split<'a>(target: &'a [u8], method: Method, method_name: &[u8]) -> Result<Target<'a>, Refusal> {
    if method_name == b"CONNECT" {
        return Err(Refusal::ConnectMethod);
    }
    // Beyond what RFC 3986 allows, clients send `|`, `{`, `"`, UTF-8 and others as they are: these pass (decision 29).
    if !target.iter().all(|&byte| (byte.is_ascii_graphic() && byte != b'#') || !byte.is_ascii()) {
        return Err(Refusal::BadTarget);
    }
    let is_text = |target| std::str::from_utf8(target).is_ok_and(|text| !text.chars().any(char::is_control));
    if !target.is_ascii() && !is_text(target) {
        return Err(Refusal::BadTarget);
    }
    if target == b"*" && method == Method::Options {
        return Ok(Target { authority: None, path: b"", whole_server: true, query: b"" });
    }
    if target.starts_with(b"/") {
        let (path, query) = split_query(target);
        return Ok(Target { authority: None, path, whole_server: false, query });
    }
    let rest = strip_scheme(target).ok_or(Refusal::BadTarget)?;
    let authority_end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(authority_end);
    // An http URI without a host is invalid (RFC 9110 section 4.2.1).
    if authority.is_empty() || authority.starts_with(b":") {
        return Err(Refusal::BadTarget);
    }
    let (path, query) = split_query(rest);
    // OPTIONS of a URI with neither path nor query means the server (RFC 9112 section 3.2.4).
    let whole_server = rest.is_empty() && method == Method::Options;
    Ok(Target { authority: Some(authority), path, whole_server, query })
}

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    let strip = |scheme: &[u8]| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    strip(b"http://").or_else(|| strip(b"https://"))
}

fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, b""),
    }
}

/// Parses `host[:port]`, a part of `head`.
///
/// # Errors
/// It is empty, has user information, characters that no host has, or a port that is none.
pub(super) fn parse_host(value: &[u8], head: &[u8]) -> Result<Host, Refusal> {
    let name_length = if value.starts_with(b"[") {
        let close = memchr::memchr(b']', value).ok_or(Refusal::HostInvalid)?;
        if !is_ip_literal(&value[1..close]) {
            return Err(Refusal::HostInvalid);
        }
        close + 1
    } else {
        let length = memchr::memchr(b':', value).unwrap_or(value.len());
        if length == 0 || !is_registered_name(&value[..length]) {
            return Err(Refusal::HostInvalid);
        }
        length
    };
    let (name, rest) = value.split_at(name_length);
    let port = match rest {
        [] | [b':'] => None,
        [b':', digits @ ..] => Some(parse_port(digits).ok_or(Refusal::HostInvalid)?),
        _ => return Err(Refusal::HostInvalid),
    };
    Ok(Host { whole: Span::of(value, head), name: Span::of(name, head), port })
}

fn parse_port(digits: &[u8]) -> Option<u16> {
    let number = crate::http_syntax::parse_length(digits)?;
    if digits.len() > 5 {
        return None;
    }
    u16::try_from(number).ok()
}

/// `reg-name`, which covers IPv4 addresses: unreserved characters, sub-delims, percent-encoded bytes.
fn is_registered_name(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        let hexadecimal = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
        let is_encoded = byte == b'%' && hexadecimal(bytes.next()) && hexadecimal(bytes.next());
        if !is_encoded && !NAME_BYTES[usize::from(byte)] {
            return false;
        }
    }
    true
}

/// Unreserved characters and sub-delims.
static NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~')
            || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=');
        byte += 1;
    }
    table
};

/// What may stand between brackets: an IPv6 address. (`IPvFuture` is not in use anywhere.)
fn is_ip_literal(literal: &[u8]) -> bool {
    std::str::from_utf8(literal).is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_known_is_what_it_was() {
        let long = format!("{}.example:80", "a".repeat(KnownHost::MOST_BYTES));
        let hosts = [
            "a.example",
            "a.example",
            "a.example:80",
            "a.example:",
            "",
            "a.example:x",
            "[::1]:8080",
            "[::1]",
            &long,
        ];
        let mut known = KnownHost::default();
        for (first, second) in hosts.iter().flat_map(|first| hosts.map(|second| (first, second))) {
            for host in [first, second, second] {
                let head = [b"Host: ", host.as_bytes(), b"\r\n"].concat();
                let value = &head[6..6 + host.len()];
                assert_eq!(known.parse(value, &head), parse_host(value, &head), "{first} {second}");
            }
        }
    }

    #[test]
    fn beyond_ascii_only_text_passes() {
        let passes = |target: &[u8]| split(target, Method::Get, b"GET").is_ok();
        assert!(passes("/gr\u{f6}\u{df}e?\u{1f600}".as_bytes()) && passes("http://a/\u{e9}".as_bytes()));
        for target in
            [&b"/\xf6"[..], b"/?\xf6", b"/\xc0\xae", b"/\xed\xa0\x80", b"/\xc2\x85", b"/\xc3", b"/\xff"]
        {
            assert!(!passes(target), "{target:?}");
        }
    }

    #[test]
    fn digits_of_a_port_are_those_of_its_number() {
        for (host, digits) in
            [("a:80", Some("80")), ("[::1]:65535", Some("65535")), ("a:080", None), ("a:", None), ("a", None)]
        {
            let parsed = parse_host(host.as_bytes(), host.as_bytes()).unwrap();
            assert_eq!(parsed.port_digits(host.as_bytes()), digits.map(str::as_bytes), "{host}");
        }
    }
}
