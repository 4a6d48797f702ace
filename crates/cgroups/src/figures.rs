//! What the kernel says of a cgroup.

use crate::limits::CpuMax;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The limits of an application as the kernel has them, and what its processes use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// CPUs.
    pub cpu_max: Option<CpuMax>,
    /// The time of CPUs that its processes have used.
    pub cpu: Duration,
    /// Periods since the limit was set in which one of its processes ran or could have run.
    pub periods: u64,
    /// Periods in which its processes waited because they had used up the limit.
    pub throttled_periods: u64,
    /// Time that its processes waited because of the limit, summed over all CPUs.
    pub throttled: Duration,
    /// Bytes of memory.
    pub memory_max: Option<u64>,
    /// Bytes that are in use, with files that the kernel keeps in memory for these processes.
    pub memory: Option<u64>,
    /// How often its memory has reached the limit, so that the kernel had to find some that could be freed.
    pub memory_max_hits: u64,
    /// Processes that the kernel has killed for lack of memory.
    pub oom_kills: u64,
}

impl Figures {
    /// Figures of the cgroup at this folder; `None`: there is none.
    pub(crate) fn of(folder: &Path) -> Option<Figures> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let number = |name: &str| read(name).trim().parse().ok();
        if !folder.is_dir() {
            return None;
        }
        let (cpu, memory) = (read("cpu.stat"), read("memory.events"));
        let of_cpu = |name| number_in(&cpu, name).unwrap_or(0);
        let of_memory = |name| number_in(&memory, name).unwrap_or(0);
        Some(Figures {
            cpu_max: CpuMax::read(&read("cpu.max")),
            cpu: Duration::from_micros(of_cpu("usage_usec")),
            periods: of_cpu("nr_periods"),
            throttled_periods: of_cpu("nr_throttled"),
            throttled: Duration::from_micros(of_cpu("throttled_usec")),
            memory_max: number("memory.max"), // "max" is no limit
            memory: number("memory.current"),
            memory_max_hits: of_memory("max"),
            oom_kills: of_memory("oom_kill"),
        })
    }
}

/// The number in a line `name number`, as `memory.events` and other files of the kernel have them.
pub fn number_in(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_no_limit() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Figures::of(folder.path()), Some(Figures::default()));
        assert_eq!(Figures::of(&folder.path().join("none")), None);
    }

    #[test]
    fn the_files_of_the_kernel_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("cpu.max", "50000 100000\n"),
            ("cpu.stat", "usage_usec 9\nnr_periods 7\nnr_throttled 3\nthrottled_usec 250000\n"),
            ("memory.max", "104857600\n"),
            ("memory.current", "4096\n"),
            ("memory.events", "high 0\nmax 8\noom 5\noom_kill 2\noom_group_kill 0\n"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let expected = Figures {
            cpu_max: Some(CpuMax(50)),
            cpu: Duration::from_micros(9),
            periods: 7,
            throttled_periods: 3,
            throttled: Duration::from_millis(250),
            memory_max: Some(100 << 20),
            memory: Some(4096),
            memory_max_hits: 8,
            oom_kills: 2,
        };
        assert_eq!(Figures::of(folder.path()), Some(expected));
    }
}
