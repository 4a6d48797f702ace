//! A few figures of a process, which the kernel keeps ready; see proc(5).

use rustix::param::{clock_ticks_per_second, page_size};
use std::fs;
use std::io;

/// Number of the first field that [`fields`] returns.
const FIRST_FIELD: usize = 3;

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

/// When a process started, in seconds since 1970. `None`: it has ended, or the kernel writes something else than documented.
pub fn started_at(pid: i32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = fields(&stat)?.get(22 - FIRST_FIELD)?.parse::<u64>().ok()?;
    let machine = fs::read_to_string("/proc/stat").ok()?;
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<u64>().ok()?;
    Some(booted as f64 + ticks as f64 / clock_ticks_per_second() as f64)
}

/// The number of files that this process has open. `None`: the kernel does not say it.
pub fn open_files() -> Option<usize> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(listed.saturating_sub(1)) // without the list itself
}

fn parse(stat: &str) -> Option<ProcessFigures> {
    let fields = fields(stat)?;
    let field = |number: usize| fields.get(number - FIRST_FIELD)?.parse::<u64>().ok();
    Some(ProcessFigures {
        resident_bytes: field(24)? * page_size() as u64,
        virtual_bytes: field(23)?,
        cpu_ms: (field(14)? + field(15)?) * 1000 / clock_ticks_per_second(),
        threads: field(20)?,
    })
}

/// The fields from the third one, the state, on. The second, the name in parentheses, may have any characters.
fn fields(stat: &str) -> Option<Vec<&str>> {
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace().collect())
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
    use std::fs::File;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn open_files_are_counted() {
        let before = open_files().unwrap();
        let files: Vec<File> = (0..100).map(|_| File::open("/dev/null").unwrap()).collect();
        // Other tests open files meanwhile.
        assert!(open_files().unwrap() + 50 > before + files.len());
    }

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
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let started = started_at(own).unwrap();
        assert!((now - 3600.0..now + 2.0).contains(&started), "{started}, and now it is {now}");
    }
}
