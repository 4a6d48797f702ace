//! Decodes the body of a message as it arrives: a length of bytes, or chunks (RFC 9112 section 7.1).
//!
//! Nothing is stored here but a few counters. What could be read in two ways (a bare CR or LF, a size
//! that is not plain hexadecimal, data that does not end where it should) is refused, because another
//! server on the way may have read it in the other way.

use highball_config::Limits;
use highball_ring::frame::{is_token_byte, is_value_byte};

use crate::message::refusal::Refusal;
use crate::message::request_head::BodyFraming;

/// Most hexadecimal digits of a chunk's size.
const SIZE_DIGITS: u32 = 16;

/// Most bytes of all the chunk extensions of a body together.
const EXTENSION_BYTES: usize = 16 * 1024;

/// Limits on the trailer section without an option: in an application's own chunks.
const RESPONSE_TRAILER_BYTES: usize = 16 * 1024;
const RESPONSE_TRAILER_FIELDS: usize = 64;

/// How far [`BodyDecoder::decode`] has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that belong to the body and were taken.
    pub consumed: usize,
    /// The body is complete: what is left of the input belongs to the next message.
    pub done: bool,
}

/// Decodes one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyDecoder {
    state: DecoderState,
    /// Bytes that may still be given out.
    allowance: u64,
    extension_allowance: usize,
    trailer_allowance: usize,
    trailer_fields_allowance: usize,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecoderState {
    /// A body of known length, with the bytes that are missing.
    Length(u64),
    /// A chunk's size, with the number of its digits that have come.
    Size {
        size: u64,
        digits: u32,
    },
    /// What follows the size of a chunk in its line.
    Extension(ExtensionPart, u64),
    /// The LF that ends the line of the size.
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// The beginning of a trailer field or of the last line.
    TrailerLine,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    Done,
}

/// A chunk extension (RFC 9112 section 7.1.1): `BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExtensionPart {
    /// White space where only a semicolon may follow.
    BeforeSemicolon,
    BeforeName,
    Name,
    /// White space behind a name.
    AfterName,
    BeforeValue,
    Value,
    Quoted,
    /// Behind a backslash in a quoted string.
    QuotedPair,
    AfterQuoted,
}

impl BodyDecoder {
    /// A decoder for a request's body of at most `most_bytes`.
    pub fn new(framing: BodyFraming, limits: &Limits, most_bytes: Option<u64>) -> Self {
        let state = match framing {
            BodyFraming::None | BodyFraming::Length(0) => DecoderState::Done,
            BodyFraming::Length(length) => DecoderState::Length(length),
            BodyFraming::Unknown => DecoderState::Size { size: 0, digits: 0 },
        };
        BodyDecoder {
            state,
            allowance: most_bytes.unwrap_or(u64::MAX),
            extension_allowance: EXTENSION_BYTES,
            trailer_allowance: limits.head_bytes,
            trailer_fields_allowance: limits.header_fields,
        }
    }

    /// A decoder for the body of a response that an application has chunked itself.
    pub fn of_chunked_response() -> Self {
        BodyDecoder {
            state: DecoderState::Size { size: 0, digits: 0 },
            allowance: u64::MAX,
            extension_allowance: EXTENSION_BYTES,
            trailer_allowance: RESPONSE_TRAILER_BYTES,
            trailer_fields_allowance: RESPONSE_TRAILER_FIELDS,
        }
    }

    /// Whether the body is complete.
    pub fn is_done(&self) -> bool {
        self.state == DecoderState::Done
    }

    /// Decodes the next piece of the body; `out` gets its bytes, in order.
    ///
    /// # Errors
    /// The refusal for the client; the connection cannot be used any further.
    pub fn decode(&mut self, input: &[u8], mut out: impl FnMut(&[u8])) -> Result<Progress, Refusal> {
        let mut rest = input;
        while self.state != DecoderState::Done {
            match self.state {
                DecoderState::Length(missing) | DecoderState::Data(missing) => {
                    let length = usize::try_from(missing).map_or(rest.len(), |most| rest.len().min(most));
                    let (data, after) = rest.split_at(length);
                    if !data.is_empty() {
                        self.give(data, &mut out)?;
                    } else if missing > 0 {
                        break;
                    }
                    rest = after;
                }
                state => {
                    let Some((&byte, after)) = rest.split_first() else { break };
                    self.state = self.step(state, byte)?;
                    rest = after;
                }
            }
        }
        Ok(Progress { consumed: input.len() - rest.len(), done: self.is_done() })
    }

    /// Passes on bytes of the body; by the state, at least these are missing.
    fn give(&mut self, data: &[u8], out: &mut impl FnMut(&[u8])) -> Result<(), Refusal> {
        let length = data.len() as u64;
        self.allowance = self.allowance.checked_sub(length).ok_or(Refusal::BodyTooLarge)?;
        self.state = match self.state {
            DecoderState::Length(missing) if missing == length => DecoderState::Done,
            DecoderState::Length(missing) => DecoderState::Length(missing - length),
            DecoderState::Data(missing) if missing == length => DecoderState::DataCr,
            DecoderState::Data(missing) => DecoderState::Data(missing - length),
            state => state,
        };
        out(data);
        Ok(())
    }

