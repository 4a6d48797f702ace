//! Accept-Encoding: what is chosen was offered and not refused, and several fields are one list.
#![no_main]

use highball_front::compression::accept_encoding::{AcceptEncoding, Coding};
use libfuzzer_sys::fuzz_target;

const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

fuzz_target!(|value: &[u8]| {
    let accepted = AcceptEncoding::of([value]);
    let chosen = accepted.choose(&ALL);
    assert_eq!(accepted.choose(&[]), None);
    for coding in ALL {
        if accepted.choose(&[coding]).is_some() {
            assert!(chosen.is_some(), "one of more is chosen, too");
            let name = coding.name().as_bytes();
            let lower = value.to_ascii_lowercase();
            let is_named = lower.windows(name.len()).any(|part| part == name) || value.contains(&b'*');
            assert!(is_named, "{coding:?} was not accepted");
        }
    }
    assert!(chosen.is_none_or(|coding| accepted.choose(&[coding]) == Some(coding)));
    // A list is the same in several fields (RFC 9110 section 5.3).
    for (at, _) in value.iter().enumerate().filter(|(_, byte)| **byte == b',') {
        assert_eq!(AcceptEncoding::of([&value[..at], &value[at + 1..]]), accepted);
    }
    let refused = [value, b", zstd;q=0, br;q=0, gzip;q=0"].concat();
    assert_eq!(AcceptEncoding::of([&refused[..]]).choose(&ALL), None);
});
