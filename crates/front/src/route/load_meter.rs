//! How busy the workers of an application are, seen at each tick. The supervisor gets the figures of a few ticks at a time, for
//! as long as there is something to report: nothing is sent of an idle application.

use std::time::Duration;

use highball_link::ReportedLoad;

use crate::dispatch::Dispatcher;

/// Ticks of a report.
const TICKS: u32 = 2;

#[derive(Debug, Default)]
pub(crate) struct LoadMeter {
    ticks: u32,
    began_ms: u64,
    busy: usize,
    queue: usize,
    waited_us: u64,
    /// The last report was of an application that had something to do.
    was_busy: bool,
    /// Answers that had been ended by then.
    ended: u64,
}

impl LoadMeter {
    /// Looks; what there is to report, if there is.
    pub(crate) fn tick(&mut self, dispatcher: &Dispatcher, now_ms: u64) -> Option<ReportedLoad> {
        if self.ticks == 0 && self.began_ms == 0 {
            self.began_ms = now_ms;
        }
        self.ticks += 1;
        self.busy += dispatcher.in_flight();
        self.queue += dispatcher.queue_length();
        self.waited_us = self.waited_us.max(dispatcher.longest_wait_us());
        if self.ticks < TICKS {
            return None;
        }
        let LoadMeter { ticks, began_ms, busy, queue, waited_us, was_busy, ended } = *self;
        let is_busy = busy + queue > 0 || dispatcher.ended() != ended;
        *self = LoadMeter {
            began_ms: now_ms,
            was_busy: is_busy,
            ended: dispatcher.ended(),
            ..LoadMeter::default()
        };
        let mean = |sum: usize| sum as f64 / f64::from(ticks);
        (is_busy || was_busy).then(|| ReportedLoad {
            elapsed: Duration::from_millis(now_ms.saturating_sub(began_ms)),
            busy: mean(busy),
            queue: mean(queue),
            waited: Duration::from_micros(waited_us),
        })
    }
}
