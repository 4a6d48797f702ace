//! CGI variables (RFC 3875) as the head of an HTTP request: what FastCGI and LSAPI have in common.
//!
//! A web server in front has taken the request apart into variables. [`Variables`] keeps the variables that describe
//! the request, as slices of what the server sent. [`CgiHead::read`] holds them to the rules and limits of HTTP, and writes
//! them one behind the other into the buffer that its [`RequestHead`] has spans of: names of fields, and what the web
//! server has decoded, are not in the client's form.
//!
//! How web servers differ, and what follows:
//!
//! - All of nginx, Apache, lighttpd, HAProxy, Caddy and LiteSpeed send `REQUEST_URI` as the client's target. They agree in
//!   nothing else: `SCRIPT_NAME` and `PATH_INFO` are decoded, and split in different places; lighttpd normalizes
//!   `QUERY_STRING`. So the target is `REQUEST_URI`, and is made of the others only where it is missing.
//! - nginx and Caddy pass the field `Proxy` as `HTTP_PROXY`. It is dropped, as over HTTP.
//! - nginx passes the fields of its client connection (`HTTP_CONNECTION`, `HTTP_TRANSFER_ENCODING`), and `CONTENT_LENGTH`
//!   also as `HTTP_CONTENT_LENGTH`. None of these says how the body is framed; they are dropped.
//! - nginx sends variables that are not known with an empty value, and Caddy -1 as the length of a body in chunks. Both
//!   count as absent.
//! - A configuration of nginx that sets a variable twice sends it twice. The last one counts, as in PHP.

use std::fmt::Debug;
use std::net::IpAddr;
use std::ops::Range;

use highball_config::Limits;
use highball_ring::frame::{is_token, is_value};

use crate::http_syntax::{parse_length, write_number};
use crate::message::refusal::Refusal;
use crate::message::request_head::{known_key, BodyFraming, RequestHead, Version, MAX_FIELDS, METHOD_BYTES};

/// Buffers of more bytes are given back between two requests.
pub(super) const KEPT_BYTES: usize = 4096;

/// What a reader has found.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'r, 'i> {
    /// A request begins.
    Begin {
        /// Whether the web server uses the connection again after the answer.
        keep_connection: bool,
    },
    /// The head of the request is complete.
    Head(&'r CgiHead),
    /// Bytes of the body, as they are.
    Body(&'i [u8]),
    /// The body is complete. Follows every head, also where there is no body.
    BodyEnd,
    /// The web server no longer waits for the answer. Comes also before a head.
    Abort,
    /// Send these bytes to the web server before anything else.
    Reply {
        /// The bytes.
        bytes: &'r [u8],
        /// Close the connection then.
        close: bool,
    },
}

/// Why a reader cannot go on. The connection cannot be used for another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The request may not be served: answer this, then close.
    #[error("the request is refused: {}", .0.why())]
    Refused(Refusal),
    /// The bytes are not of the protocol: close.
    #[error("the web server {0}")]
    Breach(&'static str),
}

impl From<Refusal> for ReadError {
    fn from(refusal: Refusal) -> Self {
        ReadError::Refused(refusal)
    }
}

/// Reads what a web server sends, one request after the other, from pieces of any size.
pub trait CgiReader: Debug {
    /// Takes the next event off `input`. `None`: `input` is used up.
    ///
    /// # Errors
    /// See [`ReadError`]; the reader must not be used any further.
    fn next<'i>(&mut self, input: &mut &'i [u8], limits: &Limits)
        -> Result<Option<Event<'_, 'i>>, ReadError>;

    /// Whether any byte has come since the last request was finished.
    fn has_begun(&self) -> bool;

    /// The head of the open request, from [`Event::Head`] until it is finished.
    fn head(&self) -> Option<&CgiHead>;

    /// The head of the request that was read last.
    fn head_mut(&mut self) -> &mut CgiHead;

    /// The open request, if there is one, is answered; the next one may begin. Returns whether the connection can be used
    /// for it.
    fn finish(&mut self) -> bool;

    /// Writes the answer to the open request.
    fn writer(&self) -> &dyn CgiWriter;
}

/// Writes the answer to one request.
pub trait CgiWriter {
    /// Appends the head: a status, and fields that are tokens and values. Call it once, for the final head: LSAPI has no
    /// other, and nginx, Apache, HAProxy and Caddy take an interim head for the final one, and what follows it for the body.
    ///
    /// # Errors
    /// The head is beyond what the protocol can express. `out` is as it was.
    fn head(
        &self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal>;

    /// Appends bytes of the body.
    fn bytes(&self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(self.part(bytes.len() as u64, out));
            out.extend_from_slice(part);
            bytes = rest;
        }
    }

