//! A request that got an error in the place of its answer, in words: what happened, and what to do about it. For
//! developers only: the front decides who is one.

use crate::facts::boot_failure::Account;
use crate::facts::ending::Ending;
use highball_config::{App, Threads, MOST_THREADS};
use highball_link::{FailureCause, QueueLoad, RequestFailure, RubyError, ThreadPlace};
use std::collections::VecDeque;
use std::fmt::Write as _;

/// The deaths of workers that are remembered.
const DEATHS: usize = 32;

/// How workers have died.
#[derive(Debug, Default)]
pub(crate) struct Deaths(VecDeque<Death>);

#[derive(Debug, Clone)]
pub(crate) struct Death {
    worker: u32,
    pid: Option<i32>,
    how: DeathCause,
}

#[derive(Debug, Clone)]
enum DeathCause {
    Ended(Ending),
    BrokeTheRules(String),
}

impl Deaths {
    pub(crate) fn ended(&mut self, worker: u32, pid: Option<i32>, ending: Ending) {
        if self.of(worker).is_none() {
            self.add(Death { worker, pid, how: DeathCause::Ended(ending) });
        }
    }

    pub(crate) fn broke_the_rules(&mut self, worker: u32, pid: Option<i32>, why: &str) {
        self.add(Death { worker, pid, how: DeathCause::BrokeTheRules(why.into()) });
    }

    fn add(&mut self, death: Death) {
        if self.0.len() == DEATHS {
            self.0.pop_front();
        }
        self.0.push_back(death);
    }

    pub(crate) fn of(&self, worker: u32) -> Option<Death> {
        self.0.iter().find(|death| death.worker == worker).cloned()
    }
}

/// What happened, in words. `threads`: where those of the stuck worker are.
pub(crate) fn account(
    failure: &RequestFailure,
    death: Option<&Death>,
    threads: &[ThreadPlace],
    app: &App,
) -> Account {
    match &failure.cause {
        FailureCause::Raised(words) => serde_json::from_slice(words).unwrap_or_else(|_| undescribed()),
        FailureCause::WorkerDied { worker } => {
            let mut account = death.map_or_else(|| gone(*worker), Death::account);
            if failure.repeated {
                account.error.message +=
                    "\n(Another worker had already ended during the same request: this was the second try.)";
            }
            account
        }
        FailureCause::BadAnswer { why } => bad_answer(why),
        FailureCause::QueueFull(load) => queue_full(load, app),
        FailureCause::TimedOut { worker } => timed_out(*worker, threads, app),
        FailureCause::Other(why) => {
            Account::of_ours("unavailable", (*why).into(), "Try again in a moment.".into())
        }
    }
}

impl Death {
    fn account(&self) -> Account {
        let Death { worker, pid, how } = self;
        let process = pid.map_or(String::new(), |pid| format!(" (process {pid})"));
        let who = format!("worker {worker}{process}");
        let ending = match how {
            DeathCause::BrokeTheRules(why) => {
                let message =
                    format!("{who} wrote invalid data into the memory that it shares with Highball, and was killed: {why}");
                let remedy =
                    "A native extension of a gem has probably overwritten memory. Rebuild the gems for this Ruby, and check which gem changed last.";
                return Account::of_ours("worker_crashed", message, remedy.into())
                    .with_command("bundle pristine");
            }
            DeathCause::Ended(ending) => *ending,
        };
        let message = format!("{who} ended during this request: {ending}");
        let (remedy, command) = match ending {
            Ending::OutOfMemory => (
                "The worker ran out of memory. Check what this request allocates, run fewer workers, or lower `memory_limit` so that workers are replaced sooner. A new worker has taken over.",
                Some("journalctl -k | grep -i 'killed process'"),
            ),
            Ending::Killed(9 | 15) => (
                "The machine or container has probably run out of memory, unless a user killed the worker. Check the kernel's log, and what this request allocates. A new worker has taken over.",
                Some("journalctl -k | grep -i 'killed process'"),
            ),
            Ending::Killed(_) => (
                "It crashed, probably in a native extension of a gem; Ruby's output in the terminal names it. Rebuild the gems for this Ruby. A new worker has taken over.",
                Some("bundle pristine"),
            ),
            Ending::Exited(_) | Ending::Unknown => (
                "The application ended its own process: look for `exit!`, and at its output in the terminal. A new worker has taken over.",
                None,
            ),
        };
        let account = Account::of_ours("worker_crashed", message, remedy.into());
        command.map_or(account.clone(), |command| account.with_command(command))
    }
}

