//! What a web server gets: an answer as CGI text (RFC 3875 section 6) in `STDOUT` records.
//!
//! Records have no padding: the specification offers it so that an application may align its data, web servers skip it,
//! and a record whose content is sent from a file would need a write for it alone.

use super::record::{end_request, kind, Record, Status, HEADER_BYTES};
use crate::http_syntax::{reason_phrase, write_number};
use crate::message::refusal::Refusal;
use crate::protocol::cgi;

/// Most bytes in a record that the writer makes: the most pages of 4 KiB that fit, so that the parts of a file begin
/// where its pages do.
pub const RECORD_BYTES: usize = 15 * 4096;

/// Encodes the answer to one request.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    request_id: u16,
}

impl Writer {
    /// A writer for the request with this number ([`super::Reader::request_id`]).
    pub fn new(request_id: u16) -> Self {
        Writer { request_id }
    }

    /// Appends the head: a status, and fields that are tokens and values. Call it once, for the final head: nginx, Apache,
    /// HAProxy and Caddy take an interim head for the final one, and what follows it for the body.
    ///
    /// # Errors
    /// There are none; a head for LSAPI has limits.
    pub fn head<'f>(
        &self,
        status: u16,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let begin = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        for (name, value) in fields.into_iter().filter(|(name, _)| cgi::is_sent(name)) {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        // Behind the fields, as HAProxy makes a Location that follows it a 302. With a reason, as nginx copies the line.
        out.extend_from_slice(b"Status: ");
        write_number(u64::from(status), out);
        out.push(b' ');
        out.extend_from_slice(reason_phrase(status).as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        let text = begin + HEADER_BYTES;
        match u16::try_from(out.len() - text) {
            Ok(length) => out[begin..text].copy_from_slice(&self.stdout(length).encode()),
            Err(_) => {
                let text = out.split_off(text);
                out.truncate(begin);
                self.bytes(&text, out);
            }
        }
        Ok(())
    }

    /// Appends bytes of the body.
    pub fn bytes(&self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let (record, rest) = bytes.split_at(self.part(bytes.len() as u64, out));
            out.extend_from_slice(record);
            bytes = rest;
        }
    }

    /// Appends the header of a record for a part of the body that the caller sends: from a file, or without a copy.
    /// Gives the number of bytes that have to follow: at most `left`, and at most [`RECORD_BYTES`]. Appends nothing if
    /// `left` is 0, as an empty record would end the answer.
    pub fn part(&self, left: u64, out: &mut Vec<u8>) -> usize {
        let length = left.min(RECORD_BYTES as u64) as u16;
        if length > 0 {
            out.extend_from_slice(&self.stdout(length).encode());
        }
        usize::from(length)
    }

    /// Appends the end of the answer.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.stdout(0).encode());
        end_request(self.request_id, Status::RequestComplete, out);
    }

    /// Appends what makes an answer that cannot be completed an error; the caller then closes the connection. It has to
    /// stand where a record may begin, not within a part.
    ///
    /// That is a record of another version. nginx without buffering takes a connection that only ends for the end of the
    /// answer, and all web servers ignore the application's status in `END_REQUEST`. At another version, nginx, Apache
    /// and HAProxy end their answer with an error, also over a Unix socket, which has no reset. lighttpd does so when the
    /// connection ends, if that does not come together with the answer. Caddy notices only that Content-Length is not
    /// reached.
    pub fn abort(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; HEADER_BYTES]);
    }

    fn stdout(&self, length: u16) -> Record {
        Record::new(kind::STDOUT, self.request_id, length)
    }
}
