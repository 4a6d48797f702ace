//! The id of a request, by which visitors, logs and other services name it: `X-Request-Id`.
//!
//! An id that came with the request is kept if Rails would keep it. All others are random UUIDs of version 4 (RFC 9562), as
//! Rails makes them.

use crate::http_syntax::hexadecimal_digits;
use crate::random::RandomBytes;

/// The longest id that is kept, in bytes; Rails cuts longer ones off.
const MOST_BYTES: usize = 255;

const UUID_BYTES: usize = 16;
const UUID_CHARACTERS: usize = 36;

const NAME: &[u8] = b"x-request-id: ";
const END: &[u8] = b"\r\n";
const MADE_BYTES: usize = NAME.len() + UUID_CHARACTERS + END.len();

/// An id, as the field line of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestId {
    /// It was made here.
    Made(Box<[u8; MADE_BYTES]>),
    /// It came with the request.
    Kept(Box<[u8]>),
}

impl RequestId {
    /// The id that came with a request, if it is sane and the only one. The characters are the ones that Rails leaves in an id,
    /// so that both log the same.
    pub(crate) fn kept<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<RequestId> {
        let (value, None) = (values.next()?, values.next()) else { return None };
        let is_sane = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-@".contains(byte);
        let fits = (1..=MOST_BYTES).contains(&value.len()) && value.iter().all(is_sane);
        fits.then(|| RequestId::Kept([NAME, value, END].concat().into()))
    }

    /// A field line, with its end.
    pub(crate) fn line(&self) -> &[u8] {
        match self {
            RequestId::Made(line) => &line[..],
            RequestId::Kept(line) => line,
        }
    }

    /// The id itself.
    pub(crate) fn value(&self) -> &[u8] {
        let line = self.line();
        &line[NAME.len()..line.len() - END.len()]
    }

    /// The id itself: letters, digits, `_`, `-` and `@`.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.value()).unwrap_or_default()
    }

    /// The id, if it was made here.
    pub(crate) fn made(&self) -> Option<&[u8]> {
        matches!(self, RequestId::Made(_)).then(|| self.value())
    }
}

impl RequestId {
    /// A new one.
    pub(crate) fn new(random: &mut RandomBytes) -> RequestId {
        RequestId::of(random.take())
    }

    /// As a UUID of version 4.
    fn of(mut random: [u8; UUID_BYTES]) -> RequestId {
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        let mut line = [b'-'; MADE_BYTES];
        line[..NAME.len()].copy_from_slice(NAME);
        line[MADE_BYTES - END.len()..].copy_from_slice(END);
        let mut at = NAME.len();
        for (index, byte) in random.into_iter().enumerate() {
            at += usize::from(matches!(index, 4 | 6 | 8 | 10));
            line[at..at + 2].copy_from_slice(&hexadecimal_digits(byte));
            at += 2;
        }
        RequestId::Made(Box::new(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn kept(values: &[&str]) -> Option<String> {
        RequestId::kept(values.iter().map(|value| value.as_bytes())).map(|id| id.as_str().to_owned())
    }

    #[test]
    fn a_sane_id_is_kept() {
        let longest = "a".repeat(255);
        for id in ["7", "0f1e-2d3c", "job_42@worker-7", "01JD3Z", &longest] {
            assert_eq!(kept(&[id]).as_deref(), Some(id));
        }
    }

    #[test]
    fn no_other_is_kept() {
        let too_long = "a".repeat(256);
        for id in ["", "a b", "a\"b", "a;b", "a/b", "Root=1-67891233", "é", "a\tb", "%0a", "a,b", &too_long]
        {
            assert_eq!(kept(&[id]), None, "{id}");
        }
        assert_eq!(kept(&["a", "a"]), None);
        assert_eq!(kept(&[]), None);
    }

    #[test]
    fn made_ids_are_uuids_of_version_4_and_differ() {
        let mut random = RandomBytes::default();
        let mut made = HashSet::new();
        for _ in 0..1000 {
            let id = RequestId::new(&mut random);
            assert_eq!(id.line(), format!("x-request-id: {}\r\n", id.as_str()).as_bytes());
            assert_eq!(kept(&[id.as_str()]).as_deref(), Some(id.as_str()));
            let parts: Vec<&str> = id.as_str().split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
            assert!(
                parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']),
                "{}",
                id.as_str()
            );
            made.insert(id.as_str().to_owned());
        }
        assert_eq!(made.len(), 1000);
    }

    #[test]
    fn digits_are_those_of_the_bytes() {
        let id = RequestId::of([
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
        ]);
        assert_eq!(id.as_str(), "01234567-89ab-4def-8123-456789abcdef");
        assert_eq!(id.made(), Some(id.value()));
    }
}
