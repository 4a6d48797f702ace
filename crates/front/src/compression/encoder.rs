//! The encoders, of bounded memory.
//!
//! Levels are those for content that is made for one response: beyond them, a few percent fewer bytes cost a multiple of
//! the time. Windows are small: most responses fit into them, and memory is what limits how many can be compressed at once.

use std::cell::RefCell;

use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use brotli::enc::StandardAlloc;
use flate2::{Compress, Compression, FlushCompress, Status};
use libdeflater::{CompressionLvl, Compressor};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

use super::accept_encoding::Coding;

/// zlib's default is 6: that costs about a fifth more time, for 4 % fewer bytes of a page. For a body that is there, libdeflate
/// makes as many bytes at the same level, in about half the time.
const GZIP_LEVEL: u32 = 4;
const GZIP_KEPT_LEVEL: u32 = 9;
const GZIP_WINDOW_BITS: u8 = 15;

const BROTLI_QUALITY: u32 = 4;
/// 64 KiB. Of quality 5 on, Brotli needs a multiple of time and memory.
const BROTLI_WINDOW_BITS: u32 = 16;

const ZSTD_LEVEL: i32 = 3;
/// 128 KiB for a body that is there, and 32 KiB, with small tables, for a body that comes little by little and may stay open for
/// hours: a tenth of the memory, for 1 % more bytes.
const ZSTD_WHOLE_WINDOW_BITS: u32 = 17;
const ZSTD_STREAM_WINDOW_BITS: u32 = 15;
const ZSTD_STREAM_TABLE_BITS: u32 = 14;

/// Spare encoders: setting one up costs more than compressing a small body.
const MOST_SPARE: usize = 4;

/// Bytes by which the output grows.
const STEP_BYTES: usize = 16 * 1024;

thread_local! {
    static SPARE: RefCell<Vec<Encoder>> = const { RefCell::new(Vec::new()) };
}

/// What an encoder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// A body that is there, in one call.
    Whole,
    /// A body that comes little by little.
    Stream,
    /// A file that is compressed once and kept, in one call.
    Kept,
}

/// How long compression of a piece takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Up to a tenth of a millisecond.
    Little,
    /// Up to a few tenths: about as long as it takes a thread and the event loop to wake each other.
    Medium,
    Much,
}

/// What follows the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// More input, at once.
    More,
    /// Maybe nothing for a while: the client gets all that can be made of the input so far.
    Flush,
    /// The end of the body.
    End,
}

