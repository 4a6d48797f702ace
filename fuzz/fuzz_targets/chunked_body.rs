//! Chunked bodies: the same bytes however they are cut, and never more than the limit.
#![no_main]

mod limits;
mod pieces;

use highball_front::message::refusal::Refusal;
use highball_front::message::request_head::BodyFraming;
use highball_front::protocol::http1::body::BodyDecoder;
use libfuzzer_sys::fuzz_target;
use limits::limits;
use pieces::split_input;

const MOST_BYTES: u64 = 500;

fuzz_target!(|input: &[u8]| {
    let (pieces, bytes) = split_input(input);
    let whole = decode(&[bytes]);
    assert_eq!(decode(&pieces), whole);
    if let Ok(Some((body, consumed))) = whole {
        assert!(body.len() as u64 <= MOST_BYTES);
        assert!(bytes[..consumed].ends_with(b"\r\n"));
        assert_eq!(decode(&[&bytes[..consumed]]), Ok(Some((body, consumed))), "the rest played no part");
    }
});

fn decode(pieces: &[&[u8]]) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    let mut decoder = BodyDecoder::new(BodyFraming::Unknown, &limits(), Some(MOST_BYTES));
    let mut body = Vec::new();
    let mut consumed = 0;
    for piece in pieces {
        let progress = decoder.decode(piece, |data| body.extend_from_slice(data))?;
        consumed += progress.consumed;
        if progress.done {
            return Ok(Some((body, consumed)));
        }
        assert_eq!(progress.consumed, piece.len());
    }
    Ok(None)
}
