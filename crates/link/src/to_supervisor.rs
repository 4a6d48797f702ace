//! Events from the front.
#![allow(missing_docs)] // where a name says all

use crate::diagnosis::Diagnosis;
use crate::request_failure::RequestFailure;
use highball_config::AppId;
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest slow start of a worker: so long after [`AppCommand::AdmitCanary`](crate::AppCommand::AdmitCanary), the front sends
/// [`FrontAppEvent::SlowStartEnded`] at the latest.
pub const LONGEST_SLOW_START: Duration = Duration::from_secs(5);

/// An event of the front.
#[derive(Debug)]
pub enum FrontEvent {
    /// Nothing is left to finish, and nothing is accepted.
    Drained,
    /// An event of one application.
    OfApp(AppId, FrontAppEvent),
}

/// An event of one application, as the front sees it.
#[derive(Debug)]
pub enum FrontAppEvent {
    /// A request waits for the application, and no worker serves: it sleeps, was not started yet, or did not boot last time and
    /// a developer requests it. Sent once until a worker is added, or [`AppCommand::Failed`](crate::AppCommand::Failed)
    /// arrives again.
    Wanted,
    /// A developer's request got an error: answer with the diagnosis, or drop the sender.
    DiagnosisWanted(Box<RequestFailure>, oneshot::Sender<Diagnosis>),
    /// The application got no requests for the time after which it may sleep ([`App::sleep_after`](highball_config::App)).
    /// Sent again after as much time, if it still serves then.
    Idle,
    /// The application was removed, has nothing in flight any more, and is forgotten.
    Drained,
    /// A canary has answered the requests for [`probe_path`](highball_config::Process::probe_path) and
    /// [`warm_up`](highball_config::Process::warm_up): with this status for the former, or not as it should.
    CanaryAnswered { worker: u32, answer: Result<u16, String> },
    /// A worker that was admitted as a canary gets as many requests as others from now on: workers before it may be retired. Sent
    /// once after [`AppCommand::AdmitCanary`](crate::AppCommand::AdmitCanary), unless the worker ends before.
    SlowStartEnded { worker: u32 },
    /// A worker broke the protocol of its ring: kill and replace it.
    WorkerBroken { worker: u32, why: String },
    /// A worker's ring ends in a billion requests: replace the worker in order. It serves until then. Sent once.
    RingEndsSoon { worker: u32 },
    /// How busy the workers were. Sent while their number follows the load ([`App::pool`](highball_config::App)).
    Load(ReportedLoad),
    /// A request that a worker has begun has exceeded its time limit, and goes on. Sent once for each.
    RequestTimedOut(Overrun),
    /// An answer goes on for long: the worker is to free the place of the request that it knows by this number.
    AnswerLeaves { worker: u32, ticket: u64 },
    /// An overrun goes on although its grace has passed: replace the worker.
    WorkerStuck { worker: u32 },
    /// A worker does not begin the requests that it is given, or shows no sign of life: replace it. Sent again as long as that
    /// is so.
    WorkerUnresponsive { worker: u32 },
    /// A retired worker has nothing in flight any more that a client waits for. `is_stuck`: it still works on requests that
    /// have exceeded their time limits, or takes no requests.
    WorkerIdle { worker: u32, is_stuck: bool },
    /// Answers `RelieveWorker`: it holds something that lasts, and serves on.
    WorkerKept { worker: u32 },
    /// The worker that [`AppCommand::NameWarmWorker`](crate::AppCommand::NameWarmWorker) asks for.
    WorkerWarm { worker: u32 },
}

/// How busy the workers of an application were since the last report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportedLoad {
    /// Time since then.
    pub elapsed: Duration,
    /// Requests that workers had, on average.
    pub busy: f64,
    /// Requests that waited for a worker, on average.
    pub queue: f64,
    /// The longest time that one of them has waited so far.
    pub waited: Duration,
}

/// A request that has exceeded its time limit, and goes on.
#[derive(Debug, Clone)]
pub struct Overrun {
    /// The number of the worker that has it.
    pub worker: u32,
    /// The number by which the worker knows the request.
    pub ticket: u64,
    /// Method and path, without what may be a token.
    pub request: String,
}
