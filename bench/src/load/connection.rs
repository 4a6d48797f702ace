//! A client that asks one request at a time and takes the answer apart.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use super::{request, Target, TIME_OUT};
use crate::results::Errors;
use crate::socket::{Protocol, Socket};
use crate::workload::Request;

/// The longest head, and the longest line of a chunked body.
const LONGEST_HEAD: u64 = 64 * 1024;

/// The most header fields of an answer.
const MOST_FIELDS: usize = 128;

/// Why there is no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// No connection.
    Connect,
    /// It ended before the answer was whole.
    Reset,
    TimeOut,
    /// What came first was no head of an answer.
    Head,
    /// The body is not as long as its head says.
    Length,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Broken::TimeOut,
            _ => Broken::Reset,
        }
    }
}

/// An answer that came whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Body,
    /// The end of the connection is the end of the body (RFC 9112, 6.3, rule 8).
    pub(crate) ends_by_closing: bool,
}

/// What is remembered of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    pub(crate) bytes: u64,
    pub(crate) hash: u64,
}

/// A connection, for several requests one after the other.
pub(crate) struct Connection {
    stream: BufReader<Socket>,
    used: bool,
}

/// What is left of a connection when nothing is asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    /// The server has ended it.
    End,
    /// Bytes that belong to no answer.
    Surplus,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, protocol: Protocol) -> Result<Connection, Broken> {
        Connection::open_for(address, protocol, TIME_OUT)
    }

    /// The connection may take this long, and so may each part of an answer.
    pub(crate) fn open_for(
        address: SocketAddr,
        protocol: Protocol,
        at_most: Duration,
    ) -> Result<Connection, Broken> {
        let socket = Socket::open(address, protocol, at_most).map_err(|_| Broken::Connect)?;
        Ok(Connection { stream: BufReader::with_capacity(LONGEST_HEAD as usize, socket), used: false })
    }

    /// Looks at it without waiting.
    pub(crate) fn rest(&mut self) -> Rest {
        if !self.stream.buffer().is_empty() {
            return Rest::Surplus;
        }
        match self.stream.get_mut().look() {
            Ok(0) => Rest::End,
            Ok(_) => Rest::Surplus,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Rest::Nothing,
            Err(_) => Rest::End,
        }
    }

    /// Sends a request and reads the answer to it. The connection can be used again when the second value says so.
    pub(crate) fn ask(&mut self, request: &[u8], is_head: bool) -> Result<(Answer, bool), Broken> {
        let mut body = Digest::default();
        let (status, ends_by_closing, keep_alive) = self.ask_into(request, is_head, &mut body)?;
        Ok((Answer { status, body: body.body(), ends_by_closing }, keep_alive))
    }

    /// The status and the whole body of the answer to a request, which is the last on this connection.
    pub(crate) fn ask_all(mut self, request: &[u8]) -> Result<(u16, Vec<u8>), Broken> {
        let mut body = Vec::new();
        let (status, ..) = self.ask_into(request, false, &mut body)?;
        Ok((status, body))
    }

    /// Sends a request, and writes the body of its answer there. Returns the status, whether the end of the connection is the
    /// body's, and whether it can be used again.
    fn ask_into(
        &mut self,
        request: &[u8],
        is_head: bool,
        body: &mut impl Write,
    ) -> Result<(u16, bool, bool), Broken> {
        self.stream.get_mut().write_all(request)?;
        let head = loop {
            let head = self.read_head()?;
            if head.status >= 200 {
                break head;
            }
        };
        self.used = true;
        if !is_head && !matches!(head.status, 204 | 304) {
            self.read_body(head.framing, body)?;
        }
        let ends_by_closing = !is_head && head.framing == Framing::UntilEnd;
        Ok((head.status, ends_by_closing, head.keep_alive && !ends_by_closing))
    }

    fn read_head(&mut self) -> Result<Head, Broken> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let left = LONGEST_HEAD.saturating_sub(bytes.len() as u64);
            if self.stream.by_ref().take(left).read_until(b'\n', &mut bytes)? == 0 {
                return Err(if left == 0 { Broken::Head } else { Broken::Reset });
            }
            if !bytes.starts_with(&b"HTTP/1."[..bytes.len().min(7)]) {
                // After another answer: the end of a body that is longer than its Content-Length.
                return Err(if self.used { Broken::Length } else { Broken::Head });
            }
        }
        Head::parse(&bytes)
    }

    fn read_body(&mut self, framing: Framing, into: &mut impl Write) -> Result<(), Broken> {
        match framing {
            Framing::Bytes(bytes) => self.read_bytes(bytes, into),
            Framing::UntilEnd => io::copy(&mut self.stream, into).map(|_| ()).map_err(Broken::from),
            Framing::Chunks => loop {
                let bytes = self.chunk_size()?;
                self.read_bytes(bytes, into)?;
                // Behind each chunk an empty line; behind the last one perhaps trailers, and then that.
                while !self.read_line()?.is_empty() {
                    if bytes > 0 {
                        return Err(Broken::Length);
                    }
                }
                if bytes == 0 {
                    return Ok(());
                }
            },
        }
    }

    fn read_bytes(&mut self, bytes: u64, into: &mut impl Write) -> Result<(), Broken> {
        let read = io::copy(&mut self.stream.by_ref().take(bytes), into)?;
        if read == bytes {
            Ok(())
        } else {
            Err(Broken::Length)
        }
    }

    fn chunk_size(&mut self) -> Result<u64, Broken> {
        let line = self.read_line()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(size, 16).map_err(|_| Broken::Length)
    }

    /// A line of a chunked body, without its end.
    fn read_line(&mut self) -> Result<String, Broken> {
        let mut line = Vec::new();
        self.stream.by_ref().take(LONGEST_HEAD).read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").ok_or(Broken::Length)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }
}

