//! The process path: boots the application's mold, forks workers from it, replaces those that die, and
//! ends all of them in good order.
//!
//! In reading order:
//!
//! - [`app_files`]: what is done with an application's files, beside the loop;
//! - [`boot_plan`]: where and how to boot; [`site`]: a folder that needs no Ruby; [`interpreter`]: the Ruby for one that
//!   does;
//! - [`spawn_journey`]: the named steps of a boot;
//! - [`message`] over [`control_socket`]: what molds and workers are told and tell (`PROTOCOL.md`);
//! - [`child`]: what a process is started with; [`app_output`]: what it prints, within [`rate_limit`]s and [`visible`];
//! - [`mold`], [`worker_handle`], [`process_table`]: the processes as seen from here, with their states;
//! - [`message_log`]: how much of what they tell is logged;
//! - [`identity`]: whether they are whose they are said to be;
//! - [`rolling`], [`restart`]: how one version of the application takes the place of another;
//! - [`restart_file`], [`source_files`]: how files ask for that; [`folder_walk`]: looking through a folder;
//! - [`refork`]: how a warm worker takes the place of the mold;
//! - [`diagnosis`], [`folder_state`]: what is said of a boot that failed, and whether it is worth another try;
//! - [`request_failure`], [`failed_request`]: the same of a request that got an error in the place of its answer;
//! - [`questions`]: what they were asked about their Ruby heaps and threads, and have not answered yet;
//! - [`successor`], [`predecessor`], [`stand_in`], speaking by [`handover`]: how a new `highball` takes the place of
//!   this one; [`inherited_fd`] is what it begins with;
//! - [`restart_policy`]: when one that died is started again;
//! - [`departure`]: when one has gone;
//! - [`reaper`], [`signals`], [`event`]: what can happen;
//! - [`supervisor`]: what it means for one application; [`hall`]: the loop that passes it on, and what is the
//!   process's own;
//! - [`checkpoint`]: where a test may make it wait;
//! - [`report`]: what it tells `highball status` and `highball memory`.
//!
//! The hall does not know the front. It says [`Notice`]s and takes [`Order`]s; the binary passes them to and fro.

#![cfg_attr(test, allow(clippy::disallowed_methods))] // the files are a test's own

mod app_files;
mod app_output;
mod boot_plan;
pub mod checkpoint;
mod child;
mod control_socket;
mod core;
mod departure;
mod diagnosis;
mod event;
mod failed_request;
mod folder_state;
mod folder_walk;
mod handover;
mod identity;
mod inherited_fd;
mod interpreter;
mod message;
mod message_log;
mod mold;
mod predecessor;
mod questions;
mod rate_limit;
mod reaper;
mod refork;
mod report;
mod request_failure;
mod restart;
mod restart_file;
mod restart_policy;
mod rolling;
mod shell;
mod signals;
mod site;
mod source_files;
mod spawn_journey;
mod stand_in;
mod successor;
mod visible;
mod watched_fd;
mod worker_handle;

pub use app_output::OutputSink;
pub use child::withheld_variables;
pub use core::server::Purpose;
pub use diagnosis::{Diagnosis, Excerpt};
pub use failed_request::{FailedRequest, RawRequest};
pub use message::{
    Account, AssetPipeline, Assets, BootFailure, Booted, DigestScheme, Finding, PlainAsset, RubyError,
    RubyHeap, ThreadPlace,
};
pub use mold::MoldSource;
pub use predecessor::Predecessor;
pub use questions::{Answer, NotAsked};
pub use report::{
    AppReport, AskedHeap, MoldReport, ReforkReport, Report, RestartReport, UpgradeReport, WorkerReport,
};
pub use request_failure::{RequestFailure, What};
pub use shell::{time_for_turns, AppBlueprint, Blueprint, Outcome, Supervisor};
pub use site::{may_be_served, Site};
pub use spawn_journey::Step;
pub use stand_in::StandIn;
pub use successor::Heritage;
pub use visible::{visible, visible_lines};

use highball_config::AppId;
use highball_ring::FrontRing;
use std::path::PathBuf;
use tokio::sync::oneshot;

/// What the hall wants the front to know, in the order in which it happens.
#[derive(Debug)]
pub enum Notice {
    /// Something about an application.
    OfApp(AppId, AppNotice),
    /// HUP has come: log files may have been moved away, and the configuration may have changed.
    Hangup,
    /// A new `highball` accepts connections by now: accept no more, finish what is there, and say
    /// [`Order::FrontDrained`].
    HandOver {
        /// Its process id.
        pid: i32,
        /// The addresses on which it accepts.
        kept: Vec<String>,
    },
    /// Stop accepting, finish what is in flight, and say [`Order::FrontDrained`].
    Drain,
}