/// The codec has refused to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {0} encoder has failed")]
pub(crate) struct EncoderFailed(&'static str);

/// Compresses one body.
pub(crate) struct Encoder {
    coding: Coding,
    shape: Shape,
    codec: Codec,
}

enum Codec {
    WholeGzip(Compressor),
    Gzip(Compress),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(CCtx<'static>),
}

impl Encoder {
    /// An encoder at its beginning.
    pub(crate) fn new(coding: Coding, shape: Shape) -> Self {
        let spare = SPARE.with_borrow_mut(|spare| {
            let is_such = |other: &Encoder| (other.coding, other.shape) == (coding, shape);
            spare.iter().position(is_such).map(|at| spare.swap_remove(at))
        });
        spare.unwrap_or_else(|| {
            let codec = match coding {
                Coding::Gzip => gzip(shape),
                Coding::Brotli => Codec::Brotli(Box::new(brotli(shape))),
                Coding::Zstd => Codec::Zstd(zstd(shape)),
            };
            Encoder { coding, shape, codec }
        })
    }

    /// The most bytes of memory that one takes, as measured.
    pub(crate) fn most_bytes(coding: Coding, shape: Shape) -> u64 {
        let kib = match (coding, shape) {
            (Coding::Gzip, Shape::Whole | Shape::Kept) => 700,
            (Coding::Gzip, Shape::Stream) => 400,
            (Coding::Brotli, Shape::Whole | Shape::Stream) => 2048,
            (Coding::Brotli, Shape::Kept) => 16 * 1024,
            (Coding::Zstd, Shape::Whole) => 1024,
            (Coding::Zstd, Shape::Stream) => 400,
            (Coding::Zstd, Shape::Kept) => 16 * 1024,
        };
        kib * 1024
    }

    /// How long it takes to compress this many bytes of text, about.
    pub(crate) fn effort(&self, bytes: usize) -> Effort {
        let quick_bytes = match self.coding {
            Coding::Gzip | Coding::Zstd => 16 * 1024,
            Coding::Brotli => 6 * 1024,
        };
        match bytes {
            _ if bytes <= quick_bytes => Effort::Little,
            _ if bytes <= 3 * quick_bytes => Effort::Medium,
            _ => Effort::Much,
        }
    }

    /// Compresses `input`, and appends to `out`.
    ///
    /// # Errors
    /// The body cannot be completed.
    pub(crate) fn write(&mut self, input: &[u8], then: Then, out: &mut Vec<u8>) -> Result<(), EncoderFailed> {
        let written = match &mut self.codec {
            Codec::WholeGzip(codec) => write_whole_gzip(codec, input, out),
            Codec::Gzip(codec) => write_gzip(codec, input, then, out),
            Codec::Brotli(codec) => write_brotli(codec, input, then, out),
            Codec::Zstd(codec) if self.shape != Shape::Stream => write_whole_zstd(codec, input, out),
            Codec::Zstd(codec) => write_zstd(codec, input, then, out),
        };
        written.ok_or(EncoderFailed(self.coding.name()))
    }

    /// Keeps it for another body, if it is of use there. On the thread that will take it.
    pub(crate) fn give_back(mut self) {
        if self.shape == Shape::Kept || !self.reset() {
            return;
        }
        SPARE.with_borrow_mut(|spare| {
            if spare.len() >= MOST_SPARE {
                spare.remove(0);
            }
            spare.push(self);
        });
    }

    fn reset(&mut self) -> bool {
        match &mut self.codec {
            Codec::Gzip(codec) => {
                codec.reset();
                true
            }
            Codec::WholeGzip(_) => true, // nothing stays of a body
            Codec::Brotli(_) => false,
            Codec::Zstd(codec) => codec.reset(ResetDirective::SessionOnly).is_ok(),
        }
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Encoder").field("coding", &self.coding).field("shape", &self.shape).finish()
    }
}

// --- gzip ------------------------------------------------------------------------------------------------

fn gzip(shape: Shape) -> Codec {
    let whole = |level: u32| {
        Codec::WholeGzip(Compressor::new(
            CompressionLvl::new(level as i32).expect("libdeflate has this level"),
        ))
    };
    match shape {
        Shape::Whole => whole(GZIP_LEVEL),
        Shape::Kept => whole(GZIP_KEPT_LEVEL),
        Shape::Stream => Codec::Gzip(Compress::new_gzip(Compression::new(GZIP_LEVEL), GZIP_WINDOW_BITS)),
    }
}

fn write_whole_gzip(codec: &mut Compressor, input: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + codec.gzip_compress_bound(input.len()), 0);
    let length = codec.gzip_compress(input, &mut out[start..]).ok()?;
    out.truncate(start + length);
    Some(())
}

fn write_gzip(codec: &mut Compress, mut input: &[u8], then: Then, out: &mut Vec<u8>) -> Option<()> {
    let flush = match then {
        Then::More => FlushCompress::None,
        Then::Flush => FlushCompress::Sync,
        Then::End => FlushCompress::Finish,
    };
    loop {
        out.reserve((input.len() / 2).clamp(64, STEP_BYTES));
        let before = codec.total_in();
        let status = codec.compress_vec(input, out, flush).ok()?;
        input = &input[(codec.total_in() - before) as usize..];
        // With room left in the output, there is nothing more to be written.
        let is_done = match then {
            Then::End => status == Status::StreamEnd,
            Then::More | Then::Flush => input.is_empty() && out.len() < out.capacity(),
        };
        if is_done {
            return Some(());
        }
    }
}

// --- Brotli ----------------------------------------------------------------------------------------------

fn brotli(shape: Shape) -> BrotliEncoderStateStruct<StandardAlloc> {
    let (quality, window_bits) =
        if shape == Shape::Kept { (6, 19) } else { (BROTLI_QUALITY, BROTLI_WINDOW_BITS) };
    let mut codec = BrotliEncoderStateStruct::new(StandardAlloc::default());
    codec.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, quality);
    codec.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window_bits);
    codec
}