    /// The state after one byte that is not data.
    fn step(&mut self, state: DecoderState, byte: u8) -> Result<DecoderState, Refusal> {
        match state {
            DecoderState::Size { size, digits } => self.step_size(size, digits, byte),
            DecoderState::Extension(part, size) => self.step_extension(part, size, byte),
            DecoderState::SizeLf(_)
            | DecoderState::DataLf
            | DecoderState::TrailerLf
            | DecoderState::LastLf
                if byte != b'\n' =>
            {
                Err(Refusal::BadChunk)
            }
            DecoderState::SizeLf(0) => Ok(DecoderState::TrailerLine),
            DecoderState::SizeLf(size) if size > self.allowance => Err(Refusal::BodyTooLarge),
            DecoderState::SizeLf(size) => Ok(DecoderState::Data(size)),
            DecoderState::DataCr if byte == b'\r' => Ok(DecoderState::DataLf),
            DecoderState::DataCr => Err(Refusal::BadChunk),
            DecoderState::DataLf => Ok(DecoderState::Size { size: 0, digits: 0 }),
            DecoderState::TrailerLine | DecoderState::TrailerName | DecoderState::TrailerValue => {
                self.step_trailer(state, byte)
            }
            DecoderState::TrailerLf => Ok(DecoderState::TrailerLine),
            DecoderState::LastLf => Ok(DecoderState::Done),
            DecoderState::Length(_) | DecoderState::Data(_) | DecoderState::Done => Ok(state),
        }
    }

    fn step_size(&mut self, size: u64, digits: u32, byte: u8) -> Result<DecoderState, Refusal> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if digits == 0 => return Err(Refusal::BadChunk),
            b'\r' => return Ok(DecoderState::SizeLf(size)),
            b';' | b' ' | b'\t' => return self.step_extension(ExtensionPart::BeforeSemicolon, size, byte),
            _ => return Err(Refusal::BadChunk),
        };
        if digits == SIZE_DIGITS {
            return Err(Refusal::BadChunk);
        }
        Ok(DecoderState::Size { size: size << 4 | u64::from(digit), digits: digits + 1 })
    }

    /// Extensions are only passed over: neither side knows any.
    fn step_extension(&mut self, part: ExtensionPart, size: u64, byte: u8) -> Result<DecoderState, Refusal> {
        use ExtensionPart::*;
        let allowance = self.extension_allowance.checked_sub(1);
        self.extension_allowance = allowance.ok_or(Refusal::ChunkExtensionsTooLarge)?;
        let next = match (part, byte) {
            (Name | Value | AfterQuoted, b'\r') => return Ok(DecoderState::SizeLf(size)),
            (BeforeSemicolon | Name | AfterName | Value | AfterQuoted, b';') => BeforeName,
            (Name | AfterName, b'=') => BeforeValue,
            (BeforeSemicolon | Value | AfterQuoted, b' ' | b'\t') => BeforeSemicolon,
            (Name | AfterName, b' ' | b'\t') => AfterName,
            (BeforeName | BeforeValue, b' ' | b'\t') => part,
            (BeforeValue, b'"') => Quoted,
            (Quoted, b'"') => AfterQuoted,
            (Quoted, b'\\') => QuotedPair,
            (Quoted | QuotedPair, byte) if is_value_byte(byte) => Quoted,
            (BeforeName | Name, byte) if is_token_byte(byte) => Name,
            (BeforeValue | Value, byte) if is_token_byte(byte) => Value,
            _ => return Err(Refusal::BadChunk),
        };
        Ok(DecoderState::Extension(next, size))
    }

    /// Trailer fields are held to the rules for header fields, and dropped.
    fn step_trailer(&mut self, state: DecoderState, byte: u8) -> Result<DecoderState, Refusal> {
        let allowance = self.trailer_allowance.checked_sub(1);
        self.trailer_allowance = allowance.ok_or(Refusal::TrailersTooLarge)?;
        match (state, byte) {
            (DecoderState::TrailerLine, b'\r') => Ok(DecoderState::LastLf),
            (DecoderState::TrailerLine, byte) if is_token_byte(byte) => {
                let allowance = self.trailer_fields_allowance.checked_sub(1);
                self.trailer_fields_allowance = allowance.ok_or(Refusal::TrailersTooLarge)?;
                Ok(DecoderState::TrailerName)
            }
            (DecoderState::TrailerName, b':') => Ok(DecoderState::TrailerValue),
            (DecoderState::TrailerName, byte) if is_token_byte(byte) => Ok(state),
            (DecoderState::TrailerValue, b'\r') => Ok(DecoderState::TrailerLf),
            (DecoderState::TrailerValue, byte) if is_value_byte(byte) => Ok(state),
            _ => Err(Refusal::BadTrailer),
        }
    }
}

#[cfg(test)]
mod tests;
