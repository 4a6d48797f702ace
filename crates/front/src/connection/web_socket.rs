//! What the front knows of a WebSocket that an application has taken over: where the server's frames end, so that it can end
//! the connection with an added frame (RFC 6455 sections 5.2 and 5.5.1). Everything else is the application's business.

/// A close frame with status 1012, "service restart" (IANA, WebSocket close codes): clients reconnect.
pub(super) const RESTART: [u8; 4] = [0x88, 0x02, 0x03, 0xf4];

/// How the answer begins by which an application accepts a WebSocket itself.
const ACCEPTED: &[u8] = b"HTTP/1.1 101 ";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// The longest header of a frame that a server may send: it is not masked.
const HEADER_BYTES: usize = 10;
const MASKED: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const CLOSE: u8 = 8;

/// How far the server's side of a connection has come.
#[derive(Debug, Default)]
pub(super) enum ServerFrames {
    /// It is no WebSocket, or breaks the rules of one: the front adds nothing.
    #[default]
    Foreign,
    /// In the head of the answer, which the application writes itself: bytes of [`ACCEPTED`], and then of [`END_OF_HEAD`],
    /// that were met.
    Head { accepted: usize, end: usize },
    /// In the header of a frame, of which this many bytes have come.
    Header { bytes: [u8; HEADER_BYTES], length: usize },
    /// In a frame's payload, of which this many bytes are to come.
    Payload { rest: u64 },
}

impl ServerFrames {
    /// Behind a head that the front has sent.
    pub(super) const BEGIN: ServerFrames = ServerFrames::Header { bytes: [0; HEADER_BYTES], length: 0 };

    /// Where the application sends the head as well.
    pub(super) const HEAD: ServerFrames = ServerFrames::Head { accepted: 0, end: 0 };

    /// Whether it is a WebSocket whose end the application has left to others.
    pub(super) fn may_be_closed(&self) -> bool {
        !matches!(self, ServerFrames::Foreign)
    }

    /// Whether a frame may be added now: fragments of a message may have control frames between them (RFC 6455 section 5.4).
    pub(super) fn are_complete(&self) -> bool {
        matches!(self, ServerFrames::Header { length: 0, .. })
    }

    /// Follows what the server sends.
    pub(super) fn follow(&mut self, sent: &[u8]) {
        self.follow_until(sent, |_| false);
    }

    /// Follows what the server sends up to the first place for another frame. Returns how much is before that.
    pub(super) fn follow_to_end_of_frame(&mut self, sent: &[u8]) -> usize {
        self.follow_until(sent, ServerFrames::are_complete)
    }

    fn follow_until(&mut self, all: &[u8], is_there: fn(&ServerFrames) -> bool) -> usize {
        let mut sent = all;
        while let (true, false, Some((&first, rest))) =
            (self.may_be_closed(), is_there(self), sent.split_first())
        {
            if let ServerFrames::Payload { rest: missing } = self {
                let passed = (*missing).min(sent.len() as u64);
                sent = &sent[passed as usize..];
                *self = match *missing - passed {
                    0 => ServerFrames::BEGIN,
                    rest => ServerFrames::Payload { rest },
                };
            } else {
                *self = std::mem::take(self).after(first);
                sent = rest;
            }
        }
        if self.may_be_closed() {
            all.len() - sent.len()
        } else {
            all.len()
        }
    }

    /// After one more byte of a head or header.
    fn after(self, byte: u8) -> ServerFrames {
        match self {
            ServerFrames::Head { accepted, end } if accepted == ACCEPTED.len() => {
                let end = match byte == END_OF_HEAD[end] {
                    true => end + 1,
                    false => usize::from(byte == END_OF_HEAD[0]),
                };
                if end == END_OF_HEAD.len() {
                    return ServerFrames::BEGIN;
                }
                ServerFrames::Head { accepted, end }
            }
            ServerFrames::Head { accepted, end } if byte == ACCEPTED[accepted] => {
                ServerFrames::Head { accepted: accepted + 1, end }
            }
            ServerFrames::Header { mut bytes, length } => {
                bytes[length] = byte;
                ServerFrames::after_header(bytes, length + 1)
            }
            _ => ServerFrames::Foreign,
        }
    }

