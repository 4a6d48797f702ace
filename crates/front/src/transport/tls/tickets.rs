//! Session tickets (RFC 8446 section 4.6.1, RFC 5077): by them clients resume a session without a signature of the server.
//!
//! A key seals tickets for [`PERIOD`], and opens them for one more. The next key follows from the one before and never the other
//! way round, so that a key that is stolen opens nothing older. A server that takes over in a hot restart goes on with the same
//! keys, without hearing from the old one again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use super::primitives;
use primitives::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use primitives::hkdf::{KeyType, Salt, HKDF_SHA256};
use primitives::rand::{SecureRandom, SystemRandom};

use crate::clock::since_1970;

/// How long a key seals.
const PERIOD: Duration = Duration::from_secs(6 * 3600);

/// Periods that are made up for by deriving key from key; after more (a machine that was asleep, a clock that was set), keys begin
/// again.
const MOST_PERIODS: u64 = 1000;

const KEY_BYTES: usize = 32;
const NUMBER_BYTES: usize = 8;

type Bytes = Zeroizing<[u8; KEY_BYTES]>;

/// The keys, for this time.
pub(super) struct TicketKeys(Mutex<Keys>);

/// Tickets for one purpose: no other purpose's ticket is opened. Those of sessions whose clients are asked for no certificate have
/// an empty one.
#[derive(Debug)]
pub(super) struct Tickets {
    pub(super) keys: Arc<TicketKeys>,
    pub(super) purpose: Vec<u8>,
}

struct Keys {
    /// The period, counted from 1970, in which `current` seals.
    number: u64,
    /// What the next key is made from.
    seed: Bytes,
    current: Key,
    before: Option<Key>,
}

struct Key {
    bytes: Bytes,
    key: LessSafeKey,
}

/// A key is in no log.
impl fmt::Debug for TicketKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TicketKeys")
    }
}

/// The system has no random numbers, or its cryptography does not work.
#[derive(Debug, thiserror::Error)]
#[error("there are no random numbers for session tickets")]
pub(super) struct NoKeys;

impl From<primitives::error::Unspecified> for NoKeys {
    fn from(_: primitives::error::Unspecified) -> Self {
        NoKeys
    }
}

/// The length of what is derived.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

fn derive(seed: &Bytes, purpose: &[u8]) -> Result<Bytes, NoKeys> {
    let mut derived = Bytes::default();
    let root = Salt::new(HKDF_SHA256, b"highball session tickets").extract(&seed[..]);
    root.expand(&[purpose], Length)?.fill(&mut derived[..])?;
    Ok(derived)
}

impl Key {
    fn new(bytes: Bytes) -> Result<Key, NoKeys> {
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes[..])?);
        Ok(Key { bytes, key })
    }

    /// Number of the period, nonce, sealed text with its tag.
    fn seal(&self, number: u64, purpose: &[u8], plain: &[u8]) -> Result<Vec<u8>, NoKeys> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce)?;
        let mut sealed = plain.to_vec();
        let number = number.to_be_bytes();
        self.key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from([&number[..], purpose].concat()),
            &mut sealed,
        )?;
        Ok([&number[..], &nonce, &sealed].concat())
    }

    fn open(
        &self,
        number: [u8; NUMBER_BYTES],
        purpose: &[u8],
        nonce: [u8; NONCE_LEN],
        sealed: &[u8],
    ) -> Option<Vec<u8>> {
        let mut opened = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed_for = Aad::from([&number[..], purpose].concat());
        let length = self.key.open_in_place(nonce, sealed_for, &mut opened).ok()?.len();
        opened.truncate(length);
        Some(opened)
    }
}

impl Keys {
    fn random(number: u64) -> Result<Keys, NoKeys> {
        let mut seed = Bytes::default();
        SystemRandom::new().fill(&mut seed[..])?;
        let current = Key::new(derive(&seed, b"key")?)?;
        Ok(Keys { number, seed, current, before: None })
    }

    /// Goes on to this period. The clock may have been set back: then nothing changes.
    fn advance(&mut self, number: u64) -> Result<(), NoKeys> {
        if number.saturating_sub(self.number) > MOST_PERIODS {
            *self = Keys::random(number)?;
        }
        while self.number < number {
            let seed = derive(&self.seed, b"next")?;
            let key = Key::new(derive(&seed, b"key")?)?;
            self.before = Some(std::mem::replace(&mut self.current, key));
            self.seed = seed;
            self.number += 1;
        }
        Ok(())
    }
}

fn period() -> u64 {
    since_1970().as_secs() / PERIOD.as_secs()
}

impl TicketKeys {
    /// New ones.
    pub(super) fn random() -> Result<Self, NoKeys> {
        Ok(TicketKeys(Mutex::new(Keys::random(period())?)))
    }

    /// The keys of the server before this one; `None`: it has sent something else.
    pub(super) fn inherited(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let number = parts.next()?.parse().ok()?;
        let mut bytes = || bytes_of(parts.next()?);
        let (seed, before) = (bytes()?, bytes());
        let current = Key::new(derive(&seed, b"key").ok()?).ok()?;
        let before = before.and_then(|bytes| Key::new(bytes).ok());
        Some(TicketKeys(Mutex::new(Keys { number, seed, current, before })))
    }

