//! PWR: where the threads of all workers are, in the log. Each worker reports its threads. If a worker does not
//! answer, the kernel does.

use super::messages::{hears, THREADS_TIME};
use super::Supervisor;
use crate::control::questions::Answer;
use crate::diagnosis::overrun::{describe_all, look};
use highball_link::ThreadPlace;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{timeout_at, Instant};
use tracing::{info, warn, Span};

/// Threads that a dump has lines about.
const MOST_THREADS: usize = 200;
/// Workers that are looked at.
const MOST_WORKERS: usize = 64;

/// Lets one dump be under way at a time.
#[derive(Debug)]
pub(super) struct Dumps(Arc<Semaphore>);

impl Default for Dumps {
    fn default() -> Self {
        Dumps(Arc::new(Semaphore::new(1)))
    }
}

/// A worker that was asked.
struct Asked {
    span: Span,
    worker: u32,
    pid: Option<i32>,
    /// None: it could not be asked.
    threads: Option<Answer<Vec<ThreadPlace>>>,
}

impl Supervisor {
    /// Asks all workers where their threads are, and logs their answers. Nothing is waited for here.
    pub(super) fn dump_threads(&mut self) {
        let Ok(permit) = Arc::clone(&self.dumps.0).try_acquire_owned() else {
            warn!(name: "thread_dump_refused", "a thread dump is already running");
            return;
        };
        let alone = self.apps.len() == 1;
        let mut all = Vec::new();
        for (id, app) in &mut self.apps {
            let Some(core) = self.core.apps.get(id) else { continue };
            let span = app.span(alone);
            for (worker, _) in core.staff.workers().iter() {
                let pid = app.pid_of_worker(worker);
                let handle = app.workers.get_mut(&worker).filter(|_| hears(core, worker));
                let threads = handle.and_then(|handle| handle.ask_all_threads().ok());
                all.push(Asked { span: span.clone(), worker, pid, threads });
            }
        }
        tokio::spawn(dump(all, permit));
    }
}

/// Logs where the threads of these workers are.
async fn dump(mut all: Vec<Asked>, _one_at_a_time: OwnedSemaphorePermit) {
    let (workers, until) = (all.len(), Instant::now() + THREADS_TIME);
    info!(name: "thread_dump_begun", workers, "thread dump:");
    all.truncate(MOST_WORKERS);
    let mut left = MOST_THREADS;
    let looks: Vec<_> = all.iter().map(|asked| asked.pid.map(|pid| tokio::spawn(look(pid)))).collect();
    for (Asked { span, worker, pid, threads }, looked) in all.into_iter().zip(looks) {
        let threads = match threads {
            Some(threads) => timeout_at(until, threads).await.ok().and_then(Result::ok),
            None => None,
        };
        let seen = match looked {
            Some(looked) => looked.await.unwrap_or_default(),
            None => Vec::new(),
        };
        let described = describe_all(threads.as_deref(), &seen);
        span.in_scope(|| {
            if described.is_empty() {
                info!(name: "thread_dump_idle", worker, pid, "no thread handles a request");
            }
            for (thread, doing, backtrace) in described.into_iter().take(left) {
                left -= 1;
                info!(name: "thread_dumped", worker, pid, thread, doing, backtrace, "a thread");
            }
        });
    }
    let workers_left_out = workers.saturating_sub(MOST_WORKERS);
    if workers_left_out > 0 || left == 0 {
        warn!(name: "thread_dump_cut_off", workers_left_out, "thread dump cut off");
    } else {
        info!(name: "thread_dump_ended", "end of the thread dump");
    }
}
