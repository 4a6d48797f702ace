//! From a header field's name to its env key: `User-Agent` is `HTTP_USER_AGENT`, which travels as an
//! index of [`KEYS`].
//!
//! The table of well-known names is built by the compiler; finding a name costs one comparison.

use highball_ring::env_keys::{KEYS, OTHER};

use crate::http_syntax::is_named;

/// An index of [`KEYS`], or one of [`KEY_OTHER`] and [`KEY_DROPPED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldKey(u16);

/// A name that is not in the table.
pub(super) const KEY_OTHER: FieldKey = FieldKey(OTHER);

/// A name that no application gets to see: one with `_`, which could pass for another (`X_Real_IP`), and
/// `Proxy`, which would become `HTTP_PROXY`, the variable that HTTP clients believe in.
pub(super) const KEY_DROPPED: FieldKey = FieldKey(OTHER - 1);

impl FieldKey {
    /// The key of an env key; [`KEY_OTHER`] if it is not in the table.
    pub(super) fn of_env(name: &str) -> FieldKey {
        FieldKey(KEYS.iter().position(|key| *key == name).map_or(OTHER, |index| index as u16))
    }

    /// The index in the table of env keys.
    pub fn index(self) -> u16 {
        self.0
    }

    /// One bit for each well-known key.
    pub(super) fn bit(self) -> Option<u128> {
        (usize::from(self.0) < KEYS.len()).then(|| 1 << self.0)
    }
}

/// The keys that the front itself reads or writes.
#[allow(missing_docs)]
pub mod known_key {
    use super::{key_of, FieldKey};

    pub const REQUEST_METHOD: FieldKey = key_of("REQUEST_METHOD");
    pub const SCRIPT_NAME: FieldKey = key_of("SCRIPT_NAME");
    pub const PATH_INFO: FieldKey = key_of("PATH_INFO");
    pub const QUERY_STRING: FieldKey = key_of("QUERY_STRING");
    pub const REQUEST_URI: FieldKey = key_of("REQUEST_URI");
    pub const SERVER_PROTOCOL: FieldKey = key_of("SERVER_PROTOCOL");
    pub const SERVER_NAME: FieldKey = key_of("SERVER_NAME");
    pub const SERVER_PORT: FieldKey = key_of("SERVER_PORT");
    pub const REMOTE_ADDR: FieldKey = key_of("REMOTE_ADDR");
    pub const REMOTE_USER: FieldKey = key_of("REMOTE_USER");
    pub const AUTH_TYPE: FieldKey = key_of("AUTH_TYPE");
    pub const CONTENT_LENGTH: FieldKey = key_of("CONTENT_LENGTH");
    pub const HOST: FieldKey = key_of("HTTP_HOST");
    pub const CONNECTION: FieldKey = key_of("HTTP_CONNECTION");
    pub const TRANSFER_ENCODING: FieldKey = key_of("HTTP_TRANSFER_ENCODING");
    pub const UPGRADE: FieldKey = key_of("HTTP_UPGRADE");
    pub const EXPECT: FieldKey = key_of("HTTP_EXPECT");
    pub const COOKIE: FieldKey = key_of("HTTP_COOKIE");
    pub const AUTHORIZATION: FieldKey = key_of("HTTP_AUTHORIZATION");
    pub const SEC_FETCH_SITE: FieldKey = key_of("HTTP_SEC_FETCH_SITE");
    pub const ACCEPT_ENCODING: FieldKey = key_of("HTTP_ACCEPT_ENCODING");
    pub const IF_MATCH: FieldKey = key_of("HTTP_IF_MATCH");
    pub const IF_NONE_MATCH: FieldKey = key_of("HTTP_IF_NONE_MATCH");
    pub const IF_MODIFIED_SINCE: FieldKey = key_of("HTTP_IF_MODIFIED_SINCE");
    pub const IF_UNMODIFIED_SINCE: FieldKey = key_of("HTTP_IF_UNMODIFIED_SINCE");
    pub const IF_RANGE: FieldKey = key_of("HTTP_IF_RANGE");
    pub const RANGE: FieldKey = key_of("HTTP_RANGE");
    pub const USER_AGENT: FieldKey = key_of("HTTP_USER_AGENT");
    pub const REFERER: FieldKey = key_of("HTTP_REFERER");
    pub const FORWARDED: FieldKey = key_of("HTTP_FORWARDED");
    pub const X_FORWARDED_FOR: FieldKey = key_of("HTTP_X_FORWARDED_FOR");
    pub const X_FORWARDED_PROTO: FieldKey = key_of("HTTP_X_FORWARDED_PROTO");
    pub const X_REQUEST_ID: FieldKey = key_of("HTTP_X_REQUEST_ID");
    pub const X_REQUEST_START: FieldKey = key_of("HTTP_X_REQUEST_START");
    pub const X_QUEUE_START: FieldKey = key_of("HTTP_X_QUEUE_START");
    pub const TRACEPARENT: FieldKey = key_of("HTTP_TRACEPARENT");
    pub const TRACESTATE: FieldKey = key_of("HTTP_TRACESTATE");
}

/// A field name on its way to a key.
pub(super) struct FieldName<'a>(&'a [u8]);

impl<'a> FieldName<'a> {
    pub(super) fn of(name: &'a [u8]) -> Self {
        FieldName(name)
    }

    /// The key of this name.
    pub(super) fn key(&self) -> FieldKey {
        let name = self.0;
        let mut place = place_of(name);
        while SLOTS[place] != EMPTY {
            let index = SLOTS[place];
            if is_same_name(name, usize::from(index)) {
                return FieldKey(u16::from(index));
            }
            place = (place + 1) % SLOTS.len();
        }
        if memchr::memchr(b'_', name).is_some() || name.eq_ignore_ascii_case(b"proxy") {
            KEY_DROPPED
        } else {
            KEY_OTHER
        }
    }
}

