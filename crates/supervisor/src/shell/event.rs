//! The closed set of what the supervisor's loop waits for.

use crate::control::control_socket::ControlSocket;
use crate::core::event::ReceivedSignal;
use crate::core::memory::Watched;
use crate::core::AppEvent;
use crate::process::boot_plan::{NotStarted, Start};
use crate::process::launcher::Launched;
use crate::process::watcher::News;
use crate::watch::restart_file::Look;
use crate::Order;
use highball_config::{App, AppId, Companion};
use highball_link::ReportedLoad;
use highball_tenant::TenantFolder;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Everything that the loop waits for.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A signal was sent to us.
    Signal(ReceivedSignal),
    /// The binary passes on an order of the front or of an operator.
    Order(Order),
    /// Something was seen of a process of this application, or, with none, of another `highball`.
    News(Option<AppId>, News),
    /// Something was found out, of this application or of all.
    Discovery(Option<AppId>, Discovery),
    /// A deadline has passed.
    Deadline,
}

/// What was found out aside from the loop.
#[derive(Debug)]
pub(crate) enum Discovery {
    /// About the files of the application, or its processes.
    Found(Found),
    /// The load of the application was looked at.
    Load(SeenLoad),
    /// The memory of processes was looked at.
    Measured(Box<Measured>),
}

/// The outcome of a task on the files of an application.
#[derive(Debug)]
pub(crate) enum Found {
    /// What a look for restart files has seen; `None`: it has panicked.
    Restart(Option<Look>),
    /// Where and how to boot.
    Plan(Box<Plan>),
    /// A mold was started, or could not be.
    Launch(Box<Launch>),
    /// The folder in which a companion is to run.
    Companion(Box<CompanionPlan>),
    /// A companion was started, or could not be.
    CompanionLaunch(Box<CompanionLaunch>),
    /// What the core has asked for.
    Event(Box<AppEvent>),
}

/// Where and how to boot.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) what: Planned,
    /// The configuration that it was made for.
    pub(crate) app: Arc<App>,
    /// The folder that was asked for; `None`: where the application's path leads.
    pub(crate) asked: Option<PathBuf>,
    /// The folder, without links.
    pub(crate) folder: PathBuf,
    pub(crate) start: Result<Start, NotStarted>,
}

/// A mold that was started, or could not be.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) boot: u32,
    /// The configuration that it was started with.
    pub(crate) app: Arc<App>,
    /// Its folder, without links.
    pub(crate) folder: PathBuf,
    pub(crate) control: ControlSocket,
    pub(crate) launched: io::Result<Launched>,
}

/// The folder in which a companion is to run.
#[derive(Debug)]
pub(crate) struct CompanionPlan {
    pub(crate) number: u32,
    pub(crate) companion: Arc<Companion>,
    pub(crate) copy: u16,
    pub(crate) folder: PathBuf,
    pub(crate) opened: Result<Box<TenantFolder>, NotStarted>,
}

/// A companion that was started, or could not be.
#[derive(Debug)]
pub(crate) struct CompanionLaunch {
    pub(crate) number: u32,
    /// Its name in the configuration.
    pub(crate) name: String,
    /// What people call it.
    pub(crate) label: String,
    pub(crate) launched: io::Result<Launched>,
}

/// What is to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planned {
    /// The mold of this boot.
    Mold(u32),
    /// The static site of this generation.
    Site(u32),
}

/// What was seen of the memory of processes.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(super) apps: Vec<Watched>,
    /// The memory of the machine or container, if it was read.
    pub(super) available: Option<Option<u64>>,
    /// What the kernel has left of it.
    pub(super) free: Option<u64>,
    /// The server's own.
    pub(super) server: u64,
}

/// What was read of the load of the workers.
#[derive(Debug)]
pub(crate) struct SeenLoad {
    pub(super) reported: ReportedLoad,
    /// By worker, in milliseconds.
    pub(super) cpu_ms: BTreeMap<u32, u64>,
    pub(super) at: Instant,
}
