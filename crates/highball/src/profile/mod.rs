//! `highball profile`: where the time of a running application goes.
//!
//! In reading order: `taking` and `merging` (in the server: workers make profiles, which become one report), this file (the command), `calls` (the report as stacks and methods), and the forms of the file: `page`, `folded`, `pprof`, `speedscope`.

mod calls;
mod folded;
mod merging;
mod page;
mod pprof;
mod speedscope;
pub(crate) mod taking;

use crate::commands::CommandError;
use crate::control::asking::ask_until_interrupted;
use crate::control::finding::Instance;
use crate::control::messages::{Answer, Question};
use crate::control::selection::{is_selected, selected, the_only};
use crate::output::{complain, print, progress, write_out};
use crate::random::random_digits;
use crate::status::profile_report::ProfileReport;
use calls::Calls;
use highball_config::{ProfileFormat, ProfileMode, ProfileOptions, Selector};
use highball_link::AppReport;
use highball_text::{counted, visible_path};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// Methods that are printed.
const SHOWN: usize = 5;
/// Files in the current folder that are not overwritten.
const MOST_FILES: u32 = 1000;

/// Why there is no profile.
#[derive(Debug, Error)]
pub(crate) enum ProfileError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("the server has {0} applications; name one of them: {1}")]
    WhichApp(usize, String),
    #[error("{name} exists already, and is not overwritten; name another file", name = visible_path(.0))]
    Exists(PathBuf),
    #[error("cannot write {name}: {source}", name = visible_path(.0), source = .1)]
    File(PathBuf, io::Error),
}

/// What the file says of the profile.
pub(crate) struct About {
    pub(crate) app: String,
    pub(crate) mode: ProfileMode,
    pub(crate) time: Duration,
    pub(crate) began: SystemTime,
}

/// A page with the flame graph of a report. Its policy allows the style and the script that this nonce names.
pub(crate) fn page_of(report: &ProfileReport, about: &About, nonce: &str) -> String {
    page::page(report, &Calls::of(report), about, nonce)
}

/// Profiles the selected application, and writes the file.
pub(crate) fn profile(asked: &ProfileOptions, selector: &Selector) -> Result<(), ProfileError> {
    let found = selected(selector).map_err(CommandError::from)?;
    let instance = the_only(&found).map_err(CommandError::from)?;
    let app = the_app(instance, selector)?;
    let format = format_of(asked);
    // Before the time is spent on it.
    let output = Output::open(asked.output.as_deref(), &app.name, format)?;
    let about = About { app: app.name.clone(), mode: asked.mode, time: asked.time, began: SystemTime::now() };
    if matches!(output, Output::File(..)) {
        let whom = asked.worker.map_or_else(|| "all workers".into(), |worker| format!("worker {worker}"));
        let seconds = asked.time.as_secs();
        progress(format_args!("sampling {whom} of {} for {seconds} s (mode {}) …", app.name, asked.mode));
    }
    let report = match take(asked, app, instance) {
        Ok(report) => report,
        Err(error) => {
            output.remove();
            return Err(error.into());
        }
    };
    report.problems.iter().for_each(complain);
    let calls = Calls::of(&report);
    let bytes = match format {
        ProfileFormat::Html => {
            page::page(&report, &calls, &about, &random_digits().map_err(CommandError::from)?).into_bytes()
        }
        ProfileFormat::Folded => folded::folded(&calls).into_bytes(),
        ProfileFormat::Pprof => pprof::pprof(&calls, &about).map_err(CommandError::from)?,
        ProfileFormat::Speedscope => speedscope::speedscope(&calls, &about).into_bytes(),
    };
    output.write(&bytes, format)?;
    if let Output::File(path, _) = &output {
        summarize(&report, &calls, path, format);
    }
    Ok(())
}

fn take(asked: &ProfileOptions, app: &AppReport, instance: &Instance) -> Result<ProfileReport, CommandError> {
    let question = Question::Profile {
        app: app.processes.id.0,
        worker: asked.worker,
        mode: asked.mode,
        milliseconds: asked.time.as_millis() as u64,
        by_path: asked.by_path,
    };
    let pid = instance.status.pid;
    let end = Question::EndProfile { app: app.processes.id.0 };
    let answer = ask_until_interrupted(&instance.address, question, end);
    match answer.map_err(|error| CommandError::Silent(pid, error))? {
        Answer::Profile(report) => Ok(*report),
        Answer::Refused { why } => Err(CommandError::Refused(pid, why)),
        _ => Err(CommandError::Silent(pid, io::ErrorKind::InvalidData.into())),
    }
}

