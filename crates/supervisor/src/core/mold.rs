//! The core's view of a mold: the process that loads the application and from which workers are forked.

use crate::core::departure::{Departure, LAST_MESSAGES_TIME};
use crate::core::restart_policy::Life;
use crate::facts::ending::Ending;
use crate::facts::spawn_journey::Journey;
use highball_link::Step;
use std::time::{Duration, Instant};

/// How long a mold or worker may take to print its backtraces before it is killed.
pub(crate) const DUMP_TIME: Duration = Duration::from_secs(2);
/// How many times its limit a boot may wait for a processor, in addition to that limit.
const MOST_WAITED: u32 = 9;
/// How long a process that was sent SIGKILL, or has closed its control socket, may take to be gone.
pub(crate) const KILL_TIME: Duration = Duration::from_secs(5);

/// The longest time that a boot with this limit can take, if it has to wait for a processor.
pub fn longest_boot(limit: Duration) -> Duration {
    limit * (MOST_WAITED + 1)
}

/// Where a mold is in its life.
#[derive(Debug)]
pub(crate) enum MoldState {
    /// It is started, and loads the application.
    Booting(Journey),
    /// It can fork workers.
    Booted,
    /// It took too long, and was asked for the backtraces of its threads.
    Dumping(Journey),
    /// It was killed, or has reported why it ends.
    Halted,
}

impl MoldState {
    /// The word for it in `highball status`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            MoldState::Booting(_) => "booting",
            MoldState::Booted => "booted",
            MoldState::Dumping(_) => "hangs",
            MoldState::Halted => "halted",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Mold {
    /// The number of its boot, from 1.
    pub(crate) boot: u32,
    /// The line of workers that is forked from it; `None`: nothing is any more, and it ends.
    pub(crate) line: Option<u32>,
    pub(crate) state: MoldState,
    /// When the current state has to have ended.
    pub(crate) deadline: Option<Instant>,
    booted_at: Option<Instant>,
    /// It has laid out its heap after its first fork.
    has_laid_out: bool,
    /// The number that it had as a worker.
    pub(crate) promoted_from: Option<u32>,
    /// Whether its process exists. Before that, the supervisor finds out where and how to boot.
    pub(crate) is_started: bool,
    /// Whether it is the process that started Highball, which is never killed.
    pub(crate) is_caller: bool,
    departure: Departure,
}

impl Mold {
    pub(crate) fn booting(boot: u32, line: u32, is_caller: bool, now: Instant, limit: Duration) -> Mold {
        Mold {
            boot,
            line: Some(line),
            state: MoldState::Booting(Journey::begin(now)),
            deadline: Some(now + limit),
            booted_at: None,
            has_laid_out: false,
            promoted_from: None,
            is_started: false,
            is_caller,
            departure: Departure::default(),
        }
    }

    /// A worker that has become a mold.
    pub(crate) fn promoted(boot: u32, line: u32, worker: u32, now: Instant) -> Mold {
        Mold {
            boot,
            line: Some(line),
            state: MoldState::Booted,
            deadline: None,
            booted_at: Some(now),
            has_laid_out: false,
            promoted_from: Some(worker),
            is_started: true,
            is_caller: false,
            departure: Departure::default(),
        }
    }

    /// Since it began, it has waited for a processor for this time, which does not count: while workers serve, a boot has a lower
    /// priority than they have.
    pub(crate) fn waited(&mut self, waited: Duration, limit: Duration) {
        if self.ending().is_some() {
            return; // only its last messages are waited for
        }
        if let MoldState::Booting(journey) = &self.state {
            self.deadline = Some(journey.began() + limit + waited.min(limit * MOST_WAITED));
        }
    }

    /// It has loaded the application. How long it took; `None`: it was not booting.
    pub(crate) fn booted(&mut self, now: Instant) -> Option<Duration> {
        let MoldState::Booting(journey) = &self.state else { return None };
        let took = journey.elapsed(now);
        self.state = MoldState::Booted;
        self.deadline = None;
        self.booted_at = Some(now);
        Some(took)
    }

