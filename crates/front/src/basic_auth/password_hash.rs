//! Hashes of passwords, in the forms that `htpasswd` and `openssl passwd` write.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use bcrypt::HashParts;
use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest;
use sha_crypt::{sha256_crypt_b64, sha512_crypt_b64, Sha256Params, Sha512Params};

use crate::developer_key::are_equal;

/// The highest cost of bcrypt that is accepted: a login takes about a second then.
const MOST_COST: u32 = 14;

/// The most rounds of SHA-crypt that are accepted: a login takes about a second then.
const MOST_ROUNDS: usize = 1_000_000;

/// The fewest, and those where none are given (the SHA-crypt specification).
const FEWEST_ROUNDS: usize = 1000;
const USUAL_ROUNDS: usize = 5000;

/// The alphabet of crypt(3).
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A hash of a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum PasswordHash {
    /// `$2y$`, also `$2a$` and `$2b$`.
    Bcrypt(String),
    /// `$apr1$`: MD5, a thousand times.
    Apr1 { salt: String, hash: String },
    /// `$5$`.
    Sha256 { rounds: usize, salt: String, hash: String },
    /// `$6$`.
    Sha512 { rounds: usize, salt: String, hash: String },
    /// `{SHA}`: SHA-1, once and without a salt.
    Sha1([u8; 20]),
}

/// Why a text is not a hash that can be used. Nothing of the text is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHash {
    #[error("has a malformed {0} hash")]
    Malformed(&'static str),
    #[error("has a bcrypt hash with a cost above {MOST_COST}, so that a login would take seconds")]
    CostTooHigh,
    #[error("has a SHA-crypt hash with fewer than {FEWEST_ROUNDS} or more than {MOST_ROUNDS} rounds")]
    Rounds,
    #[error("has a password that is plain text, or a hash of an unknown kind (crypt and {{SSHA}} are not supported)")]
    Unknown,
}

impl PasswordHash {
    /// Reads a hash.
    pub(super) fn parse(text: &str) -> Result<PasswordHash, BadHash> {
        if let Some(rest) = ["$2y$", "$2a$", "$2b$"].iter().find_map(|kind| text.strip_prefix(kind)) {
            return bcrypt_hash(text, rest);
        }
        if let Some(rest) = text.strip_prefix("$apr1$") {
            let (salt, hash) = salt_and_hash(rest, 8, 22).ok_or(BadHash::Malformed("$apr1$"))?;
            return Ok(PasswordHash::Apr1 { salt, hash });
        }
        if let Some(rest) = text.strip_prefix("$5$") {
            let (rounds, rest) = rounds(rest)?;
            let (salt, hash) = salt_and_hash(rest, 16, 43).ok_or(BadHash::Malformed("SHA-256-crypt"))?;
            return Ok(PasswordHash::Sha256 { rounds, salt, hash });
        }
        if let Some(rest) = text.strip_prefix("$6$") {
            let (rounds, rest) = rounds(rest)?;
            let (salt, hash) = salt_and_hash(rest, 16, 86).ok_or(BadHash::Malformed("SHA-512-crypt"))?;
            return Ok(PasswordHash::Sha512 { rounds, salt, hash });
        }
        if let Some(rest) = text.strip_prefix("{SHA}") {
            let bytes = STANDARD.decode(rest).ok().and_then(|bytes| bytes.try_into().ok());
            return bytes.map(PasswordHash::Sha1).ok_or(BadHash::Malformed("{SHA}"));
        }
        Err(BadHash::Unknown)
    }

    /// Whether a password that has leaked with its hash is found at once.
    pub(super) fn is_weak(&self) -> bool {
        matches!(self, PasswordHash::Sha1(_))
    }

    /// Whether it is this password's. Takes up to about a second.
    pub(super) fn is_of(&self, password: &[u8]) -> bool {
        let is_hash =
            |hash: &str, of: Option<String>| of.is_some_and(|of| are_equal(of.as_bytes(), hash.as_bytes()));
        match self {
            PasswordHash::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            PasswordHash::Apr1 { salt, hash } => is_hash(hash, Some(apr1(password, salt.as_bytes()))),
            PasswordHash::Sha256 { rounds, salt, hash } => {
                let params = Sha256Params::new(*rounds).ok();
                is_hash(
                    hash,
                    params.and_then(|params| sha256_crypt_b64(password, salt.as_bytes(), &params).ok()),
                )
            }
            PasswordHash::Sha512 { rounds, salt, hash } => {
                let params = Sha512Params::new(*rounds).ok();
                is_hash(
                    hash,
                    params.and_then(|params| sha512_crypt_b64(password, salt.as_bytes(), &params).ok()),
                )
            }
            PasswordHash::Sha1(hash) => are_equal(&Sha1::digest(password), hash),
        }
    }
}

