//! The process path: boots the application's mold, forks workers from it, replaces dead ones, and
//! ends all of them in good order.
//!
//! In reading order:
//!
//! - [`core`]: decides, from events and the time alone, and returns actions for the shell;
//! - [`shell`]: performs the actions, and reports to the core what comes of them and what else happens;
//! - [`facts`]: what these two tell each other;
//! - [`process`]: what is held of a mold and of a worker; where and how a mold boots, and with what; who starts, signals and
//!   reaps processes; whether a process is who it claims to be;
//! - [`control`]: messages to and from these processes, and another `highball`; [`message_log`]: which of them are logged;
//! - [`inbox`]: where what is seen of all that waits for the loop;
//! - [`app_output`]: the output of processes, within a [`rate_limit`] and [`visible`]; [`signals`]: those to this process;
//! - [`probe`]: the request that a new version has to answer first;
//! - [`upgrade`]: how a new `highball` takes the place of this one;
//! - [`diagnosis`]: why a boot or a request failed, and what to do about it;
//! - [`watch`]: the application's files, where a change of them asks for something;
//! - [`checkpoint`]: where a test may make it wait;
//! - [`asked_heap`]: a process that was asked for its heap; [`asked_profile`]: a worker that was asked for a profile.
//!
//! The supervisor does not know the front. It sends [`Notice`]s and receives [`Order`]s; the binary passes them on.

#![cfg_attr(test, allow(clippy::disallowed_methods))] // the files are a test's own

mod app_output;
mod asked_heap;
mod asked_profile;
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
mod shell;
mod signals;
mod upgrade;
mod watch;

pub use app_output::OutputSink;
pub use asked_heap::AskedHeap;
pub use asked_profile::{AskedProfile, ProfileOrder, PROFILE_BYTES};
pub use core::companions::COMPANION_STATES;
pub use core::config::Purpose;
pub use core::crash_loop::PROBATION;
pub use core::mold::longest_boot;
pub use core::worker::WORKER_STATES;
pub use diagnosis::in_brief;
pub use diagnosis::thread_states::{AskedThreads, ThreadState, WorkersRequests};
pub use probe::{Probe, ProbeFailure};
pub use process::child::{ruby_command, withheld_variables};
pub use process::companion_process::run_companion;
pub use process::launcher::Launcher;
pub use process::mold::MoldSource;
pub use process::mold_process::become_mold;
pub use process::site::{may_be_served, Site};
pub use process::spawner_client::Client;
pub use shell::{time_for_turns, AppBlueprint, Blueprint, Outcome, Supervisor};
pub use upgrade::pid_proxy::PidProxy;
pub use upgrade::predecessor::Predecessor;
pub use upgrade::successor::{TicketKeys, UpgradeContext};

use highball_config::{AppId, RolloutOrder};
use highball_link::{FrontCommand, FrontEvent, SlowRequestReport, SupervisorReport};
use tokio::sync::oneshot;

/// What the supervisor tells the front and the binary, in the order in which it happens.
#[derive(Debug)]
#[allow(missing_docs)] // where a name says all
pub enum Notice {
    /// A command for the front.
    ToFront(FrontCommand),
    /// An application is out of the configuration, and does not come up any more.
    AppRemoved(AppId),
    /// HUP has come: log files may have been moved away, and the configuration may have changed.
    Hangup,
    /// A new `highball`, the process `pid`, accepts connections by now, on the addresses `kept`: accept no more, finish what is
    /// there, and send [`FrontEvent::Drained`].
    HandOver { pid: i32, kept: Vec<String> },
}

/// Orders to the supervisor.
#[derive(Debug)]
#[allow(missing_docs)] // where a name says all
pub enum Order {
    /// The front has sent an event.
    FromFront(FrontEvent),
    /// An order for an application; ignored if that was removed meanwhile.
    ToApp(AppId, AppOrder),
    /// Bring up one more application.
    AddApp(Box<AppBlueprint>),
    /// This is how the application with this number is configured from now on. It is restarted, if that makes a difference
    /// to its processes.
    ChangeApp(Box<AppBlueprint>),
    /// End this application as soon as the front has sent [`FrontAppEvent::Drained`](highball_link::FrontAppEvent) for it, and forget it.
    RemoveApp(AppId),
    /// From now on another process may take over: this one serves, and no other in its place.
    MayUpgrade(Box<UpgradeContext>),
    /// The process that this one has succeeded has no companions any more: this one may start its own.
    PredecessorWithoutCompanions,
    /// Start a new `highball` in the place of this one. The answer is the number of this upgrade, or why it cannot be
    /// done.
    Upgrade(oneshot::Sender<Result<u32, String>>),
    /// Drain, as after TERM. Repeats change nothing.
    Stop,
    /// Report the state of everything.
    Report(oneshot::Sender<SupervisorReport>),
    /// Report the last slow requests of this application, oldest first.
    SlowRequests { app: AppId, to: oneshot::Sender<Vec<SlowRequestReport>> },
    /// Ask every Ruby process for its heap, with `gc` after a full garbage collection. The answer lists these processes at
    /// once; what they answer comes later: by application, of each the mold first, then the workers by number.
    AskHeaps { gc: bool, to: oneshot::Sender<Vec<AskedHeap>> },
    /// Ask these workers, by application and number, where their threads are. The answer lists the existing workers at once,
    /// in the same order; what they answer comes later.
    AskThreads { requests: Vec<WorkersRequests>, to: oneshot::Sender<Vec<AskedThreads>> },
    /// Have all workers of this application make a profile, or this one. The answer lists them at once, or why none does; their
    /// profiles come later.
    Profile {
        app: AppId,
        worker: Option<u32>,
        order: ProfileOrder,
        to: oneshot::Sender<Result<Vec<AskedProfile>, String>>,
    },
    /// End the profile of this application now, if one runs.
    EndProfile(AppId),
}

/// An order of an operator for an application.
#[derive(Debug)]
#[allow(missing_docs)] // where a name says all
pub enum AppOrder {
    /// Replace the worker of this number, in order.
    ReplaceWorker { worker: u32 },
    /// This many workers more, or fewer.
    MoreWorkers(i32),
    /// Its configuration could not be read again, and stays as it was; why.
    ConfigurationRefused(String),
    /// Refork. The answer is the number of the refork, or why it cannot be done.
    Refork(oneshot::Sender<Result<u32, String>>),
    /// Restart. The answer is the number of the generation that this will bring, or why it cannot be done.
    Restart(oneshot::Sender<Result<u32, String>>),
    /// Begin a rollout, raise its share, or undo it. The answer is the number of its generation, or why it cannot be done.
    Rollout(RolloutOrder, oneshot::Sender<Result<u32, String>>),
}
