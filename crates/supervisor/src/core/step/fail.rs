//! An application that cannot be brought up, where the server does not end for that.
//!
//! In development people fix it, and then reload their page: Highball stays, and boots again when a request arrives for
//! the application and its files have changed. Where there are other applications, it also looks by itself whether the
//! folder has changed. In production requests are no reason, and what was wrong may lie elsewhere: it is also tried again
//! from time to time.

use super::super::app::{App, Condition, End, Failed, FolderLook, Source};
use super::super::mold::Mold;
use super::super::mutation::{is_mutated, Mutation};
use super::super::{AppAction, AppLog, FrontNews, Ticket};
use crate::core::restart::Failure;
use crate::core::restart_policy::RestartPolicy;
use crate::core::server::Purpose;
use crate::facts::boot_failure::BootFailure;
use crate::facts::folder_state::FolderState;
use highball_link::{Diagnosis, Step};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Without a change of files a boot is repeated only after this time: the cause may lie elsewhere, for example with a
/// database.
const TRY_ANYWAY: Duration = Duration::from_secs(5);
/// It doubles with each further boot in vain, up to this; but not where people wait for the page.
const TRY_ANYWAY_MOST: Duration = TRY_UNASKED;
/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// No more than one part in this many of the time is spent with that, however large the folder is.
const LOOK_SHARE: u32 = 100;
/// How long reading the configuration may take, of which an application with a fault waits for the outcome.
const READING_TIME: Duration = Duration::from_secs(5);
/// How often a boot is repeated without a change of files and without requests.
const TRY_UNASKED: Duration = Duration::from_secs(60);

impl App {
    /// Whether the server can do without it for a while.
    fn can_be_missing(&self) -> bool {
        let alone = self.surroundings.alone;
        match self.surroundings.purpose {
            Purpose::Serve => self.config.may_fail || !alone,
            Purpose::Succeed => self.config.may_fail && !alone,
            Purpose::Examine => false,
        }
    }

    /// Whether a boot that failed is left to people: it is repeated when they reload the page.
    fn waits_for_people(&self) -> bool {
        self.surroundings.purpose == Purpose::Serve
            && self.config.is_development
            && self.config.source == Source::Folder
    }

    /// Whether a boot that failed is repeated without requests.
    pub(super) fn is_repeated(&self) -> bool {
        !self.waits_for_people() && self.surroundings.purpose != Purpose::Examine
    }

    /// The application did not boot, and nothing serves.
    pub(super) fn not_booted(&mut self, diagnosis: Arc<Diagnosis>, files: Option<FolderState>) {
        let failure = Failure::of_diagnosis(&diagnosis);
        self.trouble.diagnosis = Some(Arc::clone(&diagnosis));
        self.restarts.refused(&failure);
        if self.is_running() && !self.waits_for_people() && !self.can_be_missing() {
            return self.end(End::BootFailed(diagnosis));
        }
        // A mold that leaves loading to its workers has chosen gems that may be part of what is wrong.
        if self.molds.of(self.current.line()).is_some_and(Mold::is_booted) {
            self.let_go(self.current.line());
        }
        let (since, due) = (self.now, self.now + LOOK_EVERY);
        self.boots.in_vain = self.boots.in_vain.saturating_add(1);
        self.condition = Condition::Failed(Failed { files, since, due, look: None, is_wanted: false });
        self.begin_line(); // those that are still to end have nothing to do with the next attempt
        self.out.notify(FrontNews::Failed(diagnosis));
    }

    /// What is started does not come up.
    pub(super) fn give_up(&mut self, what: &str, failures: u32) {
        let last = self.trouble.last_failure.clone().unwrap_or_default();
        let why = format!("{failures} {what} in a row have failed; {last}");
        if self.can_be_missing() {
            self.boots.lost = Some(why);
            self.out.go_on();
        } else {
            self.end(End::BootLoop(why));
        }
    }

    /// Ends an application that was given up, and waits until it is fixed.
    pub(super) fn stand_back_if_lost(&mut self) {
        let Some(why) = self.boots.lost.take() else { return };
        self.out.log(AppLog::GivenUp { why: why.clone() });
        let remedy = "Look at what its processes logged. When it is fixed, restart it: highball restart.";
        self.abandon_restarts(&Failure::new(why.clone(), remedy));
        self.abandon_refork(&why);
        self.forget_unborn(|_| true);
        self.halt_workers();
        self.let_go(self.current.line());
        self.current.gone();
        self.boots.explaining = None;
        self.boots.policy = RestartPolicy::new(self.config.max_boot_failures);
        self.staff.policy = RestartPolicy::new(self.config.max_boot_failures);
        let failure = BootFailure::of_ours(Step::PrepareFork, "boot_loop", why, remedy.into());
        let ticket = self.out.diagnose(self.current.folder().into(), failure);
        self.condition = Condition::Explaining(ticket);
    }

