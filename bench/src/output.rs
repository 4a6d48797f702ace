//! What the benchmark prints when it has measured. A reader that has seen enough (`highball bench list | head -1`) closes the
//! pipe: that is no error.

use std::io::{self, Write};

use crate::Failure;

/// Prints a report.
///
/// # Errors
/// It cannot be written, and the reader has not gone.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
