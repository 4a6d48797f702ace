//! Measurements for reforks that Highball begins by itself. [`crate::core::auto_refork`] decides what comes of them.

use super::super::app::App;
use super::super::event::Ticket;
use super::super::{AppAction, AppLog};
use crate::core::auto_refork::{AppMemory, Verdict};
use crate::core::refork::ReforkCause;
use crate::core::worker::WorkerState;
use highball_config::ReforkAfter;
use std::time::Instant;

impl App {
    /// Whether measurements decide on reforks. A single worker would share nothing with another one.
    pub(super) fn reforks_by_itself(&self) -> bool {
        self.config.refork_after == ReforkAfter::Auto && self.staff.wanted >= 2
    }

    /// When a measurement has to be made, or to be done.
    pub(super) fn measurement_due(&self) -> Option<Instant> {
        self.reforks.auto.deadline().filter(|_| self.reforks.going.is_none())
    }

    pub(super) fn advance_measurement(&mut self) {
        if self.reforks.auto.is_overdue(self.now) {
            self.reforks.auto.postpone(self.now);
            self.has_changed = true;
        }
        if !self.reforks.auto.is_due(self.now) {
            return;
        }
        let mold = self.current.mold.as_ref().filter(|mold| mold.is_booted()).map(|mold| mold.boot);
        let (Some(boot), true, Ok(())) = (mold, self.reforks_by_itself(), self.may_refork()) else {
            self.reforks.auto.postpone(self.now);
            self.has_changed = true;
            return;
        };
        let line = self.current.line;
        let serves = |worker: &super::super::worker::Worker| {
            worker.state == WorkerState::Serving && worker.line == line
        };
        let workers = self.staff.workers.which(serves);
        let ticket = self.next_ticket();
        self.reforks.auto.measure(ticket, self.now);
        self.act(AppAction::MeasureMemory { ticket, boot, workers });
    }

    pub(super) fn memory_measured(&mut self, ticket: Ticket, memory: Option<AppMemory>) {
        if !self.reforks.auto.awaits(ticket) {
            return;
        }
        let may_refork =
            self.reforks.going.is_none() && self.reforks_by_itself() && self.may_refork().is_ok();
        let Some(memory) = memory.filter(|_| may_refork) else {
            return self.reforks.auto.postpone(self.now);
        };
        match self.reforks.auto.judge(memory, self.now) {
            Verdict::Refork { expected_kib } => {
                let AppMemory { workers, private_kib, .. } = memory;
                let _ = self.ask_refork(ReforkCause::Memory { workers, private_kib, expected_kib });
            }
            Verdict::Outcome { before_kib, after_kib, is_last } => {
                self.log(AppLog::ReforkOutcome { before_kib, after_kib, is_last });
            }
            Verdict::NoRoom { expected_kib } => self.log(AppLog::NoRoomForRefork { expected_kib }),
            Verdict::NotNow => {}
        }
    }
}
