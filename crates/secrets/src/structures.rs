//! Values within structures behind a telling name: `"auth": {"password": "…"}`, `tokens: ["…"]`, `<auth><x>…</x></auth>`.
//!
//! The name of the whole says that there are secrets within. So every value is one, unless its own name is known to be
//! harmless (`user`, `host`), or it is a word that stands for none, or source code.

use crate::names::is_telling;
use crate::tokens::is_unlike_a_word;
use crate::values::{closing_quote, is_code, is_name_of_key, is_no_value, quoted};
use std::ops::Range;

/// How far a structure is followed, in bytes, and how deep: it keeps the time linear.
const BYTES: usize = 64 * 1024;
const DEPTH: usize = 64;
/// The same for an element of XML, and the longest tag.
const ELEMENT_BYTES: usize = 2048;
const TAG_BYTES: usize = 256;
/// Names within whose values are no secrets.
const PLAIN: &[&str] = &[
    "action",
    "adapter",
    "algorithm",
    "alg",
    "class",
    "controller",
    "created_at",
    "database",
    "date",
    "description",
    "driver",
    "email",
    "enabled",
    "encoding",
    "env",
    "environment",
    "expires",
    "expires_at",
    "expires_in",
    "format",
    "host",
    "hostname",
    "id",
    "issuer",
    "kind",
    "kty",
    "label",
    "lang",
    "language",
    "length",
    "level",
    "locale",
    "login",
    "max",
    "message",
    "method",
    "min",
    "mode",
    "model",
    "name",
    "path",
    "pool",
    "port",
    "provider",
    "realm",
    "reason",
    "region",
    "role",
    "roles",
    "scheme",
    "scope",
    "scopes",
    "size",
    "status",
    "strategy",
    "timeout",
    "title",
    "ttl",
    "type",
    "typ",
    "updated_at",
    "url",
    "user",
    "user_id",
    "username",
    "valid",
    "version",
];

/// What is known of the value that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// It has a telling name, or none and stands in a list behind one.
    Telling,
    /// Its name says nothing.
    Unknown,
    /// It is known to be no secret.
    Plain,
}

/// An open bracket.
struct Level {
    closer: u8,
    /// What the values are by what stands before the bracket.
    outer: Named,
}

/// Adds the places of secrets in the structure that begins here. Where it ends; `None`: it is none.
pub(crate) fn take(text: &str, start: usize, spans: &mut Vec<Range<usize>>) -> Option<usize> {
    let limit = floor(text, start + BYTES);
    let mut walk = Walk {
        text: &text[..limit],
        limit,
        levels: Vec::new(),
        named: Named::Telling,
        found: Vec::new(),
        is_deep: false,
    };
    let end = walk.run(start);
    let is_whole = walk.levels.is_empty();
    let next = text.as_bytes().get(end).copied().unwrap_or(b' ');
    // `{abc` and `{SHA}abc=` are values without structure.
    if (is_whole && (next.is_ascii_alphanumeric() || b"+/=$@!".contains(&next)))
        || (!is_whole && !walk.is_deep && walk.found.is_empty())
    {
        return None;
    }
    spans.append(&mut walk.found);
    Some(end)
}

struct Walk<'a> {
    text: &'a str,
    limit: usize,
    levels: Vec<Level>,
    named: Named,
    found: Vec<Range<usize>>,
    /// Whether there are too many brackets to go on.
    is_deep: bool,
}

