use proptest::prelude::*;

use super::*;
use crate::tests::limits;

fn limits() -> Limits {
    Limits { head_bytes: 100, header_fields: 3, ..limits::limits() }
}

/// The body and the bytes consumed; `None` for a body that is not complete.
type Decoded = Result<Option<(Vec<u8>, usize)>, Refusal>;

/// Decodes `input`, which arrives in pieces that end at `cuts`.
fn decode(framing: BodyFraming, input: &[u8], cuts: &[usize]) -> Decoded {
    let mut decoder = BodyDecoder::new(framing, &limits(), Some(1000));
    let mut body = Vec::new();
    let mut consumed = 0;
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    ends.push(input.len());
    ends.sort_unstable();
    for end in ends {
        let progress = decoder.decode(&input[consumed..end], |bytes| body.extend_from_slice(bytes))?;
        consumed += progress.consumed;
        if progress.done {
            return Ok(Some((body, consumed)));
        }
        assert_eq!(consumed, end, "what is not the next message's is taken");
    }
    Ok(None)
}

fn chunked(input: &str) -> Decoded {
    decode(BodyFraming::Unknown, input.as_bytes(), &[])
}

#[test]
fn a_length_takes_exactly_that_number_of_bytes() {
    let whole = |length| decode(BodyFraming::Length(length), b"hello, next", &[2]);
    assert_eq!(whole(5), Ok(Some((b"hello".to_vec(), 5))));
    assert_eq!(whole(11), Ok(Some((b"hello, next".to_vec(), 11))));
    assert_eq!(whole(12), Ok(None));
    assert_eq!(whole(0), Ok(Some((vec![], 0))));
    assert_eq!(decode(BodyFraming::None, b"next", &[]), Ok(Some((vec![], 0))));
}

#[test]
fn chunks_are_joined() {
    for (input, body) in [
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("2\r\nhe\r\n003\r\nllo\r\n0\r\n\r\n", "hello"),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n00\r\n\r\n", "01234567890123456789"),
        ("0\r\n\r\n", ""),
        ("1;a\r\nx\r\n0;b=c\r\n\r\n", "x"),
        ("1 ; a = \"q;\\\"\u{e9}\" ;b\r\nx\r\n0\r\n\r\n", "x"),
        ("0000000000000001\r\nx\r\n0\r\n\r\n", "x"),
        ("1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\n", "x"),
    ] {
        assert_eq!(chunked(input), Ok(Some((body.as_bytes().to_vec(), input.len()))), "{input:?}");
        let next = format!("{input}GET / HTTP/1.1\r\n");
        assert_eq!(chunked(&next), Ok(Some((body.as_bytes().to_vec(), input.len()))), "{input:?}");
    }
}

#[test]
fn limits_are_kept() {
    let fields = |count: usize| format!("0\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert!(matches!(chunked(&fields(3)), Ok(Some(_))));
    assert_eq!(chunked(&fields(4)), Err(Refusal::TrailersTooLarge));
    let body = |sizes: &[usize]| {
        let chunks = sizes.iter().map(|size| format!("{size:x}\r\n{}\r\n", "x".repeat(*size)));
        chunks.chain(["0\r\n\r\n".to_owned()]).collect::<String>()
    };
    assert!(matches!(chunked(&body(&[1000])), Ok(Some(_))));
    assert!(matches!(chunked(&body(&[500, 500])), Ok(Some(_))));
    assert_eq!(chunked(&body(&[500, 501])), Err(Refusal::BodyTooLarge));
    assert_eq!(chunked("ffffffffffffffff\r\n"), Err(Refusal::BodyTooLarge), "refused before it is sent");
    let extension = |length: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "x".repeat(length));
    assert!(matches!(chunked(&extension(EXTENSION_BYTES - 2)), Ok(Some(_))));
    assert_eq!(chunked(&extension(EXTENSION_BYTES)), Err(Refusal::ChunkExtensionsTooLarge));
    let many = "1;aaaaaaaa\r\nx\r\n".repeat(EXTENSION_BYTES / 8);
    let mut unlimited = BodyDecoder::of_chunked_response();
    assert_eq!(unlimited.decode(many.as_bytes(), |_| {}), Err(Refusal::ChunkExtensionsTooLarge));
}

/// The same rules in the plainest way: over the whole input, without extensions and trailers.
fn naive(mut input: &[u8]) -> Result<Option<Vec<u8>>, ()> {
    let mut body = Vec::new();
    loop {
        let Some(end) = input.iter().position(|byte| !byte.is_ascii_hexdigit()) else {
            return if input.len() > 16 { Err(()) } else { Ok(None) };
        };
        if end == 0 || end > 16 || input[end] != b'\r' {
            return Err(());
        }
        let size = u64::from_str_radix(std::str::from_utf8(&input[..end]).unwrap(), 16).unwrap();
        match input.get(end + 1) {
            None => return Ok(None),
            Some(b'\n') if size > 1000 - body.len() as u64 => return Err(()),
            Some(b'\n') => input = &input[end + 2..],
            Some(_) => return Err(()),
        }
        let data = &input[..input.len().min(size as usize)];
        body.extend_from_slice(data);
        let rest = &input[data.len()..];
        if data.len() < size as usize {
            return Ok(None);
        }
        match rest {
            [b'\r', b'\n', ..] if size == 0 => return Ok(Some(body)),
            [b'\r', b'\n', after @ ..] => input = after,
            [] | [b'\r'] => return Ok(None),
            // The beginning of a trailer field's name.
            name if size == 0 && name.iter().all(u8::is_ascii_alphanumeric) => return Ok(None),
            _ => return Err(()),
        }
    }
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0usize..40).prop_map(|size| format!("{size:x}\r\n{}\r\n", "y".repeat(size)).into_bytes()),
        1 => Just(b"0\r\n\r\n".to_vec()),
        1 => proptest::sample::select(vec![&b"\r"[..], b"\n", b"\r\n", b"0", b"5", b"f\r\n", b"z", b"fffffffff"])
            .prop_map(<[u8]>::to_vec),
    ]
}

proptest! {
    #[test]
    fn the_decoder_agrees_with_the_plain_rules_however_the_body_is_cut(
        pieces in proptest::collection::vec(piece(), 0..12),
        cuts in proptest::collection::vec(any::<usize>(), 0..8),
    ) {
        let input = pieces.concat();
        let decoded = decode(BodyFraming::Unknown, &input, &cuts);
        prop_assert_eq!(decoded.clone().map(|ok| ok.map(|(body, _)| body)).map_err(|_| ()), naive(&input));
        prop_assert_eq!(decoded, decode(BodyFraming::Unknown, &input, &[]));
    }

    #[test]
    fn no_bytes_make_it_panic(
        input in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in proptest::collection::vec(any::<usize>(), 0..4),
    ) {
        let _ = decode(BodyFraming::Unknown, &input, &cuts);
    }
}