    /// It has laid out its heap after its first fork. False: it has reported that before, or has not booted.
    pub(crate) fn laid_out(&mut self) -> bool {
        self.is_booted() && !std::mem::replace(&mut self.has_laid_out, true)
    }

    pub(crate) fn life(&self, now: Instant) -> Life {
        self.booted_at.map_or(Life::NeverReady, |at| Life::Ready(now - at))
    }

    /// Since when it boots, if it does.
    pub(crate) fn boots_since(&self) -> Option<Instant> {
        match &self.state {
            MoldState::Booting(journey) => Some(journey.began()),
            MoldState::Dumping(_) | MoldState::Booted | MoldState::Halted => None,
        }
    }

    /// The step of the boot that it is at, if it boots or hangs.
    pub(crate) fn step(&self) -> Option<Step> {
        match &self.state {
            MoldState::Booting(journey) | MoldState::Dumping(journey) => Some(journey.step()),
            MoldState::Booted | MoldState::Halted => None,
        }
    }

    pub(crate) fn is_booted(&self) -> bool {
        matches!(self.state, MoldState::Booted)
    }

    pub(crate) fn is_halted(&self) -> bool {
        matches!(self.state, MoldState::Halted)
    }

    /// It boots for too long, and is asked where it is. False: it was asked before, or does not boot.
    pub(crate) fn dump(&mut self, now: Instant) -> bool {
        match std::mem::replace(&mut self.state, MoldState::Halted) {
            MoldState::Booting(journey) => {
                self.state = MoldState::Dumping(journey);
                self.deadline = Some(now + DUMP_TIME);
                true
            }
            other => {
                self.state = other;
                false
            }
        }
    }

    /// It is killed, or ends.
    pub(crate) fn halt(&mut self, now: Instant) {
        self.state = MoldState::Halted;
        self.deadline = Some(now + KILL_TIME);
    }

    /// Its control socket is closed. How it ended, if it has gone: a caller has, another's end the kernel reports.
    pub(crate) fn heard_out(&mut self) -> Option<Ending> {
        self.departure.heard_out();
        if self.is_caller {
            self.departure.ended(Ending::Unknown);
        }
        self.departure.complete()
    }

    /// It has ended. How, if it has gone; else its last messages are still to come.
    pub(crate) fn ended(&mut self, ending: Ending, now: Instant) -> Option<Ending> {
        self.departure.ended(ending);
        if matches!(self.state, MoldState::Booted | MoldState::Halted) {
            return self.departure.ending();
        }
        self.deadline = Some(now + LAST_MESSAGES_TIME);
        self.departure.complete()
    }

    /// How it ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.departure.ending()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn what_a_boot_waits_for_a_processor_is_added_to_its_limit() {
        let now = Instant::now();
        let mut mold = Mold::booting(1, 1, false, now, LIMIT);
        for (waited, limit) in [(0, 60), (30, 90), (540, 600), (541, 600), (100_000, 600)] {
            mold.waited(seconds(waited), LIMIT);
            assert_eq!(mold.deadline, Some(now + seconds(limit)), "{waited}");
        }
        assert_eq!(longest_boot(LIMIT), seconds(600));
    }

    #[test]
    fn a_mold_that_boots_no_more_has_its_deadline() {
        let now = Instant::now();
        let mut hangs = Mold::booting(1, 1, false, now, LIMIT);
        assert!(hangs.dump(now));
        let mut dead = Mold::booting(2, 1, false, now, LIMIT);
        dead.ended(Ending::Unknown, now);
        let mut booted = Mold::booting(3, 1, false, now, LIMIT);
        booted.booted(now);
        for (mold, deadline) in
            [(&mut hangs, Some(DUMP_TIME)), (&mut dead, Some(LAST_MESSAGES_TIME)), (&mut booted, None)]
        {
            mold.waited(seconds(1000), LIMIT);
            assert_eq!(mold.deadline, deadline.map(|after| now + after));
        }
    }
}
