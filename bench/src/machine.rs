//! The machine that is measured on, and who uses it.

use crate::results::Machine;
use std::fs;
use std::process::{Command, Stdio};

/// What figures depend on. What this system does not report is left empty.
pub fn describe() -> Machine {
    let memory_kib =
        field("/proc/meminfo", "MemTotal:").and_then(|size| size.split(' ').next()?.parse().ok());
    Machine {
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
        cores: std::thread::available_parallelism().map_or(0, |cores| cores.get() as u32),
        memory_mib: memory_kib.unwrap_or(0) / 1024,
        kernel: format!("Linux {}", first_line("/proc/sys/kernel/osrelease")),
        system: system(),
        ruby: ruby(),
    }
}

/// The name of the system, and which point release it is where it is a Debian.
fn system() -> String {
    let name = field("/etc/os-release", "PRETTY_NAME=").unwrap_or_default();
    let name = name.trim_matches('"');
    match first_line("/etc/debian_version") {
        release if release.is_empty() => name.into(),
        release => format!("{name}, {release}"),
    }
}

/// How the Ruby in PATH describes itself; empty without one.
fn ruby() -> String {
    let asked = Command::new("ruby").arg("--version").stdin(Stdio::null()).output();
    asked.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().into()).unwrap_or_default()
}

/// What follows this name (and a colon) in the first line of a file that begins with it.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim_start_matches([' ', '\t', ':']).trim_end().into())
}

/// Empty when the file cannot be read.
fn first_line(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default().lines().next().unwrap_or_default().trim().into()
}

/// CPU time of the whole machine at one moment, in ticks over all cores.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuShares {
    busy: u64,
    idle: u64,
    stolen: u64,
}

/// How the machine's CPU time was shared between two moments; together they are 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// What the hypervisor kept.
    pub stolen: f64,
    /// Used by processes and interrupts.
    pub busy: f64,
    /// Unused.
    pub idle: f64,
}

impl CpuShares {
    /// Until now.
    pub fn now() -> CpuShares {
        CpuShares::of(&first_line("/proc/stat"))
    }

    /// Of the first line of `/proc/stat`. The figures behind the stolen time, those of guests, are part of the
    /// first ones.
    fn of(line: &str) -> CpuShares {
        let mut ticks = line.split_whitespace().skip(1).map(|figure| figure.parse::<u64>().unwrap_or(0));
        let mut next = || ticks.next().unwrap_or(0);
        let (user, nice, system, idle, waiting) = (next(), next(), next(), next(), next());
        let (interrupts, soft_interrupts, stolen) = (next(), next(), next());
        CpuShares { busy: user + nice + system + interrupts + soft_interrupts, idle: idle + waiting, stolen }
    }

    /// The shares since an earlier moment. Nothing but idle when there was no tick in between.
    pub fn since(&self, earlier: &CpuShares) -> Shares {
        let ticks = |figure: fn(&CpuShares) -> u64| figure(self).saturating_sub(figure(earlier)) as f64;
        let (stolen, busy, idle) = (ticks(|at| at.stolen), ticks(|at| at.busy), ticks(|at| at.idle));
        let all = stolen + busy + idle;
        if all == 0.0 {
            return Shares { stolen: 0.0, busy: 0.0, idle: 1.0 };
        }
        Shares { stolen: stolen / all, busy: busy / all, idle: idle / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_the_time_in_between() {
        let earlier = CpuShares::of("cpu  100 0 100 1000 0 0 0 50 7 7");
        let later = CpuShares::of("cpu  120 5 110 1040 5 3 2 65 9 9");
        assert_eq!(later.since(&earlier), Shares { stolen: 0.15, busy: 0.4, idle: 0.45 });
        assert_eq!(later.since(&later).idle, 1.0);
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        let machine = describe();
        assert!(machine.cores >= 1);
        assert!(machine.memory_mib > 100);
        assert!(machine.kernel.len() > "Linux ".len());
        assert!(!machine.cpu.is_empty());
    }
}