    /// What the next server gets: the number of the period, what keys are made from, and the key before.
    pub(super) fn text(&self) -> Zeroizing<String> {
        let keys = self.keys();
        let before = keys.before.as_ref().map(|before| &before.bytes);
        let mut text = Zeroizing::new(String::with_capacity(256));
        text.push_str(&keys.number.to_string());
        for bytes in std::iter::once(&keys.seed).chain(before) {
            text.push(' ');
            for byte in bytes.iter() {
                text.extend(
                    [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')),
                );
            }
        }
        text
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seal_at(&self, number: u64, purpose: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let mut keys = self.keys();
        keys.advance(number).ok()?;
        keys.current.seal(keys.number, purpose, plain).ok()
    }

    fn open_at(&self, number: u64, purpose: &[u8], ticket: &[u8]) -> Option<Vec<u8>> {
        let mut keys = self.keys();
        keys.advance(number).ok()?;
        let (sealed_in, rest) = ticket.split_first_chunk::<NUMBER_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let age = keys.number.checked_sub(u64::from_be_bytes(*sealed_in))?;
        let key = match age {
            0 => Some(&keys.current),
            1 => keys.before.as_ref(),
            _ => None,
        };
        key?.open(*sealed_in, purpose, *nonce, sealed)
    }
}

fn bytes_of(text: &str) -> Option<Bytes> {
    let digits = text.as_bytes();
    let mut bytes = Bytes::default();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |index: usize| char::from(pair[index]).to_digit(16);
        *byte = u8::try_from((digit(0)? << 4) | digit(1)?).ok()?;
    }
    Some(bytes)
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    /// In seconds. Each can be opened for this time at least.
    fn lifetime(&self) -> u32 {
        PERIOD.as_secs() as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.seal_at(period(), &self.purpose, plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.keys.open_at(period(), &self.purpose, ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSE: &[u8] = b"clients of a site";

    #[test]
    fn a_ticket_is_opened_for_one_period_more() {
        let keys = TicketKeys::random().unwrap();
        let now = period();
        let ticket = keys.seal_at(now, PURPOSE, b"session").unwrap();
        assert_ne!(keys.seal_at(now, PURPOSE, b"session").unwrap(), ticket);
        for number in [now, now + 1] {
            assert_eq!(keys.open_at(number, PURPOSE, &ticket).as_deref(), Some(&b"session"[..]));
        }
        assert_eq!(keys.open_at(now + 2, PURPOSE, &ticket), None);
        // The clock was set back.
        let later = keys.seal_at(now, PURPOSE, b"session").unwrap();
        assert!(keys.open_at(now, PURPOSE, &later).is_some());
        // A long sleep.
        let after = now + 3 * MOST_PERIODS;
        assert_eq!(keys.open_at(after, PURPOSE, &later), None);
        assert!(keys.open_at(after, PURPOSE, &keys.seal_at(after, PURPOSE, b"x").unwrap()).is_some());
    }

    #[test]
    fn what_was_changed_is_not_opened() {
        let keys = TicketKeys::random().unwrap();
        let now = period();
        let ticket = keys.seal_at(now, PURPOSE, b"session").unwrap();
        for index in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[index] ^= 1;
            assert_eq!(keys.open_at(now, PURPOSE, &changed), None, "byte {index}");
            assert_eq!(keys.open_at(now, PURPOSE, &ticket[..index]), None);
        }
        assert_eq!(TicketKeys::random().unwrap().open_at(now, PURPOSE, &ticket), None);
    }

    #[test]
    fn a_ticket_is_opened_for_its_purpose_alone() {
        let keys = TicketKeys::random().unwrap();
        let now = period();
        let (ticket, usual) = (keys.seal_at(now, PURPOSE, b"session"), keys.seal_at(now, b"", b"session"));
        for (ticket, purpose, opens) in [
            (&ticket, PURPOSE, true),
            (&ticket, b"", false),
            (&ticket, b"clients of another site", false),
            (&usual, b"", true),
            (&usual, PURPOSE, false),
        ] {
            assert_eq!(keys.open_at(now, purpose, ticket.as_ref().unwrap()).is_some(), opens);
        }
    }

    #[test]
    fn the_next_server_has_the_same_keys_for_ever() {
        let keys = TicketKeys::random().unwrap();
        let now = period();
        let first = keys.seal_at(now, PURPOSE, b"first").unwrap();
        let second = keys.seal_at(now + 1, PURPOSE, b"second").unwrap();
        let next = TicketKeys::inherited(&keys.text()).unwrap();
        assert_eq!(next.open_at(now + 1, PURPOSE, &first).as_deref(), Some(&b"first"[..]));
        assert_eq!(next.open_at(now + 1, PURPOSE, &second).as_deref(), Some(&b"second"[..]));
        let third = next.seal_at(now + 2, PURPOSE, b"third").unwrap();
        assert_eq!(keys.open_at(now + 2, PURPOSE, &third).as_deref(), Some(&b"third"[..]));
        for text in ["", "1", "x y", "1 00", &format!("1 {}", "g".repeat(64))] {
            assert!(TicketKeys::inherited(text).is_none(), "{text}");
        }
    }
}
