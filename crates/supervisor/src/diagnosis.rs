//! A failed boot, with everything that helps to mend it: what the terminal, the page in the browser, `highball
//! doctor` and `highball status` show. It holds no secrets: they are masked when it is made.

use crate::message::{BootFailure, RubyError};
use crate::restart::Failure;
use crate::secrets::Secrets;
use crate::spawn_journey::Step;
use highball_config::App;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Lines before and after the one that matters.
const AROUND: u32 = 5;
/// The longest line of source or log that is shown, in characters.
const LINE_CHARACTERS: usize = 300;
/// How far into a file a line is looked for, in bytes.
const SOURCE_BYTES: u64 = 4 * 1024 * 1024;
/// Most places whose source is shown.
const EXCERPTS: usize = 3;
/// What is read of the end of the application's log, in bytes, and shown of it, in lines.
const LOG_BYTES: u64 = 16 * 1024;
const LOG_LINES: usize = 20;
/// Most variables of the environment, and characters of each, that are shown.
const VARIABLES: usize = 200;
const VALUE_CHARACTERS: usize = 500;

/// Why an application did not boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The short name of the cause, which never changes: `missing_gem`, `syntax_error`… `exception` where the cause is
    /// not known.
    pub cause: String,
    /// The step of the spawn journey that failed.
    pub step: Step,
    /// What went wrong.
    pub error: RubyError,
    /// What to do, in a sentence.
    pub remedy: Option<String>,
    /// The command that does it, to be run in `folder`.
    pub command: Option<String>,
    /// The place that the error points to and the calls of the application that led there, innermost first.
    pub sources: Vec<Excerpt>,
    /// The folder of the application.
    pub folder: PathBuf,
    /// Highball, Ruby, and what was loaded of others, with their versions.
    pub versions: BTreeMap<String, String>,
    /// The environment of the process, secrets masked.
    pub environment: BTreeMap<String, String>,
    /// What the application printed last while it booted, and the end of its log.
    pub log_tail: Vec<String>,
}

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Its path.
    pub file: String,
    /// The line that matters, from 1.
    pub line: u32,
    /// The number of the first line that is shown.
    pub first_line: u32,
    /// The lines, without their ends.
    pub lines: Vec<String>,
}

impl Diagnosis {
    /// Adds what can be found out here to what the mold said, and masks the secrets.
    pub(crate) fn of(failure: BootFailure, app: &App, folder: &Path) -> Diagnosis {
        let mut variables: BTreeMap<String, String> = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect();
        variables.extend(app.env.clone());
        for name in ["RAILS_ENV", "RACK_ENV", "APP_ENV"] {
            variables.insert(name.into(), app.environment.clone());
        }
        let secrets = Secrets::of(&variables, folder);
        let mask = |text: &String| secrets.known_masked(text);
        let sources = excerpts(&failure.error, folder, &secrets);
        let mut log_tail = failure.output;
        log_tail.extend(end_of_log(&folder.join("log").join(format!("{}.log", app.environment))));
        let mut versions = failure.versions;
        versions.insert("Highball".into(), env!("CARGO_PKG_VERSION").into());
        versions.insert(
            "Ruby interpreter".into(),
            app.ruby.as_deref().unwrap_or(Path::new("ruby")).display().to_string(),
        );
        let shown = |(name, value): (&String, &String)| {
            let value: String = secrets.variable(name, value).chars().take(VALUE_CHARACTERS).collect();
            (name.clone(), value)
        };
        Diagnosis {
            cause: failure.cause,
            step: failure.step,
            remedy: failure.remedy.as_ref().map(mask),
            command: failure.command.as_ref().map(mask),
            error: masked_error(&failure.error, &secrets),
            sources,
            folder: folder.into(),
            versions,
            environment: variables.iter().take(VARIABLES).map(shown).collect(),
            log_tail: log_tail.iter().map(|line| cut(&secrets.masked(line))).collect(),
        }
    }

    /// What failed, in one sentence.
    pub fn summary(&self) -> String {
        format!("{} failed: {}", self.step, self.error)
    }

    /// What failed, where, and what to do: several lines.
    pub fn in_brief(&self) -> String {
        Failure::of_diagnosis(self).to_string()
    }

    /// The source of the place that the error points to, as people read it; `None` if there is none.
    pub(crate) fn source(&self) -> Option<String> {
        self.sources.first().map(Excerpt::to_string)
    }

    /// As the mold might have said it.
    pub(crate) fn remedy_with_command(&self) -> Option<String> {
        match (&self.remedy, &self.command) {
            (Some(remedy), Some(command)) => Some(format!("{remedy}\n{command}")),
            (remedy, command) => remedy.clone().or_else(|| command.clone()),
        }
    }
}

