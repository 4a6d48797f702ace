//! An application that cannot be brought up, where that is no reason for the end of everything.
//!
//! In development it is mended by people, who then reload their page: Highball stays, and boots again when somebody asks
//! for the application and there is reason to hope. Where there are other applications, it also looks by itself whether
//! the folder has changed. In production nobody's asking counts, and what was wrong may lie elsewhere: it is also tried
//! again from time to time.

use super::failing::Failed;
use super::{Outcome, Phase, Supervisor};
use crate::app_files::{Found, Work};
use crate::diagnosis::Diagnosis;
use crate::folder_state::FolderState;
use crate::hall::Purpose;
use crate::message::BootFailure;
use crate::mold::MoldSource;
use crate::restart::Failure;
use crate::restart_policy::RestartPolicy;
use crate::spawn_journey::Step;
use crate::{AppNotice, Notice};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{debug, error, info};

/// Without a change of files a boot is repeated only after so long: what was wrong may lie elsewhere, with a database
/// for example.
const TRY_ANYWAY: Duration = Duration::from_secs(5);
/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// No more than one part of so many of the time is spent with that, however large the folder is.
const LOOK_SHARE: u32 = 100;
/// How long reading the configuration may take, of which an application with a fault waits for the outcome.
const READING_TIME: Duration = Duration::from_secs(5);
/// How often a boot is repeated without a change of files where nobody asks for it.
const TRY_UNASKED: Duration = Duration::from_secs(60);

/// An application that waits to be mended.
#[derive(Debug)]
pub(super) struct Broken {
    /// Its files as they were when the boot had failed: what a boot itself writes is no reason for another.
    /// `None`: they could not be looked at then; the next look takes note of them.
    files: Option<FolderState>,
    since: Instant,
    /// When they are looked at next.
    due: Instant,
    look: Look,
    /// Somebody asks for the application.
    is_asked_for: bool,
}

/// Whether the folder of a broken application is being looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    No,
    /// From time to time.
    OnTime,
    /// Because somebody asked for the application.
    Asked,
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
    pub(super) async fn not_booted(
        &mut self,
        diagnosis: Diagnosis,
        files: Option<FolderState>,
        now: Instant,
    ) {
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
        let (due, look) = (now + LOOK_EVERY, Look::No);
        self.broken = Some(Broken { files, since: now, due, look, is_asked_for: false });
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
    pub(super) fn stand_back_if_lost(&mut self, now: Instant) {
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
        self.diagnose_failure(Failed::Lost, failure, now);
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
        let Some(broken) = &mut self.broken else { return }; // it boots already: the outcome will be told
        if now >= broken.since + TRY_ANYWAY {
            return self.try_again_as_configured(now).await;
        }
        broken.is_asked_for = true;
        self.look_at_folder(Look::Asked);
    }

    /// When it is looked at next whether a broken application is worth another try.
    pub(super) fn mended_due(&self) -> Option<Instant> {
        // In production the configuration is read again when an operator says so, and not when an application does.
        let is_readable = self.app.fault.is_none() || self.app.is_development();
        let is_looked_at = is_readable && (!self.alone || !self.waits_for_people());
        let broken = self.broken.as_ref().filter(|broken| is_looked_at && broken.look == Look::No);
        broken.map(|broken| broken.due)
    }

    pub(super) fn try_again_if_mended(&mut self, now: Instant) {
        if self.mended_due().is_some_and(|due| now >= due) {
            self.look_at_folder(Look::OnTime);
        }
    }

    /// Begins a look, unless one is under way.
    fn look_at_folder(&mut self, look: Look) {
        let Some(broken) = self.broken.as_mut().filter(|broken| broken.look == Look::No) else { return };
        broken.look = look;
        let (since, app) = (broken.since, Arc::clone(&self.app));
        self.files.begin(Work::Folder, move || {
            let began = Instant::now();
            let state = FolderState::of(&app.link, app.runs_as.another());
            Found::Folder { since, state, took: began.elapsed() }
        });
    }

    /// The look has come to nothing.
    pub(super) fn folder_not_seen(&mut self, now: Instant) {
        if let Some(broken) = &mut self.broken {
            broken.look = Look::No;
            broken.due = now + LOOK_EVERY;
        }
    }

    /// A look at the folder has taken this long. Boots if that may turn out otherwise by now, or else tells those who ask
    /// for the application again what is wrong.
    pub(super) async fn folder_seen(
        &mut self,
        since: Instant,
        state: FolderState,
        took: Duration,
        now: Instant,
    ) {
        let is_repeated = self.is_repeated();
        let Some(broken) = self.broken.as_mut().filter(|broken| broken.since == since) else { return };
        let look = std::mem::replace(&mut broken.look, Look::No);
        broken.due = now + LOOK_EVERY.max(LOOK_SHARE * took);
        if state != *broken.files.get_or_insert(state) {
            info!("the folder of the application has changed: trying again");
            return self.try_again_as_configured(now).await;
        }
        match (broken.is_asked_for, look) {
            // What they have changed before they asked may not have been seen.
            (true, Look::OnTime) => self.look_at_folder(Look::Asked),
            (true, _) => {
                broken.is_asked_for = false;
                if let Some(diagnosis) = self.diagnosis.clone() {
                    self.notify(AppNotice::AppFailed(Box::new(diagnosis))).await;
                }
            }
            (false, _) if is_repeated && now >= broken.since + TRY_UNASKED => {
                info!("trying again, as what was wrong may lie elsewhere");
                self.try_again_as_configured(now).await;
            }
            (false, _) => {}
        }
    }

    /// Boots at the next turn. What its own configuration file says by now is asked for first, where that was wrong; if
    /// nothing else comes of it, the boot fails again.
    async fn try_again_as_configured(&mut self, now: Instant) {
        self.try_again(now);
        if self.app.fault.is_some() {
            self.mold_due = now + READING_TIME;
            if self.notices.send(Notice::Hangup).await.is_err() {
                debug!("nobody listens to notices any more");
            }
        }
    }

    /// Boots at the next turn, what the given path leads to then.
    pub(super) fn try_again(&mut self, now: Instant) {
        self.broken = None;
        self.folder_is_due = true;
        self.mold_due = now;
    }
}
