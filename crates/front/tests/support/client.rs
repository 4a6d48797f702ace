//! An HTTP client that sends exactly the bytes of a test.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::PATIENCE;

pub(crate) trait Socket: Read + Write + Send {
    fn end_writing(&self);
    fn set_patience(&self, patience: Duration);
}

impl Socket for TcpStream {
    fn end_writing(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
    fn set_patience(&self, patience: Duration) {
        self.set_read_timeout(Some(patience)).unwrap();
    }
}

impl Socket for UnixStream {
    fn end_writing(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
    fn set_patience(&self, patience: Duration) {
        self.set_read_timeout(Some(patience)).unwrap();
    }
}

pub(crate) struct Client(BufReader<Box<dyn Socket>>);

/// An answer, its body decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub(crate) fn tcp(port: u16) -> Client {
        Client::tcp_at("127.0.0.1", port)
    }

    pub(crate) fn tcp_at(address: &str, port: u16) -> Client {
        Client::new(TcpStream::connect((address, port)).unwrap())
    }

    pub(crate) fn unix(path: &Path) -> Client {
        Client::new(UnixStream::connect(path).unwrap())
    }

    pub(crate) fn new(socket: impl Socket + 'static) -> Client {
        socket.set_patience(PATIENCE);
        Client(BufReader::new(Box::new(socket)))
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn get(&mut self, path: &str) {
        self.get_from("a", path);
    }

    pub(crate) fn get_from(&mut self, host: &str, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }

    pub(crate) fn post(&mut self, path: &str, body: &[u8]) {
        let length = body.len();
        self.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
        self.send(body);
    }

    /// Says that it will send nothing more.
    pub(crate) fn end_writing(&self) {
        self.0.get_ref().end_writing();
    }

    /// The next answer, to anything but HEAD.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.answer_head();
        if answer.field("transfer-encoding") == Some("chunked") {
            answer.body = self.chunked().expect("all chunks");
        } else if let Some(length) = answer.field("content-length") {
            answer.body = vec![0; length.parse().unwrap()];
            self.0.read_exact(&mut answer.body).unwrap();
        } else if answer.status >= 200 && !matches!(answer.status, 204 | 304) {
            self.0.read_to_end(&mut answer.body).unwrap();
        }
        answer
    }

    pub(crate) fn answer_head(&mut self) -> Answer {
        let status_line = self.line();
        let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not a status line: {status_line:?}"));
        let mut fields = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return Answer { status, fields, body: Vec::new() };
            }
            let (name, value) = line.split_once(": ").unwrap();
            fields.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The next line, without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "a whole line instead of {line:?}");
        line.truncate(line.len() - 2);
        line
    }

    /// A chunked body; `None` if it is cut off.
    pub(crate) fn chunked(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk()? {
            body.extend_from_slice(&chunk);
        }
        Some(body)
    }

    /// The next chunk; `Some(None)`: there is none; `None`: the connection ended first.
    pub(crate) fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let mut line = String::new();
        if self.0.read_line(&mut line).is_err() || !line.ends_with("\r\n") {
            return None;
        }
        let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk).ok()?;
        assert!(chunk.ends_with(b"\r\n"));
        chunk.truncate(size);
        Some((size > 0).then_some(chunk))
    }

    pub(crate) fn read_exact(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Whether the server has ended the connection, and nothing more has come.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self.0.read(&mut [0; 1]) {
            Ok(length) => length == 0,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the end of the connection");
                true
            }
        }
    }

    /// All that comes until the connection ends, and whether it ended in order.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let ended = self.0.read_to_end(&mut bytes).is_ok();
        (bytes, ended)
    }

    /// Takes nothing for so long.
    pub(crate) fn stays_quiet(&self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(rest);
        }
    }

    /// Nothing comes for so long.
    pub(crate) fn stays_silent(&mut self, time: Duration) {
        self.0.get_ref().set_patience(time);
        let error = self.0.read(&mut [0; 1]).expect_err("silence");
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        self.0.get_ref().set_patience(PATIENCE);
    }
}
