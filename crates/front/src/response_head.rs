//! From a worker's `HEAD` frame to the head of an HTTP/1.1 response.
//!
//! The payload comes from a process that is not trusted: whatever could break the framing of the
//! answer (and with it the next one on the connection) is refused here. How the body is framed is
//! decided here too, from the application's header fields, what the client understands, and what is known about the
//! body.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use highball_ring::frame::{is_token_byte, is_value_byte};

use crate::request_head::Version;

/// How the body of a response is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFraming {
    /// No body follows, whatever the worker sends (HEAD; 1xx, 204, 205, 304).
    None,
    /// Exactly this number of bytes follows.
    Length(u64),
    /// Chunks follow (RFC 9112 section 7.1).
    Chunked,
    /// Bytes follow until the connection is closed: HTTP/1.0, a hijacked or an upgraded connection.
    UntilClose,
}

/// What the front knows about the request and the body, beside the payload.
#[derive(Debug, Clone, Copy)]
pub struct HeadContext {
    /// The request's version.
    pub request_version: Version,
    /// Whether the request's method was HEAD.
    pub head_method: bool,
    /// Whether the connection is to be kept, as far as client and server are concerned.
    pub keep_alive: bool,
    /// The length of the body in bytes, where the whole of it has already come.
    pub complete_body_length: Option<u64>,
    /// Whether the application takes the connection over after this head (partial hijack).
    pub hijack: bool,
    /// Whether the client has offered to change protocols.
    pub upgrade: bool,
}

/// What became of a response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code, 100 to 999.
    pub status: u16,
    /// How the body is to be framed.
    pub framing: ResponseFraming,
    /// Whether the connection can be kept after this response.
    pub keep_alive: bool,
    /// The application has chunked the body itself (as `Rack::Chunked` does): decode it before framing it.
    pub body_is_chunked: bool,
    /// The Content-Length that the application declared, if it did.
    pub declared_length: Option<u64>,
}

impl ResponseHead {
    /// Whether another head follows (1xx, but not 101).
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }
}

