//! The head of an HTTP/1.1 request: where it ends, what it says, and whether it may be believed.
//!
//! A [`RequestHead`] is used for one request after the other on a connection. It holds ranges into
//! the connection's read buffer and copies nothing. Three steps make it:
//!
//! - [`scan`]: finds the end of the head, line by line, and keeps to the limits while it arrives;
//! - `httparse`: splits the head (the scan has seen to what it lets pass: LF without CR);
//! - this file and [`target`]: what the request line and the fields mean (RFC 9112 sections 3 and 6).
//!
//! [`ring`] then encodes it for a worker, with the env keys that [`field_names`] finds.

mod field_names;
mod ring;
mod scan;
mod target;

use std::mem::MaybeUninit;

use highball_config::Limits;

use crate::http_syntax::{has_list_token, parse_length};
use crate::refusal::Refusal;
use field_names::FieldName;
use scan::Scan;

pub use field_names::{known_key, FieldKey};
pub use ring::{append_content_length, append_mark_of_probe, patch_body, RingContext};
pub use target::Host;

/// Most header fields of a request, whatever the limits say.
pub const MAX_FIELDS: usize = 256;

/// A part of the connection's read buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    begin: u32,
    end: u32,
}

impl Span {
    /// The span of `part`, which lies within `whole`.
    fn of(part: &[u8], whole: &[u8]) -> Self {
        if part.is_empty() {
            return Span::default();
        }
        let begin = part.as_ptr() as usize - whole.as_ptr() as usize;
        Span { begin: begin as u32, end: (begin + part.len()) as u32 }
    }

    /// The bytes that the span names.
    pub fn of_buffer(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.begin as usize..self.end as usize]
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.begin == self.end
    }
}

/// The versions spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
}

/// A request's method (RFC 9110 section 9); case matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    Trace,
    /// Any other; the application decides.
    Other,
}

impl Method {
    fn of(name: &[u8]) -> Self {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"PATCH" => Method::Patch,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            _ => Method::Other,
        }
    }

    /// Whether a request may be repeated without further effect (RFC 9110 section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Method::Post | Method::Patch | Method::Other)
    }
}

/// How a request's body is framed (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyFraming {
    /// There is no body.
    #[default]
    None,
    /// A length in bytes, never 0.
    Length(u64),
    /// Chunks.
    Chunked,
}

impl BodyFraming {
    /// Whether it announces more than `most_bytes`; `None` is no limit.
    pub fn is_beyond(self, most_bytes: Option<u64>) -> bool {
        matches!((self, most_bytes), (BodyFraming::Length(length), Some(most)) if length > most)
    }
}

/// One header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    name: Span,
    value: Span,
    key: FieldKey,
}

/// How far a head has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// The head is whole.
    Complete {
        /// Bytes of the buffer that it takes, with empty lines before it.
        length: usize,
    },
    /// More bytes are needed.
    Partial,
}

/// A request head, as spans of the read buffer that it was parsed from.
///
/// Every method that takes a `buffer` needs that same buffer: it may have grown, but may not have moved
/// its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHead {
    scan: Scan,
    complete: bool,
    method_name: Span,
    /// The method.
    pub method: Method,
    target: Span,
    path: Span,
    whole_server: bool,
    query: Span,
    host: Option<Host>,
    /// The version.
    pub version: Version,
    /// How the body is framed.
    pub framing: BodyFraming,
    /// Whether the client asks to keep the connection.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// Whether the client asks for another protocol (`Connection: upgrade`).
    pub upgrade: bool,
    fields: Vec<Field>,
    /// Bit `k` is set if the field with the well-known key `k` occurred, and occurred again.
    seen: u128,
    repeated: u128,
}

/// What fields say about the request as a whole, gathered while they are read.
#[derive(Default)]
struct Gathered {
    host: Option<Span>,
    content_length: Option<u64>,
    transfer_encoding: bool,
    codings: u32,
    chunked: u32,
    last_is_chunked: bool,
    close: bool,
    keep_alive: bool,
    connection_upgrade: bool,
    upgrade: bool,
    expect_continue: bool,
}

