//! When a head began to arrive that is not whole yet. The crate h2 tells nothing of it before the last of its frames has come, and
//! a client could make that last for as long as the connection lives.

use std::cell::Cell;

use crate::clock::now_ms;

/// The bytes before the payload of a frame (RFC 9113 section 4.1).
const HEADER_BYTES: usize = 9;

/// The bytes that a client begins with (RFC 9113 section 3.4): they count as a frame here.
const PREFACE_BYTES: u32 = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const NONE: u8 = 0xff;
const END_HEADERS: u8 = 4;

/// What has come of the frames of a connection.
#[derive(Debug)]
pub(super) struct Arrival {
    frame: Cell<Frame>,
    /// Since when something has come of a head, or of a frame that is not of a body, and not all.
    since_ms: Cell<Option<u64>>,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that have arrived.
    known: usize,
    /// Bytes of the payload that have not arrived, once the header is whole.
    left: u32,
    /// Frames have come that another one of the same head follows.
    in_head: bool,
}

impl Arrival {
    pub(super) fn new() -> Self {
        let mut header = [0; HEADER_BYTES];
        header[3] = NONE;
        let preface = Frame { header, known: HEADER_BYTES, left: PREFACE_BYTES, in_head: false };
        Arrival { frame: Cell::new(preface), since_ms: Cell::new(None) }
    }

    /// Since when a head is on its way, in ms.
    pub(super) fn since_ms(&self) -> Option<u64> {
        self.since_ms.get()
    }

    /// Takes in what was read.
    pub(super) fn note(&self, mut bytes: &[u8]) {
        let mut frame = self.frame.get();
        let mut is_another = false;
        while !bytes.is_empty() {
            is_another |= frame.known == 0 && !frame.in_head;
            bytes = frame.take(bytes);
        }
        self.frame.set(frame);
        let since_ms = self.since_ms.get().filter(|_| !is_another);
        self.since_ms.set(frame.is_open().then(|| since_ms.unwrap_or_else(now_ms)));
    }
}

impl Frame {
    /// Takes what belongs to the header, or to the payload. Returns the rest.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.known < HEADER_BYTES {
            let length = bytes.len().min(HEADER_BYTES - self.known);
            self.header[self.known..][..length].copy_from_slice(&bytes[..length]);
            self.known += length;
            if self.known == HEADER_BYTES {
                let [high, middle, low, ..] = self.header;
                self.left = u32::from_be_bytes([0, high, middle, low]);
                self.end_if_whole();
            }
            return &bytes[length..];
        }
        let length = bytes.len().min(self.left as usize);
        self.left -= length as u32;
        self.end_if_whole();
        &bytes[length..]
    }

    fn end_if_whole(&mut self) {
        if self.left > 0 {
            return;
        }
        let [_, _, _, kind, flags, ..] = self.header;
        if matches!(kind, HEADERS | CONTINUATION) {
            self.in_head = flags & END_HEADERS == 0;
        }
        self.known = 0;
    }

    fn is_open(&self) -> bool {
        let is_of_body = self.known == HEADER_BYTES && self.header[3] == DATA;
        self.in_head || (self.known > 0 && !is_of_body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        [&[0, 0, length, kind, flags, 0, 0, 0, 1][..], &vec![0xff; usize::from(length)]].concat()
    }

    fn begun() -> Arrival {
        let arrival = Arrival::new();
        arrival.note(&[b'x'; PREFACE_BYTES as usize]);
        assert_eq!(arrival.since_ms(), None);
        arrival
    }

    /// Whether a head is open after each of these bytes.
    fn open(bytes: &[u8]) -> Vec<bool> {
        let arrival = begun();
        let by_bytes: Vec<bool> = bytes
            .iter()
            .map(|byte| {
                arrival.note(&[*byte]);
                arrival.since_ms().is_some()
            })
            .collect();
        let at_once = begun();
        at_once.note(bytes);
        assert_eq!(Some(&at_once.since_ms().is_some()), by_bytes.last());
        by_bytes
    }

    #[test]
    fn a_head_is_open_until_its_last_frame_has_come() {
        let whole = open(&frame(HEADERS, END_HEADERS, 5));
        assert!(whole[..13].iter().all(|open| *open) && !whole[13]);
        let first = frame(HEADERS, 0, 5);
        assert!(open(&first)[13]);
        let more = [&first[..], &frame(CONTINUATION, 0, 0), &frame(CONTINUATION, 0, 3)].concat();
        assert!(open(&more).iter().all(|open| *open));
        assert!(!open(&[more, frame(CONTINUATION, END_HEADERS, 0)].concat()).last().unwrap());
    }

    #[test]
    fn a_body_has_times_of_its_own() {
        let frames = [frame(HEADERS, END_HEADERS, 0), frame(DATA, 0, 9)].concat();
        assert!(open(&frames[..17]).last().unwrap(), "nothing shows yet that it is of a body");
        assert!(!open(&frames[..18]).last().unwrap() && !open(&frames[..20]).last().unwrap());
        assert!(!open(&frames).last().unwrap());
    }

    #[test]
    fn each_head_has_its_own_time() {
        let arrival = begun();
        arrival.note(&frame(HEADERS, 0, 5));
        arrival.since_ms.set(Some(7));
        arrival.note(&frame(CONTINUATION, 0, 1));
        assert_eq!(arrival.since_ms(), Some(7), "the same head goes on");
        arrival.note(&[&frame(CONTINUATION, END_HEADERS, 1)[..], &[0]].concat());
        assert!(arrival.since_ms().is_some_and(|since_ms| since_ms > 7), "another frame has begun");
    }
}
