//! What a request brings along that is secret: it may turn up in messages of exceptions.

use crate::allowed::{decoded, tokens_of_path};
use crate::{is_suspicious, Secrets};

impl Secrets {
    /// Learns the secrets of a request: its path and query, its header fields, and the body of a form.
    pub fn learn_request(&mut self, target: &str, fields: &[(String, String)], form: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        for (name, value) in parameters(query).into_iter().chain(parameters(form)) {
            self.learn(&name, &value);
        }
        for (name, value) in fields {
            if is_suspicious(name) {
                self.learn_credentials(name, value);
            }
            self.learn(name, value);
        }
        for token in tokens_of_path(path) {
            self.add(&token);
        }
    }

    /// The parts of a field that are secrets alone: what stands behind the scheme of `Authorization`, and each
    /// cookie.
    fn learn_credentials(&mut self, name: &str, value: &str) {
        if name.eq_ignore_ascii_case("cookie") {
            for cookie in value.split(';') {
                self.add(cookie.split_once('=').map_or(cookie, |(_, value)| value).trim());
            }
        } else if let Some((scheme, credentials)) = value.split_once(' ') {
            self.add(credentials.trim());
            if scheme.eq_ignore_ascii_case("basic") {
                let pair = base64(credentials.trim()).unwrap_or_default();
                self.add(pair.split_once(':').map_or(&pair, |(_, password)| password));
            }
        }
    }
}

/// The parameters of a query or form, decoded.
pub fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// Base 64 (RFC 4648 section 4); `None`: it is none.
fn base64(text: &str) -> Option<String> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        bits = (bits << 6 | LETTERS.iter().position(|one| *one == letter)? as u32) & 0xfff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_decoded() {
        assert_eq!(base64("!"), None);
        assert_eq!(base64("bWU="), Some("me".into()));
    }

    #[test]
    fn secrets_of_requests_are_masked_in_messages() {
        let mut secrets = Secrets::default();
        let fields =
            [("Authorization", "Basic bWU6aHVudGVyMi1odW50ZXIy"), ("COOKIE", "a=first1; b=second2%2F")];
        let fields = fields.map(|(name, value)| (name.to_string(), value.to_string()));
        secrets.learn_request(
            "/reset/Zk3fA9bc?code=c0dec0de&of=milk&card=4242424242424242",
            &fields,
            "pin=123456",
        );
        let message = "hunter2-hunter2 first1 second2/ Zk3fA9bc c0dec0de milk 4242424242424242 123456";
        assert_eq!(
            secrets.masked(message),
            "[masked] [masked] [masked] [masked] [masked] milk [masked] [masked]"
        );
    }
}