impl RequestHead {
    /// A head of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the head at the start of `buffer`.
    ///
    /// After [`Parsed::Partial`], call again with the same bytes and more behind them: what was seen is
    /// not looked at again. After [`Parsed::Complete`], the next call begins with a new request.
    ///
    /// # Errors
    /// The refusal for the client; the connection cannot be used any further.
    pub fn parse(&mut self, buffer: &[u8], limits: &Limits) -> Result<Parsed, Refusal> {
        if self.complete {
            self.scan = Scan::default();
            self.complete = false;
        }
        let Some(end) = self.scan.advance(buffer, limits)? else {
            return Ok(Parsed::Partial);
        };
        let head = &buffer[..end];
        match self.read(head) {
            Err(Refusal::UnknownVersion) => match scan::with_known_version(&head[self.scan.begin()..]) {
                Some(known) => self.read(&[&head[..self.scan.begin()], &known].concat())?,
                None => return Err(Refusal::UnknownVersion),
            },
            result => result?,
        }
        self.complete = true;
        Ok(Parsed::Complete { length: end })
    }

    /// Whether any byte of a head has been seen that is not yet complete.
    pub fn has_begun(&self, buffer: &[u8]) -> bool {
        !self.complete && self.scan.has_begun(buffer)
    }

    fn read(&mut self, head: &[u8]) -> Result<(), Refusal> {
        let mut storage = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut []);
        let begin = self.scan.begin();
        let parsed = request.parse_with_uninit_headers(&head[begin..], &mut storage);
        let whole = matches!(parsed, Ok(httparse::Status::Complete(length)) if begin + length == head.len());
        let (true, Some(method), Some(target), Some(version)) =
            (whole, request.method, request.path, request.version)
        else {
            return Err(scan::explain(&head[begin..], parsed.err()));
        };
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        self.method_name = Span::of(method.as_bytes(), head);
        self.method = Method::of(method.as_bytes());
        let gathered = self.read_fields(request.headers, head)?;
        self.read_target(target.as_bytes(), gathered.host, head)?;
        self.decide_framing(&gathered)?;
        self.upgrade = gathered.upgrade && gathered.connection_upgrade && self.version == Version::Http11;
        self.keep_alive = match self.version {
            Version::Http11 => !gathered.close,
            Version::Http10 => gathered.keep_alive && !gathered.close,
        };
        // An HTTP/1.0 client cannot wait for 100 (RFC 9110 section 10.1.1), nor can one without a body.
        self.expect_continue =
            gathered.expect_continue && self.version == Version::Http11 && self.framing != BodyFraming::None;
        Ok(())
    }

    fn read_fields(&mut self, headers: &[httparse::Header<'_>], head: &[u8]) -> Result<Gathered, Refusal> {
        let mut gathered = Gathered::default();
        self.fields.clear();
        self.seen = 0;
        self.repeated = 0;
        for header in headers {
            let key = FieldName::of(header.name.as_bytes()).key();
            let value = Span::of(header.value, head);
            if let Some(bit) = key.bit() {
                self.repeated |= self.seen & bit;
                self.seen |= bit;
                gathered.note(key, value, header.value)?;
            }
            self.fields.push(Field { name: Span::of(header.name.as_bytes(), head), value, key });
        }
        Ok(gathered)
    }

    /// Takes the target and Host apart, and checks them against each other (RFC 9112 sections 3.2 and 3.3).
    fn read_target(&mut self, target: &[u8], host: Option<Span>, head: &[u8]) -> Result<(), Refusal> {
        let parts = target::split(target, self.method, self.method_name.of_buffer(head))?;
        self.target = Span::of(target, head);
        self.path = Span::of(parts.path, head);
        self.whole_server = parts.whole_server;
        self.query = Span::of(parts.query, head);
        let from_field = match host {
            Some(span) => Some(target::parse_host(span.of_buffer(head), head)?),
            None if self.version == Version::Http10 => None,
            None => return Err(Refusal::HostMissing),
        };
        self.host = match parts.authority {
            Some(authority) => Some(target::parse_host(authority, head).map_err(|_| Refusal::BadTarget)?),
            None => from_field,
        };
        Ok(())
    }

    fn decide_framing(&mut self, gathered: &Gathered) -> Result<(), Refusal> {
        self.framing = if gathered.transfer_encoding {
            if self.version == Version::Http10 {
                return Err(Refusal::TransferEncodingFromHttp10);
            }
            if gathered.content_length.is_some() {
                return Err(Refusal::LengthAndTransferEncoding);
            }
            if !gathered.last_is_chunked || gathered.chunked != 1 {
                return Err(Refusal::BadTransferEncoding);
            }
            if gathered.codings != 1 {
                return Err(Refusal::UnknownTransferCoding);
            }
            BodyFraming::Chunked
        } else {
            match gathered.content_length {
                None | Some(0) => BodyFraming::None,
                Some(length) => BodyFraming::Length(length),
            }
        };
        Ok(())
    }

    /// The method as it was sent.
    pub fn method_name<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        self.method_name.of_buffer(buffer)
    }

    /// The whole request target as it was sent.
    pub fn target<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        self.target.of_buffer(buffer)
    }

    /// Whether it asks for something that may be a file, by its method and as it has no body.
    pub fn may_be_for_file(&self) -> bool {
        let reads = matches!(self.method, Method::Get | Method::Head);
        reads && self.framing == BodyFraming::None && !self.upgrade
    }

    /// The path as it was sent, not decoded: it begins with `/`, or is `*`.
    pub fn path<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        match (self.path.is_empty(), self.whole_server) {
            (false, _) => self.path.of_buffer(buffer),
            (true, true) => b"*",
            (true, false) => b"/",
        }
    }

    /// What follows the first `?` of the target; empty if there is none.
    pub fn query<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        self.query.of_buffer(buffer)
    }

    /// The host that is asked; `None` if the client named none.
    pub fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// The fields in the order they came: name and value.
    pub fn fields<'a>(&'a self, buffer: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.fields.iter().map(|field| (field.name.of_buffer(buffer), field.value.of_buffer(buffer)))
    }

    /// The first value of the field with a well-known key.
    pub fn field<'a>(&self, key: FieldKey, buffer: &'a [u8]) -> Option<&'a [u8]> {
        if self.seen & key.bit()? == 0 {
            return None;
        }
        self.values_of(key, buffer).next()
    }

    /// All values of the field with a well-known key, in the order they came.
    pub(crate) fn values_of<'a>(
        &self,
        key: FieldKey,
        buffer: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, '_> {
        let fields = self.fields.iter().filter(move |field| field.key == key);
        fields.map(|field| field.value.of_buffer(buffer))
    }
}

