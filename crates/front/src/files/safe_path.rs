//! From the path of a request target to a path below the public folder.

use std::borrow::Cow;

use super::found_file::FoundFile;
use crate::http_syntax::hexadecimal;

/// A relative path that cannot leave the folder it is looked up in: no empty, `.` or `..` component, no
/// hidden name, decoded once and valid UTF-8. Empty for the folder itself.
#[derive(Debug, Clone)]
pub(super) struct SafePath<'a> {
    /// With the slash at its end, if it has one: the client asked for a folder.
    path: Cow<'a, [u8]>,
    /// The client asked for the prefix of the application, without a slash behind it.
    is_bare_prefix: bool,
}

impl<'a> SafePath<'a> {
    /// Takes the path of a target, as it was sent; `None` if no file can be meant.
    pub(super) fn of_target(path: &'a [u8]) -> Option<Self> {
        if path.is_empty() {
            return Some(SafePath { path: Cow::Borrowed(path), is_bare_prefix: true });
        }
        let path = decode(path.strip_prefix(b"/")?)?;
        if *path == *b"/" {
            return None;
        }
        let name = without_slash(&path);
        let safe = name.is_empty() || {
            let mut components = name.split(|&byte| byte == b'/');
            components.next().is_some_and(|first| first == b".well-known" || is_visible(first))
                && components.all(is_visible)
        };
        safe.then_some(SafePath { path, is_bare_prefix: false })
    }

    /// The same, for longer than the bytes that it was taken from.
    pub(super) fn detached(&self) -> SafePath<'static> {
        SafePath { path: Cow::Owned(self.path.to_vec()), is_bare_prefix: self.is_bare_prefix }
    }

    /// The path, with a slash at its end if the client sent one.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.path
    }

    /// The path without a slash at its end.
    pub(super) fn name(&self) -> &[u8] {
        without_slash(&self.path)
    }

    /// The first component; `index.html` for the folder itself.
    pub(super) fn first_component(&self) -> &[u8] {
        first_component(&self.path)
    }

    /// Whether the client asked for a folder.
    pub(super) fn is_of_folder(&self) -> bool {
        self.path.is_empty() || self.path.ends_with(b"/")
    }

    /// Whether what was found is the page of a folder, and the slash that ends a folder's path was left out.
    pub(super) fn lacks_slash(&self, found: &FoundFile) -> bool {
        self.is_bare_prefix || (!self.is_of_folder() && found.is_page_of_folder)
    }

    /// The files that can be meant, the likeliest first.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let suffixes: &[&[u8]] = match (self.path.is_empty(), self.is_of_folder()) {
            (true, _) => &[b"index.html"],
            (false, true) => &[b"/index.html", b".html"],
            (false, false) => &[b"", b".html", b"/index.html"],
        };
        suffixes.iter().map(|suffix| [self.name(), *suffix].concat())
    }
}

/// The first component of a path; `index.html` if that is empty.
pub(super) fn first_component(path: &[u8]) -> &[u8] {
    match path.split(|&byte| byte == b'/').next() {
        None | Some(b"") => b"index.html",
        Some(first) => first,
    }
}

fn without_slash(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

/// Whether a path component names something that may be served. (Backslashes separate nothing here, but
/// no honest client sends them in a file's name.)
fn is_visible(component: &[u8]) -> bool {
    !component.is_empty() && !component.starts_with(b".") && !component.contains(&b'\\')
}

/// Decodes percent-encoding, once. `None` if that gives a slash or a control character, or anything but
/// UTF-8.
fn decode(path: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr::memchr(b'%', path).is_none() {
        return Some(Cow::Borrowed(path));
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (&[high, low], after) = rest.split_first_chunk::<2>()?;
        rest = after;
        let value = hexadecimal(high)? << 4 | hexadecimal(low)?;
        if value == b'/' || value.is_ascii_control() {
            return None;
        }
        decoded.push(value);
    }
    std::str::from_utf8(&decoded).is_ok().then_some(Cow::Owned(decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(path: &str) -> Option<Vec<String>> {
        let path = SafePath::of_target(path.as_bytes())?;
        let candidates = path.candidates();
        Some(candidates.map(|candidate| String::from_utf8(candidate).unwrap()).collect())
    }

    #[test]
    fn a_path_can_mean_a_file_a_page_or_a_folder() {
        assert_eq!(candidates("/a/b").unwrap(), ["a/b", "a/b.html", "a/b/index.html"]);
        assert_eq!(candidates("/a/").unwrap(), ["a/index.html", "a.html"]);
        assert_eq!(candidates("/").unwrap(), ["index.html"]);
        assert_eq!(candidates("").unwrap(), ["index.html"]);
        assert_eq!(candidates("/a%20%C3%A9+b.css").unwrap()[0], "a é+b.css");
        assert_eq!(candidates("/.well-known/x").unwrap()[0], ".well-known/x");
        assert_eq!(candidates("/a..b").unwrap()[0], "a..b");
        assert_eq!(candidates("/%252e%252e/x").unwrap()[0], "%2e%2e/x", "decoded once");
        assert_eq!(SafePath::of_target(b"/").unwrap().first_component(), b"index.html");
        assert_eq!(SafePath::of_target(b"/a/b").unwrap().first_component(), b"a");
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        for path in [
            "*",
            "a",
            "//",
            "//etc/passwd",
            "/a//b",
            "/..",
            "/../x",
            "/a/../b",
            "/a/..",
            "/a/../",
            "/.",
            "/./a",
            "/%2e%2e/x",
            "/%2E./x",
            "/.%2e/x",
            "/a%2fb",
            "/a%2Fb",
            "/..%2fx",
            "/%2e%2e%2fx",
            "/..\\x",
            "/..%5cx",
            "/a\\b",
            "/a%00",
            "/a%00.css",
            "/%c0%ae%c0%ae/x",
            "/%e0%80%ae/x",
            "/%c0%afx",
            "/%ff",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a%+1",
            "/%0a",
            "/%7f",
            "/.git/config",
            "/.env",
            "/a/.hidden",
            "/.well-known/.x",
            "/a/.well-known/x",
            "/%2eenv",
            "/.well-known/../.env",
            "/.wellknown",
        ] {
            assert!(candidates(path).is_none(), "{path}");
        }
    }
}