impl Walk<'_> {
    /// From an opening bracket to behind its closing bracket, or to where the text is no structure.
    fn run(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = start;
        while at < self.limit {
            match bytes[at] {
                open @ (b'{' | b'[' | b'(') => {
                    if self.levels.len() == DEPTH || bytes[at + 1..].starts_with(b"|") {
                        self.is_deep = self.levels.len() == DEPTH;
                        return at;
                    }
                    let closer = match open {
                        b'{' => b'}',
                        b'[' => b']',
                        _ => b')',
                    };
                    self.levels.push(Level { closer, outer: self.named });
                    self.start_value();
                    at += 1;
                }
                close @ (b'}' | b']' | b')') => {
                    if self.levels.last().is_none_or(|level| level.closer != close) {
                        return at;
                    }
                    self.levels.pop();
                    at += 1;
                    if self.levels.is_empty() {
                        return at;
                    }
                    self.start_value();
                }
                b',' | b';' | b'\n' => {
                    self.start_value();
                    at += 1;
                }
                b'"' | b'\'' | b'`' | b'\\' | b'&' | b'%' | 0xe2 => at = self.quoted(at),
                b':' if bytes.get(at + 1).is_some_and(|next| next.is_ascii_lowercase() || *next == b'_') => {
                    at = self.word(at);
                }
                byte if byte.is_ascii_whitespace() || b":=>|<#".contains(&byte) => at += 1,
                _ => at = self.word(at),
            }
        }
        at
    }

    /// Another value begins, which has no name yet.
    fn start_value(&mut self) {
        let Some(level) = self.levels.last() else { return };
        self.named = match level.outer {
            Named::Telling if level.closer == b'}' => Named::Unknown,
            outer => outer,
        };
    }

    fn quoted(&mut self, at: usize) -> usize {
        let Some(content) = quoted(self.text, at) else {
            return at + self.text[at..].chars().next().map_or(1, char::len_utf8);
        };
        let bytes = self.text.as_bytes();
        let escapes = bytes[content.end..].iter().take(16).take_while(|byte| **byte == b'\\').count();
        let rest = &self.text[content.end + escapes..];
        let closing = closing_quote(rest);
        let end = content.end + escapes + closing;
        if self.is_key(end) {
            self.name(content.clone());
        } else if self.named != Named::Plain && !is_no_value(&self.text[content.clone()]) {
            self.found.push(content.clone());
        }
        end.max(at + 1)
    }

    fn word(&mut self, at: usize) -> usize {
        let rest = &self.text[at..self.limit.max(at)];
        let symbol = usize::from(rest.starts_with(':'));
        let ends = |one: char| one.is_whitespace() || ",;{}[]()\"'`=<>&".contains(one);
        let length =
            rest[symbol..].find(|one: char| ends(one) || one == ':').map_or(rest.len(), |end| end + symbol);
        let length = length.max(rest.chars().next().map_or(1, char::len_utf8));
        let end = at + length;
        if self.is_key(end) {
            self.name(at + symbol..end);
            return end;
        }
        if symbol > 0 || is_code(rest) || matches!(rest.as_bytes().get(length), Some(b'(' | b'[')) {
            return at + code_length(rest, length);
        }
        let length = rest.find(ends).unwrap_or(rest.len()).max(length);
        let value = &rest[..length];
        let is_number = value.len() >= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
        let is_secret = match self.named {
            Named::Telling => true,
            Named::Unknown => is_unlike_a_word(value) || is_number,
            Named::Plain => false,
        };
        if is_secret && !is_no_value(value) {
            self.found.push(at..at + length);
        }
        at + length
    }

    /// Whether what ends here is the name of what follows.
    fn is_key(&self, end: usize) -> bool {
        let rest = self.text.as_bytes().get(end..).unwrap_or_default();
        let blanks = rest.iter().take(4).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match &rest[blanks..] {
            [b':', next, ..] => *next != b':',
            [b'=', b'>', ..] => true,
            [b'=', next, ..] => *next != b'=' && *next != b'~',
            _ => false,
        }
    }

    fn name(&mut self, name: Range<usize>) {
        let name = &self.text[name];
        let outer = self.levels.last().map_or(Named::Telling, |level| level.outer);
        self.named = if is_telling(name) {
            Named::Telling
        } else if outer == Named::Plain || PLAIN.contains(&crate::names::words(name).join("_").as_str()) {
            Named::Plain
        } else {
            Named::Unknown
        };
    }
}

