//! Writes the lines of an access log, off the event loop: a log may be slow, or stand still (a full disk, a file system of
//! another machine, a process that holds a lease on it). Then its lines are dropped beyond a certain size, and counted.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{spawn_blocking, JoinHandle};
use tracing::{error, info, warn};

use super::place::{OpenLog, Place};
use crate::clock::Seldom;
use crate::line_buffer::LineBuffer;

/// Waiting bytes that are written at once instead of at the next tick.
const PIECE_BYTES: usize = 64 * 1024;
/// How often the log reports that lines are dropped.
const NOTICE_MS: u64 = 10_000;

/// A log, for the event loop and for the thread that writes it at the moment.
#[derive(Debug)]
pub(super) struct Writer {
    place: Place,
    state: Mutex<State>,
    /// Held while it is opened or written, by one thread at most.
    file: Mutex<Option<OpenLog>>,
}

#[derive(Debug, Default)]
struct State {
    lines: LineBuffer,
    /// It is to be opened before more is written.
    is_to_open: bool,
    /// A thread writes.
    is_busy: bool,
    /// It could not be opened, and nothing was open before.
    is_closed: bool,
    /// What was to be written last could not be.
    cannot_write: bool,
    /// Why lines do not come where they should.
    problem: Option<String>,
    noticed: Seldom,
}

impl Writer {
    pub(super) fn new(place: Place) -> Writer {
        let state = State { is_to_open: true, ..State::default() };
        Writer { place, state: Mutex::new(state), file: Mutex::new(None) }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole at every moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is any use in adding lines.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Why lines do not come where they should, if they do not.
    pub(super) fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// Adds a line. `true`: enough lines wait that they should be written.
    pub(super) fn add(&self, line: &str) -> bool {
        self.state().lines.add(line.as_bytes()) >= PIECE_BYTES
    }

    /// The file at its path is another one by now.
    pub(super) fn reopen(&self) {
        self.state().is_to_open = true;
    }

    /// Has a thread do the work, unless one is at it.
    pub(super) fn start(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        self.give_notice();
        let mut state = self.state();
        if state.is_busy || (!state.is_to_open && state.lines.is_empty()) {
            return None;
        }
        state.is_busy = true;
        drop(state);
        let writer = Arc::clone(self);
        Some(spawn_blocking(move || writer.work()))
    }

    fn work(&self) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut state = self.state();
            let (lines, is_to_open) = (state.lines.take(), take(&mut state.is_to_open));
            if lines.is_empty() && !is_to_open {
                state.is_busy = false;
                return;
            }
            drop(state);
            // What was added before goes to the file before, if there is one.
            let is_first = file.is_none();
            if is_to_open && is_first {
                self.open(&mut file);
            }
            self.write(&mut file, &lines);
            if is_to_open && !is_first {
                self.open(&mut file);
            }
        }
    }

    fn open(&self, file: &mut Option<OpenLog>) {
        let path = self.place.path.display();
        let again = file.is_some();
        match self.place.open() {
            Ok(opened) => {
                *file = Some(opened);
                let mut state = self.state();
                let was_closed = take(&mut state.is_closed);
                state.problem = None;
                drop(state);
                if again || was_closed {
                    info!(name: "access_log_reopened", %path, "reopened the access log");
                }
            }
            Err(error) if again => {
                error!(
                    name: "access_log_not_reopened",
                    %path, error, "cannot reopen the access log; lines go to the file that was open before"
                );
                self.state().problem = Some(format!("cannot reopen {path}: {error}"));
            }
            Err(error) => {
                error!(
                    name: "access_log_not_opened", %path, error, "the access log cannot be opened; requests are not logged"
                );
                let mut state = self.state();
                state.problem = Some(format!("{path} cannot be opened: {error}"));
                state.is_closed = true;
            }
        }
    }

    fn write(&self, file: &mut Option<OpenLog>, lines: &[u8]) {
        let Some(file) = file.as_mut().filter(|_| !lines.is_empty()) else { return };
        let written = file.write(lines);
        let mut state = self.state();
        match written {
            Ok(()) if state.cannot_write => {
                state.cannot_write = false;
                state.problem = None;
            }
            Ok(()) => {}
            Err((error, missing)) => {
                state.lines.drop_lines(missing);
                state.problem = Some(format!("{} cannot be written: {error}", self.place.path.display()));
                let was_reported = std::mem::replace(&mut state.cannot_write, true);
                drop(state);
                if !was_reported {
                    error!(
                        name: "access_log_not_written", path = %self.place.path.display(), %error, "the access log cannot be written"
                    );
                }
            }
        }
    }

    /// Says how many lines were dropped, from time to time.
    fn give_notice(&self) {
        let mut state = self.state();
        if !state.lines.has_dropped() || !state.noticed.is_due(NOTICE_MS) {
            return;
        }
        let lines = state.lines.take_dropped();
        drop(state);
        warn!(
            name: "access_log_lines_dropped",
            path = %self.place.path.display(), lines, "the access log was too slow, or full: lines were dropped"
        );
    }
}
