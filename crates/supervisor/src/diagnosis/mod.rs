//! Makes the [`Diagnosis`] of a failure, of a boot or of a request: adds what can be found out here, and masks the secrets.
//!
//! In reading order: this file (a boot), [`failed_request`] (a request, as it is shown), [`request_failure`] (why it
//! failed), [`thread_states`] (what threads of a worker do), [`overrun`] (a request that does not end), [`slow_requests`]
//! (requests that have taken long).

pub(crate) mod failed_request;
pub(crate) mod overrun;
pub(crate) mod request_failure;
pub(crate) mod slow_requests;
pub(crate) mod thread_states;

use crate::core::restart::Failure;
use crate::diagnosis::request_failure::Death;
use crate::facts::boot_failure::{Account, BootFailure};
use crate::process::child;
use highball_config::App;
use highball_link::{Call, Diagnosis, Excerpt, RequestFailure, RubyError, ThreadPlace};
use highball_secrets::Secrets;
use highball_tenant::{Links, TenantFolder};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Lines of source before and after the line of the error.
const AROUND: u32 = 5;
/// The longest line of source or log that is shown, in characters.
const LINE_CHARACTERS: usize = 300;
/// How much of it is looked through for secrets, in characters.
const MASKED_CHARACTERS: usize = 4 * LINE_CHARACTERS;
/// How far into a file a line is looked for, in bytes.
const SOURCE_BYTES: u64 = 4 * 1024 * 1024;
/// Most places whose source is shown, of the error and its calls, and of what caused it.
const EXCERPTS: usize = 3;
/// What is read of the end of the application's log, in bytes, and shown of it, in lines.
const LOG_BYTES: u64 = 16 * 1024;
const LOG_LINES: usize = 20;
/// Most variables of the environment, and characters of each, that are shown.
const VARIABLES: usize = 200;
const VALUE_CHARACTERS: usize = 500;

/// Of a boot: adds what can be found out here to what the mold has reported, and masks the secrets.
pub(crate) fn of_boot(failure: BootFailure, app: &App, folder: &Path) -> Diagnosis {
    let variables = child::variables(app, folder);
    let secrets = Secrets::of(&variables, folder, app.runs_as.another());
    let files = TenantFolder::open(folder, app.runs_as.another()).ok();
    of_failure(failure, &variables, &secrets, app, (folder, files.as_ref()))
}

/// Of a boot of an application whose files cannot be read: without what they hold. Which secrets stand in them is not
/// known; the environment, which may repeat them, is left out.
pub(crate) fn of_boot_without_files(failure: BootFailure, app: &App, folder: &Path) -> Diagnosis {
    let secrets = Secrets::of_environment(&child::variables(app, folder));
    of_failure(failure, &BTreeMap::new(), &secrets, app, (folder, None))
}

fn of_failure(
    failure: BootFailure,
    variables: &BTreeMap<String, String>,
    secrets: &Secrets,
    app: &App,
    place: (&Path, Option<&TenantFolder>),
) -> Diagnosis {
    let diagnosis = of_account(failure.account, variables, secrets, app, place);
    Diagnosis { step: Some(failure.step), ..diagnosis }
}

/// Of a request. `death`: how its worker died; `threads`: where its worker's threads are.
pub(crate) fn of_request(
    failure: &RequestFailure,
    death: Option<&Death>,
    threads: Vec<ThreadPlace>,
    app: &App,
    folder: &Path,
) -> Diagnosis {
    let variables = child::variables(app, folder);
    let mut secrets = Secrets::of(&variables, folder, app.runs_as.another());
    let request = failed_request::shown(&failure.request, failure.status, &mut secrets);
    let account = request_failure::account(failure, death, &threads, app);
    let masked = |lines: &[String]| lines.iter().map(|line| secrets.masked(line)).collect();
    let threads = threads.into_iter();
    let shown = |thread: ThreadPlace| ThreadPlace {
        name: secrets.known_masked(&thread.name),
        backtrace: masked(&thread.backtrace),
        ..thread
    };
    let threads = threads.map(shown).collect();
    let files = TenantFolder::open(folder, app.runs_as.another()).ok();
    let place = (folder, files.as_ref());
    let diagnosis = of_account(account, &variables, &secrets, app, place);
    Diagnosis { request: Some(request), threads, ..diagnosis }
}

