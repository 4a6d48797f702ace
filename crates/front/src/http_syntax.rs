//! What HTTP requests and answers have in common: numbers, lists, reason phrases and dates.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

/// Whether a comma-separated list names `token`, in any case.
pub(crate) fn has_list_token(list: &[u8], token: &str) -> bool {
    list.split(|&byte| byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// The lines of a head's fields, each with its end.
pub(crate) fn lines_of(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split_inclusive(|&byte| byte == b'\n')
}

/// The name and the value of a line.
pub(crate) fn field_of(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(colon) => (&line[..colon], line[colon + 1..].trim_ascii()),
        None => (line, b""),
    }
}

/// The first byte of a percent-encoded text, decoded, and what follows it. A `%` without two digits stands for itself.
pub(crate) fn first_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    if let [b'%', high, low, rest @ ..] = text {
        if let (Some(high), Some(low)) = (hexadecimal(*high), hexadecimal(*low)) {
            return Some((high << 4 | low, rest));
        }
    }
    text.split_first().map(|(&byte, rest)| (byte, rest))
}

/// The value of a hexadecimal digit.
pub(crate) fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A byte as hexadecimal digits.
pub(crate) fn hexadecimal_digits(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

/// A length in bytes: digits only, and at most as many as fit (RFC 9110 section 8.6).
pub(crate) fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |sum, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// Appends a number in decimal.
pub(crate) fn write_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Whether a field name, which is a token, is this one, which has small letters and hyphens. Among the bytes of a token, setting
/// bit 5 does nothing but make letters small, and it keeps `_` apart from `-`.
#[inline]
pub(crate) fn is_named(name: &[u8], known: &[u8]) -> bool {
    // Without a way out of the loop, many bytes are compared at a time.
    let difference = |difference, (byte, known): (&u8, &u8)| difference | ((byte | 0x20) ^ known);
    name.len() == known.len() && name.iter().zip(known).fold(0, difference) == 0
}

/// The reason phrase that belongs to a status code; empty if it has none.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}

/// The current date in the form of RFC 9110 section 5.6.7, rewritten once a second.
#[derive(Debug)]
pub struct DateCache {
    second: Cell<u64>,
    text: Cell<[u8; DATE_BYTES]>,
}

const DATE_BYTES: usize = 29;

impl DateCache {
    /// A cache that holds no date yet.
    pub fn new() -> Self {
        DateCache { second: Cell::new(u64::MAX), text: Cell::new([b' '; DATE_BYTES]) }
    }

    /// The date now.
    pub fn now(&self) -> [u8; DATE_BYTES] {
        // The coarse clock is exact to a few milliseconds and never costs a system call.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        let second = u64::try_from(now.tv_sec).unwrap_or(0);
        if self.second.replace(second) != second {
            self.text.set(http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(second)));
        }
        self.text.get()
    }
}

impl Default for DateCache {
    fn default() -> Self {
        Self::new()
    }
}

/// A date in the form of RFC 9110 section 5.6.7.
pub(crate) fn http_date(time: SystemTime) -> [u8; DATE_BYTES] {
    let mut text = [b' '; DATE_BYTES];
    let written = httpdate::fmt_http_date(time);
    text.copy_from_slice(&written.as_bytes()[..DATE_BYTES]);
    text
}
