//! The state of one application. [`super::step`] has everything that changes it.

use super::boots::Boots;
use super::condition::{Condition, Phase};
use super::molds::Molds;
use super::outbox::Outbox;
use super::reforks::Reforks;
use super::restarts::Restarts;
use super::staff::Staff;
use super::version::Version;
use crate::core::server::Purpose;
use crate::probe::Probe;
use highball_config::{PoolRange, ReforkAfter};
use highball_link::Diagnosis;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
}

impl AppConfig {
    pub(crate) fn is_site(&self) -> bool {
        self.source == Source::Site
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

/// What went wrong last.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) last_failure: Option<String>,
    /// Processes that the kernel has killed for lack of memory.
    pub(crate) oom_kills: u64,
    /// The last boot that failed.
    pub(crate) diagnosis: Option<Arc<Diagnosis>>,
}

impl Trouble {
    /// The last failure is this.
    pub(crate) fn note(&mut self, what: String) {
        self.last_failure = Some(what);
    }
}

/// One application.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: AppConfig,
    pub(crate) surroundings: Surroundings,
    pub(crate) phase: Phase,
    pub(crate) condition: Condition,
    /// It was taken out of the configuration.
    pub(crate) is_removed: bool,
    /// The process that is its mold has asked to end everything.
    pub(crate) wants_the_end: bool,
    /// The version that is served: during a restart still the old one.
    pub(crate) current: Version,
    pub(crate) molds: Molds,
    pub(crate) boots: Boots,
    pub(crate) staff: Staff,
    pub(crate) restarts: Restarts,
    pub(crate) reforks: Reforks,
    pub(crate) trouble: Trouble,
    /// The time of the step.
    pub(super) now: Instant,
    pub(super) out: Outbox,
}

impl App {
    /// An application of which nothing is started yet.
    pub(crate) fn new(config: AppConfig, surroundings: Surroundings, now: Instant) -> App {
        let sleeps =
            !config.prestart && config.source != Source::Site && surroundings.purpose != Purpose::Examine;
        let mut molds = Molds::default();
        let current = Version::new(1, molds.begin_line(), config.folder.clone());
        App {
            phase: Phase::Running,
            condition: if sleeps { Condition::Asleep } else { Condition::Booting },
            is_removed: false,
            wants_the_end: false,
            restarts: Restarts::new(current.number()),
            current,
            molds,
            boots: Boots::new(config.max_boot_failures, now),
            staff: Staff::new(&config, now),
            reforks: Reforks::new(&config.refork_after, now),
            trouble: Trouble::default(),
            now,
            out: Outbox::default(),
            surroundings,
            config,
        }
    }

    // --- for the server and the shell

    /// Whether it has booted, and there may be requests to be answered.
    pub(crate) fn has_booted(&self) -> bool {
        self.current.has_booted()
    }

    /// Whether it has processes to answer its requests, or had until a moment ago.
    pub(crate) fn can_answer(&self) -> bool {
        self.has_booted() && !self.condition.is_asleep()
    }

    /// Whether it serves, sleeps, or has failed, and nothing is about to change that.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_up = self.current.has_booted() || self.condition.is_asleep() || self.condition.is_failed();
        let is_leaving = self.is_removed || !self.phase.is_running();
        is_leaving || (is_up && self.restarts.is_none() && !self.reforks.is_going())
    }

    /// Whether it has ended, or what is left of it is left to itself.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        let Phase::Ending(until, _) = self.phase else { return false };
        (self.staff.workers().is_empty() && self.molds.is_empty()) || now >= until
    }

    /// The word for it in `highball status`.
    pub(crate) fn phase_name(&self) -> &'static str {
        let serves = self.config.is_site() && self.current.has_booted()
            || self.staff.workers().iter().any(|(_, worker)| worker.was_ready());
        match (&self.phase, &self.condition) {
            (Phase::Running, _) if serves => "serving",
            (Phase::Running, Condition::Asleep) => "asleep",
            (Phase::Running, Condition::Failed(_)) => "failed",
            (Phase::Running, _) => "booting",
            (Phase::Draining(_) | Phase::Finishing { .. }, _) => "draining",
            (Phase::Ending(..), _) => "ending",
        }
    }
}
