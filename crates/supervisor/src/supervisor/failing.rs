//! A boot that has failed: what helps to understand it stands in files, which are read aside. Until then nothing is booted
//! in its place.

use super::Supervisor;
use crate::app_files::{Found, Work};
use crate::diagnosis::Diagnosis;
use crate::folder_state::FolderState;
use crate::message::BootFailure;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long reading files may take; then the failure is told without what they hold.
const FILES_TIME: Duration = Duration::from_secs(5);

/// What has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// A boot of the version that is served.
    Current,
    /// That of the version which a restart brings, of this generation.
    Next(u32),
    /// What was started did not come up, time after time.
    Lost,
}

/// A failure that is not diagnosed yet.
#[derive(Debug)]
pub(super) struct Failing {
    ticket: u32,
    what: Failed,
    failure: BootFailure,
    folder: PathBuf,
    since: Instant,
}

impl Failing {
    pub(super) fn deadline(&self) -> Instant {
        self.since + FILES_TIME
    }
}

impl Supervisor {
    /// Begins to diagnose a failure; a second one of the same is that of what goes down with it.
    pub(super) fn diagnose_failure(&mut self, what: Failed, failure: BootFailure, now: Instant) {
        if self.has_failed(what) {
            return;
        }
        let folder = match (what, &self.restart) {
            (Failed::Next(_), Some(restart)) => restart.next.folder.clone(),
            _ => self.current.folder.clone(),
        };
        let ticket = self.next_ticket();
        let is_next = matches!(what, Failed::Next(_));
        let waits_for_change = !is_next && (self.current.app.is_none() || what == Failed::Lost);
        let (app, read, read_folder) = (Arc::clone(&self.app), failure.clone(), folder.clone());
        self.failing.push(Failing { ticket, what, failure, folder, since: now });
        self.files.begin(Work::Diagnosis, move || Found::Diagnosis {
            ticket,
            files: waits_for_change.then(|| FolderState::of(&read_folder, app.runs_as.another())),
            diagnosis: Box::new(Diagnosis::of(read, &app, &read_folder)),
        });
    }

    pub(super) fn has_failed(&self, what: Failed) -> bool {
        self.failing.iter().any(|failing| failing.what == what)
    }

    /// Whether the restart that is under way has failed, and it is not known yet why.
    pub(super) fn next_has_failed(&self) -> bool {
        self.restart.as_ref().is_some_and(|restart| self.has_failed(Failed::Next(restart.next.number)))
    }

    /// What has failed so far is not told any more.
    pub(super) fn forget_failures(&mut self) {
        self.failing.clear();
    }

    pub(super) async fn diagnosed(
        &mut self,
        ticket: u32,
        diagnosis: Diagnosis,
        files: Option<FolderState>,
        now: Instant,
    ) {
        let Some(place) = self.failing.iter().position(|failing| failing.ticket == ticket) else { return };
        let failing = self.failing.swap_remove(place);
        self.output.settle().await; // what the application has printed stands above the diagnosis
        match failing.what {
            Failed::Current => self.boot_diagnosed(diagnosis, files, now).await,
            Failed::Next(generation) => self.next_diagnosed(generation, diagnosis, now).await,
            Failed::Lost => self.not_booted(diagnosis, files, now).await,
        }
    }

    /// Tells what is known where reading files takes too long.
    pub(super) async fn diagnose_without_files(&mut self, now: Instant) {
        while let Some(failing) = self.failing.iter().find(|failing| now >= failing.deadline()) {
            let diagnosis = Diagnosis::without_files(failing.failure.clone(), &self.app, &failing.folder);
            tracing::warn!(
                folder = %failing.folder.display(),
                "the application's files cannot be read: the file system does not answer"
            );
            self.diagnosed(failing.ticket, diagnosis, None, now).await;
        }
    }
}
