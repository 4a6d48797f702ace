//! The terminal: its own screen and single keys while the picture is shown. It gets back what it was at every end: a key, a
//! signal, an error, a panic.

use rustix::process::{getpid, kill_process, Signal};
use rustix::termios::{tcgetattr, tcgetwinsize, tcsetattr, OptionalActions, Termios};
use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};
use tokio::signal::unix::{signal, Signal as SignalStream, SignalKind};
use tokio::sync::mpsc;

/// The other screen, without a cursor, and without wrapping long lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not say it.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// Readings of keys that wait until the last ones have been obeyed.
const KEYS: usize = 16;

/// What the terminal was, while the picture is shown.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Characters of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPress {
    Up,
    Down,
    PageUp,
    PageDown,
    Enter,
    Escape,
    Tab,
    Char(char),
    /// `q`, Ctrl-C, Ctrl-D.
    Quit,
    /// Ctrl-Z.
    Suspend,
}

/// What comes from it.
#[derive(Debug)]
pub(super) enum TerminalEvent {
    Keys(Vec<KeyPress>),
    Resized,
    Stop,
    End,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Title,
    Soft,
    Warning,
    Selected,
}

impl Style {
    fn sequence(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Title => "\x1b[1m",
            Style::Soft => "\x1b[2m",
            Style::Warning => "\x1b[1;33m",
            Style::Selected => "\x1b[7m",
        }
    }
}

/// A line without anything that a terminal obeys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) style: Style,
}

/// The terminal of this process, while it shows the picture.
#[derive(Debug)]
pub(super) struct Terminal {
    /// What was typed; it closes with the terminal.
    typed: mpsc::Receiver<Vec<u8>>,
    resized: SignalStream,
    stopped: SignalStream,
    continued: SignalStream,
    ends: [SignalStream; 4],
}

impl Terminal {
    pub(super) fn enter() -> io::Result<Terminal> {
        restore_at_panic();
        let listen = |kind| signal(kind);
        let terminal = Terminal {
            typed: read_aside()?,
            resized: listen(SignalKind::window_change())?,
            stopped: listen(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
            continued: listen(SignalKind::from_raw(Signal::CONT.as_raw()))?,
            ends: [
                listen(SignalKind::terminate())?,
                listen(SignalKind::interrupt())?,
                listen(SignalKind::hangup())?,
                listen(SignalKind::quit())?,
            ],
        };
        take()?;
        Ok(terminal)
    }

    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => USUAL_SIZE,
        }
    }

    /// Shows these lines, as many as there is room for.
    pub(super) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let rows = self.size().rows;
        let mut text = String::from("\x1b[H");
        for (row, line) in lines.iter().take(rows).enumerate() {
            if row > 0 {
                text += "\r\n";
            }
            text += line.style.sequence();
            text += &line.text;
            text += "\x1b[0m\x1b[K";
        }
        text += "\x1b[J";
        let mut out = stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    pub(super) async fn next(&mut self) -> TerminalEvent {
        let [terminated, interrupted, hung_up, quit] = &mut self.ends;
        tokio::select! {
            typed = self.typed.recv() => typed.map_or(TerminalEvent::End, |bytes| TerminalEvent::Keys(keys_in(&bytes))),
            _ = self.resized.recv() => TerminalEvent::Resized,
            _ = self.stopped.recv() => TerminalEvent::Stop,
            _ = self.continued.recv() => {
                // By a signal that cannot be noticed it was stopped, and a shell may have changed the terminal since.
                if take().is_err() { TerminalEvent::End } else { TerminalEvent::Resized }
            }
            _ = terminated.recv() => TerminalEvent::End,
            _ = interrupted.recv() => TerminalEvent::End,
            _ = hung_up.recv() => TerminalEvent::End,
            _ = quit.recv() => TerminalEvent::End,
        }
    }

    /// Gives the terminal back, and stops until somebody continues this process.
    pub(super) fn suspend(&self) -> io::Result<()> {
        restore();
        kill_process(getpid(), Signal::STOP)?;
        take()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// What is written to it are sequences of this file, and lines without any.
#[allow(clippy::disallowed_methods)]
fn stdout() -> io::Stdout {
    io::stdout()
}

/// Reads keys on a separate thread, until the terminal is closed. The thread ends with the process.
fn read_aside() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (to, typed) = mpsc::channel(KEYS);
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        let mut bytes = [0; 64];
        // 0: it was closed.
        while let Ok(read @ 1..) = rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut bytes)) {
            if to.blocking_send(bytes[..read].to_vec()).is_err() {
                return;
            }
        }
    })?;
    Ok(typed)
}

/// What these bytes mean. Keys that mean nothing here are left out.
fn keys_in(bytes: &[u8]) -> Vec<KeyPress> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let (key, after) = match (first, after) {
            (0x1b, [b'[' | b'O', b'A', after @ ..]) => (Some(KeyPress::Up), after),
            (0x1b, [b'[' | b'O', b'B', after @ ..]) => (Some(KeyPress::Down), after),
            (0x1b, [b'[', b'5', b'~', after @ ..]) => (Some(KeyPress::PageUp), after),
            (0x1b, [b'[', b'6', b'~', after @ ..]) => (Some(KeyPress::PageDown), after),
            (0x1b, [b'[', after @ ..]) => (None, after_sequence(after)),
            (0x1b, after) => (Some(KeyPress::Escape), after),
            (b'\r' | b'\n', after) => (Some(KeyPress::Enter), after),
            (b'\t', after) => (Some(KeyPress::Tab), after),
            (3 | 4 | b'q', after) => (Some(KeyPress::Quit), after),
            (0x1a, after) => (Some(KeyPress::Suspend), after),
            (b' '..=b'~', after) => (Some(KeyPress::Char(char::from(*first))), after),
            (_, after) => (None, after),
        };
        keys.extend(key);
        rest = after;
    }
    keys
}

/// What follows a sequence that is not known here: it ends with a letter or `~`.
fn after_sequence(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte));
    end.map_or(&[], |end| &bytes[end + 1..])
}

/// Takes the terminal, and remembers what it was.
fn take() -> io::Result<()> {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let now = tcgetattr(io::stdin())?;
    let mut raw = before.get_or_insert_with(|| now.clone()).clone();
    raw.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
    let mut out = stdout().lock();
    out.write_all(ENTER.as_bytes())?;
    out.flush()
}

/// Gives it back, once.
fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // It may have been closed: then there is nothing to give back.
        let mut out = stdout().lock();
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

/// Before a panic prints its message, which would be on the other screen.
fn restore_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            usual(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read() {
        assert_eq!(keys_in(b"\x1b[A\x1bOBq"), [KeyPress::Up, KeyPress::Down, KeyPress::Quit]);
        assert_eq!(keys_in(b"\r\x1b"), [KeyPress::Enter, KeyPress::Escape]);
        assert_eq!(
            keys_in(b"+-k\t"),
            [KeyPress::Char('+'), KeyPress::Char('-'), KeyPress::Char('k'), KeyPress::Tab]
        );
        assert_eq!(keys_in(b"\x1b[1;5Cy\x1b[5~"), [KeyPress::Char('y'), KeyPress::PageUp]);
        assert_eq!(keys_in(b"\x1b[1;5"), []);
        assert_eq!(keys_in("ü\0".as_bytes()), []);
    }
}
