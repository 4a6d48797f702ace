//! The memory that a process and its descendants do not share with others: quickly and too much rather than too little,
//! or exactly and slower.

use std::fs;
use std::io;

/// Processes that are counted with their parent: more of them are a matter for a limit on processes.
const MOST_DESCENDANTS: usize = 64;
/// Threads of a process that are asked for the processes that they have started.
const MOST_THREADS: usize = 256;

/// Figures of a process that the kernel keeps ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// At most this much memory is its own, in bytes.
    pub own_bytes_at_most: u64,
    /// A signal has stopped it: all of its threads. (A debugger that has is another state.)
    pub is_stopped: bool,
}

/// Looks at a process: its memory, as [`own_bytes_at_most`] does, and whether it is stopped.
///
/// # Errors
/// As [`own_bytes_at_most`].
pub fn glance(pid: i32) -> io::Result<Glance> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let own_bytes_at_most = at_most(&status)?;
    Ok(Glance { own_bytes_at_most, is_stopped: is_stopped(&status) })
}

fn at_most(status: &str) -> io::Result<u64> {
    sum(status, &["RssAnon", "RssShmem", "VmSwap"]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The process may have any name, so only a whole line counts; its line breaks are escaped.
fn is_stopped(status: &str) -> bool {
    status.lines().any(|line| line.strip_prefix("State:").is_some_and(|state| state.trim().starts_with('T')))
}

/// At most this much memory is its own, in bytes: all pages that are not of files, shared or not, and what is swapped out.
/// The kernel keeps these numbers ready, for processes of all users.
///
/// # Errors
/// It has ended, or the kernel writes something else than documented.
pub fn own_bytes_at_most(pid: i32) -> io::Result<u64> {
    at_most(&fs::read_to_string(format!("/proc/{pid}/status"))?)
}

/// The memory that is its part, in bytes: pages that are not of files, each divided by the number of processes that share it, and
/// its part of what is swapped out. Pages of files can be read again. The kernel looks at every page for it.
///
/// # Errors
/// As [`own_bytes_at_most`], or this process may not look into it, such as another user's.
pub fn own_bytes(pid: i32) -> io::Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let all = sum(&rollup, &["Pss_Anon", "Pss_Shmem", "SwapPss"]);
    // Before Linux 5.9, all kinds of pages are in one number.
    all.or_else(|| sum(&rollup, &["Pss", "SwapPss"])).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The process, and all that it has started, and those have started. (One whose parent has ended is another's child.)
pub fn family(pid: i32) -> Vec<i32> {
    let mut family = vec![pid];
    let mut asked = 0;
    while asked < family.len() && family.len() < MOST_DESCENDANTS {
        let children = children(family[asked]);
        family.extend(children.into_iter().take(MOST_DESCENDANTS - family.len()));
        asked += 1;
    }
    family
}

/// What the threads of a process have started, where the kernel reports it (`CONFIG_PROC_CHILDREN`).
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let listed = threads.take(MOST_THREADS).filter_map(|thread| of_thread(thread.ok()?));
    let listed: Vec<String> = listed.collect();
    listed.iter().flat_map(|pids| pids.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// The sum of these lines, such as `RssAnon:      123 kB`, in bytes; `None`: one of them is missing.
fn sum(text: &str, names: &[&str]) -> Option<u64> {
    let value = |name: &&str| {
        let of_name = |line: &str| line.strip_prefix(*name)?.strip_prefix(':').map(str::to_owned);
        let kib: u64 = text.lines().find_map(of_name)?.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    names.iter().map(value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    #[test]
    fn only_what_is_not_of_files_counts() {
        let rollup = "Pss:  900 kB\nPss_Dirty: 5 kB\nPss_Anon: 100 kB\nPss_File: 700 kB\nPss_Shmem: 20 kB\nSwapPss: 3 kB\n";
        assert_eq!(sum(rollup, &["Pss_Anon", "Pss_Shmem", "SwapPss"]), Some(123 * 1024));
        assert_eq!(sum("Pss: 900 kB\nSwapPss: 3 kB\n", &["Pss_Anon"]), None);
        assert_eq!(sum("RssAnon:\t  8 kB\nRssAnon: x kB\n", &["RssAnon"]), Some(8192));
    }

    #[test]
    fn a_process_that_is_stopped_is_seen() {
        assert!(is_stopped("Name:\tx\nState:\tT (stopped)\n"));
        assert!(!is_stopped("Name:\tState:\\nState: T\nState:\tS (sleeping)\n"));
        assert!(!is_stopped("Name:\tx\nState:\tt (tracing stop)\n"));
        assert!(!glance(std::process::id() as i32).unwrap().is_stopped);
    }

    #[test]
    fn the_quick_number_is_no_smaller_than_the_exact_one() {
        let memory = vec![1_u8; 20 << 20];
        let own = std::process::id() as i32;
        let (exact, quick) = (own_bytes(own).unwrap(), own_bytes_at_most(own).unwrap());
        assert!(exact >= memory.len() as u64, "{exact}");
        // The kernel adds each processor's part to the quick number once in a while.
        assert!(quick + (4 << 20) >= exact, "{quick} {exact}");
        assert_eq!(own_bytes(i32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_a_process_has_started_belongs_to_it() {
        let mut shell =
            Command::new("sh").args(["-c", "sh -c 'read x; :' ; :"]).stdin(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + std::time::Duration::from_secs(20);
        let own = std::process::id() as i32;
        while family(own).len() < 3 && Instant::now() < until {
            std::thread::yield_now();
        }
        let family = family(own);
        let _ = (shell.kill(), shell.wait());
        assert!(family.contains(&(shell.id() as i32)) && family.len() >= 3, "{family:?}");
    }

    /// What it costs: `cargo test --release -p highball-proc -- --ignored --nocapture costs`.
    #[test]
    #[ignore = "it measures"]
    fn costs() {
        let own = std::process::id() as i32;
        for mib in [0_usize, 100, 500] {
            let memory = vec![1_u8; mib << 20];
            let time = |what: &dyn Fn()| {
                let began = Instant::now();
                (0..100).for_each(|_| what());
                began.elapsed() / 100
            };
            let quick = time(&|| drop(own_bytes_at_most(own)));
            let exact = time(&|| drop(own_bytes(own)));
            let family = time(&|| drop(family(own)));
            println!("{} MiB: at most {quick:?}, exact {exact:?}, family {family:?}", memory.len() >> 20);
        }
    }
}
