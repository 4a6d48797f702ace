//! What a web server gets: an answer as packets, in the byte order of its request.

use super::packet::{kind, ByteOrder, Header, HEADER_BYTES};
use crate::message::refusal::Refusal;
use crate::protocol::cgi::{self, CgiWriter};

/// Most bytes of a body in a packet.
pub const PACKET_BYTES: u64 = 1 << 30;

/// Most fields of a head, as LiteSpeed's library has it.
const MOST_FIELDS: usize = 1000;

/// Most bytes of a field with name, colon and end: a length is read as a signed number of 16 bits.
const FIELD_BYTES: usize = i16::MAX as usize;

/// Encodes the answer to one request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer {
    pub(super) order: ByteOrder,
}

impl Writer {
    /// A writer for a web server with this byte order.
    pub fn new(order: ByteOrder) -> Self {
        Writer { order }
    }

    fn packet(&self, kind: u8, content_bytes: usize) -> [u8; HEADER_BYTES] {
        let packet_bytes = (HEADER_BYTES + content_bytes) as i32;
        Header { kind, order: self.order, packet_bytes }.encode()
    }
}

impl CgiWriter for Writer {
    fn head(
        &self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let mut lengths = Vec::new();
        let mut text = Vec::new();
        for (name, value) in fields.filter(|(name, _)| cgi::is_sent(name)) {
            let length = name.len() + value.len() + 3;
            if length > FIELD_BYTES {
                return Err(Refusal::BadResponse { why: "has a field that is too long for LSAPI" });
            }
            lengths.push(length as u16);
            for part in [name, b": ", value, b"\0"] {
                text.extend_from_slice(part);
            }
        }
        if lengths.len() > MOST_FIELDS {
            return Err(Refusal::BadResponse { why: "has too many fields for LSAPI" });
        }
        out.extend_from_slice(&self.packet(kind::RESP_HEADER, 8 + 2 * lengths.len() + text.len()));
        out.extend_from_slice(&self.order.i32(lengths.len() as i32));
        out.extend_from_slice(&self.order.i32(i32::from(status)));
        out.extend(lengths.into_iter().flat_map(|length| self.order.u16(length)));
        out.extend_from_slice(&text);
        Ok(())
    }

    /// At most [`PACKET_BYTES`].
    fn part(&self, left: u64, out: &mut Vec<u8>) -> usize {
        let length = left.min(PACKET_BYTES) as usize;
        if length > 0 {
            out.extend_from_slice(&self.packet(kind::RESP_STREAM, length));
        }
        length
    }

    fn end(&self, close: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.packet(kind::RESP_END, 0));
        if close {
            out.extend_from_slice(&self.packet(kind::CONN_CLOSE, 0));
        }
    }

    /// Nothing: only `RESP_END` ends an answer.
    fn abort(&self, _out: &mut Vec<u8>) {}
}
