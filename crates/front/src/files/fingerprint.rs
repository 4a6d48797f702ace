//! Names with a digest of the content in them: what such a name stands for never changes.

use highball_ring::frame::is_token;

/// The header field of files that never change: they can be kept for a year without asking.
pub(super) const IMMUTABLE: &[u8] = b"cache-control: public, max-age=31536000, immutable\r\n";

/// Where Webpacker and Shakapacker put what they have built.
const PACKS: &[u8] = b"packs/";

/// Where Vite Ruby does.
const VITE: &[u8] = b"vite/assets/";

/// Whether the file at this path below the public folder has a name that a tool gave to this content alone. `assets`:
/// where the asset pipeline puts its own, with a slash at the end.
pub(super) fn is_in(path: &[u8], assets: Option<&[u8]>) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let name = name.strip_suffix(b".map").unwrap_or(name);
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    let stem = &name[..dot];
    let of_assets = || assets.is_some_and(|folder| path.starts_with(folder));
    if path.starts_with(VITE) {
        ends_in_base64(stem) || ends_in_hexadecimal(stem)
    } else if path.starts_with(PACKS) {
        ends_in_hexadecimal(stem)
    } else {
        of_assets() && (ends_in_hexadecimal(stem) || is_called_digested(stem))
    }
}

/// `name-0123abcd`, or with a dot: digests of Sprockets (64 digits; formerly 32), Propshaft (8), webpack (8, 16, 20, 32).
/// A date or a word is none.
fn ends_in_hexadecimal(stem: &[u8]) -> bool {
    let Some(at) = stem.iter().rposition(|byte| matches!(byte, b'-' | b'.')) else { return false };
    let digest = &stem[at + 1..];
    matches!(digest.len(), 8 | 16 | 20 | 32 | 40 | 64 | 96 | 128)
        && digest.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && digest.iter().any(u8::is_ascii_digit)
        && digest.iter().any(u8::is_ascii_lowercase)
}

/// `name-4kT-_z8X`: what Rollup makes, which builds for Vite. A word or a date of eight characters is none.
fn ends_in_base64(stem: &[u8]) -> bool {
    let Some((rest, digest)) = stem.split_last_chunk::<8>() else { return false };
    rest.ends_with(b"-")
        && rest.len() > 1
        && digest.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && !digest.iter().all(u8::is_ascii_lowercase)
        && !digest.iter().all(u8::is_ascii_digit)
}

/// `name-DIGEST.digested`: a bundler has put the digest there, and tells Propshaft so.
fn is_called_digested(stem: &[u8]) -> bool {
    let Some(stem) = stem.strip_suffix(b".digested") else { return false };
    let digest = stem.iter().rposition(|&byte| byte == b'-').map(|at| &stem[at + 1..]);
    digest.is_some_and(|digest| (7..=128).contains(&digest.len()) && is_token(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_distinguished_from_words_and_dates() {
        let sha = "5808fd585e58fa1f22e61d7f386268f38f56605b416259b201054efcce61b66f";
        for (path, expected) in [
            (format!("assets/application-{sha}.css"), true),
            (format!("assets/a/b-{sha}.js.map"), true),
            ("assets/logo-0123abcd.svg".into(), true),
            ("assets/chunk-5KXJ2ZQZ.digested.js".into(), true),
            ("assets/photo-20240101.jpg".into(), false),
            ("assets/my-deadbeef.jpg".into(), false),
            ("assets/logo-0123abc.svg".into(), false),
            ("assets/logo-0123ABCD.svg".into(), false),
            ("assets/0123abcd.svg".into(), false),
            ("assets/application.css".into(), false),
            ("assets/application-0123abcd".into(), false),
            ("assets/.manifest.json".into(), false),
            (format!("images/application-{sha}.css"), false),
            (format!("assetsx/application-{sha}.css"), false),
            ("packs/js/application-d2b3c4f5a6978812bcde.js".into(), true),
            ("packs/js/application-d2b3c4f5a6978812bcde.js.map".into(), true),
            ("packs/css/application-7fd7fba7.css".into(), true),
            ("packs/manifest.json".into(), false),
            ("vite/assets/application-4kT-_z8X.js".into(), true),
            ("vite/assets/application-Ba1Cd2Ef.css.map".into(), true),
            ("vite/assets/application.a0ba047e.js".into(), true),
            ("vite/assets/my-favorite.js".into(), false),
            ("vite/assets/logo-20240101.png".into(), false),
            ("vite/manifest.json".into(), false),
        ] {
            assert_eq!(is_in(path.as_bytes(), Some(b"assets/")), expected, "{path}");
        }
        assert!(!is_in(format!("assets/a-{sha}.css").as_bytes(), None));
    }
}
