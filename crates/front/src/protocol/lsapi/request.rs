//! The content of `BEGIN_REQUEST`: variables, and the client's header fields as places in its head.
//!
//! The packet is laid out as follows; all offsets are checked before they are used:
//!
//! | part | bytes |
//! | --- | --- |
//! | header of the packet | 8 |
//! | bytes of the client's head; of the body; offsets of script file, script name, query string and method; numbers of other fields, variables and special variables | 9 × 4 |
//! | special variables, which are settings for PHP, and their end | any, then 4 |
//! | variables and their end | any, then 4 |
//! | padding to a multiple of 8 from the packet's begin | 0 to 7 |
//! | lengths of 25 known fields; padding; their offsets | 25 × 2 + 2 + 25 × 4 |
//! | other fields: offset and length of name and value | 4 × 4 each |
//! | the client's head | as announced |

use super::packet::{ByteOrder, HEADER_BYTES};
use crate::http_syntax::parse_length;
use crate::message::refusal::Refusal;
use crate::protocol::cgi::{ReadError, Variables};

/// Bytes before the variables.
const FIXED_BYTES: usize = HEADER_BYTES + 9 * 4;

/// Bytes of the places of known fields.
const KNOWN_BYTES: usize = 25 * 2 + 2 + 25 * 4;

/// Fewest bytes of a packet.
pub(super) const FEWEST_BYTES: usize = FIXED_BYTES + 4 + 4 + KNOWN_BYTES;

/// Most bytes of a packet: what LiteSpeed's library accepts.
pub(super) const MOST_BYTES: usize = 65_535;

/// Most variables of a kind, as LiteSpeed's library has it.
const MOST_VARIABLES: i32 = 8192;

/// The length of a body that only Content-Length names, as it is beyond an `i32`.
const LENGTH_IN_FIELD: i32 = -2;

/// The known fields in the order of the protocol. The last, Transfer-Encoding, is of the client's connection.
const KNOWN: [&[u8]; 25] = [
    b"HTTP_ACCEPT",
    b"HTTP_ACCEPT_CHARSET",
    b"HTTP_ACCEPT_ENCODING",
    b"HTTP_ACCEPT_LANGUAGE",
    b"HTTP_AUTHORIZATION",
    b"HTTP_CONNECTION",
    b"CONTENT_TYPE",
    b"CONTENT_LENGTH",
    b"HTTP_COOKIE",
    b"HTTP_COOKIE2",
    b"HTTP_HOST",
    b"HTTP_PRAGMA",
    b"HTTP_REFERER",
    b"HTTP_USER_AGENT",
    b"HTTP_CACHE_CONTROL",
    b"HTTP_IF_MODIFIED_SINCE",
    b"HTTP_IF_MATCH",
    b"HTTP_IF_NONE_MATCH",
    b"HTTP_IF_RANGE",
    b"HTTP_IF_UNMODIFIED_SINCE",
    b"HTTP_KEEP_ALIVE",
    b"HTTP_RANGE",
    b"HTTP_X_FORWARDED_FOR",
    b"HTTP_VIA",
    b"HTTP_TRANSFER_ENCODING",
];

const CUT_OFF: ReadError = ReadError::Breach("sends a BEGIN_REQUEST that is cut off");
const MISPLACED: ReadError = ReadError::Breach("sends a header field outside of the client's head");

/// Reads a whole packet.
///
/// # Errors
/// It is malformed, or names a body whose length is not known.
pub(super) fn read(packet: &[u8], order: ByteOrder) -> Result<Variables<'_>, ReadError> {
    let mut cursor = Cursor { packet, at: HEADER_BYTES, order };
    let head_bytes = cursor.length()?;
    let body_bytes = cursor.i32()?;
    for _ in 0..4 {
        // The offsets of four values that are also variables.
        cursor.i32()?;
    }
    let (others, variable_count, special_count) = (cursor.length()?, cursor.i32()?, cursor.i32()?);
    let mut variables = Variables::default();
    cursor.variables(special_count, |_, _| ())?;
    cursor.variables(variable_count, |name, value| {
        // Fields come from the client's head alone.
        if !name.starts_with(b"HTTP_") {
            variables.note(name, value);
        }
    })?;
    cursor.at = cursor.at.next_multiple_of(8);
    let known = cursor.take(KNOWN_BYTES)?;
    let other_bytes = others.checked_mul(16).ok_or(CUT_OFF)?;
    let other = cursor.take(other_bytes)?;
    let head = cursor.take(head_bytes)?;
    if cursor.at != packet.len() {
        return Err(ReadError::Breach("sends a BEGIN_REQUEST of another length than announced"));
    }
    note_known(known, head, order, &mut variables)?;
    note_others(other, head, order, &mut variables)?;
    check_body(body_bytes, &mut variables)?;
    Ok(variables)
}

