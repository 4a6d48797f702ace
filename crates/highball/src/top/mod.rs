//! `highball top`: shows what a running server does, as a live screen, or once as text or JSON.
//!
//! It asks the server once a second over its control socket, and draws the answer with ratatui. In reading order: this file
//! (asking, keys, actions), [`view`] (what the user has chosen), [`table`] (columns that fit the width), [`picture`] (the
//! tables), [`screen`] (their layout on a screen), [`terminal`] (taking the terminal, and giving it back).

mod picture;
mod screen;
mod table;
mod terminal;
mod view;

use crate::commands::CommandError;
use crate::control::actions::AppAction;
use crate::control::asking::{ask, ask_aside};
use crate::control::finding::Instance;
use crate::control::messages::{Answer, Question};
use crate::control::selection::{is_selected, selected, the_only};
use crate::output::print;
use crate::status::overview::rates::History;
use crate::status::overview::report::Overview;
use highball_config::{Display, Selector};
use highball_text::json;
use screen::Look;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};
use terminal::{KeyPress, Terminal, TerminalEvent};
use tokio::task::JoinHandle;
use tokio::time::{sleep, sleep_until};
use view::{confirmation, Confirmation, Panel, View};

/// Time from one report to the next request for one.
const EVERY: Duration = Duration::from_secs(1);
/// Time between the first two reports, from which rates are made.
const BETWEEN: Duration = Duration::from_millis(300);
/// Time for which the outcome of an action is shown.
const NOTICE_TIME: Duration = Duration::from_secs(8);
/// Time without an answer after which the server counts as ended.
const SILENCE_TIME: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn top(display: Display, selector: &Selector) -> Result<(), CommandError> {
    let mut found = selected(selector)?;
    let pid = the_only(&found)?.status.pid;
    found.retain(|instance| instance.status.pid == pid);
    let Some(instance) = found.pop() else { return Err(CommandError::Ended(pid)) };
    let apps = apps_of(&instance, selector);
    #[allow(clippy::disallowed_methods)] // nothing is written
    let is_live = io::stdin().is_terminal() && io::stdout().is_terminal() && moves_its_cursor();
    match display {
        Display::Token => token(&instance),
        Display::Json => {
            let overview = ask_overview(&instance, &apps, true)?;
            Ok(print(&(json::pretty(&overview) + "\n"))?)
        }
        Display::Once { backtraces } => once(&instance, &apps, backtraces),
        Display::Live if is_live => {
            Ok(crate::process::event_loop::event_loop()?.block_on(Top::new(instance, apps).follow())?)
        }
        Display::Live => once(&instance, &apps, false),
    }
}

/// Returns the numbers of the selected applications.
fn apps_of(instance: &Instance, selector: &Selector) -> Vec<u32> {
    let apps = instance.status.apps.iter();
    let meant = apps.filter(|app| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app)));
    meant.map(|app| app.processes.id.0).collect()
}

fn token(instance: &Instance) -> Result<(), CommandError> {
    let pid = instance.status.pid;
    match ask(&instance.address, Question::DashboardToken) {
        Ok(Answer::DashboardToken { token: Some(token) }) => Ok(print(&format!("{token}\n"))?),
        Ok(Answer::DashboardToken { token: None }) => {
            let why = "its dashboard accepts no actions; serve with --admin ADDRESS --admin-actions";
            Err(CommandError::Refused(pid, why.into()))
        }
        Ok(_) => Err(CommandError::Silent(pid, io::ErrorKind::InvalidData.into())),
        Err(error) => Err(CommandError::Silent(pid, error)),
    }
}

/// Returns whether the terminal can draw in place. A `dumb` terminal, as in an editor, can only print.
fn moves_its_cursor() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Prints one snapshot as text.
fn once(instance: &Instance, apps: &[u32], backtraces: bool) -> Result<(), CommandError> {
    let mut history = History::default();
    history.add(ask_overview(instance, apps, false)?);
    crate::process::event_loop::event_loop()?.block_on(async { sleep(BETWEEN).await });
    history.add(ask_overview(instance, apps, true)?);
    Ok(print(&picture::text(&history, backtraces))?)
}

fn ask_overview(instance: &Instance, apps: &[u32], states: bool) -> Result<Overview, CommandError> {
    let pid = instance.status.pid;
    let answer = ask(&instance.address, Question::Overview { states });
    overview_in(answer, apps).map_err(|error| CommandError::Silent(pid, error))
}