/// Cost, `$`, and 53 characters.
fn bcrypt_hash(text: &str, rest: &str) -> Result<PasswordHash, BadHash> {
    const MALFORMED: BadHash = BadHash::Malformed("bcrypt");
    let (cost, rest) = rest.split_once('$').ok_or(MALFORMED)?;
    let is_cost = cost.len() == 2 && cost.bytes().all(|byte| byte.is_ascii_digit());
    let cost: u32 = cost.parse().ok().filter(|cost| is_cost && *cost >= 4).ok_or(MALFORMED)?;
    if rest.len() != 53 || !is_of_alphabet(rest) || text.parse::<HashParts>().is_err() {
        return Err(MALFORMED);
    }
    if cost > MOST_COST {
        return Err(BadHash::CostTooHigh);
    }
    Ok(PasswordHash::Bcrypt(text.to_owned()))
}

/// `rounds=N$`, where it is there, and what follows.
fn rounds(rest: &str) -> Result<(usize, &str), BadHash> {
    let Some(rest) = rest.strip_prefix("rounds=") else { return Ok((USUAL_ROUNDS, rest)) };
    let (rounds, rest) = rest.split_once('$').ok_or(BadHash::Rounds)?;
    let is_number = !rounds.is_empty() && rounds.bytes().all(|byte| byte.is_ascii_digit());
    let rounds: usize = rounds.parse().ok().filter(|_| is_number).ok_or(BadHash::Rounds)?;
    let fits = (FEWEST_ROUNDS..=MOST_ROUNDS).contains(&rounds);
    fits.then_some((rounds, rest)).ok_or(BadHash::Rounds)
}

/// `SALT$HASH`, where these are as long as they may be.
fn salt_and_hash(text: &str, most_salt: usize, hash_length: usize) -> Option<(String, String)> {
    let (salt, hash) = text.split_once('$')?;
    let fits = salt.len() <= most_salt && salt.bytes().all(|byte| byte.is_ascii_graphic());
    (fits && hash.len() == hash_length && is_of_alphabet(hash)).then(|| (salt.to_owned(), hash.to_owned()))
}

fn is_of_alphabet(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// The hash of Apache's MD5 (`apr_md5_encode` of APR): crypt(3)'s for MD5, under another name.
fn apr1(password: &[u8], salt: &[u8]) -> String {
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut outer = Md5::new().chain_update(password).chain_update(b"$apr1$").chain_update(salt);
    for chunk in password.chunks(inner.len()) {
        outer.update(&inner[..chunk.len()]);
    }
    let mut bits = password.len();
    while bits > 0 {
        outer.update(if bits & 1 == 1 { &[0][..] } else { password.get(..1).unwrap_or_default() });
        bits >>= 1;
    }
    let mut hash = outer.finalize();
    for round in 0..1000 {
        let is_odd = round % 2 == 1;
        let mut next = Md5::new();
        next.update(if is_odd { password } else { &hash });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if is_odd { &hash[..] } else { password });
        hash = next.finalize();
    }
    encoded_md5(&hash.into())
}

