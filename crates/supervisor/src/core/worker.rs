//! The core's view of a worker.

use super::mold::KILL_TIME;
use crate::core::departure::{Departure, LAST_MESSAGES_TIME};
use crate::core::replacement::Replacement;
use crate::core::restart_policy::Life;
use crate::facts::boot_failure::BootFailure;
use crate::facts::ending::Ending;
use highball_link::RubyError;
use std::time::{Duration, Instant};

/// How long a worker that serves may go on after it has closed its control socket: the kernel may be about to report its end.
const CLOSED_TIME: Duration = Duration::from_secs(1);

/// Where a worker is in its life. Each state but `Serving` has a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerState {
    /// The mold was asked to fork it; it has not sent `hello`.
    Forking,
    /// It exists, and runs its hooks and starts its threads.
    Starting,
    /// It has the front's own requests to answer before clients' requests go to it: it is of a new version, or takes the place of
    /// another that serves until then, in a refork.
    Probing,
    /// The front gives it requests.
    Serving,
    /// The front gives it nothing more; it finishes what it has.
    Retiring,
    /// It was ordered to become a mold.
    Promoting,
    /// It was ordered to exit.
    Draining,
    /// It was sent SIGKILL.
    Halted,
}

/// The words for these states in `highball status` and metrics, in their order.
pub const WORKER_STATES: [&str; 8] =
    ["forking", "starting", "probing", "serving", "retiring", "promoting", "draining", "halted"];

impl WorkerState {
    pub(crate) fn name(self) -> &'static str {
        WORKER_STATES[self as usize]
    }
}

/// Why a worker could not start, as it says itself.
#[derive(Debug, Clone)]
pub(crate) struct StartFailure {
    pub(crate) error: RubyError,
    /// The whole failure, if it could not start serving.
    pub(crate) boot: Option<Box<BootFailure>>,
}

impl StartFailure {
    /// Of a worker that was not even forked.
    pub(crate) fn of_ours(message: String) -> StartFailure {
        StartFailure { error: RubyError::of_ours(message), boot: None }
    }
}

impl From<BootFailure> for StartFailure {
    fn from(failure: BootFailure) -> Self {
        StartFailure { error: failure.account.error.clone(), boot: Some(Box::new(failure)) }
    }
}

#[derive(Debug)]
pub(crate) struct Worker {
    /// The version of the application that it runs.
    pub(crate) generation: u32,
    /// The line that it was forked from; see [`super::app::Version::line`].
    pub(crate) line: u32,
    pub(crate) state: WorkerState,
    /// When the current state has to have ended.
    pub(crate) deadline: Option<Instant>,
    /// When its slow start has to have ended: until then the front gives it few requests, and it takes the place of no other.
    pub(crate) slow_start_until: Option<Instant>,
    /// When it is retired, if it has asked for that.
    pub(crate) leaves_at: Option<Instant>,
    /// It is to be replaced, for a cause that lies in it.
    pub(crate) replacement: Option<Replacement>,
    pub(crate) forked_at: Instant,
    ready_at: Option<Instant>,
    /// Why it could not start, if it has reported that.
    pub(crate) failure: Option<Box<StartFailure>>,
    /// Whether it was asked where its threads are.
    is_dumped: bool,
    /// It was retired, in order.
    is_retired: bool,
    departure: Departure,
}

impl Worker {
    pub(crate) fn forking((generation, line): (u32, u32), now: Instant, limit: Duration) -> Worker {
        Worker {
            generation,
            line,
            state: WorkerState::Forking,
            deadline: Some(now + limit),
            slow_start_until: None,
            leaves_at: None,
            replacement: None,
            forked_at: now,
            ready_at: None,
            failure: None,
            is_dumped: false,
            is_retired: false,
            departure: Departure::default(),
        }
    }

    /// It has sent `hello`, and has to be ready by `deadline`.
    pub(crate) fn exists(&mut self, deadline: Instant) {
        if self.state == WorkerState::Forking {
            self.state = WorkerState::Starting;
            self.departure = Departure::default(); // it was forked before its mold went
            self.deadline = Some(deadline);
        }
    }

