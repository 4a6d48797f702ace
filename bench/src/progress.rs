//! What people see while it runs: a line on standard error for every turn, and how long it will take.

use std::time::{Duration, Instant};

use crate::method::{Event, Plan, COUNTED};
use crate::workload::Workload;

/// What a turn takes beside its loads (a start, checks, a stop) before one was measured.
const USUAL_REST: Duration = Duration::from_millis(2500);

/// All turns of a plan, as far as they are known.
pub(crate) struct Progress {
    turns: u32,
    /// Started, including the current one.
    done: u32,
    /// Of one workload.
    turns_of_round: u32,
    rounds: u32,
    /// The round of the current turn.
    round: u32,
    /// Load of a turn, and how much more a turn of the first round has.
    load: Duration,
    counts: Duration,
    begun: Instant,
    /// Turns that ended, and what they took beside their loads.
    ended: u32,
    rest: Duration,
    turn_begun: Option<Instant>,
}

impl Progress {
    /// Tells how much there is to do.
    pub(crate) fn begin(plan: &Plan) -> Self {
        let able = |workload: &Workload| {
            plan.candidates.iter().filter(|one| workload.suits(&one.scheme)).count() as u32
        };
        let turns_of_round: u32 = plan.workloads.iter().map(able).sum();
        let loads = plan.loads.len() as u32;
        let progress = Progress {
            turns: plan.rounds * turns_of_round,
            done: 0,
            turns_of_round,
            rounds: plan.rounds,
            round: 1,
            load: loads * (plan.warm_up + plan.time),
            counts: if plan.counts { loads * COUNTED } else { Duration::ZERO },
            begun: Instant::now(),
            ended: 0,
            rest: Duration::ZERO,
            turn_begun: None,
        };
        eprintln!("{} turns, about {}", progress.turns, words(progress.left()));
        progress
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Preparing(workload) => eprintln!("preparing {workload}"),
            Event::Turn { round, candidate, workload } => {
                self.end_turn();
                self.done += 1;
                self.round = *round;
                self.turn_begun = Some(Instant::now());
                let (done, turns) = (self.done, self.turns);
                let (gone, left) = (words(self.begun.elapsed()), words(self.left()));
                eprintln!(
                    "{done}/{turns} round {round}, {workload}: {candidate} ({gone}, about {left} left)"
                );
            }
            Event::Sampled(sample) => {
                let errors = sample.errors.total();
                let marked = if errors > 0 { format!(", ! {errors} errors") } else { String::new() };
                eprintln!(
                    "    {:>4} connections: {:>9.1} µs, {:>8.0} requests/s, p99 {:.1} ms{marked}",
                    sample.load.connections,
                    sample.cpu_user_us + sample.cpu_system_us,
                    sample.requests_per_second,
                    sample.latency.p99
                );
            }
            Event::Failed(skipped) => {
                eprintln!("    left out: {}", skipped.why);
                // It does not come again. A failed one is no measure for others.
                self.turns -= self.rounds - self.round;
                self.turn_begun = None;
            }
        }
    }

    /// Learns from the turn that has ended.
    fn end_turn(&mut self) {
        if let Some(begun) = self.turn_begun.take() {
            self.ended += 1;
            self.rest += begun.elapsed().saturating_sub(self.load + self.counts_of(self.done));
        }
    }

    /// What is counted in the turn of this number, from 1: something in the first round alone.
    fn counts_of(&self, turn: u32) -> Duration {
        if turn <= self.turns_of_round {
            self.counts
        } else {
            Duration::ZERO
        }
    }

    /// How long the turns take that have not ended.
    fn left(&self) -> Duration {
        let turns = self.turns.saturating_sub(self.done.saturating_sub(1));
        let of_first_round = self.turns_of_round.saturating_sub(self.done.saturating_sub(1));
        let rest = if self.ended == 0 { USUAL_REST } else { self.rest / self.ended };
        turns * (self.load + rest) + of_first_round * self.counts
    }
}

/// `40 s`, `12 min`.
fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_turns_have_taken() {
        let seconds = Duration::from_secs;
        let mut progress = Progress {
            turns: 30,
            done: 0,
            turns_of_round: 10,
            rounds: 3,
            round: 1,
            load: seconds(3),
            counts: seconds(1),
            begun: Instant::now(),
            ended: 0,
            rest: Duration::ZERO,
            turn_begun: None,
        };
        assert_eq!(progress.left(), 30 * (seconds(3) + USUAL_REST) + seconds(10));
        (progress.done, progress.ended, progress.rest) = (11, 10, seconds(10));
        assert_eq!(progress.left(), 20 * seconds(4));
        assert_eq!((words(seconds(119)), words(seconds(1530))), ("119 s".into(), "26 min".into()));
    }
}