/// What is used of an answer's head.
struct Head {
    status: u16,
    framing: Framing,
    keep_alive: bool,
}

/// How the end of a body is known (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Bytes(u64),
    Chunks,
    UntilEnd,
}

impl Head {
    fn parse(bytes: &[u8]) -> Result<Head, Broken> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        response.parse(bytes).map_err(|_| Broken::Head)?;
        let field = |name: &str| {
            let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
            found.map(|field| String::from_utf8_lossy(field.value).to_ascii_lowercase())
        };
        let framing = match (field("transfer-encoding"), field("content-length")) {
            (Some(coding), _) if coding.ends_with("chunked") => Framing::Chunks,
            (None, Some(bytes)) => Framing::Bytes(bytes.trim().parse().map_err(|_| Broken::Head)?),
            _ => Framing::UntilEnd,
        };
        let connection = field("connection").unwrap_or_default();
        let keep_alive = if response.version == Some(1) {
            !connection.contains("close")
        } else {
            connection.contains("keep-alive")
        };
        Ok(Head { status: response.code.ok_or(Broken::Head)?, framing, keep_alive })
    }
}

/// Takes a body in and remembers its length and hash.
#[derive(Default)]
struct Digest {
    bytes: u64,
    hasher: DefaultHasher,
}

impl Digest {
    fn body(&self) -> Body {
        Body { bytes: self.bytes, hash: self.hasher.finish() }
    }
}

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        self.hasher.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Asks over this connection where it lasts, else over a new one. Bytes behind an answer make it wrong: if they
/// come late, they are found here, and the next answer is counted.
pub(crate) fn ask(
    kept: &mut Option<Connection>,
    target: &Target,
    bytes: &[u8],
    is_head: bool,
) -> Result<Answer, Broken> {
    let mut connection = match kept.take().map(|mut connection| (connection.rest(), connection)) {
        Some((Rest::Nothing, connection)) => connection,
        Some((Rest::Surplus, _)) => return Err(Broken::Length),
        Some((Rest::End, _)) | None => Connection::open(target.address, target.protocol)?,
    };
    let (answer, keep_alive) = connection.ask(bytes, is_head)?;
    if keep_alive {
        *kept = Some(connection);
    }
    Ok(answer)
}

/// A request's bytes.
pub(crate) fn wire(request: &Request, host: &str, keep_alive: bool) -> Vec<u8> {
    let mut bytes = request::head(request, host, keep_alive).into_bytes();
    bytes.resize(bytes.len() + request.body_bytes as usize, request::BODY_BYTE);
    bytes
}

/// What is wrong with this, as far as one answer tells.
pub(crate) fn error(result: &Result<Answer, Broken>, status: u16) -> Errors {
    let none = Errors::default();
    match result {
        Ok(answer) if answer.status == status => none,
        Ok(_) | Err(Broken::Head) => Errors { status: 1, ..none },
        Err(Broken::Connect) => Errors { connect: 1, ..none },
        Err(Broken::Reset) => Errors { reset: 1, ..none },
        Err(Broken::TimeOut) => Errors { time_out: 1, ..none },
        Err(Broken::Length) => Errors { length: 1, ..none },
    }
}