/// What a supervisor wants the front to know about its application.
#[derive(Debug)]
pub enum AppNotice {
    /// From now on this is the application; what it said about itself.
    AppBooted(Booted),
    /// From now on this folder is served, and there is no application.
    SiteOpened {
        /// The folder of its files, absolute.
        root: PathBuf,
    },
    /// The application did not boot, and nothing serves.
    AppFailed(Box<Diagnosis>),
    /// Everything is about to end, and nobody will answer what waits for it.
    Abandoned,
    /// It was taken out of the configuration, and will not come up any more.
    Removed,
    /// A worker waits for requests on its ring.
    WorkerReady(ReadyWorker),
    /// A worker of a new version waits for requests: send it one of our own, and say [`AppOrder::CanaryAnswered`].
    CanaryReady(ReadyWorker),
    /// A canary may have clients' requests.
    CanaryAdmitted {
        /// Its number.
        worker: u32,
    },
    /// The newest generation is taken back; connections that it has answered may go to the one before it.
    GenerationWithdrawn {
        /// Its number.
        generation: u32,
    },
    /// Place nothing more with this worker, and say [`AppOrder::WorkerIdle`] when it has nothing in flight.
    WorkerRetiring {
        /// Its number.
        worker: u32,
    },
    /// This worker is dead, or serves no more: fail or repeat its requests.
    WorkerGone {
        /// Its number.
        worker: u32,
        /// It was killed on purpose, such as for not ending in time.
        killed: bool,
    },
    /// Count each worker's requests from now on, and say [`AppOrder::WorkerWarm`], once, for the first that has answered
    /// so many; 0: at once, for the one that has answered the most. Takes the place of an earlier such notice.
    NameWarmWorker {
        /// So many.
        requests: u64,
    },
}

/// A worker that can be given requests.
#[derive(Debug)]
pub struct ReadyWorker {
    /// Its number; an application's numbers are never used twice.
    pub worker: u32,
    /// The version of the application that it runs; a later one has a larger number.
    pub generation: u32,
    /// Its serving threads.
    pub threads: u16,
    /// The front's end of its ring.
    pub ring: FrontRing,
}

/// What the hall is told.
#[derive(Debug)]
pub enum Order {
    /// Something for the supervisor of an application; if it was removed meanwhile, for nobody.
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
    /// From now on this process may be succeeded by another: it serves, and no other does in its place.
    MayUpgrade(Box<Heritage>),
    /// Start a new `highball` in the place of this one, and say the number of this upgrade; or why it cannot be done.
    Upgrade(oneshot::Sender<Result<u32, String>>),
    /// Drain, as after TERM. Repeats change nothing.
    Stop,
    /// Say how things are.
    Report(oneshot::Sender<Report>),
    /// Ask every Ruby process for its heap, and say at once which they are; their answers come later.
    AskHeaps {
        /// Whether workers run a full garbage collection first.
        gc: bool,
        /// By application; of each the mold first, then the workers by number.
        to: oneshot::Sender<Vec<AskedHeap>>,
    },
}

/// What the supervisor of an application is told.
#[derive(Debug)]
pub enum AppOrder {
    /// Somebody asks for the application, and it did not boot, or sleeps: boot it, if that may turn out otherwise by
    /// now.
    Wanted,
    /// Nobody has asked for the application for as long as [`App::sleep_after`] says.
    Idle,
    /// The front has nothing of this application in flight any more, and gets nothing more for it.
    Drained,
    /// The worker wrote something impossible into its ring: kill and replace it.
    WorkerBroken {
        /// Its number.
        worker: u32,
        /// The breach, for the log.
        why: String,
    },
    /// A retiring worker has nothing in flight any more.
    WorkerIdle {
        /// Its number.
        worker: u32,
    },
    /// A canary has answered its request.
    CanaryAnswered {
        /// Its number.
        worker: u32,
        /// The status, or why there is none.
        answer: Result<u16, String>,
    },
    /// The worker that was asked for by [`AppNotice::NameWarmWorker`].
    WorkerWarm {
        /// Its number.
        worker: u32,
    },
    /// Its configuration could not be read again, and stays as it was; why.
    ConfigurationRefused(String),
    /// A request got an error in the place of its answer: say what there is to know.
    Diagnose(Box<RequestFailure>, oneshot::Sender<Diagnosis>),
    /// Refork, and say the number of the refork; or why it cannot be done.
    Refork(oneshot::Sender<Result<u32, String>>),
    /// Restart, and say the number of the generation that this will bring; or why it cannot be done.
    Restart(oneshot::Sender<Result<u32, String>>),
}