/// As people read it in a terminal.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} failed ({}):\n", capitalized(&self.step.to_string()), self.cause)?;
        for line in self.error.to_string().lines() {
            writeln!(f, "    {line}")?;
        }
        if let Some(place) = self.error.place() {
            writeln!(f, "\nat {place}")?;
        }
        for excerpt in self.sources.iter().take(1) {
            write!(f, "\n{excerpt}")?;
        }
        if let Some(remedy) = &self.remedy {
            writeln!(f, "\nWhat to do: {remedy}")?;
        }
        if let Some(command) = &self.command {
            writeln!(f, "\n    cd {}\n    {command}", self.folder.display())?;
        }
        Ok(())
    }
}

/// The line that matters is pointed at.
impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in (self.first_line..).zip(&self.lines) {
            let mark = if number == self.line { '>' } else { ' ' };
            writeln!(f, "{mark} {number:>4}  {line}")?;
        }
        Ok(())
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

pub(crate) fn masked_error(error: &RubyError, secrets: &Secrets) -> RubyError {
    RubyError {
        class: error.class.clone(),
        message: secrets.masked(&error.message),
        file: error.file.clone(),
        line: error.line,
        backtrace: error.backtrace.iter().map(|line| secrets.masked(line)).collect(),
    }
}

/// The source of the error's place first, then of other lines of the application in its backtrace.
fn excerpts(error: &RubyError, folder: &Path, secrets: &Secrets) -> Vec<Excerpt> {
    let mut places: Vec<(String, u32)> = Vec::new();
    if let (Some(file), Some(line)) = (&error.file, error.line) {
        places.push((file.clone(), line));
    }
    let own = error.backtrace.iter().filter_map(|call| {
        let mut parts = call.splitn(3, ':');
        let (file, line) = (parts.next()?, parts.next()?.parse().ok()?);
        let within = Path::new(file).strip_prefix(folder).ok()?;
        (!within.starts_with("vendor")).then(|| (file.to_string(), line))
    });
    for place in own {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.iter().take(EXCERPTS).filter_map(|(file, line)| excerpt(folder, file, *line, secrets)).collect()
}

fn excerpt(folder: &Path, file: &str, line: u32, secrets: &Secrets) -> Option<Excerpt> {
    let path = folder.join(file);
    if !path.is_file() {
        return None; // "(eval)", a pipe, or gone by now
    }
    let first_line = line.saturating_sub(AROUND).max(1);
    let mut reader = BufReader::new(File::open(path).ok()?.take(SOURCE_BYTES));
    let mut lines = Vec::new();
    let mut bytes = Vec::new();
    for number in 1..=line.saturating_add(AROUND) {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).ok()? == 0 {
            break;
        }
        if number >= first_line {
            let text = String::from_utf8_lossy(&bytes);
            lines.push(cut(&secrets.masked(text.trim_end_matches(['\n', '\r']))));
        }
    }
    (!lines.is_empty()).then(|| Excerpt { file: file.into(), line, first_line, lines })
}

fn cut(line: &str) -> String {
    line.chars().take(LINE_CHARACTERS).collect()
}

/// The last lines of the application's log; nothing if there is none.
fn end_of_log(path: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    if !path.is_file() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| line.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_the_line_and_what_stands_around_it_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> = (1..=20).map(|number| format!("line {number}")).collect();
        std::fs::write(folder.path().join("app.rb"), lines.join("\n") + "\n  password: hunter2\n").unwrap();
        let none = Secrets::default();
        let middle = excerpt(folder.path(), "app.rb", 10, &none).unwrap();
        assert_eq!((middle.first_line, middle.lines.len()), (5, 11));
        assert!(middle.to_string().contains("\n>   10  line 10\n"));
        let end = excerpt(folder.path(), "app.rb", 21, &none).unwrap();
        assert_eq!(end.lines.last().unwrap(), "  password: [masked]");
        assert_eq!(excerpt(folder.path(), "app.rb", 1, &none).unwrap().first_line, 1);
        assert_eq!(excerpt(folder.path(), "(eval)", 1, &none), None);
        assert_eq!(excerpt(folder.path(), "app.rb", 100, &none), None);
    }

    #[test]
    fn the_places_of_an_error_are_its_own_and_those_of_the_application() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("a.rb"), "one\ntwo\n").unwrap();
        let error = RubyError {
            file: Some(path("a.rb")),
            line: Some(2),
            backtrace: vec![
                "/usr/lib/x.rb:1:in `x'".into(),
                format!("{}:2:in `y'", path("a.rb")),
                format!("{}:1:in `z'", path("a.rb")),
            ],
            ..RubyError::default()
        };
        let found: Vec<u32> =
            excerpts(&error, folder.path(), &Secrets::default()).iter().map(|one| one.line).collect();
        assert_eq!(found, [2, 1]);
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let lines: Vec<String> = (1..=5000).map(|number| format!("line {number}")).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let end = end_of_log(&path);
        assert_eq!((end.len(), end.last().unwrap().as_str()), (LOG_LINES, "line 5000"));
        assert!(end_of_log(&folder.path().join("none.log")).is_empty());
    }
}
