//! Companions: they belong to the version that is served, start when its workers serve, and end with it.

use super::super::app::App;
use super::super::companions::{CompanionState, Gone, Next};
use super::super::config::{Purpose, Source};
use super::super::ids::Process;
use super::super::{AppAction, AppLog};
use crate::facts::ending::Ending;
use std::time::Duration;

/// How long companions may take after Ctrl-C in development.
const QUICK_STOP: Duration = Duration::from_secs(2);

impl App {
    pub(super) fn advance_companions(&mut self) {
        for (number, state) in self.companions.overdue(self.now) {
            self.companion_overdue(number, state);
        }
        for label in self.companions.calm_down(self.now) {
            self.out.log(AppLog::CompanionSteady { label });
        }
        let run = self.phase.is_running()
            && self.condition.is_serving()
            && self.config.source == Source::Folder
            && self.surroundings.purpose == Purpose::Serve
            && self.surroundings.is_alone_with_companions;
        let runs_in = run.then_some(self.current.number());
        let most = if self.phase.is_quick() { QUICK_STOP } else { Duration::MAX };
        let mold = self.molds.of(self.current.line()).filter(|mold| self.config.preload && mold.is_booted());
        let place = (runs_in, self.current.folder(), mold.map(|mold| mold.boot));
        let actions = self.companions.advance(place, self.staff.any_serves(), most, self.now);
        self.out.act_all(actions);
    }

    pub(super) fn companion_started(&mut self, number: u32) {
        let (is_new, action) = self.companions.started(number, self.now);
        if is_new {
            let label = self.companions.label(number).unwrap_or_default();
            self.out.log(AppLog::CompanionStarted { number, label });
        }
        self.out.act_all(action);
    }

    pub(super) fn companion_not_started(&mut self, number: u32, why: &str) {
        self.companion_gone(number, Err(why));
    }

    /// The kernel reports its end; or why it could not be started.
    pub(super) fn companion_gone(&mut self, number: u32, how: Result<Ending, &str>) {
        if let Some(Gone { label, next, is_usual, makes_crash_loop }) =
            self.companions.gone(number, how, self.now)
        {
            let how = how.map_err(String::from);
            self.trouble.oom_kills += u64::from(how == Ok(Ending::OutOfMemory));
            if next != Next::Ordered && how != Ok(Ending::Exited(0)) {
                let what = how.as_ref().map_or_else(String::clone, |ending| ending.of_process());
                self.note_failure(format!("the process {label} {what}"));
            }
            self.out.log(AppLog::CompanionEnded { label: label.clone(), how, next, is_usual });
            if let Some(ends) = makes_crash_loop {
                self.out.log(AppLog::CompanionCrashLoop { label, ends });
            }
        }
        let ending = how.ok();
        self.out.act(AppAction::Forget { process: Process::Companion(number), ending });
    }

    fn companion_overdue(&mut self, number: u32, state: CompanionState) {
        let label = self.companions.label(number).unwrap_or_default();
        match state {
            CompanionState::Halted => {
                self.out.log(AppLog::CompanionUnkillable { label });
                self.companion_gone(number, Ok(Ending::Unknown));
            }
            CompanionState::Starting => {
                self.companion_gone(number, Err("could not be started in time: its folder, or the application's mold, does not answer"));
            }
            CompanionState::Running | CompanionState::Stopping => {
                if !self.phase.is_quick() {
                    self.out.log(AppLog::CompanionOverdue {
                        label,
                        was_asked: state == CompanionState::Stopping,
                    });
                }
                self.out.act_all(self.companions.halt(number, self.now));
            }
        }
    }
}
