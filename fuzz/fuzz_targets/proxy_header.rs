//! The header of the PROXY protocol: one answer however the bytes arrive, within the limits, and nothing behind it plays a part.
#![no_main]

use highball_front::transport::proxy_header::{parse, Versions};
use libfuzzer_sys::fuzz_target;

/// The longest headers: a line of version 1, and version 2 with all its extensions.
const V1_BYTES: usize = 107;
const V2_BYTES: usize = 16 + 2048;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, bytes)) = input.split_first() else { return };
    let versions = Versions { v1: flags & 1 != 0, v2: flags & 2 != 0 };
    // Without its start, a header is seldom found.
    let start: &[u8] = match flags >> 6 {
        1 => b"PROXY ",
        2 => b"\r\n\r\n\0\r\nQUIT\n",
        _ => b"",
    };
    let bytes = &[start, bytes].concat()[..];
    let answer = parse(bytes, versions);
    let first =
        (0..=bytes.len()).map(|end| parse(&bytes[..end], versions)).find(|answer| *answer != Ok(None));
    assert_eq!(first.unwrap_or(Ok(None)), answer, "no byte more changes it");
    match answer {
        Ok(Some((_, length))) => {
            let most = if bytes[0] == b'P' { V1_BYTES } else { V2_BYTES };
            assert!(length <= most && length <= bytes.len());
            assert_eq!(parse(&bytes[..length - 1], versions), Ok(None), "each of its bytes is needed");
        }
        Ok(None) => assert!(bytes.len() < V2_BYTES, "more is not waited for"),
        Err(_) => {}
    }
});
