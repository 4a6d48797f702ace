//! How many workers there should be: as many as the configuration says, an operator has ordered, or the load needs.

use super::Staff;
use crate::core::config::AppConfig;
use crate::core::memory::{Bound, OverMemory};
use crate::core::rolling::ROLLED_PART;
use crate::core::sizing::{Decision, Load, Outcome, Pool, Room, Sizing};
use highball_config::PoolRange;
use std::time::Instant;

/// As many as can be asked for at the start.
const MOST_WORKERS: i32 = 512;

impl Staff {
    pub(crate) fn wanted(&self) -> u16 {
        self.wanted
    }

    /// What the number follows, if it follows the load.
    pub(crate) fn sizing(&self) -> Option<&Sizing> {
        self.sizing.as_ref()
    }

    /// An operator orders more or fewer than before, and never none. How many there should be now.
    pub(crate) fn order(&mut self, more: i32, now: Instant) -> u16 {
        let wanted = i32::from(self.wanted).saturating_add(more).clamp(1, MOST_WORKERS);
        self.wanted = wanted as u16;
        if let Some(sizing) = &mut self.sizing {
            sizing.ordered(self.wanted, now);
        }
        self.wanted
    }

    /// The configuration gives another number or range than before.
    pub(crate) fn resize_as_configured(&mut self, before: &AppConfig, config: &AppConfig, now: Instant) {
        if config.workers != before.workers && config.pool.is_none() && before.pool.is_none() {
            self.wanted = config.workers;
        }
        if config.pool != before.pool {
            self.configure_range(config.pool, config.workers, now);
        }
    }

    fn configure_range(&mut self, range: Option<PoolRange>, workers: u16, now: Instant) {
        match (range, self.sizing.as_mut()) {
            (Some(range), Some(sizing)) => self.wanted = sizing.configure(range, self.wanted),
            (Some(range), None) => {
                self.wanted = self.wanted.clamp(range.min, range.max);
                self.sizing = Some(Sizing::new(range, now));
            }
            (None, Some(_)) => {
                self.wanted = workers;
                self.sizing = None;
            }
            (None, None) => {}
        }
    }

    /// There have never been workers, and now there may be.
    pub(crate) fn size_at_first(&mut self, config: &AppConfig, now: Instant) {
        self.wanted = config.workers_at_first();
        self.sizing = config.pool.map(|range| Sizing::new(range, now));
    }

    /// The application wakes up: what was measured says nothing about its new workers.
    pub(crate) fn forget_load(&mut self, now: Instant) {
        if let Some(sizing) = &mut self.sizing {
            sizing.begin(now);
        }
    }

    /// The load was measured.
    pub(crate) fn note_load(&mut self, load: Load, now: Instant) {
        if let Some(sizing) = &mut self.sizing {
            sizing.note(load, now);
        }
    }

    /// The memory for more workers was measured.
    pub(crate) fn note_room(&mut self, room: Room) {
        self.room = Some(room);
    }

    /// Changes the number, if the load asks for it.
    pub(crate) fn follow_load(&mut self, pool: Pool, now: Instant) -> Option<Outcome> {
        let outcome = self.sizing.as_mut()?.look(pool, now)?;
        if let Outcome::Change(decision) = outcome {
            self.wanted = decision.to;
        }
        Some(outcome)
    }

    /// When to look at the load again.
    pub(crate) fn load_due(&self, pool: Pool) -> Option<Instant> {
        self.sizing.as_ref()?.due(pool)
    }

    /// Whether fewer workers are a remedy for this limit of memory that is exceeded.
    pub(crate) fn may_give_memory_back(&self, over: OverMemory) -> bool {
        let may_shrink = self.sizing.as_ref().is_some_and(|sizing| sizing.may_shrink(self.wanted));
        may_shrink && over.bound != Bound::Worker
    }

    /// Has one worker fewer, if it is time for that.
    pub(crate) fn give_memory_back(&mut self, pool: Pool, now: Instant) -> Option<Decision> {
        let decision = self.sizing.as_mut()?.give_memory_back(pool, now)?;
        self.wanted = decision.to;
        Some(decision)
    }

    /// Others begin to take the places of workers: a tenth of them at a time, if the memory suffices.
    pub(crate) fn roll(&mut self) {
        let room = self.room.map_or(0, |room| room.workers);
        self.surge = usize::from((self.wanted / ROLLED_PART).min(room).max(1));
    }
}
