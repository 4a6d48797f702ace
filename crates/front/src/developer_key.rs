//! How a browser shows that it is a developer's: by a link that the terminal prints. It sets a cookie.
//!
//! Nothing else does. That a request comes from this machine and names no proxy is no proof, as a proxy on this machine may
//! say nothing of itself. Link and cookie are made of one secret of the user who started Highball. A cookie is good for
//! the host that it was set for, so that an application elsewhere on this machine, which browsers send the cookie of its
//! own host, learns nothing that is good for another one. Applications behind this server never see it.

use std::fmt;
use std::ops::Range;

use memchr::memmem;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use crate::cookies::values_in;
use crate::location;

/// Bytes of the secret.
pub const SECRET_BYTES: usize = 32;

/// The name of the cookie, with what follows it.
const COOKIE: &[u8] = b"highball-diagnosis=";

/// How long a browser keeps the cookie, in seconds: a year.
const COOKIE_SECONDS: u32 = 365 * 86400;

/// Bytes of an HMAC that are used: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

/// Bytes of the key in the link, which is written in hexadecimal digits.
pub(crate) const LINK_KEY_BYTES: usize = 2 * TOKEN_BYTES;

/// The parameter of the link.
const PARAMETER: &[u8] = b"highball=";

/// What stands in the place of the link's key.
const MASKED: &[u8] = b"[masked]";

/// A request that has the key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Its target without the key.
    pub(crate) target: Vec<u8>,
    /// It is for the link, and does not only have the key somewhere.
    pub(crate) is_link: bool,
}

/// The secret of the user who started Highball.
pub struct DeveloperKey {
    secret: [u8; SECRET_BYTES],
    /// The key in the link.
    link: memmem::Finder<'static>,
    user: u32,
}

impl fmt::Debug for DeveloperKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeveloperKey")
    }
}

impl DeveloperKey {
    /// From random bytes, of the user of this process.
    pub fn new(secret: [u8; SECRET_BYTES]) -> Self {
        let link = memmem::Finder::new(&token(&secret, b"link", b"")).into_owned();
        DeveloperKey { secret, link, user: geteuid().as_raw() }
    }

    /// The same, where another user (a number) has started Highball.
    #[must_use]
    pub fn of_user(self, user: u32) -> Self {
        DeveloperKey { user, ..self }
    }

    /// The number of the user who started Highball.
    pub(crate) fn user(&self) -> u32 {
        self.user
    }

    /// The link by which a developer opens this address: `http://127.0.0.1:3000/?highball=…`.
    pub fn link(&self, url: &str) -> String {
        format!("{url}?highball={}", String::from_utf8_lossy(self.link.needle()))
    }

    /// Where a request with the link's key leads without it: to its path, with those parameters that do not have the key, in
    /// whatever form. `None`: it does not have the key.
    #[inline(never)]
    pub(crate) fn followed(&self, path: &[u8], query: &[u8]) -> Option<Followed> {
        let has_key = |text: &[u8]| {
            let next = |found: Range<usize>| text.get(found.end).copied();
            self.find(text).is_some_and(|found| !next(found).is_some_and(|byte| byte.is_ascii_hexdigit()))
        };
        let is_in_path = has_key(path); // of a link whose question mark was encoded
        let parts = || query.split(|byte| *byte == b'&');
        if !is_in_path && !parts().any(has_key) {
            return None;
        }
        let is_link = |part: &[u8]| {
            let value = part.strip_prefix(PARAMETER);
            value.is_some_and(|value| self.find(value) == Some(0..value.len()))
        };
        let rest: Vec<&[u8]> = parts().filter(|part| !has_key(part)).collect();
        let path = if is_in_path { b"/" } else { path };
        Some(Followed {
            target: location::of_same_origin(path, &rest.join(&b'&')),
            is_link: parts().any(is_link),
        })
    }

