//! A request that a worker is still at although no client waits for its answer: its time limit has passed, or its client has
//! left before that.

use highball_ring::Ticket;

/// How long a request may go on after its time limit without costing its worker.
const GRACE_MS: u64 = 2000;

/// One of them.
#[derive(Debug)]
struct Overrun {
    ticket: Ticket,
    /// When its time limit passes.
    limit_ms: u64,
    stage: Stage,
}

/// What the supervisor knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing: its time limit has not passed.
    InTime,
    /// It has exceeded its time limit.
    TimedOut,
    /// It goes on: its worker is to be replaced.
    Stuck,
}

/// What there is to report of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverrunNews {
    TimedOut(Ticket),
    Stuck,
}

/// Overruns of a worker: at most one for each slot.
#[derive(Debug, Default)]
pub(super) struct Overruns(Vec<Overrun>);

impl Overruns {
    /// No client waits any more for the request with this ticket, whose time limit passes at this time.
    pub(super) fn add(&mut self, ticket: Ticket, limit_ms: u64) {
        self.forget(ticket.slot);
        self.0.push(Overrun { ticket, limit_ms, stage: Stage::InTime });
    }

    /// The request in this slot has ended.
    pub(super) fn forget(&mut self, slot: u16) {
        self.0.retain(|overrun| overrun.ticket.slot != slot);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many requests have exceeded their time limits.
    pub(super) fn timed_out(&self) -> u32 {
        self.0.iter().filter(|overrun| overrun.stage != Stage::InTime).count() as u32
    }

    /// What there is to report at this time, each once.
    pub(super) fn news(&mut self, now_ms: u64) -> Vec<OverrunNews> {
        let news = self.0.iter_mut().filter_map(|overrun| match overrun.stage {
            Stage::InTime if now_ms >= overrun.limit_ms => {
                overrun.stage = Stage::TimedOut;
                Some(OverrunNews::TimedOut(overrun.ticket))
            }
            Stage::TimedOut if now_ms >= overrun.limit_ms + GRACE_MS => {
                overrun.stage = Stage::Stuck;
                Some(OverrunNews::Stuck)
            }
            Stage::InTime | Stage::TimedOut | Stage::Stuck => None,
        });
        news.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_reported_once_and_what_has_ended_is_not() {
        let (one, two) = (Ticket { slot: 1, position: 7 }, Ticket { slot: 2, position: 8 });
        let mut overruns = Overruns::default();
        overruns.add(one, 1000);
        overruns.add(two, 5000);
        assert_eq!((overruns.news(999), overruns.timed_out()), (vec![], 0));
        assert_eq!((overruns.news(1000), overruns.timed_out()), (vec![OverrunNews::TimedOut(one)], 1));
        assert_eq!(overruns.news(1000 + GRACE_MS - 1), []);
        assert_eq!(overruns.news(1000 + GRACE_MS), [OverrunNews::Stuck]);
        assert_eq!(overruns.news(1000 + GRACE_MS), []);
        overruns.forget(2);
        assert_eq!(overruns.news(1_000_000), []);
        overruns.add(Ticket { position: 9, ..one }, 0);
        assert_eq!(overruns.timed_out(), 0, "the slot has another request");
    }
}