/// The application that is meant.
fn the_app<'a>(instance: &'a Instance, selector: &Selector) -> Result<&'a AppReport, ProfileError> {
    let apps = &instance.status.apps;
    let is_meant = |app: &&AppReport| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app));
    let mut meant = apps.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(app), None) => Ok(app),
        _ => {
            let names: Vec<&str> = apps.iter().map(|app| &app.name[..]).collect();
            Err(ProfileError::WhichApp(apps.len(), names.join(", ")))
        }
    }
}

/// The form that was asked for, or that the file's name stands for.
fn format_of(asked: &ProfileOptions) -> ProfileFormat {
    let name = asked.output.as_deref().map(|path| path.to_string_lossy()).unwrap_or_default();
    let by_name = || match &name[..] {
        "-" => ProfileFormat::Folded,
        name if name.ends_with(".folded") || name.ends_with(".txt") => ProfileFormat::Folded,
        name if name.ends_with(".pb.gz") || name.ends_with(".pprof") => ProfileFormat::Pprof,
        name if name.ends_with(".json") => ProfileFormat::Speedscope,
        _ => ProfileFormat::Html,
    };
    asked.format.unwrap_or_else(by_name)
}

fn ending(format: ProfileFormat) -> &'static str {
    match format {
        ProfileFormat::Html => "html",
        ProfileFormat::Folded => "folded",
        ProfileFormat::Pprof => "pb.gz",
        ProfileFormat::Speedscope => "speedscope.json",
    }
}

/// Where the profile goes.
enum Output {
    Standard,
    /// A new file: root follows no link that another user has made, and overwrites nothing.
    File(PathBuf, File),
}

impl Output {
    fn open(path: Option<&Path>, app: &str, format: ProfileFormat) -> Result<Output, ProfileError> {
        match path {
            Some(path) if path == Path::new("-") => Ok(Output::Standard),
            Some(path) => Output::create(path.to_owned()),
            None => {
                let plain = |char: char| {
                    if char.is_ascii_alphanumeric() || "-_.".contains(char) {
                        char
                    } else {
                        '-'
                    }
                };
                let name: String = app.chars().map(plain).collect();
                let numbered = |number| match number {
                    1 => format!("profile-{name}.{}", ending(format)),
                    number => format!("profile-{name}-{number}.{}", ending(format)),
                };
                let mut tried = (1..=MOST_FILES).map(|number| Output::create(numbered(number).into()));
                let opened = tried.find(|opened| !matches!(opened, Err(ProfileError::Exists(_))));
                opened.unwrap_or_else(|| Err(ProfileError::Exists(numbered(MOST_FILES).into())))
            }
        }
    }

    fn create(path: PathBuf) -> Result<Output, ProfileError> {
        match OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path) {
            Ok(file) => Ok(Output::File(path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ProfileError::Exists(path)),
            Err(error) => Err(ProfileError::File(path, error)),
        }
    }

    fn write(&self, bytes: &[u8], format: ProfileFormat) -> Result<(), ProfileError> {
        match self {
            Output::Standard if format == ProfileFormat::Pprof => {
                Ok(write_out(bytes).map_err(CommandError::from)?)
            }
            Output::Standard => Ok(print(&String::from_utf8_lossy(bytes)).map_err(CommandError::from)?),
            Output::File(path, file) => {
                let mut file: &File = file;
                file.write_all(bytes).map_err(|error| ProfileError::File(path.clone(), error))
            }
        }
    }

    /// Removes the file, in which nothing is.
    fn remove(&self) {
        if let Output::File(path, _) = self {
            let _ = std::fs::remove_file(path); // it is empty, if it stays
        }
    }
}

/// Prints where the most time goes.
fn summarize(report: &ProfileReport, calls: &Calls, path: &Path, format: ProfileFormat) {
    let total = calls.total.max(1);
    for (name, weight) in calls.by_own_weight().into_iter().take(SHOWN) {
        let percent = 100.0 * weight as f64 / total as f64;
        progress(format_args!("{percent:5.1}%  {name}"));
    }
    if calls.total == 0 {
        let why = match report.mode {
            ProfileMode::Cpu => "nothing was computed. Try `--mode wall`",
            ProfileMode::Wall => "no request was running",
            ProfileMode::Gvl => "no thread waited for the GVL",
            ProfileMode::Allocations => "hardly any objects were made",
        };
        progress(format_args!("There are no samples: {why}."));
    }
    let samples = counted(report.samples, "sample");
    let workers = counted(report.workers.len() as u64, "worker");
    progress(format_args!("{}: {samples} of {workers}{}", visible_path(path), next_step(format)));
}

fn next_step(format: ProfileFormat) -> impl fmt::Display {
    match format {
        ProfileFormat::Html => "; open it in a browser",
        ProfileFormat::Folded => "",
        ProfileFormat::Pprof => "; show it by `go tool pprof -http=: FILE`",
        ProfileFormat::Speedscope => "; drop it on https://www.speedscope.app",
    }
}
