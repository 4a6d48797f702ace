//! A request that failed, as it may be shown: what the client has sent, without its secrets.

use highball_secrets::{is_telling, Secrets, MASK};
use serde::{Deserialize, Serialize};

/// Most header fields and parameters that are shown, and characters of each.
const SHOWN: usize = 100;
const VALUE_CHARACTERS: usize = 500;
/// The body of a form with more bytes is not read.
const FORM_BYTES: usize = 64 * 1024;

/// A request, as the client has sent it.
#[derive(Debug, Clone, Default)]
pub struct RawRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The header fields: `Accept-Language`.
    pub fields: Vec<(String, String)>,
    /// The body, if it was small.
    pub body: Vec<u8>,
}

/// The same as it may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequest {
    /// The status that the client gets.
    pub status: u16,
    /// `GET /path?a=b`
    pub line: String,
    /// The header fields, in their order.
    pub fields: Vec<(String, String)>,
    /// The parameters of query and form, decoded.
    pub parameters: Vec<(String, String)>,
}

impl RawRequest {
    /// What may be shown of it. What is secret in it becomes known to `secrets`: it may turn up in a message too.
    pub(crate) fn shown(&self, status: u16, secrets: &mut Secrets) -> FailedRequest {
        let parameters = self.parameters();
        for (name, value) in parameters.iter().filter(|(name, _)| is_telling(name)) {
            learn(name, value, secrets);
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| is_telling(name)) {
            learn(name, value, secrets);
        }
        let cut = |text: String| text.chars().take(VALUE_CHARACTERS).collect::<String>();
        let show = |secrets: &Secrets, (name, value): &(String, String)| {
            (cut(secrets.masked(name)), cut(secrets.variable(name, &masked_query(value))))
        };
        FailedRequest {
            status,
            line: cut(secrets.masked(&format!("{} {}", self.method, masked_query(&self.target)))),
            fields: self.fields.iter().take(SHOWN).map(|field| show(secrets, field)).collect(),
            parameters: parameters.iter().take(SHOWN).map(|parameter| show(secrets, parameter)).collect(),
        }
    }

    /// Those of the query, then those of a form.
    fn parameters(&self) -> Vec<(String, String)> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let is_form = self.fields.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-type")
                && value.starts_with("application/x-www-form-urlencoded")
        });
        let form = if is_form && self.body.len() <= FORM_BYTES { self.body.as_slice() } else { b"" };
        let form = String::from_utf8_lossy(form);
        let pairs = query.split('&').chain(form.split('&')).filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decoded(name), decoded(value))
            })
            .collect()
    }
}

/// A value that is secret: what stands behind the scheme of `Authorization`, and each cookie, are secrets by themselves.
fn learn(name: &str, value: &str, secrets: &mut Secrets) {
    secrets.add(value);
    if name.eq_ignore_ascii_case("cookie") {
        for cookie in value.split(';') {
            let cookie = cookie.split_once('=').map_or(cookie, |(_, value)| value).trim();
            secrets.add(cookie);
            secrets.add(&decoded(cookie));
        }
    } else if let Some((scheme, credentials)) = value.split_once(' ') {
        secrets.add(credentials.trim());
        if scheme.eq_ignore_ascii_case("basic") {
            let pair = base64(credentials.trim()).unwrap_or_default();
            secrets.add(pair.split_once(':').map_or(&pair, |(_, password)| password));
        }
    }
}

/// A target or URL whose parameters with telling names, which may be percent-encoded, have no values any more.
fn masked_query(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.into() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_telling(&decoded(name)) => format!("{name}={MASK}"),
        _ => pair.into(),
    });
    format!("{path}?{}", pairs.collect::<Vec<String>>().join("&"))
}

/// `application/x-www-form-urlencoded` as it was meant (URL Standard, section 5.1).
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let hex = (byte == b'%').then(|| behind.get(..2)).flatten();
        let code = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(match (byte, code) {
            (b'+', _) => b' ',
            (_, Some(code)) => code,
            _ => byte,
        });
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
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

    fn shown(target: &str, fields: &[(&str, &str)], body: &str) -> (FailedRequest, Secrets) {
        let mut secrets = Secrets::default();
        let request = RawRequest {
            method: "POST".into(),
            target: target.into(),
            fields: fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            body: body.into(),
        };
        (request.shown(500, &mut secrets), secrets)
    }

    #[test]
    fn secrets_of_a_request_are_masked_wherever_they_stand() {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        let fields = [
            ("Authorization", "Basic bWU6aHVudGVyMi1odW50ZXIy"), // me:hunter2-hunter2
            ("Cookie", "sid=abcdef123456; theme=dark"),
            ("X-Api-Key", "k3y-k3y-k3y"),
            ("Referer", "http://localhost/?user%5Btoken%5D=t0ken1234"),
            ("Accept", "text/html"),
            form,
        ];
        let target = "/login?q=tea&user%5Btoken%5D=t0ken%31234&next=abcdef123456";
        let (request, secrets) = shown(target, &fields, "user%5Bpassword%5D=open+sesame&name=me");
        let all = format!("{request:?}");
        for secret in ["bWU6", "hunter2", "abcdef123456", "k3y", "t0ken", "sesame"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        for kept in ["/login?q=tea&user%5Btoken%5D=[masked]&next=", "text/html", r#"("name", "me")"#] {
            assert!(all.contains(kept), "{kept} in {all}");
        }
        let message = "no user with open sesame, hunter2-hunter2 or t0ken1234";
        assert_eq!(secrets.masked(message), "no user with [masked], [masked] or [masked]");
    }

    #[test]
    fn what_cannot_be_decoded_stays_as_it_is() {
        assert_eq!(decoded("100%&a%2"), "100%&a%2");
        assert_eq!(decoded("a%2Fb+c%C3%A9"), "a/b cé");
        assert_eq!(base64("!"), None);
        assert_eq!(base64("bWU="), Some("me".into()));
    }
}
