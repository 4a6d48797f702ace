//! Frames of WebSockets (RFC 6455 section 5) where the front itself is the server: what a client sends, checked byte by byte, and
//! what it gets. Codes and reasons are those of websocket-driver, by which Action Cable ends WebSockets.

use std::ops::Deref;

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CONTINUATION: u8 = 0;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const FINAL: u8 = 0x80;
const RESERVED: [u8; 3] = [0x40, 0x20, 0x10];
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;

/// The largest payload of a control frame, in bytes.
const CONTROL_BYTES: u64 = 125;

/// Codes of closes (RFC 6455 section 7.4).
pub(crate) const NORMAL: u16 = 1000;
/// "Service restart": clients reconnect.
pub(crate) const RESTART: u16 = 1012;
/// "Try again later".
pub(crate) const LATER: u16 = 1013;
const PROTOCOL_ERROR: u16 = 1002;
const UNACCEPTABLE: u16 = 1003;
const NOT_UTF8: u16 = 1007;
const TOO_LARGE: u16 = 1009;

/// Codes that applications choose.
const OWN_CODES: std::ops::RangeInclusive<u16> = 3000..=4999;
const KNOWN_CODES: [u16; 9] =
    [NORMAL, 1001, PROTOCOL_ERROR, UNACCEPTABLE, NOT_UTF8, 1008, TOO_LARGE, 1010, 1011];

// --- What a client gets ------------------------------------------------------------------------------

/// The header of a frame that a server sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    bytes: [u8; 10],
    length: usize,
}

impl Header {
    fn new(opcode: u8, payload: usize) -> Header {
        let mut bytes = [0; 10];
        bytes[0] = FINAL | opcode;
        let length = match payload {
            0..=125 => {
                bytes[1] = payload as u8;
                2
            }
            126..=0xffff => {
                bytes[1] = 126;
                bytes[2..4].copy_from_slice(&(payload as u16).to_be_bytes());
                4
            }
            _ => {
                bytes[1] = 127;
                bytes[2..].copy_from_slice(&(payload as u64).to_be_bytes());
                10
            }
        };
        Header { bytes, length }
    }

    /// Of a text with this number of bytes.
    pub(crate) fn of_text(payload: usize) -> Header {
        Header::new(TEXT, payload)
    }
}

impl Deref for Header {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A whole frame with this text.
pub(crate) fn text(payload: &str) -> Vec<u8> {
    [&*Header::of_text(payload.len()), payload.as_bytes()].concat()
}

/// A whole frame that answers a ping.
pub(crate) fn pong(payload: &[u8]) -> Vec<u8> {
    [&*Header::new(PONG, payload.len()), payload].concat()
}

/// A whole frame that closes the WebSocket.
pub(crate) fn close(code: u16, reason: &str) -> Vec<u8> {
    [&*Header::new(CLOSE, 2 + reason.len()), &code.to_be_bytes(), reason.as_bytes()].concat()
}

// --- What a client sends -----------------------------------------------------------------------------

/// What a client sends, once it is complete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Text(String),
    /// A binary message, which is dropped.
    Binary,
    Ping(Vec<u8>),
    Pong,
    /// It closes the WebSocket, and gets this code and reason.
    Close(u16, String),
}

/// A client breaks the rules: the WebSocket is closed with this code and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) code: u16,
    pub(crate) why: String,
}

fn broken<T>(code: u16, why: impl Into<String>) -> Result<T, Broken> {
    Err(Broken { code, why: why.into() })
}

/// The frames of a client, as they come.
#[derive(Debug, Default)]
pub(crate) struct ClientFrames {
    /// The header of the next frame, as far as it has come.
    header: Vec<u8>,
    frame: Option<Frame>,
    /// A message whose last frame has not come.
    message: Option<Message>,
}

/// A frame whose payload comes.
#[derive(Debug)]
struct Frame {
    opcode: u8,
    is_final: bool,
    mask: [u8; 4],
    payload: u64,
    /// The payload of a control frame.
    control: Vec<u8>,
    /// Bytes that have come.
    come: u64,
}

#[derive(Debug)]
struct Message {
    is_text: bool,
    bytes: Vec<u8>,
}

