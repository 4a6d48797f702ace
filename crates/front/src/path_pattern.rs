//! Paths of rate limits and of changes to header fields. Applications accept different spellings of a path, so these options do,
//! too: a client cannot evade them by another spelling.

use std::borrow::Cow;
use std::iter;

use highball_config::settings::PathPattern;
use memchr::memchr;

use crate::http_syntax::first_byte;

/// A path as an application may understand it: decoded, without empty segments, dot segments and a slash at the end.
pub(crate) fn plain(path: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = path.first() == Some(&b'/')
        && memchr(b'%', path).is_none()
        && !path.windows(2).any(|pair| matches!(pair, b"//" | b"/."))
        && (path.len() == 1 || path.last() != Some(&b'/'));
    match is_plain {
        true => Cow::Borrowed(path),
        false => Cow::Owned(made_plain(path)),
    }
}

#[cold]
fn made_plain(path: &[u8]) -> Vec<u8> {
    let mut rest = path;
    let decoded: Vec<u8> = iter::from_fn(|| {
        let (byte, after) = first_byte(rest)?;
        rest = after;
        Some(byte)
    })
    .collect();
    let mut plain = Vec::with_capacity(decoded.len() + 1);
    for segment in decoded.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => plain.truncate(plain.iter().rposition(|byte| *byte == b'/').unwrap_or(0)),
            segment => {
                plain.push(b'/');
                plain.extend_from_slice(segment);
            }
        }
    }
    if plain.is_empty() {
        plain.push(b'/');
    }
    plain
}

/// Returns whether a pattern, or its absence, covers this plain path. `/login` also covers `/login.json`, which Rails takes to
/// the same action.
pub(crate) fn is_about(pattern: Option<&PathPattern>, path: &[u8]) -> bool {
    let Some(pattern) = pattern.map(|pattern| pattern.0.as_bytes()) else { return true };
    if let Some(beginning) = pattern.strip_suffix(b"*") {
        return path.starts_with(beginning) || beginning.strip_suffix(b"/") == Some(path);
    }
    let whole = pattern.strip_suffix(b"/").filter(|whole| !whole.is_empty()).unwrap_or(pattern);
    match path.strip_prefix(whole) {
        Some(rest) => rest.is_empty() || (rest[0] == b'.' && memchr(b'/', rest).is_none()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        is_about(Some(&PathPattern(pattern.to_owned())), &plain(path.as_bytes()))
    }

    #[test]
    fn a_client_cannot_leave_a_limit_by_another_spelling() {
        for path in [
            "/login",
            "/login/",
            "//login",
            "/login//",
            "/./login",
            "/a/../login",
            "/%6Cogin",
            "/%6c%6fgin",
            "/login%2F",
            "/login.json",
            "/login.",
            "/../login",
            "/%2e/login",
            "/a/%2e%2e/login",
        ] {
            assert!(fits("/login", path), "{path}");
            assert!(fits("/login/", path), "{path}");
        }
        for path in ["/api/a", "/api/", "/api", "//api//a", "/%61pi/a", "/x/../api/a"] {
            assert!(fits("/api/*", path), "{path}");
        }
        assert!(fits("/", "/") && fits("/", "//") && fits("/", "/a/..") && fits("/*", "/") && fits("/*", ""));
    }

    #[test]
    fn other_paths_are_others() {
        for path in
            ["/", "/logins", "/login/a", "/a/login", "/login.a/b", "/log", "/LOGIN", "/login%", "/login%zz"]
        {
            assert!(!fits("/login", path), "{path}");
        }
        assert!(!fits("/api/*", "/apis") && !fits("/", "/a") && !fits("/api/*", "/api/.."));
    }
}
