//! The number of workers where it is not fixed: a range.

use highball_cgroups::Cpus;
use serde::{Deserialize, Serialize};

/// Between which numbers the workers of an application may be, where their number follows the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PoolRange {
    /// There are never fewer workers while the application serves; at least 1.
    pub min: u16,
    /// There are never more.
    pub max: u16,
    /// The CPUs that the process may use.
    pub cpus: Cpus,
}

impl PoolRange {
    /// The range for these CPUs. `max`: as it was given, if it was.
    pub(crate) fn new(cpus: Cpus, min: u16, max: Option<u16>) -> PoolRange {
        PoolRange { min, max: max.unwrap_or_else(|| cpus.most_workers()).max(min), cpus }
    }

    /// The number of workers at the start: one for each CPU, so that the first requests do not wait for more.
    pub(crate) fn start(&self) -> u16 {
        self.cpus.workers().clamp(self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_cgroups::CpuLimit;

    fn range(count: f64, min: u16, max: Option<u16>) -> (u16, u16, u16) {
        let range = PoolRange::new(Cpus { count, by: CpuLimit::CpuMax }, min, max);
        (range.min, range.start(), range.max)
    }

    #[test]
    fn a_range_is_around_the_number_of_cpus() {
        assert_eq!(range(1.5, 1, None), (1, 2, 3));
        assert_eq!(range(8.0, 2, None), (2, 8, 16));
        assert_eq!(range(0.2, 1, None), (1, 1, 1));
    }

    #[test]
    fn what_is_given_counts() {
        assert_eq!(range(8.0, 1, Some(4)), (1, 4, 4));
        assert_eq!(range(2.0, 3, Some(5)), (3, 3, 5));
        assert_eq!(range(1.0, 6, None), (6, 6, 6));
    }
}
