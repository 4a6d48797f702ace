//! Every event that the core handles.

use super::auto_refork::AppMemory;
use super::config::AppConfig;
use super::ids::{Process, Receipt};
use crate::core::memory::OverMemory;
use crate::core::refork::ReforkCause;
use crate::core::replacement::ReplacementCause;
use crate::core::restart::Asked;
use crate::core::sizing::{Load, Room};
use crate::core::worker::StartFailure;
use crate::facts::boot_failure::BootFailure;
use crate::facts::ending::Ending;
use crate::facts::folder_state::FolderState;
use highball_config::{AppId, RolloutOrder};
use highball_link::{Booted, Diagnosis, Step};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A signal that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceivedSignal {
    /// TERM or QUIT.
    Terminate,
    /// INT, mostly from Ctrl-C.
    Interrupt,
    /// HUP, without a terminal that could have closed.
    Hangup,
    /// USR1.
    Restart,
    /// URG.
    Refork,
    /// USR2.
    Upgrade,
    /// TTIN.
    MoreWorkers,
    /// TTOU.
    FewerWorkers,
    /// PWR.
    DumpThreads,
    /// CHLD.
    ChildEnded,
}

/// What concerns the whole server, or one of its applications.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// Time has passed.
    Tick,
    /// Something about an application; it is ignored if the application is gone.
    OfApp(AppId, AppEvent),
    /// A signal to this process, other than CHLD.
    Signal(ReceivedSignal),
    /// The configuration has a new application.
    AddApp(AppId, Box<AppConfig>),
    /// The front has nothing in flight and accepts nothing.
    FrontDrained,
    /// The process that this one has succeeded has no companions any more.
    PredecessorWithoutCompanions,
    /// This process serves now, and another may take its place.
    MayUpgrade,
    /// An operator asks for a hot restart.
    Upgrade(Receipt),
    /// An operator asks for the end.
    Stop,
    /// About the process that is to take this one's place, in the hot restart of this number.
    Successor(u32, SuccessorEvent),
    /// The process that has taken this one's place has ended.
    ServingProcessEnded,
}

/// What happens to a process that is to take this one's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SuccessorEvent {
    /// Answers [`super::Action::SpawnSuccessor`].
    NotStarted { why: String },
    /// It boots the applications, and is to be ready within this time.
    Booting { version: String, limit: Duration },
    /// It would serve; the addresses that it keeps.
    Ready { kept: Vec<String> },
    /// It accepts connections.
    Serving,
    /// It ends, and says why.
    Failed { why: String },
    /// An order to it could not be sent.
    Unreachable { error: String },
    /// Its control socket is closed, or what it sent was not a message.
    Closed,
    /// The kernel reports its end.
    Ended(Ending),
}

/// What happens to an application.
#[derive(Debug, Clone)]
pub(crate) enum AppEvent {
    // --- answers to actions
    /// Answers [`super::AppAction::SpawnMold`]: the process exists, in this folder.
    MoldStarted { boot: u32, folder: PathBuf },
    /// Answers [`super::AppAction::SpawnMold`].
    MoldNotStarted { boot: u32, folder: PathBuf, failure: Box<BootFailure> },
    /// Answers [`super::AppAction::Fork`]: the order could not be given.
    NotForked { worker: u32, error: String },
    /// Answers [`super::AppAction::Tell`]: the order could not be given.
    Unreachable { worker: u32 },
    /// Answers [`super::AppAction::OpenSite`].
    SiteFound { generation: u32, folder: PathBuf, site: Arc<Booted> },
    /// Answers [`super::AppAction::OpenSite`].
    NoSite { generation: u32, folder: PathBuf, failure: Box<BootFailure> },
    /// Answers [`super::AppAction::Diagnose`]. `files`: the folder as it was left by the boot,
    /// if it could be looked at.
    Diagnosed { receipt: Receipt, diagnosis: Arc<Diagnosis>, files: Option<FolderState> },
    /// Answers [`super::AppAction::LookAtFolder`]. `took`: how long the look took.
    FolderSeen { receipt: Receipt, files: Option<FolderState>, took: Duration },
    /// Answers [`super::AppAction::MeasureMemory`]; `None`: a process has not answered.
    MemoryMeasured { receipt: Receipt, memory: Option<AppMemory> },

