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
    let (cuts, bytes) = split_input(input);
    let whole = decode(bytes, &[]);
    assert_eq!(decode(bytes, cuts), whole);
    if let Ok(Some((body, consumed))) = whole {
        assert!(body.len() as u64 <= MOST_BYTES);
        assert!(bytes[..consumed].ends_with(b"\r\n"));
        assert_eq!(decode(&bytes[..consumed], &[]), Ok(Some((body, consumed))), "the rest played no part");
    }
});

fn decode(bytes: &[u8], cuts: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    let mut decoder = BodyDecoder::new(BodyFraming::Unknown, &limits(), Some(MOST_BYTES));
    let mut body = Vec::new();
    let mut consumed = 0;
    let mut cuts = cuts.iter();
    while !decoder.is_done() {
        let end = cuts.next().map_or(bytes.len(), |cut| bytes.len().min(consumed + usize::from(*cut) + 1));
        let progress = decoder.decode(&bytes[consumed..end], |data| body.extend_from_slice(data))?;
        consumed += progress.consumed;
        assert!(progress.done || consumed == end);
        if !progress.done && end == bytes.len() {
            return Ok(None);
        }
    }
    Ok(Some((body, consumed)))
}
