//! The state of one application. [`super::step`] has everything that changes it.

use super::boots::Boots;
use super::companions::Companions;
use super::condition::{Condition, Phase};
use super::config::{AppConfig, Purpose, Source, Surroundings};
use super::molds::Molds;
use super::outbox::Outbox;
use super::reforks::Reforks;
use super::restarts::Restarts;
use super::staff::Staff;
use super::version::Version;
use highball_link::Diagnosis;
use std::sync::Arc;
use std::time::Instant;

/// What went wrong last.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// The last failure, and its time.
    pub(crate) last_failure: Option<(String, Instant)>,
    /// Processes that the kernel has killed for lack of memory.
    pub(crate) oom_kills: u64,
    /// The last boot that failed.
    pub(crate) diagnosis: Option<Arc<Diagnosis>>,
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
    pub(crate) companions: Companions,
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
            companions: Companions::new(&config.companions, now),
            trouble: Trouble::default(),
            now,
            out: Outbox::default(),
            surroundings,
            config,
        }
    }

    /// Remembers the last failure.
    pub(super) fn note_failure(&mut self, what: String) {
        self.trouble.last_failure = Some((what, self.now));
    }

    // --- for the server and the shell

    /// Whether it has processes to answer its requests, or had until a moment ago.
    pub(crate) fn can_answer(&self) -> bool {
        self.current.has_booted() && !self.condition.is_asleep()
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
        let are_gone = self.staff.workers().is_empty() && self.molds.is_empty() && self.companions.are_gone();
        are_gone || now >= until
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
