//! What a web server sends: packets become the events of a request. The body follows its packet as it is.

use highball_config::Limits;

use super::packet::{kind, Header, HEADER_BYTES};
use super::request::{self, FEWEST_BYTES, MOST_BYTES};
use super::writer::Writer;
use crate::message::refusal::Refusal;
use crate::message::request_head::BodyFraming;
use crate::protocol::cgi::{self, CgiHead, CgiReader, CgiWriter, Event, ReadError};

/// Reads packets.
#[derive(Debug, Default)]
pub struct Reader {
    /// The packet as far as it has come.
    packet: Vec<u8>,
    state: State,
    /// The writer for the web server, whose byte order it has.
    writer: Writer,
    head: CgiHead,
    has_head: bool,
    received: [u8; HEADER_BYTES],
}

/// How far the request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// There is none; a header is arriving.
    #[default]
    Header,
    /// Its packet, of this number of bytes, is arriving.
    Packet(usize),
    /// Its head is read; the web server is to hear of it. Its body has this number of bytes.
    Received(u64),
    /// Its body is arriving: the bytes that are missing.
    Body(u64),
    /// It is complete and not answered yet.
    Whole,
}

impl CgiReader for Reader {
    fn next<'i>(
        &mut self,
        input: &mut &'i [u8],
        limits: &Limits,
    ) -> Result<Option<Event<'_, 'i>>, ReadError> {
        match self.state {
            State::Header | State::Whole => {
                if !self.begin_request(input, limits)? {
                    return Ok(None);
                }
                Ok(Some(match self.state {
                    State::Whole => Event::Abort,
                    _ => Event::Begin { keep_connection: true },
                }))
            }
            State::Packet(packet_bytes) => {
                if !self.gather(input, packet_bytes) {
                    return Ok(None);
                }
                self.read_head(limits)?;
                Ok(Some(Event::Head(&self.head)))
            }
            State::Received(length) => {
                self.begin_body(length);
                Ok(Some(Event::Reply { bytes: &self.received, close: false }))
            }
            State::Body(0) => {
                self.state = State::Whole;
                Ok(Some(Event::BodyEnd))
            }
            State::Body(_) if input.is_empty() => Ok(None),
            State::Body(left) => {
                let (bytes, rest) =
                    input.split_at(usize::try_from(left).unwrap_or(usize::MAX).min(input.len()));
                *input = rest;
                self.state = State::Body(left - bytes.len() as u64);
                Ok(Some(Event::Body(bytes)))
            }
        }
    }

    fn has_begun(&self) -> bool {
        self.state != State::Header || !self.packet.is_empty()
    }

    fn head(&self) -> Option<&CgiHead> {
        self.has_head.then_some(&self.head)
    }

    fn head_mut(&mut self) -> &mut CgiHead {
        &mut self.head
    }

    /// While a part of the request's body is still to come, the connection cannot be used again.
    fn finish(&mut self) -> bool {
        if !std::mem::take(&mut self.has_head) {
            return true;
        }
        let is_whole = self.state == State::Whole;
        self.state = State::Header;
        self.packet.shrink_to(cgi::KEPT_BYTES);
        self.head.release();
        is_whole
    }

    fn writer(&self) -> &dyn CgiWriter {
        &self.writer
    }
}

impl Reader {
    /// Reads the header of a request's packet, or of an abort while a request is open. Returns whether it is complete.
    fn begin_request(&mut self, input: &mut &[u8], limits: &Limits) -> Result<bool, ReadError> {
        while let Some(header) = self.header(input)? {
            match (header.kind, self.state) {
                (kind::BEGIN_REQUEST, State::Header) => {
                    self.begin_packet(header, limits)?;
                    return Ok(true);
                }
                (kind::BEGIN_REQUEST, _) => return Err(ReadError::Breach("begins a request within another")),
                (kind::ABORT_REQUEST, state) => {
                    self.packet.clear();
                    if state == State::Whole {
                        return Ok(true);
                    }
                }
                _ => return Err(ReadError::Breach("sends a packet that only an application sends")),
            }
        }
        Ok(false)
    }

    /// Confirms the request: without this, a web server logs after 10 seconds that it may not have arrived.
    fn begin_body(&mut self, length: u64) {
        let packet_bytes = HEADER_BYTES as i32;
        self.received = Header { kind: kind::REQ_RECEIVED, order: self.writer.order, packet_bytes }.encode();
        self.state = State::Body(length);
    }

    /// Takes bytes off `input` until the packet has this length; whether it has.
    fn gather(&mut self, input: &mut &[u8], packet_bytes: usize) -> bool {
        let missing = packet_bytes - self.packet.len();
        let (piece, rest) = input.split_at(missing.min(input.len()));
        *input = rest;
        self.packet.extend_from_slice(piece);
        self.packet.len() == packet_bytes
    }

    /// The next header, once it is whole.
    fn header(&mut self, input: &mut &[u8]) -> Result<Option<Header>, ReadError> {
        const OTHER: ReadError = ReadError::Breach("does not speak LSAPI");
        let whole = self.gather(input, HEADER_BYTES);
        // A client of another protocol is noticed at its first byte.
        if self.packet.first().is_some_and(|&byte| byte != b'L') {
            return Err(OTHER);
        }
        if !whole {
            return Ok(None);
        }
        let bytes = self.packet[..].try_into().expect("8 bytes");
        Ok(Some(Header::decode(bytes).ok_or(OTHER)?))
    }

    fn begin_packet(&mut self, header: Header, limits: &Limits) -> Result<(), ReadError> {
        let packet_bytes = usize::try_from(header.packet_bytes).unwrap_or(0);
        if packet_bytes < FEWEST_BYTES {
            return Err(ReadError::Breach("sends a BEGIN_REQUEST that is too short"));
        }
        self.writer = Writer::new(header.order);
        self.state = State::Packet(packet_bytes);
        if packet_bytes > MOST_BYTES.min(cgi::most_variable_bytes(limits)) {
            return Err(Refusal::HeadTooLarge.into());
        }
        Ok(())
    }

    fn read_head(&mut self, limits: &Limits) -> Result<(), ReadError> {
        let variables = request::read(&self.packet, self.writer.order)?;
        self.head.read(&variables, true, false, limits)?;
        self.has_head = true;
        self.state = State::Received(match self.head.head().framing {
            BodyFraming::Length(length) => length,
            BodyFraming::None | BodyFraming::Unknown => 0,
        });
        self.packet.clear();
        Ok(())
    }
}
