//! A web server that passes requests on, by FastCGI or LSAPI: one after the other on a connection, each with its body.

use highball_config::Limits;

use super::cgi::{fields_of_all, CgiReader, Event, ReadError};
use super::{BytesRead, Unreadable};
use crate::http_syntax::write_number;
use crate::message::answer::AnswerHead;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, RequestHead};
use crate::transport::stream::Peer;

/// Most bytes of replies that a web server does not read.
const REPLY_BYTES: usize = 64 * 1024;

/// A connection with a web server.
#[derive(Debug)]
pub(crate) struct Gateway {
    reader: Box<dyn CgiReader>,
    /// To be sent to the web server, and no part of an answer.
    replies: Vec<u8>,
    /// A body that is read may have this many more bytes.
    allowance: u64,
    /// The request is complete.
    is_whole: bool,
    keep_alive: bool,
    /// The connection ends once the replies were sent.
    is_closing: bool,
}

impl Gateway {
    pub(super) fn new(reader: impl CgiReader + 'static) -> Self {
        Gateway {
            reader: Box::new(reader),
            replies: Vec::new(),
            allowance: u64::MAX,
            is_whole: false,
            keep_alive: false,
            is_closing: false,
        }
    }

    // --- Reading -------------------------------------------------------------------------------------

    pub(super) fn finish(&mut self) -> Result<(), Unreadable> {
        self.is_whole = false;
        self.reader.finish().then_some(()).ok_or(Unreadable::Gone)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.reader.has_begun()
    }

    pub(super) fn read_head(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        head: &mut RequestHead,
    ) -> Result<BytesRead, Unreadable> {
        let mut rest = bytes;
        let is_complete = loop {
            match self.next(&mut rest, limits)? {
                Found::Nothing => break false,
                Found::Head => break true,
                Found::Other => {}
            }
        };
        if is_complete {
            std::mem::swap(self.reader.head_mut().head_mut(), head);
            self.allowance = u64::MAX;
            if head.framing == BodyFraming::None {
                // Its end costs the web server nothing, and so does not have to be waited for later.
                while !self.is_whole && self.next(&mut rest, limits)? != Found::Nothing {}
            }
        }
        Ok(BytesRead { used: bytes.len() - rest.len(), is_complete })
    }

    pub(super) fn take_head_text(&mut self, peer: &Peer) -> (Vec<u8>, Peer) {
        let read = self.reader.head_mut();
        let address = read.remote_addr.map(|address| address.to_canonical().to_string());
        let name = Some(read.server_name()).filter(|name| !name.is_empty());
        let client = Peer {
            remote_addr: address.unwrap_or_else(|| peer.remote_addr.clone()),
            server_name: name.map_or_else(|| peer.server_name.clone(), str::to_owned),
            server_port: read.server_port.unwrap_or(peer.server_port),
            is_tls: read.https,
            is_reported: true,
            is_plain_http_on_tls_port: false,
            proof: None,
        };
        (read.take_buffer(), client)
    }

    pub(super) fn begin_body(&mut self, most_bytes: Option<u64>) {
        self.allowance = most_bytes.unwrap_or(u64::MAX);
    }

    pub(super) fn read_body(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        mut out: impl FnMut(&[u8]),
    ) -> Result<BytesRead, Unreadable> {
        let mut rest = bytes;
        while !self.is_whole && self.next_with(&mut rest, limits, &mut out)? != Found::Nothing {}
        Ok(BytesRead { used: bytes.len() - rest.len(), is_complete: self.is_whole })
    }

    pub(super) fn read_ahead(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Unreadable> {
        let mut rest = bytes;
        while self.next(&mut rest, limits)? != Found::Nothing {}
        Ok(())
    }

    fn next(&mut self, rest: &mut &[u8], limits: &Limits) -> Result<Found, Unreadable> {
        self.next_with(rest, limits, &mut |_| {})
    }

    /// Takes the next event.
    fn next_with(
        &mut self,
        rest: &mut &[u8],
        limits: &Limits,
        out: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, Unreadable> {
        match self.reader.next(rest, limits) {
            Ok(None) => Ok(Found::Nothing),
            Ok(Some(Event::Head(_))) => Ok(Found::Head),
            Ok(Some(Event::Begin { .. })) => Ok(Found::Other),
            Ok(Some(Event::Body(bytes))) => {
                let left = self.allowance.checked_sub(bytes.len() as u64);
                self.allowance = left.ok_or(Refusal::BodyTooLarge)?;
                out(bytes);
                Ok(Found::Other)
            }
            Ok(Some(Event::BodyEnd)) => {
                self.is_whole = true;
                Ok(Found::Other)
            }
            Ok(Some(Event::Abort)) => Err(Unreadable::Gone),
            Ok(Some(Event::Reply { bytes, close })) => {
                self.replies.extend_from_slice(bytes);
                self.is_closing |= close;
                if self.replies.len() > REPLY_BYTES {
                    return Err(closed("asks for much more than it reads"));
                }
                Ok(Found::Other)
            }
            Err(ReadError::Refused(refusal)) => Err(refusal.into()),
            Err(ReadError::Breach(why)) => Err(closed(why)),
        }
    }

    pub(super) fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    // --- Writing -------------------------------------------------------------------------------------

    pub(super) fn write_replies(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.replies);
    }

    pub(super) fn begin_answer(&mut self, keep_alive: bool) {
        self.keep_alive = keep_alive;
    }

    pub(super) fn end_connection(&mut self) {
        self.keep_alive = false;
    }

    pub(super) fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    pub(super) fn write_head(
        &mut self,
        head: &AnswerHead,
        lines: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if head.is_interim() {
            return Ok(()); // web servers take it for the head
        }
        let mut length = Vec::new();
        let length_field = head.content_length.map(|number| {
            write_number(number, &mut length);
            (&b"content-length"[..], &length[..])
        });
        let mut fields = fields_of_all(lines).chain(length_field);
        self.reader.writer().head(head.status, &mut fields, out)
    }

    pub(super) fn write_bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.reader.writer().bytes(bytes, out);
    }

    pub(super) fn begin_part(&mut self, length: u64, out: &mut Vec<u8>) -> u64 {
        self.reader.writer().part(length, out) as u64
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.reader.writer().end(!self.keep_alive, out);
    }

    pub(super) fn abort(&mut self, out: &mut Vec<u8>) {
        self.reader.writer().abort(out);
    }
}

/// Reports why there is no use in an answer.
fn closed(why: &'static str) -> Unreadable {
    tracing::warn!(
        name: "gateway_connection_closed",
        why,
        remedy = "Check that the web server speaks the protocol of this address (--bind).",
        "a connection of a web server was closed: it {why}"
    );
    Unreadable::Gone
}

/// What the reader has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It needs more bytes.
    Nothing,
    /// The head of a request.
    Head,
    /// What has been dealt with.
    Other,
}
