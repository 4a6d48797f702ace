//! An application that nobody asks for has no processes. It boots when somebody does.

use super::{HotRestart, Phase, Supervisor};
use crate::mold::MoldSource;
use std::time::Instant;
use tracing::info;

impl Supervisor {
    /// Nobody has asked for it for so long that it may end its processes. If something is under way, the front will say
    /// it again.
    pub(super) fn fall_asleep(&mut self, now: Instant) {
        if !self.may_sleep() {
            return;
        }
        info!("nobody asks for the application: it falls asleep");
        self.asleep = true; // and so no worker is wanted
        self.counts_requests = false;
        let mold = self.current.mold.take();
        self.let_go(self.current.line, mold, now);
    }

    fn may_sleep(&self) -> bool {
        let tally = self.tally();
        matches!(self.phase, Phase::Running)
            && matches!(self.source, MoldSource::Folder { .. })
            && self.hot_restart == HotRestart::No
            && self.is_at_rest()
            && self.current.app.is_some()
            && tally.is_settled()
            && tally.coming == 0
    }

    /// Somebody asks for it. It boots what is there by now.
    pub(super) fn wake(&mut self, now: Instant) {
        info!("somebody asks for the application: it wakes up");
        self.asleep = false;
        self.may_fail = true; // what keeps it from booting now need not do so for long
        self.folder_is_due = true;
        self.current.app = None;
        self.begin_line(now);
    }

    /// Whether another process serves in the place of this one, and it boots nevertheless for those who ask for it over
    /// a connection that they had before.
    pub(super) fn wakes_for_last_requests(&self) -> bool {
        let drains = matches!(self.phase, Phase::Draining(_)) && !self.removed;
        drains && self.hot_restart == HotRestart::Done
    }

    /// Whether it is brought up where it is not there.
    pub(super) fn is_brought_up(&self) -> bool {
        let is_missed = self.current.app.is_none() && self.wakes_for_last_requests();
        matches!(self.phase, Phase::Running) || is_missed
    }

    /// What was forked so far has nothing to do any more with what is forked from now on.
    pub(super) fn begin_line(&mut self, now: Instant) {
        self.last_line += 1;
        self.current.line = self.last_line;
        self.mold_due = now;
        self.fork_due = now;
    }
}
