//! The header of a record (FastCGI specification, sections 3.3 and 8).

/// Bytes of a header.
pub const HEADER_BYTES: usize = 8;

/// The version of the protocol.
pub(super) const VERSION: u8 = 1;

/// The request id of records that concern no request.
pub(super) const MANAGEMENT: u16 = 0;

/// The values of `type`.
pub(super) mod kind {
    pub(crate) const BEGIN_REQUEST: u8 = 1;
    pub(crate) const ABORT_REQUEST: u8 = 2;
    pub(crate) const END_REQUEST: u8 = 3;
    pub(crate) const PARAMS: u8 = 4;
    pub(crate) const STDIN: u8 = 5;
    pub(crate) const STDOUT: u8 = 6;
    pub(crate) const DATA: u8 = 8;
    pub(crate) const GET_VALUES: u8 = 9;
    pub(crate) const GET_VALUES_RESULT: u8 = 10;
    pub(crate) const UNKNOWN_TYPE: u8 = 11;
}

/// The values of `protocolStatus` in `END_REQUEST`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Status {
    RequestComplete = 0,
    CantMpxConn = 1,
    UnknownRole = 3,
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The type.
    pub kind: u8,
    /// The request that it belongs to; 0: none.
    pub request_id: u16,
    /// Bytes of content.
    pub content_bytes: u16,
    /// Bytes of padding after the content.
    pub padding_bytes: u8,
}

impl Record {
    /// A record without padding.
    pub(super) fn new(kind: u8, request_id: u16, content_bytes: u16) -> Self {
        Record { kind, request_id, content_bytes, padding_bytes: 0 }
    }

    /// The bytes of the header.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let [id_high, id_low] = self.request_id.to_be_bytes();
        let [content_high, content_low] = self.content_bytes.to_be_bytes();
        [VERSION, self.kind, id_high, id_low, content_high, content_low, self.padding_bytes, 0]
    }

    /// Reads a header; `None`: it is of another version.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Option<Self> {
        let [version, kind, id_high, id_low, content_high, content_low, padding_bytes, _reserved] = bytes;
        (version == VERSION).then_some(Record {
            kind,
            request_id: u16::from_be_bytes([id_high, id_low]),
            content_bytes: u16::from_be_bytes([content_high, content_low]),
            padding_bytes,
        })
    }
}

/// A whole `END_REQUEST` record.
pub(super) fn end_request(request_id: u16, status: Status, out: &mut Vec<u8>) {
    out.extend_from_slice(&Record::new(kind::END_REQUEST, request_id, 8).encode());
    out.extend_from_slice(&[0, 0, 0, 0, status as u8, 0, 0, 0]);
}

/// A whole `UNKNOWN_TYPE` record.
pub(super) fn unknown_type(unknown: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&Record::new(kind::UNKNOWN_TYPE, MANAGEMENT, 8).encode());
    out.extend_from_slice(&[unknown, 0, 0, 0, 0, 0, 0, 0]);
}