    /// Whether the link's key stands in a text, as it is or percent-encoded.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.find(text).is_some()
    }

    /// Masks the link's key wherever it stands in a text.
    pub(crate) fn mask(&self, text: &mut String) {
        let mut from = 0;
        while let Some(found) = self.find(&text.as_bytes()[from..]) {
            let (begin, end) = (from + found.start, from + found.end);
            // Both are ASCII, and so are the ends.
            text.replace_range(begin..end, &String::from_utf8_lossy(MASKED));
            from = begin + MASKED.len();
        }
    }

    /// Where the link's key stands in a text first, as it is or percent-encoded (several times: an address within another).
    fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        if text.len() < LINK_KEY_BYTES {
            return None;
        }
        if memchr::memchr(b'%', text).is_none() {
            return self.link.find(text).map(|begin| begin..begin + LINK_KEY_BYTES);
        }
        (0..text.len()).find_map(|begin| Some(begin..self.end_of_key_at(text, begin)?))
    }

    /// The end of the key that begins here, if one does.
    fn end_of_key_at(&self, text: &[u8], begin: usize) -> Option<usize> {
        self.link.needle().iter().try_fold(begin, |at, expected| {
            let (byte, next) = decoded(text, at)?;
            (byte == *expected).then_some(next)
        })
    }

    /// The value of the field `Set-Cookie` for this host.
    pub(crate) fn set_cookie(&self, host: &[u8]) -> String {
        let (name, token) = (String::from_utf8_lossy(COOKIE), self.cookie_token(host));
        format!("{name}{token}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict")
    }

    /// Whether the value of a field `Cookie` has the cookie of this host.
    pub(crate) fn is_in_cookies(&self, cookies: &[u8], host: &[u8]) -> bool {
        values_in(cookies, COOKIE).any(|value| are_equal(value, self.cookie_token(host).as_bytes()))
    }

    fn cookie_token(&self, host: &[u8]) -> String {
        token(&self.secret, b"cookie", &host.to_ascii_lowercase())
    }
}

