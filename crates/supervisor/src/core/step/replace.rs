//! Replacing one worker for a cause that lies in it. Another worker is forked first; when that serves, the front gives the
//! old worker nothing more, and it ends when its requests have. A restart or a refork comes first: it takes the
//! worker's place anyway, or goes wrong and leaves it. While a rollout holds, workers of the served version are replaced as
//! usual (those of the new version: [`super::rollout`]).
//!
//! If there is no memory for both, the old worker is retired first; requests wait in the queue meanwhile.

use super::super::app::App;
use super::super::staff::NextReplacement;
use super::super::{AppAction, AppLog};
use crate::core::memory::OverMemory;
use highball_link::AppCommand;
use std::time::Instant;

impl App {
    /// New workers would have too much memory as well.
    pub(super) fn memory_limit_too_small(&mut self, over: OverMemory) {
        if self.staff.may_give_memory_back(over) {
            let decision = self.staff.give_memory_back(self.pool(), self.now);
            self.out.act_all(decision.map(|decision| AppAction::Log(AppLog::Resized(decision))));
        } else if self.staff.limit_is_too_small(over) {
            self.out.log(AppLog::MemoryLimitTooSmall { over });
        }
    }

    /// The mold of a server that starts forks one worker before it lays out its heap: another one takes its place now.
    pub(super) fn mold_laid_out(&mut self, boot: u32, worker: u32) {
        match self.molds.laid_out(boot) {
            Ok(Some(line)) => self.staff.forked_early(worker, line),
            Ok(None) => {}
            Err(action) => self.out.act_all(action),
        }
    }

    /// Whether nothing else takes the places of workers.
    pub(super) fn may_replace(&self) -> bool {
        self.phase.is_running()
            && self.condition.is_serving()
            && (!self.restarts.is_going() || self.restarts.holding().is_some())
            && !self.reforks.is_going()
    }

    /// Begins what is due, and lets those go in whose place another serves.
    pub(super) fn advance_replacements(&mut self) {
        if !self.may_replace() {
            return;
        }
        let (line, limit) = (self.current.line(), self.config.boot_timeout);
        while let Some(turn) = self.staff.next_replacement(line, self.all_serve(), limit, self.now) {
            match turn {
                NextReplacement::Begun { worker, cause, memory, retires_first } => {
                    self.out.log(AppLog::Replacing { worker, cause, memory });
                    if retires_first {
                        self.relieved(worker);
                    }
                }
                NextReplacement::Delayed { memory: Some(over), .. } => {
                    self.memory_limit_too_small(over);
                    break;
                }
                NextReplacement::Delayed { worker, cause, wait, .. } => {
                    self.out.log(AppLog::ReplacementDelayed { worker, cause, wait });
                    break;
                }
            }
        }
        for worker in self.staff.relieved() {
            let tally = self.tally();
            if tally.serving >= tally.wanted {
                self.relieved(worker);
            } else if let Some(cause) = self.staff.give_up_replacement(worker, self.now) {
                self.note_failure(format!("worker {worker} was not replaced: no other worker came to serve"));
                self.out.log(AppLog::NotReplaced { worker, cause });
            }
        }
    }

    /// While a rollout holds, no worker ends before another serves in its place.
    fn all_serve(&self) -> bool {
        self.restarts.holding().is_none() && self.tally().serving >= usize::from(self.staff.wanted())
    }

    /// Another worker serves in its place, or there is no room for both.
    fn relieved(&mut self, worker: u32) {
        if !self.staff.retire(worker, self.config.retire_limit(), self.now) {
            return;
        }
        if let Some((cause, retires_first)) = self.staff.replaced(worker) {
            self.out.log(AppLog::Replaced { worker, cause, retires_first });
            self.out.notify(match cause.is_usual() {
                true => AppCommand::RelieveWorker { worker },
                false => AppCommand::RetireWorker { worker },
            });
        }
    }

    /// When there is something to do about replacements.
    pub(super) fn replacements_due(&self) -> Option<Instant> {
        let may_replace = self.may_replace();
        may_replace.then(|| self.staff.replacements_due(self.current.line(), self.all_serve(), self.now))?
    }
}
