//! The access log: a line about each answered request, or about a share of them.
//!
//! - [`line`]: what a line says, in which form;
//! - [`place`]: where a log is, and how it is opened;
//! - [`writer`]: how lines get there.

mod line;
mod place;
mod writer;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use highball_config::{LogRules, WHOLE};
use highball_users::User;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use line::line;
pub(crate) use line::{Entry, Outcome};
use place::Place;
pub use place::{open_access_logs_by, open_log_of_root, OpenLogBy};
use writer::Writer;

use crate::clock::now_us;
use crate::developer_key::DeveloperKey;

/// What the last lines may take at the end of the server.
const LAST_LINES_TIME: Duration = Duration::from_secs(1);

/// In the place of a status: the client left before its answer was there, as nginx writes it.
pub(crate) const CLIENT_LEFT: u16 = 499;

/// From this time on a request is slow: it gets a line, whatever share of the requests does.
const SLOW: Duration = Duration::from_secs(1);
/// The first status of an error: the same.
const FIRST_ERROR: u16 = 400;

/// A log. Lines are added by the event loop, and written by another thread.
#[derive(Debug)]
pub(crate) struct AccessLog {
    writer: Arc<Writer>,
    rules: LogRules,
    measures: bool,
    /// The state of [`AccessLog::draw`].
    random: Cell<u64>,
    /// Whether each line is written when it is added: a developer watches.
    is_prompt: bool,
    /// The thread that was started last.
    writing: RefCell<Option<JoinHandle<()>>>,
}

impl AccessLog {
    /// The log at `path`, which is opened at the first [`flush`](Self::flush): of this user's application, if it is one
    /// of another user. If it cannot be opened, the log reports that once, and the server runs without it. In the terminal
    /// of a developer (`in_development`) lines stand in order with those of the application.
    pub(crate) fn new(path: &Path, user: Option<&User>, rules: &LogRules, in_development: bool) -> Self {
        let place = Place { path: path.to_owned(), user: user.cloned() };
        let is_prompt = in_development && place.is_in_terminal();
        AccessLog {
            writer: Arc::new(Writer::new(place)),
            measures: rules.measures_requests(),
            rules: rules.clone(),
            random: Cell::new(now_us()),
            is_prompt,
            writing: RefCell::new(None),
        }
    }

    /// Whether lines go where the server's and the application's go: to standard output or standard error.
    pub(crate) fn is_in_terminal(&self) -> bool {
        self.writer.place().is_in_terminal()
    }

    /// Whether this is the log at that path, of that user's, with these rules.
    pub(crate) fn is_of(&self, path: &Path, user: Option<&User>, rules: &LogRules) -> bool {
        let place = self.writer.place();
        place.path == path && place.user.as_ref() == user && self.rules == *rules
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

    /// Whether lines have times that are only known if the steps of requests are measured.
    pub(crate) fn measures_requests(&self) -> bool {
        self.measures
    }

    /// Adds a line, if the request gets one; it is written soon. It does not have the developer's key, whichever of its texts
    /// had that.
    pub(crate) fn add(&self, entry: &Entry, outcome: &Outcome<'_>, key: &DeveloperKey) {
        if self.writer.is_closed() || !self.is_chosen(entry, outcome) {
            return;
        }
        let mut line = line(&self.rules.format, entry, outcome, SystemTime::now());
        key.mask(&mut line);
        if self.writer.add(&line) || self.is_prompt {
            self.flush();
        }
    }

    /// Errors, slow requests, and of the others a share.
    fn is_chosen(&self, entry: &Entry, outcome: &Outcome<'_>) -> bool {
        self.rules.sample == WHOLE
            || outcome.status >= FIRST_ERROR
            || u128::from(outcome.took_us(entry)) >= SLOW.as_micros()
            || self.draw() < self.rules.sample
    }

    /// A random number below [`WHOLE`] (splitmix64). A client that guesses it has its request not logged at most.
    fn draw(&self) -> u32 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % u64::from(WHOLE)) as u32
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::Moments;
    use highball_config::LineFormat;

    #[test]
    fn a_share_of_the_requests_and_all_errors_and_slow_ones_get_lines() {
        let rules = LogRules { format: LineFormat::Json, sample: WHOLE / 10 };
        let log = AccessLog::new(Path::new("/nonexistent"), None, &rules, false);
        let entry = Entry::new([None; 5], "HTTP/1.1", 1);
        let outcome = |status, now_us| Outcome {
            address: "",
            user: None,
            is_tls: false,
            app: None,
            status,
            body_bytes: 0,
            moments: Moments::default(),
            id: None,
            trace: None,
            now_us,
        };
        let chosen =
            |status, now_us| (0..10_000).filter(|_| log.is_chosen(&entry, &outcome(status, now_us))).count();
        assert!((800..1200).contains(&chosen(200, 2)), "a tenth");
        assert_eq!([chosen(404, 2), chosen(499, 2), chosen(500, 2), chosen(200, 1_000_001)], [10_000; 4]);
    }
}
