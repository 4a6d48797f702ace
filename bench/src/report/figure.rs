//! What is shown of a sample: a column of a table, a bar of a chart.

use super::words::number;
use crate::results::Sample;
use crate::statistics::Spread;

/// Which of two values is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// A figure of a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    decimals: usize,
    of: fn(&Sample) -> Option<f64>,
}

impl Figure {
    /// Its value in a sample; `None` where it was not, or could not be, measured.
    pub(super) fn of(&self, sample: &Sample) -> Option<f64> {
        (self.of)(sample).filter(|value| value.is_finite())
    }

    /// A value with this figure's decimals: `1,044.3`; from 10,000 on without.
    pub(super) fn write(&self, value: f64) -> String {
        number(value, if value.abs() < 10_000.0 { self.decimals } else { 0 })
    }

    /// The median with its unit: `10.6 µs`.
    pub(super) fn with_unit(&self, spread: Spread) -> String {
        format!("{} {}", self.write(spread.median), self.unit).trim_end().to_string()
    }

    /// As the head of a column: `p99 ms`.
    pub(super) fn head(&self) -> String {
        format!("{} {}", self.title, self.unit).trim_end().to_string()
    }

    /// Whether the first is better than the second, whatever their spreads overlap.
    pub(super) fn is_better(&self, one: f64, other: f64) -> bool {
        match self.better {
            Better::Less => one < other,
            Better::More => one > other,
        }
    }

    /// Whether all of the first is better than all of the second.
    pub(super) fn is_clearly_better(&self, one: Spread, other: Spread) -> bool {
        !one.overlaps(&other) && self.is_better(one.median, other.median)
    }
}

const fn less(
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    of: fn(&Sample) -> Option<f64>,
) -> Figure {
    Figure { title, unit, better: Better::Less, decimals, of }
}

pub(super) const CPU: Figure =
    less("CPU per request", "µs", 1, |sample| Some(sample.cpu_user_us + sample.cpu_system_us));
pub(super) const USER: Figure = less("user", "µs", 1, |sample| Some(sample.cpu_user_us));
pub(super) const SYSTEM: Figure = less("system", "µs", 1, |sample| Some(sample.cpu_system_us));
pub(super) const REQUESTS: Figure = Figure {
    title: "requests/s",
    unit: "",
    better: Better::More,
    decimals: 0,
    of: |sample| Some(sample.requests_per_second),
};
pub(super) const MEAN: Figure = less("mean", "ms", 2, |sample| Some(sample.latency.mean));
pub(super) const DEVIATION: Figure = less("deviation", "ms", 2, |sample| Some(sample.latency.deviation));
pub(super) const P50: Figure = less("p50", "ms", 2, |sample| Some(sample.latency.p50));
pub(super) const P90: Figure = less("p90", "ms", 2, |sample| Some(sample.latency.p90));
pub(super) const P99: Figure = less("p99", "ms", 2, |sample| Some(sample.latency.p99));
pub(super) const P999: Figure = less("p99.9", "ms", 2, |sample| Some(sample.latency.p999));
pub(super) const MAX: Figure = less("most", "ms", 2, |sample| Some(sample.latency.max));
pub(super) const MEMORY: Figure = less("memory", "MiB", 1, |sample| Some(sample.memory.own_mib()));
pub(super) const DIRTY: Figure =
    less("private dirty", "MiB", 1, |sample| Some(sample.memory.private_dirty_mib));
pub(super) const RINGS: Figure = less("rings", "MiB", 2, |sample| Some(sample.memory.ring_mib));
pub(super) const PSS: Figure = less("PSS", "MiB", 1, |sample| Some(sample.memory.pss_mib));
pub(super) const PROCESSES: Figure = less("processes", "", 0, |sample| Some(sample.memory.processes.into()));
pub(super) const SWITCHES: Figure =
    less("context switches", "", 2, |sample| Some(sample.context_switches_per_request));
pub(super) const CALLS: Figure = less("system calls", "", 2, |sample| sample.system_calls_per_request);
pub(super) const OBJECTS: Figure = less("objects", "", 1, |sample| Some(sample.ruby?.objects_per_request));
pub(super) const GC: Figure = less("GC", "µs", 2, |sample| Some(sample.ruby?.gc_us_per_request));
pub(super) const COLD_START: Figure = less("cold start", "ms", 0, |sample| Some(sample.cold_start_ms));
pub(super) const STOLEN: Figure = less("stolen", "%", 1, |sample| Some(100.0 * sample.stolen));
pub(super) const OTHERS: Figure = less("others", "%", 1, |sample| Some(100.0 * sample.others));
