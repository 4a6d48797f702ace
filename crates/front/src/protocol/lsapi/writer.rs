//! What a web server gets: an answer as packets, in the byte order of its request.

use super::packet::{kind, ByteOrder, Header, HEADER_BYTES};
use crate::message::refusal::Refusal;
use crate::protocol::cgi;

/// Most bytes of a body in a packet that is made in memory.
pub const PACKET_BYTES: usize = 16 * 1024;

/// Most bytes of a file in a packet.
pub const FILE_PACKET_BYTES: u64 = 1 << 30;

/// Most fields of a head, as LiteSpeed's library has it.
const MOST_FIELDS: usize = 1000;

/// Most bytes of a field with name, colon and end: a length is read as a signed number of 16 bits.
const FIELD_BYTES: usize = i16::MAX as usize;

/// Encodes the answer to one request.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    order: ByteOrder,
}

impl Writer {
    /// A writer for a web server with this byte order ([`super::Reader::byte_order`]).
    pub fn new(order: ByteOrder) -> Self {
        Writer { order }
    }

    /// Appends the head: a status, and fields that are tokens and values. Call it once, for the final head: there can be no
    /// second one.
    ///
    /// # Errors
    /// The head has more fields, or a longer one, than can be encoded. `out` is as it was.
    pub fn head<'f>(
        &self,
        status: u16,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let mut lengths = Vec::new();
        let mut text = Vec::new();
        for (name, value) in fields.into_iter().filter(|(name, _)| cgi::is_sent(name)) {
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

    /// Appends bytes of the body.
    pub fn bytes(&self, bytes: &[u8], out: &mut Vec<u8>) {
        for part in bytes.chunks(PACKET_BYTES) {
            out.extend_from_slice(&self.packet(kind::RESP_STREAM, part.len()));
            out.extend_from_slice(part);
        }
    }

    /// Appends the header of a packet for a part of the body that the caller sends: from a file, or without a copy.
    /// Gives the number of bytes that have to follow: at most `left`, and at most [`FILE_PACKET_BYTES`].
    pub fn part(&self, left: u64, out: &mut Vec<u8>) -> usize {
        let length = left.min(FILE_PACKET_BYTES) as usize;
        if length > 0 {
            out.extend_from_slice(&self.packet(kind::RESP_STREAM, length));
        }
        length
    }

    /// Appends the end of the answer; `close`: and that the connection will be closed.
    pub fn end(&self, close: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.packet(kind::RESP_END, 0));
        if close {
            out.extend_from_slice(&self.packet(kind::CONN_CLOSE, 0));
        }
    }

    /// Appends what makes an answer that cannot be completed an error; the caller then closes the connection. That is
    /// nothing: only `RESP_END` ends an answer.
    pub fn abort(&self, _out: &mut Vec<u8>) {}

    fn packet(&self, kind: u8, content_bytes: usize) -> [u8; HEADER_BYTES] {
        let packet_bytes = (HEADER_BYTES + content_bytes) as i32;
        Header { kind, order: self.order, packet_bytes }.encode()
    }
}
