//! How much memory this process may use: that of the machine, and the limits of the cgroups it is in.

use std::path::Path;

use crate::cgroups::{folders, Controller, Folder};

const MEMORY: Controller = Controller { name: "memory", v1_mounts: &["/sys/fs/cgroup/memory"] };

/// No buffers are fewer bytes than this by default.
const LEAST_BYTES: u64 = 16 << 20;

/// The memory for buffers by default: an eighth. The applications need most of it.
pub(crate) fn for_buffers() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    (available(&read).unwrap_or(0) / 8).max(LEAST_BYTES)
}

/// The memory of the machine, or the smallest limit of all cgroups that hold this process, in bytes.
fn available(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = folders(&cgroups, &MEMORY).filter_map(|folder| {
        let file = match folder {
            Folder::V2(folder) => folder.join("memory.max"),
            Folder::V1(folder) => folder.join("memory.limit_in_bytes"),
        };
        // "max", or with version 1 a number near 2⁶³, stands for no limit.
        read(&file)?.trim().parse().ok()
    });
    limits.chain(of_machine(read)).min()
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn of_machine(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let text = read(Path::new("/proc/meminfo"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available_with(files: &[(&str, &str)]) -> Option<u64> {
        let meminfo = ("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree:         100 kB\n");
        available(&|path| {
            let mut files = files.iter().chain([&meminfo]);
            files.find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_machine_has_what_it_has() {
        assert_eq!(available_with(&[]), Some(8_000_000 * 1024));
        assert_eq!(available_with(&[("/proc/self/cgroup", "garbage")]), Some(8_000_000 * 1024));
        assert!(for_buffers() >= LEAST_BYTES);
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_counts() {
        let files = [
            ("/proc/self/cgroup", "0::/system.slice/app.service\n"),
            ("/sys/fs/cgroup/system.slice/app.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "1000000\n"),
            ("/sys/fs/cgroup/memory.max", "2000000\n"),
        ];
        assert_eq!(available_with(&files), Some(1_000_000));
    }

    #[test]
    fn version_1() {
        let cgroups = ("/proc/self/cgroup", "4:memory:/docker/abc\n1:cpuset:/docker/abc\n");
        let unlimited = ("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(available_with(&[cgroups, unlimited]), Some(8_000_000 * 1024));
        let limited = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
        assert_eq!(available_with(&[cgroups, unlimited, limited]), Some(3_000_000));
    }
}
