//! Automatic reforks (`refork_after = auto`): when to measure the memory of an application, and whether
//! a refork pays, as pure functions of what was measured. A refork that did not pay is the last one of its version.

use super::ids::Receipt;
use std::time::{Duration, Instant};

const MIB_IN_KIB: u64 = 1024;
/// A refork is begun for no less than this.
const LEAST_GAIN_KIB: u64 = 24 * MIB_IN_KIB;
/// A refork that saved less did not pay.
const LEAST_SAVED_KIB: u64 = LEAST_GAIN_KIB / 2;
/// Requests of a worker, and the time since the previous refork or the start, before each refork. After the last one, what
/// workers share is not improved any more.
const STAGES: [(u64, Duration); 3] = [
    (400, Duration::from_secs(15)),
    (1_000, Duration::from_secs(5 * 60)),
    (5_000, Duration::from_secs(30 * 60)),
];
/// Instead of the first of these times, where a version has taken the place of another under load: its workers have less to
/// do when they and the caches are warm.
const AFTER_RESTART: Duration = Duration::from_secs(60);
/// Where a refork would save too little, it is measured again after this many times as many requests.
const PATIENCE: u64 = 4;
/// An application whose workers have too little that they do not share after this many requests is left alone.
const MOST_REQUESTS: u64 = 50_000;
/// Time until the next measurement where one failed, or there is no memory for a refork.
const PAUSE: Duration = Duration::from_secs(5 * 60);
/// Time for all processes to answer.
pub(crate) const MEASURE_TIME: Duration = Duration::from_secs(10);

/// The memory of an application, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AppMemory {
    /// Workers that were measured.
    pub(crate) workers: u64,
    /// What a worker shares with no other process, on average.
    pub(crate) private_kib: u64,
    /// All resident pages of the largest worker.
    pub(crate) resident_kib: u64,
    /// Of mold and workers together, pages that they share counted once.
    pub(crate) total_kib: u64,
    /// What the machine or container has left, if that is known.
    pub(crate) free_kib: Option<u64>,
}

impl AppMemory {
    /// What a refork is expected to save where each worker has this much that it does not share: half of it for each worker but
    /// one, whose memory the mold takes over. (Measured with YJIT: 0.55 to 0.6.)
    fn expected_kib(&self, private_kib: u64) -> u64 {
        self.workers.saturating_sub(1).saturating_mul(private_kib) / 2
    }

    /// Whether there is memory for one more worker, and for a mold that writes to all of its pages.
    fn has_room(&self) -> bool {
        let needed = self.resident_kib.saturating_add(self.private_kib);
        self.free_kib.is_none_or(|free| free >= needed)
    }
}

/// What comes of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A refork is expected to save this.
    Refork { expected_kib: u64 },
    /// There is too little to save, or it is not known how much.
    NotNow,
    /// It would save this, but there is no memory for a further worker and a second mold.
    NoRoom { expected_kib: u64 },
    /// What the last refork has saved. `is_last`: it did not pay, or there is no further one.
    Outcome { before_kib: u64, after_kib: u64, is_last: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The front counts requests.
    Counting,
    /// A worker is warm; the memory is measured at this time.
    Due(Instant),
    Measuring {
        receipt: Receipt,
        until: Instant,
    },
    /// A refork that was begun here is under way.
    Reforking,
    /// No further refork of this version.
    Stopped,
}

#[derive(Debug)]
pub(crate) struct AutoRefork {
    step: Step,
    /// Reforks of this version that have paid.
    stage: usize,
    /// Requests of a worker before the next measurement.
    requests: u64,
    /// No measurement is made before.
    rests_until: Instant,
    /// When the last refork was done.
    reforked_at: Instant,
    /// The last measurement before the last refork, until it is known what came of it.
    before: Option<AppMemory>,
    /// What each worker did not share when the last refork was judged.
    fresh_kib: u64,
}

impl AutoRefork {
    pub(crate) fn new(now: Instant) -> AutoRefork {
        let (requests, rest) = STAGES[0];
        AutoRefork {
            step: Step::Counting,
            stage: 0,
            requests,
            rests_until: now + rest,
            reforked_at: now,
            before: None,
            fresh_kib: 0,
        }
    }

