//! Kinds of requests: paths that differ only by numbers and keys are one kind.

use std::hash::{DefaultHasher, Hash, Hasher};

use highball_ring::env_keys::KEYS;
use highball_ring::request::{Fields, FIXED_BYTES};

/// The longest part of a path that is a word, and not a key.
const WORD_BYTES: usize = 24;

/// Method and path, in which numbers and keys stand for each other: a number that these share.
pub(crate) fn kind_of(head: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for field in Fields::new(head.get(FIXED_BYTES..).unwrap_or_default()) {
        if !matches!(
            KEYS.get(usize::from(field.key)),
            Some(&("REQUEST_METHOD" | "SCRIPT_NAME" | "PATH_INFO"))
        ) {
            continue;
        }
        for part in field.value.split(|byte| *byte == b'/') {
            let is_word = part.len() <= WORD_BYTES && !part.iter().any(u8::is_ascii_digit);
            (if is_word { part } else { b"*" }).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(method: &str, path: &str) -> u64 {
        let mut block = vec![0; FIXED_BYTES];
        for (name, value) in [("REQUEST_METHOD", method), ("PATH_INFO", path)] {
            let key = KEYS.iter().position(|known| *known == name).unwrap() as u16;
            block.extend(key.to_le_bytes());
            block.extend(0_u16.to_le_bytes());
            block.extend((value.len() as u32).to_le_bytes());
            block.extend(value.as_bytes());
        }
        kind_of(&block)
    }

    #[test]
    fn numbers_and_keys_make_no_other_kind() {
        let one = kind("GET", "/chats/17/answer");
        assert_eq!(one, kind("GET", "/chats/b7d3e1/answer"));
        assert_eq!(one, kind("GET", "/chats/nine-and-twenty-letters-long/answer"));
        for (method, path) in
            [("POST", "/chats/17/answer"), ("GET", "/chats/17"), ("GET", "/rooms/17/answer")]
        {
            assert_ne!(one, kind(method, path), "{method} {path}");
        }
    }
}
