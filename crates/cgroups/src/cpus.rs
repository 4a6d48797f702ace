//! How many CPUs this process may use: its affinity, and the quotas of the cgroups it is in.

use serde::{Deserialize, Serialize};
use std::fmt;

use std::path::Path;

use crate::around::{folders, Controller, Folder};
use crate::limits::CpuMax;

const CPU: Controller =
    Controller { name: "cpu", v1_mounts: &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"] };

/// More workers than this are never right by default.
const MOST_WORKERS: f64 = 512.0;

/// CPUs that this process may use, and what limits them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpus {
    /// Their number, such as 1.5.
    pub count: f64,
    /// What limits them.
    pub by: CpuLimit,
}

/// What limits the CPUs of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuLimit {
    /// The scheduler's mask, or the machine.
    Affinity,
    /// The quota of a cgroup of version 2.
    CpuMax,
    /// The quota of a cgroup of version 1.
    CfsQuota,
    /// The option of the application.
    OfApp,
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = (self.count * 100.0).round() / 100.0;
        match self.by {
            CpuLimit::Affinity if self.count == 1.0 => write!(f, "1 CPU"),
            CpuLimit::Affinity => write!(f, "{count} CPUs"),
            CpuLimit::CpuMax => write!(f, "cpu.max {count}"),
            CpuLimit::CfsQuota => write!(f, "cpu.cfs_quota_us {count}"),
            CpuLimit::OfApp => write!(f, "cpu_max {count}"),
        }
    }
}

impl Cpus {
    /// The CPUs of this process.
    pub fn of_process() -> Cpus {
        let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let quota = quota(&cgroups, &|path| std::fs::read_to_string(path).ok());
        Cpus::of(affinity().unwrap_or(1).into(), quota)
    }

    /// The CPUs of an application with this limit.
    pub fn at_most(self, limit: Option<CpuMax>) -> Cpus {
        let limit = limit.map(|limit| Cpus { count: limit.cpus(), by: CpuLimit::OfApp });
        limit.filter(|limit| limit.count < self.count).unwrap_or(self)
    }

    fn of(allowed: f64, quota: Option<Cpus>) -> Cpus {
        quota.filter(|quota| quota.count < allowed).unwrap_or(Cpus { count: allowed, by: CpuLimit::Affinity })
    }

    /// The number of workers that can use all of them, at least 1. A container that may use one and a half CPUs gets two
    /// workers, because one could not use what it is allowed.
    pub fn workers(&self) -> u16 {
        self.count.ceil().clamp(1.0, MOST_WORKERS) as u16
    }

    /// The most workers by default. Those beyond one for each CPU are for requests that wait for something else.
    pub fn most_workers(&self) -> u16 {
        (self.count * 2.0).ceil().clamp(1.0, MOST_WORKERS) as u16
    }
}

/// CPUs in the scheduler's mask (`sched_setaffinity`, cpusets).
fn affinity() -> Option<u32> {
    rustix::thread::sched_getaffinity(None).ok().map(|set| set.count())
}

/// The smallest CPU quota of all cgroups that hold this process. `cgroups` is the text of `/proc/self/cgroup`.
fn quota(cgroups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<Cpus> {
    let quotas = folders(cgroups, &CPU).filter_map(|folder| match folder {
        Folder::V2(folder) => {
            Some(Cpus { count: v2(&read(&folder.join("cpu.max"))?)?, by: CpuLimit::CpuMax })
        }
        Folder::V1(folder) => {
            let (quota, period) =
                (read(&folder.join("cpu.cfs_quota_us"))?, read(&folder.join("cpu.cfs_period_us"))?);
            Some(Cpus { count: v1(&quota, &period)?, by: CpuLimit::CfsQuota })
        }
    });
    quotas.min_by(|one, other| one.count.total_cmp(&other.count))
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
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        quota(cgroups, &read).map(|cpus| cpus.count)
    }

    fn cpus(allowed: f64, quota: Option<f64>) -> Cpus {
        Cpus::of(allowed, quota.map(|count| Cpus { count, by: CpuLimit::CpuMax }))
    }

    #[test]
    fn the_smaller_limit_counts_and_is_named() {
        let limited = |by| cpus(8.0, Some(1.5)).at_most(by).to_string();
        assert_eq!(limited(None), "cpu.max 1.5");
        assert_eq!(limited(Some(CpuMax(200))), "cpu.max 1.5");
        assert_eq!(limited(Some(CpuMax(50))), "cpu_max 0.5");
    }

    #[test]
    fn one_and_a_half_cpus_are_two_workers() {
        assert_eq!(cpus(8.0, Some(1.5)).workers(), 2);
        assert_eq!(cpus(8.0, Some(0.1)).workers(), 1);
        assert_eq!(cpus(2.0, Some(6.0)).workers(), 2);
        assert_eq!(cpus(4.0, None).workers(), 4);
    }

    #[test]
    fn one_and_a_half_cpus_are_three_workers_at_most() {
        assert_eq!(cpus(8.0, Some(1.5)).most_workers(), 3);
        assert_eq!(cpus(8.0, Some(0.1)).most_workers(), 1);
        assert_eq!(cpus(4.0, None).most_workers(), 8);
        assert_eq!(cpus(1024.0, None).most_workers(), 512);
    }

    #[test]
    fn what_limits_them_is_named() {
        let names =
            [cpus(8.0, Some(1.5)), cpus(1.0, None), cpus(2.0, Some(6.0))].map(|cpus| cpus.to_string());
        assert_eq!(names, ["cpu.max 1.5", "1 CPU", "2 CPUs"]);
        assert_eq!(Cpus { count: 2.0 / 3.0, by: CpuLimit::CfsQuota }.to_string(), "cpu.cfs_quota_us 0.67");
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
        assert!(Cpus::of_process().workers() >= 1);
    }
}
