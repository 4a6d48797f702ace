//! An application that cannot be brought up, where the server does not end for that.
//!
//! In development people fix it, and then reload their page: Highball stays, and boots again when a request arrives for
//! the application and its files have changed. Where there are other applications, it also looks whether the
//! folder has changed, without a request. In production requests are no reason, and what was wrong may lie elsewhere: it is also tried again
//! from time to time.

use super::super::app::App;
use super::super::condition::{Condition, End, Failed, FolderVerdict};
use super::super::{AppAction, AppLog, Receipt};
use crate::core::restart::Failure;
use crate::facts::boot_failure::BootFailure;
use crate::facts::folder_state::FolderState;
use highball_link::{AppCommand, Diagnosis, Step};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long reading the configuration may take, of which an application with a fault waits for the outcome.
const READING_TIME: Duration = Duration::from_secs(5);
impl App {
    /// The application did not boot, and nothing serves.
    pub(super) fn not_booted(&mut self, diagnosis: Arc<Diagnosis>, files: Option<FolderState>) {
        let failure = Failure::of_diagnosis(&diagnosis);
        self.trouble.diagnosis = Some(Arc::clone(&diagnosis));
        self.restarts.refused(&failure, self.now);
        if self.phase.is_running()
            && !self.surroundings.leave_to_people(&self.config)
            && !self.surroundings.can_miss(&self.config)
        {
            return self.end(End::BootFailed(diagnosis));
        }
        // A mold that leaves loading to its workers, or boots in the place of such a mold, chooses gems that may be part of
        // what is wrong. (A mold that is ending stays: it is in the way of the next.)
        if self.molds.of(self.current.line()).is_some_and(|mold| !mold.is_halted()) {
            self.let_go(self.current.line());
        }
        self.boots.was_in_vain();
        self.condition = Condition::Failed(Failed::new(files, self.now));
        self.begin_line(); // processes that are still ending have nothing to do with the next attempt
        self.out.notify(AppCommand::Failed(diagnosis));
    }

    /// What is started does not come up.
    pub(super) fn give_up(&mut self, what: &str, failures: u32) {
        let last = self.trouble.last_failure.clone().map(|(what, _)| what).unwrap_or_default();
        let why = format!("{failures} {what} in a row have failed; {last}");
        if self.surroundings.can_miss(&self.config) {
            self.boots.give_up(why);
            self.out.go_on();
        } else {
            self.end(End::BootLoop(why));
        }
    }

    /// Ends an application that was given up, and waits until it is fixed.
    pub(super) fn stand_back_if_lost(&mut self) {
        let Some(why) = self.boots.take_lost() else { return };
        self.out.log(AppLog::GivenUp { why: why.clone() });
        let remedy = "Look at what its processes logged. When it is fixed, restart it: highball restart.";
        self.abandon_restarts(&Failure::new(why.clone(), remedy));
        self.abandon_refork(&why);
        self.out.act_all(self.staff.forget_unborn());
        self.out.act_all(self.staff.halt_all(self.now));
        self.let_go(self.current.line());
        self.current.gone();
        self.boots.forget_failure();
        self.boots.configure(self.config.max_boot_failures);
        self.staff.given_up();
        let failure = BootFailure::of_ours(Step::PrepareFork, "boot_loop", why, remedy.into());
        let receipt = self.out.diagnose(self.current.folder().into(), failure);
        self.condition = Condition::Explaining(receipt);
    }

    /// A request has arrived. An application that sleeps wakes up. A failed application boots again if the outcome may
    /// differ by now, or else the front gets the failure again.
    pub(super) fn is_wanted(&mut self) {
        if !self.phase.is_running() && !self.wakes_for_last_requests() {
            return;
        }
        let pause = self.boots.pause(self.surroundings.leave_to_people(&self.config));
        match &mut self.condition {
            Condition::Asleep => self.wake(),
            Condition::Failed(failed) if self.now >= failed.since() + pause => {
                self.try_again_as_configured();
            }
            Condition::Failed(failed) => {
                failed.is_wanted();
                self.look_at_folder(true);
            }
            // The front gets the outcome of the boot.
            Condition::Booting | Condition::Explaining(_) | Condition::Serving => {}
        }
    }

    /// When the folder of an application that did not boot is looked at next.
    pub(super) fn look_due(&self) -> Option<Instant> {
        // In production the configuration is read again when an operator says so, and not when an application does.
        let is_readable = !self.config.has_fault || self.config.is_development;
        let looks =
            is_readable && (!self.surroundings.alone || !self.surroundings.leave_to_people(&self.config));
        match &self.condition {
            Condition::Failed(failed) if looks => failed.look_due(),
            _ => None,
        }
    }

    /// Begins a look, unless one is under way.
    pub(super) fn look_at_folder(&mut self, is_for_request: bool) {
        if let Condition::Failed(failed) = &mut self.condition {
            if failed.look_due().is_some() {
                let receipt = self.out.next_receipt();
                failed.look(receipt, is_for_request);
                self.out.act(AppAction::LookAtFolder { receipt });
            }
        }
    }

    /// The state of the folder now, if it could be read. The application boots again if the outcome may differ by now,
    /// or else the front gets the failure again, where requests wait for it.
    pub(super) fn folder_seen(&mut self, receipt: Receipt, files: Option<FolderState>, took: Duration) {
        let is_a_reason = self.phase.is_running() || self.wakes_for_last_requests();
        let is_repeated = self.surroundings.repeat_boots(&self.config);
        let Condition::Failed(failed) = &mut self.condition else { return };
        let Some(seen) = failed.seen((receipt, files, took), is_a_reason, is_repeated, self.now) else {
            return;
        };
        match seen {
            FolderVerdict::Changed => {
                self.out.log(AppLog::FolderChanged);
                self.boots.was_not_in_vain();
                self.try_again_as_configured();
            }
            FolderVerdict::TryUnasked => {
                self.out.log(AppLog::TriesAgain);
                self.try_again_as_configured();
            }
            FolderVerdict::LookAgain => self.look_at_folder(true),
            FolderVerdict::FailAgain => {
                let failure = self.trouble.diagnosis.clone().map(AppCommand::Failed);
                self.out.act_all(failure.map(AppAction::Notify));
            }
            FolderVerdict::Nothing => {}
        }
    }

    /// The same; but where the application's own configuration was wrong, it is read again first. If that brings
    /// nothing, the boot fails again.
    fn try_again_as_configured(&mut self) {
        self.try_again();
        if self.config.has_fault {
            self.boots.boot_at(self.now + READING_TIME);
            self.out.act(AppAction::RereadConfiguration);
        }
    }

    /// Boots at the next pass, from where the application's path leads now.
    pub(super) fn try_again(&mut self) {
        self.condition = Condition::Booting;
        self.current.follow_link();
        self.boots.boot_at(self.now);
        self.out.go_on();
    }
}