    /// Appends what stands before a part of the body that the caller sends: from a file, or without a copy. Returns the
    /// number of bytes that have to follow, at most `left`. Appends nothing if `left` is 0.
    fn part(&self, left: u64, out: &mut Vec<u8>) -> usize;

    /// Appends the end of the answer. `close`: the connection will be closed.
    fn end(&self, close: bool, out: &mut Vec<u8>);

    /// Appends what makes an answer that cannot be completed an error; the caller then closes the connection. It has to
    /// stand where a part may begin, not within one.
    fn abort(&self, out: &mut Vec<u8>);
}

/// Most bytes of all variables together: a head at its limit, its target in each of the variables that repeat it, and
/// what web servers say about themselves.
pub(super) fn most_variable_bytes(limits: &Limits) -> usize {
    limits.head_bytes + 8 * limits.target_bytes + 16 * 1024
}

/// The variables that describe a request. All others are dropped.
#[derive(Debug, Default)]
pub(super) struct Variables<'a> {
    method: &'a [u8],
    request_uri: &'a [u8],
    script_name: &'a [u8],
    path_info: &'a [u8],
    query_string: &'a [u8],
    protocol: &'a [u8],
    content_type: &'a [u8],
    content_length: &'a [u8],
    /// The length of a body that the client has sent in chunks, if the web server has counted it.
    pub(super) counted_length: Option<u32>,
    host: &'a [u8],
    https: &'a [u8],
    scheme: &'a [u8],
    remote_addr: &'a [u8],
    remote_port: &'a [u8],
    server_name: &'a [u8],
    server_port: &'a [u8],
    /// Header fields: the name with `-` or `_`, and the value.
    fields: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Variables<'a> {
    /// Keeps a variable if it describes the request.
    pub(super) fn note(&mut self, name: &'a [u8], value: &'a [u8]) {
        if let Some(field) = name.strip_prefix(b"HTTP_") {
            return self.note_field(field, value);
        }
        let place = match name {
            b"REQUEST_METHOD" => &mut self.method,
            b"REQUEST_URI" => &mut self.request_uri,
            b"SCRIPT_NAME" => &mut self.script_name,
            b"PATH_INFO" => &mut self.path_info,
            b"QUERY_STRING" => &mut self.query_string,
            b"SERVER_PROTOCOL" => &mut self.protocol,
            b"CONTENT_TYPE" => &mut self.content_type,
            b"CONTENT_LENGTH" => &mut self.content_length,
            b"HTTPS" => &mut self.https,
            b"REQUEST_SCHEME" => &mut self.scheme,
            b"REMOTE_ADDR" => &mut self.remote_addr,
            b"REMOTE_PORT" => &mut self.remote_port,
            b"SERVER_NAME" => &mut self.server_name,
            b"SERVER_PORT" => &mut self.server_port,
            _ => return,
        };
        *place = value;
    }

    /// Keeps a header field by the name that follows `HTTP_`.
    fn note_field(&mut self, name: &'a [u8], value: &'a [u8]) {
        let plain = |&byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        if name == b"HOST" {
            self.host = value;
        } else if !name.is_empty() && name.iter().all(plain) && !is_of_connection(name) {
            self.fields.push((name, value));
        }
    }

    /// Keeps a header field by the name that the client sent.
    ///
    /// # Errors
    /// The name is not a token, or Host is repeated.
    pub(super) fn note_raw_field(&mut self, name: &'a [u8], value: &'a [u8]) -> Result<(), Refusal> {
        if !is_token(name) {
            return Err(Refusal::BadFieldName);
        }
        if name.eq_ignore_ascii_case(b"host") {
            if !self.host.is_empty() {
                return Err(Refusal::HostRepeated);
            }
            self.host = value;
        } else if !name.contains(&b'_') && !is_of_connection(name) {
            self.fields.push((name, value));
        }
        Ok(())
    }

    /// The length of the body, where it is known.
    pub(super) fn content_length(&self) -> Option<&'a [u8]> {
        (!matches!(self.content_length, b"" | b"-1")).then_some(self.content_length)
    }

    fn is_https(&self) -> bool {
        let off = self.https.is_empty() || self.https.eq_ignore_ascii_case(b"off");
        !off || self.scheme.eq_ignore_ascii_case(b"https")
    }

    fn version(&self) -> Result<Version, Refusal> {
        match self.protocol {
            b"HTTP/1.0" => Ok(Version::Http10),
            // Of a client that speaks a later version, only the web server sees a difference.
            b"" | b"HTTP/1.1" | b"HTTP/2" | b"HTTP/2.0" | b"HTTP/3" | b"HTTP/3.0" => Ok(Version::Http11),
            _ => Err(Refusal::UnknownVersion),
        }
    }

    /// How long the body is; `has_body`: whether there is one, if that is known.
    fn framing(&self, has_body: bool) -> Result<BodyFraming, Refusal> {
        let length =
            self.content_length().map(|length| parse_length(length).ok_or(Refusal::BadContentLength));
        match length.transpose()?.or(self.counted_length.map(u64::from)) {
            Some(0) => Ok(BodyFraming::None),
            Some(length) => Ok(BodyFraming::Length(length)),
            None if has_body => Ok(BodyFraming::Unknown),
            None => Ok(BodyFraming::None),
        }
    }

    /// The method.
    fn write_method(&self, text: &mut Text) -> Result<Range<usize>, Refusal> {
        if !is_token(self.method) {
            return Err(Refusal::BadRequestLine);
        }
        if self.method.len() > METHOD_BYTES {
            return Err(Refusal::MethodTooLong);
        }
        Ok(text.part(|bytes| bytes.extend_from_slice(self.method)))
    }

    /// The target. Which of its bytes are allowed is seen to by [`RequestHead::finish`].
    fn write_target(&self, limits: &Limits, text: &mut Text) -> Result<Range<usize>, Refusal> {
        let target = text.part(|bytes| match self.request_uri {
            b"" => self.encode_target(bytes),
            uri => bytes.extend_from_slice(uri),
        });
        if target.len() > limits.target_bytes {
            return Err(Refusal::TargetTooLong);
        }
        Ok(target)
    }

    /// The target from decoded variables, encoded again.
    fn encode_target(&self, bytes: &mut Vec<u8>) {
        const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";
        if self.script_name.is_empty() && self.path_info.is_empty() {
            bytes.push(b'/');
        }
        for &byte in self.script_name.iter().chain(self.path_info) {
            if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
                bytes.push(byte);
            } else {
                let digits = [byte >> 4, byte & 15].map(|digit| HEXADECIMAL[usize::from(digit)]);
                bytes.extend_from_slice(&[b'%', digits[0], digits[1]]);
            }
        }
        if !self.query_string.is_empty() {
            bytes.push(b'?');
            bytes.extend_from_slice(self.query_string);
        }
    }

    /// Writes all fields; Host is the first, if there is one.
    fn write_fields(&self, text: &mut Text) -> Result<(), Refusal> {
        self.write_host(text)?;
        if !self.content_type.is_empty() {
            text.field(b"content-type", self.content_type)?;
        }
        match (self.content_length(), self.counted_length) {
            (Some(length), _) => text.field(b"content-length", length)?,
            (None, Some(length)) => {
                text.field_with(b"content-length", |bytes| write_number(u64::from(length), bytes));
            }
            (None, None) => {}
        }
        self.fields.iter().try_for_each(|(name, value)| text.field(name, value))
    }

    /// Host as the client sent it, or what the web server calls itself: nginx passes no Host of HTTP/3 clients.
    fn write_host(&self, text: &mut Text) -> Result<(), Refusal> {
        if !self.host.is_empty() {
            return text.field(b"host", self.host);
        }
        if self.version()? == Version::Http10 {
            return Ok(());
        }
        if !is_plain_name(self.server_name) {
            return Err(Refusal::HostMissing);
        }
        let default: &[u8] = if self.is_https() { b"443" } else { b"80" };
        text.field_with(b"host", |bytes| {
            bytes.extend_from_slice(self.server_name);
            if self.server_port != default && number::<u16>(self.server_port).is_some() {
                bytes.push(b':');
                bytes.extend_from_slice(self.server_port);
            }
        });
        Ok(())
    }
}

