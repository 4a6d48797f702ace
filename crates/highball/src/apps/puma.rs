//! Evaluating a Puma configuration: the application's Ruby does it, in a separate process. Its time and its output
//! are limited.

use crate::apps::source::gem_lib;
use highball_config::{PumaAnswer, PumaQuestion, Settings};
use highball_supervisor::ruby_command;
use rustix::io::Errno;
use rustix::process::{kill_process_group, Pid, Signal};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{sync_channel, Receiver};
use std::time::Duration;
use tracing::{info, warn};

/// Time for Ruby to start, set up the application's gems, and evaluate the file.
const TIME: Duration = Duration::from_secs(30);
/// Time for what Ruby has printed last.
const LAST_LINES: Duration = Duration::from_millis(200);
/// The most that is read of Ruby's report, and of what it prints, in bytes.
const REPORT_BYTES: u64 = 1 << 20;
const PRINTED_BYTES: u64 = 64 << 10;
/// Lines of what was printed that an error message shows.
const SHOWN_LINES: usize = 10;

/// Evaluates the file.
pub(crate) fn ask(question: &PumaQuestion<'_>) -> Result<PumaAnswer, String> {
    let lib = gem_lib()
        .ok_or("Highball's Ruby code (lib/highball) is not near this binary; name it in HIGHBALL_LIB")?;
    let mut command = ruby_command(question.app, &lib.join("highball/puma_config.rb"))?;
    command.arg(question.file).arg("--end-with-stdin");
    if !question.has_environment {
        // As Puma's files expect it that choose one themselves.
        for name in ["RAILS_ENV", "RACK_ENV", "APP_ENV"] {
            command.env_remove(name);
        }
    }
    let activated = highball_front::activated_count();
    if activated > 0 {
        // As Puma's files look for systemd's sockets.
        command.env("LISTEN_FDS", activated.to_string());
    }
    let (report, printed) = run(command, TIME)?;
    serde_json::from_str(&report).map_err(|_| {
        let lines: Vec<&str> = printed.lines().collect();
        let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n    ");
        format!("Ruby could not evaluate it; it printed:\n    {shown}")
    })
}

/// What the command writes to standard output, and to standard error.
fn run(mut command: Command, time: Duration) -> Result<(String, String), String> {
    // Its standard input ends with this process, however that ends.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = PathBuf::from(command.get_program());
    // A separate group: what the file has started ends with it.
    let child = command.process_group(0).spawn();
    let mut child = child.map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let report = reading(child.stdout.take(), REPORT_BYTES);
    let printed = reading(child.stderr.take(), PRINTED_BYTES);
    let text = report.recv_timeout(time);
    end(&mut child).map_err(|error| format!("Ruby cannot be ended: {error}"))?;
    match text {
        Ok(text) => Ok((text, printed.recv_timeout(LAST_LINES).unwrap_or_default())),
        Err(_) => Err(format!("Ruby did not finish evaluating it within {} s", time.as_secs())),
    }
}

/// Reads to the end, at most `most` bytes, on a separate thread.
fn reading(from: Option<impl Read + Send + 'static>, most: u64) -> Receiver<String> {
    let (done, text) = sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // After an error, the text ends there.
        let _ = from.map(|from| from.take(most).read_to_end(&mut bytes));
        let _ = done.send(String::from_utf8_lossy(&bytes).into_owned()); // it may not be waited for any more
    });
    text
}

/// Ends the process and all of its group.
fn end(child: &mut Child) -> io::Result<()> {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL); // it may have ended
    }
    match child.wait() {
        // In a server, the supervisor reaps every child of this process, and may have been first.
        Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => Ok(()),
        ended => ended.map(drop),
    }
}

/// Logs which files configure the applications, and which statements of Puma configurations are not carried out.
pub(crate) fn report(settings: &Settings) {
    for app in &settings.apps {
        for note in &app.file_notes {
            info!(name: "configuration_found", application = app.name, "{note}");
        }
        for note in &app.puma_notes {
            warn!(name: "puma_statement_ignored", remedy = note.remedy, "{}: {}", note.place(), note.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{waitpid, WaitOptions};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script);
        command
    }

    #[test]
    fn the_report_is_kept_apart_from_what_is_printed() {
        let (report, printed) = run(shell("echo report; echo printed >&2"), TIME).unwrap();
        assert_eq!((report.as_str(), printed.as_str()), ("report\n", "printed\n"));
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_started() {
        let error = run(shell("sleep 1000 & sleep 1000"), Duration::from_millis(100)).unwrap_err();
        assert!(error.contains("did not finish"), "{error}");
    }

    #[test]
    fn it_may_have_been_reaped_already() {
        let mut child = shell("exit 0").process_group(0).spawn().unwrap();
        let pid = Pid::from_child(&child);
        waitpid(Some(pid), WaitOptions::empty()).unwrap();
        end(&mut child).unwrap();
    }

    #[test]
    fn more_than_the_limit_is_not_read() {
        let (report, _) = run(shell("exec cat /dev/zero"), TIME).unwrap();
        assert_eq!(report.len() as u64, REPORT_BYTES);
    }

    #[test]
    fn a_ruby_that_is_not_there_is_named() {
        let error = run(Command::new("/no/such/ruby"), TIME).unwrap_err();
        assert!(error.contains("/no/such/ruby cannot be run"), "{error}");
    }
}
