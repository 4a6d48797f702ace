//! A span: what happened from when to when, within which trace.

use crate::protobuf::Message;

/// The id of a trace; not all zeros.
pub type TraceId = [u8; 16];
/// The id of a span; not all zeros.
pub type SpanId = [u8; 8];

/// Most bytes of a text in an attribute. The rest is cut off.
const TEXT_BYTES: usize = 1024;

/// The status code of a span that has failed.
const STATUS_ERROR: u64 = 2;

/// Flags of a span, beside the one of the trace context that it was sampled: that it is known whether its parent is in another
/// process, and that it is.
const SAMPLED: u32 = 0x001;
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

/// What a span is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Something within the server.
    Internal = 1,
    /// A request of a client.
    Server = 2,
}

/// Attributes of a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(Message);

impl Attributes {
    /// Adds a text, which may come from a client: it is cut off where it is long, and what is not UTF-8 is replaced.
    pub fn text(&mut self, key: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(&value[..value.len().min(TEXT_BYTES)]);
        self.add(key, |any| any.bytes(1, value.as_bytes()));
    }

    /// Adds a number.
    pub fn number(&mut self, key: &str, value: u64) {
        self.add(key, |any| any.number(3, value));
    }

    fn add(&mut self, key: &str, value: impl FnOnce(&mut Message)) {
        self.0.message(9, |attribute| {
            attribute.bytes(1, key.as_bytes());
            attribute.message(2, value);
        });
    }
}

/// A span that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span that it is a part of.
    pub parent: Option<SpanId>,
    /// Whether that is a span of another process.
    pub is_parent_remote: bool,
    /// What came with the trace, in `tracestate`.
    pub state: &'a [u8],
    /// Its name.
    pub name: &'a str,
    /// What it is about.
    pub kind: SpanKind,
    /// When it began and ended, in nanoseconds since 1970.
    pub begin_ns: u64,
    /// The same.
    pub end_ns: u64,
    /// What else is known.
    pub attributes: &'a Attributes,
    /// Whether it has failed.
    pub is_error: bool,
}

/// Spans, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    pub(crate) encoded: Message,
    pub(crate) count: usize,
}

impl Spans {
    /// Adds a span.
    pub fn add(&mut self, span: &Span<'_>) {
        self.count += 1;
        self.encoded.message(2, |message| span.write(message));
    }
}

impl Span<'_> {
    fn write(&self, message: &mut Message) {
        message.bytes(1, &self.trace);
        message.bytes(2, &self.id);
        if !self.state.is_empty() {
            message.bytes(3, String::from_utf8_lossy(self.state).as_bytes());
        }
        if let Some(parent) = &self.parent {
            message.bytes(4, parent);
        }
        message.bytes(5, self.name.as_bytes());
        message.number(6, self.kind as u64);
        message.fixed64(7, self.begin_ns);
        message.fixed64(8, self.end_ns);
        message.fields(self.attributes.0.as_slice());
        if self.is_error {
            message.message(15, |status| status.number(3, STATUS_ERROR));
        }
        let remote = if self.is_parent_remote { PARENT_IS_REMOTE } else { 0 };
        message.fixed32(16, SAMPLED | PARENT_IS_KNOWN | remote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_off_and_made_utf_8() {
        let mut attributes = Attributes::default();
        attributes.text("k", b"\xff");
        assert_eq!(attributes.0.as_slice(), b"\x4a\x0a\x0a\x01k\x12\x05\x0a\x03\xef\xbf\xbd");
        let mut long = Attributes::default();
        long.text("k", &[b'a'; 100_000]);
        assert!((TEXT_BYTES..TEXT_BYTES + 20).contains(&long.0.as_slice().len()));
    }
}
