//! The protocols that clients speak. Each reads requests into the one kind of head, and writes the events of an answer.
//!
//! [`http1`] and [`http2`]: browsers, and proxies that speak HTTP. [`gateway`]: web servers that pass requests on, by [`fastcgi`] or
//! [`lsapi`], with the variables of [`cgi`].

pub mod cgi;
pub mod fastcgi;
mod gateway;
pub mod http1;
pub(crate) mod http2;
pub mod lsapi;

use highball_config::{BindProtocol, Limits};

use crate::http_syntax::DateCache;
use crate::message::answer::AnswerHead;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, RequestHead};
use crate::transport::stream::Peer;
use gateway::Gateway;
use http1::Http1;
use http2::Http2;

/// The protocol of a connection, and how far it has come.
#[derive(Debug)]
pub(crate) enum Protocol {
    Http1(Http1),
    /// Of one of a connection's streams.
    Http2(Http2),
    Gateway(Box<Gateway>),
}

/// How far bytes were read that may belong to a head, or to a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BytesRead {
    /// The first of the bytes, which are not needed any more.
    pub(crate) used: usize,
    /// Whether the head or body is complete.
    pub(crate) is_complete: bool,
}

/// Why a client's bytes lead to no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The request may not be served.
    Refused(Refusal),
    /// There is no use in an answer: the client has left, or does not speak the protocol.
    Gone,
}

impl From<Refusal> for Unreadable {
    fn from(refusal: Refusal) -> Self {
        Unreadable::Refused(refusal)
    }
}

impl Protocol {
    /// At the beginning of a connection.
    pub(crate) fn of(bind: BindProtocol) -> Self {
        match bind {
            BindProtocol::Http | BindProtocol::Https => Protocol::Http1(Http1::default()),
            BindProtocol::FastCgi => Protocol::Gateway(Box::new(Gateway::new(fastcgi::Reader::default()))),
            BindProtocol::Lsapi => Protocol::Gateway(Box::new(Gateway::new(lsapi::Reader::default()))),
        }
    }

    // --- Reading -------------------------------------------------------------------------------------

    /// The answer to the request before has been sent.
    ///
    /// # Errors
    /// The connection cannot be used for another.
    pub(crate) fn finish(&mut self) -> Result<(), Unreadable> {
        match self {
            Protocol::Http1(_) | Protocol::Http2(_) => Ok(()),
            Protocol::Gateway(gateway) => gateway.finish(),
        }
    }

    /// Whether a head has begun and is not complete.
    pub(crate) fn has_begun(&self, buffer: &[u8]) -> bool {
        match self {
            Protocol::Http1(http1) => http1.reader.has_begun(buffer),
            Protocol::Http2(_) => false,
            Protocol::Gateway(gateway) => gateway.has_begun(),
        }
    }

    /// Reads a head from `bytes`: unused earlier bytes, and more behind them.
    ///
    /// # Errors
    /// There will be no head.
    pub(crate) fn read_head(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        head: &mut RequestHead,
    ) -> Result<BytesRead, Unreadable> {
        match self {
            Protocol::Http1(http1) => http1.read_head(bytes, limits, head),
            // A stream begins with its head, and there is no other.
            Protocol::Http2(_) => Err(Unreadable::Gone),
            Protocol::Gateway(gateway) => gateway.read_head(bytes, limits, head),
        }
    }

    /// What the head has spans of, where that is not what was read; and the client that the web server, `peer`, reports.
    pub(crate) fn take_head_text(&mut self, peer: &Peer) -> Option<(Vec<u8>, Peer)> {
        match self {
            Protocol::Http1(_) | Protocol::Http2(_) => None,
            Protocol::Gateway(gateway) => Some(gateway.take_head_text(peer)),
        }
    }

    /// Begins to read a body of at most `most_bytes`.
    pub(crate) fn begin_body(&mut self, framing: BodyFraming, limits: &Limits, most_bytes: Option<u64>) {
        match self {
            Protocol::Http1(http1) => http1.begin_body(framing, limits, most_bytes),
            Protocol::Http2(http2) => http2.begin_body(most_bytes),
            Protocol::Gateway(gateway) => gateway.begin_body(most_bytes),
        }
    }

    /// Reads a body; `out` gets its bytes, in order.
    ///
    /// # Errors
    /// The connection cannot be used any further.
    pub(crate) fn read_body(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        out: impl FnMut(&[u8]),
    ) -> Result<BytesRead, Unreadable> {
        match self {
            Protocol::Http1(http1) => http1.read_body(bytes, out),
            Protocol::Http2(http2) => http2.read_body(bytes, out),
            Protocol::Gateway(gateway) => gateway.read_body(bytes, limits, out),
        }
    }

    /// Whether a body ends where nothing more can be read: the protocol does not say so among the bytes.
    pub(crate) fn has_read_body(&self) -> bool {
        matches!(self, Protocol::Http2(http2) if http2.has_read_body())
    }

