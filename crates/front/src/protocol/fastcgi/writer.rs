//! What a web server gets: an answer as CGI text (RFC 3875 section 6) in `STDOUT` records.
//!
//! Records have no padding: the specification offers it so that an application may align its data, web servers skip it,
//! and a record whose content is sent from a file would need a write for it alone.

use super::record::{end_request, kind, Record, Status, HEADER_BYTES};
use crate::http_syntax::{reason_phrase, write_number};
use crate::message::refusal::Refusal;
use crate::protocol::cgi::{self, CgiWriter};

/// Most bytes in a record that the writer makes: the most pages of 4 KiB that fit, so that the parts of a file begin
/// where its pages do.
pub const RECORD_BYTES: usize = 15 * 4096;

/// Encodes the answer to one request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer {
    pub(super) request_id: u16,
}

impl Writer {
    /// A writer for the request with this number.
    pub fn new(request_id: u16) -> Self {
        Writer { request_id }
    }

    fn stdout(&self, length: u16) -> Record {
        Record::new(kind::STDOUT, self.request_id, length)
    }
}

impl CgiWriter for Writer {
    fn head(
        &self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let begin = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        for (name, value) in fields.filter(|(name, _)| cgi::is_sent(name)) {
            for part in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
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

    /// At most [`RECORD_BYTES`]. An empty record would end the answer.
    fn part(&self, left: u64, out: &mut Vec<u8>) -> usize {
        let length = left.min(RECORD_BYTES as u64) as u16;
        if length > 0 {
            out.extend_from_slice(&self.stdout(length).encode());
        }
        usize::from(length)
    }

    fn end(&self, _close: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.stdout(0).encode());
        end_request(self.request_id, Status::RequestComplete, out);
    }

    /// A record of another version. nginx without buffering takes a connection that only ends for the end of the
    /// answer, and all web servers ignore the application's status in `END_REQUEST`. At another version, nginx, Apache
    /// and HAProxy end their answer with an error, also over a Unix socket, which has no reset. lighttpd does so when the
    /// connection ends, if that does not come together with the answer. Caddy notices only that Content-Length is not
    /// reached.
    fn abort(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; HEADER_BYTES]);
    }
}
