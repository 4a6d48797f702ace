//! Protocol Buffers, as far as OTLP needs them: a message is its fields, one after the other.

/// Wire types.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// The longest varint, in bytes.
const VARINT_BYTES: usize = 10;

/// A message, or some fields of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Adds a field of type `uint64`, `int64` or `enum`.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    pub(crate) fn fixed64(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn fixed32(&mut self, field: u64, value: u32) {
        self.tag(field, FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a field of type `bytes` or `string`.
    pub(crate) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Adds a field that is a message, which `write` fills.
    pub(crate) fn message(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        self.tag(field, LENGTH);
        let begin = self.0.len();
        write(self);
        let (prefix, bytes) = varint((self.0.len() - begin) as u64);
        self.0.splice(begin..begin, prefix[..bytes].iter().copied());
    }

    /// Adds fields that were written before.
    pub(crate) fn fields(&mut self, fields: &[u8]) {
        self.0.extend_from_slice(fields);
    }

    fn tag(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, value: u64) {
        let (encoded, bytes) = varint(value);
        self.0.extend_from_slice(&encoded[..bytes]);
    }
}

/// Seven bits in each byte, the lowest first; the highest bit says that another byte follows.
fn varint(mut value: u64) -> ([u8; VARINT_BYTES], usize) {
    let mut encoded = [0; VARINT_BYTES];
    let mut bytes = 0;
    loop {
        encoded[bytes] = value as u8 & 0x7f;
        value >>= 7;
        bytes += 1;
        if value == 0 {
            return (encoded, bytes);
        }
        encoded[bytes - 1] |= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        let encoded = |value| {
            let (encoded, bytes) = varint(value);
            encoded[..bytes].to_vec()
        };
        assert_eq!(encoded(0), [0]);
        assert_eq!(encoded(127), [0x7f]);
        assert_eq!(encoded(150), [0x96, 0x01]); // the example of the format's documentation
        assert_eq!(encoded(u64::MAX), [[0xff; 9].as_slice(), &[0x01]].concat());
    }

    #[test]
    fn a_message_stands_behind_its_length() {
        let mut message = Message::default();
        message.message(3, |inner| inner.number(1, 150));
        assert_eq!(message.as_slice(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut long = Message::default();
        long.message(1, |inner| inner.bytes(2, &[7; 200]));
        assert_eq!(long.as_slice()[..6], [0x0a, 0xcb, 0x01, 0x12, 0xc8, 0x01]);
        assert_eq!(long.as_slice().len(), 206);
    }

    #[test]
    fn fixed_numbers_have_their_lowest_byte_first() {
        let mut message = Message::default();
        message.fixed64(7, 1);
        message.fixed32(16, 0x301);
        assert_eq!(message.into_bytes(), [0x39, 1, 0, 0, 0, 0, 0, 0, 0, 0x85, 0x01, 0x01, 0x03, 0, 0]);
    }
}
