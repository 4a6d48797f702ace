//! Which generations of workers clients' requests may go to.

use super::worker::DispatchState;
use super::Dispatcher;

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
        self.workers_changed();
    }
}