fn write_brotli(
    codec: &mut BrotliEncoderStateStruct<StandardAlloc>,
    input: &[u8],
    then: Then,
    out: &mut Vec<u8>,
) -> Option<()> {
    let operation = match then {
        Then::More => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        Then::Flush => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
        Then::End => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
    };
    let (mut available_in, mut at_in) = (input.len(), 0);
    loop {
        let begin = out.len();
        out.resize(begin + (available_in / 2).clamp(1024, STEP_BYTES), 0);
        let (mut available_out, mut at_out) = (out.len() - begin, 0);
        let is_well = codec.compress_stream(
            operation,
            &mut available_in,
            input,
            &mut at_in,
            &mut available_out,
            &mut out[begin..],
            &mut at_out,
            &mut None,
            &mut |_, _, _, _| (),
        );
        out.truncate(begin + at_out);
        if !is_well {
            return None;
        }
        let is_done = match then {
            Then::End => codec.is_finished(),
            Then::More | Then::Flush => available_in == 0 && !codec.has_more_output(),
        };
        if is_done {
            return Some(());
        }
    }
}

// --- zstd ------------------------------------------------------------------------------------------------

fn zstd(shape: Shape) -> CCtx<'static> {
    let mut codec = CCtx::create();
    let parameters: &[CParameter] = match shape {
        Shape::Whole => {
            &[CParameter::CompressionLevel(ZSTD_LEVEL), CParameter::WindowLog(ZSTD_WHOLE_WINDOW_BITS)]
        }
        Shape::Stream => &[
            CParameter::CompressionLevel(ZSTD_LEVEL),
            CParameter::WindowLog(ZSTD_STREAM_WINDOW_BITS),
            CParameter::HashLog(ZSTD_STREAM_TABLE_BITS),
            CParameter::ChainLog(ZSTD_STREAM_TABLE_BITS),
        ],
        Shape::Kept => &[CParameter::CompressionLevel(12), CParameter::WindowLog(19)],
    };
    for parameter in parameters {
        codec.set_parameter(*parameter).expect("the parameter is within zstd's bounds");
    }
    codec
}

/// Without buffers for what comes later.
fn write_whole_zstd(codec: &mut CCtx<'static>, input: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut written = Vec::with_capacity(zstd_safe::compress_bound(input.len()));
    codec.compress2(&mut written, input).ok()?;
    out.extend_from_slice(&written);
    Some(())
}

