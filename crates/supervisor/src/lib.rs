//! The process path: boots the application's mold, forks workers from it, replaces those that die, and
//! ends all of them in good order.
//!
//! In reading order:
//!
//! - [`core`]: decides, from events and the time alone, and returns actions for the shell;
//! - [`shell`]: performs the actions, and reports to the core what comes of them and what else happens;
//! - [`facts`]: what these two tell each other;
//! - [`process`]: what is held of a mold and of a worker; where and how a mold boots, and with what; who starts, signals and
//!   reaps processes; whether a process is the one that it claims to be;
//! - [`control`]: messages to and from these processes, and another `highball`; [`message_log`]: which of them are logged;
//! - [`inbox`]: where what is seen of all that waits for the loop;
//! - [`app_output`]: the output of processes, within a [`rate_limit`] and [`visible`]; [`signals`]: those to this process;
//! - [`probe`]: the request that a new version has to answer first;
//! - [`upgrade`]: how a new `highball` takes the place of this one;
//! - [`diagnosis`]: why a boot or a request failed, and what to do about it;
//! - [`watch`]: the application's files, where a change of them asks for something;
//! - [`checkpoint`]: where a test may make it wait;
//! - [`report`]: what it reports to `highball status` and `highball memory`.
//!
//! The supervisor does not know the front. It sends [`Notice`]s and receives [`Order`]s; the binary passes them on.

#![cfg_attr(test, allow(clippy::disallowed_methods))] // the files are a test's own

mod app_output;
pub mod checkpoint;
mod control;
mod core;
mod diagnosis;
mod facts;
mod inbox;
mod message_log;
mod probe;
mod process;
mod rate_limit;
mod report;
mod shell;
mod signals;
mod upgrade;
mod watch;

pub use app_output::OutputSink;
pub use control::questions::{Answer, NotAsked};
pub use core::config::Purpose;
pub use core::crash_loop::PROBATION;
pub use core::replacement::ReplacementCause;
pub use diagnosis::failed_request::RawRequest;
pub use diagnosis::in_brief;
pub use diagnosis::request_failure::{RequestFailure, What};
pub use diagnosis::thread_states::{AskedThreads, ThreadState};
pub use probe::{Probe, ProbeFailure};
pub use process::child::{ruby_command, withheld_variables};
pub use process::launcher::Launcher;
pub use process::mold::MoldSource;
pub use process::mold_process::become_mold;
pub use process::site::{may_be_served, Site};
pub use process::spawner_client::Client;
pub use report::{
    AppReport, AskedHeap, CrashLoopReport, MachineMemory, MemoryReport, MoldReport, OverrunReport,
    ReforkReport, Report, ReportedLoad, RestartCount, RestartReport, SizingReport, UpgradeReport,
    WorkerReport,
};
pub use shell::{time_for_turns, AppBlueprint, Blueprint, Outcome, Supervisor};
pub use upgrade::pid_proxy::PidProxy;
pub use upgrade::predecessor::Predecessor;
pub use upgrade::successor::{TicketKeys, UpgradeContext};

use highball_config::AppId;
use highball_link::{Booted, Diagnosis};
use highball_ring::FrontRing;
use std::path::PathBuf;
use tokio::sync::oneshot;

/// News of the supervisor for the front, in the order in which it happens.
#[derive(Debug)]
pub enum Notice {
    /// Something about an application.
    OfApp(AppId, AppNotice),
    /// HUP has come: log files may have been moved away, and the configuration may have changed.
    Hangup,
    /// A new `highball` accepts connections by now: accept no more, finish what is there, and send
    /// [`Order::FrontDrained`].
    HandOver {
        /// Its process id.
        pid: i32,
        /// The addresses on which it accepts.
        kept: Vec<String>,
    },
    /// The server stops soon: serve as before, but let each answer be the last of its connection.
    StoppingSoon,
    /// Stop accepting, finish what is in flight, and send [`Order::FrontDrained`].
    Drain,
}

/// What the front is to know about an application.
#[derive(Debug)]
pub enum AppNotice {
    /// From now on this is the application, as it has reported itself.
    AppBooted(Booted),
    /// From now on this folder is served, and there is no application.
    SiteOpened {
        /// The folder of its files, absolute.
        root: PathBuf,
    },
    /// The application did not boot, and nothing serves.
    AppFailed(Box<Diagnosis>),
    /// Everything is about to end: requests that wait for the application get no answer.
    Abandoned,
    /// It was taken out of the configuration, and will not come up any more.
    Removed,
    /// A worker waits for requests on its ring.
    WorkerReady(ReadyWorker),
    /// A worker is ready that clients do not wait for yet: send it requests of our own, and then [`AppOrder::CanaryAnswered`].
    CanaryReady(ReadyWorker),
    /// A canary may have clients' requests.
    CanaryAdmitted {
        /// The worker's number.
        worker: u32,
    },
    /// The newest generation is taken back; connections that it has answered may go to the one before it.
    GenerationWithdrawn {
        /// The generation's number.
        generation: u32,
    },
    /// Workers die soon after they were started (a crash loop), or do so no more.
    CrashLoop {
        /// Whether they do.
        is_on: bool,
    },
    /// What was seen of a worker: sent again and again while there is something wrong, and once when there is not any more.
    SignOfLife {
        /// The worker's number.
        worker: u32,
        /// It answers questions.
        answers: bool,
        /// A signal has stopped its process.
        is_stopped: bool,
    },
    /// Place nothing more with this worker, and send [`AppOrder::WorkerIdle`] when it has nothing in flight.
    WorkerRetiring {
        /// The worker's number.
        worker: u32,
    },
    /// This worker is dead, or serves no more: fail or repeat its requests.
    WorkerGone {
        /// The worker's number.
        worker: u32,
        /// It was killed on purpose, such as for not ending in time.
        killed: bool,
    },
    /// Count each worker's requests from now on, and send [`AppOrder::WorkerWarm`], once, for the first one that is
    /// warm. Takes the place of an earlier such notice.
    NameWarmWorker {
        /// Requests before a worker counts as warm; 0: the one that has answered the most is, at once.
        requests: u64,
    },
}

