//! Which generations of workers clients' requests may go to.

use super::worker::DispatchState;
use super::Dispatcher;
use crate::exchange::Inner;
use crate::rollout::VisitorRule;

/// Which generations of workers clients' requests may go to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Generations {
    /// The oldest that serves.
    pub(super) oldest: u32,
    /// The newest that has served, and was not withdrawn. Its workers may all have died; others will come, unless the
    /// server is stopping: then it is the newest that serves.
    pub(super) newest: u32,
    /// The generation whose restart was taken back last. Its workers serve until they are replaced.
    pub(super) withdrawn: u32,
}

/// The generations that may answer a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Allowed {
    pub(super) oldest: u32,
    /// `u32::MAX`: any later one.
    pub(super) newest: u32,
}

impl Allowed {
    /// Whether workers of this generation may answer.
    pub(super) fn has(self, generation: u32) -> bool {
        (self.oldest..=self.newest).contains(&generation)
    }

    /// Whether a later generation may not answer.
    pub(super) fn is_of_old(self) -> bool {
        self.newest < u32::MAX
    }
}

impl Generations {
    /// The oldest generation that may answer on a connection where `answered` was the last to do so. Where that was
    /// withdrawn, whatever there is has to do.
    pub(super) fn oldest_after(self, answered: u32) -> u32 {
        answered.min(self.newest)
    }
}

impl Dispatcher {
    /// The newest generation that has served, and was not withdrawn.
    pub(crate) fn newest_generation(&self) -> u32 {
        self.generations.newest
    }

    /// The generation of which answers are stored: while a rollout holds, that of most visitors.
    pub(crate) fn stored_generation(&self) -> u32 {
        match self.rollout {
            Some((rule, before)) if rule.is_held => before,
            _ => self.generations.newest,
        }
    }

    /// The generations that may answer a request. (Over one connection, a proxy may send requests of several visitors.)
    pub(super) fn allowed(&self, inner: &Inner) -> Allowed {
        let Some((rule, _)) = self.rollout else {
            return Allowed { oldest: self.generations.oldest_after(inner.generation), newest: u32::MAX };
        };
        // Highball's own requests are for the version that answered before, or else for the old one.
        let is_new = match inner.request.visitor {
            Some(number) => rule.is_new_for(number),
            None => inner.generation >= rule.generation,
        };
        match (is_new, rule.is_held) {
            (true, _) => Allowed { oldest: rule.generation, newest: u32::MAX },
            (false, true) => Allowed { oldest: 0, newest: rule.generation - 1 },
            (false, false) => {
                Allowed { oldest: self.generations.oldest_after(inner.generation), newest: u32::MAX }
            }
        }
    }

    /// Whether requests have to stay with a version, whichever worker takes them over.
    pub(super) fn holds_versions_apart(&self) -> bool {
        self.rollout.is_some_and(|(rule, _)| rule.is_held)
    }

    /// Visitors get versions by this rule from now on; `None`: any worker is for any visitor.
    pub(crate) fn set_rollout(&mut self, rule: Option<VisitorRule>) {
        let before = match self.rollout {
            Some((rule, before)) if rule.generation > before => before,
            _ => self.generations.newest,
        };
        self.rollout = rule.map(|rule| (rule, before));
        self.workers_changed();
    }

    pub(super) fn note_generations(&mut self) {
        let Generations { newest, withdrawn, .. } = self.generations;
        let serving = self.workers.iter().filter(|worker| worker.state == DispatchState::Serving);
        let serving = serving.map(|worker| worker.generation);
        let newest = if self.draining { 0 } else { newest };
        let newest = serving.clone().filter(|one| *one != withdrawn).fold(newest, u32::max);
        self.generations = Generations { oldest: serving.min().unwrap_or(newest), newest, withdrawn };
    }

    /// A generation is taken back: connections that it has answered go to the one before it again.
    pub(crate) fn withdraw(&mut self, generation: u32) {
        self.generations = Generations { withdrawn: generation, ..Generations::default() };
        self.rollout = None;
        self.workers_changed();
    }
}
