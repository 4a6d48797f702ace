//! A mold from which nothing is to be forked rests: it ends, and one boots when a worker is wanted. So a single worker
//! shares its memory with no process that does nothing. With several workers, the mold costs little beside them, and replaces
//! a dead worker at once. A mold that was missed once stays from then on: if one worker had to be replaced, the
//! next ones may have to be, too.

use super::super::app::App;
use super::super::config::{HotRestart, Source};
use super::super::AppLog;
use crate::core::restart_policy::Life;
use std::time::Instant;

impl App {
    /// When the mold may rest, if it may.
    pub(super) fn rest_due(&self) -> Option<Instant> {
        let after = self.config.rest_mold_after.filter(|_| self.boots.may_rest())?;
        let is_alone = self.phase.is_running()
            && self.config.source == Source::Folder
            && self.surroundings.hot_restart == HotRestart::No
            && self.condition.is_serving()
            && self.is_at_rest()
            && !self.companions.need_mold()
            && self.staff.wanted() == 1
            && self.config.pool.is_none_or(|pool| pool.max == 1);
        let (line, worker) = (self.current.line(), self.staff.only_one().filter(|_| is_alone)?);
        let Life::Ready(served) = worker.life(self.now) else { return None };
        let may_rest = self.molds.of(line).is_some_and(|mold| mold.is_booted() && !mold.is_caller);
        (worker.line == line && may_rest).then(|| self.now + after.saturating_sub(served))
    }

    pub(super) fn rest_mold_if_due(&mut self) {
        if self.rest_due().is_some_and(|due| due <= self.now) {
            self.out.log(AppLog::MoldRests);
            self.boots.rest();
            self.let_go(self.current.line());
            self.out.go_on();
        }
    }
}
