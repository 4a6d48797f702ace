//! How much memory this process may use: the machine's, within the limits of its cgroups.

use std::path::Path;

use crate::around::{folders, Controller, Folder};
use crate::figures::number_in;
use crate::groups::SERVER;

pub(crate) const MEMORY: Controller = Controller { name: "memory", v1_mounts: &["/sys/fs/cgroup/memory"] };

/// The memory of the machine, or the smallest limit of all cgroups that hold this process, in bytes; `None`: the kernel does
/// not report it. Swap is no part of it: an application that is swapped out is slow, and the kernel kills one in a cgroup
/// that may not swap. The limit may change while this process runs.
pub fn available_memory() -> Option<u64> {
    available_by(&|path: &Path| std::fs::read_to_string(path).ok())
}

fn available_by(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = folders(&cgroups, &MEMORY).flat_map(|folder| {
        // Above `memory.high`, the kernel slows processes down so much that they might as well be killed.
        let files = match folder {
            Folder::V2(folder) => vec![folder.join("memory.max"), folder.join("memory.high")],
            Folder::V1(folder) => vec![folder.join("memory.limit_in_bytes")],
        };
        // "max", or with version 1 a number near 2⁶³, stands for no limit.
        files.into_iter().filter_map(|file| read(&file)?.trim().parse().ok())
    });
    limits.chain(of_machine("MemTotal:", read)).min()
}

/// Processes that the kernel has killed for lack of memory, ever: of the cgroup that holds this process; without one, of the
/// machine. `None`: the kernel does not report it.
pub fn oom_kills() -> Option<u64> {
    oom_kills_by(&|path: &Path| std::fs::read_to_string(path).ok())
}

fn oom_kills_by(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    // The server's own cgroup has none of the applications' processes: they are beside it, in the same one.
    let is_servers = |folder: &Folder| matches!(folder, Folder::V2(folder) if folder.ends_with(SERVER));
    let folders = folders(&cgroups, &MEMORY).filter(|folder| !is_servers(folder));
    let files = folders.map(|folder| match folder {
        Folder::V2(folder) => folder.join("memory.events"),
        Folder::V1(folder) => folder.join("memory.oom_control"),
    });
    // The innermost cgroup comes first.
    let mut files = files.chain([Path::new("/proc/vmstat").to_owned()]);
    files.find_map(|file| number_in(&read(&file)?, "oom_kill"))
}

/// A line of `/proc/meminfo`, in bytes.
pub(crate) fn of_machine(name: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let text = read(Path::new("/proc/meminfo"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available_with(files: &[(&str, &str)]) -> Option<u64> {
        let meminfo = ("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree:         100 kB\n");
        available_by(&|path| {
            let mut files = files.iter().chain([&meminfo]);
            files.find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_machine_has_what_it_has() {
        assert_eq!(available_with(&[]), Some(8_000_000 * 1024));
        assert_eq!(available_with(&[("/proc/self/cgroup", "garbage")]), Some(8_000_000 * 1024));
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
    fn memory_high_counts_as_well() {
        let files = [
            ("/proc/self/cgroup", "0::/app.service\n"),
            ("/sys/fs/cgroup/app.service/memory.max", "1000000\n"),
            ("/sys/fs/cgroup/app.service/memory.high", "900000\n"),
        ];
        assert_eq!(available_with(&files), Some(900_000));
    }

    #[test]
    fn kills_are_counted_where_this_process_is() {
        let with = |files: &[(&str, &str)]| {
            oom_kills_by(&|path| {
                let found = files.iter().find(|(name, _)| Path::new(name) == path);
                found.map(|(_, text)| (*text).to_owned())
            })
        };
        let vmstat = ("/proc/vmstat", "nr_free_pages 12\noom_kill 7\n");
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[vmstat]), Some(7));
        let v2 = ("/proc/self/cgroup", "0::/a\n");
        let events = ("/sys/fs/cgroup/a/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
        assert_eq!(with(&[vmstat, v2, events]), Some(2));
        let beside = ("/proc/self/cgroup", "0::/a/highball.server\n");
        let of_server = ("/sys/fs/cgroup/a/highball.server/memory.events", "oom_kill 0\n");
        assert_eq!(with(&[vmstat, beside, of_server, events]), Some(2));
        let v1 = ("/proc/self/cgroup", "4:memory:/a\n");
        let control =
            ("/sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
        assert_eq!(with(&[vmstat, v1, control]), Some(1));
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