    /// A new version serves: everything begins again.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = AutoRefork { rests_until: now + AFTER_RESTART, ..AutoRefork::new(now) };
    }

    /// Requests of a worker that the front should count; `None`: none now.
    pub(crate) fn counts(&self) -> Option<u64> {
        (self.step == Step::Counting).then_some(self.requests)
    }

    /// A worker has answered that many.
    pub(crate) fn warm(&mut self, now: Instant) {
        if self.step == Step::Counting {
            self.step = Step::Due(self.rests_until.max(now));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.step {
            Step::Due(at) | Step::Measuring { until: at, .. } => Some(at),
            Step::Counting | Step::Reforking | Step::Stopped => None,
        }
    }

    /// Whether it is time to measure.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        matches!(self.step, Step::Due(at) if at <= now)
    }

    pub(crate) fn measure(&mut self, receipt: Receipt, now: Instant) {
        self.step = Step::Measuring { receipt, until: now + MEASURE_TIME };
    }

    /// Whether a measurement has taken too long.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        matches!(self.step, Step::Measuring { until, .. } if until <= now)
    }

    pub(crate) fn awaits(&self, receipt: Receipt) -> bool {
        matches!(self.step, Step::Measuring { receipt: of, .. } if of == receipt)
    }

    /// The measurement failed, or a refork may not begin now.
    pub(crate) fn postpone(&mut self, now: Instant) {
        self.step = Step::Counting;
        self.rests_until = now + PAUSE;
    }

    /// What comes of what was measured.
    pub(crate) fn judge(&mut self, memory: AppMemory, now: Instant) -> Verdict {
        if let Some(before) = self.before.take() {
            return self.outcome(before, memory);
        }
        let expected_kib = memory.expected_kib(memory.private_kib.saturating_sub(self.fresh_kib));
        if expected_kib < LEAST_GAIN_KIB {
            self.requests = self.requests.saturating_mul(PATIENCE);
            self.step = if self.requests > MOST_REQUESTS { Step::Stopped } else { Step::Counting };
            return Verdict::NotNow;
        }
        if !memory.has_room() {
            self.postpone(now);
            return Verdict::NoRoom { expected_kib };
        }
        self.before = Some(memory);
        self.step = Step::Reforking;
        Verdict::Refork { expected_kib }
    }

    fn outcome(&mut self, before: AppMemory, memory: AppMemory) -> Verdict {
        let paid = before.total_kib.saturating_sub(memory.total_kib) >= LEAST_SAVED_KIB;
        self.fresh_kib = memory.private_kib;
        self.stage += 1;
        let next = STAGES.get(self.stage).filter(|_| paid);
        self.step = match next {
            Some((requests, rest)) => {
                self.requests = *requests;
                self.rests_until = self.reforked_at + *rest;
                Step::Counting
            }
            None => Step::Stopped,
        };
        Verdict::Outcome {
            before_kib: before.total_kib,
            after_kib: memory.total_kib,
            is_last: next.is_none(),
        }
    }

    /// A refork has succeeded. If it was begun here, its result is measured when a new worker is as warm as the old one
    /// was.
    pub(crate) fn reforked(&mut self, now: Instant) {
        if self.step == Step::Stopped {
            return;
        }
        let was_ours = self.step == Step::Reforking;
        self.before = self.before.filter(|_| was_ours);
        self.reforked_at = now;
        self.rests_until = now + if was_ours { Duration::ZERO } else { PAUSE };
        self.step = Step::Counting;
    }

    /// Something else came before the refork that was begun here.
    pub(crate) fn abandoned(&mut self, now: Instant) {
        if self.step == Step::Reforking {
            self.before = None;
            self.postpone(now);
        }
    }

    /// A refork has failed, or was refused.
    pub(crate) fn failed(&mut self) {
        if self.step == Step::Reforking {
            self.step = Step::Stopped;
            self.before = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = MIB_IN_KIB;

    fn memory(workers: u64, private_mib: u64, total_mib: u64) -> AppMemory {
        AppMemory {
            workers,
            private_kib: private_mib * MIB,
            resident_kib: 2 * private_mib * MIB,
            total_kib: total_mib * MIB,
            free_kib: None,
        }
    }

    /// Takes it to a measurement; returns the time of that.
    fn measured(auto: &mut AutoRefork, now: Instant) -> Instant {
        assert!(auto.counts().is_some(), "{auto:?}");
        auto.warm(now);
        let at = auto.deadline().unwrap();
        assert!(auto.is_due(at) && (at == now || !auto.is_due(at - Duration::from_millis(1))));
        auto.measure(Receipt(7), at);
        assert!(auto.awaits(Receipt(7)) && !auto.awaits(Receipt(8)));
        at
    }

    #[test]
    fn a_large_application_is_reforked_and_judged_until_it_does_not_pay() {
        let start = Instant::now();
        let mut auto = AutoRefork::new(start);
        assert_eq!(auto.counts(), Some(400));
        let at = measured(&mut auto, start);
        assert_eq!(at, start + STAGES[0].1, "the first requests of a version are not disturbed");
        assert!(matches!(auto.judge(memory(4, 110, 590), at), Verdict::Refork { .. }));
        assert_eq!((auto.counts(), auto.deadline()), (None, None));
        auto.reforked(at);
        let judged = measured(&mut auto, at);
        let outcome = auto.judge(memory(4, 73, 470), judged);
        let is_last = false;
        assert_eq!(outcome, Verdict::Outcome { before_kib: 590 * MIB, after_kib: 470 * MIB, is_last });
        assert_eq!(auto.counts(), Some(1000));
        let again = measured(&mut auto, judged);
        assert_eq!(again, at + STAGES[1].1, "not sooner than some minutes after the last refork");
        assert_eq!(auto.judge(memory(4, 80, 500), again), Verdict::NotNow, "little is stale");
        let later = measured(&mut auto, again);
        assert!(matches!(auto.judge(memory(4, 120, 600), later), Verdict::Refork { .. }));
        auto.reforked(later);
        let judged = measured(&mut auto, later);
        let outcome = auto.judge(memory(4, 118, 595), judged);
        let is_last = true;
        assert_eq!(outcome, Verdict::Outcome { before_kib: 600 * MIB, after_kib: 595 * MIB, is_last });
        assert_eq!((auto.counts(), auto.deadline()), (None, None), "it did not pay");
        auto.restart(judged);
        assert_eq!(auto.counts(), Some(400), "another version may pay");
        assert_eq!(measured(&mut auto, judged), judged + AFTER_RESTART);
    }

    #[test]
    fn a_small_application_is_left_alone_after_some_looks() {
        let mut now = Instant::now();
        let mut auto = AutoRefork::new(now);
        let mut looks = 0;
        while auto.counts().is_some() {
            now = measured(&mut auto, now);
            assert_eq!(auto.judge(memory(4, 10, 60), now), Verdict::NotNow);
            looks += 1;
        }
        assert_eq!((looks, auto.deadline()), (4, None));
    }

    #[test]
    fn few_workers_have_to_have_more() {
        let gain =
            |workers, private_mib| memory(workers, private_mib, 0).expected_kib(private_mib * MIB) / MIB;
        assert_eq!([1, 2, 4, 8].map(|workers| gain(workers, 120)), [0, 60, 180, 420]);
    }

    #[test]
    fn without_room_it_waits() {
        let start = Instant::now();
        let mut auto = AutoRefork::new(start);
        let at = measured(&mut auto, start);
        let tight = AppMemory { free_kib: Some(200 * MIB), ..memory(4, 110, 590) };
        assert!(matches!(auto.judge(tight, at), Verdict::NoRoom { .. }));
        let at = measured(&mut auto, at);
        assert_eq!(at, start + STAGES[0].1 + PAUSE);
        let enough = AppMemory { free_kib: Some(330 * MIB), ..tight };
        assert!(matches!(auto.judge(enough, at), Verdict::Refork { .. }));
    }

    #[test]
    fn a_failed_refork_is_the_last_one_and_another_ones_outcome_is_not_judged() {
        let start = Instant::now();
        let mut auto = AutoRefork::new(start);
        auto.reforked(start); // by command
        let at = measured(&mut auto, start);
        assert!(matches!(auto.judge(memory(4, 110, 590), at), Verdict::Refork { .. }));
        auto.failed();
        assert_eq!((auto.counts(), auto.deadline()), (None, None));
        auto.reforked(at); // by command
        assert_eq!(auto.counts(), None);
    }

    #[test]
    fn what_processes_say_of_themselves_cannot_overflow() {
        let absurd = AppMemory {
            workers: u64::MAX,
            private_kib: u64::MAX,
            resident_kib: u64::MAX,
            total_kib: u64::MAX,
            free_kib: Some(u64::MAX),
        };
        let now = Instant::now();
        let mut auto = AutoRefork::new(now);
        let at = measured(&mut auto, now);
        assert!(matches!(auto.judge(absurd, at), Verdict::Refork { .. }));
        auto.reforked(at);
        let at = measured(&mut auto, at);
        let _ = auto.judge(AppMemory::default(), at);
    }
}