/// A token of this secret for a purpose, in hexadecimal digits.
fn token(secret: &[u8; SECRET_BYTES], purpose: &[u8], about: &[u8]) -> String {
    let code = hmac_sha256(secret, &[purpose, b"\0", about].concat());
    code[..TOKEN_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The byte that stands here, however often it was percent-encoded, and where the next one stands.
fn decoded(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let (mut byte, mut next) = (*text.get(at)?, at + 1);
    while byte == b'%' {
        let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
        let (Some(high), Some(low)) = (digit(next), digit(next + 1)) else { break };
        (byte, next) = ((high * 16 + low) as u8, next + 2);
    }
    Some((byte, next))
}

/// Whether the value of a field `Cookie` may have our cookie in it.
pub(crate) fn may_be_in(cookies: &[u8]) -> bool {
    memmem::find(cookies, COOKIE).is_some()
}

/// The value of a field `Cookie` without our cookie.
pub(crate) fn without_ours(cookies: &[u8]) -> Vec<u8> {
    let is_ours = |cookie: &&[u8]| cookie.trim_ascii().starts_with(COOKIE);
    let others = cookies.split(|byte| *byte == b';').filter(|cookie| !is_ours(cookie));
    let others: Vec<&[u8]> = others.map(<[u8]>::trim_ascii).collect();
    others.join(&b"; "[..])
}

/// Compares in a time that does not depend on where they differ.
pub fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

/// RFC 2104, for keys of no more than a block.
fn hmac_sha256(key: &[u8; SECRET_BYTES], message: &[u8]) -> [u8; 32] {
    let padded = |pad: u8| {
        let mut block = [pad; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> DeveloperKey {
        DeveloperKey::new([7; SECRET_BYTES])
    }

    fn token_of(link: &str) -> &str {
        link.split_once("highball=").unwrap().1
    }

    /// RFC 4231, test case 2, its key filled up with zeros as HMAC does.
    #[test]
    fn the_code_is_hmac_sha256() {
        let mut secret = [0; SECRET_BYTES];
        secret[..4].copy_from_slice(b"Jefe");
        let code = hmac_sha256(&secret, b"what do ya want for nothing?");
        let text: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn the_link_is_known_and_taken_out() {
        let link = key().link("http://localhost:3000/");
        let token = token_of(&link);
        let target = |path: &str, query: String| {
            let followed = key().followed(path.as_bytes(), query.as_bytes())?;
            Some((String::from_utf8(followed.target).unwrap(), followed.is_link))
        };
        let link = |to: &str| Some((to.to_owned(), true));
        assert_eq!(target("/", format!("highball={token}")), link("/"));
        assert_eq!(target("/a", format!("b=c&highball={token}&d")), link("/a?b=c&d"));
        assert_eq!(target("/a", format!("highball={}", encoded(token, 1))), link("/a"));
        assert_eq!(target("//evil.example/", format!("highball={token}")), link("/evil.example/"));
        assert_eq!(target("/\\evil.example/", format!("highball={token}")), link("/%5Cevil.example/"));
        for wrong in ["", &token[1..], &format!("{token}0"), &token.replace(&token[..1], "x"), "0"] {
            assert_eq!(target("/", format!("highball={wrong}")), None, "{wrong}");
        }
        // Others are not to see it, wherever it stands.
        let elsewhere = |to: &str| Some((to.to_owned(), false));
        assert_eq!(target("/", format!("xhighball={token}&a")), elsewhere("/?a"));
        assert_eq!(target("/a", format!("to=%2F%3Fhighball%3D{}&b", encoded(token, 2))), elsewhere("/a?b"));
        assert_eq!(target(&format!("/{token}"), format!("highball={token}")), link("/"));
        assert_eq!(target(&format!("/%3Fhighball={token}"), "a".into()), elsewhere("/?a"));
        let other = DeveloperKey::new([8; SECRET_BYTES]);
        assert_eq!(other.followed(b"/", format!("highball={token}").as_bytes()), None);
    }

    /// Every second digit is percent-encoded this often.
    fn encoded(token: &str, times: usize) -> String {
        let escape = |byte: u8| format!("%{}{byte:02X}", "25".repeat(times - 1));
        let encode =
            |(index, byte): (usize, u8)| if index % 2 == 0 { escape(byte) } else { char::from(byte).into() };
        token.bytes().enumerate().map(encode).collect()
    }

    #[test]
    fn it_is_masked_in_every_form() {
        let link = key().link("http://a/");
        let token = token_of(&link);
        for form in [token.to_owned(), encoded(token, 1), encoded(token, 2), encoded(token, 3)] {
            let mut text = format!("100% é GET /?highball={form}&a={form} \"http://b/?{form}\"");
            key().mask(&mut text);
            assert_eq!(text, "100% é GET /?highball=[masked]&a=[masked] \"http://b/?[masked]\"");
        }
        for other in ["", "%", "100%", &token[1..], &format!("%{token}")[..20]] {
            let mut text = other.to_owned();
            key().mask(&mut text);
            assert_eq!(text, other);
        }
    }

    #[test]
    fn a_cookie_is_good_for_its_host_alone() {
        let set = key().set_cookie(b"Localhost");
        let cookie = set.split(';').next().unwrap();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"));
        for cookies in [cookie.to_owned(), format!("a=b; {cookie}; c=d")] {
            assert!(key().is_in_cookies(cookies.as_bytes(), b"localhost"));
            assert!(!key().is_in_cookies(cookies.as_bytes(), b"127.0.0.1"));
            assert!(!DeveloperKey::new([8; SECRET_BYTES]).is_in_cookies(cookies.as_bytes(), b"localhost"));
        }
        let link = key().link("");
        assert!(
            !key().is_in_cookies(format!("highball-diagnosis={}", token_of(&link)).as_bytes(), b"localhost")
        );
    }

    #[test]
    fn it_is_taken_out_of_the_cookies() {
        for (cookies, rest) in [
            ("highball-diagnosis=1", ""),
            ("a=b; highball-diagnosis=1", "a=b"),
            ("highball-diagnosis=1;a=b; highball-diagnosis=2; c=d", "a=b; c=d"),
            ("my-highball-diagnosis=1", "my-highball-diagnosis=1"),
        ] {
            assert_eq!(without_ours(cookies.as_bytes()), rest.as_bytes());
        }
    }
}
