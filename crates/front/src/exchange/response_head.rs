//! From a worker's `HEAD` frame to the head of an answer.
//!
//! The payload comes from a process that is not trusted: whatever could break the framing of the
//! answer (and with it the next one on the connection) is refused here. Where the body ends is
//! decided here too, from the application's header fields, the request, and what is known about the
//! body.

use std::sync::atomic::{AtomicBool, Ordering};

use highball_ring::frame::{is_token, is_value};

use crate::exchange::sent_file::SentFile;
use crate::http_syntax::{has_list_token, is_named, parse_length};
use crate::message::answer::{AnswerBody, AnswerHead, FieldLines};
use crate::message::conditions::{parse_date, Conditions, Validators};

/// What the front knows about the request and the body, beside the payload.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadContext {
    /// Whether the request's method was HEAD.
    pub head_method: bool,
    /// Whether the client has offered to change protocols.
    pub upgrade: bool,
    /// The length of the body in bytes, where the whole of it has already come.
    pub complete_body_length: Option<u64>,
    /// Whether the application takes the connection over after this head (partial hijack).
    pub hijack: bool,
    /// What the client gets of the file that is the body, if the worker sends one: see [`sent_file`].
    pub sent_file: Option<SentFile>,
    /// Who gets the answer.
    pub recipient: Recipient,
    /// Whether the answer may be for the front alone: about a WebSocket of Action Cable that it holds, or would hold.
    pub cable: bool,
}

/// Who gets an answer: where the application names a file that is to be sent, only a proxy can do that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recipient {
    /// Any client, or a proxy: no proxies are known.
    #[default]
    Unknown,
    /// A trusted proxy.
    Proxy,
    /// Another client. The paths of files are not for it.
    Client,
}

/// What a worker's head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerHead {
    /// The head of the answer.
    pub head: AnswerHead,
    /// The application has chunked the body itself (as `Rack::Chunked` does): decode it before it is sent.
    pub body_is_chunked: bool,
    /// The application names a file that another server is to send: only a proxy gets the answer as it is.
    pub names_file: bool,
    /// The application names streams of messages: see [`held_streams`].
    pub names_streams: bool,
    /// The body is for the front: it is about a WebSocket of Action Cable.
    pub is_for_front: bool,
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
    /// The response is to be held, and there is no room for another one.
    #[error("too many responses are held")]
    NoRoom,
}

/// What the client gets of the file that is the body of an answer with this head. `None`: nothing but what the head says.
pub(crate) fn sent_file(payload: &[u8], asked: Option<&Conditions>) -> Option<SentFile> {
    let (&[status_low, status_high, ..], mut rest) = payload.split_first_chunk::<4>()?;
    let (mut etag, mut last_modified, mut length) = (None, None, None);
    while !rest.is_empty() {
        let Field { name, value } = next_field(&mut rest).ok()?;
        match name.len() {
            4 if is_named(name, b"etag") => etag = Some(value.trim_ascii()),
            13 if is_named(name, b"last-modified") => last_modified = parse_date(value.trim_ascii()),
            13 if is_named(name, b"content-range") => return None,
            14 if is_named(name, b"content-length") => length = parse_length(value),
            17 if is_named(name, b"transfer-encoding") => return None,
            _ => {}
        }
    }
    let length = length.filter(|_| u16::from_le_bytes([status_low, status_high]) == 200)?;
    Some(SentFile::judged(asked, Validators { etag, last_modified, length }))
}

/// The field by which the application has the front hold a response.
const HELD: &[u8] = b"highball-stream";

/// The field of an answer about a WebSocket of Action Cable.
const CABLE: &[u8] = b"highball-cable";

/// The names of the streams that an event stream is to go on with, separated by commas. `None`: the response is none.
#[cold]
pub(crate) fn held_streams(payload: &[u8]) -> Option<Vec<u8>> {
    let (&[status_low, status_high, ..], mut rest) = payload.split_first_chunk::<4>()?;
    let (mut names, mut is_event_stream) = (Vec::new(), false);
    while !rest.is_empty() {
        let Field { name, value } = next_field(&mut rest).ok()?;
        if is_named(name, HELD) {
            names.extend_from_slice(value);
            names.push(b',');
        } else if is_named(name, b"content-type") {
            let kind = value.split(|byte| *byte == b';').next().unwrap_or_default();
            is_event_stream = kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream");
        }
    }
    let status = u16::from_le_bytes([status_low, status_high]);
    (status == 200 && is_event_stream && !names.is_empty()).then_some(names)
}

/// Returns the value of a header field, unless it is blank.
#[cold]
pub(crate) fn value_of(payload: &[u8], wanted: &str) -> Option<Box<[u8]>> {
    let (_, mut rest) = payload.split_first_chunk::<4>()?;
    while !rest.is_empty() {
        let Field { name, value } = next_field(&mut rest).ok()?;
        if name.eq_ignore_ascii_case(wanted.as_bytes()) && !value.trim_ascii().is_empty() {
            return Some(value.trim_ascii().into());
        }
    }
    None
}

