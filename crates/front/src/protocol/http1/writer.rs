//! Writes answers as HTTP/1 does: the one place where a status line, a Date, a Connection and the framing of a body are
//! written.

use crate::http_syntax::{reason_phrase, write_number, DateCache};
use crate::message::answer::{AddedField, AnswerBody, AnswerHead};
use crate::message::request_head::Version;

/// How the current body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// As it is: its length is known, or the connection ends behind it.
    Plain,
    /// In chunks (RFC 9112 section 7.1).
    Chunked,
}

/// Writes one answer after the other.
#[derive(Debug)]
pub struct Writer {
    version: Version,
    keep_alive: bool,
    framing: Framing,
}

impl Default for Writer {
    fn default() -> Self {
        Writer { version: Version::Http11, keep_alive: false, framing: Framing::Plain }
    }
}

impl Writer {
    /// Ready for the answer to a request of this version. `keep_alive`: the client would like to keep the connection.
    pub fn begin(&mut self, version: Version, keep_alive: bool) {
        *self = Writer { version, keep_alive, framing: Framing::Plain };
    }

    /// The connection ends after this answer, if its head was not written yet.
    pub fn end_connection(&mut self) {
        self.keep_alive = false;
    }

    /// Whether the connection can be kept after the answer: final once its head was written.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Appends a head with these field lines to `out`. An HTTP/1.0 client gets no interim heads: it would not understand
    /// them.
    pub fn head(&mut self, head: &AnswerHead, lines: &[&[u8]], date: &DateCache, out: &mut Vec<u8>) {
        if head.is_interim() && self.version == Version::Http10 {
            return;
        }
        out.reserve(lines.iter().map(|lines| lines.len()).sum::<usize>() + 160);
        write_status_line(head.status, out);
        if !head.has.has(AddedField::Date) && !head.is_interim() {
            out.extend_from_slice(b"date: ");
            out.extend_from_slice(&date.now());
            out.extend_from_slice(b"\r\n");
        }
        lines.iter().for_each(|lines| out.extend_from_slice(lines));
        if let Some(length) = head.content_length {
            out.extend_from_slice(b"content-length: ");
            write_number(length, out);
            out.extend_from_slice(b"\r\n");
        }
        if !head.is_interim() {
            self.frame(head, out);
        }
        if head.is_upgrade {
            out.extend_from_slice(b"connection: upgrade\r\n");
        }
        let is_switching = head.is_upgrade && head.body == AnswerBody::Connection;
        if !head.is_interim() && !is_switching {
            self.write_connection(out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Decides how the body is framed (RFC 9112 section 6.3), and whether the connection stays.
    fn frame(&mut self, head: &AnswerHead, out: &mut Vec<u8>) {
        let ends_with_connection = match (head.body, self.version) {
            (AnswerBody::None | AnswerBody::Length(_), _) => false,
            (AnswerBody::Unknown, Version::Http11 | Version::Http2) => {
                self.framing = Framing::Chunked;
                out.extend_from_slice(b"transfer-encoding: chunked\r\n");
                false
            }
            (AnswerBody::Unknown, Version::Http10) | (AnswerBody::Connection, _) => true,
        };
        self.keep_alive &= !head.is_last && !ends_with_connection;
    }

    /// Appends a Connection field, where what happens is not what the client expects by its version.
    fn write_connection(&self, out: &mut Vec<u8>) {
        match (self.keep_alive, self.version) {
            (false, _) => out.extend_from_slice(b"connection: close\r\n"),
            (true, Version::Http10) => out.extend_from_slice(b"connection: keep-alive\r\n"),
            (true, Version::Http11 | Version::Http2) => {}
        }
    }

    /// Appends bytes of the body.
    pub fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        // An empty chunk would end the body.
        if !bytes.is_empty() {
            self.begin_part(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
            self.end_part(out);
        }
    }

    /// Appends what stands before the next `length` bytes of the body, more than none. Returns how many of them may follow
    /// before [`Writer::end_part`].
    pub fn begin_part(&mut self, length: u64, out: &mut Vec<u8>) -> u64 {
        if self.framing == Framing::Chunked {
            write_hexadecimal(length, out);
            out.extend_from_slice(b"\r\n");
        }
        length
    }

    /// Appends what stands behind them.
    pub fn end_part(&mut self, out: &mut Vec<u8>) {
        if self.framing == Framing::Chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends what stands at the end of an answer.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.framing == Framing::Chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
}

fn write_status_line(status: u16, out: &mut Vec<u8>) {
    if status == 200 {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    write_number(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(reason_phrase(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_hexadecimal(number: u64, out: &mut Vec<u8>) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    out.extend((0..digits).rev().map(|at| b"0123456789abcdef"[(number >> (4 * at)) as usize & 0xf]));
}
