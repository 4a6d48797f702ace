//! Values that stand behind a telling name: `name: value`, `name=value`, `"name" => "value"`, and in sentences `password
//! 'value'`, `password is value`.

use crate::names::{is_exception, is_suspicious, is_telling};
use crate::structures;
use crate::tokens::is_unlike_a_word;
use crate::values::{is_code, is_name_of_key, is_no_value, quoted, QUOTES};
use crate::MASK;
use std::ops::Range;

/// What may stand between a name and what sets it, in bytes: quotes, brackets, blanks.
const CLOSERS: usize = 24;
/// Signs between a name and its value that are written in another way.
const SIGNS: &[(&str, Sign)] = &[
    ("=&gt;", Sign::Arrow),
    ("%3A", Sign::Colon),
    ("%3D", Sign::Equals),
    ("\u{ff1a}", Sign::Colon),
    ("\u{ff1d}", Sign::Equals),
];
/// The same where they also mean other things: only a quoted value, or a value unlike a word, is a secret.
const WEAK_SIGNS: &[&str] = &["->", "\u{2192}", "-&gt;"];
/// Words that name a name: `name="password" value="x"`.
const NAMERS: &[&str] =
    &["name", "key", "id", "field", "header", "param", "parameter", "variable", "env", "property"];
/// Tasks of Rails and rake in namespaces that look like names: `bin/rails credentials:edit`.
const TASKS: &[&str] = &[
    "edit", "show", "diff", "fetch", "help", "setup", "init", "generate", "rotate", "enroll", "list",
    "check", "install", "create", "change", "new",
];
/// How much of a value is looked at to see what its name is, in bytes: it keeps the time linear.
const VALUE_BYTES: usize = 4096;
/// Names that are followed by a value without any sign in sentences: `wrong password 'x'`.
const IN_SENTENCES: &[&str] =
    &["password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "credentials"];
/// Names behind which a word is always a value: `apikey x`.
const IN_COMMANDS: &[&str] = &[
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "secret_key",
    "secret-key",
    "bindpw",
    "auth_token",
];
/// Words before `key` that make the two a name: `api key x`.
const BEFORE_KEY: &[&str] = &["api", "access", "secret", "license", "account"];
/// What sentences say about passwords, and is none.
const PREDICATES: &[&str] = &[
    "a",
    "about",
    "all",
    "allowed",
    "already",
    "an",
    "and",
    "are",
    "as",
    "at",
    "authentication",
    "available",
    "based",
    "be",
    "been",
    "being",
    "blank",
    "by",
    "can",
    "cannot",
    "could",
    "correct",
    "currently",
    "defined",
    "did",
    "does",
    "don't",
    "empty",
    "error",
    "expired",
    "failed",
    "for",
    "found",
    "from",
    "given",
    "has",
    "have",
    "hidden",
    "if",
    "in",
    "incorrect",
    "invalid",
    "is",
    "it",
    "length",
    "malformed",
    "managers",
    "mismatch",
    "missing",
    "must",
    "needed",
    "never",
    "nil",
    "no",
    "not",
    "now",
    "null",
    "of",
    "on",
    "only",
    "optional",
    "or",
    "out",
    "provided",
    "required",
    "reset",
    "revoked",
    "set",
    "should",
    "still",
    "that",
    "the",
    "to",
    "too",
    "unknown",
    "unset",
    "used",
    "valid",
    "value",
    "was",
    "weak",
    "were",
    "will",
    "with",
    "without",
    "wrong",
];
/// What validations say of a password.
const VALIDATIONS: &[&str] = &[
    "can't be blank",
    "cannot be blank",
    "is too ",
    "is invalid",
    "is required",
    "doesn't match",
    "must be ",
    "must have",
    "has already been",
];
/// What ends a value behind a full-width sign, and a percent-encoded value.
const WIDE_ENDS: [char; 4] = ['\u{ff0c}', '\u{ff1b}', '\u{3002}', '\u{3001}'];
const ENCODED_ENDS: &[&str] = &["%26", "%2C", "%7D", "%22", "%27", "%0A", "%20"];

/// The longest name of a method that is looked at, in bytes.
const NAME_BYTES: usize = 100;

/// How a value is joined to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `=`, with nothing before it.
    Equals,
    /// `=>`
    Arrow,
    /// `:`
    Colon,
    /// `password is x`
    Is,
    /// `password 'x'`, `apikey x`
    Blank,
}

