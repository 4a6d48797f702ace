//! A few figures of a process, which the kernel keeps ready; see proc(5).

use rustix::param::{clock_ticks_per_second, page_size};
use std::fs;
use std::io;

/// What a process takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessFigures {
    /// Memory that is resident, shared or not.
    pub resident_bytes: u64,
    /// Memory that is mapped.
    pub virtual_bytes: u64,
    /// Processor time, in milliseconds.
    pub cpu_ms: u64,
    /// Threads.
    pub threads: u64,
}

/// Reads the figures of a process, also of another user's.
///
/// # Errors
/// It has ended, or the kernel writes something else than documented.
pub fn process_figures(pid: i32) -> io::Result<ProcessFigures> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse(stat: &str) -> Option<ProcessFigures> {
    // The name, in parentheses, may have any characters. The state, the third field, follows it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(ProcessFigures {
        resident_bytes: field(24)? * page_size() as u64,
        virtual_bytes: field(23)?,
        cpu_ms: (field(14)? + field(15)?) * 1000 / clock_ticks_per_second(),
        threads: field(20)?,
    })
}

/// Reads the memory of a process with each page divided by the number of processes that share it.
///
/// # Errors
/// It is another user's, or has ended, or the kernel writes something else than documented.
pub fn proportional_bytes(pid: i32) -> io::Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_anything() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 5 0 99 4096000 10 18446744073709551615 1";
        let found = parse(stat).unwrap();
        assert_eq!((found.threads, found.virtual_bytes), (5, 4_096_000));
        assert_eq!(found.resident_bytes, 10 * page_size() as u64);
        assert_eq!(found.cpu_ms, 200 * 1000 / clock_ticks_per_second());
        assert_eq!(parse("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_has_some() {
        let own = std::process::id() as i32;
        assert!(process_figures(own).unwrap().resident_bytes > 0);
        assert!(proportional_bytes(own).unwrap() > 0);
    }
}
