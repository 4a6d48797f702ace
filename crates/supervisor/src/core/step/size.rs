//! The number of workers follows the load, where the configuration gives a range. It changes by the same steps as by an
//! operator's order. A restart that replaces workers, a refork, and the replacement of a worker come first.

use super::super::app::App;
use super::super::config::HotRestart;
use super::super::AppLog;
use crate::core::config::Purpose;
use crate::core::restart::Stage;
use crate::core::sizing::{Load, Outcome, Pool};

impl App {
    /// Changes the number of workers, if it is time.
    pub(super) fn advance_sizing(&mut self) {
        match self.staff.follow_load(self.pool(), self.now) {
            Some(Outcome::Change(decision)) => self.out.log(AppLog::Resized(decision)),
            Some(Outcome::Hindered(hindrance)) => self.out.log(AppLog::NotResized(hindrance)),
            None => {}
        }
    }

    pub(super) fn note_load(&mut self, load: Load) {
        if self.condition.is_serving() {
            self.staff.note_load(load, self.now);
        }
    }

    pub(super) fn pool(&self) -> Pool {
        let tally = self.tally();
        let all_serve = tally.serving >= tally.wanted && tally.coming == 0 && tally.others_serving == 0;
        let is_replaced = !matches!(self.restarts.stage(), None | Some(Stage::Booting | Stage::Probing));
        let is_calm = !is_replaced && !self.reforks.is_going();
        // While this process takes another's place, or another takes this one's, the workers are counted on.
        let is_alone = matches!(self.surroundings.hot_restart, HotRestart::No | HotRestart::Queued)
            && self.surroundings.purpose == Purpose::Serve;
        let serves = self.phase.is_running() && self.condition.is_serving() && !self.config.is_site();
        Pool {
            size: self.staff.wanted(),
            threads: self.config.threads,
            is_complete: serves && all_serve && is_calm && is_alone,
        }
    }
}