fn write_zstd(codec: &mut CCtx<'static>, input: &[u8], then: Then, out: &mut Vec<u8>) -> Option<()> {
    let mut input = InBuffer::around(input);
    loop {
        out.reserve(STEP_BYTES);
        let begin = out.len();
        let mut output = OutBuffer::around_pos(out, begin);
        let is_read = input.pos() == input.src.len();
        let left = match then {
            _ if !is_read => codec.compress_stream(&mut output, &mut input).map(|_| 1),
            Then::More => return Some(()),
            Then::Flush => codec.flush_stream(&mut output),
            Then::End => codec.end_stream(&mut output),
        };
        if left.ok()? == 0 {
            return Some(());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    /// What a client reads; it has all that has come by now.
    pub(crate) fn decoded(coding: Coding, bytes: &[u8], is_whole: bool) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Gzip => {
                let read = flate2::read::GzDecoder::new(bytes).read_to_end(&mut out);
                assert_eq!(read.is_ok(), is_whole);
            }
            Coding::Brotli => {
                let read = brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out);
                assert_eq!(read.is_ok(), is_whole);
            }
            Coding::Zstd => {
                let mut codec = zstd_safe::DCtx::create();
                let mut input = InBuffer::around(bytes);
                let mut left = 1;
                while left != 0 {
                    out.reserve(STEP_BYTES);
                    let begin = out.len();
                    let mut output = OutBuffer::around_pos(&mut out, begin);
                    left = codec.decompress_stream(&mut output, &mut input).unwrap();
                    if input.pos() == bytes.len() && out.len() == begin {
                        break;
                    }
                }
                assert_eq!(left == 0, is_whole);
            }
        }
        out
    }

    pub(crate) const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    fn encoded(coding: Coding, shape: Shape, pieces: &[(Vec<u8>, bool)]) -> Vec<u8> {
        let mut encoder = Encoder::new(coding, shape);
        let mut out = Vec::new();
        let mut plain = Vec::new();
        for (piece, flush) in pieces {
            let then = if *flush { Then::Flush } else { Then::More };
            encoder.write(piece, then, &mut out).unwrap();
            plain.extend_from_slice(piece);
            if *flush {
                assert_eq!(decoded(coding, &out, false), plain, "{coding:?}: all that came can be read");
            }
        }
        encoder.write(b"", Then::End, &mut out).unwrap();
        encoder.give_back();
        out
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            (any::<u8>(), 0..40_000_usize).prop_map(|(byte, length)| vec![byte; length]),
            "[a-z<> ]{0,4000}".prop_map(String::into_bytes),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_body_in_any_pieces_is_what_the_client_gets(
            pieces in prop::collection::vec((text(), any::<bool>()), 0..8)
        ) {
            let plain: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
            for coding in ALL {
                let out = encoded(coding, Shape::Stream, &pieces);
                prop_assert!(decoded(coding, &out, true) == plain, "{coding:?}");
                for shape in [Shape::Whole, Shape::Kept] {
                    let mut encoder = Encoder::new(coding, shape);
                    let mut out = b"before".to_vec();
                    encoder.write(&plain, Then::End, &mut out).unwrap();
                    prop_assert!(decoded(coding, &out[6..], true) == plain, "{coding:?} {shape:?}");
                }
            }
        }
    }

    #[test]
    fn zstd_takes_no_more_memory_than_it_is_counted_for() {
        let body: Vec<u8> = (0..400_000_u64).map(|i| ((i * i) >> 7) as u8).collect();
        for (shape, length) in [(Shape::Whole, 128 * 1024), (Shape::Stream, 400_000), (Shape::Kept, 400_000)]
        {
            let mut encoder = Encoder::new(Coding::Zstd, shape);
            encoder.write(&body[..length], Then::End, &mut Vec::new()).unwrap();
            let Codec::Zstd(codec) = &encoder.codec else { panic!("another codec") };
            let bytes = codec.sizeof() as u64;
            let counted = Encoder::most_bytes(Coding::Zstd, shape);
            assert!(bytes <= counted && bytes > counted / 4, "{shape:?}: {bytes} of {counted}");
        }
    }

    #[test]
    fn an_encoder_is_used_again_from_its_beginning() {
        for coding in ALL {
            let body = vec![b'a'; 100_000];
            let mut encoder = Encoder::new(coding, Shape::Stream);
            encoder.write(&body, Then::Flush, &mut Vec::new()).unwrap();
            encoder.give_back(); // the client has left
            let pieces = [(b"hello".to_vec(), false)];
            assert_eq!(decoded(coding, &encoded(coding, Shape::Stream, &pieces), true), b"hello");
        }
        for _ in 0..3 * MOST_SPARE {
            let gzips: Vec<_> = (0..3).map(|_| Encoder::new(Coding::Gzip, Shape::Whole)).collect();
            gzips.into_iter().for_each(Encoder::give_back);
        }
        assert!(SPARE.with_borrow(Vec::len) <= MOST_SPARE);
    }
}