/// The buffer of a head, and where in it fields are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Text {
    bytes: Vec<u8>,
    /// Names and values.
    fields: Vec<(Range<usize>, Range<usize>)>,
}

impl Text {
    fn part(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
        let begin = self.bytes.len();
        write(&mut self.bytes);
        begin..self.bytes.len()
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refusal> {
        if !is_value(value) {
            return Err(Refusal::BadFieldValue);
        }
        self.field_with(name, |bytes| bytes.extend_from_slice(value));
        Ok(())
    }

    fn field_with(&mut self, name: &[u8], value: impl FnOnce(&mut Vec<u8>)) {
        let name = self.part(|bytes| bytes.extend(name.iter().map(|&byte| dashed(byte))));
        let value = self.part(value);
        self.fields.push((name, value));
    }
}

/// Whether a field concerns the client's connection with the web server, or the framing of its body there, or could
/// pass for a variable that HTTP libraries read their proxy from. The name has `-` or `_`.
fn is_of_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 11] = [
        b"connection",
        b"content-length",
        b"content-type",
        b"expect",
        b"keep-alive",
        b"proxy",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ];
    NAMES.iter().any(|other| {
        let same = |(&byte, &other): (&u8, &u8)| dashed(byte).eq_ignore_ascii_case(&other);
        name.len() == other.len() && name.iter().zip(*other).all(same)
    })
}

