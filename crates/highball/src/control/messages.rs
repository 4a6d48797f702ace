//! What can be asked of a running server over its control socket, and what it answers.

use crate::control::actions::AppAction;
use crate::status::overview::report::Overview;
use crate::status::profile_report::ProfileReport;
use highball_config::{ProfileMode, RolloutOrder};
use highball_link::{RubyHeap, ServerReport, SlowRequestReport};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Time for finding an answer where that asks no Ruby process.
const EXCHANGE_TIME: Duration = Duration::from_secs(2);
/// Time that Ruby processes have to tell their heaps.
const HEAP_TIME: Duration = Duration::from_secs(1);
/// The same where they run a full garbage collection first.
const COLLECTED_HEAP_TIME: Duration = Duration::from_secs(10);
/// Time that workers have for their profiles' results, beyond the time of the profile.
pub(crate) const PROFILE_SLACK: Duration = Duration::from_secs(10);

/// What can be asked of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum Question {
    /// How are things?
    Status,
    /// Replace the version that is served by a new one.
    Restart { app: u32 },
    /// Give a share of the visitors a new version, or go back.
    Rollout { app: u32, order: RolloutOrder },
    /// Re-fork the workers from a warm one.
    Refork { app: u32 },
    /// Replace this process by a new one.
    Upgrade,
    /// Drain and stop.
    Stop,
    /// Which processes are there, and how are their Ruby heaps, with `gc` after a full garbage collection?
    Memory { gc: bool },
    /// What does it do at this moment? With `states`, workers are asked what their threads do.
    Overview { states: bool },
    /// Do this with an application.
    Act {
        app: u32,
        /// What to do.
        #[serde(flatten)]
        action: AppAction,
    },
    /// Where does the time of an application go?
    Profile {
        app: u32,
        /// Only this worker.
        worker: Option<u32>,
        mode: ProfileMode,
        milliseconds: u64,
        /// Whether samples are grouped by the paths of requests.
        by_path: bool,
    },
    /// End the profile of this application now.
    EndProfile { app: u32 },
    /// Where did the time of the last slow requests of an application go?
    SlowRequests { app: u32 },
    /// By which token does the dashboard take orders?
    DashboardToken,
    /// Where do processes of applications publish messages?
    Hub,
}

impl Question {
    /// Time for finding the answer.
    pub(crate) fn time_limit(self) -> Duration {
        match self {
            Question::Memory { gc } => EXCHANGE_TIME + heap_time(gc),
            Question::Overview { .. } => 2 * EXCHANGE_TIME,
            Question::Profile { milliseconds, .. } => {
                EXCHANGE_TIME + PROFILE_SLACK + Duration::from_millis(milliseconds)
            }
            _ => EXCHANGE_TIME,
        }
    }
}

/// Time that Ruby processes have to tell their heaps; with `gc`, after a full garbage collection.
pub(crate) fn heap_time(gc: bool) -> Duration {
    if gc {
        COLLECTED_HEAP_TIME
    } else {
        HEAP_TIME
    }
}

/// What an instance answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// How things are.
    Status(Box<ServerReport>),
    /// It restarts, with a rollout or without one, or will when it is done with the restart before; `Status` shows its progress.
    Restarting { pid: i32, generation: u32 },
    /// It reforks; `Status` shows its progress.
    Reforking { pid: i32, number: u32 },
    /// It starts a new process in its place; `Status` shows its progress.
    Upgrading { pid: i32, number: u32 },
    /// It refuses: why, and what to do.
    Refused { why: String },
    /// It has begun to stop, and takes no longer than this.
    Stopping { pid: i32, drain_seconds: u64 },
    /// Its Ruby processes, by application: the mold first, then the workers by number.
    Memory { ruby: Vec<RubyProcess> },
    /// What it does.
    Overview(Box<Overview>),
    /// Where the time goes.
    Profile(Box<ProfileReport>),
    /// The last slow requests, oldest first.
    SlowRequests { requests: Vec<SlowRequestReport> },
    /// It does what was asked for, in words.
    Begun { what: String },
    /// The token for the dashboard; without one, that takes no orders.
    DashboardToken { token: Option<String> },
    /// Where processes of each application publish messages.
    Hub { apps: Vec<HubPlace> },
}

/// Where processes of an application publish messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HubPlace {
    /// The folder as it was given, with its symbolic links.
    #[serde(with = "highball_text::shown")]
    pub(crate) folder: PathBuf,
    /// What they connect with.
    pub(crate) address: String,
}

/// A mold or worker and its Ruby heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RubyProcess {
    /// The number of the application.
    pub(crate) app: u32,
    /// The worker's number; `None` is the mold.
    pub(crate) worker: Option<u32>,
    pub(crate) pid: Option<i32>,
    pub(crate) state: String,
    /// Its heap, or why that is not known.
    pub(crate) heap: Result<RubyHeap, String>,
}
