//! A Ruby process that was asked for its heap, for `highball memory` and metrics.

use crate::control::questions::{Answer, NotAsked};
use highball_config::AppId;
use highball_link::RubyHeap;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// A mold or worker that was asked for its heap.
#[derive(Debug)]
pub struct AskedHeap {
    /// The application whose process it is.
    pub app: AppId,
    /// The worker's number; `None` is the mold.
    pub worker: Option<u32>,
    /// Process id, if known.
    pub pid: Option<i32>,
    /// Its state: `serving`.
    pub state: &'static str,
    /// Where its answer will arrive.
    pub(crate) answer: Result<Answer<Option<RubyHeap>>, NotAsked>,
}

impl AskedHeap {
    /// Waits for the answer, until `time` has passed since `asked`. Returns why there is none, if so.
    pub async fn heap(self, asked: Instant, time: Duration) -> Result<RubyHeap, String> {
        let answer = match self.answer {
            Ok(answer) => timeout_at((asked + time).into(), answer).await,
            Err(NotAsked::NotServing) => return Err(format!("was not asked because it is {}", self.state)),
            Err(NotAsked::Busy) => return Err("did not answer earlier questions".into()),
            Err(NotAsked::Unreachable) => return Err("could not be asked".into()),
        };
        let answer = answer.map_err(|_| format!("did not answer within {} s", time.as_secs()))?;
        let heap = answer.map_err(|_| "ended before it answered")?;
        Ok(heap.ok_or("its garbage collector does not report it")?)
    }
}
