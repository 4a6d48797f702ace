//! The requests that wait or are with a worker, as operators see them.

use highball_config::AppId;
use std::time::Duration;

/// The requests of an application.
#[derive(Debug, Clone)]
pub struct RunningRequests {
    /// The application's number.
    pub app: AppId,
    /// The oldest ones, the very oldest first.
    pub oldest: Vec<RunningRequest>,
    /// The number of all others.
    pub more: usize,
}

/// A request that has no answer yet, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningRequest {
    /// How far it has come.
    pub stage: RequestStage,
    /// The worker that has it, and the number by which that worker knows it.
    pub at: Option<(u32, u64)>,
    /// The method.
    pub method: String,
    /// The path, without what may be a token. A query is only `?…`.
    pub path: String,
    /// The address of its client.
    pub client: String,
    /// Time since its first byte.
    pub age: Duration,
    /// Size of its body, in bytes.
    pub body_bytes: u64,
    /// Size of its answer's body so far, in bytes.
    pub answer_bytes: u64,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStage {
    /// It waits for a worker.
    Queued,
    /// A worker has it, and has not begun it.
    Placed,
    /// A worker is at it.
    Running,
    /// A worker sends its answer.
    Answering,
    /// Its answer goes on without a thread of the worker's pool.
    Streaming,
    /// A worker is at it, and no client waits for the answer any more.
    Abandoned,
}

impl RequestStage {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            RequestStage::Queued => "queued",
            RequestStage::Placed => "placed",
            RequestStage::Running => "running",
            RequestStage::Answering => "answering",
            RequestStage::Streaming => "streaming",
            RequestStage::Abandoned => "abandoned",
        }
    }
}
