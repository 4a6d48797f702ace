//! The header of a packet, and its numbers, which are in the sender's byte order.

/// Bytes of a header.
pub const HEADER_BYTES: usize = 8;

const PREFIX: [u8; 2] = *b"LS";

/// The bit of a header's flags that says in which byte order the packet is.
const BIG_ENDIAN: u8 = 1;

/// The values of a header's type.
pub(super) mod kind {
    pub(crate) const BEGIN_REQUEST: u8 = 1;
    pub(crate) const ABORT_REQUEST: u8 = 2;
    pub(crate) const RESP_HEADER: u8 = 3;
    pub(crate) const RESP_STREAM: u8 = 4;
    pub(crate) const RESP_END: u8 = 5;
    pub(crate) const REQ_RECEIVED: u8 = 7;
    pub(crate) const CONN_CLOSE: u8 = 8;
}

/// The byte order of a packet's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// As on x86-64 and arm64.
    #[default]
    Little,
    /// As on s390x.
    Big,
}

impl ByteOrder {
    pub(super) fn read_i32(self, bytes: [u8; 4]) -> i32 {
        match self {
            ByteOrder::Little => i32::from_le_bytes(bytes),
            ByteOrder::Big => i32::from_be_bytes(bytes),
        }
    }

    pub(super) fn read_u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn i32(self, number: i32) -> [u8; 4] {
        match self {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        }
    }

    pub(super) fn u16(self, number: u16) -> [u8; 2] {
        match self {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        }
    }
}

/// The header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The type.
    pub kind: u8,
    /// The byte order of this packet.
    pub order: ByteOrder,
    /// Bytes of the packet, with this header.
    pub packet_bytes: i32,
}

impl Header {
    /// The bytes of the header.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let flags = if self.order == ByteOrder::Big { BIG_ENDIAN } else { 0 };
        let [a, b, c, d] = self.order.i32(self.packet_bytes);
        [PREFIX[0], PREFIX[1], self.kind, flags, a, b, c, d]
    }

    /// Reads a header; `None`: it has another prefix.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Option<Self> {
        let [first, second, kind, flags, length @ ..] = bytes;
        let order = if flags & BIG_ENDIAN == 0 { ByteOrder::Little } else { ByteOrder::Big };
        let is_packet = [first, second] == PREFIX;
        is_packet.then(|| Header { kind, order, packet_bytes: order.read_i32(length) })
    }
}
