//! The terminal: an alternate screen and single keys while `top` runs. The terminal gets its state back at every end: a key,
//! a signal, an error, a panic.

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    disable_raw_mode, enable_raw_mode, Clear, ClearType, DisableLineWrap, EnableLineWrap,
    EnterAlternateScreen, LeaveAlternateScreen,
};
use ratatui::layout::Rect;
use ratatui::text::Text;
use ratatui::{TerminalOptions, Viewport};
use rustix::process::{getpid, kill_process, Signal};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;
use tokio::signal::unix::{signal, Signal as SignalStream, SignalKind};
use tokio::sync::mpsc;

/// Size of a terminal that does not report it.
const USUAL_SIZE: Rect = Rect::new(0, 0, 80, 24);
/// Largest number of events that wait.
const EVENTS: usize = 64;

/// Whether the alternate screen is shown.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

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

/// An event of the terminal.
#[derive(Debug)]
pub(super) enum TerminalEvent {
    Key(KeyPress),
    Resized,
    Stop,
    End,
}

/// The terminal of this process while `top` runs.
#[derive(Debug)]
pub(super) struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<io::Stdout>>,
    /// Typed keys; closed with the terminal.
    typed: mpsc::Receiver<Event>,
    stopped: SignalStream,
    continued: SignalStream,
    ends: [SignalStream; 4],
}

impl Terminal {
    pub(super) fn enter() -> io::Result<Terminal> {
        restore_at_panic();
        let viewport = Viewport::Fixed(USUAL_SIZE);
        let screen =
            ratatui::Terminal::with_options(CrosstermBackend::new(stdout()), TerminalOptions { viewport })?;
        let mut terminal = Terminal {
            screen,
            typed: read_aside()?,
            stopped: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
            continued: signal(SignalKind::from_raw(Signal::CONT.as_raw()))?,
            ends: [
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
                signal(SignalKind::hangup())?,
                signal(SignalKind::quit())?,
            ],
        };
        terminal.take()?;
        Ok(terminal)
    }

    /// Shows the text that `text_for` returns for the size, as far as there is room.
    pub(super) fn draw(&mut self, text_for: impl FnOnce(Rect) -> Text<'static>) -> io::Result<()> {
        let size = self.screen.backend().size()?;
        let area = if size.width == 0 || size.height == 0 {
            USUAL_SIZE
        } else {
            Rect::from((Default::default(), size))
        };
        if self.screen.get_frame().area() != area {
            self.screen.resize(area)?;
        }
        self.screen.draw(|frame| frame.render_widget(text_for(area), area))?;
        Ok(())
    }

    pub(super) async fn next(&mut self) -> TerminalEvent {
        let [terminated, interrupted, hung_up, quit] = &mut self.ends;
        tokio::select! {
            typed = self.typed.recv() => match typed {
                None => TerminalEvent::End,
                Some(Event::Key(key)) => press(key).map_or(TerminalEvent::Resized, TerminalEvent::Key),
                Some(_) => TerminalEvent::Resized,
            },
            _ = self.stopped.recv() => TerminalEvent::Stop,
            _ = self.continued.recv() => {
                // A signal that cannot be caught has stopped the process, and a shell may have changed the terminal since.
                if self.take().is_err() { TerminalEvent::End } else { TerminalEvent::Resized }
            }
            _ = terminated.recv() => TerminalEvent::End,
            _ = interrupted.recv() => TerminalEvent::End,
            _ = hung_up.recv() => TerminalEvent::End,
            _ = quit.recv() => TerminalEvent::End,
        }
    }

    /// Gives the terminal back, and stops until somebody continues this process.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        restore();
        kill_process(getpid(), Signal::STOP)?;
        self.take()
    }

    /// Takes the terminal. Lines that are too long are cut: some terminals count widths differently.
    fn take(&mut self) -> io::Result<()> {
        restore(); // so that its state, which a shell may have changed, is looked at again
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::Release);
        execute!(stdout(), EnterAlternateScreen, Hide, DisableLineWrap, Clear(ClearType::All))?;
        self.screen.clear()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Writes only what comes from ratatui, whose cells hold no control characters, and the sequences of this file.
#[allow(clippy::disallowed_methods)]
fn stdout() -> io::Stdout {
    io::stdout()
}

/// Reads events on a separate thread until the terminal is closed. The thread ends with the process.
fn read_aside() -> io::Result<mpsc::Receiver<Event>> {
    let (to, typed) = mpsc::channel(EVENTS);
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        while let Ok(event) = event::read() {
            if to.blocking_send(event).is_err() {
                return;
            }
        }
    })?;
    Ok(typed)
}

/// Returns what a key means, or `None`.
fn press(key: KeyEvent) -> Option<KeyPress> {
    Some(match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
        (KeyCode::Char('c' | 'd'), true) | (KeyCode::Char('q'), false) => KeyPress::Quit,
        (KeyCode::Char('z'), true) => KeyPress::Suspend,
        (KeyCode::Char(letter), false) => KeyPress::Char(letter),
        (KeyCode::Up, _) => KeyPress::Up,
        (KeyCode::Down, _) => KeyPress::Down,
        (KeyCode::PageUp, _) => KeyPress::PageUp,
        (KeyCode::PageDown, _) => KeyPress::PageDown,
        (KeyCode::Enter, _) => KeyPress::Enter,
        (KeyCode::Esc, _) => KeyPress::Escape,
        (KeyCode::Tab, _) => KeyPress::Tab,
        _ => return None,
    })
}

/// Gives the terminal back, once.
fn restore() {
    if IS_TAKEN.swap(false, Ordering::AcqRel) {
        // An error means that it was closed: then there is nothing to give back.
        let _ = execute!(stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Gives the terminal back before a panic prints its message, which would be on the alternate screen.
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
    fn keys_have_their_meanings() {
        let of = |code, modifiers| press(KeyEvent::new(code, modifiers));
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        for (code, modifiers) in
            [(KeyCode::Char('q'), none), (KeyCode::Char('c'), control), (KeyCode::Char('d'), control)]
        {
            assert_eq!(of(code, modifiers), Some(KeyPress::Quit));
        }
        assert_eq!(of(KeyCode::Char('z'), control), Some(KeyPress::Suspend));
        assert_eq!(of(KeyCode::Char('+'), KeyModifiers::SHIFT), Some(KeyPress::Char('+')));
        assert_eq!(of(KeyCode::Char('x'), control), None);
        assert_eq!(of(KeyCode::F(1), none), None);
    }
}
