//! Standard error, written by a separate thread: a reader that has stopped (a pipe to a stuck collector, a terminal after
//! Ctrl-S) holds up no event loop. Lines are dropped beyond a certain size, or where a disk is full; how many, the log says when
//! it is read again, or can be written again.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use highball_front::line_buffer::{LineBuffer, LineEnds};
use tracing::warn;

/// How long the end of the process waits for its last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Where lines go.
#[derive(Debug, Default)]
pub(super) struct ErrorStream {
    state: Mutex<State>,
    /// There are lines, or all were written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: LineBuffer,
    /// The separate thread writes. Without it, each thread writes its own lines.
    has_thread: bool,
    /// It is writing.
    is_busy: bool,
}

impl ErrorStream {
    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole at every moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines, sooner or later.
    pub(super) fn write(&self, lines: &str) {
        let mut state = self.state();
        if state.has_thread {
            state.lines.add(lines.as_bytes());
            self.changed.notify_all();
        } else {
            // There is nowhere left to complain when standard error is closed.
            #[allow(clippy::disallowed_methods)] // lines are escaped when they are made
            let _ = io::stderr().lock().write_all(lines.as_bytes());
        }
    }

    /// From now on, a thread writes.
    pub(super) fn start_thread(self: &Arc<Self>, to: impl Write + Send + 'static) {
        let stream = Arc::clone(self);
        // If there cannot be another thread, lines are written as before.
        let started = thread::Builder::new().name("log".into()).spawn(move || stream.write_for_ever(to));
        self.state().has_thread = started.is_ok();
    }

    fn write_for_ever(&self, mut to: impl Write) {
        let (mut ends, mut is_written) = (LineEnds::default(), true);
        let mut state = self.state();
        loop {
            let lines = state.lines.take();
            if lines.is_empty() {
                // Where nothing can be written, this cannot be either.
                if is_written && state.lines.has_dropped() {
                    let lines = state.lines.take_dropped();
                    drop(state);
                    warn!(
                        name: "log_lines_dropped",
                        lines, "Highball dropped lines: standard error was full, or not read fast enough"
                    );
                    state = self.state();
                    continue;
                }
                state.is_busy = false;
                self.changed.notify_all();
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_busy = true;
            drop(state);
            let written = ends.write(&lines, |bytes| to.write(bytes));
            state = self.state();
            is_written = written.is_ok();
            if let Err((_, missing)) = written {
                state.lines.drop_lines(missing);
            }
        }
    }

    /// Waits until all lines are written, but not for long: the process is about to end.
    pub(super) fn finish(&self) {
        let state = self.state();
        let is_unfinished =
            |state: &mut State| state.has_thread && (state.is_busy || !state.lines.is_empty());
        drop(self.changed.wait_timeout_while(state, LAST_LINES, is_unfinished));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    /// A disk that is full, or not.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (written, room) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            *room -= count;
            written.extend_from_slice(&bytes[..count]);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_once_it_has_room() {
        let (disk, stream) = (Disk::default(), Arc::new(ErrorStream::default()));
        stream.start_thread(disk.clone());
        disk.0.lock().unwrap().1 = 6;
        for line in ["one\n", "two\n", "three\n"] {
            stream.write(line);
            stream.finish();
        }
        assert_eq!(stream.state().lines.take_dropped(), 2);
        stream.state().lines.drop_lines(b"two\nthree\n");
        disk.0.lock().unwrap().1 = 100;
        stream.write("four\n");
        stream.finish();
        assert_eq!(disk.0.lock().unwrap().0, b"one\ntw\nfour\n");
        assert!(!stream.state().lines.has_dropped(), "it was reported");
    }

    #[test]
    fn a_reader_that_has_stopped_holds_up_no_writer() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let stream = Arc::new(ErrorStream::default());
        stream.start_thread(File::from(writer));
        let line = format!("{}\n", "x".repeat(99));
        (0..100_000).for_each(|_| stream.write(&line)); // more than are kept
        assert!(stream.state().lines.has_dropped());
        let reading = thread::spawn(move || {
            let (mut reader, mut bytes, mut received) = (File::from(reader), [0; 1 << 16], 0);
            loop {
                let read = reader.read(&mut bytes).unwrap();
                received += bytes[..read].iter().filter(|byte| **byte == b'\n').count();
                if bytes[..read].ends_with(b"last\n") {
                    return received;
                }
            }
        });
        stream.finish();
        stream.write("last\n");
        let received = reading.join().unwrap();
        stream.finish(); // it reports once it has written all
        assert!((40_000..100_000).contains(&received), "{received} lines");
        assert!(!stream.state().lines.has_dropped(), "it was reported");
    }
}
