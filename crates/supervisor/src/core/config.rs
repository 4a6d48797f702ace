//! What the core knows of the configuration, and what an application has to know of the server around it.

use crate::probe::Probe;
use highball_config::{Companion, PoolRange, ReforkAfter};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What applications are booted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be served. Where one does not boot in development it is waited for, until people have fixed it.
    Serve,
    /// To be served in the place of another process, which keeps serving if they do not boot.
    Succeed,
    /// To be looked at, once: the mold tells what will make trouble later, and a boot that fails is the end.
    Examine,
}

/// What the core knows of the server's configuration.
#[derive(Debug, Clone)]
pub(crate) struct ServerConfig {
    pub(crate) is_development: bool,
    /// Time between the order to stop and the moment when nothing more is accepted.
    pub(crate) drain_grace: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) boots_at_a_time: usize,
    pub(crate) purpose: Purpose,
}

/// What the front may take to close what it closes itself at a time limit.
pub(crate) const FRONT_TIME: Duration = Duration::from_millis(500);

/// Where the application comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A mold that Highball starts in its folder.
    Folder,
    /// Nothing to load: the front serves the files of a static site.
    Site,
    /// The process that started Highball, which cannot be started again.
    Caller,
}

/// What the core knows of an application's configuration.
#[derive(Debug, Clone)]
pub(crate) struct AppConfig {
    pub(crate) name: String,
    pub(crate) source: Source,
    /// Its own configuration cannot be used, so it cannot boot before that is read again.
    pub(crate) has_fault: bool,
    /// Its folder at the start, symbolic links resolved.
    pub(crate) folder: PathBuf,
    /// Its path as it was given.
    pub(crate) link: PathBuf,
    pub(crate) is_development: bool,
    pub(crate) workers: u16,
    /// Between which numbers they may be, where their number follows the load.
    pub(crate) pool: Option<PoolRange>,
    /// Serving threads in each.
    pub(crate) threads: u16,
    pub(crate) prestart: bool,
    /// Whether the mold loads the application.
    pub(crate) preload: bool,
    pub(crate) boot_timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) probe_path: String,
    pub(crate) drain_timeout: Duration,
    pub(crate) max_boot_failures: u32,
    /// See [`super::reforks`].
    pub(crate) refork_after: ReforkAfter,
    /// How long a single worker has to have served before its mold rests.
    pub(crate) rest_mold_after: Option<Duration>,
    /// See [`crate::AppBlueprint::may_fail`].
    pub(crate) may_fail: bool,
    /// The processes beside its workers.
    pub(crate) companions: Vec<Arc<Companion>>,
}

impl AppConfig {
    pub(crate) fn is_site(&self) -> bool {
        self.source == Source::Site
    }

    /// Whether measurements decide on reforks, with this number of workers. A single one would share nothing with another.
    pub(crate) fn reforks_by_itself(&self, workers: u16) -> bool {
        self.refork_after == ReforkAfter::Auto && workers >= 2
    }

    /// What the first worker of a new version has to answer.
    pub(crate) fn probe(&self, try_again: &'static str) -> Probe<'_> {
        Probe { of: "the new version", path: &self.probe_path, try_again }
    }

    /// How long a worker that is retired may take for the requests that it has.
    pub(crate) fn retire_limit(&self) -> Duration {
        self.drain_timeout + FRONT_TIME
    }

    /// How many workers there should be at the start.
    pub(crate) fn workers_at_first(&self) -> u16 {
        if self.is_site() {
            0
        } else {
            self.workers
        }
    }
}

/// How far another process has come in taking the place of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HotRestart {
    No,
    /// It waits until it can begin.
    Queued,
    Going,
    /// The other process serves: this one only answers what still comes over connections that it has.
    Done,
}

/// What an application has to know of the server around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Whether it is the only application.
    pub(crate) alone: bool,
    pub(crate) hot_restart: HotRestart,
    /// Whether it is its turn to boot, among others.
    pub(crate) may_boot: bool,
    /// Whether the process that this one has succeeded, if there is one, has no companions any more.
    pub(crate) is_alone_with_companions: bool,
    pub(crate) purpose: Purpose,
}

impl Surroundings {
    /// Whether the server can do without this application for a while.
    pub(crate) fn can_miss(&self, config: &AppConfig) -> bool {
        match self.purpose {
            Purpose::Serve => config.may_fail || !self.alone,
            Purpose::Succeed => config.may_fail && !self.alone,
            Purpose::Examine => false,
        }
    }

    /// Whether a boot that failed is left to people: it is repeated when they reload the page.
    pub(crate) fn leave_to_people(&self, config: &AppConfig) -> bool {
        self.purpose == Purpose::Serve && config.is_development && config.source == Source::Folder
    }

    /// Whether a boot that failed is repeated without requests.
    pub(crate) fn repeat_boots(&self, config: &AppConfig) -> bool {
        !self.leave_to_people(config) && self.purpose != Purpose::Examine
    }
}
