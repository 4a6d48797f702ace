//! How many CPUs this process may use: its affinity, and the quotas of the cgroups it is in.

use std::path::Path;

use crate::cgroups::{folders, Controller, Folder};

const CPU: Controller =
    Controller { name: "cpu", v1_mounts: &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"] };

/// The number of workers for `auto`: CPUs rounded up, at least 1. A container that may use one and a half
/// CPUs gets two workers, because one could not use what it is allowed.
pub(crate) fn available() -> u16 {
    let allowed = affinity().unwrap_or(1) as f64;
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let quota = quota(&cgroups, &|path| std::fs::read_to_string(path).ok());
    workers(allowed, quota)
}

fn workers(allowed: f64, quota: Option<f64>) -> u16 {
    // More than 512 workers are never right by default.
    quota.map_or(allowed, |quota| quota.min(allowed)).ceil().clamp(1.0, 512.0) as u16
}

/// CPUs in the scheduler's mask (`sched_setaffinity`, cpusets).
fn affinity() -> Option<u32> {
    rustix::thread::sched_getaffinity(None).ok().map(|set| set.count())
}

/// The smallest CPU quota of all cgroups that hold this process, in CPUs. `cgroups` is the text of `/proc/self/cgroup`.
fn quota(cgroups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<f64> {
    let quotas = folders(cgroups, &CPU).filter_map(|folder| match folder {
        Folder::V2(folder) => v2(&read(&folder.join("cpu.max"))?),
        Folder::V1(folder) => {
            v1(&read(&folder.join("cpu.cfs_quota_us"))?, &read(&folder.join("cpu.cfs_period_us"))?)
        }
    });
    quotas.reduce(f64::min)
}

/// `cpu.max`: `"150000 100000"`, or `"max 100000"` for no limit.
fn v2(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

/// `cpu.cfs_quota_us` (−1 for no limit) and `cpu.cfs_period_us`.
fn v1(quota: &str, period: &str) -> Option<f64> {
    ratio(quota, period)
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota_of(cgroups: &str, files: &[(&str, &str)]) -> Option<f64> {
        quota(cgroups, &|path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn one_and_a_half_cpus_are_two_workers() {
        assert_eq!(workers(8.0, Some(1.5)), 2);
        assert_eq!(workers(8.0, Some(0.1)), 1);
        assert_eq!(workers(2.0, Some(6.0)), 2);
        assert_eq!(workers(4.0, None), 4);
    }

    #[test]
    fn version_2() {
        assert_eq!(quota_of("0::/\n", &[("/sys/fs/cgroup/cpu.max", "150000 100000\n")]), Some(1.5));
        assert_eq!(quota_of("0::/\n", &[("/sys/fs/cgroup/cpu.max", "max 100000\n")]), None);
        assert_eq!(quota_of("0::/\n", &[]), None);
    }

    #[test]
    fn the_smallest_quota_on_the_way_up_counts() {
        let files = [
            ("/sys/fs/cgroup/system.slice/app.service/cpu.max", "400000 100000"),
            ("/sys/fs/cgroup/system.slice/cpu.max", "200000 100000"),
            ("/sys/fs/cgroup/cpu.max", "max 100000"),
        ];
        assert_eq!(quota_of("0::/system.slice/app.service\n", &files), Some(2.0));
    }

    #[test]
    fn version_1() {
        let cgroups = "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:cpuset:/docker/abc\n";
        let limited = [
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota_of(cgroups, &limited), Some(2.5));
        let unlimited = [
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota_of(cgroups, &unlimited), None);
    }

    #[test]
    fn this_machine_has_at_least_one() {
        assert!(available() >= 1);
    }
}
