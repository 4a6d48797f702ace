//! The file of users: lines `NAME:HASH`, as `htpasswd` writes them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

use highball_tenant::{open_anywhere, read_whole, About};
use highball_users::User;
use sha2::{Digest, Sha256};

use super::password_hash::{BadHash, PasswordHash};

/// What has changed more recently than this may change again within the same time stamp.
const SETTLED: Duration = Duration::from_secs(2);

/// The largest file, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;

/// Most users.
const MOST_USERS: usize = 10_000;

/// The longest name, in bytes.
pub(super) const MOST_NAME_BYTES: usize = 255;

/// What a file has.
#[derive(Debug)]
pub(super) struct UserFile {
    /// What shows that it has changed. `None`: it could not be read.
    pub(super) about: Option<About>,
    /// The users, or why it cannot be used.
    pub(super) users: Result<Users, String>,
}

impl UserFile {
    /// Reads it with the rights of this user. `None`: it is as it was, by `before`.
    pub(super) fn read(path: &Path, user: Option<&User>, before: Option<&About>) -> Option<UserFile> {
        let (file, about) = match open_anywhere(path, user) {
            Ok(opened) => opened,
            Err(error) => return Some(UserFile { about: None, users: Err(error.to_string()) }),
        };
        let is_settled = || about.changed_at().elapsed().is_ok_and(|age| age >= SETTLED);
        if before == Some(&about) && is_settled() {
            return None;
        }
        let text = read_whole(file, &about, MOST_BYTES).map_err(|error| error.to_string());
        let users = text.and_then(|text| Users::parse(&text).map_err(|error| error.to_string()));
        Some(UserFile { about: Some(about), users })
    }

    /// Whether both have the same users with the same passwords.
    pub(super) fn has_users_of(&self, other: &UserFile) -> bool {
        let digest = |file: &UserFile| file.users.as_ref().ok().map(|users| users.digest);
        digest(self).is_some() && digest(self) == digest(other)
    }
}

/// What the file has of a user.
struct Line {
    hash: PasswordHash,
    /// SHA-256 of the hash's text: another one stands for another password.
    mark: [u8; 32],
}

/// The users.
pub(super) struct Users {
    hashes: Vec<Line>,
    /// The place of a user's hash.
    places: HashMap<Vec<u8>, usize>,
    /// Chooses the hash for a name that is unknown.
    order: RandomState,
    /// The lines whose passwords are easy to find out.
    pub(super) weak_lines: usize,
    /// SHA-256 of the text.
    digest: [u8; 32],
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.hashes.len())
    }
}

/// Why a file cannot be used. Nothing of its content is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadFile {
    #[error("line {0} is not UTF-8")]
    NotText(usize),
    #[error("line {0} is not NAME:HASH")]
    NoColon(usize),
    #[error(
        "line {0} has a name that is empty, longer than {MOST_NAME_BYTES} bytes, or with control characters"
    )]
    BadName(usize),
    #[error("line {0} {1}")]
    BadHash(usize, BadHash),
    #[error("it has more than {MOST_USERS} users")]
    TooMany,
    #[error("it has no user")]
    Empty,
}