fn dashed(byte: u8) -> u8 {
    if byte == b'_' {
        b'-'
    } else {
        byte
    }
}

fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The head of a request, and what the web server says about the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CgiHead {
    text: Text,
    head: RequestHead,
    server_name: String,
    /// The client's address; `None` if the web server names none, as nginx for clients of a Unix socket.
    pub remote_addr: Option<IpAddr>,
    /// The client's port.
    pub remote_port: Option<u16>,
    /// The port that the client has connected to, or has named.
    pub server_port: Option<u16>,
    /// Whether the client speaks TLS with the web server.
    pub https: bool,
}

impl CgiHead {
    /// The head; its spans are of [`CgiHead::buffer`].
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// What the head has spans of.
    pub fn buffer(&self) -> &[u8] {
        &self.text.bytes
    }

    /// The head, to be exchanged for another.
    pub(super) fn head_mut(&mut self) -> &mut RequestHead {
        &mut self.head
    }

    /// Takes what the head has spans of.
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text.bytes)
    }

    /// The name that the web server has for itself, for requests that name no host; empty if it has none.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Reads the head from variables. `keep_connection`: whether the web server uses the connection again; `has_body`:
    /// whether a body follows, where no variable says how long it is.
    ///
    /// # Errors
    /// The refusal for the client.
    pub(super) fn read(
        &mut self,
        variables: &Variables<'_>,
        keep_connection: bool,
        has_body: bool,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        self.text.bytes.clear();
        self.text.fields.clear();
        let method = variables.write_method(&mut self.text)?;
        let target = variables.write_target(limits, &mut self.text)?;
        variables.write_fields(&mut self.text)?;
        let Text { bytes, fields } = &self.text;
        if bytes.len() > limits.head_bytes {
            return Err(Refusal::HeadTooLarge);
        }
        if fields.len() > limits.header_fields.min(MAX_FIELDS) {
            return Err(Refusal::TooManyFields);
        }
        self.head.begin(&bytes[method], bytes);
        self.head.version = variables.version()?;
        self.head.framing = variables.framing(has_body)?;
        self.head.keep_alive = keep_connection;
        let mut host = None;
        for (name, value) in fields {
            let key = self.head.add_field(&bytes[name.clone()], &bytes[value.clone()], bytes);
            if key == known_key::HOST && host.replace(&bytes[value.clone()]).is_some() {
                return Err(Refusal::HostRepeated);
            }
        }
        self.head.finish(&bytes[target], host, bytes)?;
        self.read_facts(variables);
        Ok(())
    }

    fn read_facts(&mut self, variables: &Variables<'_>) {
        self.remote_addr = number(variables.remote_addr);
        self.remote_port = number(variables.remote_port);
        self.server_port = number(variables.server_port);
        self.https = variables.is_https();
        self.server_name.clear();
        if is_plain_name(variables.server_name) {
            self.server_name.extend(variables.server_name.iter().map(|&byte| char::from(byte)));
        }
    }

    /// Gives back what a large head has needed.
    pub(super) fn release(&mut self) {
        release(&mut self.text.bytes);
    }
}

/// Empties a buffer, and gives its memory back if it is large.
pub(super) fn release(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT_BYTES);
}

/// The names and values of the lines of an [`AnswerHead`](crate::message::answer::AnswerHead).
pub fn fields_of(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = lines.split(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\r"));
    lines.filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii_start()))
    })
}

/// The same of the lines of a head that is sent.
pub(super) fn fields_of_all<'a>(lines: &'a [&'a [u8]]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    lines.iter().flat_map(|lines| fields_of(lines))
}

/// Whether a field of a response is sent to a web server. What concerns a connection is not, nor `Status`, which would
/// pass for the status.
pub(super) fn is_sent(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 7] = [
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"status",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ];
    let of_rack = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"rack."));
    !of_rack && !NAMES.iter().any(|other| name.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests;
