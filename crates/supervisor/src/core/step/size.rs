//! The number of workers follows the load, where the configuration gives a range. It changes by the same steps as by an
//! operator's order. A restart that replaces workers, a refork, and the replacement of a worker come first.

use super::super::app::{App, Condition, HotRestart};
use super::super::mutation::{is_mutated, Mutation};
use super::super::AppLog;
use crate::core::memory::{Bound, OverMemory};
use crate::core::restart::Stage;
use crate::core::rolling::ROLLED_PART;
use crate::core::server::Purpose;
use crate::core::sizing::{Decision, Load, Outcome, Pool, Room, Sizing};
use highball_config::PoolRange;
use std::time::Instant;

impl App {
    /// The load was measured.
    pub(super) fn load_measured(&mut self, load: Load) {
        let (serves, now) = (matches!(self.condition, Condition::Serving), self.now);
        if let Some(sizing) = self.sizing.as_mut().filter(|_| serves) {
            sizing.note(load, now);
            self.out.go_on();
        }
    }

    /// The memory for more workers was measured.
    pub(super) fn room_measured(&mut self, room: Room) {
        self.staff.room = Some(room);
    }

    /// Changes the number of workers, if it is time.
    pub(super) fn advance_sizing(&mut self) {
        let (pool, now) = (self.pool(), self.now);
        match self.sizing.as_mut().and_then(|sizing| sizing.look(pool, now)) {
            Some(Outcome::Change(decision)) => self.resize(decision),
            Some(Outcome::Hindered(hindrance)) => self.out.log(AppLog::NotResized(hindrance)),
            None => {}
        }
    }

    fn resize(&mut self, decision: Decision) {
        self.staff.wanted = decision.to;
        self.out.log(AppLog::Resized(decision));
    }

    fn pool(&self) -> Pool {
        let tally = self.tally();
        let all_serve = tally.serving >= tally.wanted && tally.coming == 0 && tally.others_serving == 0;
        let is_replaced = !matches!(self.restarts.stage(), None | Some(Stage::Booting | Stage::Probing));
        let is_calm = (!is_replaced && !self.reforks.is_going()) || is_mutated(Mutation::ResizeWhileRolling);
        // While another process takes the place of this one, or this one that of another, the workers are counted on.
        let is_alone = matches!(self.surroundings.hot_restart, HotRestart::No | HotRestart::Queued)
            && self.surroundings.purpose == Purpose::Serve;
        let serves = self.is_running() && matches!(self.condition, Condition::Serving) && !self.is_site();
        Pool {
            size: self.staff.wanted,
            threads: self.config.threads,
            is_complete: serves && all_serve && is_calm && is_alone,
        }
    }

    /// When to look at the load again.
    pub(super) fn sizing_due(&self) -> Option<Instant> {
        self.sizing.as_ref()?.due(self.pool())
    }

    /// The configuration gives another range, or none.
    pub(super) fn configure_sizing(&mut self, range: Option<PoolRange>, workers: u16) {
        match (range, self.sizing.as_mut()) {
            (Some(range), Some(sizing)) => {
                self.staff.wanted = sizing.configure(range, self.staff.wanted);
            }
            (Some(range), None) => {
                self.staff.wanted = self.staff.wanted.clamp(range.min, range.max);
                self.sizing = Some(Sizing::new(range, self.now));
            }
            (None, Some(_)) => {
                self.staff.wanted = workers;
                self.sizing = None;
            }
            (None, None) => {}
        }
    }

    /// Has one worker fewer, if that is a remedy for a limit of memory that is exceeded. False: it is none.
    pub(super) fn gives_memory_back(&mut self, over: OverMemory) -> bool {
        let (pool, now) = (self.pool(), self.now);
        let Some(sizing) = self.sizing.as_mut() else { return false };
        if over.bound == Bound::Worker || !sizing.may_shrink(pool.size) {
            return false;
        }
        if let Some(decision) = sizing.give_memory_back(pool, now) {
            self.resize(decision);
        }
        true
    }

    /// Processes beyond the usual number from now on, while others take the places of workers: a tenth of them, if the memory
    /// suffices.
    pub(super) fn set_surge(&mut self) {
        let room = self.staff.room.map_or(0, |room| room.workers);
        self.staff.surge = usize::from((self.staff.wanted / ROLLED_PART).min(room).max(1));
    }
}