/// A worker that can be given requests.
#[derive(Debug)]
pub struct ReadyWorker {
    /// The worker's number; an application's numbers are never used twice.
    pub worker: u32,
    /// The version of the application that it runs; a later one has a larger number.
    pub generation: u32,
    /// Its serving threads.
    pub threads: u16,
    /// The front's end of its ring.
    pub ring: FrontRing,
}

/// Orders to the supervisor.
#[derive(Debug)]
pub enum Order {
    /// Something about an application; it is ignored if that was removed meanwhile.
    ToApp(AppId, AppOrder),
    /// Bring up one more application.
    AddApp(Box<AppBlueprint>),
    /// This is how the application with this number is configured from now on. It is restarted, if that makes a difference
    /// to its processes.
    ChangeApp(Box<AppBlueprint>),
    /// End this application as soon as the front says [`AppOrder::Drained`] of it, and forget it.
    RemoveApp(AppId),
    /// The front has nothing in flight any more and accepts nothing.
    FrontDrained,
    /// From now on another process may take over: this one serves, and no other in its place.
    MayUpgrade(Box<UpgradeContext>),
    /// Start a new `highball` in the place of this one. The answer is the number of this upgrade, or why it cannot be
    /// done.
    Upgrade(oneshot::Sender<Result<u32, String>>),
    /// Drain, as after TERM. Repeats change nothing.
    Stop,
    /// Report the state of everything.
    Report(oneshot::Sender<Report>),
    /// Ask every Ruby process for its heap. The answer lists these processes at once; what they answer comes later.
    AskHeaps {
        /// Whether workers run a full garbage collection first.
        gc: bool,
        /// By application; of each the mold first, then the workers by number.
        to: oneshot::Sender<Vec<AskedHeap>>,
    },
    /// Ask these workers where their threads are. The answer lists those that there are at once; what they answer comes
    /// later.
    AskThreads {
        /// By application and number.
        workers: Vec<(AppId, u32)>,
        /// In the same order.
        to: oneshot::Sender<Vec<AskedThreads>>,
    },
}

/// A request that has exceeded its time limit.
#[derive(Debug, Clone)]
pub struct Overrun {
    /// The number of the worker that is at it.
    pub worker: u32,
    /// The number by which the worker knows it.
    pub ticket: u64,
    /// Method and path, without what may be a token.
    pub request: String,
}

/// An order for an application.
#[derive(Debug)]
pub enum AppOrder {
    /// Requests arrive for the application, and it did not boot, or sleeps: boot it, if the outcome may differ by now.
    Wanted,
    /// No request has arrived for the application for as long as [`App::sleep_after`] says.
    Idle,
    /// The front has nothing of this application in flight any more, and gets nothing more for it.
    Drained,
    /// The worker wrote something impossible into its ring: kill and replace it.
    WorkerBroken {
        /// The worker's number.
        worker: u32,
        /// The breach, for the log.
        why: String,
    },
    /// The worker's ring ends soon: replace it, in order.
    RingEndsSoon {
        /// The worker's number.
        worker: u32,
    },
    /// Replace the worker, in order, for a cause that lies in it.
    ReplaceWorker {
        /// The worker's number.
        worker: u32,
        /// The cause.
        cause: ReplacementCause,
    },
    /// This many workers more, or fewer.
    MoreWorkers(i32),
    /// What the workers have to do: the number of workers may follow it.
    Load(ReportedLoad),
    /// A request has exceeded its time limit, and its worker is still at it: log where.
    RequestTimedOut(Overrun),
    /// A retiring worker has nothing in flight any more that a client waits for.
    WorkerIdle {
        /// The worker's number.
        worker: u32,
        /// It is still at requests that have exceeded their time limits.
        is_stuck: bool,
    },
    /// A canary has answered its request.
    CanaryAnswered {
        /// The worker's number.
        worker: u32,
        /// The status, or why there is none.
        answer: Result<u16, String>,
    },
    /// The worker that was asked for by [`AppNotice::NameWarmWorker`].
    WorkerWarm {
        /// The worker's number.
        worker: u32,
    },
    /// Its configuration could not be read again, and stays as it was; why.
    ConfigurationRefused(String),
    /// A request got an error in the place of its answer: explain it.
    Diagnose(Box<RequestFailure>, oneshot::Sender<Diagnosis>),
    /// Refork. The answer is the number of the refork, or why it cannot be done.
    Refork(oneshot::Sender<Result<u32, String>>),
    /// Restart. The answer is the number of the generation that this will bring, or why it cannot be done.
    Restart(oneshot::Sender<Result<u32, String>>),
}
