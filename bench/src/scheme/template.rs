//! Text with placeholders such as `{port}`: commands, environments and configuration files of a scheme.
//!
//! A placeholder is a word of small letters and `_` in braces; braces around anything else are just text, so that
//! configuration files need no escapes.

use std::collections::BTreeMap;

/// Placeholders that every text may hold.
pub(crate) const EVERYWHERE: [&str; 9] =
    ["app", "port", "dir", "workers", "threads", "highball", "floor", "certificate", "key"];
/// Placeholders of a text that is written once for each backend: its number from 1, and where it listens.
pub(crate) const PER_BACKEND: [&str; 3] = ["backend", "backend_port", "socket"];

/// What placeholders stand for.
pub(crate) type Values = BTreeMap<&'static str, String>;

enum Piece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Cuts a text at its placeholders.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, name, after)) = first_placeholder(rest) {
        found.push(Piece::Text(before));
        found.push(Piece::Placeholder(name));
        rest = after;
    }
    found.push(Piece::Text(rest));
    found
}

/// The first placeholder's name, with what stands before and behind it.
fn first_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('{').find_map(|(at, _)| {
        let (name, after) = text[at + 1..].split_once('}')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then_some((&text[..at], name, after))
    })
}

/// The placeholders of a text, in order.
pub(crate) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Placeholder(name) => Some(name),
        Piece::Text(_) => None,
    })
}

/// Whether the text is to be written once for each backend.
pub(crate) fn names_backend(text: &str) -> bool {
    placeholders(text).any(|name| PER_BACKEND.contains(&name))
}

/// The text with all placeholders replaced. Reading a scheme has refused unknown ones; what has no value stays.
pub(crate) fn fill(text: &str, values: &Values) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Placeholder(name) => match values.get(name) {
                Some(value) => filled.push_str(value),
                None => filled.extend(["{", name, "}"]),
            },
        }
    }
    filled
}

/// The texts filled in: once, or once for each backend where a text names one.
pub(crate) fn fill_each<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    values: &Values,
    backends: &[Values],
) -> Vec<String> {
    let filled = |text: &'a str| match names_backend(text) {
        true => backends.iter().map(|backend| fill(text, backend)).collect(),
        false => vec![fill(text, values)],
    };
    texts.into_iter().flat_map(filled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&'static str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    }

    #[test]
    fn braces_around_anything_else_are_text() {
        let text = "http { server { listen {port}; } } #{Name} {} { port } {a b} {{port}}";
        assert_eq!(placeholders(text).collect::<Vec<_>>(), ["port", "port"]);
        let expected = "http { server { listen 80; } } #{Name} {} { port } {a b} {80}";
        assert_eq!(fill(text, &values(&[("port", "80")])), expected);
    }

    #[test]
    fn a_text_that_names_a_backend_is_repeated() {
        let backends =
            [values(&[("socket", "/1"), ("port", "80")]), values(&[("socket", "/2"), ("port", "80")])];
        let filled = fill_each(["{port}", "at {socket}"], &values(&[("port", "80")]), &backends);
        assert_eq!(filled, ["80", "at /1", "at /2"]);
    }
}
