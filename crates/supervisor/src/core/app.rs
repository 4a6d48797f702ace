//! The state of one application. [`super::step`] has everything that changes it.

use super::crash_loop::CrashLoop;
use super::event::Ticket;
use super::molds::Molds;
use super::outbox::Outbox;
use super::reforks::Reforks;
use super::restarts::Restarts;
use super::version::Version;
use super::workers::Workers;
use crate::core::replacement::Replacements;
use crate::core::restart_policy::RestartPolicy;
use crate::core::server::Purpose;
use crate::core::sizing::{Room, Sizing};
use crate::facts::folder_state::FolderState;
use highball_config::{PoolRange, ReforkAfter};
use highball_link::{Booted, Diagnosis};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// Why the application ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Drained,
    Stopped,
    Halted,
    CallerGone,
    BootLoop(String),
    BootFailed(Arc<Diagnosis>),
}

/// How far the application is from its end.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Molds and workers are kept alive.
    Running,
    /// The front finishes what is in flight, until then.
    Draining(Instant),
    /// Workers have been ordered to exit, by then. `quick`: being killed is no failure then, because the user wanted it
    /// (Ctrl-C in development).
    Finishing { until: Instant, quick: bool },
    /// Everything was killed; it is gone by then, or is left behind.
    Ending(Instant, End),
}

/// Whether the application is there, as long as it has not come to its end.
#[derive(Debug)]
pub(crate) enum Condition {
    /// It is idle and has no processes. It boots for the next request.
    Asleep,
    /// It has not booted; its mold boots, or waits for its turn.
    Booting,
    /// The boot failed; the diagnosis with this ticket is being made.
    Explaining(Ticket),
    /// The boot failed, and it waits for a reason to try again.
    Failed(Failed),
    /// It has booted.
    Serving,
}

/// An application that did not boot.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Its files as they were when the boot had failed: what a boot itself writes is no reason for another.
    /// `None`: they could not be looked at then; the next look takes note of them.
    pub(crate) files: Option<FolderState>,
    pub(crate) since: Instant,
    /// When the folder is looked at next.
    pub(crate) due: Instant,
    /// The look at the folder that is under way.
    pub(crate) look: Option<FolderLook>,
    /// Requests have arrived, and wait for what a look at the folder shows.
    pub(crate) is_wanted: bool,
}

/// A look at the folder of an application that did not boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FolderLook {
    pub(crate) ticket: Ticket,
    /// It began after a request had arrived, so it sees what was changed before that.
    pub(crate) is_for_request: bool,
}

/// Boots of the version that is served.
#[derive(Debug)]
pub(crate) struct Boots {
    /// When the mold is started, if there is none.
    pub(crate) due: Instant,
    pub(crate) policy: RestartPolicy,
    /// A mold failed to boot while workers serve; the diagnosis with this ticket is being made.
    pub(crate) explaining: Option<Ticket>,
    /// The site of this generation is being looked for, until then.
    pub(crate) site: Option<(u32, Instant)>,
    /// The last mold has ended because nothing was to be forked: one boots when a worker is wanted.
    pub(crate) rests: bool,
    /// One had to boot for that: from then on, the molds of this version stay.
    pub(crate) was_missed: bool,
    /// Why it was given up, until that is acted upon.
    pub(crate) lost: Option<String>,
    /// Boots in a row after which the application was not there, and its files had not changed.
    pub(crate) in_vain: u32,
}

/// The workers, and their wanted number.
#[derive(Debug)]
pub(crate) struct Staff {
    pub(crate) workers: Workers,
    pub(crate) wanted: u16,
    /// Processes beyond that number while others take the places of workers.
    pub(crate) surge: usize,
    /// The memory for more workers, once it was measured.
    pub(crate) room: Option<Room>,
    /// No worker is forked before this.
    pub(crate) fork_due: Instant,
    /// For workers that do not get ready.
    pub(crate) policy: RestartPolicy,
    /// For all others.
    pub(crate) crash_loop: CrashLoop,
    /// The front knows of a crash loop.
    pub(crate) is_crashing: bool,
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
    /// How many workers the load needs, if their number follows it.
    pub(crate) sizing: Option<Sizing>,
    pub(crate) restarts: Restarts,
    pub(crate) reforks: Reforks,
    pub(crate) replacements: Replacements,
    pub(crate) trouble: Trouble,
    /// The time of the step.
    pub(super) now: Instant,
    pub(super) out: Outbox,
}

impl App {
    /// An application of which nothing is started yet.
    pub(crate) fn new(config: AppConfig, surroundings: Surroundings, now: Instant) -> App {
        let policy = || RestartPolicy::new(config.max_boot_failures);
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
            boots: Boots {
                due: now,
                policy: policy(),
                explaining: None,
                site: None,
                rests: false,
                was_missed: false,
                lost: None,
                in_vain: 0,
            },
            staff: Staff {
                workers: Workers::default(),
                wanted: if config.source == Source::Site { 0 } else { config.workers },
                surge: 1,
                room: None,
                fork_due: now,
                policy: policy(),
                crash_loop: CrashLoop::new(now),
                is_crashing: false,
            },
            sizing: config.pool.map(|range| Sizing::new(range, now)),
            reforks: Reforks::new(&config.refork_after, now),
            replacements: Replacements::new(now),
            trouble: Trouble::default(),
            now,
            out: Outbox::default(),
            surroundings,
            config,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self.condition, Condition::Asleep)
    }

    pub(crate) fn is_site(&self) -> bool {
        self.config.source == Source::Site
    }

    // --- for the server and the shell

    /// Whether it has booted, and there may be requests to be answered.
    pub(crate) fn has_booted(&self) -> bool {
        self.current.has_booted()
    }

    /// Whether it has processes to answer its requests, or had until a moment ago.
    pub(crate) fn can_answer(&self) -> bool {
        self.has_booted() && !self.is_asleep()
    }

    /// Whether it did not boot, and waits for a reason to try again.
    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.condition, Condition::Failed(_))
    }

    /// Whether it serves, sleeps, or has failed, and nothing is about to change that.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_up = self.current.has_booted() || self.is_asleep() || self.is_failed();
        let is_leaving = self.is_removed || !self.is_running();
        is_leaving || (is_up && self.restarts.is_none() && !self.reforks.is_going())
    }

    /// Whether all its processes were killed.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending(..))
    }

    /// Whether it has ended, or what is left of it is left to itself.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        let Phase::Ending(until, _) = self.phase else { return false };
        (self.staff.workers.is_empty() && self.molds.is_empty()) || now >= until
    }

    /// The word for it in `highball status`.
    pub(crate) fn phase_name(&self) -> &'static str {
        let serves = self.is_site() && self.current.has_booted()
            || self.staff.workers.iter().any(|(_, worker)| worker.was_ready());
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