/// A head that cannot be sent; says what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// No correct worker sends this: it checks these things itself. The worker is broken.
    #[error("the worker's response head {0}")]
    Breach(&'static str),
    /// The application's mistake: it costs this request a 502, and the worker goes on.
    #[error("the application's response head {0}")]
    Unsendable(&'static str),
}

/// Encodes the response head in `payload` (see the ring's `PROTOCOL.md`, frame `HEAD`), appending to `out`.
///
/// Interim heads for HTTP/1.0 clients, which would not understand them, append nothing.
///
/// # Errors
/// The head cannot be sent; `out` is then as it was.
pub fn encode(
    payload: &[u8],
    context: &HeadContext,
    date: &DateCache,
    out: &mut Vec<u8>,
) -> Result<ResponseHead, BadHead> {
    let begin = out.len();
    let result = encode_fields(payload, context, date, out);
    let unwanted = |head: &ResponseHead| head.is_interim() && context.request_version == Version::Http10;
    if result.as_ref().map_or(true, unwanted) {
        out.truncate(begin);
    }
    result
}

/// What the fields of a response say about its framing, gathered while they are copied.
#[derive(Default)]
struct Gathered {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    upgrade: bool,
    date: bool,
}

fn encode_fields(
    payload: &[u8],
    context: &HeadContext,
    date: &DateCache,
    out: &mut Vec<u8>,
) -> Result<ResponseHead, BadHead> {
    let (&[status_low, status_high, _, _], mut rest) =
        payload.split_first_chunk::<4>().ok_or(BadHead::Breach("is too short"))?;
    let status = u16::from_le_bytes([status_low, status_high]);
    if !(100..=999).contains(&status) {
        return Err(BadHead::Breach("has a status outside 100 to 999"));
    }
    if status == 101 && !context.upgrade {
        return Err(BadHead::Unsendable("answers 101 to a client that has offered no upgrade"));
    }
    out.reserve(payload.len() + 160);
    out.extend_from_slice(b"HTTP/1.1 ");
    write_number(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(reason_phrase(status).as_bytes());
    out.extend_from_slice(b"\r\n");
    let mut gathered = Gathered::default();
    while !rest.is_empty() {
        let Field { name, value } = next_field(&mut rest)?;
        if gathered.keep(name, value)? {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }
    Ok(gathered.end_head(status, context, date, out))
}

struct Field<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

/// Takes the first field off `bytes`.
fn next_field<'a>(bytes: &mut &'a [u8]) -> Result<Field<'a>, BadHead> {
    const CUT: BadHead = BadHead::Breach("is cut off in a field");
    let (lengths, rest) = bytes.split_first_chunk::<6>().ok_or(CUT)?;
    let name_length = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
    let value_length = u32::from_le_bytes([lengths[2], lengths[3], lengths[4], lengths[5]]) as usize;
    let (name, rest) = rest.split_at_checked(name_length).ok_or(CUT)?;
    let (value, rest) = rest.split_at_checked(value_length).ok_or(CUT)?;
    if name.is_empty() || !name.iter().all(|&byte| is_token_byte(byte)) {
        return Err(BadHead::Breach("has a field name that is not a token"));
    }
    if !value.iter().all(|&byte| is_value_byte(byte)) {
        return Err(BadHead::Breach("has a field value with a control character"));
    }
    *bytes = rest;
    Ok(Field { name, value })
}

impl Gathered {
    /// Notes what a field means for the framing; says whether it is copied as it stands.
    fn keep(&mut self, name: &[u8], value: &[u8]) -> Result<bool, BadHead> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let keep = match name.len() {
            4 if is("date") => {
                self.date = true;
                true
            }
            // Trailers are not sent, whether the application or the front chunks the body.
            7 if is("trailer") => false,
            10 if is("connection") => {
                self.close |= has_list_token(value, "close");
                self.upgrade |= has_list_token(value, "upgrade");
                false
            }
            10 if is("keep-alive") => false,
            14 if is("content-length") => {
                if self.content_length.is_some() {
                    return Err(BadHead::Unsendable("has two Content-Length fields"));
                }
                let length = parse_length(value);
                self.content_length =
                    Some(length.ok_or(BadHead::Unsendable("has a malformed Content-Length"))?);
                false
            }
            16 if is("proxy-connection") => false,
            17 if is("transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") && !value.eq_ignore_ascii_case(b"identity") {
                    return Err(BadHead::Unsendable("has a transfer coding other than chunked"));
                }
                self.chunked |= value.eq_ignore_ascii_case(b"chunked");
                false
            }
            _ => !name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"rack.")),
        };
        Ok(keep)
    }

    /// Decides the framing and writes the fields that say so.
    fn end_head(
        self,
        status: u16,
        context: &HeadContext,
        date: &DateCache,
        out: &mut Vec<u8>,
    ) -> ResponseHead {
        let (framing, length_field) = self.framing(status, context);
        let interim = status < 200 && status != 101;
        if !self.date && !interim {
            out.extend_from_slice(b"date: ");
            out.extend_from_slice(&date.now());
            out.extend_from_slice(b"\r\n");
        }
        if let Some(length) = length_field {
            out.extend_from_slice(b"content-length: ");
            write_number(length, out);
            out.extend_from_slice(b"\r\n");
        }
        if framing == ResponseFraming::Chunked {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        let keep_alive = context.keep_alive && !self.close && framing != ResponseFraming::UntilClose;
        if self.upgrade {
            out.extend_from_slice(b"connection: upgrade\r\n");
        }
        let switching = self.upgrade && (status == 101 || context.hijack);
        if !interim && !switching {
            write_connection(keep_alive, context.request_version, out);
        }
        out.extend_from_slice(b"\r\n");
        ResponseHead {
            status,
            framing,
            keep_alive: keep_alive || interim,
            body_is_chunked: self.chunked,
            declared_length: self.content_length,
        }
    }

    /// The framing (RFC 9112 section 6.3), and what a Content-Length field says, if there is to be one.
    fn framing(&self, status: u16, context: &HeadContext) -> (ResponseFraming, Option<u64>) {
        // Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3).
        let declared = self.content_length.filter(|_| !self.chunked);
        match status {
            101 => return (ResponseFraming::UntilClose, None),
            100..=199 | 204 | 304 => return (ResponseFraming::None, None),
            205 => return (ResponseFraming::None, Some(0)),
            _ if context.hijack => return (ResponseFraming::UntilClose, declared),
            _ if context.head_method => return (ResponseFraming::None, declared),
            _ => {}
        }
        // What was declared counts, also where the body is known to have another length: whether it is known depends on how
        // fast the worker was.
        let complete = context.complete_body_length.filter(|_| !self.chunked);
        match (declared.or(complete), context.request_version) {
            (Some(length), _) => (ResponseFraming::Length(length), Some(length)),
            (None, Version::Http11) => (ResponseFraming::Chunked, None),
            (None, Version::Http10) => (ResponseFraming::UntilClose, None),
        }
    }
}

/// Appends a Connection field, where what happens is not what the client expects by its version.
pub(crate) fn write_connection(keep_alive: bool, request_version: Version, out: &mut Vec<u8>) {
    match (keep_alive, request_version) {
        (false, _) => out.extend_from_slice(b"connection: close\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (true, Version::Http11) => {}
    }
}

/// Whether a comma-separated list names `token`, in any case.
pub(crate) fn has_list_token(list: &[u8], token: &str) -> bool {
    list.split(|&byte| byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
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
pub(crate) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[begin..]);
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

#[cfg(test)]
mod tests;
