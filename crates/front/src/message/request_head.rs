//! The head of a request, whichever protocol it came by.
//!
//! A [`RequestHead`] is used for one request after the other on a connection. A protocol's reader fills it. It holds ranges
//! into the buffer that the reader has read, and copies nothing. [`ring`] then encodes it for a worker, with the env keys
//! that [`field_names`] finds.

mod field_names;
mod ring;
mod target;

use std::ops::Deref;

use crate::message::refusal::Refusal;
use field_names::{FieldName, KEY_DROPPED};
use target::KnownHost;

pub use field_names::{known_key, FieldKey};
pub(crate) use ring::{
    append_cable_offer, append_client_certificate, append_field, flags_of, head_of, make_cable_question,
};
pub use ring::{
    append_content_length, append_mark_of_probe, patch_body, patch_fiber, patch_limit, patch_wait,
    RingContext,
};
pub use target::Host;

/// Most header fields of a request, whatever the limits say.
pub const MAX_FIELDS: usize = 256;

/// Longest method, in bytes.
pub(crate) const METHOD_BYTES: usize = 32;

/// A part of the buffer that a head was read from.
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
    /// HTTP/2
    Http2,
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

/// How long a request's body is (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyFraming {
    /// There is no body.
    #[default]
    None,
    /// A length in bytes, never 0.
    Length(u64),
    /// Unknown: it ends where the protocol says so (HTTP/1: chunks).
    Unknown,
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

/// A request head, as spans of the buffer that it was read from.
/// [`Head`] is the same with that buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHead {
    method_name: Span,
    /// The method.
    pub method: Method,
    target: Span,
    path: Span,
    whole_server: bool,
    query: Span,
    host: Option<Host>,
    known_host: KnownHost,
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

impl RequestHead {
    /// A head of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    // --- For readers ---------------------------------------------------------------------------------

    /// Begins the next request, with this method. As everything that a reader adds, it is a part of `buffer`.
    pub(crate) fn begin(&mut self, method: &[u8], buffer: &[u8]) {
        self.method_name = Span::of(method, buffer);
        self.method = Method::of(method);
        self.fields.clear();
        self.seen = 0;
        self.repeated = 0;
    }

    /// Adds a header field, whose name and value are valid. Returns its key.
    pub(crate) fn add_field(&mut self, name: &[u8], value: &[u8], buffer: &[u8]) -> FieldKey {
        let key = FieldName::of(name).key();
        if let Some(bit) = key.bit() {
            self.repeated |= self.seen & bit;
            self.seen |= bit;
        }
        self.fields.push(Field { name: Span::of(name, buffer), value: Span::of(value, buffer), key });
        key
    }

    /// Checks a head whose fields are all there, and takes the target and the Host field apart (RFC 9112 sections 3.2 and
    /// 3.3). What every protocol refuses is refused here.
    ///
    /// # Errors
    /// The refusal for the client.
    pub(crate) fn finish(
        &mut self,
        target: &[u8],
        host: Option<&[u8]>,
        buffer: &[u8],
    ) -> Result<(), Refusal> {
        let parts = target::split(target, self.method, self.method_name.of_buffer(buffer))?;
        self.target = Span::of(target, buffer);
        self.path = Span::of(parts.path, buffer);
        self.whole_server = parts.whole_server;
        self.query = Span::of(parts.query, buffer);
        let from_field = host.map(|host| self.known_host.parse(host, buffer)).transpose()?;
        self.host = match parts.authority {
            Some(authority) => Some(target::parse_host(authority, buffer).map_err(|_| Refusal::BadTarget)?),
            None => from_field,
        };
        Ok(())
    }

    /// Takes fields with such names away: no application gets them.
    pub(crate) fn drop_fields(&mut self, buffer: &[u8], is_dropped: impl Fn(&[u8]) -> bool) {
        self.drop_all(|field| is_dropped(field.name.of_buffer(buffer)));
    }