/// Source code goes to the end of its item, or of the brackets that follow at once.
fn code_length(rest: &str, word: usize) -> usize {
    let rest = &rest[..floor(rest, word + TAG_BYTES)];
    let close = match rest.as_bytes().get(word) {
        Some(b'(') => ')',
        Some(b'[') => ']',
        _ => return word.max(rest.find([',', '}', ']', ')', '\n']).unwrap_or(rest.len())),
    };
    let line = rest.find('\n').unwrap_or(rest.len());
    rest[word..line].find(close).map_or(word + 1, |end| word + end + 1)
}

/// Adds the places of secrets in the element of XML with this name, also where its brackets are escaped. Where it ends; `None`:
/// this is no element.
pub(crate) fn element(text: &str, name: Range<usize>, spans: &mut Vec<Range<usize>>) -> Option<usize> {
    let before = &text.as_bytes()[..name.start];
    let prefix = before
        .iter()
        .rev()
        .take(32)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b':')
        .count();
    let open = name.start - if before.ends_with(b":") { prefix } else { 0 };
    let (less, greater) =
        [("<", ">"), ("&lt;", "&gt;")].into_iter().find(|(less, _)| text[..open].ends_with(less))?;
    let tag_limit = floor(text, name.end + TAG_BYTES);
    let tag = &text[name.end..tag_limit];
    let tag_end = tag.find(greater).filter(|end| tag.find(less).is_none_or(|next| next > *end))?;
    let tag = &tag[..tag_end];
    for attribute in ["value=", "content=", "text="] {
        let value = tag.find(attribute).and_then(|at| quoted(text, name.end + at + attribute.len()));
        spans.extend(
            value.filter(|value| value.end <= name.end + tag_end && !is_no_value(&text[value.clone()])),
        );
    }
    let content = name.end + tag_end + greater.len();
    let key = text[content..].split('<').next().unwrap_or_default();
    if is_name_of_key(&text[name.clone()], key) {
        return None;
    }
    if tag.ends_with('/') {
        return Some(content);
    }
    Some(nodes(text, content, &text[open..name.end], (less, greater), spans))
}

/// The texts within an element, to its closing tag, or, where that is far, the first.
fn nodes(
    text: &str,
    start: usize,
    name: &str,
    (less, greater): (&str, &str),
    spans: &mut Vec<Range<usize>>,
) -> usize {
    let within = &text[start..floor(text, start + ELEMENT_BYTES)];
    let close = within.find(&format!("{less}/{name}"));
    let mut at = 0;
    let mut is_plain = false;
    while let Some(next) = within[at..].find(less).map(|next| at + next) {
        let cdata = format!("{less}![CDATA[");
        let (node, after) = match within[next..].strip_prefix(&cdata) {
            Some(rest) => {
                let from = next + cdata.len();
                let end = rest.find("]]").map_or(within.len(), |end| from + end);
                (from..end, end)
            }
            None => (at..next, next),
        };
        let value = within[node.clone()].trim();
        if !is_plain && !value.is_empty() && !is_no_value(value) {
            let begin = start + node.start + within[node.clone()].find(value).unwrap_or_default();
            spans.push(begin..begin + value.len());
        }
        let Some(close) = close.filter(|close| after < *close) else { return start + after };
        let tag = &within[after..close];
        let tag_name = tag.trim_start_matches(less);
        let length = tag_name.find(|one: char| !one.is_ascii_alphanumeric() && !"_-".contains(one));
        let tag_name = &tag_name[..length.unwrap_or(tag_name.len())];
        is_plain = PLAIN.contains(&crate::names::words(tag_name).join("_").as_str());
        at = tag.find(greater).map_or(close, |end| after + end + greater.len());
    }
    start + at
}

/// The last boundary of a character up to here.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}
