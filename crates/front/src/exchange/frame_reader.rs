//! Splits the bytes that a worker wrote into frames (`PROTOCOL.md` of `highball-ring`, Response frames).
//!
//! The bytes are a private copy; what they say is still not believed: an impossible frame is a breach.

use highball_ring::frame::{Header, Kind, FILE_PAYLOAD, HEADER_BYTES};
use highball_ring::RingError;

/// What stands in the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The payload of a whole `HEAD` frame.
    Head(&'a [u8]),
    /// Some bytes of a body; a `BODY` frame may come in several pieces.
    Body(&'a [u8]),
    /// Send this part of a file that came beside the ring.
    File {
        /// Where it begins, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// The worker asks for a socket, and the connection goes there.
    Hijack,
    /// The answer is complete.
    End,
    /// The answer cannot be completed.
    Abort,
    /// The slot is free; the rest of the answer comes over a socket.
    Stream,
    /// There is no answer: the application raised an exception, and this is its description.
    Failure(&'a [u8]),
}

/// Reads frames from pieces of any size.
#[derive(Debug, Default)]
pub struct FrameReader {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// The frame whose payload is being read, with the bytes still missing.
    open: Option<(Kind, usize)>,
    /// The payload of a frame that has to be whole, gathered so far.
    gathered: Vec<u8>,
    ended: bool,
}

impl FrameReader {
    /// Ready for the next answer.
    pub fn reset(&mut self) {
        self.header_bytes = 0;
        self.open = None;
        self.gathered.clear();
        self.ended = false;
    }

    /// Whether the worker has ended its answer: the slot is free.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes the next frame, or piece of a body, off `input`, and calls `visit` with it and with the bytes
    /// that follow it. `None`: `input` is used up.
    ///
    /// # Errors
    /// A frame of an impossible kind or length, or anything after the end, is a breach.
    pub fn next<T>(
        &mut self,
        input: &mut &[u8],
        visit: impl FnOnce(Frame<'_>, &[u8]) -> Result<T, RingError>,
    ) -> Result<Option<T>, RingError> {
        if input.is_empty() {
            return Ok(None);
        }
        if self.ended {
            return Err(RingError::Breach("bytes after the end of an answer"));
        }
        let Some((kind, missing)) = self.open_frame(input)? else {
            return Ok(None);
        };
        match kind {
            Kind::Body => {
                let (piece, rest) = input.split_at(missing.min(input.len()));
                *input = rest;
                self.open = (missing > piece.len()).then_some((kind, missing - piece.len()));
                visit(Frame::Body(piece), input).map(Some)
            }
            Kind::Head | Kind::File | Kind::Failure => self.whole_payload(kind, missing, input, visit),
            Kind::Hijack | Kind::End | Kind::Abort | Kind::Stream => {
                self.open = None;
                self.ended = kind != Kind::Hijack;
                let frame = match kind {
                    Kind::Hijack => Frame::Hijack,
                    Kind::End => Frame::End,
                    Kind::Stream => Frame::Stream,
                    _ => Frame::Abort,
                };
                visit(frame, input).map(Some)
            }
        }
    }

    /// The frame whose payload comes next, its header read if it has to be.
    fn open_frame(&mut self, input: &mut &[u8]) -> Result<Option<(Kind, usize)>, RingError> {
        if self.open.is_none() {
            let Some(header) = self.next_header(input) else { return Ok(None) };
            let Header { kind, length } = Header::decode(header)?;
            self.open = Some((kind, length));
        }
        // A frame without payload is there as soon as its header is.
        Ok(self.open.filter(|(_, missing)| *missing == 0 || !input.is_empty()))
    }

    /// The header of the next frame. In most cases it is in one piece.
    fn next_header(&mut self, input: &mut &[u8]) -> Option<[u8; HEADER_BYTES]> {
        if self.header_bytes == 0 {
            if let Some((header, rest)) = input.split_first_chunk() {
                *input = rest;
                return Some(*header);
            }
        }
        let (more, rest) = input.split_at((HEADER_BYTES - self.header_bytes).min(input.len()));
        self.header[self.header_bytes..self.header_bytes + more.len()].copy_from_slice(more);
        self.header_bytes += more.len();
        *input = rest;
        if self.header_bytes < HEADER_BYTES {
            return None;
        }
        self.header_bytes = 0;
        Some(self.header)
    }

    fn whole_payload<T>(
        &mut self,
        kind: Kind,
        missing: usize,
        input: &mut &[u8],
        visit: impl FnOnce(Frame<'_>, &[u8]) -> Result<T, RingError>,
    ) -> Result<Option<T>, RingError> {
        let (piece, rest) = input.split_at(missing.min(input.len()));
        *input = rest;
        if piece.len() < missing {
            self.gathered.extend_from_slice(piece);
            self.open = Some((kind, missing - piece.len()));
            return Ok(None);
        }
        self.open = None;
        self.ended = kind == Kind::Failure;
        if self.gathered.is_empty() {
            return visit(whole_frame(kind, piece)?, input).map(Some);
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.extend_from_slice(piece);
        let result = visit(whole_frame(kind, &gathered)?, input);
        gathered.clear();
        self.gathered = gathered;
        result.map(Some)
    }
}

fn whole_frame(kind: Kind, payload: &[u8]) -> Result<Frame<'_>, RingError> {
    match kind {
        Kind::Head => return Ok(Frame::Head(payload)),
        Kind::Failure => return Ok(Frame::Failure(payload)),
        _ => {}
    }
    let payload: &[u8; FILE_PAYLOAD] =
        payload.try_into().map_err(|_| RingError::Breach("a file frame of the wrong length"))?;
    let (offset, length) = payload.split_at(8);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    Ok(Frame::File { offset: number(offset), length: number(length) })
}

/// The length of the whole body, if all frames up to the end stand in `input` already.
pub fn whole_body_length(mut input: &[u8]) -> Option<u64> {
    let mut total = 0u64;
    loop {
        let (header, rest) = input.split_first_chunk::<HEADER_BYTES>()?;
        let Header { kind, length } = Header::decode(*header).ok()?;
        let (payload, rest) = rest.split_at_checked(length)?;
        input = rest;
        match kind {
            Kind::Body => total = total.checked_add(payload.len() as u64)?,
            Kind::File => total = total.checked_add(u64::from_le_bytes(payload[8..].try_into().ok()?))?,
            Kind::End => return Some(total),
            Kind::Head | Kind::Hijack | Kind::Abort | Kind::Failure | Kind::Stream => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
        let header = Header { kind, length: payload.len() };
        [&header.encode()[..], payload].concat()
    }

    /// What the frames say, with bodies joined.
    fn read(pieces: &[&[u8]]) -> Result<Vec<(u8, Vec<u8>)>, RingError> {
        let mut reader = FrameReader::default();
        let mut frames: Vec<(u8, Vec<u8>)> = Vec::new();
        for mut piece in pieces.iter().copied() {
            while let Some(()) = reader.next(&mut piece, |frame, _| {
                match frame {
                    Frame::Head(payload) => frames.push((1, payload.to_vec())),
                    Frame::Body(bytes) => match frames.last_mut() {
                        Some((2, body)) => body.extend_from_slice(bytes),
                        _ => frames.push((2, bytes.to_vec())),
                    },
                    Frame::File { offset, length } => {
                        frames.push((3, [offset.to_le_bytes(), length.to_le_bytes()].concat()))
                    }
                    Frame::Hijack => frames.push((4, vec![])),
                    Frame::End => frames.push((5, vec![])),
                    Frame::Abort => frames.push((6, vec![])),
                    Frame::Failure(payload) => frames.push((7, payload.to_vec())),
                    Frame::Stream => frames.push((8, vec![])),
                }
                Ok(())
            })? {}
            // Not used up although nothing came: the header of a frame with payload ended the piece.
            assert!(piece.is_empty());
        }
        Ok(frames)
    }

    #[test]
    fn a_whole_answer_is_measured() {
        let mut bytes = [frame(Kind::Body, b"Hello"), frame(Kind::Body, b" World")].concat();
        assert_eq!(whole_body_length(&bytes), None);
        bytes.extend(frame(Kind::End, b""));
        assert_eq!(whole_body_length(&bytes), Some(11));
        assert_eq!(whole_body_length(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn bytes_after_the_end_are_a_breach() {
        for last in [frame(Kind::End, b""), frame(Kind::Failure, b""), frame(Kind::Failure, b"{}")] {
            let bytes = [last, frame(Kind::End, b"")].concat();
            assert!(read(&[&bytes]).is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn however_the_bytes_are_cut_the_frames_are_the_same(cuts in prop::collection::vec(0usize..60, 0..8)) {
            let bytes = [
                frame(Kind::Head, b"12345678"),
                frame(Kind::Body, b"some body"),
                frame(Kind::File, &[7; 16]),
                frame(Kind::Hijack, b""),
                frame(Kind::Failure, b"{what it was}"),
            ]
            .concat();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut begin = 0;
            let pieces: Vec<&[u8]> = cuts.iter().map(|&end| { let piece = &bytes[begin..end]; begin = end; piece }).collect();
            prop_assert_eq!(read(&pieces).unwrap(), read(&[&bytes]).unwrap());
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&[&bytes]);
            let _ = whole_body_length(&bytes);
        }
    }
}
