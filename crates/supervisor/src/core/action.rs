//! Everything that the core can ask for. The shell performs actions in their order. Where an event in [`super::event`]
//! "answers" an action, the shell reports the outcome, once for each action.

use super::ids::{Process, Receipt};
use super::log::{AppLog, ServerLog};
use crate::core::event::ReceivedSignal;
use crate::facts::boot_failure::BootFailure;
use crate::facts::ending::Ending;
use highball_config::{AppId, Companion};
use highball_link::AppCommand;
use std::path::PathBuf;
use std::sync::Arc;

/// An action for the server, or for one of its applications.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// For one application.
    OfApp(AppId, AppAction),
    /// Forget the application and everything that was its own.
    ForgetApp(AppId),
    /// Tell the front that the server stops soon: each answer is the last of its connection.
    AnnounceStop,
    /// Tell the front to stop accepting, and to finish what is in flight.
    DrainFront,
    /// Tell the front, and what reads the configuration, that HUP has come.
    Hangup,
    /// Start a new `highball`; it need not bring up the applications `failed`.
    SpawnSuccessor { upgrade: u32, failed: Vec<AppId> },
    /// Let the new process accept connections.
    TakeOver { upgrade: u32 },
    /// Signal the new process.
    SignalSuccessor { upgrade: u32, signal: SuccessorSignal },
    /// Drop what is held of a new process that has ended or did not start.
    ForgetSuccessor { upgrade: u32 },
    /// The new process serves: pass on to the front and to the PID proxy. `restart`: a restart by signal had not
    /// started.
    HandOver { upgrade: u32, kept: Vec<String>, restart: bool },
    /// Close the sockets that a successor would inherit.
    DropUpgradeContext,
    /// No companion of this process is left: the process that has taken its place may start its own.
    ReportNoCompanions,
    /// Pass the signal on to the process that has taken over.
    PassOn(ReceivedSignal),
    /// Answer an order: the number of what it leads to, or why it is refused.
    Answer(Receipt, Result<u32, String>),
    /// Write this to the log.
    Log(ServerLog),
    /// A step at which a test may stop the process.
    Checkpoint(&'static str),
    /// Everything has ended.
    End,
}

/// A signal to a new `highball`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuccessorSignal {
    /// HUP: the configuration may have changed.
    Reread,
    /// TERM: it is not wanted any more.
    End,
    /// KILL.
    Kill,
}

/// An action for one application.
#[derive(Debug, Clone)]
pub(crate) enum AppAction {
    /// Start a mold in this folder; `None`: where the application's path leads now.
    SpawnMold { boot: u32, folder: Option<PathBuf> },
    /// Make a ring and sockets for a worker, and order this mold to fork it.
    Fork { boot: u32, worker: u32 },
    /// Start a companion, as this copy of it: have the mold of this boot fork it, or else start it in this folder.
    SpawnCompanion { number: u32, companion: Arc<Companion>, copy: u16, folder: PathBuf, boot: Option<u32> },
    /// Ask a companion to end. It answers by ending.
    EndCompanion { number: u32 },
    /// Send an order to a worker.
    Tell { worker: u32, order: WorkerOrder },
    /// Ask a process that hangs for the backtraces of its threads.
    DumpThreads(Process),
    /// Kill a process. It answers by ending.
    Kill(Process),
    /// The worker is the mold of this boot from now on.
    BecomeMold { worker: u32, boot: u32 },
    /// Drop what is held of a process: it has ended, or is left to itself. Its control socket closes.
    Forget { process: Process, ending: Option<Ending> },
    /// Look for a static site in this folder; `None`: where the application's path leads now.
    OpenSite { generation: u32, folder: Option<PathBuf> },
    /// Find out what is known about a failed boot in this folder.
    Diagnose { receipt: Receipt, folder: PathBuf, failure: Box<BootFailure> },
    /// Look whether the application's files have changed.
    LookAtFolder { receipt: Receipt },
    /// Ask this mold and these workers for their memory.
    MeasureMemory { receipt: Receipt, boot: u32, workers: Vec<u32> },
    /// Read the configuration again: the application's has a fault, which may have been corrected.
    RereadConfiguration,
    /// Tell the front.
    Notify(AppCommand<()>),
    /// Tell the binary that the application is out of the configuration, and does not come up any more.
    ReportRemoval,
    /// Answer an order: the number of what it leads to, or why it is refused.
    Answer(Receipt, Result<u32, String>),
    /// Write this to the log.
    Log(AppLog),
    /// A step at which a test may stop the process.
    Checkpoint(&'static str),
}

/// An order to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerOrder {
    /// Finish what is claimed, and exit.
    Drain,
    /// Say whether you can be forked from. `careful`: only if every check is passed, now and after the last request.
    MayPromote { careful: bool },
    /// Become a mold.
    Promote,
}
