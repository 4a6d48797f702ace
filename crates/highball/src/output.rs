//! What commands print. A reader that has seen enough (`highball status | head -1`) closes the pipe: that is no error, and the
//! exit code stays that of the command's work.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a report: text that is the command's whole work.
///
/// # Errors
/// It cannot be written, and the reader has not gone.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match write_to(&mut io::stdout().lock(), text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line about work that goes on, whether or not it can be written: the exit code has the outcome.
pub(crate) fn progress(line: impl Display) {
    let _ = write_to(&mut io::stdout().lock(), &format!("{line}\n"));
}

/// Prints an error or a warning on standard error. Where that is closed, there is no other place for it.
pub(crate) fn complain(what: impl Display) {
    let _ = write_to(&mut io::stderr().lock(), &format!("highball: {what}\n"));
}

fn write_to(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}
