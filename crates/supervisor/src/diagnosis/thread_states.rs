//! What the threads of a worker do at its requests, for an operator who looks: what is found out of an overrun, without
//! a time limit having passed.

use super::overrun::{describe, look};
use crate::control::questions::{Answer, NotAsked};
use highball_config::AppId;
use highball_link::ThreadPlace;
use std::time::Duration;
use tokio::time::timeout;

/// Time for a worker to report where its threads are. One in which a thread keeps the GVL does not, and the operator is to
/// have an answer within a second.
const THREADS_TIME: Duration = Duration::from_millis(600);

/// Requests that a worker is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkersRequests {
    /// The worker's application.
    pub app: AppId,
    /// The worker's number.
    pub worker: u32,
    /// The numbers by which it knows the requests, the oldest request first.
    pub tickets: Vec<u64>,
}

/// A worker that was asked for its threads.
#[derive(Debug)]
pub struct AskedThreads {
    /// The worker's application.
    pub app: AppId,
    /// The worker's number.
    pub worker: u32,
    /// The requests that are meant, by the numbers by which it knows them.
    pub(crate) tickets: Vec<u64>,
    /// Process id, if known.
    pub pid: Option<i32>,
    /// Where its answer will arrive.
    pub(crate) answer: Result<Answer<Vec<ThreadPlace>>, NotAsked>,
    /// Its answer to an earlier question, if that arrived a moment ago, too late for its client.
    pub(crate) late: Option<Vec<ThreadPlace>>,
}

/// What a worker does at a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadState {
    /// The number by which the worker knows the request.
    pub ticket: u64,
    /// What its thread does, in words: `it sleeps`.
    pub doing: String,
    /// The calls that led there, innermost first, one a line; none if no Ruby code of the worker ran.
    pub backtrace: Option<String>,
}

impl AskedThreads {
    /// Waits for the answer and looks at the threads meanwhile, less than a second in all. Requests that have ended by then,
    /// and those of a worker that is not asked in its state, are left out.
    pub async fn states(self) -> Vec<ThreadState> {
        let seen = async {
            match self.pid {
                Some(pid) => look(pid).await,
                None => Vec::new(),
            }
        };
        let threads = async {
            match self.answer {
                Ok(answer) => Ok(timeout(THREADS_TIME, answer).await.ok().and_then(Result::ok)),
                Err(NotAsked::Busy) => Ok(None), // it has not answered the last time
                Err(why) => Err(why),
            }
        };
        let (seen, threads) = tokio::join!(seen, threads);
        let Ok(threads) = threads else { return Vec::new() };
        let late =
            |ticket| self.late.as_deref().filter(|places| places.iter().any(|place| place.ticket == ticket));
        let state = |ticket: &u64| {
            let threads = threads.as_deref().or_else(|| late(*ticket));
            let (doing, backtrace) = describe(*ticket, threads, &seen)?;
            Some(ThreadState { ticket: *ticket, doing, backtrace })
        };
        self.tickets.iter().filter_map(state).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    fn asked(answer: Result<Answer<Vec<ThreadPlace>>, NotAsked>) -> AskedThreads {
        AskedThreads { app: AppId(1), worker: 1, tickets: vec![7, 8], pid: None, answer, late: None }
    }

    #[tokio::test]
    async fn one_that_does_not_answer_is_not_waited_for_for_ever() {
        let (_to, answer) = oneshot::channel();
        let states = timeout(Duration::from_secs(10), asked(Ok(answer)).states()).await.unwrap();
        assert!(states[0].doing.contains("does not answer"), "{states:?}");
    }

    #[tokio::test]
    async fn an_answer_that_was_late_counts_for_its_requests() {
        let backtrace = vec!["a.rb:1:in 'Kernel#sleep'".into()];
        let late = Some(vec![ThreadPlace { ticket: 8, backtrace, ..ThreadPlace::default() }]);
        let states = AskedThreads { late, ..asked(Err(NotAsked::Busy)) }.states().await;
        assert!(states[0].doing.contains("does not answer"), "{states:?}");
        assert_eq!((states[1].ticket, states[1].doing.as_str()), (8, "it sleeps"));
    }

    #[tokio::test]
    async fn requests_that_have_ended_are_left_out() {
        let (to, answer) = oneshot::channel();
        let backtrace = vec!["a.rb:1:in 'Kernel#sleep'".into()];
        to.send(vec![ThreadPlace { ticket: 8, backtrace, ..ThreadPlace::default() }]).unwrap();
        let states = asked(Ok(answer)).states().await;
        assert_eq!(states.len(), 1);
        assert_eq!((states[0].ticket, states[0].doing.as_str()), (8, "it sleeps"));
        assert_eq!(asked(Err(NotAsked::NotServing)).states().await, []);
    }
}