/// A byte of a field name as it stands in an env key.
pub(super) const fn env_byte(byte: u8) -> u8 {
    match byte {
        b'-' => b'_',
        // No name with an underscore may be taken for one with a dash.
        b'_' => 0,
        _ => byte.to_ascii_uppercase(),
    }
}

/// Whether a field name, which is a token, belongs to a key.
fn is_same_name(name: &[u8], index: usize) -> bool {
    let known = &NAMES[index];
    is_named(name, &known.bytes[..usize::from(known.length)])
}

/// A field name in small letters.
#[derive(Clone, Copy)]
struct Name {
    length: u8,
    bytes: [u8; 31],
}

/// The field names of [`KEYS`], in their order; empty for keys that come from elsewhere.
static NAMES: [Name; KEYS.len()] = {
    let mut names = [Name { length: 0, bytes: [0; 31] }; KEYS.len()];
    let mut index = 0;
    while index < KEYS.len() {
        let part = field_part(KEYS[index]);
        names[index].length = part.len() as u8;
        let mut at = 0;
        while at < part.len() {
            names[index].bytes[at] = if part[at] == b'_' { b'-' } else { part[at].to_ascii_lowercase() };
            at += 1;
        }
        index += 1;
    }
    names
};

const EMPTY: u8 = u8::MAX;

/// A hash table with open addressing: indexes of [`KEYS`] at the places of their field names.
static SLOTS: [u8; 256] = fill_slots();

const fn fill_slots() -> [u8; 256] {
    // A bit of a u128 for each key, and room enough that searches stay short.
    assert!(KEYS.len() <= 128);
    let mut slots = [EMPTY; 256];
    let mut index = 0;
    while index < KEYS.len() {
        let name = field_part(KEYS[index]);
        if !name.is_empty() {
            let mut place = place_of(name);
            while slots[place] != EMPTY {
                place = (place + 1) % slots.len();
            }
            slots[place] = index as u8;
        }
        index += 1;
    }
    slots
}

/// Where the search for a name begins. The same for a field's name and its part of an env key.
const fn place_of(name: &[u8]) -> usize {
    if name.is_empty() {
        return 0;
    }
    let first = hash_byte(name[0]);
    let middle = hash_byte(name[name.len() / 2]);
    let last = hash_byte(name[name.len() - 1]);
    (first.wrapping_mul(31) ^ middle.wrapping_mul(7) ^ last.wrapping_mul(3) ^ name.len().wrapping_mul(17))
        % 256
}

const fn hash_byte(byte: u8) -> usize {
    (if byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }) as usize
}

/// What of an env key comes from a field's name; empty for keys that come from elsewhere.
const fn field_part(key: &'static str) -> &'static [u8] {
    let bytes = key.as_bytes();
    if same(bytes, b"CONTENT_TYPE") || same(bytes, b"CONTENT_LENGTH") {
        return bytes;
    }
    match bytes {
        [b'H', b'T', b'T', b'P', b'_', rest @ ..] => rest,
        _ => &[],
    }
}

const fn key_of(name: &str) -> FieldKey {
    let mut index = 0;
    while index < KEYS.len() {
        if same(KEYS[index].as_bytes(), name.as_bytes()) {
            return FieldKey(index as u16);
        }
        index += 1;
    }
    panic!("no such env key")
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_name_of_the_table_is_found_in_any_case() {
        for (index, key) in KEYS.iter().enumerate() {
            let part = std::str::from_utf8(field_part(key)).unwrap();
            if part.is_empty() {
                continue;
            }
            let name = part.replace('_', "-");
            for name in [name.clone(), name.to_ascii_lowercase()] {
                assert_eq!(FieldName::of(name.as_bytes()).key(), FieldKey(index as u16), "{name}");
            }
        }
    }

    #[test]
    fn a_name_that_differs_in_a_byte_is_another() {
        for (index, key) in KEYS.iter().enumerate() {
            let name = std::str::from_utf8(field_part(key)).unwrap().replace('_', "-");
            for (at, token_byte) in (0..name.len()).flat_map(|at| (b'!'..=b'~').map(move |byte| (at, byte))) {
                let mut other = name.clone().into_bytes();
                other[at] = token_byte;
                let same = other.eq_ignore_ascii_case(name.as_bytes());
                let found = FieldName::of(&other).key() == FieldKey(index as u16);
                assert_eq!(found, same, "{}", String::from_utf8_lossy(&other));
            }
        }
    }

    #[test]
    fn names_that_could_pass_for_others_are_dropped() {
        for name in ["User_Agent", "x_forwarded-for", "content_length", "Proxy", "PROXY", "_"] {
            assert_eq!(FieldName::of(name.as_bytes()).key(), KEY_DROPPED, "{name}");
        }
        for name in ["X-Other", "Request-Method", "Path-Info", "Proxy-Connection", "a"] {
            assert_eq!(FieldName::of(name.as_bytes()).key(), KEY_OTHER, "{name}");
        }
    }

    #[test]
    fn searches_are_short() {
        let longest = (0..KEYS.len()).filter(|&index| !field_part(KEYS[index]).is_empty()).map(|index| {
            let begin = place_of(field_part(KEYS[index]));
            let found = SLOTS.iter().position(|&slot| usize::from(slot) == index).unwrap();
            (found + SLOTS.len() - begin) % SLOTS.len()
        });
        assert!(longest.max().unwrap() <= 3);
    }
}
