//! Where answers of the front send a client (the field `Location`). A part of it is what the client has asked for: it must not
//! lead to another host than was meant, however it is written.

/// A path and a query at the origin of the request. Browsers take a backslash for a slash, and two slashes at the beginning
/// for a host.
pub(crate) fn of_same_origin(path: &[u8], query: &[u8]) -> Vec<u8> {
    let slashes = path.iter().take_while(|byte| **byte == b'/').count();
    let mut location = Vec::with_capacity(path.len() + query.len() + 2);
    location.push(b'/');
    add(path.get(slashes..).filter(|_| path != b"*").unwrap_or_default(), query, &mut location);
    location
}

/// The same at another origin, which is a scheme and a host that was checked: `https://example.org`.
pub(crate) fn at(origin: &[u8], path: &[u8], query: &[u8]) -> Vec<u8> {
    let mut location = origin.to_vec();
    // Only the asterisk form has no slash: it would become a part of the host.
    let path = path.strip_prefix(b"/").unwrap_or_default();
    location.push(b'/');
    add(path, query, &mut location);
    location
}

fn add(path: &[u8], query: &[u8], location: &mut Vec<u8>) {
    encode(path, b"\\", location);
    if !query.is_empty() {
        location.push(b'?');
        encode(query, b"", location);
    }
}

/// Adds a text in which every byte is encoded that is not visible ASCII, or is in `others`.
fn encode(text: &[u8], others: &[u8], to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        if byte.is_ascii_graphic() && !others.contains(&byte) {
            to.push(byte);
        } else {
            to.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(path: &[u8], query: &[u8]) -> String {
        String::from_utf8(of_same_origin(path, query)).unwrap()
    }

    #[test]
    fn what_is_usual_stays() {
        assert_eq!(same(b"/", b""), "/");
        assert_eq!(same(b"/a%20b//c", b"d=//e&f=\\"), "/a%20b//c?d=//e&f=\\");
        assert_eq!(at(b"https://a.example:1", b"//b", b"c"), b"https://a.example:1//b?c");
        assert_eq!(at(b"https://a.example", b"*", b""), b"https://a.example/");
    }

    #[test]
    fn what_leads_elsewhere_does_not() {
        for (path, expected) in [
            (&b"//evil.example/"[..], "/evil.example/"),
            (b"/\\evil.example/", "/%5Cevil.example/"),
            (b"///\\/evil.example", "/%5C/evil.example"),
            (b"/\t//evil.example", "/%09//evil.example"),
            (b"/\r\nSet-Cookie: a", "/%0D%0ASet-Cookie:%20a"),
            (b"/%5cevil.example", "/%5cevil.example"),
            (b"/.//evil.example", "/.//evil.example"),
            (b"/caf\xc3\xa9", "/caf%C3%A9"),
            (b"*", "/"),
            (b"", "/"),
            (b"evil.example", "/evil.example"),
            (b"@evil.example", "/@evil.example"),
        ] {
            assert_eq!(same(path, b""), expected);
        }
        assert_eq!(at(b"https://a.example", b"@evil.example", b""), b"https://a.example/");
        assert_eq!(at(b"https://a.example", b"/\\evil.example", b""), b"https://a.example/%5Cevil.example");
    }

    proptest! {
        /// As browsers read it (URL Standard, relative state, relative slash state): after tabs and ends of lines are removed,
        /// a host follows two slashes of either kind, and a scheme stands before a colon.
        #[test]
        fn it_is_always_the_same_origin(path in proptest::collection::vec(any::<u8>(), 0..40), query: Vec<u8>) {
            let location = of_same_origin(&path, &query);
            prop_assert!(location.iter().all(u8::is_ascii_graphic));
            prop_assert_eq!(location[0], b'/');
            prop_assert!(!matches!(location.get(1), Some(b'/' | b'\\')));
            let elsewhere = at(b"https://a.example", &path, &query);
            prop_assert!(elsewhere.starts_with(b"https://a.example/") && elsewhere.iter().all(u8::is_ascii_graphic));
        }
    }
}
