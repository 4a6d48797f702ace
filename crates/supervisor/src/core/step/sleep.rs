//! An application that receives no requests has no processes. It boots for the next request.

use super::super::app::App;
use super::super::condition::{Condition, Phase};
use super::super::config::{HotRestart, Source};
use super::super::AppLog;

impl App {
    /// It has been idle for so long that it may end its processes. If something is under way, the front will report it
    /// again.
    pub(super) fn fall_asleep(&mut self) {
        let tally = self.tally();
        let may_sleep = self.phase.is_running()
            && self.config.source == Source::Folder
            && self.surroundings.hot_restart == HotRestart::No
            && self.is_at_rest()
            && self.condition.is_serving()
            && tally.is_settled()
            && tally.coming == 0;
        if !may_sleep {
            return;
        }
        self.out.log(AppLog::FallsAsleep);
        self.condition = Condition::Asleep; // and so no worker is wanted
        self.boots.forget_failure();
        self.reforks.stop_counting();
        self.let_go(self.current.line());
    }

    /// A request has arrived. It boots what is there by now.
    pub(super) fn wake(&mut self) {
        self.out.log(AppLog::WakesUp);
        self.config.may_fail = true; // what keeps it from booting now need not do so for long
        self.condition = Condition::Booting;
        self.current.follow_link();
        self.current.gone();
        self.staff.forget_load(self.now);
        self.begin_line();
    }

    /// Whether another process serves in the place of this one, and it boots nevertheless for requests over connections
    /// from before.
    pub(super) fn wakes_for_last_requests(&self) -> bool {
        let drains = matches!(self.phase, Phase::Draining(_)) && !self.is_removed;
        drains && self.surroundings.hot_restart == HotRestart::Done
    }

    /// Whether it is brought up where it is not there.
    pub(super) fn is_brought_up(&self) -> bool {
        let is_missed = !self.current.has_booted() && self.wakes_for_last_requests();
        self.phase.is_running() || is_missed
    }

    /// What was forked so far has nothing to do any more with what is forked from now on.
    pub(super) fn begin_line(&mut self) {
        let line = self.molds.begin_line();
        self.molds.change_line(self.current.line(), line); // a mold that is still ending is in the way of the next
        self.current.begin_line(line);
        self.boots.begin_line(self.staff.begin_line(self.now));
        self.out.go_on();
    }
}
