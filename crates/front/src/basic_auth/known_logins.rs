//! Names and passwords that were found right lately, so that not every request costs a hash.

use std::collections::HashMap;
use std::fmt;

use rustix::io::Errno;
use rustix::rand::{getrandom, GetRandomFlags};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::credentials::Credentials;

/// Most logins that are remembered; beyond that the oldest is forgotten.
const MOST: usize = 1024;

/// How long one is remembered.
const TIME_MS: u64 = 600_000;

/// The logins. They are kept as hashes with a secret key: who can make a request cannot choose one, or learn by the time of a
/// comparison how much of one is right.
pub(super) struct KnownLogins {
    key: Zeroizing<[u8; 32]>,
    /// When each was found right.
    logins: HashMap<Login, u64>,
}

/// A login, for this process alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Login([u8; 32]);

impl fmt::Debug for KnownLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} logins", self.logins.len())
    }
}

impl KnownLogins {
    /// None yet.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub(super) fn new() -> Result<KnownLogins, Errno> {
        let mut key = Zeroizing::new([0; 32]);
        let filled = getrandom(&mut key[..], GetRandomFlags::empty())?;
        assert_eq!(filled, key.len(), "random(4): not for so few bytes");
        Ok(KnownLogins { key, logins: HashMap::new() })
    }

    /// The login of somebody whose password has this hash in the file: with another hash, it is another login.
    pub(super) fn login(&self, credentials: &Credentials, hash: &[u8]) -> Login {
        let mut login = Sha256::new_with_prefix(&self.key[..]);
        for part in [&credentials.name, hash, &credentials.password[..]] {
            login.update((part.len() as u64).to_le_bytes());
            login.update(part);
        }
        Login(login.finalize().into())
    }

    pub(super) fn has(&self, login: &Login, now_ms: u64) -> bool {
        self.logins.get(login).is_some_and(|at_ms| now_ms < at_ms + TIME_MS)
    }

    pub(super) fn add(&mut self, login: Login, now_ms: u64) {
        if self.logins.len() >= MOST && !self.logins.contains_key(&login) {
            let oldest = self.logins.iter().min_by_key(|(_, at_ms)| **at_ms).map(|(login, _)| *login);
            if let Some(oldest) = oldest {
                self.logins.remove(&oldest);
            }
        }
        self.logins.insert(login, now_ms);
    }

    pub(super) fn forget_old(&mut self, now_ms: u64) {
        self.logins.retain(|_, at_ms| now_ms < *at_ms + TIME_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, password: &str) -> Credentials {
        Credentials { name: name.as_bytes().into(), password: Zeroizing::new(password.into()) }
    }

    #[test]
    fn a_login_is_known_for_a_while() {
        let mut known = KnownLogins::new().unwrap();
        let login = known.login(&of("ann", "secret"), b"hash");
        assert!(!known.has(&login, 0));
        known.add(login, 5);
        assert!(known.has(&known.login(&of("ann", "secret"), b"hash"), TIME_MS));
        assert!(!known.has(&login, TIME_MS + 5));
        for (name, password) in [("anns", "ecret"), ("ann", "secre"), ("an", "nsecret"), ("ann", "")] {
            assert!(!known.has(&known.login(&of(name, password), b"hash"), 5), "{name} {password}");
        }
        assert!(!known.has(&known.login(&of("ann", "secret"), b"another"), 5), "the password was changed");
        known.forget_old(TIME_MS + 5);
        assert!(known.logins.is_empty());
    }

    #[test]
    fn not_many_are_known() {
        let mut known = KnownLogins::new().unwrap();
        let of = |known: &KnownLogins, number: u64| known.login(&of("ann", &number.to_string()), b"hash");
        for number in 0..MOST as u64 + 10 {
            known.add(of(&known, number), number);
        }
        assert_eq!(known.logins.len(), MOST);
        assert!(!known.has(&of(&known, 9), 0) && known.has(&of(&known, 10), 0));
    }

    #[test]
    fn other_processes_have_other_keys() {
        let [one, other] = [KnownLogins::new().unwrap(), KnownLogins::new().unwrap()];
        assert!(one.login(&of("ann", "secret"), b"") != other.login(&of("ann", "secret"), b""));
    }
}