impl Gathered {
    /// Notes what one field with a well-known name means for the request as a whole.
    fn note(&mut self, key: FieldKey, span: Span, value: &[u8]) -> Result<(), Refusal> {
        match key {
            known_key::HOST => only_once(self.host.replace(span), Refusal::HostRepeated)?,
            known_key::CONTENT_LENGTH => {
                let length = parse_length(value).ok_or(Refusal::BadContentLength)?;
                only_once(self.content_length.replace(length), Refusal::ContentLengthRepeated)?;
            }
            known_key::TRANSFER_ENCODING => self.note_codings(value)?,
            known_key::CONNECTION => {
                self.close |= has_list_token(value, "close");
                self.keep_alive |= has_list_token(value, "keep-alive");
                self.connection_upgrade |= has_list_token(value, "upgrade");
            }
            known_key::UPGRADE => self.upgrade = true,
            known_key::EXPECT => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refusal::UnknownExpectation);
                }
                self.expect_continue = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn note_codings(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.transfer_encoding = true;
        for coding in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if coding.is_empty() {
                return Err(Refusal::BadTransferEncoding);
            }
            self.last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.chunked += u32::from(self.last_is_chunked);
            self.codings += 1;
        }
        Ok(())
    }
}

/// Refuses a field that was there before.
fn only_once<T>(earlier: Option<T>, refusal: Refusal) -> Result<(), Refusal> {
    earlier.map_or(Ok(()), |_| Err(refusal))
}

#[cfg(test)]
mod tests;