    /// Takes bytes that come while a request is answered. Returns the bytes of the next request.
    ///
    /// # Errors
    /// The client does not wait for the answer any more.
    pub(crate) fn read_ahead<'b>(
        &mut self,
        bytes: &'b [u8],
        limits: &Limits,
    ) -> Result<&'b [u8], Unreadable> {
        match self {
            Protocol::Http1(_) => Ok(bytes),
            Protocol::Http2(http2) if http2.can_be_taken_over() => Ok(bytes),
            Protocol::Http2(_) => Ok(&[]),
            Protocol::Gateway(gateway) => gateway.read_ahead(bytes, limits).map(|()| &[][..]),
        }
    }

    /// Whether a client that has ended its side may still wait for an answer.
    pub(crate) fn may_be_half_closed(&self) -> bool {
        matches!(self, Protocol::Http1(_))
    }

    /// Whether a client may still be sending the end of a request that was answered: a web server marks the end of a body
    /// even where the body's length has shown it.
    pub(crate) fn ends_requests_late(&self) -> bool {
        matches!(self, Protocol::Gateway(_))
    }

    /// Whether something is to be sent that belongs to no answer.
    pub(crate) fn has_replies(&self) -> bool {
        matches!(self, Protocol::Gateway(gateway) if gateway.has_replies())
    }

    /// Whether the connection ends once that is sent.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self, Protocol::Gateway(gateway) if gateway.is_closing())
    }

    // --- Writing -------------------------------------------------------------------------------------

    /// Moves what is to be sent and belongs to no answer to `out`.
    pub(crate) fn write_replies(&mut self, out: &mut Vec<u8>) {
        if let Protocol::Gateway(gateway) = self {
            gateway.write_replies(out);
        }
    }

    /// Ready for the answer to the request with this head.
    pub(crate) fn begin_answer(&mut self, head: &RequestHead) {
        match self {
            Protocol::Http1(http1) => http1.writer.begin(head.version, head.keep_alive),
            Protocol::Http2(_) => {}
            Protocol::Gateway(gateway) => gateway.begin_answer(head.keep_alive),
        }
    }

    /// The connection ends after this answer, if its head was not written yet.
    pub(crate) fn end_connection(&mut self) {
        match self {
            Protocol::Http1(http1) => http1.writer.end_connection(),
            Protocol::Http2(_) => {}
            Protocol::Gateway(gateway) => gateway.end_connection(),
        }
    }

    /// Whether the connection can be kept after the answer: final once its head was written.
    pub(crate) fn keep_alive(&self) -> bool {
        match self {
            Protocol::Http1(http1) => http1.writer.keep_alive(),
            Protocol::Http2(_) => false,
            Protocol::Gateway(gateway) => gateway.keep_alive(),
        }
    }

    /// Appends a head with these field lines to `out`.
    ///
    /// # Errors
    /// The protocol has no way to say this; nothing was appended.
    pub(crate) fn write_head(
        &mut self,
        head: &AnswerHead,
        lines: &[&[u8]],
        date: &DateCache,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        match self {
            Protocol::Http1(http1) => {
                http1.writer.head(head, lines, date, out);
                Ok(())
            }
            Protocol::Http2(http2) => http2.write_head(head, lines, date),
            Protocol::Gateway(gateway) => gateway.write_head(head, lines, out),
        }
    }

    /// Appends bytes of the body.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Protocol::Http1(http1) => http1.writer.bytes(bytes, out),
            Protocol::Http2(http2) => http2.write_bytes(bytes, out),
            Protocol::Gateway(gateway) => gateway.write_bytes(bytes, out),
        }
    }

    /// Appends what stands before the next `length` bytes of the body, more than none. Returns how many of them may follow
    /// before [`Protocol::end_part`].
    pub(crate) fn begin_part(&mut self, length: u64, out: &mut Vec<u8>) -> u64 {
        match self {
            Protocol::Http1(http1) => http1.writer.begin_part(length, out),
            Protocol::Http2(_) => length,
            Protocol::Gateway(gateway) => gateway.begin_part(length, out),
        }
    }

    /// Appends what stands behind them.
    pub(crate) fn end_part(&mut self, out: &mut Vec<u8>) {
        if let Protocol::Http1(http1) = self {
            http1.writer.end_part(out);
        }
    }

    /// Appends what stands at the end of an answer.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        match self {
            Protocol::Http1(http1) => http1.writer.end(out),
            Protocol::Http2(http2) => http2.end(out),
            Protocol::Gateway(gateway) => gateway.end(out),
        }
    }

    /// Appends what shows that an answer cannot be completed, where the end of the connection does not.
    pub(crate) fn abort(&mut self, out: &mut Vec<u8>) {
        if let Protocol::Gateway(gateway) = self {
            gateway.abort(out);
        }
    }

    /// Whether the application can take the connection over as it is, before a head was sent.
    pub(crate) fn can_be_taken_over_whole(&self) -> bool {
        match self {
            Protocol::Http1(_) => true,
            Protocol::Http2(http2) => http2.can_be_taken_over(),
            Protocol::Gateway(_) => false,
        }
    }

    /// The application has taken the connection over. Whether the client has already ended its side.
    pub(crate) fn begin_relay(&mut self) -> bool {
        match self {
            Protocol::Http2(http2) => http2.begin_relay(),
            Protocol::Http1(_) | Protocol::Gateway(_) => false,
        }
    }
}