    /// A request has arrived. An application that sleeps wakes up. One that did not boot boots again if the outcome may
    /// differ by now, or else the front gets the failure again.
    pub(super) fn is_wanted(&mut self) {
        if !self.is_running() && !self.wakes_for_last_requests() {
            return;
        }
        let pause = self.pause_after_boots();
        match &mut self.condition {
            Condition::Asleep => self.wake(),
            Condition::Failed(failed) if self.now >= failed.since + pause => {
                self.try_again_as_configured();
            }
            Condition::Failed(failed) => {
                failed.is_wanted = true;
                self.look_at_folder(true);
            }
            // The front gets the outcome of the boot.
            Condition::Booting | Condition::Explaining(_) | Condition::Serving => {}
        }
    }

    /// The time after a failed boot in which requests are no reason for another one, if no file has changed.
    fn pause_after_boots(&self) -> Duration {
        if self.waits_for_people() {
            return TRY_ANYWAY;
        }
        let doubled = self.boots.in_vain.saturating_sub(1).min(16);
        TRY_ANYWAY.saturating_mul(1 << doubled).min(TRY_ANYWAY_MOST)
    }

    /// When the folder of an application that did not boot is looked at next.
    pub(super) fn look_due(&self) -> Option<Instant> {
        // In production the configuration is read again when an operator says so, and not when an application does.
        let is_readable = !self.config.has_fault || self.config.is_development;
        let looks = is_readable && (!self.surroundings.alone || !self.waits_for_people());
        match &self.condition {
            Condition::Failed(failed) if looks && failed.look.is_none() => Some(failed.due),
            _ => None,
        }
    }

    pub(super) fn look_at_folder_if_due(&mut self) {
        if self.look_due().is_some_and(|due| self.now >= due) && !is_mutated(Mutation::ForgetFailedLook) {
            self.look_at_folder(false);
        }
    }

    /// Begins a look, unless one is under way.
    fn look_at_folder(&mut self, is_for_request: bool) {
        let ticket = self.out.next_ticket();
        match &mut self.condition {
            Condition::Failed(failed) if failed.look.is_none() => {
                failed.look = Some(FolderLook { ticket, is_for_request });
                self.out.act(AppAction::LookAtFolder { ticket });
            }
            _ => {}
        }
    }

    /// The state of the folder now, if it could be read. The application boots again if the outcome may differ by now,
    /// or else the front gets the failure again, where requests wait for it.
    pub(super) fn folder_seen(&mut self, ticket: Ticket, files: Option<FolderState>, took: Duration) {
        let (now, is_repeated) = (self.now, self.is_repeated());
        let is_a_reason = self.is_running() || self.wakes_for_last_requests();
        let Condition::Failed(failed) = &mut self.condition else { return };
        let Some(look) = failed.look.take_if(|look| look.ticket == ticket) else { return };
        self.out.go_on();
        failed.due = now + LOOK_EVERY.max(LOOK_SHARE * took);
        if !is_a_reason {
            return;
        }
        if files.is_some_and(|files| files != *failed.files.get_or_insert(files)) {
            self.out.log(AppLog::FolderChanged);
            self.boots.in_vain = 0;
            return self.try_again_as_configured();
        }
        match (failed.is_wanted, look.is_for_request) {
            // What was changed before the request arrived may not have been seen.
            (true, false) => self.look_at_folder(true),
            (true, true) => {
                failed.is_wanted = false;
                if let Some(diagnosis) = self.trouble.diagnosis.clone() {
                    self.out.notify(FrontNews::Failed(diagnosis));
                }
            }
            (false, _) if is_repeated && now >= failed.since + TRY_UNASKED => {
                self.out.log(AppLog::TriesAgain);
                self.try_again_as_configured();
            }
            (false, _) => {}
        }
    }

    /// The same; but where the application's own configuration was wrong, it is read again first. If that brings
    /// nothing, the boot fails again.
    fn try_again_as_configured(&mut self) {
        self.try_again();
        if self.config.has_fault {
            self.boots.due = self.now + READING_TIME;
            self.out.act(AppAction::RereadConfiguration);
        }
    }

    /// Boots at the next pass, from where the application's path leads now.
    pub(super) fn try_again(&mut self) {
        self.condition = Condition::Booting;
        self.current.follow_link();
        self.boots.due = self.now;
        self.out.go_on();
    }
}