fn of_account(
    account: Account,
    variables: &BTreeMap<String, String>,
    secrets: &Secrets,
    app: &App,
    (folder, files): (&Path, Option<&TenantFolder>),
) -> Diagnosis {
    let mask = |text: &String| secrets.own_masked(text, &account.quoted);
    // The application says which files these are, by what it raises and by links: they are for whom it may read them.
    let (sources, end_of_log) = files.map_or_else(Default::default, |files| {
        let log = Path::new("log").join(format!("{}.log", app.environment));
        (excerpts(&account.error, &account.causes, files, secrets), end_of_log(files, &log))
    });
    let mut log_tail = account.output;
    log_tail.extend(end_of_log);
    let mut versions = account.versions;
    versions.insert("Highball".into(), env!("CARGO_PKG_VERSION").into());
    versions.insert(
        "Ruby interpreter".into(),
        app.ruby.as_deref().unwrap_or(Path::new("ruby")).display().to_string(),
    );
    let shown = |(name, value): (&String, &String)| {
        let value: String = secrets.variable(name, value).chars().take(VALUE_CHARACTERS).collect();
        (secrets.name(name), value)
    };
    Diagnosis {
        sources,
        cause: account.cause,
        step: None,
        request: None,
        remedy: account.remedy.as_ref().map(mask),
        command: account.command.as_ref().map(mask),
        error: masked_error(&account.error, secrets),
        causes: account.causes.iter().map(|cause| masked_error(cause, secrets)).collect(),
        threads: Vec::new(),
        folder: folder.into(),
        versions,
        environment: variables.iter().take(VARIABLES).map(shown).collect(),
        log_tail: masked_lines(&log_tail, secrets),
    }
}

/// What failed, where, and what to do: several lines.
pub fn in_brief(diagnosis: &Diagnosis) -> String {
    Failure::of_diagnosis(diagnosis).to_string()
}

/// Why a worker did not start, as it may be logged; what to do is masked in place. The application's files are not read
/// for it: that may take long.
pub(crate) fn start_failure_without_secrets(
    error: &RubyError,
    account: Option<&mut Account>,
    app: &App,
) -> RubyError {
    let secrets = Secrets::of_environment(&child::variables(app, &app.folder));
    if let Some(account) = account {
        account.remedy = account.remedy.as_ref().map(|remedy| secrets.own_masked(remedy, &account.quoted));
    }
    masked_error(error, &secrets)
}

fn masked_error(error: &RubyError, secrets: &Secrets) -> RubyError {
    // What no exception says is our own, but for names and numbers.
    let is_ours = error.class.is_empty();
    let message = if is_ours { secrets.known_masked(&error.message) } else { secrets.masked(&error.message) };
    RubyError {
        class: secrets.known_masked(&error.class),
        message,
        file: error.file.clone(),
        line: error.line,
        backtrace: error.backtrace.iter().map(|line| secrets.masked(line)).collect(),
    }
}

/// The source of the error's place first, then of those of what caused it, then of other lines of the application in its
/// backtrace, as far as they are not to be seen by then.
fn excerpts(
    error: &RubyError,
    causes: &[RubyError],
    folder: &TenantFolder,
    secrets: &Secrets,
) -> Vec<Excerpt> {
    let place_of = |error: &RubyError| Some((error.file.clone()?, error.line?));
    let calls = error.backtrace.iter().filter_map(|line| Call::of(line));
    let own = calls.filter(|call| call.is_of_application(folder.path()));
    let mut places: Vec<(String, u32)> = Vec::new();
    for place in place_of(error).into_iter().chain(causes.iter().filter_map(place_of).take(EXCERPTS)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let most = places.len().max(1) + EXCERPTS - 1;
    for Call { file, line, .. } in own {
        let is_seen = |place: &(String, u32)| place.0 == file && place.1.abs_diff(line) <= AROUND;
        if places.len() < most && !places.iter().any(is_seen) {
            places.push((file.to_string(), line));
        }
    }
    places.iter().filter_map(|(file, line)| excerpt(folder, file, *line, secrets)).collect()
}

fn excerpt(folder: &TenantFolder, file: &str, line: u32, secrets: &Secrets) -> Option<Excerpt> {
    // None for "(eval)", a pipe, or what has gone by now.
    let (opened, _) = folder.file(file, Links::Anywhere).ok()?;
    let first_line = line.saturating_sub(AROUND).max(1);
    let mut reader = BufReader::new(opened.take(SOURCE_BYTES));
    let mut lines = Vec::new();
    let mut bytes = Vec::new();
    for number in 1..=line.saturating_add(AROUND) {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).ok()? == 0 {
            break;
        }
        if number >= first_line {
            lines.push(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_string());
        }
    }
    let lines = masked_lines(&lines, secrets);
    (!lines.is_empty()).then(|| Excerpt { file: file.into(), line, first_line, lines })
}

