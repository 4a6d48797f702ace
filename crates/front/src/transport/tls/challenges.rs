//! What an authority is shown that looks whether a name is ours, before it issues a certificate (HTTP-01, RFC 8555 section 8.3).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// Where the authority looks.
const PATH: &[u8] = b"/.well-known/acme-challenge/";

/// Texts by their tokens: a few, for some seconds. Set from any thread.
#[derive(Debug, Default)]
pub struct Challenges(RwLock<HashMap<String, String>>);

impl Challenges {
    /// From now on this text is the answer for this token.
    pub fn show(&self, token: &str, text: &str) {
        let mut shown = self.0.write().unwrap_or_else(PoisonError::into_inner);
        shown.insert(token.to_owned(), text.to_owned());
    }

    /// It is no longer.
    pub fn take_back(&self, token: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    /// The answer for a path, if there is one. Applications may have others.
    pub(crate) fn answer(&self, path: &[u8]) -> Option<Vec<u8>> {
        let token = std::str::from_utf8(path.strip_prefix(PATH)?).ok()?;
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.get(token).map(|text| text.as_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_at_its_place_until_it_is_taken_back() {
        let challenges = Challenges::default();
        challenges.show("token", "token.print");
        let answer = |path: &str| challenges.answer(path.as_bytes());
        assert_eq!(answer("/.well-known/acme-challenge/token").as_deref(), Some(&b"token.print"[..]));
        for path in [
            "/",
            "/.well-known/acme-challenge/",
            "/.well-known/acme-challenge/token/",
            "/x/.well-known/acme-challenge/token",
        ] {
            assert_eq!(answer(path), None, "{path}");
        }
        challenges.take_back("token");
        assert_eq!(answer("/.well-known/acme-challenge/token"), None);
    }
}
