//! Whether a worker shows signs of life, also without requests. The supervisor asks each one something rarely, and sees in the
//! kernel's figures which ones are stopped; it reports what it finds with each of its looks. This judges the reports, because
//! only the front knows what the worker is at.
//!
//! Time counts as far as the event loop ran and a report is fresh, so that neither loop has to be trusted after a pause.

use super::stall::REPORT_AGAIN_MS;

/// Time for which a report counts: the supervisor looks at least every five seconds.
const REPORT_COUNTS_MS: u64 = 7000;
/// How long a worker has to be stopped before that is reported.
const STOPPED_MS: u64 = 20_000;
/// The same in development, where a developer may have stopped it in a debugger.
const STOPPED_IN_DEVELOPMENT_MS: u64 = 60_000;
/// How long a worker has to be silent before that is reported.
const SILENT_MS: u64 = 30_000;

/// What the supervisor reports of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sign {
    #[default]
    Answers,
    /// It has not answered a question for some seconds.
    Silent,
    /// A signal has stopped the process.
    Stopped,
}

/// What the front sees of it at a tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtWork {
    pub(super) served: u64,
    pub(super) busy_threads: u32,
    pub(super) is_development: bool,
}

/// What is known of a worker.
#[derive(Debug, Default)]
pub(super) struct Silence {
    sign: Sign,
    /// Time for which the last report still counts.
    fresh_ms: u64,
    counted_ms: u64,
    patience_ms: u64,
    seen_ms: u64,
    served: u64,
    reported_ms: Option<u64>,
}

impl Silence {
    /// Takes note of a report.
    pub(super) fn note(&mut self, sign: Sign) {
        if sign != self.sign {
            let (seen_ms, served) = (self.seen_ms, self.served);
            *self = Silence { sign, seen_ms, served, ..Silence::default() };
        }
        self.fresh_ms = REPORT_COUNTS_MS;
    }

    /// A tick, in loop time. Returns whether the supervisor is to replace the worker.
    pub(super) fn look(&mut self, at_work: AtWork, now_ms: u64) -> bool {
        let AtWork { served, busy_threads, is_development } = at_work;
        let elapsed_ms =
            now_ms.saturating_sub(std::mem::replace(&mut self.seen_ms, now_ms)).min(self.fresh_ms);
        let has_served = std::mem::replace(&mut self.served, served) != served;
        let is_idle = busy_threads == 0;
        self.fresh_ms -= elapsed_ms;
        let (patience_ms, counts) = match (self.sign, is_development) {
            // A debugger may have stopped its threads.
            (Sign::Stopped, true) => (STOPPED_IN_DEVELOPMENT_MS, is_idle),
            (Sign::Stopped, false) => (STOPPED_MS, true),
            // A request that keeps the GVL explains it, and has its own limit. Its end shows that the GVL is free.
            (Sign::Silent, false) => (SILENT_MS, is_idle || has_served),
            (Sign::Answers, _) | (Sign::Silent, true) => return false,
        };
        self.patience_ms = patience_ms;
        self.counted_ms += if counts { elapsed_ms } else { 0 };
        let is_due = self.reported_ms.is_none_or(|at| now_ms >= at + REPORT_AGAIN_MS);
        let reports = self.is_long() && is_due;
        if reports {
            self.reported_ms = Some(now_ms);
        }
        reports
    }

    /// Whether the worker has shown no sign of life for too long.
    pub(super) fn is_long(&self) -> bool {
        self.patience_ms > 0 && self.counted_ms >= self.patience_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: AtWork = AtWork { served: 7, busy_threads: 0, is_development: false };

    /// Seconds until the worker is to be replaced, if reports come every five seconds until `until_s`, and the front sees this.
    fn replaced_after(sign: Sign, until_s: u64, at_work: impl Fn(u64) -> AtWork) -> Option<u64> {
        let mut silence = Silence::default();
        silence.look(at_work(0), 1000);
        let ticks = (0..2000).find(|tick| {
            if tick % 50 == 0 && tick / 10 < until_s {
                silence.note(sign);
            }
            silence.look(at_work(*tick), 1000 + tick * 100)
        });
        ticks.map(|ticks| ticks / 10)
    }

    #[test]
    fn a_worker_without_signs_of_life_is_replaced() {
        assert_eq!(replaced_after(Sign::Stopped, 1000, |_| IDLE), Some(20));
        assert_eq!(replaced_after(Sign::Silent, 1000, |_| IDLE), Some(30));
        assert_eq!(replaced_after(Sign::Answers, 1000, |_| IDLE), None);
    }

    #[test]
    fn a_request_that_keeps_the_gvl_explains_silence_and_nothing_explains_a_stop() {
        let at_one = |_| AtWork { busy_threads: 1, ..IDLE };
        assert_eq!(replaced_after(Sign::Silent, 1000, at_one), None);
        assert_eq!(replaced_after(Sign::Stopped, 1000, at_one), Some(20));
        let serves_on = |tick| AtWork { busy_threads: 1, served: tick, ..IDLE };
        assert_eq!(replaced_after(Sign::Silent, 1000, serves_on), Some(30), "its main thread is deaf");
    }

    #[test]
    fn old_reports_count_for_nothing() {
        assert_eq!(replaced_after(Sign::Stopped, 10, |_| IDLE), None);
        assert_eq!(replaced_after(Sign::Silent, 20, |_| IDLE), None);
    }

    #[test]
    fn in_development_a_debugger_is_left_alone() {
        let idle = |_| AtWork { is_development: true, ..IDLE };
        let at_one = |_| AtWork { is_development: true, busy_threads: 1, ..IDLE };
        assert_eq!(replaced_after(Sign::Silent, 1000, idle), None);
        assert_eq!(replaced_after(Sign::Stopped, 1000, at_one), None);
        assert_eq!(replaced_after(Sign::Stopped, 1000, idle), Some(60));
    }

    #[test]
    fn a_sign_of_life_ends_it() {
        let mut silence = Silence::default();
        for second in 0..60 {
            silence.note(Sign::Stopped);
            silence.look(IDLE, second * 1000);
        }
        assert!(silence.is_long());
        silence.note(Sign::Answers);
        silence.look(IDLE, 60_100);
        assert!(!silence.is_long());
    }
}