    /// Answers [`super::AppAction::SpawnCompanion`]: it runs.
    CompanionStarted { number: u32 },
    /// Answers [`super::AppAction::SpawnCompanion`].
    CompanionNotStarted { number: u32, why: String },
    /// Its memory, in bytes, is above its limit.
    CompanionOverLimit { number: u32, bytes: u64, limit: u64 },

    // --- from molds
    /// A step of the spawn journey begins.
    MoldStep { boot: u32, step: Step },
    /// For how long its boot has waited for a processor so far, while others had them. Comes when its deadline has passed.
    MoldWaited { boot: u32, waited: Duration },
    /// Workers can be forked; the application, where the mold has loaded it.
    MoldBooted { boot: u32, app: Option<Arc<Booted>> },
    /// The boot failed, and the mold ends.
    MoldFailed { boot: u32, failure: Box<BootFailure> },
    /// The caller that acts as mold was asked to end.
    MoldAsksToStop { boot: u32 },
    /// A worker could not be forked.
    ForkFailed { worker: u32, message: String },
    /// It has laid out its heap after it had forked this worker, its first.
    MoldLaidOut { boot: u32, worker: u32 },

    // --- from workers
    /// It exists: a pidfd of it was received and checked.
    WorkerHello { worker: u32 },
    /// It has loaded the application, which its mold has not.
    WorkerBooted { worker: u32, app: Arc<Booted> },
    /// Its threads wait for requests.
    WorkerReady { worker: u32 },
    /// It could not start, or not become a mold.
    WorkerFailed { worker: u32, failure: Box<StartFailure> },
    /// It can be forked from.
    WorkerFit { worker: u32 },
    /// It cannot be forked from.
    WorkerUnfit { worker: u32, why: String },
    /// It is a mold from now on.
    WorkerPromoted { worker: u32 },
    /// It was sent TERM.
    WorkerLeaving { worker: u32 },

    // --- about any process
    /// The kernel reports its end.
    Ended { process: Process, ending: Ending },
    /// Its control socket is closed, and every message has been handled.
    Closed { process: Process },
    /// It sent what is not a message, or an answer without a question.
    Misbehaved { process: Process, error: String },

    // --- from the front
    /// Requests arrive for an application that is not there.
    Wanted,
    /// No request has arrived for as long as `sleep_after` says.
    Idle,
    /// Nothing is in flight any more, and nothing more is accepted.
    Drained,
    /// A worker broke the rules of its ring.
    WorkerBroken { worker: u32, why: String },
    /// A worker's ring ends soon.
    RingEndsSoon { worker: u32 },
    /// A worker should be replaced, for a cause that lies in it.
    ReplaceWorker { worker: u32, cause: ReplacementCause },
    /// A worker should be replaced for its memory.
    OverMemory { worker: u32, over: OverMemory },
    /// A limit of memory is exceeded, and new workers would not change that.
    MemoryLimitTooSmall { over: OverMemory },
    /// What the front and the kernel report of the load.
    Load(Load),
    /// The memory for more workers was measured.
    MemoryRoom(Room),
    /// A retiring worker has nothing in flight; or, if it is stuck, only requests for which no client waits.
    WorkerIdle { worker: u32, is_stuck: bool },
    /// It was to retire, as it was forked early, and holds something that lasts: it serves on.
    WorkerKept { worker: u32 },
    /// The canary answered the probe: the status, or why there is none.
    CanaryAnswered { worker: u32, answer: Result<u16, String> },
    /// The front gives an admitted canary as many requests as others from now on.
    SlowStartEnded { worker: u32 },
    /// The worker that has answered the most requests.
    WorkerWarm { worker: u32 },

    // --- from operators and files
    /// A restart is asked for.
    Restart { asked: Asked, receipt: Option<Receipt> },
    /// A rollout is asked for, or the end of one.
    Rollout { order: RolloutOrder, receipt: Option<Receipt> },
    /// A refork is asked for.
    Refork { cause: ReforkCause, receipt: Option<Receipt> },
    /// More workers, or fewer if it is negative.
    MoreWorkers(i32),
    /// The configuration has changed. `replaces`: processes of before differ from those of now.
    Configure { config: Box<AppConfig>, replaces: bool },
    /// The configuration could not be read again, and stays as it was; why.
    ConfigurationRefused(String),
    /// The configuration does not have the application any more.
    Remove,
}
