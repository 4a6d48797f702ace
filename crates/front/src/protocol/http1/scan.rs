//! Finds the end of a request head while it arrives.
//!
//! Each byte is looked at once, however the head is cut into pieces, and the limits are kept from the
//! first byte on.

use highball_config::Limits;
use highball_ring::frame::{is_token, is_token_byte};

use crate::message::refusal::Refusal;
use crate::message::request_head::{MAX_FIELDS, METHOD_BYTES};

/// Empty lines that may stand before a request line (RFC 9112 section 2.2).
const LEADING_EMPTY_LINES: usize = 4;

/// What a request line holds beside method and target: two spaces and the version.
const REQUEST_LINE_REST: usize = 10;

/// How far a head has been looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Where the request line begins, behind empty lines.
    begin: usize,
    /// Bytes that have been looked at.
    checked: usize,
    /// Where the current line begins.
    line_begin: usize,
    /// Whole lines from the request line on.
    lines: usize,
    /// Empty lines before the request line.
    empty_lines: usize,
}

impl Scan {
    /// Where the request line begins.
    pub(super) fn begin(&self) -> usize {
        self.begin
    }

    /// Whether a byte has come that belongs to no empty line.
    pub(super) fn has_begun(&self, buffer: &[u8]) -> bool {
        self.lines > 0 || buffer.get(self.begin..).is_some_and(|rest| !matches!(rest, [] | [b'\r']))
    }

    /// Looks at what is new; gives the end of the head once it is there.
    pub(super) fn advance(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        while let Some(offset) = memchr::memchr(b'\n', &buffer[self.checked..]) {
            let newline = self.checked + offset;
            let Some(line) = buffer[self.line_begin..newline].strip_suffix(b"\r") else {
                return Err(Refusal::BareLineFeed);
            };
            self.checked = newline + 1;
            self.line_begin = newline + 1;
            if !line.is_empty() {
                self.lines += 1;
                self.check_line(line, limits)?;
            } else if self.lines > 0 {
                return Ok(Some(newline + 1));
            } else {
                self.empty_lines += 1;
                self.begin = newline + 1;
                if self.empty_lines > LEADING_EMPTY_LINES {
                    return Err(Refusal::BadRequestLine);
                }
            }
        }
        self.checked = buffer.len();
        self.check_partial(&buffer[self.begin..], limits)?;
        Ok(None)
    }

    fn check_line(&self, line: &[u8], limits: &Limits) -> Result<(), Refusal> {
        if self.lines == 1 {
            check_request_line(line, limits)?;
        }
        if self.checked - self.begin > limits.head_bytes {
            return Err(Refusal::HeadTooLarge);
        }
        if self.lines - 1 > limits.header_fields.min(MAX_FIELDS) {
            return Err(Refusal::TooManyFields);
        }
        Ok(())
    }

    /// Checks a head that is not whole yet, at a cost that does not grow with it.
    fn check_partial(&self, head: &[u8], limits: &Limits) -> Result<(), Refusal> {
        if self.lines > 0 {
            let too_large = head.len() > limits.head_bytes;
            return if too_large { Err(Refusal::HeadTooLarge) } else { Ok(()) };
        }
        // A CR at the end is not part of the line if LF follows.
        check_line_so_far(head.strip_suffix(b"\r").unwrap_or(head), limits)
    }
}

/// Checks the beginning of a request line, at a cost that does not grow with it.
fn check_line_so_far(line: &[u8], limits: &Limits) -> Result<(), Refusal> {
    // A TLS handshake or other noise is refused at once, not when the time for the head is over.
    if line.first().is_some_and(|&byte| !is_token_byte(byte)) {
        return Err(Refusal::BadRequestLine);
    }
    if line.get(..=METHOD_BYTES).is_some_and(|start| !start.contains(&b' ')) {
        return Err(Refusal::MethodTooLong);
    }
    if line.len() > (limits.target_bytes + METHOD_BYTES + REQUEST_LINE_REST).min(limits.head_bytes) {
        return Err(Refusal::TargetTooLong);
    }
    Ok(())
}

fn check_request_line(line: &[u8], limits: &Limits) -> Result<(), Refusal> {
    check_line_so_far(line, limits)?;
    if line.len() <= limits.target_bytes {
        return Ok(());
    }
    let method_end = memchr::memchr(b' ', line).unwrap_or(line.len());
    let rest = line.get(method_end + 1..).unwrap_or(b"");
    let target_end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    if target_end > limits.target_bytes {
        return Err(Refusal::TargetTooLong);
    }
    Ok(())
}

/// A later minor version of HTTP/1 is treated as the last known one (RFC 9110 section 2.5).
pub(super) fn with_known_version(head: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'\r', head)?;
    let minor = end.checked_sub(1)?;
    let is_later = head[..minor].ends_with(b" HTTP/1.") && matches!(head[minor], b'2'..=b'9');
    is_later.then(|| [&head[..minor], b"1", &head[minor + 1..]].concat())
}

/// Says what is wrong with a head that `httparse` refused. Only here because its errors are few: no
/// matter what it finds, the head stays refused.
pub(super) fn explain(head: &[u8], error: Option<httparse::Error>) -> Refusal {
    let request_line = head.split(|&byte| byte == b'\n').next().unwrap_or(b"");
    match error {
        Some(httparse::Error::Version) => {
            let line = request_line.strip_suffix(b"\r").unwrap_or(request_line);
            let version = line.splitn(3, |&byte| byte == b' ').nth(2);
            match version {
                Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
                    if major.is_ascii_digit() && minor.is_ascii_digit() =>
                {
                    Refusal::UnknownVersion
                }
                _ => Refusal::BadVersion,
            }
        }
        Some(httparse::Error::HeaderName) => explain_name(head),
        Some(httparse::Error::HeaderValue | httparse::Error::NewLine) if has_bare_cr(head) => {
            Refusal::BareCarriageReturn
        }
        Some(httparse::Error::HeaderValue) => Refusal::BadFieldValue,
        Some(httparse::Error::TooManyHeaders) => Refusal::TooManyFields,
        Some(httparse::Error::Token) if has_bad_target(request_line) => Refusal::BadTarget,
        _ => Refusal::BadRequestLine,
    }
}

/// Which field name is wrong, and how.
fn explain_name(head: &[u8]) -> Refusal {
    for (index, line) in head.split(|&byte| byte == b'\n').skip(1).enumerate() {
        let name = line.split(|&byte| byte == b':').next().unwrap_or(b"");
        match (name.first(), name.last()) {
            (Some(b' ' | b'\t'), _) if index == 0 => return Refusal::SpaceBeforeFirstField,
            (Some(b' ' | b'\t'), _) => return Refusal::FoldedField,
            (_, Some(b' ' | b'\t')) => return Refusal::SpaceBeforeColon,
            _ if !is_token(name) => break,
            _ => {}
        }
    }
    Refusal::BadFieldName
}

fn has_bare_cr(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', head).any(|at| head.get(at + 1) != Some(&b'\n'))
}

/// Whether a request line has a method, and then something other than visible ASCII characters.
fn has_bad_target(request_line: &[u8]) -> bool {
    let mut parts = request_line.trim_ascii_end().splitn(2, |&byte| byte == b' ');
    let method = parts.next().unwrap_or(b"");
    let rest = parts.next().unwrap_or(b"");
    is_token(method) && rest.iter().any(|byte| !byte.is_ascii_graphic() && *byte != b' ')
}
