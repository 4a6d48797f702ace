//! What a scheme's processes use: CPU time, context switches, memory.
//!
//! All of it is read from `/proc`, before and after a load and never during it.

use crate::results::Memory;
use highball_proc::ProcessMemory;
use rustix::param::clock_ticks_per_second;
use std::collections::HashMap;
use std::fs;

/// Some first processes, and all that descend from them by parent id.
#[derive(Debug, Clone)]
pub struct ProcessTree {
    roots: Vec<i32>,
}

impl ProcessTree {
    /// Of these first processes.
    pub fn new(roots: &[i32]) -> Self {
        ProcessTree { roots: roots.to_vec() }
    }

    /// The processes that there are now: the first ones that live, then their descendants, each once.
    pub fn pids(&self) -> Vec<i32> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for pid in numbered("/proc") {
            if let Some(stat) = Stat::of(pid) {
                children.entry(stat.parent).or_default().push(pid);
            }
        }
        let mut found: Vec<i32> = Vec::new();
        let mut next: Vec<i32> =
            self.roots.iter().copied().filter(|&root| Stat::of(root).is_some()).collect();
        while !next.is_empty() {
            next.retain(|pid| !found.contains(pid));
            found.extend(&next);
            next = next.iter().flat_map(|pid| children.remove(pid).unwrap_or_default()).collect();
        }
        found
    }

    /// CPU time used until now, also by threads and children that ended.
    pub fn cpu(&self) -> CpuTime {
        let mut cpu = CpuTime::default();
        for pid in self.pids() {
            if let Some(stat) = Stat::of(pid) {
                cpu.user_ticks += stat.user_ticks;
                cpu.system_ticks += stat.system_ticks;
                cpu.processes += 1;
            }
            for (thread, text) in task_files(pid, "schedstat") {
                let ns = text.split_whitespace().next().and_then(|ns| ns.parse().ok());
                cpu.thread_ns.extend(ns.map(|ns: u64| ((pid, thread), ns)));
            }
        }
        cpu
    }

    /// Voluntary and involuntary context switches until now of the threads that there are.
    pub fn context_switches(&self) -> u64 {
        let texts = self.pids().into_iter().flat_map(|pid| task_files(pid, "status"));
        let kinds = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
        texts.map(|(_, text)| kinds.map(|kind| figures(&text, kind)).iter().sum::<u64>()).sum()
    }

    /// Memory now. Pages of the rings are counted once, and are no part of the private dirty ones.
    ///
    /// Processes of other users cannot be looked into without being root: they are counted, and their pages are
    /// not. [`ProcessTree::unreadable`] tells whether there are any.
    pub fn memory(&self) -> Memory {
        memory_of(&self.pids())
    }

    /// The processes whose memory this user may not look into.
    pub fn unreadable(&self) -> Vec<i32> {
        let denied = |pid: &i32| {
            fs::read(format!("/proc/{pid}/smaps_rollup"))
                .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        };
        self.pids().into_iter().filter(denied).collect()
    }
}

/// The processes among these whose command lines begin in one of these ways.
pub(crate) fn called(beginnings: &[&str], pids: &[i32]) -> Vec<i32> {
    let is_called = |pid: &&i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        beginnings.iter().any(|begin| line.starts_with(begin.as_bytes()))
    };
    pids.iter().filter(is_called).copied().collect()
}

/// Memory of these processes now, as [`ProcessTree::memory`] counts it.
pub(crate) fn memory_of(pids: &[i32]) -> Memory {
    let each: Vec<ProcessMemory> = pids.iter().filter_map(|&pid| ProcessMemory::read(pid).ok()).collect();
    let mib = |kib: fn(&ProcessMemory) -> u64| each.iter().map(kib).sum::<u64>() as f64 / 1024.0;
    Memory {
        private_dirty_mib: mib(|one| one.private_dirty_kib.saturating_sub(one.rings.private_dirty_kib)),
        pss_mib: mib(|one| one.pss_kib),
        // Each page divided by the processes that have it: all of them together count it once.
        ring_mib: mib(|one| one.rings.pss_kib),
        processes: pids.len() as u32,
    }
}

/// CPU time of a process tree at one moment.
///
/// Two clocks are read. `/proc/PID/task/*/schedstat` counts nanoseconds, and forgets a thread that ends;
/// `/proc/PID/stat` counts ticks of 10 ms, tells user from system time, and keeps the time of threads that ended
/// and of children that were waited for. The kernel makes the latter's sum from the same exact clock, so that they
/// differ by what it rounds off: up to a tick in each of its four figures.
#[derive(Debug, Clone, Default)]
pub struct CpuTime {
    user_ticks: u64,
    system_ticks: u64,
    processes: u64,
    /// By process and thread.
    thread_ns: HashMap<(i32, i32), u64>,
}

