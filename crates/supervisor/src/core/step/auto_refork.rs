//! Measurements for automatic reforks. [`crate::core::auto_refork`] decides what comes of them.

use super::super::app::App;
use super::super::ids::Receipt;
use super::super::worker::Worker;
use super::super::{AppAction, AppLog};
use crate::core::auto_refork::{AppMemory, Verdict};
use crate::core::refork::ReforkCause;
use crate::core::worker::WorkerState;

impl App {
    /// Asks mold and workers for their memory, if it is time.
    pub(super) fn measure_if_due(&mut self) {
        if !self.reforks.is_measurement_due(self.now) {
            return;
        }
        let line = self.current.line();
        let mold = self.molds.of(line).filter(|mold| mold.is_booted()).map(|mold| mold.boot);
        let (Some(boot), true, Ok(())) =
            (mold, self.config.reforks_by_itself(self.staff.wanted()), self.may_refork())
        else {
            return self.reforks.postpone_measurement(self.now);
        };
        let serves = |worker: &Worker| worker.state == WorkerState::Serving && worker.line == line;
        let (receipt, workers) = (self.out.next_receipt(), self.staff.workers().which(serves));
        self.reforks.measures(receipt, self.now);
        self.out.act(AppAction::MeasureMemory { receipt, boot, workers });
    }

    pub(super) fn memory_measured(&mut self, receipt: Receipt, memory: Option<AppMemory>) {
        if !self.reforks.awaits(receipt) {
            return;
        }
        let may_refork = !self.reforks.is_going()
            && self.config.reforks_by_itself(self.staff.wanted())
            && self.may_refork().is_ok();
        let Some(memory) = memory.filter(|_| may_refork) else {
            return self.reforks.postpone_measurement(self.now);
        };
        match self.reforks.measured(memory, self.now) {
            Verdict::Refork { expected_kib } => {
                let AppMemory { workers, private_kib, .. } = memory;
                let _ = self.ask_refork(ReforkCause::Memory { workers, private_kib, expected_kib });
            }
            Verdict::Outcome { before_kib, after_kib, is_last } => {
                self.out.log(AppLog::ReforkOutcome { before_kib, after_kib, is_last });
            }
            Verdict::NoRoom { expected_kib } => self.out.log(AppLog::NoRoomForRefork { expected_kib }),
            Verdict::NotNow => {}
        }
    }
}
