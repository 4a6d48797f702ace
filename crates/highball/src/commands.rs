//! `highball status`, `highball restart` and `highball stop`: finding the instance that is meant, and asking it.
//! `highball memory` finds and asks by the same functions.

use crate::instance::{folder, Answer, Question, RestartStatus, Status, WorkerStatus};
use highball_config::Selector;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// What an answer may take, beyond the time that an instance has for finding it.
const ANSWER_SLACK: Duration = Duration::from_secs(1);
/// How often a restart is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What an instance may take to end, beyond its own time for draining.
const STOP_SLACK: Duration = Duration::from_secs(10);

/// Why a command could not do its work.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error("no Highball runs for this user{0}")]
    NoneRuns(String),
    #[error("several instances of Highball run; say which, by --port N or the application's folder:\n{0}")]
    SeveralRun(String),
    #[error("cannot look for instances in {path}: {source}", path = .0.display(), source = .1)]
    Folder(PathBuf, io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("the instance with pid {0} does not answer: {1}")]
    Silent(i32, io::Error),
    #[error("the instance with pid {0} does not restart: {1}")]
    Refused(i32, String),
    #[error("the restart to generation {0} failed; the version before serves on.\n{1}")]
    RestartFailed(u32, String),
    #[error("the restart to generation {0} is so long ago that its outcome is forgotten; see the log")]
    Forgotten(u32),
    #[error("the instance with pid {0} has ended, and the restart with it")]
    Ended(i32),
    #[error("the instance with pid {0} did not end within {1} s")]
    StillRuns(i32, u64),
}

/// Prints how the selected instance is doing. Without a selector, people are shown every instance.
pub(crate) fn status(json: bool, selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    if json {
        let one = the_only(&found)?;
        println!("{}", serde_json::to_string_pretty(&one.status).unwrap_or_default());
    } else {
        let tables: Vec<String> = found.iter().map(|instance| table(&instance.status)).collect();
        print!("{}", tables.join("\n"));
    }
    Ok(())
}

/// Stops the selected instance and waits until it has ended.
pub(crate) fn stop(selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_only(&found)?;
    let pid = instance.status.pid;
    let process = process(pid)?;
    let answer = ask(&instance.socket, Question::Stop);
    let drain_seconds = match answer.map_err(|error| CommandError::Silent(pid, error))? {
        Answer::Stopping { drain_seconds, .. } => drain_seconds,
        Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
        Answer::Status(_) | Answer::Memory { .. } | Answer::Restarting { .. } => 0,
    };
    let limit = Duration::from_secs(drain_seconds) + STOP_SLACK;
    if !ends_within(&process, limit).map_err(|error| CommandError::Silent(pid, error))? {
        return Err(CommandError::StillRuns(pid, limit.as_secs()));
    }
    println!("highball (pid {pid}) has stopped");
    Ok(())
}

/// Restarts the selected instance, and waits for what becomes of it.
pub(crate) fn restart(selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_only(&found)?;
    let pid = instance.status.pid;
    let silent = |error| CommandError::Silent(pid, error);
    let generation = match ask(&instance.socket, Question::Restart).map_err(silent)? {
        Answer::Restarting { generation, .. } => generation,
        Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
        _ => return Err(silent(io::ErrorKind::InvalidData.into())),
    };
    let process = process(pid)?;
    let mut before = String::new();
    loop {
        let asked = ask(&instance.socket, Question::Status);
        if ends_within(&process, LOOK_EVERY).map_err(silent)? {
            return Err(CommandError::Ended(pid));
        }
        let state = match asked {
            Ok(Answer::Status(status)) => report_on(generation, &status)?,
            Ok(_) => return Err(silent(io::ErrorKind::InvalidData.into())),
            // The machine is busy booting: it lives, and will answer when it is asked again.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                continue
            }
            Err(error) => return Err(silent(error)),
        };
        match state {
            None => return Ok(()),
            Some(state) if state != before => {
                println!("{}", stage_words(&state));
                before = state;
            }
            Some(_) => {}
        }
    }
}

/// Where the restart to this generation is; `None`: it is done, and that has been said.
fn report_on(generation: u32, status: &Status) -> Result<Option<String>, CommandError> {
    let is_it = |restart: &&RestartStatus| restart.generation == generation;
    let Some(restart) = status.restarts.iter().find(is_it) else {
        return Err(CommandError::Forgotten(generation));
    };
    match (restart.state.as_str(), &restart.failure) {
        ("done", _) => {
            let RestartStatus { generation, seconds, .. } = restart;
            println!("generation {generation} serves, after {seconds:.1} s (pid {})", status.pid);
            Ok(None)
        }
        ("failed", why) => Err(CommandError::RestartFailed(generation, why.clone().unwrap_or_default())),
        (state, _) => Ok(Some(state.into())),
    }
}

