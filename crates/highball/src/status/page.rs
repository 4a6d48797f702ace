//! Lines for people: a name, and the text beside it.

use highball_link::{Column, Fact};
use highball_text::{cut_line, duration};
use std::fmt::Write as _;

/// Columns before that text.
const NAMES: usize = 13;
/// The longest line of a text that is shortened, where the reader is no terminal.
const LONGEST_LINE: usize = 160;

/// How much the text shows, and in how many columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Columns of the terminal; `None` where lines are not wrapped.
    pub(crate) columns: Option<usize>,
    /// Also backtraces, earlier failures, and how Ruby is tuned.
    pub(crate) has_details: bool,
}

impl View {
    /// Columns beside the names.
    fn room(self) -> Option<usize> {
        Some(self.columns?.saturating_sub(NAMES))
    }
}

/// A text that grows line by line.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) view: View,
    text: String,
}

impl Page {
    pub(crate) fn new(view: View) -> Page {
        Page { view, text: String::new() }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// A line as it is.
    pub(crate) fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    /// A fact with its name; an empty name continues the fact above.
    pub(crate) fn fact(&mut self, name: &str, fact: &str) {
        let name = format!("{name:<width$}", width = NAMES - 1);
        let mut lines = fact.lines().flat_map(|line| self.wrapped(line)).collect::<Vec<_>>().into_iter();
        let _ = writeln!(self.text, "{name} {}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(self.text, "{:NAMES$}{line}", "");
        }
    }

    /// Facts with their names.
    pub(crate) fn facts(&mut self, facts: impl IntoIterator<Item = Fact>) {
        facts.into_iter().for_each(|(name, fact)| self.fact(name, &fact));
    }

    /// A table, below an empty line.
    pub(crate) fn table<T>(&mut self, columns: &[Column<T>], rows: &[T]) {
        self.line("");
        self.line(&Column::headings(columns));
        rows.iter().for_each(|row| self.line(&Column::row(columns, row)));
    }

    /// Something that went wrong: all of it with details, else one line.
    pub(crate) fn failure(&mut self, name: &str, age: Option<u64>, what: &str) {
        let age = age.map(|seconds| format!("{} ago: ", duration(seconds))).unwrap_or_default();
        let text = format!("{age}{what}");
        if self.view.has_details {
            return self.fact(name, &text);
        }
        let first = text.lines().next().unwrap_or_default();
        self.fact(name, &cut_line(first, self.view.room().unwrap_or(LONGEST_LINE)));
    }

    /// The lines of a text, none longer than there are columns, unless a word is.
    fn wrapped(&self, line: &str) -> Vec<String> {
        let Some(most) = self.view.room() else { return vec![line.to_owned()] };
        let indent: String = line.chars().take_while(|char| *char == ' ').collect();
        let mut lines = vec![indent.clone()];
        for word in line.split_whitespace() {
            let last = lines.last_mut().unwrap_or_else(|| unreachable!("there is a first line"));
            if *last == indent {
                last.push_str(word);
            } else if last.chars().count() + 1 + word.chars().count() <= most {
                last.push(' ');
                last.push_str(word);
            } else {
                lines.push(format!("{indent}{word}"));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(columns: usize) -> Page {
        Page::new(View { columns: Some(columns), has_details: false })
    }

    #[test]
    fn facts_are_wrapped_between_words() {
        let mut page = page(30);
        page.fact("memory", "one two three four five\n  six");
        assert_eq!(
            page.into_text(),
            "memory       one two three\n             four five\n               six\n"
        );
    }

    #[test]
    fn a_failure_is_one_line_with_its_age() {
        let mut page = page(40);
        page.failure("failed", Some(65), "loading the app failed: NameError\nat: app.rb:3");
        assert_eq!(page.into_text(), "failed       1m 5s ago: loading the app…\n");
        let mut page = Page::new(View { columns: None, has_details: true });
        page.failure("failed", Some(5), "no\nat: app.rb:3");
        assert_eq!(page.into_text(), "failed       5s ago: no\n             at: app.rb:3\n");
    }
}
