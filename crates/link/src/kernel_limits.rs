//! The hard limits of an application, and what the application uses of them.

use crate::table::Fact;
use highball_text::{counted, gib, mib};
use serde::{Deserialize, Serialize};

/// The option that limits CPUs.
pub const CPU_MAX: &str = "cpu_max";
/// The option that limits memory.
pub const MEMORY_MAX: &str = "memory_max";

/// The hard limits of an application's cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLimitsReport {
    /// CPUs that its processes may use at a time.
    pub cpu_max: Option<f64>,
    /// CPU time that they have used, in ms.
    pub cpu_ms: u64,
    /// Periods of 100 ms in which they had something to compute.
    pub periods: u64,
    /// Periods in which they had to wait because of the limit.
    pub throttled_periods: u64,
    /// Time that they have waited for that reason, on all CPUs together, in ms.
    pub throttled_ms: u64,
    /// Memory that they may have, in bytes.
    pub memory_max_bytes: Option<u64>,
    /// Memory that they have, in bytes, with files that the kernel keeps in memory for them.
    pub memory_bytes: Option<u64>,
    /// How often it has reached the limit, so that the kernel had to free some.
    pub memory_max_hits: u64,
    /// Processes that the kernel has killed for lack of memory.
    pub oom_kills: u64,
    /// The options that are not kept.
    pub not_kept: Vec<String>,
    /// Why not all of it is kept, and what to do.
    pub problem: Option<String>,
}

impl KernelLimitsReport {
    /// The options that are set.
    pub fn wanted(&self) -> Vec<&'static str> {
        let all = [(CPU_MAX, self.cpu_max.is_some()), (MEMORY_MAX, self.memory_max_bytes.is_some())];
        all.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect()
    }

    /// Whether this option is set, and the kernel enforces it: only then there are figures.
    pub fn keeps(&self, option: &str) -> bool {
        self.wanted().contains(&option) && !self.not_kept.iter().any(|not_kept| not_kept == option)
    }

    /// `memory 310 of 512 MiB; CPU 1.5 cores, throttled 12% of the time`
    pub fn text(&self) -> String {
        let mib = |bytes: u64| bytes >> 20;
        let memory = self.memory_max_bytes.map(|most| {
            let used = self.memory_bytes.map_or_else(|| "–".into(), |bytes| mib(bytes).to_string());
            format!("memory {used} of {} MiB", mib(most))
        });
        let cpu = self.cpu_max.map(|cpus| {
            let percent = self.throttled_percent(&KernelLimitsReport::default()).unwrap_or(0.0);
            format!("CPU {cpus} cores, throttled {percent:.0}% of the time")
        });
        memory.into_iter().chain(cpu).collect::<Vec<_>>().join("; ")
    }

    /// For people.
    pub fn facts(&self) -> Vec<Fact> {
        let KernelLimitsReport {
            cpu_max,
            throttled_ms,
            memory_max_bytes,
            memory_bytes,
            oom_kills,
            problem,
            ..
        } = self;
        let mut parts = Vec::new();
        if let Some(cpus) = cpu_max {
            let share = self.throttled_percent(&KernelLimitsReport::default());
            let share = share.map(|share| format!(" ({share:.0}% of the time)")).unwrap_or_default();
            parts
                .push(format!("cpu_max {cpus}, waited for it {:.1} s{share}", *throttled_ms as f64 / 1000.0));
        }
        if let Some(bytes) = memory_max_bytes {
            let used =
                memory_bytes.map(|bytes| format!(", {} in use with files", mib(bytes))).unwrap_or_default();
            parts.push(format!(
                "memory_max {}{used}, {} killed",
                gib(*bytes),
                counted(*oom_kills, "process")
            ));
        }
        let problem = problem.as_ref().map(|problem| ("", format!("not enforced: {problem}")));
        [("limits", parts.join("; "))].into_iter().chain(problem).collect()
    }

    /// The percentage of the periods in which its processes had to wait for CPUs, of those since `before`.
    pub fn throttled_percent(&self, before: &KernelLimitsReport) -> Option<f64> {
        let periods = self.periods.checked_sub(before.periods)?;
        let throttled = self.throttled_periods.checked_sub(before.throttled_periods)?;
        (periods > 0).then(|| throttled as f64 * 100.0 / periods as f64)
    }
}