/// A name, and what sets its value.
#[derive(Debug)]
struct Setting<'a> {
    text: &'a str,
    name: Range<usize>,
    sign: Sign,
    /// Whether a quote or a bracket stands behind the name.
    is_closed: bool,
    /// Where the value begins: a quote, if it has one.
    value: usize,
}

/// Adds the places of values with telling names.
pub(crate) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut at = 0;
    while at < bytes.len() {
        if !is_name(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_name(bytes[at]) {
            at += 1;
        }
        if is_telling(&text[start..at]) {
            if let Some(end) = structures::element(text, start..at, spans) {
                at = at.max(end);
                continue;
            }
        }
        if let Some(end) = setting(text, start..at).and_then(|setting| setting.take(spans)) {
            at = at.max(end);
        }
    }
}

/// What is set by this name, if it is the name of a secret.
fn setting(text: &str, name: Range<usize>) -> Option<Setting<'_>> {
    let word = &text[name.clone()];
    let (telling, suspicious) = (is_telling(word), is_suspicious(word));
    if !suspicious {
        return None;
    }
    let bytes = text.as_bytes();
    let (sign, is_closed, value) = sign(text, name.clone())?;
    let is_object = bytes[value..].starts_with(b"0x") && bytes[name.start].is_ascii_uppercase();
    let is_exception = sign == Sign::Colon
        && bytes.get(value.saturating_sub(1)).is_some_and(u8::is_ascii_whitespace)
        && (is_exception(word) || text[..name.start].ends_with("::"));
    if is_object || is_exception {
        return None;
    }
    let setting = Setting { text, name, sign, is_closed, value };
    (telling || setting.is_of_variable_or_parameter()).then_some(setting)
}

/// What stands behind a name: how the value is joined, whether quotes or brackets close the name, where the value begins.
fn sign(text: &str, name: Range<usize>) -> Option<(Sign, bool, usize)> {
    let bytes = text.as_bytes();
    let mut at = name.end;
    let limit = bytes.len().min(at + CLOSERS);
    while at < limit {
        let other = QUOTES.iter().map(|(_, close)| *close).chain(["%5D", "%5d"]);
        let length = other.filter(|quote| bytes[at..].starts_with(quote.as_bytes())).map(str::len).max();
        match length {
            Some(length) => at += length,
            None if b" \t\"'`])\\".contains(&bytes[at]) => at += 1,
            None => break,
        }
    }
    let between = &bytes[name.end..at.min(bytes.len())];
    let is_closed = between.iter().any(|byte| !matches!(byte, b' ' | b'\t'));
    let sign = match (bytes.get(at)?, bytes.get(at + 1)) {
        (b':', Some(b':')) | (b'=', Some(b'=' | b'~')) => return None,
        (b':', Some(b'/')) if bytes.get(at + 2) == Some(&b'/') => return None,
        (b'=', Some(b'>')) => Some((Sign::Arrow, 2)),
        (b':', Some(b'=')) => Some((Sign::Colon, 2)),
        (b'=', _) => Some((Sign::Equals, 1)),
        (b':', _) => Some((Sign::Colon, 1)),
        _ => None,
    };
    let other = SIGNS.iter().find(|(sign, _)| bytes[at..].starts_with(sign.as_bytes()));
    let other = other.map(|(text, sign)| (*sign, text.len()));
    if let Some((sign, length)) = other.or(sign) {
        return Some((sign, is_closed, after_blanks(bytes, at + length)));
    }
    let has_gap = at > name.end;
    if let Some(value) = WEAK_SIGNS.iter().find(|sign| has_gap && bytes[at..].starts_with(sign.as_bytes())) {
        let value = after_blanks(bytes, at + value.len());
        let is_value = quoted(text, value).is_some() || is_unlike_a_word(word_at(text, value));
        return is_value.then_some((Sign::Blank, is_closed, value));
    }
    if let Some(value) = value_of_pair(text, name.clone(), at) {
        return Some((Sign::Colon, true, value));
    }
    in_sentence(text, name).map(|(sign, value)| (sign, false, value))
}

