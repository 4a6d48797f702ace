//! HTTP/2 (RFC 9113), as far as one of its streams is concerned: one request, and the answer to it. The crate h2 has the
//! frames, their order, flow control and the compression of heads.

mod reader;
mod writer;

use std::rc::Rc;

use highball_config::Limits;
use http::request::Parts;

use super::{BytesRead, Unreadable};
use crate::http_syntax::DateCache;
use crate::message::answer::AnswerHead;
use crate::message::refusal::Refusal;
use crate::message::request_head::RequestHead;
use crate::transport::http2::Http2Stream;

/// A stream's reader and writer.
#[derive(Debug)]
pub(crate) struct Http2 {
    stream: Rc<Http2Stream>,
    /// A body that is read may have this many more bytes.
    allowance: u64,
}

impl Http2 {
    pub(crate) fn new(stream: Rc<Http2Stream>) -> Self {
        Http2 { stream, allowance: u64::MAX }
    }

    /// Reads the head. Returns what it has spans of.
    ///
    /// # Errors
    /// The refusal for the client.
    pub(crate) fn read_head(
        &self,
        request: &Parts,
        limits: &Limits,
        head: &mut RequestHead,
    ) -> Result<Vec<u8>, Refusal> {
        reader::read(request, !self.stream.has_read_body(), limits, head)
    }

    pub(super) fn begin_body(&mut self, most_bytes: Option<u64>) {
        self.allowance = most_bytes.unwrap_or(u64::MAX);
        self.stream.await_end_of_body();
    }

    pub(super) fn has_read_body(&self) -> bool {
        self.stream.has_read_body()
    }

    pub(super) fn read_body(
        &mut self,
        bytes: &[u8],
        mut out: impl FnMut(&[u8]),
    ) -> Result<BytesRead, Unreadable> {
        let left = self.allowance.checked_sub(bytes.len() as u64);
        self.allowance = left.ok_or(Refusal::BodyTooLarge)?;
        out(bytes);
        Ok(BytesRead { used: bytes.len(), is_complete: self.stream.has_read_body() })
    }

    /// Sends a head: it is not among the bytes that are written.
    pub(super) fn write_head(
        &mut self,
        head: &AnswerHead,
        lines: &[u8],
        date: &DateCache,
    ) -> Result<(), Refusal> {
        let response = writer::response(head, lines, date)?;
        let sent = match head.is_interim() {
            true => self.stream.send_interim(response),
            false => self.stream.send_head(response, head.body),
        };
        if let Err(error) = sent {
            // The next look at the stream finds that the client has left.
            tracing::debug!(%error, "the head of an answer was not sent");
        }
        Ok(())
    }

    /// The answer ends behind these bytes, which are still to be written.
    pub(super) fn end(&mut self, bytes: &[u8]) {
        self.stream.end(!bytes.is_empty());
    }
}
