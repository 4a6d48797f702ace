//! A WebSocket on a stream of HTTP/2 (RFC 8441). The application knows only HTTP/1's: it answers 101, which is 200 here, and
//! often writes that head to the connection itself.

use http::{Response, StatusCode};

use super::writer;
use crate::message::answer::AnswerHead;
use crate::message::refusal::Refusal;

/// The largest head that an application may write itself.
const HEAD_BYTES: usize = 16 * 1024;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// How far it has come.
#[derive(Debug)]
pub(super) enum Tunnel {
    /// The client has asked for it.
    Offered,
    /// The application writes the head of the answer, of which this has come.
    Head(Vec<u8>),
    /// A head was sent.
    Answered,
}

impl Tunnel {
    /// The status that stands for `status` here.
    ///
    /// # Errors
    /// The client would take it for a WebSocket, and it is none.
    pub(super) fn status(&mut self, status: u16) -> Result<u16, Refusal> {
        match (&self, status) {
            (Tunnel::Answered, status) => return Ok(status), // the front's own, instead of that
            (_, 200..=299) => return Err(bad("answers a request for a WebSocket as an ordinary one")),
            _ => {}
        }
        *self = Tunnel::Answered;
        Ok(if status == 101 { 200 } else { status })
    }

    /// The application has the stream.
    pub(super) fn begin(&mut self) {
        if let Tunnel::Offered = self {
            *self = Tunnel::Head(Vec::new());
        }
    }

    /// Takes what the application sends. Once the head that it writes is whole, returns that; what is behind it goes to `out`.
    ///
    /// # Errors
    /// It is no head of HTTP/1, or a too large one.
    pub(super) fn head_of(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Response<()>>, Refusal> {
        let Tunnel::Head(head) = self else {
            out.extend_from_slice(bytes);
            return Ok(None);
        };
        head.extend_from_slice(bytes);
        let Some(end) = memchr::memmem::find(head, END_OF_HEAD) else {
            let is_too_large = head.len() > HEAD_BYTES;
            return if is_too_large { Err(bad("begins with a head that is too large")) } else { Ok(None) };
        };
        let end = end + END_OF_HEAD.len();
        let head = std::mem::take(head);
        out.extend_from_slice(&head[end..]);
        self.response(&head[..end]).map(Some)
    }

    /// The head of HTTP/2 for a head of HTTP/1.
    fn response(&mut self, head: &[u8]) -> Result<Response<()>, Refusal> {
        const BAD: Refusal = bad("does not begin with the head of a response");
        let line = memchr::memchr(b'\n', head).ok_or(BAD)?;
        let (status_line, lines) = head.split_at(line + 1);
        let status = status_line.strip_prefix(b"HTTP/1.1 ").and_then(|line| line.get(..3)).ok_or(BAD)?;
        let status = StatusCode::from_bytes(status).map_err(|_| BAD)?;
        let status = self.status(status.as_u16())?;
        writer::response(&AnswerHead::new(status), &[lines], None)
    }
}

const fn bad(why: &'static str) -> Refusal {
    Refusal::BadResponse { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an answer in pieces of this size: the status, a field, and the bytes after the head.
    fn read(answer: &[u8], size: usize) -> Result<(u16, Option<String>, Vec<u8>), Refusal> {
        let (mut tunnel, mut out, mut head) = (Tunnel::Offered, Vec::new(), None);
        tunnel.begin();
        for piece in answer.chunks(size) {
            head = tunnel.head_of(piece, &mut out)?.or(head);
        }
        let head = head.expect("a head");
        assert!(
            !head.headers().contains_key("upgrade") && !head.headers().contains_key("sec-websocket-accept")
        );
        let protocol = head.headers().get("sec-websocket-protocol");
        let protocol = protocol.map(|value| value.to_str().unwrap().to_owned());
        Ok((head.status().as_u16(), protocol, out))
    }

    #[test]
    fn the_head_of_an_application_becomes_one_of_http_2() {
        let answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: cable\r\n\r\nframes";
        for size in [1, 7, answer.len()] {
            assert_eq!(read(answer, size), Ok((200, Some("cable".to_owned()), b"frames".to_vec())));
        }
        assert_eq!(read(b"HTTP/1.1 403 Forbidden\r\n\r\nno", 3), Ok((403, None, b"no".to_vec())));
    }

    #[test]
    fn nothing_but_101_is_a_websocket() {
        assert!(read(b"HTTP/1.1 200 OK\r\n\r\n", 1).is_err());
        assert!(read(b"hello\r\n\r\n", 1).is_err());
        assert!(read(&[b'x'; HEAD_BYTES + 1], 1000).is_err());
        assert!(Tunnel::Offered.status(204).is_err());
        assert_eq!((Tunnel::Offered.status(101), Tunnel::Offered.status(404)), (Ok(200), Ok(404)));
    }
}
