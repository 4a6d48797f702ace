//! HTTP/2 (RFC 9113), as far as one of its streams is concerned: one request, and the answer to it. The crate h2 has the
//! frames, their order, flow control and the compression of heads.
//!
//! In reading order: [`reader`] (heads of requests), [`writer`] (heads of answers), [`tunnel`] (WebSockets).

mod reader;
mod tunnel;
mod writer;

use std::rc::Rc;

use highball_config::Limits;
use http::request::Parts;

use super::{BytesRead, Unreadable};
use crate::http_syntax::DateCache;
use crate::message::answer::{AnswerBody, AnswerHead};
use crate::message::refusal::Refusal;
use crate::message::request_head::RequestHead;
use crate::transport::http2::Http2Stream;
use tunnel::Tunnel;

/// A stream's reader and writer.
#[derive(Debug)]
pub(crate) struct Http2 {
    stream: Rc<Http2Stream>,
    /// A body that is read may have this many more bytes.
    allowance: u64,
    /// Where the client has asked for a WebSocket.
    tunnel: Option<Tunnel>,
}

impl Http2 {
    pub(crate) fn new(stream: Rc<Http2Stream>) -> Self {
        Http2 { stream, allowance: u64::MAX, tunnel: None }
    }

    /// Reads the head. Returns what it has spans of.
    ///
    /// # Errors
    /// The refusal for the client.
    pub(crate) fn read_head(
        &mut self,
        request: &Parts,
        limits: &Limits,
        head: &mut RequestHead,
    ) -> Result<Vec<u8>, Refusal> {
        self.tunnel = reader::is_for_web_socket(request).then_some(Tunnel::Offered);
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
        lines: &[&[u8]],
        date: &DateCache,
    ) -> Result<(), Refusal> {
        let status = match &mut self.tunnel {
            Some(tunnel) if !head.is_interim() => tunnel.status(head.status)?,
            _ => head.status,
        };
        let response = writer::response(&AnswerHead { status, ..*head }, lines, Some(date))?;
        if head.is_interim() {
            note(self.stream.send_interim(response));
        } else {
            note(self.stream.send_head(response, head.body));
        }
        Ok(())
    }

    // --- WebSockets ----------------------------------------------------------------------------------

    /// Whether the application can have what follows the head of the request, as it is.
    pub(super) fn can_be_taken_over(&self) -> bool {
        self.tunnel.is_some()
    }

    /// The application has taken the stream over, and writes the head of the answer itself if none was sent. Whether the client
    /// has already ended its side.
    pub(super) fn begin_relay(&mut self) -> bool {
        let Some(tunnel) = &mut self.tunnel else { return false };
        tunnel.begin();
        self.stream.await_end_of_body();
        self.stream.has_read_body()
    }

    /// Appends bytes of the body, which may begin with the application's own head.
    pub(super) fn write_bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(tunnel) = &mut self.tunnel else { return out.extend_from_slice(bytes) };
        match tunnel.head_of(bytes, out) {
            Ok(Some(response)) => note(self.stream.send_head(response, AnswerBody::Connection)),
            Ok(None) => {}
            Err(refusal) => {
                tracing::error!(
                    name: "websocket_not_answered", why = refusal.details(), "cannot send the answer to a WebSocket request"
                );
                self.stream.reset();
            }
        }
    }

    /// The answer ends behind these bytes, which are still to be written.
    pub(super) fn end(&mut self, bytes: &[u8]) {
        self.stream.end(!bytes.is_empty());
    }
}

/// The next look at the stream finds that the client has left.
fn note(sent: Result<(), h2::Error>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "the head of an answer was not sent");
    }
}
