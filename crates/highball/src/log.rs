//! Event lines on standard error, in one style: for people one line with what happened and its facts as
//! `name=value` (long ones below it, indented); for programs one JSON object. Where there are several applications, a line
//! about one of them begins with its name.
//!
//! On a terminal, a line begins with `highball:` and has colours, and events with [`DETAIL`] as their target are left out.
//!
//! Everywhere else, only events begin with a time. What an application of another user prints has the application's name
//! before it. Text of an application stands within a line, or indented below one: it cannot pass for another event.

mod error_stream;
mod terminal;

use error_stream::ErrorStream;
use highball_config::LogFormat;
use highball_link::DETAIL;
use highball_supervisor::OutputSink;
use highball_text::{cut, json as json_text, visible, LONGEST};
use serde_json::{Map, Value};
use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
pub(crate) use terminal::{has_colours, Ink, Terminal};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// The facts that tell people what to do. Each is on a separate line.
const REMEDIES: [&str; 2] = ["remedy", "command"];
/// The fact that a span adds to the lines within it.
const APPLICATION: &str = "application";
/// The facts that people read as part of the message, and the words between. Programs get them as fields.
const SPOKEN: [(&str, &str); 4] =
    [("addresses", " on "), ("url", " at "), ("link", ": "), ("cut_off", " for ")];
/// Facts longer than this are on separate lines.
const INLINE_CHARS: usize = 60;

/// Where all lines go.
static ERROR_STREAM: LazyLock<Arc<ErrorStream>> = LazyLock::new(Arc::default);

/// Sends all events of this process to standard error. `HIGHBALL_LOG` sets the level (`error`, `warn`,
/// `info`, `debug`, `trace`); default `info`.
pub(crate) fn start(format: LogFormat) {
    let level = std::env::var("HIGHBALL_LOG").ok().and_then(|level| level.parse().ok());
    let level: LevelFilter = level.unwrap_or(LevelFilter::INFO);
    let style = match (format, Terminal::of_standard_error()) {
        (LogFormat::Json, _) => Style::Json,
        (LogFormat::Human, Some(terminal)) => Style::Terminal(terminal),
        (LogFormat::Human, None) => Style::Plain,
    };
    let subscriber = Registry::default().with(Lines { style, level }.with_filter(level));
    // Fails only if it was set before, and then lines go where they went before.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Writes lines for people at a terminal, made of text without control characters.
pub(crate) fn show(lines: &str) {
    ERROR_STREAM.write(lines);
}

/// From now on a separate thread writes, so that no other waits for the reader of standard error.
pub(crate) fn write_aside() {
    #[allow(clippy::disallowed_methods)] // lines are escaped when they are made
    ERROR_STREAM.start_thread(std::io::stderr());
}

/// Writes what was not written yet: the process is about to end.
pub(crate) fn finish() {
    ERROR_STREAM.finish();
}

/// For lines that the processes of an application print, where Highball reads them.
pub(crate) fn app_output(format: LogFormat) -> OutputSink {
    Arc::new(move |application, line| {
        let text = match format {
            LogFormat::Human => format!("{} | {line}\n", visible(application)),
            LogFormat::Json => json_output(&timestamp(SystemTime::now()), application, line),
        };
        ERROR_STREAM.write(&text);
    })
}

/// As an event, but that it says where it comes from.
fn json_output(time: &str, application: &str, line: &str) -> String {
    let facts = vec![("stream", "output".into())];
    let application = Some(application.to_string());
    json(time, "INFO", Facts { application, message: line.into(), facts, ..Facts::default() })
}

/// What lines look like.
#[derive(Debug, Clone, Copy)]
enum Style {
    /// For people who watch.
    Terminal(Terminal),
    /// For people who read a file, a pipe or a journal.
    Plain,
    /// For programs.
    Json,
}

struct Lines {
    style: Style,
    level: LevelFilter,
}

impl Lines {
    /// Whether people at a terminal are spared this event: the banner or a later line says it.
    fn leaves_out(&self, event: &Event<'_>) -> bool {
        matches!(self.style, Style::Terminal(_))
            && event.metadata().target() == DETAIL
            && self.level <= LevelFilter::INFO
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut facts = Facts::default();
        attributes.record(&mut facts);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(facts);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if self.leaves_out(event) {
            return;
        }
        let application = context.event_span(event).and_then(|span| {
            let extensions = span.extensions();
            extensions.get::<Facts>().and_then(|of_span| of_span.application.clone())
        });
        let name = event.metadata().name();
        // Without a name, tracing has the place in the sources.
        let event_name = (!name.contains(' ')).then_some(name);
        let mut facts = Facts { event: event_name, application, ..Facts::default() };
        event.record(&mut facts);
        let level = event.metadata().level().as_str();
        let time = || timestamp(SystemTime::now());
        let text = match self.style {
            Style::Terminal(terminal) => on_terminal(terminal, level, &facts),
            Style::Plain => human(&time(), level, &facts),
            Style::Json => json(&time(), level, facts),
        };
        ERROR_STREAM.write(&text);
    }
}

/// What an event says: its message, and its facts in the order given.
#[derive(Default)]
struct Facts {
    /// Its name, for programs: `docs/log-events.md`. Events of the level `debug` have none.
    event: Option<&'static str>,
    /// The name of the application that it is about.
    application: Option<String>,
    message: String,
    facts: Vec<(&'static str, Value)>,
}

impl Facts {
    fn add(&mut self, field: &Field, value: Value) {
        let value = shortened(value);
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        } else if field.name() == APPLICATION {
            self.application = value.as_str().map(str::to_string);
        } else {
            self.facts.push((field.name(), value));
        }
    }
}

/// Of longer messages and facts the rest is left out: they may come from an application.
fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST => cut(&text, LONGEST).into(),
        other => other,
    }
}

