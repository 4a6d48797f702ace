//! How a change to the header fields of responses is written: `X-Frame-Options: DENY`, `/assets/* -Server`, `+Link: <…>`.

use crate::settings::{HeaderChange, HeaderRule};
use crate::value;

/// Largest number of changes of an application: which of them apply to a request is one bit each.
pub(crate) const MOST: usize = 64;

/// Longest value of a field, in bytes.
const VALUE_BYTES: usize = 8 * 1024;

/// Fields that belong to the connection, or say where a body ends and how to read it. Highball alone writes them.
const OF_THE_SERVER: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "date",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A change for all paths, or for some.
pub(crate) fn header_rule(text: &str) -> Result<HeaderRule, String> {
    let (pattern, rule) = value::after_paths(text)?;
    let (name, change) = match (rule.strip_prefix('-'), rule.split_once(':')) {
        (Some(name), None) => (name, HeaderChange::Remove),
        (None, Some((name, value))) => match name.strip_prefix('+') {
            Some(name) => (name, HeaderChange::Add(field_value(value)?)),
            None => (name, HeaderChange::Set(field_value(value)?)),
        },
        _ => {
            return Err(format!(
                "`{text}` is not a change to a header field; write [PATH] NAME: VALUE, or [PATH] -NAME to remove one"
            ))
        }
    };
    Ok(HeaderRule { pattern, name: field_name(name)?, change })
}

fn field_name(name: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_long = name.len() > 256;
    if !name.starts_with(|first: char| first.is_ascii_alphanumeric())
        || is_long
        || !name.bytes().all(is_token)
    {
        return Err(format!("`{name}` is not the name of a header field; write one such as X-Frame-Options"));
    }
    let name = name.to_ascii_lowercase();
    match OF_THE_SERVER.contains(&&*name) {
        true => Err(format!(
            "Highball alone decides the header field `{name}`, which belongs to the connection or the body"
        )),
        false => Ok(name),
    }
}

fn field_value(value: &str) -> Result<String, String> {
    let value = value.trim();
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    match (1..=VALUE_BYTES).contains(&value.len()) && value.bytes().all(is_text) {
        true => Ok(value.to_owned()),
        false => Err(format!(
            "the value of a header field has 1 to {VALUE_BYTES} bytes, without control characters"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        let set = |value: &str| HeaderChange::Set(value.to_owned());
        for (text, path, name, change) in [
            ("X-Frame-Options: DENY", None, "x-frame-options", set("DENY")),
            ("X-Frame-Options:DENY", None, "x-frame-options", set("DENY")),
            (
                "/a/*  Cache-Control:  max-age=60, public ",
                Some("/a/*"),
                "cache-control",
                set("max-age=60, public"),
            ),
            ("/a Location: http://x:1/", Some("/a"), "location", set("http://x:1/")),
            (
                "/a +Link: </b>; rel=preload",
                Some("/a"),
                "link",
                HeaderChange::Add("</b>; rel=preload".into()),
            ),
            ("-X-Runtime", None, "x-runtime", HeaderChange::Remove),
            ("/a -X-Runtime", Some("/a"), "x-runtime", HeaderChange::Remove),
        ] {
            let read = header_rule(text).unwrap();
            assert_eq!(read.pattern.as_ref().map(|pattern| &*pattern.0), path, "{text}");
            assert_eq!((&*read.name, &read.change), (name, &change), "{text}");
        }
    }

    #[test]
    fn what_is_no_change_is_refused() {
        for text in [
            "",
            "X-Frame-Options",
            "X-Frame-Options:",
            "X Frame: a",
            ": a",
            "-",
            "-X: a",
            "--X",
            "+X",
            "/a",
            "/a*b X: 1",
            "a X: 1",
            "X: a\r\nSet-Cookie: b",
            "X: a\u{0}",
            "X\u{e4}: a",
            "Content-Length: 3",
            "-transfer-encoding",
            "+Connection: close",
            "Date: now",
        ] {
            assert!(header_rule(text).is_err(), "{text:?}: {:?}", header_rule(text));
        }
    }
}