/// `name="password" value="x"`, `{"key":"password","value":"x"}`, `- name: PASSWORD` with `value: x` below, `<key>password</key>
/// <string>x</string>`, `["--password", "x"]`: where the value begins. `at`: behind what closes the name.
fn value_of_pair(text: &str, name: Range<usize>, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_gap = |byte: &u8| byte.is_ascii_whitespace() || b",;\"'\\`-".contains(byte);
    let gap =
        |at: usize| bytes[at.min(bytes.len())..].iter().take(CLOSERS).take_while(|byte| is_gap(byte)).count();
    if text[name.clone()].starts_with("--") {
        let comma = bytes.get(at) == Some(&b',') && at > name.end;
        return comma.then(|| after_blanks(bytes, at + 1));
    }
    if let Some(rest) = text[name.end..].strip_prefix("</key>") {
        let blanks = rest.bytes().take(64).take_while(u8::is_ascii_whitespace).count();
        return rest[blanks..].starts_with("<string>").then_some(name.end + 14 + blanks);
    }
    let before = text[..name.start].trim_end_matches(|one: char| " \t\"'\\`:=>".contains(one));
    if before.len() == name.start || name.start - before.len() > CLOSERS {
        return None;
    }
    let word = before.rsplit(|one: char| !one.is_ascii_alphanumeric()).next().unwrap_or_default();
    if !NAMERS.contains(&word.to_ascii_lowercase().as_str()) {
        return None;
    }
    let from = at + gap(at);
    let length =
        ["value", "Value", "VALUE"].iter().find(|word| bytes[from..].starts_with(word.as_bytes()))?.len();
    let closed = from + length + gap(from + length);
    let sign = match (bytes.get(closed), bytes.get(closed + 1)) {
        (Some(b'='), Some(b'>')) => 2,
        (Some(b'=' | b':'), _) => 1,
        _ => return None,
    };
    Some(after_blanks(bytes, closed + sign))
}

fn after_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// `password 'x'`, `password is x`, `apikey x`, `--password x`
fn in_sentence(text: &str, name: Range<usize>) -> Option<(Sign, usize)> {
    let bytes = text.as_bytes();
    let value = after_blanks(bytes, name.end);
    let first = *bytes.get(value).filter(|_| value > name.end)?;
    let word = text[name.clone()].to_ascii_lowercase();
    let mut before = text[..name.start].trim_end().rsplit(|one: char| !one.is_ascii_alphanumeric());
    let before = before.next().unwrap_or_default().to_ascii_lowercase();
    let is_option = word.starts_with('-');
    let is_command = is_option
        || IN_COMMANDS.contains(&word.as_str())
        || (word == "key" && BEFORE_KEY.contains(&before.as_str()));
    if before.ends_with("expected") || !(is_command || IN_SENTENCES.contains(&word.as_str())) {
        return None;
    }
    if matches!(first, b'"' | b'\'' | b'`')
        || (first == b'\\' && matches!(bytes.get(value + 1), Some(b'"' | b'\'')))
    {
        return Some((Sign::Blank, value));
    }
    let next = word_at(text, value);
    if let "is" | "was" | "are" | "equals" = next {
        let mut value = after_blanks(bytes, value + next.len());
        for words in ["now ", "currently ", "set to ", "changed to ", "still "] {
            let is_given = text[value..]
                .strip_prefix(words)
                .is_some_and(|rest| rest.starts_with(['"', '\'', '`']) || is_unlike_a_word(word_at(rest, 0)));
            value += if is_given { words.len() } else { 0 };
        }
        let value = if bytes.get(value) == Some(&b':') { after_blanks(bytes, value + 1) } else { value };
        return (!is_predicate(word_at(text, value))).then_some((Sign::Is, value));
    }
    let is_value = !is_predicate(next) && !next.starts_with('-') && (is_command || is_unlike_a_word(next));
    is_value.then_some((Sign::Blank, value))
}

