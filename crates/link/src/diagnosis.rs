//! A failure, of a boot or of a request, with everything that helps to fix it: what the terminal, the page in the
//! browser, `highball doctor` and `highball status` show. It holds no secrets: they are masked when it is made.

use crate::ruby::{Call, RubyError, ThreadPlace};
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Why an application did not boot, or did not answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The short name of the cause, which never changes: `missing_gem`, `syntax_error`… `exception` where the cause is
    /// not known.
    pub cause: String,
    /// The step of the spawn journey that failed; `None`: the application had booted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// The request that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<FailedRequest>,
    /// What went wrong.
    pub error: RubyError,
    /// The exceptions that led to it, each the cause of the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<RubyError>,
    /// Where the threads are of a worker that does not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadPlace>,
    /// What to do, in a sentence.
    pub remedy: Option<String>,
    /// The command that does it, to be run in `folder`.
    pub command: Option<String>,
    /// The place that the error points to and the calls of the application that led there, innermost first.
    pub sources: Vec<Excerpt>,
    /// The folder of the application.
    #[serde(with = "highball_text::shown")]
    pub folder: PathBuf,
    /// Highball, Ruby, and what was loaded of others, with their versions.
    pub versions: BTreeMap<String, String>,
    /// The environment of the process: of variables that are not known to be harmless the names alone.
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

/// A request that failed, without its secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequest {
    /// The status that the client gets.
    pub status: u16,
    /// `GET /path?a=b`
    pub line: String,
    /// The header fields, in their order.
    pub fields: Vec<(String, String)>,
    /// The parameters of query and form, decoded.
    pub parameters: Vec<(String, String)>,
}

impl Diagnosis {
    /// What failed, in one sentence.
    pub fn summary(&self) -> String {
        format!("{} failed: {}", self.what_failed(), self.error)
    }

    /// `loading the app`, `GET /path`
    fn what_failed(&self) -> String {
        match (self.step, &self.request) {
            (Some(step), _) => step.to_string(),
            (None, Some(request)) => request.line.clone(),
            (None, None) => "the application".into(),
        }
    }

    /// The source of the place that the error points to, as people read it; `None` if there is none.
    pub fn source(&self) -> Option<String> {
        self.sources.first().map(Excerpt::to_string)
    }

    /// The innermost calls of the application that led to the error, at most `lines`, one a line. All calls count if none is of
    /// the application; `None` if there are none.
    pub fn own_calls(&self, lines: usize) -> Option<String> {
        let is_own = |line: &&String| Call::of(line).is_some_and(|call| call.is_of_application(&self.folder));
        let own: Vec<&str> =
            self.error.backtrace.iter().filter(is_own).take(lines).map(String::as_str).collect();
        if own.is_empty() {
            self.error.calls(lines)
        } else {
            Some(own.join("\n"))
        }
    }

    /// The remedy, and the command for it on a line below.
    pub fn remedy_with_command(&self) -> Option<String> {
        match (&self.remedy, &self.command) {
            (Some(remedy), Some(command)) => Some(format!("{remedy}\n{command}")),
            (remedy, command) => remedy.clone().or_else(|| command.clone()),
        }
    }
}

/// As people read it in a terminal.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} failed ({}):\n", capitalized(&self.what_failed()), self.cause)?;
        for line in self.error.to_string().lines() {
            writeln!(f, "    {line}")?;
        }
        for cause in &self.causes {
            let place = cause.place().map_or(String::new(), |place| format!(" ({place})"));
            writeln!(f, "    caused by {cause}{place}")?;
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
        if self.request.is_some() && !self.error.backtrace.is_empty() {
            writeln!(f, "\nBacktrace:\n    {}", self.error.backtrace.join("\n    "))?;
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
