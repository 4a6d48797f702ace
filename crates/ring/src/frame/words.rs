//! Looks at eight bytes at once: names and values of fields are checked on both sides of the ring, for each answer.

const BYTES: usize = 8;

/// A word with this byte at each of its places.
const fn each(byte: u8) -> u64 {
    u64::MAX / 0xff * byte as u64
}

const HIGHEST_BITS: u64 = each(0x80);

/// Whether all words have this property, which must not depend on a byte's place. `false` also where there are fewer bytes than
/// a word has.
#[inline]
pub(super) fn all(bytes: &[u8], has: impl Fn(u64) -> bool) -> bool {
    let Some((_, last)) = bytes.split_last_chunk::<BYTES>() else { return false };
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk::<BYTES>() {
        if !has(u64::from_le_bytes(*word)) {
            return false;
        }
        rest = behind;
    }
    // It overlaps the one before it.
    has(u64::from_le_bytes(*last))
}

/// Whether no byte is a control character, the tab included.
#[inline]
pub(super) fn have_no_control(word: u64) -> bool {
    let below_space = word.wrapping_sub(each(b' ')) & !word;
    let other_than_delete = word ^ each(0x7f);
    let is_delete = other_than_delete.wrapping_sub(each(1)) & !other_than_delete;
    (below_space | is_delete) & HIGHEST_BITS == 0
}

/// Whether all bytes are letters of ASCII or hyphens, as in most names of fields.
#[inline]
pub(super) fn are_letters_and_hyphens(word: u64) -> bool {
    let low_bits = !HIGHEST_BITS;
    // With the highest bit of each byte clear, no sum goes over to the next byte.
    let small = (word | each(0x20)) & low_bits;
    let is_letter = (small + each(0x80 - b'a')) & !(small + each(0x80 - (b'z' + 1)));
    let other_than_hyphen = (word ^ each(b'-')) & low_bits;
    let is_hyphen = !(other_than_hyphen + low_bits);
    (is_letter | is_hyphen) & !word & HIGHEST_BITS == HIGHEST_BITS
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each byte at each place, between bytes that have the property.
    fn agrees(others: u8, has: impl Fn(u64) -> bool, byte_has: impl Fn(u8) -> bool) {
        for place in 0..BYTES {
            for byte in 0..=u8::MAX {
                let mut word = [others; BYTES];
                word[place] = byte;
                assert_eq!(has(u64::from_le_bytes(word)), byte_has(byte), "{byte:#x} at {place}");
            }
        }
    }

    #[test]
    fn words_are_judged_as_their_bytes_are() {
        agrees(b'x', have_no_control, |byte| byte >= b' ' && byte != 0x7f);
        agrees(0xff, have_no_control, |byte| byte >= b' ' && byte != 0x7f);
        agrees(b'Z', are_letters_and_hyphens, |byte| byte.is_ascii_alphabetic() || byte == b'-');
        agrees(b'-', are_letters_and_hyphens, |byte| byte.is_ascii_alphabetic() || byte == b'-');
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn bytes_are_judged_like_one_after_the_other(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let has_no_control = bytes.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
            prop_assert_eq!(all(&bytes, have_no_control), bytes.len() >= BYTES && has_no_control);
        }

        #[test]
        fn names_are_judged_like_one_byte_after_the_other(bytes in "[a-zA-Z_-]{0,40}") {
            let is_usual = bytes.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
            prop_assert_eq!(all(bytes.as_bytes(), are_letters_and_hyphens), bytes.len() >= BYTES && is_usual);
        }
    }
}
