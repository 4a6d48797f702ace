//! Values as they are written: their quotes, and placeholders for no value or for source code that fetches one.

use crate::names::is_telling;
use std::ops::Range;

/// Quotes that are written in another way: as entities, percent-encoded, and those of typesetting. What opens, what closes.
pub(crate) const QUOTES: &[(&str, &str)] = &[
    ("&quot;", "&quot;"),
    ("&#34;", "&#34;"),
    ("&#39;", "&#39;"),
    ("&#x27;", "&#x27;"),
    ("&#x22;", "&#x22;"),
    ("&apos;", "&apos;"),
    ("%22", "%22"),
    ("%27", "%27"),
    ("\\u0022", "\\u0022"),
    ("\u{201c}", "\u{201d}"),
    ("\u{201e}", "\u{201c}"),
    ("\u{2018}", "\u{2019}"),
];
/// Values that are none.
const NO_VALUES: &[&str] = &[
    "true",
    "false",
    "nil",
    "null",
    "none",
    "undefined",
    "~",
    "yes",
    "no",
    "on",
    "off",
    "{",
    "{}",
    "[]",
    "|",
    "[FILTERED]",
    "FILTERED",
    "(none)",
    "...",
];
/// How source code begins that fetches a secret and holds none.
const CODE: &[&str] = &[
    "ENV[",
    "ENV.",
    "<%",
    "Rails.",
    "$(",
    "${",
    "params[",
    "params.",
    "-> {",
    "->(",
    "lambda {",
    "proc {",
    "self.",
    "Proc.new",
    "SecureRandom.",
    "Digest::",
    "OpenSSL::",
    "BCrypt::",
    "JWT.",
    "request.",
    "config.",
    "credentials.",
];

/// Whether this is the name of what follows, and no secret: `key="password" value="x"`.
pub(crate) fn is_name_of_key(name: &str, value: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || b"_-".contains(&byte);
    name.eq_ignore_ascii_case("key") && value.len() <= 64 && value.bytes().all(is_letter) && is_telling(value)
}

/// Whether a value stands for none.
pub(crate) fn is_no_value(value: &str) -> bool {
    let is_interpolation = value.starts_with("#{") && value.find('}') == Some(value.len() - 1);
    value.is_empty()
        || is_interpolation
        || (value.starts_with("<%=") && value.ends_with("%>"))
        || NO_VALUES.iter().any(|none| value.eq_ignore_ascii_case(none))
}

/// Whether this begins with source code that fetches a value.
pub(crate) fn is_code(value: &str) -> bool {
    let symbol = value.strip_prefix(':').and_then(|rest| rest.chars().next());
    CODE.iter().any(|code| value.starts_with(code))
        || symbol.is_some_and(|first| first.is_ascii_lowercase() || first == '_')
}

/// The content of a quoted text that begins here: to its closing quote, or, where there is none, to the end of the line.
/// Quotes that are escaped are part of it; where the quote itself is escaped, as in JSON within JSON, quotes with
/// more escapes are.
pub(crate) fn quoted(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let rest = text.get(start..)?;
    if let Some((open, close)) = QUOTES.iter().find(|(open, _)| rest.starts_with(open)) {
        let content = &rest[open.len()..];
        let end = content.find(close).unwrap_or(content.len());
        let end = content[..end].find('\n').unwrap_or(end);
        return Some(start + open.len()..start + open.len() + end);
    }
    let level = bytes[start.min(bytes.len())..].iter().take(16).take_while(|byte| **byte == b'\\').count();
    let quote = *bytes.get(start + level).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    let content = start + level + 1;
    let mut at = content;
    let mut backslashes = 0;
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            b'\\' => backslashes += 1,
            byte if byte == quote => {
                let is_doubled = quote == b'\'' && level == 0 && bytes.get(at + 1) == Some(&b'\'');
                let closes = if level == 0 { backslashes % 2 == 0 } else { backslashes <= level };
                if is_doubled && at > content {
                    at += 1; // YAML: 'it''s'
                } else if closes {
                    return Some(content..at - if level == 0 { 0 } else { backslashes });
                }
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        at += 1;
    }
    Some(content..at)
}

/// The length of the quote that this begins with; 0: it is none.
pub(crate) fn closing_quote(text: &str) -> usize {
    let other = QUOTES.iter().find(|(_, close)| text.starts_with(close)).map(|(_, close)| close.len());
    other.unwrap_or(usize::from(text.starts_with(['"', '\'', '`'])))
}