impl ClientFrames {
    /// Memory of what has come and is not complete, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.bytes.capacity())
    }

    /// Whether nothing of a message or frame has come.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.header.is_empty() && self.frame.is_none() && self.message.is_none()
    }

    /// Takes the next bytes off `input`. Returns what the client says with them; `None`: all are taken, and something is missing.
    ///
    /// # Errors
    /// The client breaks the rules, or sends a message of more than `most` bytes.
    pub(crate) fn read(&mut self, input: &mut &[u8], most: u64) -> Result<Option<Heard>, Broken> {
        loop {
            if self.frame.is_none() {
                let Some((&byte, rest)) = input.split_first() else { return Ok(None) };
                *input = rest;
                self.header.push(byte);
                self.frame = self.begun(most)?;
            }
            let Some(frame) = &mut self.frame else { continue };
            let length = (frame.payload - frame.come).min(input.len() as u64) as usize;
            let (bytes, rest) = input.split_at(length);
            *input = rest;
            let to = match &mut self.message {
                Some(message) if frame.opcode < CLOSE => &mut message.bytes,
                _ => &mut frame.control,
            };
            let mask = frame.mask.iter().cycle().skip((frame.come % 4) as usize);
            to.extend(bytes.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
            frame.come += length as u64;
            if frame.come < frame.payload {
                return Ok(None);
            }
            if let Some(frame) = self.frame.take() {
                if let Some(heard) = self.ended(frame)? {
                    return Ok(Some(heard));
                }
            }
        }
    }

    /// The frame that has begun, once its header is complete. It is refused at the first byte that shows what is wrong.
    fn begun(&mut self, most: u64) -> Result<Option<Frame>, Broken> {
        let header = &self.header;
        let first = header[0];
        let (opcode, is_final) = (first & OPCODE, first & FINAL != 0);
        if header.len() == 1 {
            self.check_first(first, opcode, is_final)?;
            return Ok(None);
        }
        let second = header[1];
        let (length_bytes, is_masked) = match second & !MASKED {
            126 => (2, second & MASKED != 0),
            127 => (8, second & MASKED != 0),
            _ => (0, second & MASKED != 0),
        };
        if header.len() < 2 + length_bytes {
            return match is_masked || header.len() > 2 {
                true => Ok(None),
                false => broken(UNACCEPTABLE, "Received unmasked frame but masking is required"),
            };
        }
        let payload = match length_bytes {
            0 => u64::from(second & !MASKED),
            _ => header[2..2 + length_bytes].iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
        };
        if header.len() == 2 + length_bytes {
            self.check_length(opcode, payload, most)?;
            if !is_masked {
                return broken(UNACCEPTABLE, "Received unmasked frame but masking is required");
            }
        }
        let Some(mask) = header[2 + length_bytes..].first_chunk::<4>() else { return Ok(None) };
        let mask = *mask;
        self.header.clear();
        self.header.shrink_to_fit();
        if matches!(opcode, TEXT | BINARY) {
            self.message = Some(Message { is_text: opcode == TEXT, bytes: Vec::new() });
        } else if opcode == CONTINUATION && self.message.is_none() {
            return broken(PROTOCOL_ERROR, "Received unexpected continuation frame");
        }
        Ok(Some(Frame { opcode, is_final, mask, payload, control: Vec::new(), come: 0 }))
    }

    fn check_first(&self, first: u8, opcode: u8, is_final: bool) -> Result<(), Broken> {
        let [one, two, three] = RESERVED.map(|bit| u8::from(first & bit != 0));
        if one + two + three > 0 {
            let why = format!(
                "One or more reserved bits are on: reserved1 = {one}, reserved2 = {two}, reserved3 = {three}"
            );
            return broken(PROTOCOL_ERROR, why);
        }
        if !matches!(opcode, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG) {
            return broken(PROTOCOL_ERROR, format!("Unrecognized frame opcode: {opcode}"));
        }
        if opcode >= CLOSE && !is_final {
            return broken(PROTOCOL_ERROR, format!("Received fragmented control frame: opcode = {opcode}"));
        }
        if matches!(opcode, TEXT | BINARY) && self.message.is_some() {
            let why = "Received new data frame but previous continuous frame is unfinished";
            return broken(PROTOCOL_ERROR, why);
        }
        Ok(())
    }

    fn check_length(&self, opcode: u8, payload: u64, most: u64) -> Result<(), Broken> {
        if opcode >= CLOSE {
            return match payload <= CONTROL_BYTES {
                true => Ok(()),
                false => broken(
                    PROTOCOL_ERROR,
                    format!("Received control frame having too long payload: {payload}"),
                ),
            };
        }
        let before = self.message.as_ref().map_or(0, |message| message.bytes.len() as u64);
        match before.saturating_add(payload) <= most {
            true => Ok(()),
            false => broken(TOO_LARGE, "WebSocket frame length too large"),
        }
    }

    fn ended(&mut self, frame: Frame) -> Result<Option<Heard>, Broken> {
        match frame.opcode {
            CLOSE => Ok(Some(closed(&frame.control))),
            PING => Ok(Some(Heard::Ping(frame.control))),
            PONG => Ok(Some(Heard::Pong)),
            _ if !frame.is_final => Ok(None),
            _ => match self.message.take() {
                Some(Message { is_text: true, bytes }) => match String::from_utf8(bytes) {
                    Ok(text) => Ok(Some(Heard::Text(text))),
                    Err(_) => broken(NOT_UTF8, "Could not decode a text frame as UTF-8"),
                },
                _ => Ok(Some(Heard::Binary)),
            },
        }
    }
}

