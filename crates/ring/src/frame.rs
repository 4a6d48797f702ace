//! Response frames: a 4-byte header (kind, payload length), then the payload.

mod words;

use crate::layout::RingError;

/// Bytes of a frame header.
pub const HEADER_BYTES: usize = 4;
/// Longest payload of a frame.
pub const MAX_PAYLOAD: usize = (1 << 24) - 1;
/// Longest payload of a `HEAD` frame.
pub const MAX_HEAD: usize = 256 * 1024;
/// Longest payload of a `FAILURE` frame.
pub const MAX_FAILURE: usize = 48 * 1024;
/// The most bytes of a packet, which holds whole frames of an answer that has left its place.
pub const PACKET_BYTES: usize = 32 * 1024;
/// Bytes of a `FILE` payload.
pub const FILE_PAYLOAD: usize = 16;

/// Flag in a `HEAD` payload: a `HIJACK` frame follows, so that there is no body to be framed.
pub const HIJACK_FOLLOWS: u8 = 1;

/// Flag in a `HEAD` payload: the application writes a line about this request into the terminal itself.
pub const LOGGED_BY_APP: u8 = 2;

/// Flag in a `HEAD` payload: the body is one whole file, whose `FILE` frame follows (but not where the method is HEAD). Its
/// length is the Content-Length. The front sends what the client asks for of it.
pub const IS_FILE: u8 = 4;

/// Flag in a `HEAD` payload: the application writes the body as it comes to be known, so that the answer is to leave its
/// place at once.
pub const STREAMS: u8 = 8;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Status and header fields.
    Head = 1,
    /// Bytes of the body.
    Body = 2,
    /// A part of a file that came over the descriptor socket.
    File = 3,
    /// The connection is handed to a socket that came over the descriptor socket.
    Hijack = 4,
    /// The answer is complete.
    End = 5,
    /// The answer cannot be completed.
    Abort = 6,
    /// The application raised an exception before there was an answer.
    Failure = 7,
    /// The rest of the answer comes over the socket that the front has offered for it.
    Stream = 8,
}

/// A frame header, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the frame is.
    pub kind: Kind,
    /// Bytes that follow.
    pub length: usize,
}

impl Header {
    /// The four bytes of this header.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        debug_assert!(self.length <= MAX_PAYLOAD);
        (u32::from(self.kind as u8) | ((self.length as u32) << 8)).to_le_bytes()
    }

    /// Reads a header, and checks that its kind may have such a length.
    ///
    /// # Errors
    /// An unknown kind or a length that its kind cannot have is a breach.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, RingError> {
        let word = u32::from_le_bytes(bytes);
        let length = (word >> 8) as usize;
        let kind = match word & 0xff {
            1 => Kind::Head,
            2 => Kind::Body,
            3 => Kind::File,
            4 => Kind::Hijack,
            5 => Kind::End,
            6 => Kind::Abort,
            7 => Kind::Failure,
            8 => Kind::Stream,
            _ => return Err(RingError::Breach("a frame of an unknown kind")),
        };
        let allowed = match kind {
            Kind::Head => (4..=MAX_HEAD).contains(&length),
            Kind::Body => true,
            Kind::File => length == FILE_PAYLOAD,
            Kind::Failure => length <= MAX_FAILURE,
            Kind::Hijack | Kind::End | Kind::Abort | Kind::Stream => length == 0,
        };
        if allowed {
            Ok(Header { kind, length })
        } else {
            Err(RingError::Breach("a frame of the wrong length"))
        }
    }
}

/// Whether a byte may stand in a token, such as the name of a field in a `HEAD` payload (RFC 9110 section 5.6.2).
#[inline]
pub fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[usize::from(byte)]
}

/// Whether these bytes are a token.
#[inline]
pub fn is_token(bytes: &[u8]) -> bool {
    let is_usual = || words::all(bytes, words::are_letters_and_hyphens);
    !bytes.is_empty() && (is_usual() || bytes.iter().all(|&byte| is_token_byte(byte)))
}

/// Whether a byte may stand in the value of a field: no control character but the tab (RFC 9110 section 5.5).
#[inline]
pub fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Whether these bytes may be the value of a field.
#[inline]
pub fn is_value(bytes: &[u8]) -> bool {
    words::all(bytes, words::have_no_control) || bytes.iter().all(|&byte| is_value_byte(byte))
}

static TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-')
            || matches!(byte, b'.' | b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_what_rfc_9110_allows() {
        let long = |byte: u8| [b"x-request-id-of-a-proxy", &[byte][..]].concat();
        for byte in 0..=u8::MAX {
            assert_eq!(is_token(&[byte]), is_token_byte(byte));
            assert_eq!(is_token(&long(byte)), is_token_byte(byte));
            assert_eq!(is_value(&[byte]), is_value_byte(byte));
            assert_eq!(is_value(&long(byte)), is_value_byte(byte));
        }
        assert!(!is_token(b"") && is_value(b""));
    }

    #[test]
    fn headers_are_encoded_without_loss() {
        for (kind, length) in
            [(Kind::Head, 4), (Kind::Body, MAX_PAYLOAD), (Kind::File, FILE_PAYLOAD), (Kind::End, 0)]
        {
            let header = Header { kind, length };
            assert_eq!(Header::decode(header.encode()).unwrap(), header);
        }
    }

    #[test]
    fn malformed_bytes_are_a_breach() {
        for word in [
            0u32,
            9,
            8 | 1 << 8,
            255,
            7 | ((MAX_FAILURE as u32 + 1) << 8),
            5 | 1 << 8,
            1,
            3,
            1 | ((MAX_HEAD as u32 + 1) << 8),
        ] {
            assert!(Header::decode(word.to_le_bytes()).is_err(), "{word:#x}");
        }
    }
}
