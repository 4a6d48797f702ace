//! Places in files on the page: their names, which open the editor, and their source.

use super::editor::Editor;
use super::ruby_tokens::{is_ruby, of_line};
use highball_front::refusals::page::Escaped;
use highball_link::{Diagnosis, Excerpt};
use highball_text::visible_path;
use std::fmt::Write as _;
use std::path::Path;

/// A diagnosis, and the editor of the developer who reads it.
pub(super) struct Shown<'a> {
    pub(super) diagnosis: &'a Diagnosis,
    pub(super) editor: Option<&'a Editor>,
}

impl Shown<'_> {
    /// `app.rb:12`, as a link if there is an editor to open. Files of the application are named within its folder.
    pub(super) fn place(&self, file: &str, line: u32) -> String {
        let path = Path::new(file).strip_prefix(&self.diagnosis.folder).unwrap_or(Path::new(file));
        let place = format!("{}<span>:{line}</span>", Escaped(&visible_path(path)));
        match self.editor.and_then(|editor| editor.link(file, line, &self.diagnosis.folder)) {
            Some(address) => format!("<a href=\"{}\">{place}</a>", Escaped(&address)),
            None => place,
        }
    }

    /// The lines of an excerpt. `is_called`: whether a line of this number is one of the calls that led to the error.
    pub(super) fn lines(&self, source: &Excerpt, is_called: impl Fn(u32) -> bool) -> String {
        let is_ruby = is_ruby(&source.file);
        let name = Escaped(&source.file);
        let mut text =
            format!("<pre tabindex=\"0\" role=\"region\" aria-label=\"{name}, line {}\">", source.line);
        for (number, line) in (source.first_line..).zip(&source.lines) {
            let class = match number {
                _ if number == source.line => " class=\"here\"",
                _ if is_called(number) => " class=\"call\"",
                _ => "",
            };
            let line = if is_ruby { coloured(line) } else { Escaped(line).to_string() };
            let _ = write!(text, "<code{class}><b>{number}</b>{line}\n</code>");
        }
        text + "</pre>\n"
    }
}

/// A line of Ruby.
fn coloured(line: &str) -> String {
    let part = |(token, text): (super::ruby_tokens::Token, &str)| match token.class() {
        Some(class) => format!("<i class=\"{class}\">{}</i>", Escaped(text)),
        None => Escaped(text).to_string(),
    };
    of_line(line).into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_let_nothing_through() {
        let line = coloured("x = \"</code><script>\" # <b>");
        assert_eq!(
            line,
            "x = <i class=\"s\">&quot;&lt;/code&gt;&lt;script&gt;&quot;</i> <i class=\"c\"># &lt;b&gt;</i>"
        );
    }
}
