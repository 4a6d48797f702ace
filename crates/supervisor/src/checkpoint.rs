//! Steps at which a test can make the process `highball` wait, so that a process can be killed exactly there. For tests
//! only (`CONTRIBUTING.md`, "Checkpoints"): without the environment variable [`FOLDER_VARIABLE`], a checkpoint costs
//! one look at a cached value. `lib/highball/checkpoint.rb` is the same for molds and workers.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{fs, io};
use tracing::{error, warn};

/// The environment variable that names the folder in which a test asks for stops.
pub const FOLDER_VARIABLE: &str = "HIGHBALL_CHECKPOINTS";

/// Every step that can be asked for, in the order of a life.
pub const STEPS: [&str; 42] = [
    "restart.booted",
    "restart.canary_forked",
    "restart.canary_ready",
    "restart.admitted",
    "restart.replaced",
    "restart.last_retired",
    "restart.undoing",
    "refork.asking",
    "refork.relieving",
    "refork.retiring",
    "refork.promoted",
    "refork.replaced",
    "refork.last_retired",
    "refork.done",
    "companion.ordered",
    "companion.started",
    "companion.ending",
    "companion.gone",
    "upgrade.ready",
    "upgrade.taking_over",
    "upgrade.let_in",
    "upgrade.handed_over",
    "opener.taken",
    "opener.ended",
    "drain.started",
    "drain.front_drained",
    "drain.workers_retired",
    "acme.attempt_written",
    "acme.attempt_synced",
    "acme.attempt_renamed",
    "acme.account_written",
    "acme.account_synced",
    "acme.account_renamed",
    "acme.account_kept",
    "acme.ordered",
    "acme.shown",
    "acme.proven",
    "acme.issued",
    "acme.certificate_written",
    "acme.certificate_synced",
    "acme.certificate_renamed",
    "acme.kept",
];

/// The longest that a step waits, whatever becomes of the test.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often it checks whether it may go on.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits here while the test's folder holds a file with the name of this step. Only the caller waits: other tasks run,
/// and the events that they report are handled afterwards.
pub async fn pass(step: &'static str) {
    if let Some(folder) = folder() {
        if let Err(error) = wait_at(folder, step).await {
            error!(name: "checkpoint_failed", step, %error, "the checkpoint could not be kept");
        }
    }
}

fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let read = || {
        let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from)?;
        warn!(
            name: "checkpoints_on",
            folder = %folder.display(), "{FOLDER_VARIABLE} is set: for tests, processes wait where its files say"
        );
        Some(folder)
    };
    FOLDER.get_or_init(read).as_deref()
}

#[allow(clippy::disallowed_methods)] // the folder is a test's
async fn wait_at(folder: &Path, step: &str) -> io::Result<()> {
    if !STEPS.contains(&step) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no such step"));
    }
    let asked = folder.join(step);
    if !asked.exists() {
        return Ok(());
    }
    let reached = folder.join(format!("{step}.reached"));
    let unfinished = folder.join(format!("{step}.{}", std::process::id()));
    fs::write(&unfinished, std::process::id().to_string())?;
    fs::rename(&unfinished, &reached)?;
    let until = Instant::now() + LONGEST_WAIT;
    while asked.exists() {
        if Instant::now() >= until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no test let it go on in time"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_waits_as_long_as_the_file_is_there_and_says_who_waits() {
        let folder = tempfile::tempdir().unwrap();
        wait_at(folder.path(), STEPS[0]).await.unwrap(); // no file asks for it
        let asked = folder.path().join(STEPS[0]);
        fs::write(&asked, "").unwrap();
        let waiting = wait_at(folder.path(), STEPS[0]);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(LOOK_EVERY * 5, &mut waiting).await.is_err());
        let reached = fs::read_to_string(folder.path().join(format!("{}.reached", STEPS[0]))).unwrap();
        assert_eq!(reached, std::process::id().to_string());
        fs::remove_file(&asked).unwrap();
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_step_that_is_not_in_the_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(wait_at(folder.path(), "../elsewhere").await.is_err());
    }
}