fn note_known<'a>(
    known: &[u8],
    head: &'a [u8],
    order: ByteOrder,
    variables: &mut Variables<'a>,
) -> Result<(), ReadError> {
    let (lengths, offsets) = known.split_at(25 * 2 + 2);
    for ((name, length), offset) in KNOWN.iter().zip(lengths.chunks_exact(2)).zip(offsets.chunks_exact(4)) {
        let offset = order.read_i32(offset.try_into().expect("4 bytes"));
        // The head begins with the request line, so that no field is at 0.
        if offset != 0 {
            let length = order.read_u16(length.try_into().expect("2 bytes"));
            variables.note(name, part(head, offset, i32::from(length))?);
        }
    }
    Ok(())
}

fn note_others<'a>(
    other: &[u8],
    head: &'a [u8],
    order: ByteOrder,
    variables: &mut Variables<'a>,
) -> Result<(), ReadError> {
    for place in other.chunks_exact(16) {
        let number = |at: usize| order.read_i32(place[at..at + 4].try_into().expect("4 bytes"));
        let name = part(head, number(0), number(4))?;
        variables.note_raw_field(name, part(head, number(8), number(12))?)?;
    }
    Ok(())
}

/// A part of the client's head.
fn part(head: &[u8], offset: i32, length: i32) -> Result<&[u8], ReadError> {
    let offset = usize::try_from(offset).map_err(|_| MISPLACED)?;
    let length = usize::try_from(length).map_err(|_| MISPLACED)?;
    let end = offset.checked_add(length).ok_or(MISPLACED)?;
    head.get(offset..end).ok_or(MISPLACED)
}

/// The body's length stands in two places; it has to be the same. The web server alone names the length of a body that the
/// client has sent in chunks.
fn check_body(body_bytes: i32, variables: &mut Variables<'_>) -> Result<(), ReadError> {
    let field = variables
        .content_length()
        .map(|length| parse_length(length).ok_or(ReadError::Refused(Refusal::BadContentLength)));
    match (body_bytes, field.transpose()?) {
        (LENGTH_IN_FIELD, Some(_)) | (0, None) => Ok(()),
        (announced, Some(field)) if u64::try_from(announced) == Ok(field) => Ok(()),
        (announced @ 0.., None) => {
            variables.counted_length = Some(announced.unsigned_abs());
            Ok(())
        }
        (_, None) => Err(Refusal::BadContentLength.into()),
        _ => Err(ReadError::Breach("announces a body of another length than Content-Length")),
    }
}

/// Where in a packet to read on.
struct Cursor<'a> {
    packet: &'a [u8],
    at: usize,
    order: ByteOrder,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], ReadError> {
        let end = self.at.checked_add(bytes).ok_or(CUT_OFF)?;
        let taken = self.packet.get(self.at..end).ok_or(CUT_OFF)?;
        self.at = end;
        Ok(taken)
    }

    fn i32(&mut self) -> Result<i32, ReadError> {
        Ok(self.order.read_i32(self.take(4)?.try_into().expect("4 bytes")))
    }

    fn length(&mut self) -> Result<usize, ReadError> {
        usize::try_from(self.i32()?).map_err(|_| ReadError::Breach("sends a negative length"))
    }

    /// Reads this number of variables, and their end. Lengths are in network byte order, and count a NUL at the end of the
    /// name and of the value.
    fn variables(&mut self, count: i32, mut note: impl FnMut(&'a [u8], &'a [u8])) -> Result<(), ReadError> {
        if !(0..=MOST_VARIABLES).contains(&count) {
            return Err(ReadError::Breach("sends an impossible number of variables"));
        }
        for _ in 0..count {
            let lengths = self.take(4)?;
            let [name, value] = [[lengths[0], lengths[1]], [lengths[2], lengths[3]]]
                .map(|length| self.take(usize::from(u16::from_be_bytes(length))));
            match (name?.split_last(), value?.split_last()) {
                (Some((0, name)), Some((0, value))) => note(name, value),
                _ => return Err(ReadError::Breach("sends a variable without its end")),
            }
        }
        match self.take(4)? {
            [0, 0, 0, 0] => Ok(()),
            _ => Err(ReadError::Breach("sends more variables than announced")),
        }
    }
}
