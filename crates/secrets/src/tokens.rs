//! Texts that look like tokens, whatever their name: in paths, and in values of unknown names.

/// Shorter ones are too much like words.
const TOKEN_BYTES: usize = 16;
/// Words of one case are rarely longer.
const WORD_BYTES: usize = 24;

/// Whether this looks like something that a machine has drawn: long, and with digits or capitals among the letters of
/// its parts. Slugs (`my-first-post-2024`), UUIDs, dates and ids do not.
pub(crate) fn is_token(text: &str) -> bool {
    if is_card(text) {
        return true;
    }
    let is_of_tokens = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+=/:%".contains(&byte);
    if text.len() < TOKEN_BYTES || !text.bytes().all(is_of_tokens) || is_uuid(text) {
        return false;
    }
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_drawn)
}

/// Whether this is one word that looks drawn: the value of a variable or parameter of a name that says nothing.
pub(crate) fn is_drawn_word(text: &str) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    text.bytes().all(is_of_word) && !is_uuid(text) && text.split(['-', '_']).any(is_drawn)
}

/// Whether a part of a text without separators looks drawn.
fn is_drawn(part: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| part.as_bytes().iter().any(kind);
    let letters = has(u8::is_ascii_alphabetic);
    if part.len() >= WORD_BYTES && letters {
        return true;
    }
    let turns = part.as_bytes().windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    part.len() >= 8
        && letters
        && ((has(u8::is_ascii_digit) && turns >= 2) || (turns >= 6 && turns * 5 >= part.len() * 2))
}

fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    }
}

/// `123e4567-e89b-12d3-a456-426614174000`: the id of a record.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The number of a payment card, by its check digit (Luhn).
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|letter| letter.to_digit(10)).collect();
    let other = text.bytes().any(|byte| !byte.is_ascii_digit() && byte != b' ' && byte != b'-');
    if other || !(13..=19).contains(&digits.len()) || is_uuid(text) {
        return false;
    }
    let sum: u32 = digits.iter().rev().enumerate().map(|(at, digit)| luhn(at, *digit)).sum();
    sum % 10 == 0
}

fn luhn(at: usize, digit: u32) -> u32 {
    match (at % 2, digit) {
        (0, _) => digit,
        (_, 0..=4) => digit * 2,
        _ => digit * 2 - 9,
    }
}

/// Whether a word that stands behind `password` or `Bearer` may be a secret: it has digits, signs or capitals within.
pub(crate) fn is_unlike_a_word(text: &str) -> bool {
    let rest = text.get(1..).unwrap_or_default();
    text.len() >= 4
        && (rest.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
            || text.bytes().any(|byte| b"!#$%&*+/=?^@~".contains(&byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_distinguished_from_names() {
        for token in [
            "x7Gk-Zq_pLmN2vRs9tBa",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "aBcDeFgHiJkLmNoPqRsT",
            "eyJhbGciOiJIUzI1NiJ9.e30.abc",
            "4242424242424242",
        ] {
            assert!(is_token(token), "{token}");
        }
        for name in [
            "my-first-post-about-ruby-2024",
            "123e4567-e89b-12d3-a456-426614174000",
            "2026-11-22T07:40:00",
            "internationalization",
            "ActiveStorageBlobs",
            "1234567890",
            "index.html",
            "20261122074000",
        ] {
            assert!(!is_token(name), "{name}");
        }
    }
}