    /// The mold that was to fork it is gone: what it has not forked by now it will not fork.
    pub(crate) fn mold_gone(&mut self, now: Instant) {
        if self.state == WorkerState::Forking {
            self.departure.ended(Ending::Unknown);
            self.due_by(now + LAST_MESSAGES_TIME);
        }
    }

    /// It has reported that it is ready. False: it was not starting.
    pub(crate) fn becomes(&mut self, state: WorkerState, deadline: Option<Instant>, now: Instant) -> bool {
        let starts = self.state == WorkerState::Starting;
        if starts {
            self.state = state;
            self.deadline = deadline;
            self.ready_at = Some(now);
        }
        starts
    }

    /// It may have clients' requests.
    pub(crate) fn admit(&mut self, slow_start_until: Option<Instant>) {
        if self.state == WorkerState::Probing {
            self.state = WorkerState::Serving;
            self.deadline = None;
            self.slow_start_until = slow_start_until;
        }
    }

    /// The front gives it nothing more from now on; true if it was serving.
    pub(crate) fn retire(&mut self, now: Instant, limit: Duration) -> bool {
        let serving = self.state == WorkerState::Serving;
        self.leaves_at = None;
        if serving {
            self.state = WorkerState::Retiring;
            self.is_retired = true;
            self.deadline = Some(now + limit);
        }
        serving
    }

    /// It is not replaced merely because it was forked early. Whether it was to be.
    pub(crate) fn keep(&mut self) -> bool {
        self.replacement.take_if(|replacement| replacement.cause.is_usual()).is_some()
    }

    /// The front gives it requests as before, although it was to retire, as it was forked early.
    pub(crate) fn serves_on(&mut self) {
        if self.state == WorkerState::Retiring && self.keep() {
            self.state = WorkerState::Serving;
            self.is_retired = false;
            self.deadline = None;
        }
    }

    /// Whether its main thread waits for orders.
    pub(crate) fn hears(&self) -> bool {
        matches!(self.state, WorkerState::Serving | WorkerState::Retiring | WorkerState::Promoting)
    }

    /// Its time for starting is over; true if it has not been asked where it is.
    pub(crate) fn dump(&mut self, now: Instant, limit: Duration) -> bool {
        let first = !std::mem::replace(&mut self.is_dumped, true);
        if first {
            self.deadline = Some(now + limit);
        }
        first
    }

    pub(crate) fn halt(&mut self, now: Instant) {
        self.state = WorkerState::Halted;
        self.deadline = Some(now + KILL_TIME);
    }

    /// Its control socket is closed. How it ended, if it has gone; else it is about to, or will be killed, or its mold
    /// is to say why it was not forked.
    pub(crate) fn heard_out(&mut self, now: Instant) -> Option<Ending> {
        self.departure.heard_out();
        let complete = self.departure.complete();
        if self.state == WorkerState::Forking {
            self.departure.ended(Ending::Unknown); // it never sent `hello`; its mold may report why
            self.due_by(now + LAST_MESSAGES_TIME);
        } else if self.state == WorkerState::Serving {
            self.due_by(now + CLOSED_TIME); // it follows no order any more, and requests may wait for it
        } else {
            self.due_by(now + KILL_TIME);
        }
        complete
    }

    /// It has ended. How, if it has gone; else its last messages are still to come.
    pub(crate) fn ended(&mut self, ending: Ending, now: Instant) -> Option<Ending> {
        self.departure.ended(ending);
        if !matches!(self.state, WorkerState::Starting | WorkerState::Promoting) {
            return self.departure.ending(); // its messages change nothing now
        }
        self.due_by(now + LAST_MESSAGES_TIME);
        self.departure.complete()
    }

