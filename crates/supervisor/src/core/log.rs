//! What the core logs: facts. The shell has the words for them (`shell/log_lines.rs`).

use super::companions::{CompanionEnd, Next};
use super::ids::Process;
use crate::core::crash_loop::Crashes;
use crate::core::memory::OverMemory;
use crate::core::refork::ReforkCause;
use crate::core::replacement::ReplacementCause;
use crate::core::restart::{Asked, Failure};
use crate::core::sizing::{Decision, Hindrance};
use crate::core::worker::{StartFailure, WorkerState};
use crate::facts::ending::Ending;
use highball_config::VisitorShare;
use highball_link::{Booted, Diagnosis, Step};
use std::sync::Arc;
use std::time::Duration;

/// About one application.
#[derive(Debug, Clone)]
pub(crate) enum AppLog {
    // molds
    StepDone { step: Step, took: Duration },
    Booted { app: Arc<Booted>, took: Duration },
    Bare { boot: u32, took: Duration },
    BootFailed(Arc<Diagnosis>),
    BootsTooLong { step: Step },
    MoldDied { ending: Ending },
    MoldStuck,
    MoldUnkillable,
    // workers
    NotForked { worker: u32, error: String },
    // `is_usual`, here and below: it happens all the time, and that is known.
    WorkerReady { worker: u32, took: Duration, is_usual: bool },
    WorkerBooted { worker: u32, app: Arc<Booted> },
    WorkerFailed { worker: u32, promoting: bool, failure: StartFailure },
    StartsTooLong { worker: u32 },
    Overdue { worker: u32, state: WorkerState },
    ControlClosed { worker: u32, is_usual: bool },
    WorkerUnkillable { worker: u32 },
    Broken { worker: u32, why: String },
    Retires { worker: u32 },
    ReplacedAfterTerm { worker: u32 },
    ReplacedForRing { worker: u32 },
    // Another worker is to take its place. `memory`: the figures, if it has too much.
    Replacing { worker: u32, cause: ReplacementCause, memory: Option<OverMemory> },
    // A limit of memory is exceeded, and new workers would not change that, or not for long.
    MemoryLimitTooSmall { over: OverMemory },
    // It has to wait, as too many were replaced lately.
    ReplacementDelayed { worker: u32, cause: ReplacementCause, wait: Duration },
    // Another worker serves in its place, or is to start when it has ended.
    Replaced { worker: u32, cause: ReplacementCause, retires_first: bool },
    // No other worker came to serve.
    NotReplaced { worker: u32, cause: ReplacementCause },
    WorkerGone { worker: u32, ending: Ending },
    WorkerDied { worker: u32, ending: Ending, state: WorkerState, is_usual: bool },
    CrashLoop(Crashes),
    CrashLoopOver,
    WorkersWanted(u16),
    // The number of workers follows the load,
    Resized(Decision),
    // or would, if nothing kept it from growing.
    NotResized(Hindrance),
    // companions
    Companion { label: String, what: CompanionLog },
    // any process
    Misbehaved { process: Process, error: String },
    OutOfTurn { process: Process, message: &'static str },
    // restarts
    NoRestart { asked: Asked, why: &'static str },
    RestartWaits { asked: Asked, generation: u32 },
    Restarting { asked: Asked, generation: u32 },
    CanaryPassed { worker: u32, status: u16 },
    CanaryKilled { worker: u32 },
    Restarted { generation: u32, workers: u16, took: Duration },
    RestartFailed { generation: u32, stage: &'static str, failure: Failure },
    RestartGivenUp { generation: u32, stage: &'static str },
    // rollouts
    Rollout(RolloutLog),
    // reforks
    NoRefork { cause: ReforkCause, why: &'static str },
    Reforking { cause: ReforkCause, worker: u32 },
    Promoted { worker: u32, boot: u32 },
    Reforked { worker: u32, workers: u16, took: Duration },
    ReforkFailed { why: String },
    // `careful`: the refork is an automatic one.
    Unfit { why: String, careful: bool },
    // Memory before and after a refork, of mold and workers together, when as many requests were answered.
    ReforkOutcome { before_kib: u64, after_kib: u64, is_last: bool },
    NoRoomForRefork { expected_kib: u64 },
    // the application
    SiteNotReopened { generation: u32, failure: Failure },
    Configured { restarts: bool },
    Removed,
    FallsAsleep,
    MoldRests,
    WakesUp,
    GivenUp { why: String },
    FolderChanged,
    TriesAgain,
    DrainTimeOver,
    // A step did not settle: a bug in the core.
    Unsettled,
}

/// About a process that runs beside the workers.
#[derive(Debug, Clone)]
pub(crate) enum CompanionLog {
    Started { number: u32 },
    Ended { how: CompanionEnd, next: Next, is_usual: bool },
    // Both in bytes.
    OverMemory { bytes: u64, limit: u64 },
    // What starts after it, and does not, since it has failed.
    Failed { waiting: Vec<String> },
    CrashLoop { ends: u32 },
    Steady,
    Overdue { was_asked: bool },
    Unkillable,
}

/// About a rollout.
#[derive(Debug, Clone)]
pub(crate) enum RolloutLog {
    Refused { why: String },
    // The new version has its share of the visitors.
    Holds { generation: u32, share: VisitorShare, took: Duration },
    // It is for all visitors.
    Finishes { generation: u32 },
    Undone { generation: u32 },
}

/// About the server.
#[derive(Debug, Clone)]
pub(crate) enum ServerLog {
    // It stops when the grace is over.
    StoppingSoon { grace: Duration },
    Stopping,
    SecondSignal,
    NewApp { name: String },
    NoHotRestart { by: &'static str, why: &'static str },
    HotRestart { by: &'static str },
    SuccessorBoots { version: String },
    SuccessorOutOfTurn { message: &'static str },
    HotRestartFailed { why: String },
    HandedOver { upgrade: u32, took: Duration },
    ServingProcessEnded,
    // A step did not settle: a bug in the core.
    Unsettled,
}
