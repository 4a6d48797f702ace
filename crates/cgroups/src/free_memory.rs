//! How much memory is left: on the machine, and in the cgroups that hold this process.

use std::path::Path;

use crate::around::{folders, Folder};
use crate::memory::{of_machine, MEMORY};

/// The memory in bytes that processes can still get without others losing any: what the machine has available, or less where a
/// cgroup's limit is nearer. `None`: the kernel does not report it.
pub fn free_memory() -> Option<u64> {
    free_by(&|path: &Path| std::fs::read_to_string(path).ok())
}

fn free_by(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let left = folders(&cgroups, &MEMORY).filter_map(|folder| left_in(&folder, read));
    left.chain(of_machine("MemAvailable:", read)).min()
}

/// Up to the limit of a cgroup. Pages of files that are not in use do not count as used.
fn left_in(folder: &Folder, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let (folder, limit, usage, files) = match folder {
        Folder::V2(folder) => (folder, "memory.max", "memory.current", "inactive_file "),
        Folder::V1(folder) => {
            (folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        }
    };
    let number = |name: &str| read(&folder.join(name))?.trim().parse::<u64>().ok();
    let stat = read(&folder.join("memory.stat")).unwrap_or_default();
    let idle_files = stat.lines().find_map(|line| line.strip_prefix(files)?.trim().parse().ok());
    // "max" stands for no limit.
    let limit = number(limit)?;
    Some(limit.saturating_sub(number(usage)?.saturating_sub(idle_files.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free_with(files: &[(&str, &str)]) -> Option<u64> {
        let meminfo = ("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
        free_by(&|path| {
            let mut files = files.iter().chain([&meminfo]);
            files.find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_machine_has_what_is_available() {
        assert_eq!(free_with(&[]), Some(8000 * 1024));
        assert!(free_memory().is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn the_nearest_limit_counts_without_idle_files() {
        let files = [
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "5000\n"),
            ("/sys/fs/cgroup/a/memory.max", "9000\n"),
            ("/sys/fs/cgroup/a/memory.current", "7000\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1000\nactive_file 7\n"),
        ];
        assert_eq!(free_with(&files), Some(3000));
        assert_eq!(free_with(&files[..5]), Some(2000));
    }

    #[test]
    fn version_1() {
        let files = [
            ("/proc/self/cgroup", "4:memory:/x\n"),
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9000\n"),
            ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "9500\n"),
            ("/sys/fs/cgroup/memory/x/memory.stat", "total_inactive_file 100\n"),
        ];
        assert_eq!(free_with(&files), Some(0), "more than the limit may be in use for a moment");
    }
}