/// Holds a process, so that its end is noticed.
fn process(pid: i32) -> Result<OwnedFd, CommandError> {
    Pid::from_raw(pid)
        .ok_or(io::ErrorKind::NotFound.into())
        .and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?))
        .map_err(|error| CommandError::Silent(pid, error))
}

/// Whether the process ends within this time.
fn ends_within(process: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    Ok(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit))? > 0)
}

fn stage_words(state: &str) -> &str {
    match state {
        "queued" => "waiting until it can begin",
        "booting" => "booting the new version",
        "probing" => "asking it whether it answers",
        "rolling" => "replacing the workers",
        other => other,
    }
}

/// An instance that has answered.
pub(crate) struct Instance {
    pub(crate) socket: PathBuf,
    pub(crate) status: Status,
}

/// The instances that are meant; at least one.
pub(crate) fn selected(selector: &Selector) -> Result<Vec<Instance>, CommandError> {
    let mut found = running(&folder())?;
    found.retain(|instance| matches(selector, &instance.status));
    if found.is_empty() {
        let port = selector.port.map(|port| format!(" on port {port}"));
        let app = selector.app.as_ref().map(|app| format!(" with the application {}", app.display()));
        return Err(CommandError::NoneRuns(port.or(app).unwrap_or_default()));
    }
    Ok(found)
}

fn matches(selector: &Selector, status: &Status) -> bool {
    selector.port.is_none_or(|port| status.ports.contains(&port))
        && selector.app.as_ref().is_none_or(|app| *app == status.app)
}

fn the_only(found: &[Instance]) -> Result<&Instance, CommandError> {
    if let [one] = found {
        return Ok(one);
    }
    let lines = found.iter().map(|instance| {
        let status = &instance.status;
        format!("    {}  {}  (pid {})", status.app.display(), status.binds.join(" "), status.pid)
    });
    Err(CommandError::SeveralRun(lines.collect::<Vec<_>>().join("\n")))
}

/// Every instance that answers. Sockets of dead ones are removed.
pub(crate) fn running(folder: &Path) -> Result<Vec<Instance>, CommandError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CommandError::Folder(folder.into(), error)),
    };
    let mut found = Vec::new();
    for socket in entries.flatten().map(|entry| entry.path()) {
        let stem = socket.file_stem().and_then(|stem| stem.to_str());
        let Some(pid) = stem.and_then(|stem| stem.parse().ok()) else { continue };
        match ask(&socket, Question::Status) {
            Ok(Answer::Status(status)) => found.push(Instance { socket, status: *status }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&socket); // its process was killed; somebody else may be quicker
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => eprintln!("highball: {}", CommandError::Silent(pid, error)),
        }
    }
    found.sort_by_key(|instance| instance.status.pid);
    Ok(found)
}

/// Asks an instance; waits no longer than it may take.
pub(crate) fn ask(socket: &Path, question: Question) -> io::Result<Answer> {
    let limit = question.time_limit() + ANSWER_SLACK;
    let mut connection = UnixStream::connect(socket)?;
    connection.set_read_timeout(Some(limit))?;
    connection.set_write_timeout(Some(limit))?;
    writeln!(connection, "{}", serde_json::to_string(&question)?)?;
    let mut line = String::new();
    if BufReader::new(connection).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into()); // it is ending
    }
    Ok(serde_json::from_str(&line)?)
}

/// One instance, for people.
fn table(status: &Status) -> String {
    let mut text = String::new();
    let framework = status.framework.as_deref().unwrap_or("not booted yet");
    let ruby = status.ruby.as_ref().map(|ruby| format!(", Ruby {ruby}")).unwrap_or_default();
    let mold = status.mold.as_ref().map_or("none".into(), |mold| match mold.pid {
        Some(pid) => format!("{} (pid {pid})", mold.state),
        None => mold.state.clone(),
    });
    let restarts = match status.restartable {
        Some(false) => "not available: the application was given as an object",
        _ => "available",
    };
    let facts = [
        (
            "highball",
            format!(
                "{} (pid {}), {}, up {}",
                status.version,
                status.pid,
                status.phase,
                duration(status.uptime_seconds)
            ),
        ),
        ("app", format!("{} ({})", status.app.display(), status.environment)),
        ("runs on", format!("{framework}{ruby}")),
        ("listens on", status.binds.join(" ")),
        ("version", format!("generation {}; restarts {restarts}", status.generation)),
        ("mold", mold),
        ("workers", format!("{} wanted", status.workers_wanted)),
        ("requests", format!("{} in the queue", status.queue)),
        ("connections", format!("{}, {} of them hijacked", status.connections, status.hijacked)),
    ];
    for (name, fact) in facts {
        let _ = writeln!(text, "{name:<12} {fact}");
    }
    if let Some(restart) = status.restarts.last() {
        let _ = writeln!(text, "{:<12} {}", "restart", restart_line(restart));
    }
    if let Some(failure) = &status.last_failure {
        let _ = writeln!(text, "{:<12} {}", "last failure", failure.replace('\n', "\n             "));
    }
    if let Some(diagnosis) = status.diagnosis.as_ref().filter(|_| status.phase != "serving") {
        let _ = writeln!(text, "\n{diagnosis}");
    }
    let _ = writeln!(
        text,
        "\n  {:>6}  {:>10}  {:>8}  {:<9}  {:>7}  {:>9}  {:>10}  {:>8}",
        "worker", "generation", "pid", "state", "threads", "in flight", "served", "up"
    );
    for worker in &status.workers {
        let _ = writeln!(text, "{}", row(worker));
    }
    text
}