/// The word that begins here, without the points behind it.
fn word_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let word = rest.split(|one: char| one.is_ascii_whitespace()).next().unwrap_or_default();
    word.trim_end_matches(['.', ',', ';', ':', ')', '!', '?'])
}

fn is_predicate(word: &str) -> bool {
    word.is_empty() || PREDICATES.contains(&word.to_ascii_lowercase().as_str())
}

impl Setting<'_> {
    /// Adds the places of secrets. Where the value ends; `None`: it has none.
    fn take(&self, spans: &mut Vec<Range<usize>>) -> Option<usize> {
        let rest = &self.text[self.value..];
        if self.sign != Sign::Blank && rest.starts_with(['{', '[']) && !rest.starts_with(MASK) {
            if let Some(end) = structures::take(self.text, self.value, spans) {
                return Some(end);
            }
        }
        if let Some(block) = self.block() {
            let end = block.end;
            spans.push(block);
            return Some(end);
        }
        let value = self.secret().filter(|value| !value.is_empty())?;
        if is_name_of_key(&self.text[self.name.clone()], &self.text[value.clone()]) {
            return None;
        }
        let end = value.end;
        spans.push(value);
        Some(end)
    }

    /// A value of YAML on separate lines: `password: |`, and lists below a name. They are indented more than the name, or
    /// begin with `- `.
    fn block(&self) -> Option<Range<usize>> {
        let before = &self.text.as_bytes()[..self.name.start];
        let indent = before.iter().rev().take(CLOSERS * 2).take_while(|byte| b" -\"'".contains(byte)).count();
        if self.sign != Sign::Colon
            || before[..before.len() - indent].last().is_some_and(|byte| *byte != b'\n')
        {
            return None;
        }
        let head_end = self.value + self.text[self.value..].find('\n')?;
        let head = self.text[self.value..head_end].trim_end();
        let is_text = matches!(head, "|" | ">" | "|-" | ">-" | "|+" | ">+");
        if !is_text && !head.is_empty() {
            return None;
        }
        let mut end = head_end;
        for line in self.text[head_end + 1..].split('\n') {
            let content = line.trim_start();
            let is_within = if is_text {
                content.is_empty() || line.len() - content.len() > indent
            } else {
                let item = content.strip_prefix("- ").filter(|_| line.len() - content.len() >= indent);
                item.is_some_and(|item| {
                    !item.is_empty() && !item.contains(": ") && !item.ends_with(':') && !is_code(item)
                })
            };
            if !is_within || end - head_end > VALUE_BYTES * 4 {
                break;
            }
            end += 1 + line.len();
        }
        let block = &self.text[head_end + 1..end.max(head_end + 1).min(self.text.len())];
        (!block.trim().is_empty()).then(|| head_end + 1..head_end + 1 + block.trim_end().len())
    }

    /// The place of the secret; `None`: the value is none.
    fn secret(&self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let mut start = self.value;
        if self.text[start..].starts_with(MASK) && self.sign != Sign::Blank {
            return Some(start..self.end_of_unquoted(start));
        }
        if self.sign != Sign::Blank && matches!(bytes.get(start), Some(b'(' | b'[')) {
            start += 1; // Key (token)=(x), tokens: ["x"]
        }
        if matches!(bytes.get(start..start + 2), Some([b'b' | b'r' | b'u', b'"' | b'\''])) {
            start += 1;
        }
        if let Some(value) = quoted(self.text, start) {
            return (!self.is_harmless(&self.text[value.clone()])).then_some(value);
        }
        if self.is_code(&self.text[start..]) || self.is_task() {
            return None; // before its end is looked for: there may be much of it
        }
        let end = match self.sign {
            _ if self.is_header() => self.end_of_header(start),
            Sign::Blank => start + word_at(self.text, start).len(),
            _ => self.end_of_unquoted(start),
        };
        (!self.is_harmless(&self.text[start..end])).then_some(start..end)
    }

    /// Whether this is a task in a namespace: `credentials:edit`, `rails secret:x`.
    fn is_task(&self) -> bool {
        if self.sign != Sign::Colon || self.is_closed || self.value != self.name.end + 1 {
            return false;
        }
        let rest = &self.text[self.value..];
        let length =
            rest.bytes().take_while(|byte| byte.is_ascii_lowercase() || b"_:".contains(byte)).count();
        let is_end = rest[length..]
            .chars()
            .next()
            .is_none_or(|next| !next.is_alphanumeric() && !"-=/@".contains(next));
        let before = &self.text.as_bytes()[..self.name.start];
        let is_of_task = |byte: &&u8| byte.is_ascii_lowercase() || b"_:".contains(byte);
        let spaces = before.iter().rev().take(64).take_while(is_of_task).count();
        let before = &before[..before.len() - spaces];
        let is_of_command = before.ends_with(b"rails ") || before.ends_with(b"rake ");
        length > 0 && is_end && (is_of_command || TASKS.contains(&&rest[..length]))
    }

    /// Whether all that follows in the line is the value: credentials and cookies.
    fn is_header(&self) -> bool {
        let name = self.text[self.name.clone()].to_ascii_lowercase();
        matches!(self.sign, Sign::Colon | Sign::Equals)
            && (name.ends_with("cookie") || name.ends_with("authorization"))
    }

    /// A header field in quotes (`-H 'Cookie: a=b; c=d'`) ends with them.
    fn end_of_header(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let quote = self.name.start.checked_sub(1).map(|before| bytes[before]);
        let quote = quote.filter(|byte| !self.is_closed && matches!(byte, b'"' | b'\'' | b'`'));
        let ends = |byte: &u8| *byte == b'\n' || Some(*byte) == quote;
        let end = bytes[start..].iter().position(ends).map_or(bytes.len(), |length| start + length);
        start + self.text[start..end].trim_end().len()
    }

    /// Where a value without quotes ends. It may hold blanks, quotes and brackets; what follows another sign, a comment
    /// or the end of a list is not of it.
    fn end_of_unquoted(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let is_parameter = self.is_parameter_of_url() || self.text[self.name.clone()].starts_with("--");
        let before = &self.text[self.name.end..start];
        let is_wide = before.contains(['\u{ff1a}', '\u{ff1d}']);
        let is_encoded = before.contains("%3");
        let mut at = start;
        while at < bytes.len() {
            if (is_wide && self.text.is_char_boundary(at) && self.text[at..].starts_with(WIDE_ENDS))
                || (is_encoded && ENCODED_ENDS.iter().any(|end| bytes[at..].starts_with(end.as_bytes())))
            {
                break;
            }
            let rest = &bytes[at + 1..];
            let is_end = |more: &[u8]| {
                rest.first().is_none_or(|next| next.is_ascii_whitespace() || more.contains(next))
            };
            let ends = match bytes[at] {
                b'\n' | b';' => true,
                b' ' | b'\t' => is_parameter || is_end(b"#(") || begins_setting(rest),
                b'&' => is_parameter || begins_setting(rest),
                b',' => is_end(b"\"':"),
                b'"' | b'\'' | b'`' => is_end(b",;)]}:=.\"'"),
                b')' | b'}' | b'>' => is_end(b".,;:)]}\"'>"),
                b']' => !self.text[..=at].ends_with(MASK) && is_end(b".,;:)]}\"'>"),
                b'<' => rest.first() == Some(&b'/'),
                _ => false,
            };
            if ends {
                break;
            }
            at += 1;
        }
        let value = self.text[start..at].trim_end();
        let value = if self.sign == Sign::Is { value.trim_end_matches(['.', '!', ',']) } else { value };
        start + value.len()
    }

    /// `?name=` or `&name=`
    fn is_parameter_of_url(&self) -> bool {
        let is_of_name = |one: char| one.is_ascii_alphanumeric() || "_-[]%.".contains(one);
        let before = &self.text.as_bytes()[..self.name.start];
        let start = before.len()
            - before.iter().rev().take(64).take_while(|byte| is_of_name(char::from(**byte))).count();
        self.sign == Sign::Equals && start > 0 && matches!(before[start - 1], b'?' | b'&')
    }

    /// `NAME=value` as shells set variables, `name=v4lue` as in queries, or `"name" => "value"` as Rails logs parameters.
    fn is_of_variable_or_parameter(&self) -> bool {
        let name = &self.text[self.name.clone()];
        let bytes = self.text.as_bytes();
        let is_variable =
            name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let is_set = self.sign == Sign::Equals && self.value == self.name.end + 1;
        if !is_set && self.sign != Sign::Arrow {
            return false;
        }
        let value = quoted(self.text, self.value).unwrap_or(self.value..self.end_of_unquoted(self.value));
        let value = &self.text[value];
        let is_quoted = bytes.get(self.name.end) == Some(&b'"');
        let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let is_small = value.len() <= 3 && value.bytes().all(|byte| byte.is_ascii_digit());
        if self.sign == Sign::Arrow && is_quoted {
            let line = self.text[..self.name.start].rsplit('\n').next().unwrap_or_default();
            return line.contains("Parameters: ") || (is_unlike_a_word(value) && !is_small);
        }
        is_set && !is_small && ((is_variable && !is_word) || is_unlike_a_word(value))
    }

    /// Whether this is no secret, but a word that stands for none, or what a validation says.
    fn is_harmless(&self, value: &str) -> bool {
        let name = self.text[self.name.clone()].to_ascii_lowercase();
        let is_count = name.ends_with('s') && value.bytes().all(|byte| byte.is_ascii_digit());
        is_no_value(value) || is_count || VALIDATIONS.iter().any(|words| value.starts_with(words))
    }

    /// Whether what follows is source code that fetches a secret.
    fn is_code(&self, value: &str) -> bool {
        let call = value
            .bytes()
            .take(NAME_BYTES)
            .take_while(|byte| byte.is_ascii_lowercase() || b"_.".contains(byte))
            .count();
        let has = |sign: u8| value.bytes().take(NAME_BYTES).any(|byte| byte == sign);
        let is_call = match value.as_bytes().get(call) {
            Some(b'(') => call > 1 && has(b')'),
            Some(b'[') => call > 1 && has(b']'),
            _ => false,
        };
        let is_assignment = self.sign == Sign::Equals && self.value > self.name.end + 2;
        let is_chain = is_assignment
            && value[..call].contains('.')
            && !value[call..].starts_with(|one: char| one.is_ascii_alphanumeric());
        is_code(value) || is_call || is_chain
    }
}

/// Whether these bytes begin with `name=` or `name:`, or with a quoted name: another setting.
fn begins_setting(bytes: &[u8]) -> bool {
    let quotes = bytes.iter().take(2).take_while(|byte| b"\"':".contains(byte)).count();
    let bytes = &bytes[quotes..];
    let length = bytes
        .iter()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-[]%".contains(byte))
        .count();
    let rest = &bytes[length..];
    let is_set = matches!(rest.first(), Some(b'=' | b':')) && rest.get(1) != Some(&b'=');
    length > 1 && bytes[0].is_ascii_alphabetic() && (is_set || (quotes > 0 && rest.starts_with(b"\" =>")))
}
