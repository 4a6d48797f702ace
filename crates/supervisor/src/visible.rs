//! Text of others for a log or a terminal: what would move the cursor, change colours, end the line or reverse its
//! direction is shown, and not done.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text in one line, with every control character as an escape: `\x1b[31m`. Tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            hidden if hidden.is_ascii() && is_hidden(hidden) => {
                let _ = write!(shown, "\\x{:02x}", hidden as u32);
            }
            hidden if is_hidden(hidden) => {
                let _ = write!(shown, "\\u{{{:x}}}", hidden as u32);
            }
            plain => shown.push(plain),
        }
    }
    Cow::Owned(shown)
}

/// The same for a text of several lines.
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Control characters, and those by which text is shown in another order than it has, or in other lines.
fn is_hidden(character: char) -> bool {
    match character {
        '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(visible("a\tb ü 日本 🚂"), "a\tb ü 日本 🚂");
        assert_eq!(visible("\x1b[2J\x1b]0;title\x07\x7f\0"), "\\x1b[2J\\x1b]0;title\\x07\\x7f\\x00");
        assert_eq!(visible("one\r\ntwo"), "one\\r\\ntwo");
        assert_eq!(visible("\u{9b}31m\u{85}"), "\\u{9b}31m\\u{85}");
        assert_eq!(visible_lines("a\x07\nb\n"), "a\\x07\nb\n");
        assert_eq!(visible("abc\u{202e}fed\u{2028}"), "abc\\u{202e}fed\\u{2028}");
    }
}
