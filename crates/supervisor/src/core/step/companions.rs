//! Companions: they belong to the version that is served, start when its workers serve, and end with it.

use super::super::app::App;
use super::super::companions::{CompanionEnd, CompanionState, Gone, Next};
use super::super::config::{Purpose, Source};
use super::super::ids::Process;
use super::super::{AppAction, AppLog};
use crate::core::log::CompanionLog;
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
            self.log_companion(label, CompanionLog::Steady);
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
        let ends = actions.iter().any(|action| matches!(action, AppAction::EndCompanion { .. }));
        let starts = actions.iter().any(|action| matches!(action, AppAction::SpawnCompanion { .. }));
        if ends {
            self.out.checkpoint("companion.ending");
        }
        self.out.act_all(actions);
        if starts {
            self.out.checkpoint("companion.ordered");
        }
    }

    pub(super) fn companion_started(&mut self, number: u32) {
        let (is_new, action) = self.companions.started(number, self.now);
        if is_new {
            self.log_companion(self.label_of(number), CompanionLog::Started { number });
            self.out.checkpoint("companion.started");
        }
        self.out.act_all(action);
    }

    pub(super) fn over_limit(&mut self, number: u32, bytes: u64, limit: u64) {
        let Some(action) = self.companions.over_memory(number, bytes, self.now) else { return };
        self.log_companion(self.label_of(number), CompanionLog::OverMemory { bytes, limit });
        self.out.act(action);
    }

    pub(super) fn companion_not_started(&mut self, number: u32, why: String) {
        self.companion_gone(number, CompanionEnd::NotStarted(why));
    }

    pub(super) fn companion_ended(&mut self, number: u32, ending: Ending) {
        self.companion_gone(number, CompanionEnd::Ended(ending));
    }

    fn companion_gone(&mut self, number: u32, how: CompanionEnd) {
        let ending = match how {
            CompanionEnd::Ended(ending) => Some(ending),
            CompanionEnd::NotStarted(_) | CompanionEnd::OverMemory(_) => None,
        };
        if let Some(gone) = self.companions.gone(number, how, self.now) {
            let Gone { label, how, next, is_usual, waiting, makes_crash_loop } = gone;
            self.out.checkpoint("companion.gone");
            self.trouble.oom_kills += u64::from(ending == Some(Ending::OutOfMemory));
            if next != Next::Ordered && !how.is_success() {
                self.note_failure(format!("the process {label} {how}"));
            }
            self.log_companion(label.clone(), CompanionLog::Ended { how, next, is_usual });
            if !waiting.is_empty() {
                self.log_companion(label.clone(), CompanionLog::Failed { waiting });
            }
            if let Some(ends) = makes_crash_loop {
                self.log_companion(label, CompanionLog::CrashLoop { ends });
            }
        }
        self.out.act(AppAction::Forget { process: Process::Companion(number), ending });
    }

    fn label_of(&self, number: u32) -> String {
        self.companions.label(number).unwrap_or_default()
    }

    fn log_companion(&mut self, label: String, what: CompanionLog) {
        self.out.log(AppLog::Companion { label, what });
    }

    fn companion_overdue(&mut self, number: u32, state: CompanionState) {
        let label = self.label_of(number);
        match state {
            CompanionState::Halted => {
                self.log_companion(label, CompanionLog::Unkillable);
                self.companion_ended(number, Ending::Unknown);
            }
            CompanionState::Starting => {
                let why =
                    "could not be started in time: its folder, or the application's mold, does not answer";
                self.companion_not_started(number, why.into());
            }
            CompanionState::Running | CompanionState::Stopping => {
                if !self.phase.is_quick() {
                    let was_asked = state == CompanionState::Stopping;
                    self.log_companion(label, CompanionLog::Overdue { was_asked });
                }
                self.out.act_all(self.companions.halt(number, self.now));
            }
        }
    }
}
