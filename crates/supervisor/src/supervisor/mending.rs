//! Development: an application that does not boot is mended by people, who then reload their page. Highball stays, and
//! boots again when somebody asks for the application and there is reason to hope.

use super::{Outcome, Phase, Purpose, Supervisor};
use crate::diagnosis::Diagnosis;
use crate::folder_state::FolderState;
use crate::mold::MoldSource;
use crate::restart::Failure;
use crate::Notice;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Without a change of files a boot is repeated only after so long: what was wrong may lie elsewhere, with a database
/// for example.
const TRY_ANYWAY: Duration = Duration::from_secs(5);

/// An application that waits to be mended.
#[derive(Debug)]
pub(super) struct Broken {
    /// Its files as they were when the boot had failed: what a boot itself writes is no reason for another.
    files: FolderState,
    since: Instant,
}

impl Supervisor {
    /// Whether a boot that failed is left to people: it is repeated when they ask for it.
    fn waits_for_people(&self) -> bool {
        self.purpose == Purpose::Serve
            && self.app.is_development()
            && matches!(self.source, MoldSource::Folder { .. })
    }

    /// The application did not boot, and nothing serves.
    pub(super) async fn not_booted(&mut self, diagnosis: Diagnosis, now: Instant) {
        let failure = Failure::of_diagnosis(&diagnosis);
        self.diagnosis = Some(diagnosis.clone());
        if let Some(wish) = self.wish.take() {
            self.past_restarts.add(wish, Duration::ZERO, Some(&failure));
        }
        if !self.waits_for_people() {
            return self.end(Outcome::BootFailed(Box::new(diagnosis)), now);
        }
        // A mold that leaves loading to its workers has chosen gems that may be part of what is wrong.
        if let Some(mold) = self.current.mold.take_if(|mold| mold.is_booted()) {
            self.let_go(self.current.line, Some(mold), now);
        }
        self.broken = Some(Broken { files: FolderState::of(&self.current.folder), since: now });
        self.notify(Notice::AppFailed(Box::new(diagnosis))).await;
    }

    /// Somebody asks for an application that did not boot: boots it if that may turn out otherwise by now, or else says
    /// once more what is wrong.
    pub(super) async fn app_wanted(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        let Some(broken) = &self.broken else { return }; // it boots already: the outcome will be told
        let folder = self.app_folder();
        if FolderState::of(&folder) == broken.files && now < broken.since + TRY_ANYWAY {
            if let Some(diagnosis) = self.diagnosis.clone() {
                self.notify(Notice::AppFailed(Box::new(diagnosis))).await;
            }
            return;
        }
        self.try_again(folder, now);
    }

    /// Boots at the next turn.
    pub(super) fn try_again(&mut self, folder: PathBuf, now: Instant) {
        self.broken = None;
        self.current.folder = folder;
        self.mold_due = now;
    }

    /// Where the given path leads to now.
    pub(super) fn app_folder(&self) -> PathBuf {
        self.app.link.canonicalize().unwrap_or_else(|_| self.current.folder.clone())
    }
}
