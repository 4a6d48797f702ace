//! Random text: tokens, keys and nonces of pages.

use rustix::rand::{getrandom, GetRandomFlags};
use std::io;

/// 128 bits cannot be guessed.
const BYTES: usize = 16;

/// Random hexadecimal digits that cannot be guessed.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn random_digits() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    if getrandom(&mut bytes, GetRandomFlags::empty())? < BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into()); // random(4): not for so few bytes
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_differ() {
        let (one, other) = (random_digits().unwrap(), random_digits().unwrap());
        assert!(one != other && one.len() == 2 * BYTES && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
