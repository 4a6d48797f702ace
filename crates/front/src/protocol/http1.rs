//! HTTP/1.0 and HTTP/1.1 (RFC 9112).
//!
//! In reading order: [`scan`] (where a head ends), [`reader`] (what it says), [`body`], [`writer`] (answers).

pub mod body;
pub mod reader;
mod scan;
pub mod writer;

use highball_config::Limits;

use super::{BytesRead, Unreadable};
use crate::message::request_head::{BodyFraming, RequestHead};
use body::BodyDecoder;
use reader::{Parsed, Reader};
use writer::Writer;

/// A connection's reader and writer.
#[derive(Debug, Default)]
pub(crate) struct Http1 {
    pub(super) reader: Reader,
    body: Option<BodyDecoder>,
    pub(super) writer: Writer,
}

impl Http1 {
    pub(super) fn read_head(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        head: &mut RequestHead,
    ) -> Result<BytesRead, Unreadable> {
        Ok(match self.reader.parse(bytes, limits, head)? {
            Parsed::Partial => BytesRead { used: 0, is_complete: false },
            Parsed::Complete { length } => BytesRead { used: length, is_complete: true },
        })
    }

    pub(super) fn begin_body(&mut self, framing: BodyFraming, limits: &Limits, most_bytes: Option<u64>) {
        self.body = Some(BodyDecoder::new(framing, limits, most_bytes));
    }

    pub(super) fn read_body(
        &mut self,
        bytes: &[u8],
        out: impl FnMut(&[u8]),
    ) -> Result<BytesRead, Unreadable> {
        let Some(body) = &mut self.body else { return Ok(BytesRead { used: 0, is_complete: true }) };
        let progress = body.decode(bytes, out)?;
        if progress.done {
            self.body = None;
        }
        Ok(BytesRead { used: progress.consumed, is_complete: progress.done })
    }
}

#[cfg(test)]
mod tests;
