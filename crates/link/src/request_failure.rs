//! A request that got an error in the place of its answer, as the front knows it: with its secrets.

use std::time::Duration;

/// A request that got an error.
#[derive(Debug)]
pub struct RequestFailure {
    /// The status that the client gets.
    pub status: u16,
    /// What happened.
    pub cause: FailureCause,
    /// Whether a second worker had been asked.
    pub repeated: bool,
    /// What the client has sent.
    pub request: RawRequest,
}

impl RequestFailure {
    /// The worker that it is about, if it still serves, or would.
    pub fn stuck_worker(&self) -> Option<u32> {
        match self.cause {
            FailureCause::TimedOut { worker } => worker,
            _ => None,
        }
    }

    /// The worker that died.
    pub fn dead_worker(&self) -> Option<u32> {
        match self.cause {
            FailureCause::WorkerDied { worker } => Some(worker),
            _ => None,
        }
    }
}

/// What happened to a request.
#[derive(Debug)]
#[allow(missing_docs)] // where a name says all
pub enum FailureCause {
    /// The application raised an exception: what the worker reports of it, in JSON.
    Raised(Vec<u8>),
    /// The worker died, or broke the protocol of its ring.
    WorkerDied { worker: u32 },
    /// The answer could not be sent; why: `has a malformed Content-Length`.
    BadAnswer { why: &'static str },
    /// Too many requests wait.
    QueueFull(QueueLoad),
    /// No answer of the worker had started in time; without one, no thread was free.
    TimedOut { worker: Option<u32> },
    /// Anything else, in words.
    Other(&'static str),
}

/// What keeps requests waiting.
#[derive(Debug, Clone, Default)]
pub struct QueueLoad {
    /// Requests in the queue.
    pub waiting: usize,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// The workers that serve, by number, with some of their requests: `GET /report`.
    pub workers: Vec<(u32, Vec<String>)>,
}

/// A request, as the client has sent it.
#[derive(Debug, Clone, Default)]
pub struct RawRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The header fields: `Accept-Language`.
    pub fields: Vec<(String, String)>,
    /// The body, if it was kept in memory.
    pub body: Vec<u8>,
}
