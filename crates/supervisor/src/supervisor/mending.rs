//! An application that cannot be brought up, where that is no reason for the end of everything.
//!
//! In development it is mended by people, who then reload their page: Highball stays, and boots again when somebody asks
//! for the application and there is reason to hope. Where there are other applications, it also looks by itself whether
//! the folder has changed. In production nobody's asking counts, and what was wrong may lie elsewhere: it is also tried
//! again from time to time.

use super::{Outcome, Phase, Supervisor};
use crate::diagnosis::Diagnosis;
use crate::folder_state::FolderState;
use crate::hall::Purpose;
use crate::message::BootFailure;
use crate::mold::MoldSource;
use crate::restart::Failure;
use crate::restart_policy::RestartPolicy;
use crate::spawn_journey::Step;
use crate::AppNotice;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracing::{error, info};

/// Without a change of files a boot is repeated only after so long: what was wrong may lie elsewhere, with a database
/// for example.
const TRY_ANYWAY: Duration = Duration::from_secs(5);
/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// No more than one part of so many of the time is spent with that, however large the folder is.
const LOOK_SHARE: u32 = 50;
/// How often a boot is repeated without a change of files where nobody asks for it.
const TRY_UNASKED: Duration = Duration::from_secs(60);

/// An application that waits to be mended.
#[derive(Debug)]
pub(super) struct Broken {
    /// Its files as they were when the boot had failed: what a boot itself writes is no reason for another.
    files: FolderState,
    since: Instant,
    /// When they are looked at next.
    due: Instant,
}

impl Supervisor {
    /// Whether it can be done without for a while.
    fn can_be_missing(&self) -> bool {
        match self.purpose {
            Purpose::Serve => self.may_fail || !self.alone,
            Purpose::Succeed => self.may_fail && !self.alone,
            Purpose::Examine => false,
        }
    }

    /// Whether a boot that failed is left to people: it is repeated when they ask for it.
    fn waits_for_people(&self) -> bool {
        self.purpose == Purpose::Serve
            && self.app.is_development()
            && matches!(self.source, MoldSource::Folder { .. })
    }

    /// Whether a boot that failed is repeated without anybody asking for it.
    pub(super) fn is_repeated(&self) -> bool {
        !self.waits_for_people() && self.purpose != Purpose::Examine
    }

    /// The application did not boot, and nothing serves.
    pub(super) async fn not_booted(&mut self, diagnosis: Diagnosis, now: Instant) {
        let failure = Failure::of_diagnosis(&diagnosis);
        self.diagnosis = Some(diagnosis.clone());
        if let Some(wish) = self.wish.take() {
            self.past_restarts.add(wish, Duration::ZERO, Some(&failure));
        }
        let serves = matches!(self.phase, Phase::Running);
        if serves && !self.waits_for_people() && !self.can_be_missing() {
            return self.end(Outcome::BootFailed(Box::new(diagnosis)), now);
        }
        // A mold that leaves loading to its workers has chosen gems that may be part of what is wrong.
        if let Some(mold) = self.current.mold.take_if(|mold| mold.is_booted()) {
            self.let_go(self.current.line, Some(mold), now);
        }
        let files = FolderState::of(&self.current.folder);
        self.broken = Some(Broken { files, since: now, due: now + LOOK_EVERY });
        self.begin_line(now); // those that are still to end are none of the next attempt's
        self.notify(AppNotice::AppFailed(Box::new(diagnosis))).await;
    }

    /// What is started does not come up.
    pub(super) fn give_up(&mut self, what: &str, failures: u32, now: Instant) {
        let last = self.last_failure.clone().unwrap_or_default();
        let why = format!("{failures} {what} in a row have failed; {last}");
        if self.can_be_missing() {
            self.lost = Some(why);
        } else {
            self.end(Outcome::BootLoop(why), now);
        }
    }

    /// Ends an application that was given up, and waits until it is mended.
    pub(super) async fn stand_back_if_lost(&mut self, now: Instant) {
        let Some(why) = self.lost.take() else { return };
        error!(why, "giving the application up until its folder changes, or it is restarted");
        let remedy = "Look at what its processes logged. When it is mended, restart it: highball restart.";
        self.abandon_restarts(&Failure::new(why.clone(), remedy), now);
        self.abandon_refork(&why, now);
        self.workers.forget_unborn();
        for (_, handle) in self.workers.iter_mut() {
            handle.halt(now);
        }
        let mold = self.current.mold.take();
        self.let_go(self.current.line, mold, now);
        self.current.app = None;
        self.mold_policy = RestartPolicy::new(self.app.process.max_boot_failures);
        self.worker_policy = RestartPolicy::new(self.app.process.max_boot_failures);
        let failure = BootFailure::of_ours(Step::PrepareFork, "boot_loop", why, remedy.into());
        let diagnosis = Diagnosis::of(failure, &self.app, &self.current.folder);
        self.not_booted(diagnosis, now).await;
    }

    /// Somebody asks for an application that sleeps: wakes it up. Or for one that did not boot: boots it if that may
    /// turn out otherwise by now, or else says once more what is wrong.
    pub(super) async fn wanted_by_somebody(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Running) && !self.wakes_for_last_requests() {
            return;
        }
        if self.asleep {
            return self.wake(now);
        }
        let Some(broken) = &self.broken else { return }; // it boots already: the outcome will be told
        let folder = self.app_folder();
        if FolderState::of(&folder) == broken.files && now < broken.since + TRY_ANYWAY {
            if let Some(diagnosis) = self.diagnosis.clone() {
                self.notify(AppNotice::AppFailed(Box::new(diagnosis))).await;
            }
            return;
        }
        self.try_again(folder, now);
    }

    /// When it is looked at next whether a broken application is worth another try.
    pub(super) fn mended_due(&self) -> Option<Instant> {
        let is_looked_at = !self.alone || !self.waits_for_people();
        self.broken.as_ref().filter(|_| is_looked_at).map(|broken| broken.due)
    }

    pub(super) fn try_again_if_mended(&mut self, now: Instant) {
        if self.mended_due().is_none_or(|due| now < due) {
            return;
        }
        let (folder, is_repeated) = (self.app_folder(), self.is_repeated());
        let files = FolderState::of(&folder);
        let Some(broken) = &mut self.broken else { return };
        broken.due = now + LOOK_EVERY.max(LOOK_SHARE * now.elapsed());
        if files != broken.files {
            info!("the folder of the application has changed: trying again");
        } else if is_repeated && now >= broken.since + TRY_UNASKED {
            info!("trying again, as what was wrong may lie elsewhere");
        } else {
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