impl Users {
    /// Reads the content of a file. As with Apache, the first line with a name counts, and a comment may follow the hash behind
    /// a colon.
    pub(super) fn parse(text: &[u8]) -> Result<Users, BadFile> {
        let mut users = Users {
            hashes: Vec::new(),
            places: HashMap::new(),
            order: RandomState::new(),
            weak_lines: 0,
            digest: Sha256::digest(text).into(),
        };
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() && !line.starts_with(b"#") {
                users.add(line, index + 1)?;
            }
        }
        if users.hashes.is_empty() {
            return Err(BadFile::Empty);
        }
        Ok(users)
    }

    fn add(&mut self, line: &[u8], number: usize) -> Result<(), BadFile> {
        let line = std::str::from_utf8(line).map_err(|_| BadFile::NotText(number))?;
        let (name, rest) = line.split_once(':').ok_or(BadFile::NoColon(number))?;
        let hash = rest.split(':').next().unwrap_or_default().trim_ascii_end();
        if !is_name(name.as_bytes()) {
            return Err(BadFile::BadName(number));
        }
        let mark = Sha256::digest(hash).into();
        let hash = PasswordHash::parse(hash).map_err(|error| BadFile::BadHash(number, error))?;
        if self.hashes.len() == MOST_USERS {
            return Err(BadFile::TooMany);
        }
        self.weak_lines += usize::from(hash.is_weak());
        self.places.entry(name.into()).or_insert(self.hashes.len());
        self.hashes.push(Line { hash, mark });
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// What changes with the password of the user of this name, if there is one.
    pub(super) fn mark_of(&self, name: &[u8]) -> Option<&[u8; 32]> {
        self.places.get(name).map(|place| &self.hashes[*place].mark)
    }

    /// Whether this is the password of a user of this name. For a name that is unknown, it takes as long as for one of the
    /// users, the same one each time.
    pub(super) fn has(&self, name: &[u8], password: &[u8]) -> bool {
        let place = self.places.get(name);
        let other = || (self.order.hash_one(name) % self.hashes.len() as u64) as usize;
        let is_right = self.hashes[place.copied().unwrap_or_else(other)].hash.is_of(password);
        is_right && place.is_some()
    }
}

/// Whether a user may have this name: it goes into logs and the env.
pub(super) fn is_name(name: &[u8]) -> bool {
    (1..=MOST_NAME_BYTES).contains(&name.len()) && name.iter().all(|byte| *byte >= b' ' && *byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: &str = "ann:$apr1$xxxxxxxx$5E6rVEcMgzIE13Aa76L.I.";
    const BOB: &str = "bob:$2y$04$abcdefghijklmnopqrstuugIEnm3ZbWF6xb2GcoE3L1CoGJFMKtu.";

    #[test]
    fn users_have_their_passwords() {
        let text = format!("# staging\n\n{ANN}:a comment\r\n{BOB}\nann:{{SHA}}2jmj7l5rSw0yVb/vlWAYkK/YBwk=");
        let users = Users::parse(text.as_bytes()).unwrap();
        assert!(users.has(b"ann", b"swordfish") && users.has(b"bob", b"swordfish"));
        assert!(!users.has(b"ann", b""), "the first line counts");
        assert!(!users.has(b"bob", b"Swordfish") && !users.has(b"", b"swordfish"));
        assert_eq!(users.weak_lines, 1);
        for unknown in 0..100 {
            assert!(!users.has(format!("user{unknown}").as_bytes(), b"swordfish"));
        }
    }

    #[test]
    fn an_error_names_the_line_and_nothing_of_it() {
        for (text, expected) in [
            (format!("{ANN}\nbob:plain-secret"), BadFile::BadHash(2, BadHash::Unknown)),
            (format!("{ANN}\n\nplain-secret"), BadFile::NoColon(3)),
            (":$apr1$xxxxxxxx$5E6rVEcMgzIE13Aa76L.I.".into(), BadFile::BadName(1)),
            ("a\tb:$apr1$xxxxxxxx$5E6rVEcMgzIE13Aa76L.I.".into(), BadFile::BadName(1)),
            ("# only a comment\n".into(), BadFile::Empty),
            (String::new(), BadFile::Empty),
        ] {
            let error = Users::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("plain-secret"), "{error}");
        }
        assert_eq!(Users::parse(b"\xff:x").unwrap_err(), BadFile::NotText(1));
        let many: String = (0..=MOST_USERS).map(|user| format!("u{user}{}\n", &ANN[3..])).collect();
        assert_eq!(Users::parse(many.as_bytes()).unwrap_err(), BadFile::TooMany);
    }
}