/// What a client gets for its close frame: the same, unless that breaks the rules.
fn closed(payload: &[u8]) -> Heard {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return Heard::Close(if payload.is_empty() { NORMAL } else { PROTOCOL_ERROR }, String::new());
    };
    let code = u16::from_be_bytes(*code);
    let is_allowed = OWN_CODES.contains(&code) || KNOWN_CODES.contains(&code);
    match std::str::from_utf8(reason) {
        Ok(reason) => Heard::Close(if is_allowed { code } else { PROTOCOL_ERROR }, reason.into()),
        Err(_) => Heard::Close(PROTOCOL_ERROR, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: u64 = 1000;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        let mut header = Header::new(0, payload.len()).to_vec();
        header[0] = first;
        header[1] |= MASKED;
        let masked = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        header.into_iter().chain(mask).chain(masked).collect()
    }

    fn heard(pieces: &[&[u8]]) -> (Vec<Heard>, Option<u16>) {
        let (mut frames, mut all) = (ClientFrames::default(), Vec::new());
        for mut piece in pieces.iter().copied() {
            loop {
                match frames.read(&mut piece, MOST) {
                    Ok(Some(heard)) => all.push(heard),
                    Ok(None) => break,
                    Err(Broken { code, .. }) => return (all, Some(code)),
                }
            }
            assert!(piece.is_empty());
        }
        (all, None)
    }

    fn says(bytes: &[u8]) -> (Vec<Heard>, Option<u16>) {
        let whole = heard(&[bytes]);
        assert_eq!(whole, heard(&bytes.chunks(1).collect::<Vec<_>>()), "in pieces of a byte");
        whole
    }

    #[test]
    fn messages_come_whole_or_in_fragments() {
        let bytes = [
            frame(0x81, b"one"),
            frame(0x01, b"t"),
            frame(0x89, b"are you there"),
            frame(0x00, b"w"),
            frame(0x80, b"o"),
            frame(0x82, b"\xff"),
            frame(0x8a, b""),
            frame(0x81, b""),
        ];
        let text = |text: &str| Heard::Text(text.into());
        let expected = vec![
            text("one"),
            Heard::Ping(b"are you there".to_vec()),
            text("two"),
            Heard::Binary,
            Heard::Pong,
            text(""),
        ];
        assert_eq!(says(&bytes.concat()), (expected, None));
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        let cases: [(&[u8], u16); 9] = [
            (&frame(0xc1, b"x"), 1002),
            (&frame(0x83, b"x"), 1002),
            (&frame(0x09, b"x"), 1002),
            (&frame(0x80, b"x"), 1002),
            (&[frame(0x01, b"x"), frame(0x81, b"y")].concat(), 1002),
            (&frame(0x89, &[b'x'; 126]), 1002),
            (&[0x81, 1, b'x'], 1003),
            (&frame(0x81, b"\xff"), 1007),
            (&frame(0x81, &[b'x'; 1001]), 1009),
        ];
        for (bytes, code) in cases {
            assert_eq!(says(bytes), (vec![], Some(code)), "{bytes:?}");
        }
        assert_eq!(says(&[frame(0x01, &[b'x'; 600]), frame(0x80, &[b'x'; 401])].concat()).1, Some(1009));
        assert_eq!(says(&[0x81, 0xff, 255, 255, 255, 255, 255, 255, 255, 255]).1, Some(1009));
    }

    #[test]
    fn a_close_is_answered_as_it_came_unless_it_breaks_the_rules() {
        let answer = |payload: &[u8]| says(&frame(0x88, payload)).0.remove(0);
        assert_eq!(answer(b""), Heard::Close(1000, String::new()));
        assert_eq!(answer(b"\x03\xe9bye"), Heard::Close(1001, "bye".into()));
        assert_eq!(answer(b"\x0f\xa0"), Heard::Close(4000, String::new()));
        assert_eq!(answer(b"\x03"), Heard::Close(1002, String::new()));
        assert_eq!(answer(b"\x03\xedwhy"), Heard::Close(1002, "why".into()));
        assert_eq!(answer(b"\x03\xe8\xff"), Heard::Close(1002, String::new()));
    }

    #[test]
    fn frames_of_a_server_have_the_shortest_lengths() {
        assert_eq!(text("hi"), b"\x81\x02hi");
        assert_eq!(Header::of_text(126)[..], [0x81, 126, 0, 126]);
        assert_eq!(Header::of_text(65_536)[..], [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(close(1012, ""), b"\x88\x02\x03\xf4");
        assert_eq!(pong(b"x"), b"\x8a\x01x");
    }

    proptest! {
        #[test]
        fn any_bytes_end_or_go_on(bytes: Vec<u8>, cut in 0usize..100) {
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(heard(&[&bytes]), heard(&[one, two]));
        }
    }
}
