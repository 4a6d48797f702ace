//! How a browser shows that it is a developer's: by a link that the terminal prints. It sets a cookie.
//!
//! Nothing else does. That a request comes from this machine and names no proxy is no proof, as a proxy on this machine may
//! say nothing of itself. Link and cookie are made of one secret of the user who started Highball. A cookie is good for
//! the host that it was set for, so that an application elsewhere on this machine, which browsers send the cookie of its
//! own host, learns nothing that is good for another one. Applications behind this server never see it.

use std::fmt;

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

/// Bytes of the secret.
pub const SECRET_BYTES: usize = 32;

/// The parameter of the link.
const PARAMETER: &[u8] = b"highball=";

/// The name of the cookie, with what follows it.
const COOKIE: &[u8] = b"highball-diagnosis=";

/// How long a browser keeps the cookie, in seconds: a year.
const COOKIE_SECONDS: u32 = 365 * 86400;

/// Bytes of an HMAC that are used: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

/// The secret of the user who started Highball.
pub struct DeveloperKey {
    secret: [u8; SECRET_BYTES],
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
        DeveloperKey { secret, user: geteuid().as_raw() }
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
        format!("{url}?highball={}", self.token(b"link", b""))
    }

    /// The target of a request without the link's parameter, if it has that, and it is the right one.
    #[inline(never)]
    pub(crate) fn target_of_link(&self, path: &[u8], query: &[u8]) -> Option<Vec<u8>> {
        memchr::memmem::find(query, PARAMETER)?;
        let token = self.token(b"link", b"");
        let is_ours = |part: &&[u8]| {
            part.strip_prefix(PARAMETER).is_some_and(|value| are_equal(value, token.as_bytes()))
        };
        let parts = || query.split(|byte| *byte == b'&');
        parts().find(is_ours)?;
        // A path that begins with two slashes would lead to another host.
        let slashes = path.iter().take_while(|byte| **byte == b'/').count();
        let mut target = [b"/", &path[slashes..]].concat();
        let rest: Vec<&[u8]> = parts().filter(|part| !is_ours(part)).collect();
        if !rest.is_empty() {
            target.push(b'?');
            target.extend(rest.join(&b'&'));
        }
        Some(target)
    }

    /// The value of the field `Set-Cookie` for this host.
    pub(crate) fn set_cookie(&self, host: &[u8]) -> String {
        let (name, token) = (String::from_utf8_lossy(COOKIE), self.cookie_token(host));
        format!("{name}{token}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict")
    }

    /// Whether the value of a field `Cookie` has the cookie of this host.
    pub(crate) fn is_in_cookies(&self, cookies: &[u8], host: &[u8]) -> bool {
        let mut values = cookies.split(|byte| *byte == b';').filter_map(value_of_ours);
        values.any(|value| are_equal(value, self.cookie_token(host).as_bytes()))
    }

    fn cookie_token(&self, host: &[u8]) -> String {
        self.token(b"cookie", &host.to_ascii_lowercase())
    }

    /// A token for this purpose, in hexadecimal digits.
    fn token(&self, purpose: &[u8], about: &[u8]) -> String {
        let code = hmac_sha256(&self.secret, &[purpose, b"\0", about].concat());
        code[..TOKEN_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The value of a cookie, if it is ours.
fn value_of_ours(cookie: &[u8]) -> Option<&[u8]> {
    cookie.trim_ascii().strip_prefix(COOKIE)
}

/// Whether the value of a field `Cookie` may have our cookie in it.
pub(crate) fn may_be_in(cookies: &[u8]) -> bool {
    memchr::memmem::find(cookies, COOKIE).is_some()
}

/// The value of a field `Cookie` without our cookie.
pub(crate) fn without_ours(cookies: &[u8]) -> Vec<u8> {
    let others = cookies.split(|byte| *byte == b';').filter(|cookie| value_of_ours(cookie).is_none());
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
            let target = key().target_of_link(path.as_bytes(), query.as_bytes());
            target.map(|target| String::from_utf8(target).unwrap())
        };
        assert_eq!(target("/", format!("highball={token}")).unwrap(), "/");
        assert_eq!(target("/a", format!("b=c&highball={token}&d")).unwrap(), "/a?b=c&d");
        assert_eq!(target("//evil.example/", format!("highball={token}")).unwrap(), "/evil.example/");
        for wrong in ["", &token[1..], &format!("{token}0"), &token.replace(&token[..1], "x"), "0"] {
            assert_eq!(target("/", format!("highball={wrong}")), None, "{wrong}");
        }
        assert_eq!(target("/", format!("xhighball={token}")), None);
        let other = DeveloperKey::new([8; SECRET_BYTES]);
        assert_eq!(other.target_of_link(b"/", format!("highball={token}").as_bytes()), None);
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
