//! Text of others on its way out. Applications, clients and file names decide what stands in paths, names, messages, header
//! values and output: bytes of any kind. This crate declares which characters a terminal or a reader could take for something
//! else ([`is_hidden`]), and has one function for each way out:
//!
//! - terminals and logs for people: [`visible`], [`visible_lines`], [`visible_path`];
//! - JSON for programs: [`json::compact`], [`json::pretty`];
//! - paths in JSON: [`shown`] for what is reported, [`exact`] between processes of Highball;
//! - long texts: [`cut`], and [`cut_line`] for a line on a terminal;
//! - amounts for people: [`mib`], [`gib`], [`counted`], [`duration`].
//!
//! Pages escape HTML as well (`refusals/page.rs` of the front).

mod amounts;
pub mod exact;
pub mod json;
pub mod shown;

pub use amounts::{counted, duration, gib, mib};

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether this character does something, instead of being something to read: control characters (C0, DEL, C1), ends of
/// lines, characters that change the direction of writing, and characters without a width that no language needs. (Joiners
/// stay: languages and emojis need them.) The tab is no such character.
pub fn is_hidden(character: char) -> bool {
    match character {
        '\t' => false,
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

/// The text in one line, with every hidden character as an escape: `\n`, `\x1b`, `\u{9b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    if is_plain || !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    text.chars().for_each(|character| push_visible(&mut shown, character));
    Cow::Owned(shown)
}

/// The same for a text of several lines.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|character| character != '\n' && is_hidden(character)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(visible).collect::<Vec<_>>().join("\n"))
}

/// The bytes in one line: what is not UTF-8 is an escape as well, `\xe9`.
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// A path in one line, as [`visible_bytes`].
pub fn visible_path(path: impl AsRef<Path>) -> String {
    visible_bytes(path.as_ref().as_os_str().as_bytes())
}

/// A name in one line, as [`visible_bytes`].
pub fn visible_name(name: impl AsRef<OsStr>) -> String {
    visible_bytes(name.as_ref().as_bytes())
}

/// The most bytes of a message or value in a log or an error; of longer ones, [`cut`] leaves out the rest.
pub const LONGEST: usize = 16 * 1024;

/// At most `most` bytes of a text, and how many are left out.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{} [… {} bytes more]", &text[..end], text.len() - end))
}

/// At most `most` characters of a line; `…` is the last one where some are left out. (Characters that are wider than others
/// make it wider.)
pub fn cut_line(line: &str, most: usize) -> Cow<'_, str> {
    if line.char_indices().nth(most).is_none() {
        return Cow::Borrowed(line);
    }
    let end = line.char_indices().nth(most.saturating_sub(1)).map_or(0, |(end, _)| end);
    Cow::Owned(format!("{}…", &line[..end]))
}

fn push_visible(shown: &mut String, character: char) {
    // A String takes everything.
    let _ = match character {
        '\n' => shown.write_str("\\n"),
        '\r' => shown.write_str("\\r"),
        hidden if is_hidden(hidden) && hidden.is_ascii() => write!(shown, "\\x{:02x}", hidden as u32),
        hidden if is_hidden(hidden) => write!(shown, "\\u{{{:x}}}", hidden as u32),
        plain => shown.write_char(plain),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([counted(1, "process"), counted(0, "process")], ["1 process", "0 processes"]);
        assert_eq!(counted(2, "connection"), "2 connections");
    }

    #[test]
    fn lines_are_cut_with_a_mark() {
        assert_eq!((cut_line("abcd", 4), cut_line("äöüße", 4)), ("abcd".into(), "äöü…".into()));
        assert_eq!(cut_line("abc", 0), "…");
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(visible("a\tb ü 日本 🚂 👩\u{200d}🚒"), "a\tb ü 日本 🚂 👩\u{200d}🚒");
        assert_eq!(visible("\x1b[2J\x1b]0;title\x07\x7f\0"), "\\x1b[2J\\x1b]0;title\\x07\\x7f\\x00");
        assert_eq!(visible("one\r\ntwo"), "one\\r\\ntwo");
        assert_eq!(visible("\u{9b}31m\u{85}"), "\\u{9b}31m\\u{85}");
        assert_eq!(visible_lines("a\x07\nb\n"), "a\\x07\nb\n");
        assert_eq!(visible("abc\u{202e}fed\u{2028}\u{61c}"), "abc\\u{202e}fed\\u{2028}\\u{61c}");
        assert_eq!(visible("\u{e0041}\u{feff}"), "\\u{e0041}\\u{feff}");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_shown() {
        assert_eq!(visible_bytes(b"/srv/caf\xe9/\xc3\xa4\x1b"), "/srv/caf\\xe9/ä\\x1b");
        assert_eq!(visible_path(Path::new(OsStr::from_bytes(b"\xff\xc3"))), "\\xff\\xc3");
    }

    #[test]
    fn what_is_shown_once_stays_as_it_is() {
        let every: String = ('\0'..='\u{ffff}').chain('\u{e0000}'..='\u{e0100}').collect();
        let once = visible(&every);
        assert!(!once.chars().any(is_hidden));
        assert_eq!(visible(&once), once);
        assert_eq!(visible_path(visible_path("/a\x1b")), visible_path("/a\x1b"));
    }

    #[test]
    fn long_texts_say_how_much_is_left_out() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc [… 1 bytes more]");
        assert_eq!(cut("aä", 2), "a [… 2 bytes more]");
    }
}
