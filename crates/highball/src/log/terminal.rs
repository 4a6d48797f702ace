//! Highball on a terminal: whether it has colours, and whether standard error is one.

use std::env;
use std::io::{stderr, IsTerminal};

/// Whether the terminal shows colours, and its user wants them (no-color.org).
pub(crate) fn has_colours() -> bool {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    set("TERM").is_some_and(|term| term != "dumb") && set("NO_COLOR").is_none()
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Less important than the rest.
    Dim,
    /// Headings and names.
    Bold,
    /// Something to open.
    Link,
    /// A warning.
    Yellow,
    /// An error.
    Red,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Ink::Dim => "2",
            Ink::Bold => "1",
            Ink::Link => "36",
            Ink::Yellow => "33",
            Ink::Red => "31",
        }
    }
}

/// A terminal that shows what Highball prints to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    has_colours: bool,
}

impl Terminal {
    /// The terminal behind standard error, if it is one.
    #[allow(clippy::disallowed_methods)] // nothing is written to it here
    pub(crate) fn of_standard_error() -> Option<Terminal> {
        stderr().is_terminal().then(|| Terminal { has_colours: has_colours() })
    }

    #[cfg(test)]
    pub(crate) fn with_colours(has_colours: bool) -> Terminal {
        Terminal { has_colours }
    }

    /// The text in this ink.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        if self.has_colours && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", ink.code())
        } else {
            text.to_owned()
        }
    }
}