/// In the alphabet of crypt(3), in the order of bytes that MD5-crypt has.
fn encoded_md5(hash: &[u8; 16]) -> String {
    const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut text = String::with_capacity(22);
    let mut add = |mut bits: u32, digits: usize| {
        for _ in 0..digits {
            text.push(ALPHABET[(bits & 0x3f) as usize].into());
            bits >>= 6;
        }
    };
    for places in ORDER {
        let bits = places.iter().fold(0, |bits, place| bits << 8 | u32::from(hash[*place]));
        add(bits, 4);
    }
    add(u32::from(hash[11]), 2);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As libxcrypt and OpenSSL write them.
    const HASHES: &[(&str, &str)] = &[
        ("swordfish", "$2y$04$abcdefghijklmnopqrstuugIEnm3ZbWF6xb2GcoE3L1CoGJFMKtu."),
        ("swordfish", "$apr1$xxxxxxxx$5E6rVEcMgzIE13Aa76L.I."),
        ("swordfish", "$5$saltstring$6CmRIKiD2A.tHRTz5UUX.NOBTXYRFXO3zGSu7CO/kT7"),
        ("swordfish", "$6$rounds=1400$anotherlongsalts$j88IjN6t.bXQGuozCqBoHtoiX5pssYt/lPIer7DZxZlGkyVFB.QlL/Cv3IObg6lvyK5XKUTVQzehQlbVV9gHN."),
        ("swordfish", "{SHA}T1cYHcqt6YBVXyzmdVykJfAGWL4="),
        ("", "$2y$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq"),
        ("", "$apr1$xxxxxxxx$AL/DOdqyMUurcg0cPNW/P1"),
        ("", "$5$saltstring$FdNfA4gXqvCeO6iZs7G/.wwwoywYZqo0l1pwmfWaBA7"),
        ("", "$6$rounds=1400$anotherlongsalts$CvyNSQwf6bQerEu9N9SQOWtPnrIu1XZzaKZQpGKfoQ/SaumCMqHGCEvfGxtQ5xG2Au23d5sGapl8LQH64hLtn/"),
        ("", "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
        ("pässword", "$2y$04$abcdefghijklmnopqrstuum174eFeoTj0DHmtuueFaS3Wde4P7wHG"),
        ("pässword", "$apr1$xxxxxxxx$MHj3h9Ls6cbIZlM381YbU/"),
        ("pässword", "$5$saltstring$cRBhKSfYzTy7ht1J5qVPFV0KZImJ0U5L5Ezw0UdIOW4"),
        ("pässword", "$6$rounds=1400$anotherlongsalts$VErtXf9TYxOhRYK7qXD.lPRABVcxYtuzoSiqlIgL9F0GlVPhCtl/N60mKAl05IwXArePJpkE7qYbw1lYqbLiy1"),
        ("pässword", "{SHA}I7dElEdfX4dJgLdnbVEeI9iG2mQ="),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "$2y$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i"),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "$apr1$xxxxxxxx$01Ck3dUcRCaoyEZGYqzPo1"),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "$5$saltstring$jZdy2gGq0OUSP01AhBb7yOgBitgAZa7g8axx/wgsXj5"),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "$6$rounds=1400$anotherlongsalts$qXLx1yEbm/We1lc9A6boOzKq5paPEBPgI1L7xYBQ5SP0l4UcRpmuirongz0ppy81ygvqkS2Z7KaD99M3FHbxT."),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "{SHA}mhYxdXId8MC8tCysqx+LZq6VXc8="),
        ("swordfish", "$2a$05$abcdefghijklmnopqrstuupWDwJQeCHYIBQy8WvkVB6ImhZ476YYy"),
    ];

    #[test]
    fn a_hash_is_of_its_password_alone() {
        for (password, hash) in HASHES {
            let parsed = PasswordHash::parse(hash).unwrap_or_else(|error| panic!("{hash} {error}"));
            assert!(parsed.is_of(password.as_bytes()), "{hash}");
            let longer = format!("{password} ");
            // bcrypt looks at 72 bytes.
            let longer = if password.len() < 72 { &longer } else { "" };
            for other in ["", "x", &password.to_uppercase(), longer].iter().filter(|other| *other != password)
            {
                assert!(!parsed.is_of(other.as_bytes()), "{hash} of {other:?}");
            }
        }
    }

    #[test]
    fn only_hashes_that_can_be_computed_soon_are_accepted() {
        let bcrypt = |cost: &str| format!("$2y${cost}${}", "a".repeat(53));
        assert!(PasswordHash::parse(&bcrypt("14")).is_ok());
        assert_eq!(PasswordHash::parse(&bcrypt("15")).err(), Some(BadHash::CostTooHigh));
        assert_eq!(PasswordHash::parse(&bcrypt("31")).err(), Some(BadHash::CostTooHigh));
        let sha = |rounds: &str| format!("$6$rounds={rounds}$salt${}", "a".repeat(86));
        assert!(PasswordHash::parse(&sha("1000000")).is_ok());
        for rounds in ["1000001", "999999999999999999999", "999", "", "+5000", "5000 "] {
            assert_eq!(PasswordHash::parse(&sha(rounds)).err(), Some(BadHash::Rounds), "{rounds}");
        }
    }

    #[test]
    fn what_is_no_hash_is_refused_and_not_repeated() {
        for text in [
            "",
            "secret",
            "$2y$",
            "$2y$10$short",
            "$2x$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZabcde",
            "$apr1$$",
            "$apr1$salt",
            "$apr1$saltsaltsalt$aaaaaaaaaaaaaaaaaaaaaa",
            "$1$salt$aaaaaaaaaaaaaaaaaaaaaa",
            "$5$salt$short",
            "$6$salt$short",
            "{SHA}secret",
            "{SSHA}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "{PLAIN}secret",
            "rOioh8XEnfnFE",
        ] {
            let error = PasswordHash::parse(text).err().unwrap_or_else(|| panic!("{text}")).to_string();
            assert!(text.len() < 6 || !error.contains(text), "{error}");
        }
    }
}
