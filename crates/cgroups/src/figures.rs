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
    /// The time that its processes have waited, as they had used the CPUs that they may.
    pub throttled: Duration,
    /// Bytes of memory.
    pub memory_max: Option<u64>,
    /// Bytes that are in use, with files that the kernel keeps in memory for these processes.
    pub memory: Option<u64>,
    /// Processes that the kernel has killed for lack of memory.
    pub oom_kills: u64,
}

impl Figures {
    /// Those of the cgroup at this folder; `None`: there is none.
    pub(crate) fn of(folder: &Path) -> Option<Figures> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let number = |name: &str| read(name).trim().parse().ok();
        folder.is_dir().then(|| Figures {
            cpu_max: CpuMax::read(&read("cpu.max")),
            throttled: Duration::from_micros(number_in(&read("cpu.stat"), "throttled_usec").unwrap_or(0)),
            memory_max: number("memory.max"), // "max" is no limit
            memory: number("memory.current"),
            oom_kills: number_in(&read("memory.events"), "oom_kill").unwrap_or(0),
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
            ("cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 250000\n"),
            ("memory.max", "104857600\n"),
            ("memory.current", "4096\n"),
            ("memory.events", "oom 5\noom_kill 2\noom_group_kill 0\n"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let expected = Figures {
            cpu_max: Some(CpuMax(50)),
            throttled: Duration::from_millis(250),
            memory_max: Some(100 << 20),
            memory: Some(4096),
            oom_kills: 2,
        };
        assert_eq!(Figures::of(folder.path()), Some(expected));
    }
}
