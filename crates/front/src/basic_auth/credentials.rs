//! Name and password of a request: the Authorization field (RFC 7617).

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::Engine;
use std::fmt;
use std::rc::Rc;
use zeroize::Zeroizing;

use super::user_file::is_name;
use crate::message::request_head::{known_key, Head};

/// The longest password, in bytes: the time that some hashes take grows with it.
const MOST_PASSWORD_BYTES: usize = 512;

/// The longest field, in bytes.
const MOST_BYTES: usize = 2048;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a client sends to show who it is.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) name: Rc<[u8]>,
    pub(super) password: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// The credentials of a request, if it has the field once and as it should be.
    pub(super) fn of(head: Head<'_>) -> Option<Credentials> {
        let mut values = head.values_of(known_key::AUTHORIZATION);
        let (value, None) = (values.next()?, values.next()) else { return None };
        Credentials::parse(value)
    }

    fn parse(value: &[u8]) -> Option<Credentials> {
        const SCHEME: &[u8] = b"basic ";
        let (scheme, encoded) = value.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) || value.len() > MOST_BYTES {
            return None;
        }
        let decoded = Zeroizing::new(BASE64.decode(encoded.trim_ascii()).ok()?);
        let colon = memchr::memchr(b':', &decoded)?;
        let (name, password) = (&decoded[..colon], &decoded[colon + 1..]);
        // With a NUL, some hashes are only of what stands before it.
        let is_password = password.len() <= MOST_PASSWORD_BYTES && !password.contains(&0);
        (is_name(name) && is_password)
            .then(|| Credentials { name: name.into(), password: Zeroizing::new(password.to_vec()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Option<(String, String)> {
        let Credentials { name, password } = Credentials::parse(value.as_bytes())?;
        Some((String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(password.to_vec()).unwrap()))
    }

    fn encoded(text: &str) -> String {
        format!("Basic {}", BASE64.encode(text))
    }

    #[test]
    fn name_and_password_are_read() {
        let expected = Some(("Aladdin".to_owned(), "open sesame".to_owned()));
        for value in [
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
            "basic QWxhZGRpbjpvcGVuIHNlc2FtZQ",
            "BASIC   QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        ] {
            assert_eq!(parsed(value), expected, "{value}");
        }
        assert_eq!(parsed(&encoded("a:b:c")), Some(("a".into(), "b:c".into())));
        assert_eq!(parsed(&encoded("ä:ö")), Some(("ä".into(), "ö".into())));
        assert_eq!(parsed(&encoded("a:")), Some(("a".into(), String::new())));
        assert!(parsed(&encoded(&format!("a:{}", "p".repeat(512)))).is_some());
    }

    #[test]
    fn anything_else_is_nothing() {
        for value in
            ["", "Basic", "Basic ", "Basic YQ==", "Bearer YTpi", "Basic YTpi YTpi", "Basic YT*i", "BasicYTpi"]
        {
            assert_eq!(parsed(value), None, "{value}");
        }
        for text in [
            ":b",
            "a\0:b",
            "a:b\0c",
            "a\n:b",
            &format!("a:{}", "p".repeat(513)),
            &format!("{}:b", "n".repeat(256)),
        ] {
            assert_eq!(parsed(&encoded(text)), None, "{text:?}");
        }
    }
}