    /// How it ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.departure.ending()
    }

    fn due_by(&mut self, at: Instant) {
        self.deadline = Some(self.deadline.map_or(at, |before| before.min(at)));
    }

    pub(crate) fn life(&self, now: Instant) -> Life {
        self.ready_at.map_or(Life::NeverReady, |at| Life::Ready(now - at))
    }

    /// Whether another worker has its place already, or the place is gone.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired
    }

    /// Whether the front knows it.
    pub(crate) fn was_ready(&self) -> bool {
        self.ready_at.is_some()
    }

    /// Whether it counts towards the number of workers that there should be.
    pub(crate) fn counts(&self) -> bool {
        use WorkerState::{Forking, Probing, Serving, Starting};
        matches!(self.state, Forking | Starting | Probing | Serving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn forking(now: Instant) -> Worker {
        Worker::forking((1, 1), now, LIMIT)
    }

    fn serving(now: Instant) -> Worker {
        let mut worker = forking(now);
        worker.exists(now + LIMIT);
        assert!(worker.becomes(WorkerState::Serving, None, now));
        worker
    }

    #[test]
    fn it_serves_once_and_not_before_it_has_sent_hello() {
        let now = Instant::now();
        let mut worker = forking(now);
        assert!(!worker.becomes(WorkerState::Serving, None, now));
        worker.exists(now + LIMIT);
        assert!(worker.becomes(WorkerState::Serving, None, now));
        assert!(!worker.becomes(WorkerState::Serving, None, now));
        assert_eq!((worker.state, worker.deadline), (WorkerState::Serving, None));
        assert_eq!(worker.life(now + LIMIT), Life::Ready(LIMIT));
    }

    #[test]
    fn one_that_closes_before_its_hello_leaves_its_mold_time_to_say_why() {
        let now = Instant::now();
        let mut worker = forking(now);
        assert_eq!(worker.heard_out(now), None);
        assert_eq!(
            (worker.ending(), worker.deadline),
            (Some(Ending::Unknown), Some(now + LAST_MESSAGES_TIME))
        );
        assert_eq!(worker.life(now), Life::NeverReady);
    }

    #[test]
    fn one_that_dies_while_it_starts_is_heard_out_first() {
        let now = Instant::now();
        let mut worker = forking(now);
        worker.exists(now + LIMIT);
        assert_eq!(worker.ended(Ending::Exited(1), now), None);
        assert_eq!(worker.deadline, Some(now + LAST_MESSAGES_TIME));
        assert_eq!(worker.heard_out(now), Some(Ending::Exited(1)));
    }

    #[test]
    fn one_that_dies_while_it_becomes_a_mold_is_heard_out_first() {
        let now = Instant::now();
        let mut worker = serving(now);
        worker.state = WorkerState::Promoting;
        assert_eq!(worker.ended(Ending::Exited(1), now), None);
        assert_eq!(worker.heard_out(now), Some(Ending::Exited(1)));
    }

    #[test]
    fn one_that_serves_has_gone_when_the_kernel_reports_it() {
        let now = Instant::now();
        assert_eq!(serving(now).ended(Ending::Killed(9), now), Some(Ending::Killed(9)));
    }

    #[test]
    fn a_lost_mold_ends_what_it_has_not_forked_and_nothing_else() {
        let now = Instant::now();
        let mut unborn = forking(now);
        unborn.mold_gone(now);
        assert_eq!(
            (unborn.ending(), unborn.deadline),
            (Some(Ending::Unknown), Some(now + LAST_MESSAGES_TIME))
        );
        unborn.exists(now + LIMIT);
        assert_eq!((unborn.ending(), unborn.deadline), (None, Some(now + LIMIT)));
    }

    #[test]
    fn only_one_that_serves_is_retired() {
        let now = Instant::now();
        assert!(!forking(now).retire(now, LIMIT));
        let mut worker = serving(now);
        assert!(worker.retire(now, LIMIT));
        assert!(!worker.retire(now, LIMIT));
        assert!(!worker.counts());
        assert!(worker.hears());
    }
}
