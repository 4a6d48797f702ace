//! What the pages have in common that Highball itself shows: they need nothing from elsewhere, work without JavaScript, and
//! everything in them that is not their own is escaped.

use highball_text::{is_hidden, visible};
use std::fmt::{self, Write};

/// The style that all of them begin with, light and dark.
pub const STYLE: &str = include_str!("page.css");

/// Text that stands in HTML, in an element or in a quoted attribute.
#[derive(Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(letter)?,
                _ if is_hidden(letter) => f.write_str(&visible(letter.encode_utf8(&mut [0; 4])))?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}