fn restart_line(restart: &RestartStatus) -> String {
    let RestartStatus { generation, asked_by, state, seconds, .. } = restart;
    format!("to generation {generation} by {asked_by}: {state}, {seconds:.1} s")
}

fn row(worker: &WorkerStatus) -> String {
    let pid = worker.pid.map_or("-".into(), |pid| pid.to_string());
    format!(
        "  {:>6}  {:>10}  {:>8}  {:<9}  {:>7}  {:>9}  {:>10}  {:>8}",
        worker.worker,
        worker.generation,
        pid,
        worker.state,
        worker.threads,
        worker.in_flight,
        worker.served,
        duration(worker.uptime_seconds)
    )
}

/// `42s`, `5m 12s`, `3h 20m`, `2d 4h`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::MoldStatus;
    use std::os::unix::net::UnixListener;

    fn a_status() -> Status {
        Status {
            pid: 42,
            version: "0.1.0".into(),
            phase: "serving".into(),
            uptime_seconds: 3700,
            app: "/srv/blog".into(),
            environment: "production".into(),
            framework: Some("Rails 6.1.7".into()),
            ruby: Some("3.1.2".into()),
            binds: vec!["http://127.0.0.1:3000".into()],
            ports: vec![3000],
            generation: 2,
            restartable: Some(false),
            mold: Some(MoldStatus { pid: Some(43), state: "booted".into() }),
            workers_wanted: 1,
            workers: vec![WorkerStatus {
                worker: 1,
                generation: 2,
                pid: Some(44),
                state: "serving".into(),
                threads: 3,
                uptime_seconds: 59,
                in_flight: 2,
                served: 1000,
            }],
            queue: 5,
            connections: 10,
            hijacked: 1,
            restarts: vec![RestartStatus {
                generation: 2,
                asked_by: "USR1".into(),
                state: "done".into(),
                seconds: 3.25,
                failure: None,
                mold: None,
            }],
            last_failure: None,
            diagnosis: None,
        }
    }

    #[test]
    fn the_table_says_what_matters() {
        let text = table(&a_status());
        for part in [
            "pid 42",
            "up 1h 1m",
            "/srv/blog (production)",
            "Rails 6.1.7, Ruby 3.1.2",
            "http://127.0.0.1:3000",
            "given as an object",
            "to generation 2 by USR1: done, 3.2 s",
            "5 in the queue",
            "1000",
            "59s",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn a_restart_is_done_or_failed_or_somewhere() {
        let mut status = a_status();
        let in_state = |status: &mut Status, state: &str| status.restarts[0].state = state.into();
        assert!(matches!(report_on(2, &status), Ok(None)));
        assert!(matches!(report_on(3, &status), Err(CommandError::Forgotten(3))));
        in_state(&mut status, "probing");
        assert!(matches!(report_on(2, &status), Ok(Some(state)) if state == "probing"));
        in_state(&mut status, "failed");
        status.restarts[0].failure = Some("no luck\nat: a.rb:1".into());
        let error = report_on(2, &status).unwrap_err().to_string();
        assert!(error.ends_with("serves on.\nno luck\nat: a.rb:1"), "{error}");
    }

    #[test]
    fn instances_are_told_apart_by_port_and_app() {
        let by = |port, app: Option<&str>| Selector { port, app: app.map(PathBuf::from) };
        assert!(matches(&by(None, None), &a_status()));
        assert!(matches(&by(Some(3000), Some("/srv/blog")), &a_status()));
        assert!(!matches(&by(Some(3001), None), &a_status()));
        assert!(!matches(&by(None, Some("/srv/shop")), &a_status()));
    }

    #[test]
    fn the_socket_of_a_dead_instance_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("4711.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(running(folder.path()).unwrap().is_empty());
        assert!(!path.exists());
    }
}
