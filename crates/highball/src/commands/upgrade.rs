//! `highball upgrade`.

use crate::commands::{announce, ask, ends_within, process, unexpected, CommandError, LOOK_EVERY};
use crate::control::asking;
use crate::control::finding::{ours_else_others, running};
use crate::control::messages::{Answer, Question};
use crate::control::selection::{selected, the_whole};
use crate::output::progress;
use highball_config::Selector;
use highball_link::{ServerReport, UpgradeReport};
use std::io;

/// Replaces the selected instance by a new process, and waits for the result.
pub(crate) fn upgrade(selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_whole(&found, selector)?;
    announce(instance);
    let pid = instance.status.pid;
    let process = process(pid)?;
    let number = match ask(instance, Question::Upgrade)? {
        Answer::Upgrading { number, .. } => number,
        Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
        _ => return Err(unexpected(instance)),
    };
    let is_successor = |status: &ServerReport| status.predecessor == Some(pid);
    let mut before = String::new();
    loop {
        let has_ended =
            ends_within(&process, LOOK_EVERY).map_err(|error| CommandError::Silent(pid, error))?;
        let upgrade = match asking::ask(&instance.address, Question::Status) {
            // A control socket that was named is the new process's by now.
            Ok(Answer::Status(status)) if status.pid != pid && is_successor(&status) => {
                return print_succeeded(status.pid, &status.version);
            }
            Ok(Answer::Status(status)) => status.processes.upgrade.filter(|upgrade| upgrade.number == number),
            Ok(_) => return Err(unexpected(instance)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                continue
            }
            // It has finished what it had, and is not asked any more.
            Err(_) => match ours_else_others(|places| {
                running(places, is_successor).into_iter().find(|one| is_successor(&one.status))
            }) {
                Some(successor) => return print_succeeded(successor.status.pid, &successor.status.version),
                None if has_ended => return Err(CommandError::Ended(pid)),
                None => continue,
            },
        };
        let Some(UpgradeReport { state, pid: new, version, failure, .. }) = upgrade else {
            return Err(unexpected(instance));
        };
        match (state.as_str(), new) {
            ("done", Some(new)) => return print_succeeded(new, &version.unwrap_or_default()),
            ("failed", _) => return Err(CommandError::UpgradeFailed(pid, failure.unwrap_or_default())),
            (now, _) if now != before => {
                progress(upgrade_words(now));
                before = state;
            }
            _ => {}
        }
    }
}

fn print_succeeded(pid: i32, version: &str) -> Result<(), CommandError> {
    progress(format_args!("a new process serves: highball {version} (pid {pid})"));
    Ok(())
}

fn upgrade_words(state: &str) -> &str {
    match state {
        "queued" => "waiting until it can begin",
        "booting" => "starting the new process",
        "taking over" => "letting it accept connections",
        other => other,
    }
}