fn overview_in(answer: io::Result<Answer>, apps: &[u32]) -> io::Result<Overview> {
    match answer? {
        Answer::Overview(mut overview) => {
            // Applications that were added since are on the page of all.
            overview.apps.retain(|app| apps.is_empty() || apps.contains(&app.id));
            Ok(*overview)
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is another version of Highball")),
    }
}

/// An event while the live screen is shown.
enum TopEvent {
    Overview(io::Result<Overview>),
    Acted(Result<String, String>),
    AskAgain,
    Key(KeyPress),
    Resized,
    /// The terminal was closed, or this process has to end.
    End,
    /// This process has to stop until it is continued.
    Stop,
}

/// The live screen.
struct Top {
    instance: Arc<Instance>,
    apps: Vec<u32>,
    history: History,
    view: View,
    asking: Option<JoinHandle<io::Result<Answer>>>,
    acting: Option<JoinHandle<Result<String, String>>>,
    next: Instant,
    answered: Instant,
}

impl Top {
    fn new(instance: Instance, apps: Vec<u32>) -> Top {
        let all = instance.status.apps.len() == apps.len();
        Top {
            instance: Arc::new(instance),
            apps: if all { Vec::new() } else { apps },
            history: History::default(),
            view: View::default(),
            asking: None,
            acting: None,
            next: Instant::now(),
            answered: Instant::now(),
        }
    }

    /// Runs until a key, a signal or the end of the terminal ends it.
    async fn follow(mut self) -> io::Result<()> {
        let mut terminal = Terminal::enter()?;
        let look = Look::of_environment();
        loop {
            terminal.draw(|area| screen::screen(&self.history, &mut self.view, area, look))?;
            match self.next_happening(&mut terminal).await {
                TopEvent::Overview(Ok(overview)) => {
                    self.answered = Instant::now();
                    self.view.problem = None;
                    if self.history.now().is_none() {
                        self.next = self.answered + BETWEEN; // rates need two reports
                    }
                    self.history.add(overview);
                }
                TopEvent::Overview(Err(error)) => {
                    if self.answered.elapsed() > SILENCE_TIME || is_of_the_end(&error) {
                        drop(terminal);
                        let pid = self.instance.status.pid;
                        return Err(io::Error::other(format!(
                            "the instance with pid {pid} does not answer any more: {error}"
                        )));
                    }
                    self.view.problem = Some(format!("the server does not answer: {error}"));
                }
                TopEvent::Acted(outcome) => {
                    let text = outcome.unwrap_or_else(|why| format!("not done: {why}"));
                    self.view.notice = Some((text, Instant::now() + NOTICE_TIME));
                    self.next = Instant::now();
                }
                TopEvent::AskAgain => self.ask(),
                TopEvent::Key(KeyPress::Suspend) | TopEvent::Stop => terminal.suspend()?,
                TopEvent::Key(KeyPress::Quit) | TopEvent::End => return Ok(()),
                TopEvent::Key(key) => self.pressed(key),
                TopEvent::Resized => {}
            }
        }
    }

    async fn next_happening(&mut self, terminal: &mut Terminal) -> TopEvent {
        let apps = self.apps.clone();
        let is_asking = self.asking.is_some();
        tokio::select! {
            answer = ended(&mut self.asking) => TopEvent::Overview(overview_in(answer, &apps)),
            outcome = ended(&mut self.acting) => TopEvent::Acted(outcome),
            () = sleep_until(self.next.into()), if !is_asking => TopEvent::AskAgain,
            happening = terminal.next() => match happening {
                TerminalEvent::Key(key) => TopEvent::Key(key),
                TerminalEvent::Resized => TopEvent::Resized,
                TerminalEvent::Stop => TopEvent::Stop,
                TerminalEvent::End => TopEvent::End,
            },
        }
    }

    fn ask(&mut self) {
        self.next = Instant::now() + EVERY;
        let instance = Arc::clone(&self.instance);
        let question = Question::Overview { states: true };
        self.asking = Some(tokio::spawn(async move { ask_aside(&instance.address, question).await }));
    }

    fn pressed(&mut self, key: KeyPress) {
        if let Some(Confirmation { app, action, .. }) = self.view.confirmation.take() {
            if key == KeyPress::Char('y') {
                self.act(app, action);
            }
            return;
        }
        let Some(now) = self.history.now() else { return };
        match key {
            KeyPress::Up => self.moved(-1),
            KeyPress::Down => self.moved(1),
            KeyPress::PageUp => self.moved(-10),
            KeyPress::PageDown => self.moved(10),
            KeyPress::Enter if self.view.panel == Panel::Lists && self.view.selected.is_some() => {
                self.view.toggle(Panel::Request);
            }
            KeyPress::Enter | KeyPress::Escape => self.view.toggle(self.view.panel),
            KeyPress::Char('?') => self.view.toggle(Panel::Help),
            KeyPress::Char('d') => self.view.toggle(Panel::Diagnosis),
            KeyPress::Tab => self.view.choose_next_app(now),
            KeyPress::Char(letter) => self.view.confirmation = confirmation(letter, now, &self.view),
            KeyPress::Quit | KeyPress::Suspend => {}
        }
    }

    /// Chooses another request, or scrolls the panel of one.
    fn moved(&mut self, rows: isize) {
        match self.history.now() {
            Some(now) if self.view.panel == Panel::Lists => self.view.select(now, rows),
            _ => self.view.scrolled = self.view.scrolled.saturating_add_signed(rows),
        }
    }

    fn act(&mut self, app: u32, action: AppAction) {
        let instance = Arc::clone(&self.instance);
        self.acting = Some(tokio::spawn(async move {
            match ask_aside(&instance.address, Question::Act { app, action }).await {
                Ok(Answer::Begun { what }) => Ok(what),
                Ok(Answer::Refused { why }) => Err(why),
                Ok(_) => Err("the server answered something else".into()),
                Err(error) => Err(error.to_string()),
            }
        }));
    }
}

/// Returns whether the server has ended.
fn is_of_the_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Waits for the end of a task, or without end if there is none.
async fn ended<T>(task: &mut Option<JoinHandle<T>>) -> T {
    let Some(handle) = task else { return std::future::pending().await };
    match handle.await {
        Ok(result) => {
            *task = None;
            result
        }
        Err(_) => {
            *task = None;
            std::future::pending().await // it has panicked, which was reported
        }
    }
}
