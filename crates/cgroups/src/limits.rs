//! The limits of an application.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The period over which the kernel counts the time of CPUs, in µs: its own default.
const PERIOD: u64 = 100_000;
/// µs of such a period that stand for a hundredth of a CPU.
const HUNDREDTH: u64 = PERIOD / 100;

/// The CPUs that an application may use at a time, in hundredths of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuMax(pub u32);

impl CpuMax {
    /// Their number, such as 1.5.
    pub fn cpus(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// What `cpu.max` says: the time in each period, and the period.
    pub(crate) fn text(limit: Option<CpuMax>) -> String {
        limit.map_or(format!("max {PERIOD}"), |cpus| format!("{} {PERIOD}", u64::from(cpus.0) * HUNDREDTH))
    }

    /// Reads `cpu.max`; `None`: there is no limit.
    pub(crate) fn read(text: &str) -> Option<CpuMax> {
        let (time, period) = text.trim().split_once(' ')?;
        let (time, period): (u64, u64) = (time.parse().ok()?, period.parse().ok()?);
        u32::try_from((time * 100).checked_div(period)?).ok().map(CpuMax)
    }
}

impl fmt::Display for CpuMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cpus().fmt(f)
    }
}

/// What the processes of an application may use together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// CPUs.
    pub cpu: Option<CpuMax>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

impl Limits {
    /// Whether there is one.
    pub fn any(self) -> bool {
        self != Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_a_share_of_a_period() {
        assert_eq!(CpuMax::text(Some(CpuMax(150))), "150000 100000");
        assert_eq!(CpuMax::text(Some(CpuMax(1))), "1000 100000", "the least that the kernel takes");
        assert_eq!(CpuMax::text(None), "max 100000");
        assert_eq!(CpuMax::read("150000 100000\n"), Some(CpuMax(150)));
        assert_eq!(CpuMax::read("25000 50000\n"), Some(CpuMax(50)));
        for none in ["max 100000\n", "", "1 0"] {
            assert_eq!(CpuMax::read(none), None);
        }
        assert_eq!(CpuMax(150).to_string(), "1.5");
        assert_eq!(CpuMax(200).to_string(), "2");
    }
}
