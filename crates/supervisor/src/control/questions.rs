//! Questions of one kind to a process that are under way: how its Ruby heap is, where its threads are. A process
//! answers them in the order in which they were asked, when it finds the time. The client decides how long to wait; the
//! supervisor never waits.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Questions under way per process: a process that is stopped is not asked again and again, and its control
/// socket keeps its room for what matters more.
const UNANSWERED: usize = 4;

/// Time after which a process that has not answered counts as silent.
const SILENT_AFTER: Duration = Duration::from_millis(500);

/// How long an answer counts that arrived after the client had stopped waiting.
const LATE_COUNTS: Duration = Duration::from_secs(5);

/// Why a process was not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAsked {
    /// It is not in a state in which it listens.
    NotServing,
    /// It has not answered earlier questions.
    Busy,
    /// Its control socket does not take the question; its end will be noticed.
    Unreachable,
}

/// Where the answer of a process arrives. It closes without one when the process ends.
pub(crate) type Answer<A> = oneshot::Receiver<A>;

/// The questions that one process has not answered yet, oldest first.
#[derive(Debug)]
pub(crate) struct Questions<A> {
    unanswered: VecDeque<(Instant, oneshot::Sender<A>)>,
    /// The last answer that arrived too late for its client, and when that was.
    late: Option<(Instant, A)>,
}

impl<A> Default for Questions<A> {
    fn default() -> Self {
        Questions { unanswered: VecDeque::new(), late: None }
    }
}

impl<A> Questions<A> {
    /// Asks by `send`, which must not wait.
    pub(crate) fn ask(&mut self, send: impl FnOnce() -> io::Result<()>) -> Result<Answer<A>, NotAsked> {
        if self.unanswered.len() >= UNANSWERED {
            return Err(NotAsked::Busy);
        }
        send().map_err(|_| NotAsked::Unreachable)?;
        let (to, answer) = oneshot::channel();
        self.unanswered.push_back((Instant::now(), to));
        Ok(answer)
    }

    /// The same, but a process that is silent is not asked again: those who look at it all the time leave room for questions
    /// that matter more.
    pub(crate) fn ask_unless_silent(
        &mut self,
        send: impl FnOnce() -> io::Result<()>,
    ) -> Result<Answer<A>, NotAsked> {
        match self.unanswered.front() {
            Some((asked, _)) if asked.elapsed() >= SILENT_AFTER => Err(NotAsked::Busy),
            _ => self.ask(send),
        }
    }

    /// For how long the oldest question has waited for its answer.
    pub(crate) fn unanswered_for(&self) -> Option<Duration> {
        self.unanswered.front().map(|(asked, _)| asked.elapsed())
    }

    /// Passes an answer on. False when nothing was asked: that is a protocol error of the process.
    pub(crate) fn answered(&mut self, answer: A) -> bool {
        let Some((_, to)) = self.unanswered.pop_front() else { return false };
        if let Err(answer) = to.send(answer) {
            self.late = Some((Instant::now(), answer));
        }
        true
    }

    /// The last answer that arrived too late for its client, if that was a moment ago. A process that gets little processor
    /// time answers each question too late, and this is what is known of it.
    pub(crate) fn late(&self) -> Option<&A> {
        self.late.as_ref().filter(|(arrived, _)| arrived.elapsed() < LATE_COUNTS).map(|(_, answer)| answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_arrive_in_order_even_after_one_who_asked_has_left() {
        let mut questions: Questions<u64> = Questions::default();
        drop(questions.ask(|| Ok(())).unwrap());
        let mut second = questions.ask(|| Ok(())).unwrap();
        assert!(questions.answered(1));
        assert!(second.try_recv().is_err());
        assert!(questions.answered(2));
        assert_eq!(second.try_recv().unwrap(), 2);
    }

    #[test]
    fn an_answer_that_is_late_is_kept_for_a_moment() {
        let mut questions: Questions<u64> = Questions::default();
        drop(questions.ask(|| Ok(())).unwrap());
        let _waits = questions.ask(|| Ok(())).unwrap();
        assert!(questions.answered(1) && questions.answered(2));
        assert_eq!(questions.late(), Some(&1));
        questions.late = Some((Instant::now() - LATE_COUNTS, 3));
        assert_eq!(questions.late(), None);
    }

    #[test]
    fn an_answer_to_nothing_is_refused() {
        let mut questions: Questions<u64> = Questions::default();
        assert!(!questions.answered(1));
    }

    #[test]
    fn one_that_never_answers_is_asked_a_few_times_only() {
        let mut questions: Questions<u64> = Questions::default();
        let answers: Vec<_> = (0..UNANSWERED).map(|_| questions.ask(|| Ok(())).unwrap()).collect();
        let asked_again = questions.ask(|| panic!("nothing more may be sent"));
        assert_eq!(asked_again.unwrap_err(), NotAsked::Busy);
        assert!(questions.answered(1));
        assert!(questions.ask(|| Ok(())).is_ok());
        drop(answers);
    }

    #[test]
    fn one_that_is_silent_is_not_asked_by_those_who_look_all_the_time() {
        let mut questions: Questions<u64> = Questions::default();
        let answers = [questions.ask_unless_silent(|| Ok(())), questions.ask_unless_silent(|| Ok(()))];
        assert!(answers.iter().all(Result::is_ok), "it may be about to answer");
        questions.unanswered[0].0 -= SILENT_AFTER;
        assert_eq!(questions.ask_unless_silent(|| panic!("it is asked")).unwrap_err(), NotAsked::Busy);
        assert!(questions.ask(|| Ok(())).is_ok());
        assert!(questions.answered(1));
        assert!(questions.ask_unless_silent(|| Ok(())).is_ok());
    }

    #[test]
    fn one_that_cannot_be_reached_owes_no_answer() {
        let mut questions: Questions<u64> = Questions::default();
        let full = || Err(io::ErrorKind::WouldBlock.into());
        assert_eq!(questions.ask(full).unwrap_err(), NotAsked::Unreachable);
        assert!(!questions.answered(1));
    }
}