/// The worker sent no valid description of an exception.
fn undescribed() -> Account {
    let message = "the application raised an exception that cannot be described";
    Account::of_ours("exception", message.into(), "See the log for the exception.".into())
}

fn gone(worker: u32) -> Account {
    let message = format!("worker {worker} ended during this request");
    Account::of_ours("worker_crashed", message, "See the log for the cause.".into())
}

fn bad_answer(why: &str) -> Account {
    let message = format!("the application's answer {why}");
    let remedy =
        "Check which header fields the application sets here, and whether it ends threads (Thread#kill); the log may say more.";
    Account::of_ours("bad_answer", message, remedy.into())
}

fn queue_full(load: &QueueLoad, app: &App) -> Account {
    let QueueLoad { waiting, oldest, workers } = load;
    let (count, threads) = (workers.len(), app.threads);
    let requests = if *waiting == 1 { "request is" } else { "requests are" };
    let mut message = format!("the queue is full: {waiting} {requests} waiting");
    if *waiting > 0 {
        let _ = write!(message, "; the oldest has waited for {:.1} s", oldest.as_secs_f64());
    }
    if workers.is_empty() {
        message += ".\nThere is no worker for them: the application is booting, or its worker has just died.";
    } else {
        let _ = write!(message, ".\nAt work: {count} × {threads} (workers × threads).");
    }
    for (worker, requests) in workers {
        let _ = write!(message, "\nworker {worker} is handling: {}", requests.join(", "));
    }
    let remedy = if threads.are_range() {
        "Find out why the running requests take so long. `highball status` shows how many threads each worker has, and what keeps it from having more. If that is expected, add workers, allow more threads, or let more requests wait (--max-queue)."
    } else {
        "Find out why the running requests take so long. If that is expected, add workers or threads, or let more requests wait (--max-queue)."
    };
    let more = format!("highball --workers {} --threads {}", count.max(1) * 2, more_threads(threads));
    Account::of_ours("queue_full", message, remedy.into()).with_command(&more)
}

/// A few more than these; of a range, the larger number is what its worker lacks.
fn more_threads(threads: Threads) -> Threads {
    match threads.are_range() {
        true => Threads { most: threads.most.saturating_mul(2).min(MOST_THREADS), ..threads },
        false => Threads::fixed(threads.most.saturating_add(2).min(MOST_THREADS)),
    }
}

fn timed_out(worker: Option<u32>, threads: &[ThreadPlace], app: &App) -> Account {
    let limit = app.limits.request_timeout.unwrap_or_default();
    let Some(worker) = worker else {
        let message = format!("no thread was free for this request within {limit:?} (request_timeout)");
        let remedy = "Find out what keeps all threads busy, or add workers or threads.";
        let more = format!("highball --workers {} --threads {}", app.workers * 2, more_threads(app.threads));
        return Account::of_ours("request_timeout", message, remedy.into()).with_command(&more);
    };
    let message = format!(
        "worker {worker} has not begun to answer within {limit:?} (request_timeout), and is still running"
    );
    let remedy = if threads.is_empty() {
        "The worker does not respond, so it is probably in a native extension. Find out what it waits for. If it really needs longer, raise the limit."
    } else {
        "The backtrace below shows where it is: find out what it waits for. If it really needs longer, raise the limit."
    };
    let longer = format!("highball --request-timeout {}s", (limit.as_secs() * 2).max(10));
    let mut account = Account::of_ours("request_timeout", message, remedy.into()).with_command(&longer);
    if let Some(first) = threads.first() {
        account.error = RubyError {
            file: first.file.clone(),
            line: first.line,
            backtrace: first.backtrace.clone(),
            ..account.error
        };
    }
    account
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_worker_died_is_remembered_as_it_was_first_known() {
        let mut deaths = Deaths::default();
        deaths.broke_the_rules(1, Some(7), "a frame of an unknown kind");
        deaths.ended(1, Some(7), Ending::Killed(9));
        let account = deaths.of(1).unwrap().account();
        assert!(account.error.message.contains("worker 1 (process 7) wrote invalid data"), "{account:?}");
        for worker in 2..100 {
            deaths.ended(worker, None, Ending::Exited(3));
        }
        assert!(deaths.of(1).is_none());
        let message = deaths.of(99).unwrap().account().error.message;
        assert_eq!(message, "worker 99 ended during this request: exited with code 3");
    }
}