impl CpuTime {
    /// User and system time in µs since an earlier moment.
    ///
    /// The sum is schedstat's, unless threads or processes ended in between (also such as began in between: then
    /// the ticks have more); its division is always that of the ticks.
    pub fn since(&self, earlier: &CpuTime) -> (f64, f64) {
        let user = self.user_ticks.saturating_sub(earlier.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(earlier.system_ticks) as f64;
        let tick_us = 1e6 / clock_ticks_per_second() as f64;
        let ticks_us = (user + system) * tick_us;
        let threads_us = self.threads_us(earlier);
        let rounded_off_us = 4.0 * tick_us * self.processes.max(earlier.processes) as f64;

        let one_ended = earlier.thread_ns.keys().any(|thread| !self.thread_ns.contains_key(thread));
        let lost = one_ended || ticks_us > threads_us + rounded_off_us;
        let total_us = if lost { ticks_us } else { threads_us };
        if user + system == 0.0 {
            return (0.0, total_us);
        }
        (total_us * user / (user + system), total_us * system / (user + system))
    }

    fn threads_us(&self, earlier: &CpuTime) -> f64 {
        let used = |(thread, ns): (&(i32, i32), &u64)| {
            ns.saturating_sub(earlier.thread_ns.get(thread).copied().unwrap_or(0))
        };
        self.thread_ns.iter().map(used).sum::<u64>() as f64 / 1e3
    }
}

/// What is used of `/proc/PID/stat`.
#[derive(Debug, Clone)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) name: String,
    /// It has ended, and its parent has not waited for it.
    pub(crate) is_dead: bool,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// With those of children that were waited for.
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
}

impl Stat {
    /// `None` when the process is gone.
    pub(crate) fn of(pid: i32) -> Option<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field, the name, may hold spaces and brackets; these are the fields from the third on.
        let (name, fields) = text.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let id = |index: usize| fields.get(index)?.parse::<i32>().ok();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Stat {
            pid,
            name: name.to_owned(),
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            parent: id(1)?,
            group: id(2)?,
            session: id(3)?,
            user_ticks: ticks(11)? + ticks(13)?,
            system_ticks: ticks(12)? + ticks(14)?,
        })
    }

    /// User and system time in µs.
    pub(crate) fn cpu_us(&self) -> f64 {
        (self.user_ticks + self.system_ticks) as f64 * 1e6 / clock_ticks_per_second() as f64
    }
}

/// The sum of the numbers that follow this name at the beginning of a line.
fn figures(text: &str, name: &str) -> u64 {
    let of_line = |line: &str| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok();
    text.lines().filter_map(of_line).sum()
}

/// Thread ids, and what this file of each says; threads that are gone are left out.
fn task_files(pid: i32, name: &str) -> Vec<(i32, String)> {
    let folder = format!("/proc/{pid}/task");
    let read = |thread: i32| Some((thread, fs::read_to_string(format!("{folder}/{thread}/{name}")).ok()?));
    numbered(&folder).into_iter().filter_map(read).collect()
}

/// The numbers that are names in this folder; none when it is gone.
pub(crate) fn numbered(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(user_ticks: u64, system_ticks: u64, threads: &[(i32, u64)]) -> CpuTime {
        let thread_ns = threads.iter().map(|&(thread, ns)| ((1, thread), ns)).collect();
        CpuTime { user_ticks, system_ticks, processes: 1, thread_ns }
    }

    #[test]
    fn the_sum_is_exact_and_its_division_that_of_the_ticks() {
        let (earlier, later) = (at(10, 10, &[(1, 1_000_000)]), at(40, 20, &[(1, 401_500_000)]));
        let (user, system) = later.since(&earlier);
        assert!((user + system - 400_500.0).abs() < 1e-6);
        assert!((user / system - 3.0).abs() < 1e-9);
    }

    #[test]
    fn threads_that_ended_are_in_the_ticks() {
        let ended = at(40, 20, &[]).since(&at(10, 10, &[(1, 0)]));
        assert_eq!(ended, (300_000.0, 100_000.0));
        // A process that began in between and ended: no list has it, the ticks have.
        let came_and_went = at(40, 20, &[(1, 5_000_000)]).since(&at(10, 10, &[(1, 0)]));
        assert_eq!(came_and_went, (300_000.0, 100_000.0));
    }

    #[test]
    fn a_tree_holds_this_process_and_its_children_once() -> std::io::Result<()> {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn()?;
        let (me, its) = (std::process::id() as i32, child.id() as i32);
        let pids = ProcessTree::new(&[me, its]).pids();
        assert_eq!(pids.iter().filter(|&&pid| pid == its).count(), 1);
        assert_eq!(pids.first(), Some(&me));
        drop(child.stdin.take());
        child.wait()?;
        assert_eq!(ProcessTree::new(&[its]).pids(), Vec::<i32>::new());
        Ok(())
    }
}
