//! What commands print. A reader that has seen enough (`highball status | head -1`) closes the pipe: that is no error, and the
//! exit code still tells how the command's work went.
//!
//! Parts of it come from applications, files and other servers. This is the one place that prints, and it escapes every
//! character that a terminal would obey.

use highball_text::{cut, visible_lines, LONGEST};
use std::fmt::Display;
use std::io::{self, Write};

/// Prints a report: text that is the command's whole work.
///
/// # Errors
/// It cannot be written, and the reader has not gone.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match write_to(&mut stdout(), text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes bytes that no terminal is meant to show.
///
/// # Errors
/// As for [`print`].
pub(crate) fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(bytes)?;
    out.flush()
}

/// Prints a line about work that goes on, whether or not it can be written: the exit code has the outcome.
pub(crate) fn progress(line: impl Display) {
    let _ = write_to(&mut stdout(), &format!("{line}\n"));
}

/// Prints an error or a warning on standard error. Where that is closed, there is no other place for it.
pub(crate) fn complain(what: impl Display) {
    let what = what.to_string();
    let _ = write_to(&mut stderr(), &format!("highball: {}\n", cut(&what, LONGEST)));
}

/// The URL by which a server that listens on every address is reached on this machine.
pub(crate) fn on_this_machine(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}

#[allow(clippy::disallowed_methods)] // what is written to it goes through `write_to`
fn stdout() -> impl Write {
    io::stdout().lock()
}

#[allow(clippy::disallowed_methods)] // the same
fn stderr() -> impl Write {
    io::stderr().lock()
}

fn write_to(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(visible_lines(text).as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_led_to_an_address_that_it_can_open() {
        assert_eq!(on_this_machine("http://0.0.0.0:3000/shop/"), "http://127.0.0.1:3000/shop/");
        assert_eq!(on_this_machine("https://[::]:3000/"), "https://[::1]:3000/");
        assert_eq!(on_this_machine("http://shop.example/"), "http://shop.example/");
    }

    #[test]
    fn a_terminal_obeys_nothing_of_what_is_printed() {
        let mut out = Vec::new();
        write_to(&mut out, "a\x1b]0;owned\x07\u{9b}2J\u{202e}\n\tb ü\n").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\\x1b]0;owned\\x07\\u{9b}2J\\u{202e}\n\tb ü\n");
    }
}
