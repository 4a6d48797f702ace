//! The access log: one line per answered request, in the Combined form with the time taken at its end.
//!
//! - [`place`]: where a log is, and how it is opened;
//! - [`writer`]: how lines get there.

mod place;
mod writer;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use highball_users::User;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use place::Place;
pub use place::{open_access_logs_by, open_log_of_root, OpenLogBy};
use writer::Writer;

/// What the last lines may take at the end of the server.
const LAST_LINES_TIME: Duration = Duration::from_secs(1);

/// In the place of a status: the client left before its answer was there, as nginx writes it.
pub(crate) const CLIENT_LEFT: u16 = 499;

/// What a line says of a request; the rest is known when the answer has gone.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) request_line: String,
    pub(crate) referer: String,
    pub(crate) user_agent: String,
    pub(crate) begun_us: u64,
    /// Whether the response cache has answered it.
    pub(crate) is_hit: bool,
}

impl Entry {
    /// For a request whose head could not be read.
    pub(crate) fn unreadable() -> Self {
        let unknown = || "-".to_owned();
        let begun_us = crate::clock::now_us();
        Entry { request_line: unknown(), referer: unknown(), user_agent: unknown(), begun_us, is_hit: false }
    }
}

/// A log. Lines are added by the event loop, and written by another thread.
#[derive(Debug)]
pub(crate) struct AccessLog {
    writer: Arc<Writer>,
    /// Whether each line is written when it is added: a developer watches.
    is_prompt: bool,
    /// The thread that was started last.
    writing: RefCell<Option<JoinHandle<()>>>,
}

impl AccessLog {
    /// The log at `path`, which is opened at the first [`flush`](Self::flush): that of this user's application, if it is one
    /// of another user. If it cannot be opened, the log reports that once, and the server runs without it. In the terminal
    /// of a developer (`in_development`) lines stand in order with those of the application.
    pub(crate) fn new(path: &Path, user: Option<&User>, in_development: bool) -> Self {
        let place = Place { path: path.to_owned(), user: user.cloned() };
        let is_prompt = in_development && place.is_in_terminal();
        AccessLog { writer: Arc::new(Writer::new(place)), is_prompt, writing: RefCell::new(None) }
    }

    /// Whether lines go where those of the server and the application go: to standard output or standard error.
    pub(crate) fn is_in_terminal(&self) -> bool {
        self.writer.place().is_in_terminal()
    }

    /// Whether this is the log at that path, of that user's.
    pub(crate) fn is_of(&self, path: &Path, user: Option<&User>) -> bool {
        let place = self.writer.place();
        place.path == path && place.user.as_ref() == user
    }

    /// Goes on in the file that is at the log's path now: the one before may have been moved away (logrotate). If it
    /// cannot be opened, lines go where they went before.
    pub(crate) fn reopen(&self) {
        self.writer.reopen();
        self.flush();
    }

    /// Why lines do not come where they should, if they do not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.writer.problem()
    }

    /// Adds a line; it is written soon. The client is its address, and its user if it has shown a password. The request's id
    /// stands at the end, if requests get one.
    pub(crate) fn add(
        &self,
        (remote, user): (&str, Option<&[u8]>),
        entry: &Entry,
        status: u16,
        body_bytes: u64,
        now_us: u64,
        id: Option<&str>,
    ) {
        if self.writer.is_closed() {
            return;
        }
        let when = log_date(SystemTime::now());
        let Entry { request_line, referer, user_agent, begun_us, is_hit } = entry;
        let seconds = now_us.saturating_sub(*begun_us) as f64 / 1e6;
        let user = user.map_or_else(|| "-".into(), |user| quoted(user).replace(' ', "\\x20"));
        let (space, id) = id.map_or(("", ""), |id| (" ", id));
        let cache = if *is_hit { " cache=hit" } else { "" };
        let line = format!(
            "{remote} - {user} [{when}] \"{request_line}\" {status} {body_bytes} \"{referer}\" \"{user_agent}\" \
             {seconds:.6}{cache}{space}{id}\n"
        );
        if self.writer.add(&line) || self.is_prompt {
            self.flush();
        }
    }

    /// Has what was added written.
    pub(crate) fn flush(&self) {
        // At the very end there is no event loop any more, and nothing that was not written before.
        if Handle::try_current().is_ok() {
            if let Some(writing) = self.writer.start() {
                self.writing.replace(Some(writing));
            }
        }
    }

    /// Returns when what was added is written; or after a while, if it cannot be.
    pub(crate) async fn finish(&self) {
        let written = async {
            // Once for what is being written, and once for what was added meanwhile.
            for _ in 0..2 {
                self.flush();
                let writing = self.writing.take();
                if let Some(writing) = writing {
                    let _ = writing.await; // it has panicked: then there is a message of it
                }
            }
        };
        let _ = timeout(LAST_LINES_TIME, written).await; // the log is slow
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A date in the form of the Common Log Format: `06/Nov/1994:08:49:37 +0000`.
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
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(log_date(time), "06/Nov/1994:08:49:37 +0000");
    }

    #[test]
    fn a_client_cannot_forge_a_line() {
        assert_eq!(quoted(b"a\"b\\c\nd\xff"), "a\\\"b\\\\c\\x0ad\\xff");
    }
}
