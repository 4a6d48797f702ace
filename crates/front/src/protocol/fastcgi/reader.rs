//! What a web server sends: records become the events of a request.
//!
//! A record's content is passed on or gathered while it arrives, so that the reader keeps no more than the variables of a
//! request, and these are bounded.

use highball_config::Limits;

use super::pairs::{write_pair, Pairs};
use super::record::{end_request, kind, unknown_type, Record, Status, HEADER_BYTES, MANAGEMENT};
use super::writer::Writer;
use crate::http_syntax::parse_length;
use crate::message::refusal::Refusal;
use crate::protocol::cgi::{self, CgiHead, CgiReader, CgiWriter, Event, ReadError, Variables};

/// The one role that is served.
const RESPONDER: u16 = 1;

/// Flag of `BEGIN_REQUEST`: the connection stays open after the answer.
const KEEP_CONN: u8 = 1;

/// Most bytes of the names in `GET_VALUES`; three are defined.
const GET_VALUES_BYTES: u16 = 1024;

/// Reads records.
#[derive(Debug, Default)]
pub struct Reader {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// The record whose content or padding is being read.
    open: Option<Open>,
    /// The content of a record that has to be whole.
    gathered: Vec<u8>,
    variables: Vec<u8>,
    request: Request,
    /// The writer for the open request, whose number it has.
    writer: Writer,
    keep_connection: bool,
    body_end_due: bool,
    head: CgiHead,
    has_head: bool,
    reply: Vec<u8>,
}

/// How far the request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Request {
    /// There is none.
    #[default]
    None,
    /// Its variables are arriving.
    Variables,
    /// Its variables are complete and name no length: the first record of the body shows whether there is one.
    BodyUnknown,
    /// Its body is arriving: the bytes that are missing, if that is known.
    Body(Option<u64>),
    /// It is complete, or aborted, and not answered yet.
    Whole,
}

/// A record that is being read.
#[derive(Debug, Clone, Copy)]
struct Open {
    record: Record,
    /// What to do with the content.
    content: Content,
    content_left: usize,
    padding_left: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Ignored,
    Gathered,
    Variables,
    Body,
}

/// An event without its parts that are borrowed from the reader.
enum Step<'i> {
    Begin(bool),
    Head,
    Body(&'i [u8]),
    BodyEnd,
    Abort,
    Reply { close: bool },
}

impl CgiReader for Reader {
    fn next<'i>(
        &mut self,
        input: &mut &'i [u8],
        limits: &Limits,
    ) -> Result<Option<Event<'_, 'i>>, ReadError> {
        Ok(match self.step(input, limits)? {
            None => None,
            Some(Step::Begin(keep_connection)) => Some(Event::Begin { keep_connection }),
            Some(Step::Head) => Some(Event::Head(&self.head)),
            Some(Step::Body(bytes)) => Some(Event::Body(bytes)),
            Some(Step::BodyEnd) => Some(Event::BodyEnd),
            Some(Step::Abort) => Some(Event::Abort),
            Some(Step::Reply { close }) => Some(Event::Reply { bytes: &self.reply, close }),
        })
    }

    fn has_begun(&self) -> bool {
        self.request != Request::None || self.header_bytes > 0
    }

    fn head(&self) -> Option<&CgiHead> {
        self.has_head.then_some(&self.head)
    }

    fn head_mut(&mut self) -> &mut CgiHead {
        &mut self.head
    }

    /// What is still to come of the request's body is ignored.
    fn finish(&mut self) -> bool {
        self.request = Request::None;
        self.body_end_due = false;
        if let Some(open) = self.open.as_mut().filter(|open| open.record.request_id != MANAGEMENT) {
            if open.content != Content::Gathered {
                open.content = Content::Ignored;
            }
        }
        cgi::release(&mut self.variables);
        self.head.release();
        self.has_head = false;
        true
    }

    fn writer(&self) -> &dyn CgiWriter {
        &self.writer
    }
}