/// Lines as they may be shown. They are masked together: a key goes over several.
fn masked_lines(lines: &[String], secrets: &Secrets) -> Vec<String> {
    if lines.is_empty() {
        return Vec::new();
    }
    let cut = |line: &str, characters| line.chars().take(characters).collect::<String>();
    // What is cut off does not have to be looked through, as in files that are one line.
    let lines: Vec<String> = lines.iter().map(|line| cut(line, MASKED_CHARACTERS)).collect();
    secrets.masked(&lines.join("\n")).split('\n').map(|line| cut(line, LINE_CHARACTERS)).collect()
}

/// The last lines of the application's log; nothing if there is none.
fn end_of_log(folder: &TenantFolder, name: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let (file, about) = folder.file(name, Links::Anywhere)?;
        let mut bytes = vec![0; LOG_BYTES.min(about.bytes) as usize];
        let length = file.read_at(&mut bytes, about.bytes.saturating_sub(LOG_BYTES))?;
        bytes.truncate(length);
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| line.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(folder: &tempfile::TempDir) -> TenantFolder {
        TenantFolder::open(folder.path(), None).unwrap()
    }

    #[test]
    fn an_excerpt_shows_the_line_and_what_stands_around_it_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> = (1..=20).map(|number| format!("line {number}")).collect();
        std::fs::write(folder.path().join("app.rb"), lines.join("\n") + "\n  password: hunter2\n").unwrap();
        let none = Secrets::default();
        let middle = excerpt(&opened(&folder), "app.rb", 10, &none).unwrap();
        assert_eq!((middle.first_line, middle.lines.len()), (5, 11));
        assert!(middle.to_string().contains("\n>   10  line 10\n"));
        let end = excerpt(&opened(&folder), "app.rb", 21, &none).unwrap();
        assert_eq!(end.lines.last().unwrap(), "  password: [masked]");
        assert_eq!(excerpt(&opened(&folder), "app.rb", 1, &none).unwrap().first_line, 1);
        assert_eq!(excerpt(&opened(&folder), "(eval)", 1, &none), None);
        assert_eq!(excerpt(&opened(&folder), "app.rb", 100, &none), None);
    }

    #[test]
    fn the_places_of_an_error_are_its_own_and_those_of_the_application() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("a.rb"), "one\n".repeat(20)).unwrap();
        let error = RubyError {
            file: Some(path("a.rb")),
            line: Some(2),
            backtrace: vec![
                "/usr/lib/x.rb:1:in `x'".into(),
                format!("{}:2:in `y'", path("a.rb")),
                format!("{}:7:in `z'", path("a.rb")),
                format!("{}:8:in `config.ru'", path("a.rb")),
            ],
            ..RubyError::default()
        };
        let cause = RubyError { file: Some(path("a.rb")), line: Some(3), ..RubyError::default() };
        let lines = |causes: &[RubyError]| -> Vec<u32> {
            let found = excerpts(&error, causes, &opened(&folder), &Secrets::default());
            found.iter().map(|one| one.line).collect()
        };
        assert_eq!(lines(&[]), [2, 8]); // 7 is to be seen around 2
        assert_eq!(lines(&[cause]), [2, 3]);
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let end_of_log = |name: &str| end_of_log(&opened(&folder), Path::new(name));
        let lines: Vec<String> = (1..=5000).map(|number| format!("line {number}")).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let end = end_of_log("x.log");
        assert_eq!((end.len(), end.last().unwrap().as_str()), (LOG_LINES, "line 5000"));
        assert!(end_of_log("none.log").is_empty());
    }
}
