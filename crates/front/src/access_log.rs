//! The access log: one line per answered request, in the Combined form with the time taken at its end.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a line says of a request; the rest is known when the answer has gone.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) request_line: String,
    pub(crate) referer: String,
    pub(crate) user_agent: String,
    pub(crate) begun_us: u64,
}

impl Entry {
    /// For a request whose head could not be read.
    pub(crate) fn unreadable() -> Self {
        let unknown = || "-".to_owned();
        let begun_us = crate::clock::now_us();
        Entry { request_line: unknown(), referer: unknown(), user_agent: unknown(), begun_us }
    }
}

/// The open log.
#[derive(Debug)]
pub(crate) struct AccessLog {
    path: PathBuf,
    out: RefCell<BufWriter<File>>,
    failed: Cell<bool>,
}

impl AccessLog {
    /// Opens the log at `path` for appending; `-` is standard output. If that fails it is said once, and the
    /// server serves without.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        match open(path) {
            Ok(file) => Some(AccessLog {
                path: path.to_owned(),
                out: RefCell::new(BufWriter::new(file)),
                failed: Cell::new(false),
            }),
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "the access log cannot be opened; requests are not logged");
                None
            }
        }
    }

    /// Goes on in the file that is at the log's path now: the one before may have been moved away (logrotate). If it
    /// cannot be opened, lines go where they went before.
    pub(crate) fn reopen(&self) {
        self.flush();
        let path = self.path.display();
        match open(&self.path) {
            Ok(file) => {
                self.out.replace(BufWriter::new(file));
                self.failed.set(false);
                tracing::info!(%path, "the access log was opened anew");
            }
            Err(error) => {
                tracing::error!(%path, %error, "the access log cannot be opened anew; lines go to the file that was open before");
            }
        }
    }

    /// Adds a line; it is written at the next flush.
    pub(crate) fn add(&self, remote: &str, entry: &Entry, status: u16, body_bytes: u64, now_us: u64) {
        let when = log_date(SystemTime::now());
        let Entry { request_line, referer, user_agent, begun_us } = entry;
        let seconds = now_us.saturating_sub(*begun_us) as f64 / 1e6;
        let line = format!(
            "{remote} - - [{when}] \"{request_line}\" {status} {body_bytes} \"{referer}\" \"{user_agent}\" {seconds:.6}\n"
        );
        let written = self.out.borrow_mut().write_all(line.as_bytes());
        self.check(written);
    }

    /// Writes what was added.
    pub(crate) fn flush(&self) {
        let written = self.out.borrow_mut().flush();
        self.check(written);
    }

    fn check(&self, written: io::Result<()>) {
        if let Err(error) = written {
            if !self.failed.replace(true) {
                tracing::error!(%error, "the access log cannot be written");
            }
        }
    }
}

#[allow(clippy::disallowed_methods)] // the path of a log is never of an application's own file
fn open(path: &Path) -> io::Result<File> {
    if path == Path::new("-") {
        return io::stdout().as_fd().try_clone_to_owned().map(File::from);
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// A date as the Common Log Format wants it: `06/Nov/1994:08:49:37 +0000`.
fn log_date(time: SystemTime) -> String {
    // "Sun, 06 Nov 1994 08:49:37 GMT"
    let date = httpdate::fmt_http_date(time);
    let (day, month, year, clock) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
    format!("{day}/{month}/{year}:{clock} +0000")
}

/// Text of a client's, for a quoted field: nothing that could end the field or the line.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', byte as char]),
            0x20..=0x7e => text.push(byte as char),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_common_log_format() {
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
        assert_eq!(log_date(time), "06/Nov/1994:08:49:37 +0000");
    }

    #[test]
    fn a_client_cannot_forge_a_line() {
        assert_eq!(quoted(b"a\"b\\c\nd\xff"), "a\\\"b\\\\c\\x0ad\\xff");
    }
}