/// Reads the response head in `payload` (see the ring's `PROTOCOL.md`, frame `HEAD`), and writes its fields to `lines`,
/// without fields about the connection or the body's length.
///
/// # Errors
/// The head cannot be sent; what was written until then is no use.
pub fn read(
    payload: &[u8],
    context: &HeadContext,
    lines: &mut FieldLines<'_>,
) -> Result<WorkerHead, BadHead> {
    let (&[status_low, status_high, _, _], mut rest) =
        payload.split_first_chunk::<4>().ok_or(BadHead::Breach("is too short"))?;
    let status = u16::from_le_bytes([status_low, status_high]);
    if !(100..=999).contains(&status) {
        return Err(BadHead::Breach("has a status outside 100 to 999"));
    }
    if status == 101 && !context.upgrade {
        return Err(BadHead::Unsendable("answers 101 to a client that has offered no upgrade"));
    }
    let mut gathered = Gathered { recipient: context.recipient, ..Gathered::default() };
    while !rest.is_empty() {
        let Field { name, value } = next_field(&mut rest)?;
        if gathered.keep(name, value)? && context.sent_file.is_none_or(|sent| sent.keeps(name)) {
            lines.add(name, value);
        }
    }
    let Some(sent) = context.sent_file else { return Ok(gathered.head(status, context)) };
    sent.add_fields(gathered.accept_ranges, lines);
    gathered.content_length = Some(sent.part().1);
    Ok(gathered.head(sent.status(), context))
}

/// What the fields of a response say about its connection and its body, gathered while they are copied.
#[derive(Default)]
struct Gathered {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    upgrade: bool,
    accept_ranges: bool,
    recipient: Recipient,
    names_file: bool,
    names_streams: bool,
    is_about_cable: bool,
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
    if !is_token(name) {
        return Err(BadHead::Breach("has a field name that is not a token"));
    }
    if !is_value(value) {
        return Err(BadHead::Breach("has a field value with a control character"));
    }
    *bytes = rest;
    Ok(Field { name, value })
}

impl Gathered {
    /// Notes what a field means for the framing; says whether it is copied as it stands.
    fn keep(&mut self, name: &[u8], value: &[u8]) -> Result<bool, BadHead> {
        let keep = match name.len() {
            // Trailers are not sent, whether the application or the front chunks the body.
            7 if is_named(name, b"trailer") => false,
            10 if is_named(name, b"connection") => {
                self.close |= has_list_token(value, "close");
                self.upgrade |= has_list_token(value, "upgrade");
                false
            }
            10 if is_named(name, b"keep-alive") => false,
            10 if is_named(name, b"x-sendfile") => self.keep_path(name),
            13 if is_named(name, b"accept-ranges") => {
                self.accept_ranges = true;
                true
            }
            14 if is_named(name, b"content-length") => {
                if self.content_length.is_some() {
                    return Err(BadHead::Unsendable("has two Content-Length fields"));
                }
                let length = parse_length(value);
                self.content_length =
                    Some(length.ok_or(BadHead::Unsendable("has a malformed Content-Length"))?);
                false
            }
            14 if is_named(name, CABLE) => {
                self.is_about_cable = true;
                false
            }
            15 if is_named(name, HELD) => {
                self.names_streams = true;
                false
            }
            16 if is_named(name, b"proxy-connection") => false,
            16 if is_named(name, b"x-accel-redirect") => self.keep_path(name),
            17 if is_named(name, b"transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") && !value.eq_ignore_ascii_case(b"identity") {
                    return Err(BadHead::Unsendable("has a transfer coding other than chunked"));
                }
                self.chunked |= value.eq_ignore_ascii_case(b"chunked");
                false
            }
            _ => !name.get(..5).is_some_and(|start| is_named(start, b"rack.")),
        };
        Ok(keep)
    }

    /// The path of a file is for a web server in front.
    #[cold]
    fn keep_path(&mut self, name: &[u8]) -> bool {
        static WARNED: AtomicBool = AtomicBool::new(false);
        self.names_file = true;
        let field = String::from_utf8_lossy(name);
        match self.recipient {
            Recipient::Client => tracing::error!(
                name: "sendfile_not_allowed",
                %field,
                "the application names a file to be sent, and no folder is allowed for that, so the client gets an empty body; \
                 name the folders of such files in `sendfile`"
            ),
            Recipient::Unknown if !WARNED.swap(true, Ordering::Relaxed) => tracing::warn!(
                name: "sendfile_passed_on",
                %field,
                "the application names a file to be sent; if no web server in front does that, clients get an empty body: name \
                 the folders of such files in `sendfile`. If one does, name it in `trusted_proxies`"
            ),
            Recipient::Unknown | Recipient::Proxy => {}
        }
        self.recipient != Recipient::Client
    }

    fn head(self, status: u16, context: &HeadContext) -> WorkerHead {
        let (body, content_length) = self.body(status, context);
        let head = AnswerHead {
            body,
            content_length,
            is_last: self.close,
            is_upgrade: self.upgrade,
            ..AnswerHead::new(status)
        };
        let body_is_chunked = self.chunked && body != AnswerBody::None;
        // The answer to a request for a WebSocket accepts it; other requests are the front's own.
        let is_expected = context.cable && status == if context.upgrade { 101 } else { 200 };
        let is_for_front = self.is_about_cable && is_expected;
        let Gathered { names_file, names_streams, .. } = self;
        WorkerHead { head, body_is_chunked, names_file, names_streams, is_for_front }
    }

    /// Where the body ends (RFC 9112 section 6.3), and the length that the client gets to know.
    fn body(&self, status: u16, context: &HeadContext) -> (AnswerBody, Option<u64>) {
        // Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3).
        let declared = self.content_length.filter(|_| !self.chunked);
        match status {
            101 => return (AnswerBody::Connection, None),
            100..=199 | 204 | 304 => return (AnswerBody::None, None),
            205 => return (AnswerBody::None, Some(0)),
            _ if context.hijack => return (AnswerBody::Connection, declared),
            _ if context.head_method => return (AnswerBody::None, declared),
            _ => {}
        }
        // What was declared counts, also where the body is known to have another length: whether it is known depends on how
        // fast the worker was.
        let complete = context.complete_body_length.filter(|_| !self.chunked);
        match declared.or(complete) {
            Some(length) => (AnswerBody::Length(length), Some(length)),
            None => (AnswerBody::Unknown, None),
        }
    }
}

#[cfg(test)]
mod tests;
