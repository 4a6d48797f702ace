//! The banner on a terminal when the server serves: one link to open, the applications, and how to stop the server.

use crate::log::{show, Ink, Terminal};
use highball_config::{App, Settings};
use highball_link::{AppProcesses, SupervisorReport};
use highball_text::visible;
use std::fmt::Write as _;
use std::time::Duration;

/// Largest number of applications to list; the others are in `highball status`.
const LISTED: usize = 10;

/// A server that begins to serve.
pub(super) struct Banner<'a> {
    pub(super) settings: &'a Settings,
    /// The link to open.
    pub(super) link: String,
    /// The addresses of the applications, in the order of the settings.
    pub(super) urls: Vec<String>,
}

/// Prints the first line at once, because booting may take a while.
pub(super) fn announce(settings: &Settings) {
    if let Some(terminal) = terminal(settings) {
        let what = match &settings.apps[..] {
            [app] => format!("is starting {} ({})", visible(&app.name), visible(&app.environment)),
            apps => format!("is starting {} applications", apps.len()),
        };
        show(&format!(
            "{} {what}\n",
            terminal.paint(Ink::Bold, concat!("Highball ", env!("CARGO_PKG_VERSION")))
        ));
    }
}

/// Returns the terminal, if the log goes to one and is for people.
pub(super) fn terminal(settings: &Settings) -> Option<Terminal> {
    Terminal::of_standard_error().filter(|_| settings.log.format == highball_config::LogFormat::Human)
}

/// Returns how to stop the server, and what then happens to requests.
pub(super) fn how_to_stop(settings: &Settings) -> String {
    let wait = settings.drain_grace + settings.drain_timeout;
    if settings.is_development() || wait.is_zero() {
        "Ctrl-C (does not wait for requests)".into()
    } else {
        format!("Ctrl-C (waits up to {} for requests; press again to stop now)", seconds(wait))
    }
}

/// `4 s`, `5 min`.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        secs if secs >= 120 => format!("{} min", secs / 60),
        secs => format!("{secs} s"),
    }
}

impl Banner<'_> {
    /// Prints the banner.
    pub(super) fn show(&self, terminal: Terminal, report: Option<&SupervisorReport>) {
        show(&self.text(terminal, report));
    }

    fn text(&self, terminal: Terminal, report: Option<&SupervisorReport>) -> String {
        let mut text = String::from("\n");
        let mut row = |name: &str, what: &str, ink: Option<Ink>| {
            let what = visible(what).into_owned();
            let what = ink.map_or(what.clone(), |ink| terminal.paint(ink, &what));
            let _ = writeln!(text, "  {} {what}", terminal.paint(Ink::Dim, &format!("{name:<8}")));
        };
        row("Open", &self.link, Some(Ink::Link));
        let processes = |app: &App| report?.apps.iter().find(|processes| processes.id == app.id);
        match &self.settings.apps[..] {
            [app] => one_app(app, processes(app)).iter().for_each(|(name, what)| row(name, what, None)),
            apps => {
                let longest = apps.iter().take(LISTED).map(|app| app.name.chars().count()).max().unwrap_or(0);
                for (at, (app, url)) in apps.iter().zip(&self.urls).enumerate().take(LISTED) {
                    let state = processes(app).map_or("", state);
                    let name = if at == 0 { "Apps" } else { "" };
                    row(name, &format!("{:<longest$}  {url}{state}", app.name), None);
                }
                if apps.len() > LISTED {
                    row("", &format!("and {} more: highball status", apps.len() - LISTED), None);
                }
            }
        }
        row("Stop", &how_to_stop(self.settings), None);
        text + "\n"
    }
}

/// Returns a note about an application that does not serve.
fn state(processes: &AppProcesses) -> &'static str {
    match &processes.phase[..] {
        "asleep" => "  (boots at its first request)",
        "failed" => "  (did not boot: see above)",
        _ => "",
    }
}

fn one_app(app: &App, processes: Option<&AppProcesses>) -> Vec<(&'static str, String)> {
    let framework = processes.and_then(|processes| processes.framework.as_deref());
    let framework = framework.map(|framework| format!("{framework}, ")).unwrap_or_default();
    let mut rows = vec![("App", format!("{}: {framework}{}", app.name, app.environment))];
    let Some(processes) = processes else { return rows };
    if let Some(ruby) = &processes.runtime.ruby {
        let compiler = processes.runtime.jit.as_ref().map(|jit| format!(", {}", jit.of_compiler()));
        rows.push(("Ruby", format!("{ruby}{}", compiler.unwrap_or_default())));
        let workers = match &processes.sizing {
            Some(sizing) if sizing.min < sizing.max => format!("{} to {}", sizing.min, sizing.max),
            _ => processes.workers_wanted.to_string(),
        };
        let plural = |count: &str| if count == "1" { "" } else { "s" };
        let threads = app.threads.to_string();
        rows.push((
            "Workers",
            format!("{workers} worker{} × {threads} thread{}", plural(&workers), plural(&threads)),
        ));
    }
    rows
}
