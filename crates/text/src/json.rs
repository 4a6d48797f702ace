//! JSON for programs, which people read as well (`tail`, `jq -r .`, a browser): hidden characters are `\uXXXX`.

use crate::is_hidden;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::{Error, Serializer};
use std::fmt::Write as _;
use std::io::{self, Write};

/// The value in one line.
///
/// # Errors
/// What the value is made of cannot be JSON.
pub fn try_compact(value: &impl Serialize) -> Result<String, Error> {
    text(value, CompactFormatter)
}

/// The value in one line; where it cannot be JSON, an object that says so.
pub fn compact(value: &impl Serialize) -> String {
    try_compact(value).unwrap_or_else(|error| not_json(&error))
}

/// The same with an indented line for each part.
pub fn pretty(value: &impl Serialize) -> String {
    text(value, PrettyFormatter::new()).unwrap_or_else(|error| not_json(&error))
}

/// Adds a character within a string of JSON.
pub fn push_escaped(text: &mut String, character: char) {
    match character {
        '"' | '\\' => text.extend(['\\', character]),
        '\t' => text.push_str("\\t"),
        hidden if is_hidden(hidden) => {
            for unit in hidden.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}"); // a String takes everything
            }
        }
        plain => text.push(plain),
    }
}

fn text(value: &impl Serialize, form: impl Formatter) -> Result<String, Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Escaping(form)))?;
    String::from_utf8(bytes).map_err(|error| Error::io(io::Error::other(error)))
}

fn not_json(error: &Error) -> String {
    let mut text = String::from("{\"error\":\"");
    let words = format!("this report cannot be written as JSON: {error}");
    words.chars().for_each(|character| push_escaped(&mut text, character));
    text + "\"}"
}

/// Another formatter, and hidden characters escaped. (Those below U+0020 always are.)
struct Escaping<F>(F);

/// Passes calls on.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $type)*) -> io::Result<()> {
            self.0.$name(writer $(, $argument)*)
        })*
    };
}

impl<F: Formatter> Formatter for Escaping<F> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if is_plain || !text.chars().any(is_hidden) {
            return writer.write_all(text.as_bytes());
        }
        let mut escaped = String::with_capacity(text.len() + 16);
        text.chars().for_each(|character| push_escaped(&mut escaped, character));
        writer.write_all(escaped.as_bytes())
    }

    pass_on! {
        begin_array();
        end_array();
        begin_array_value(is_first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(is_first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, json, Value};

    #[test]
    fn hidden_characters_are_escaped_and_come_back() {
        let every: String =
            ('\0'..='\u{2fff}').chain('\u{e0000}'..='\u{e0100}').chain("ü🚂".chars()).collect();
        let value = json!({ "a": every, "\u{202e}\u{9b}": [1, null, "\"\\\n"] });
        for text in [compact(&value), pretty(&value)] {
            assert!(!text.replace('\n', "").chars().any(is_hidden), "{text}");
            assert_eq!(from_str::<Value>(&text).unwrap(), value);
        }
        assert_eq!(compact(&"\u{1b}\u{9b}\u{202e}\u{e0041}ü"), r#""\u001b\u009b\u202e\udb40\udc41ü""#);
        assert_eq!(pretty(&json!({ "a": [1] })), serde_json::to_string_pretty(&json!({ "a": [1] })).unwrap());
    }

    #[test]
    fn what_cannot_be_json_says_so() {
        let of_numbers = std::collections::BTreeMap::from([((1, 2), 3)]);
        let text = compact(&of_numbers);
        assert!(
            from_str::<Value>(&text).unwrap()["error"].as_str().unwrap().contains("key must be"),
            "{text}"
        );
    }
}
