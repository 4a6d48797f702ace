//! `highball stop`.

use crate::commands::{announce, ask, ends_within, process, CommandError};
use crate::control::messages::{Answer, Question};
use crate::control::selection::{selected, the_whole};
use crate::output::progress;
use highball_config::Selector;
use std::time::Duration;

/// What an instance may take to end, beyond its own time for draining.
const STOP_SLACK: Duration = Duration::from_secs(10);
/// The longest time for draining that is waited for, whatever an instance says.
const LONGEST_DRAIN_SECONDS: u64 = 7 * 24 * 3600;

/// Stops the selected instance and waits until it has ended.
pub(crate) fn stop(selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_whole(&found, selector)?;
    announce(instance);
    let pid = instance.status.pid;
    let process = process(pid)?;
    let drain_seconds = match ask(instance, Question::Stop)? {
        Answer::Stopping { drain_seconds, .. } => drain_seconds.min(LONGEST_DRAIN_SECONDS),
        Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
        _ => 0,
    };
    let limit = Duration::from_secs(drain_seconds) + STOP_SLACK;
    if !ends_within(&process, limit).map_err(|error| CommandError::Silent(pid, error))? {
        return Err(CommandError::StillRuns(pid, limit.as_secs()));
    }
    progress(format_args!("highball (pid {pid}) has stopped"));
    Ok(())
}