impl Visit for Facts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

fn human(time: &str, level: &str, event: &Facts) -> String {
    let (message, inline, below) = (message(event), inline(event), below(event));
    format!("{time} {level:<5} {message}{inline}\n{below}")
}

/// Who speaks, and nothing that a developer at the terminal knows.
fn on_terminal(terminal: Terminal, level: &str, event: &Facts) -> String {
    let level = match level {
        "ERROR" => terminal.paint(Ink::Red, "error: "),
        "WARN" => terminal.paint(Ink::Yellow, "warning: "),
        "INFO" => String::new(),
        _ => terminal.paint(Ink::Dim, &format!("{}: ", level.to_ascii_lowercase())),
    };
    let (name, inline) = (terminal.paint(Ink::Dim, "highball:"), terminal.paint(Ink::Dim, &inline(event)));
    format!("{name} {level}{}{inline}\n{}", message(event), below(event))
}

/// The application that the event is about, what happened, and the facts that people read with it.
fn message(event: &Facts) -> String {
    let application = event.application.as_ref().map(|name| format!("{}: ", visible(name)));
    let mut text = application.unwrap_or_default() + &indented(&event.message);
    for (name, value) in &event.facts {
        if let Some((_, between)) = SPOKEN.iter().find(|(spoken, _)| spoken == name) {
            let _ = write!(text, "{between}{}", visible(&plain(value)));
        }
    }
    text
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

fn is_below((name, value): &(&'static str, Value)) -> bool {
    let is_long = |text: &str| text.contains('\n') || text.chars().count() > INLINE_CHARS;
    REMEDIES.contains(name) || value.as_str().is_some_and(is_long)
}

/// The facts that are not spoken.
fn shown(event: &Facts) -> impl Iterator<Item = &(&'static str, Value)> {
    event.facts.iter().filter(|(name, _)| SPOKEN.iter().all(|(spoken, _)| spoken != name))
}

/// The short facts: ` worker=3 state="in flight"`.
fn inline(event: &Facts) -> String {
    let mut line = String::new();
    for (name, value) in shown(event).filter(|fact| !is_below(fact)) {
        let text = plain(value);
        if text.contains(' ') || text.is_empty() {
            let _ = write!(line, " {name}=\"{}\"", visible(&text.replace('\\', "\\\\").replace('"', "\\\"")));
        } else {
            let _ = write!(line, " {name}={}", visible(&text));
        }
    }
    line
}

/// The long facts, each on a line or more, and what to do.
fn below(event: &Facts) -> String {
    let below = shown(event).filter(|fact| is_below(fact));
    below.map(|(name, value)| format!("    {name}: {}\n", indented(&plain(value)))).collect()
}

/// Each line but the first begins with blanks, and none moves the cursor.
fn indented(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).map(visible);
    lines.collect::<Vec<_>>().join("\n        ")
}

fn json(time: &str, level: &str, event: Facts) -> String {
    let mut object = Map::new();
    object.insert("time".into(), time.into());
    object.insert("level".into(), level.to_ascii_lowercase().into());
    if let Some(name) = event.event {
        object.insert("event".into(), name.into());
    }
    object.insert("message".into(), event.message.into());
    if let Some(application) = event.application {
        object.insert(APPLICATION.into(), application.into());
    }
    object.extend(event.facts.into_iter().map(|(name, value)| (name.to_string(), value)));
    json_text::compact(&object) + "\n"
}

/// RFC 3339 in UTC, with milliseconds: `2026-11-21T05:17:03.123Z`.
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil_date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// The Gregorian date `days` after 1970-01-01. Counts in eras of 400 years from 0000-03-01, so that the leap day
/// is the last day of a year.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        let at = |seconds, millis: u32| timestamp(UNIX_EPOCH + Duration::new(seconds, millis * 1_000_000));
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399, 7), "2000-02-28T23:59:59.007Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_795_238_223, 123), "2026-11-21T05:17:03.123Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }

    fn an_event() -> Facts {
        let facts =
            vec![("worker", 3.into()), ("state", "in flight".into()), ("backtrace", "a.rb:1\nb.rb:2".into())];
        Facts { event: Some("worker_died"), message: "the worker died".into(), facts, ..Facts::default() }
    }

    #[test]
    fn people_get_a_line_and_long_facts_below_it() {
        let text = human("T", "WARN", &an_event());
        assert_eq!(
            text,
            "T WARN  the worker died worker=3 state=\"in flight\"\n    backtrace: a.rb:1\n        b.rb:2\n"
        );
    }

    #[test]
    fn a_terminal_gets_no_time_and_colours_if_it_has_them() {
        let text = |level, has_colours| on_terminal(Terminal::with_colours(has_colours), level, &an_event());
        let below = "    backtrace: a.rb:1\n        b.rb:2\n";
        let plain = format!("highball: warning: the worker died worker=3 state=\"in flight\"\n{below}");
        assert_eq!(text("WARN", false), plain);
        assert!(text("INFO", false).starts_with("highball: the worker died"));
        let coloured = text("ERROR", true);
        assert!(coloured
            .starts_with("\x1b[2mhighball:\x1b[0m \x1b[31merror: \x1b[0mthe worker died\x1b[2m worker=3"));
    }

    #[test]
    fn people_read_an_address_with_the_message_and_programs_get_a_field() {
        let facts = vec![("pid", 7.into()), ("addresses", "http://[::1]:1".into())];
        let event = || Facts { message: "serving".into(), facts: facts.clone(), ..Facts::default() };
        assert_eq!(human("T", "INFO", &event()), "T INFO  serving on http://[::1]:1 pid=7\n");
        let object: Value = serde_json::from_str(&json("T", "INFO", event())).unwrap();
        assert_eq!((&object["message"], &object["addresses"]), (&"serving".into(), &"http://[::1]:1".into()));
    }

    #[test]
    fn among_several_applications_one_is_named() {
        let event = || Facts { application: Some("blog".into()), ..an_event() };
        assert!(human("T", "WARN", &event()).starts_with("T WARN  blog: the worker died"));
        let object: Value = serde_json::from_str(&json("T", "WARN", event())).unwrap();
        assert_eq!(object["application"], "blog");
    }

    #[test]
    fn what_applications_say_cannot_pass_for_an_event() {
        let event = Facts {
            application: Some("b\nT ERROR".into()),
            message: "a\nT ERROR forged\x1b[2J".into(),
            facts: vec![("why", "x\r\n\x1b[31mT".into()), ("at", "y\x07".into()), ("at", "\x1b z".into())],
            ..Facts::default()
        };
        let text = human("T", "WARN", &event);
        assert_eq!(
            text,
            "T WARN  b\\nT ERROR: a\n        T ERROR forged\\x1b[2J at=y\\x07 at=\"\\x1b z\"\n    why: x\n        \
             \\x1b[31mT\n"
        );
    }

    #[test]
    fn no_hidden_character_is_raw_for_programs() {
        let event = || Facts {
            application: Some("b\u{202e}".into()),
            message: "a\u{9b}2J\u{85}".into(),
            facts: vec![("ruby", "3\u{1b}\u{7f}\u{2066}\u{feff}".into())],
            ..Facts::default()
        };
        let text = json("T", "INFO", event());
        let parts = [r"a\u009b2J\u0085", r"b\u202e", r"3\u001b\u007f\u2066\ufeff"];
        parts.iter().for_each(|part| assert!(text.contains(part), "{part} is missing in {text}"));
        assert_eq!(
            human("T", "INFO", &event()),
            "T INFO  b\\u{202e}: a\\u{9b}2J\\u{85} ruby=3\\x1b\\x7f\\u{2066}\\u{feff}\n"
        );
    }

    #[test]
    fn long_facts_say_how_much_is_left_out() {
        let long = "x".repeat(LONGEST + 7);
        assert!(shortened(long.into()).as_str().unwrap().ends_with("x [… 7 bytes more]"));
    }

    #[test]
    fn what_applications_print_says_so() {
        let object: Value = serde_json::from_str(&json_output("T", "blog", "hello")).unwrap();
        assert_eq!((&object["stream"], &object["application"]), (&"output".into(), &"blog".into()));
        assert_eq!((&object["time"], &object["message"]), (&"T".into(), &"hello".into()));
    }

    #[test]
    fn programs_get_an_object() {
        let object: Value = serde_json::from_str(&json("T", "WARN", an_event())).unwrap();
        assert_eq!((&object["level"], &object["event"]), (&"warn".into(), &"worker_died".into()));
        assert_eq!(object["worker"], 3);
        assert_eq!(object["backtrace"], "a.rb:1\nb.rb:2");
    }
}