    /// The same by their values. An application gets the host in any case.
    pub(crate) fn drop_values(&mut self, buffer: &[u8], is_dropped: impl Fn(&[u8]) -> bool) {
        self.drop_all(|field| field.key != known_key::HOST && is_dropped(field.value.of_buffer(buffer)));
    }

    fn drop_all(&mut self, is_dropped: impl Fn(&Field) -> bool) {
        for field in self.fields.iter_mut().filter(|field| is_dropped(field)) {
            let others = !field.key.bit().unwrap_or(0);
            self.seen &= others;
            self.repeated &= others;
            field.key = KEY_DROPPED;
        }
    }

    /// Takes the fields with a well-known key away: no application gets them.
    pub(crate) fn drop_known(&mut self, key: FieldKey) {
        self.drop_all(|field| field.key == key);
    }

    // --- What it says --------------------------------------------------------------------------------

    /// The head with its text: the buffer that it was read from, which may have grown, but may not have moved its content.
    pub fn with<'a>(&'a self, text: &'a [u8]) -> Head<'a> {
        Head { spans: self, text }
    }

    /// Whether it asks for something that may be a file, by its method and as it has no body.
    pub fn may_be_for_file(&self) -> bool {
        let reads = matches!(self.method, Method::Get | Method::Head);
        reads && self.framing == BodyFraming::None && !self.upgrade
    }

    /// The host that is asked; `None` if the client named none.
    pub fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// Whether there is a field with a well-known key.
    pub(crate) fn has(&self, key: FieldKey) -> bool {
        key.bit().is_some_and(|bit| self.seen & bit != 0)
    }
}

/// A head, with the text that it has spans of.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub(crate) spans: &'a RequestHead,
    pub(crate) text: &'a [u8],
}

impl Deref for Head<'_> {
    type Target = RequestHead;

    fn deref(&self) -> &RequestHead {
        self.spans
    }
}

impl<'a> Head<'a> {
    /// The method as it was sent.
    pub fn method_name(self) -> &'a [u8] {
        self.spans.method_name.of_buffer(self.text)
    }

    /// The whole request target as it was sent.
    pub fn target(self) -> &'a [u8] {
        self.spans.target.of_buffer(self.text)
    }

    /// The path as it was sent, not decoded: it begins with `/`, or is `*`.
    pub fn path(self) -> &'a [u8] {
        match (self.spans.path.is_empty(), self.spans.whole_server) {
            (false, _) => self.spans.path.of_buffer(self.text),
            (true, true) => b"*",
            (true, false) => b"/",
        }
    }

    /// What follows the first `?` of the target; empty if there is none.
    pub fn query(self) -> &'a [u8] {
        self.spans.query.of_buffer(self.text)
    }

    /// The name of the host that is asked; `None` if the client named none.
    pub fn host_name(self) -> Option<&'a [u8]> {
        self.spans.host.as_ref().map(|host| host.name(self.text))
    }

    /// The fields in the order they came: name and value.
    pub fn fields(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.spans
            .fields
            .iter()
            .map(move |field| (field.name.of_buffer(self.text), field.value.of_buffer(self.text)))
    }

    /// The fields that applications get.
    pub fn passed_fields(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let passed = self.spans.fields.iter().filter(|field| field.key != KEY_DROPPED);
        passed.map(move |field| (field.name.of_buffer(self.text), field.value.of_buffer(self.text)))
    }

    /// The first value of the field with a well-known key.
    pub fn field(self, key: FieldKey) -> Option<&'a [u8]> {
        if self.spans.seen & key.bit()? == 0 {
            return None;
        }
        self.values_of(key).next()
    }

    /// All values of the field with a well-known key, in the order they came.
    pub(crate) fn values_of(self, key: FieldKey) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let fields = self.spans.fields.iter().filter(move |field| field.key == key);
        fields.map(move |field| field.value.of_buffer(self.text))
    }
}