impl Reader {
    fn step<'i>(&mut self, input: &mut &'i [u8], limits: &Limits) -> Result<Option<Step<'i>>, ReadError> {
        loop {
            if std::mem::take(&mut self.body_end_due) {
                self.request = Request::Whole;
                return Ok(Some(Step::BodyEnd));
            }
            let Some(open) = self.open else {
                let Some(record) = self.header(input)? else { return Ok(None) };
                if let Some(step) = self.begin_record(record, limits)? {
                    return Ok(Some(step));
                }
                continue;
            };
            if open.content_left > 0 {
                let piece = take(input, open.content_left);
                if piece.is_empty() {
                    return Ok(None);
                }
                if let Some(step) = self.content(open, piece) {
                    return Ok(Some(step));
                }
            } else if open.padding_left > 0 {
                let padding = take(input, open.padding_left).len();
                if padding == 0 {
                    return Ok(None);
                }
                self.open = Some(Open { padding_left: open.padding_left - padding, ..open });
            } else {
                self.open = None;
                if let Some(step) = self.end_record(open, limits)? {
                    return Ok(Some(step));
                }
            }
        }
    }

    /// The next header, once it is whole.
    fn header(&mut self, input: &mut &[u8]) -> Result<Option<Record>, ReadError> {
        let piece = take(input, HEADER_BYTES - self.header_bytes);
        self.header[self.header_bytes..self.header_bytes + piece.len()].copy_from_slice(piece);
        self.header_bytes += piece.len();
        // A client of another protocol is noticed at its first byte.
        if self.header_bytes > 0 && self.header[0] != super::record::VERSION {
            return Err(ReadError::Breach("does not speak FastCGI 1.0"));
        }
        if self.header_bytes < HEADER_BYTES {
            return Ok(None);
        }
        self.header_bytes = 0;
        Ok(Record::decode(self.header))
    }

    /// Decides what to do with a record. The events of a body come before its bytes.
    fn begin_record(&mut self, record: Record, limits: &Limits) -> Result<Option<Step<'static>>, ReadError> {
        let is_open = self.request != Request::None && record.request_id == self.writer.request_id;
        let mut step = None;
        let content = match record.kind {
            kind::GET_VALUES if record.request_id == MANAGEMENT => {
                if record.content_bytes > GET_VALUES_BYTES {
                    return Err(ReadError::Breach("asks for too many values"));
                }
                Content::Gathered
            }
            _ if record.request_id == MANAGEMENT => Content::Ignored,
            kind::BEGIN_REQUEST if is_open => return Err(ReadError::Breach("begins a request twice")),
            kind::BEGIN_REQUEST if record.content_bytes != 8 => {
                return Err(ReadError::Breach("sends a malformed BEGIN_REQUEST"));
            }
            kind::BEGIN_REQUEST => Content::Gathered,
            // Also the rest of a request that is answered, or was refused.
            _ if !is_open => Content::Ignored,
            kind::PARAMS => {
                step = self.begin_variables(record, limits)?;
                Content::Variables
            }
            kind::STDIN => {
                step = self.begin_body(record, limits)?;
                Content::Body
            }
            kind::ABORT_REQUEST | kind::DATA => Content::Ignored,
            _ => return Err(ReadError::Breach("sends a record that only an application sends")),
        };
        if content == Content::Gathered {
            self.gathered.clear();
        }
        let content_left = usize::from(record.content_bytes);
        let padding_left = usize::from(record.padding_bytes);
        self.open = Some(Open { record, content, content_left, padding_left });
        Ok(step)
    }

    fn begin_variables(
        &mut self,
        record: Record,
        limits: &Limits,
    ) -> Result<Option<Step<'static>>, ReadError> {
        if self.request != Request::Variables {
            return Err(ReadError::Breach("sends variables after their end"));
        }
        if record.content_bytes > 0 {
            let bytes = self.variables.len() + usize::from(record.content_bytes);
            let too_many = bytes > cgi::most_variable_bytes(limits);
            return if too_many { Err(Refusal::HeadTooLarge.into()) } else { Ok(None) };
        }
        self.read_head(None, limits)
    }

    /// Reads the head from the variables, which are complete, or waits for the first record of the body.
    fn read_head(
        &mut self,
        has_body: Option<bool>,
        limits: &Limits,
    ) -> Result<Option<Step<'static>>, ReadError> {
        let mut variables = Variables::default();
        for pair in Pairs(&self.variables) {
            let (name, value) = pair.map_err(|_| ReadError::Breach("sends a variable that is cut off"))?;
            variables.note(name, value);
        }
        let length = variables.content_length();
        if length.is_none() && has_body.is_none() {
            self.request = Request::BodyUnknown;
            return Ok(None);
        }
        self.head.read(&variables, self.keep_connection, has_body == Some(true), limits)?;
        self.has_head = true;
        // A length that is none does not come so far.
        let left = length.and_then(parse_length);
        self.body_end_due = left == Some(0) || has_body == Some(false);
        self.request = Request::Body(left);
        Ok(Some(Step::Head))
    }

    fn begin_body(&mut self, record: Record, limits: &Limits) -> Result<Option<Step<'static>>, ReadError> {
        let bytes = u64::from(record.content_bytes);
        match self.request {
            Request::BodyUnknown => return self.read_head(Some(bytes > 0), limits),
            Request::Body(Some(left)) if bytes == 0 && left > 0 => {
                return Err(ReadError::Breach("ends a body before its length"));
            }
            Request::Body(Some(left)) if bytes > left => {
                return Err(ReadError::Breach("sends a body beyond its length"));
            }
            Request::Body(None) => self.body_end_due = bytes == 0,
            Request::Whole if bytes > 0 => return Err(ReadError::Breach("sends a body after its end")),
            Request::None | Request::Variables => {
                return Err(ReadError::Breach("sends a body before the end of the variables"));
            }
            Request::Body(Some(_)) | Request::Whole => {}
        }
        Ok(None)
    }

    fn content<'i>(&mut self, open: Open, piece: &'i [u8]) -> Option<Step<'i>> {
        self.open = Some(Open { content_left: open.content_left - piece.len(), ..open });
        match open.content {
            Content::Ignored => None,
            Content::Gathered => {
                self.gathered.extend_from_slice(piece);
                None
            }
            Content::Variables => {
                self.variables.extend_from_slice(piece);
                None
            }
            Content::Body => {
                if let Request::Body(Some(left)) = &mut self.request {
                    *left -= piece.len() as u64;
                    self.body_end_due = *left == 0;
                }
                Some(Step::Body(piece))
            }
        }
    }

    /// What follows from a record that has come whole.
    fn end_record(&mut self, open: Open, limits: &Limits) -> Result<Option<Step<'static>>, ReadError> {
        let Record { kind, request_id, .. } = open.record;
        let is_open = self.request != Request::None && request_id == self.writer.request_id;
        self.reply.clear();
        match kind {
            kind::BEGIN_REQUEST if request_id != MANAGEMENT => Ok(Some(self.begin_request(request_id))),
            kind::ABORT_REQUEST if is_open => {
                self.request = Request::Whole;
                Ok(Some(Step::Abort))
            }
            kind::GET_VALUES if request_id == MANAGEMENT => {
                self.values(limits)?;
                Ok(Some(Step::Reply { close: false }))
            }
            unknown if request_id == MANAGEMENT => {
                unknown_type(unknown, &mut self.reply);
                Ok(Some(Step::Reply { close: false }))
            }
            _ => Ok(None),
        }
    }

    fn begin_request(&mut self, request_id: u16) -> Step<'static> {
        let role = u16::from_be_bytes([self.gathered[0], self.gathered[1]]);
        let keep_connection = self.gathered[2] & KEEP_CONN != 0;
        if self.request != Request::None {
            end_request(request_id, Status::CantMpxConn, &mut self.reply);
            return Step::Reply { close: false };
        }
        if role != RESPONDER {
            end_request(request_id, Status::UnknownRole, &mut self.reply);
            return Step::Reply { close: !keep_connection };
        }
        self.request = Request::Variables;
        self.writer = Writer::new(request_id);
        self.keep_connection = keep_connection;
        self.variables.clear();
        Step::Begin(keep_connection)
    }

    /// Answers `GET_VALUES` with the values that are asked for and exist.
    fn values(&mut self, limits: &Limits) -> Result<(), ReadError> {
        let most = limits.connections.to_string();
        let mut values = Vec::new();
        // A value is named once in the answer, however often it is asked for.
        for (name, value) in [("FCGI_MAX_CONNS", &*most), ("FCGI_MAX_REQS", &*most), ("FCGI_MPXS_CONNS", "0")]
        {
            for pair in Pairs(&self.gathered) {
                let (asked, _) = pair.map_err(|_| ReadError::Breach("asks for a value that is cut off"))?;
                if asked == name.as_bytes() {
                    write_pair(asked, value.as_bytes(), &mut values);
                    break;
                }
            }
        }
        let header = Record::new(kind::GET_VALUES_RESULT, MANAGEMENT, values.len() as u16);
        self.reply.extend_from_slice(&header.encode());
        self.reply.extend_from_slice(&values);
        Ok(())
    }
}

/// Takes at most this number of bytes off `input`.
fn take<'i>(input: &mut &'i [u8], most: usize) -> &'i [u8] {
    let (taken, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    taken
}