    fn after_header(bytes: [u8; HEADER_BYTES], length: usize) -> ServerFrames {
        let [first, second, ..] = bytes;
        if length < 2 {
            return ServerFrames::Header { bytes, length };
        }
        if second & MASKED != 0 || first & OPCODE == CLOSE {
            return ServerFrames::Foreign; // the application has closed it, and nothing may follow
        }
        let number =
            |bytes: &[u8]| bytes.iter().fold(0, |number: u64, byte| (number << 8) | u64::from(*byte));
        let (header, payload) = match second {
            126 => (4, number(&bytes[2..4])),
            127 => (HEADER_BYTES, number(&bytes[2..])),
            short => (2, u64::from(short)),
        };
        match (length == header, payload) {
            (false, _) => ServerFrames::Header { bytes, length },
            (true, 0) => ServerFrames::BEGIN,
            (true, rest) => ServerFrames::Payload { rest },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

    /// Whether a close frame may follow this, in whatever pieces it comes.
    fn may_be_closed(begin: fn() -> ServerFrames, sent: &[u8]) -> bool {
        let after = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut frames = begin();
            pieces.for_each(|piece| frames.follow(piece));
            frames.are_complete()
        };
        let (whole, bytes) = (after(&mut std::iter::once(sent)), after(&mut sent.chunks(1)));
        assert_eq!(whole, bytes);
        whole
    }

    fn frame(opcode: u8, header: &[u8], payload: usize) -> Vec<u8> {
        [&[0x80 | opcode], header, &vec![b'x'; payload]].concat()
    }

    #[test]
    fn a_close_frame_follows_whole_frames_alone() {
        let begun = || ServerFrames::BEGIN;
        assert!(may_be_closed(begun, b""));
        let frames = [
            frame(1, &[5], 5),
            frame(9, &[0], 0),
            frame(0x41, &[3], 3), // compressed
            frame(2, &[126, 1, 0], 256),
            frame(2, &[127, 0, 0, 0, 0, 0, 1, 0, 0], 65_536),
        ];
        for frame in &frames {
            assert!(may_be_closed(begun, frame));
            assert!(!may_be_closed(begun, &frame[..frame.len() - 1]));
        }
        assert!(may_be_closed(begun, &frames.concat()));
    }

    #[test]
    fn what_is_behind_the_end_of_a_frame_is_not_followed() {
        let frames = [frame(1, &[5], 5), frame(1, &[2], 2)].concat();
        let mut begun = ServerFrames::BEGIN;
        assert_eq!(begun.follow_to_end_of_frame(&frames), 0);
        begun.follow(&frames[..3]);
        assert_eq!(begun.follow_to_end_of_frame(&frames[3..5]), 2);
        assert_eq!(begun.follow_to_end_of_frame(&frames[5..]), 2);
        assert!(begun.are_complete());
        // Nothing is held back of what the application ends itself.
        let end = [frame(8, &[2], 2), frame(1, &[2], 2)].concat();
        begun.follow(&end[..1]);
        assert_eq!(begun.follow_to_end_of_frame(&end[1..]), end.len() - 1);
    }

    #[test]
    fn nothing_follows_what_is_closed_or_no_websocket() {
        let begun = || ServerFrames::BEGIN;
        assert!(!may_be_closed(begun, &frame(8, &[2], 2)));
        assert!(!may_be_closed(begun, &frame(1, &[MASKED], 4)));
        assert!(!may_be_closed(|| ServerFrames::Foreign, &frame(1, &[1], 1)));
    }

    #[test]
    fn an_application_may_send_the_head_itself() {
        let begun = || ServerFrames::HEAD;
        assert!(may_be_closed(begun, HEAD));
        assert!(may_be_closed(begun, &[HEAD, &frame(1, &[2], 2)].concat()));
        assert!(!may_be_closed(begun, &HEAD[..HEAD.len() - 1]));
        assert!(!may_be_closed(begun, b"HTTP/1.1 200 OK\r\n\r\n"));
    }
}
