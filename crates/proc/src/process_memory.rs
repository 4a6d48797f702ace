//! What memory one process takes, as the kernel counts it in `/proc/PID/smaps_rollup`; see proc(5). What it has in
//! the rings of Highball, which it shares with others, is counted separately.

use std::fs;
use std::io;

/// How the mappings of rings are named in `/proc/PID/smaps`.
const RING_NAME: &str = "/memfd:highball-ring";

/// Memory of one process, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Pages that were written and that no other process has mapped: what its end would give back.
    pub private_dirty_kib: u64,
    /// Every page divided by the number of processes that have it mapped.
    pub pss_kib: u64,
    /// Every page that is resident, shared or not.
    pub rss_kib: u64,
    /// What is swapped out of it.
    pub swap_kib: u64,
    /// The part of the above that lies in rings.
    pub rings: RingMemory,
}

/// Memory of a process in the rings that it shares with others, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingMemory {
    /// Pages that it has mapped.
    pub rss_kib: u64,
    /// The same, each divided by the number of processes that have it mapped. Summed over all processes, this
    /// counts every page once.
    pub pss_kib: u64,
    /// Pages that were written and that no other process has mapped yet.
    pub private_dirty_kib: u64,
}

impl ProcessMemory {
    /// Reads the memory of a process, its rings separately.
    ///
    /// # Errors
    /// `PermissionDenied` for processes of other users, `NotFound` (or ESRCH) for ended ones, and
    /// `InvalidData` where the kernel writes something else than documented.
    pub fn read(pid: i32) -> io::Result<ProcessMemory> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
        let mut memory = parse_rollup(&read("smaps_rollup")?)?;
        // The kernel tells of each mapping much slower than it sums them up.
        if read("maps")?.contains(RING_NAME) {
            memory.rings = parse_rings(&read("smaps")?);
        }
        Ok(memory)
    }
}

fn parse_rollup(text: &str) -> io::Result<ProcessMemory> {
    let mut memory = ProcessMemory::default();
    let mut complete = false;
    for (name, kib) in text.lines().filter_map(size) {
        match name {
            "Private_Dirty" => memory.private_dirty_kib = kib,
            "Pss" => memory.pss_kib = kib,
            "Rss" => (memory.rss_kib, complete) = (kib, true),
            "Swap" => memory.swap_kib = kib,
            _ => {}
        }
    }
    if complete {
        return Ok(memory);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "smaps_rollup has no line for Rss"))
}

/// Sums over the mappings of rings. A mapping begins with a line of addresses that ends with its name.
fn parse_rings(text: &str) -> RingMemory {
    let mut rings = RingMemory::default();
    let mut in_ring = false;
    for line in text.lines() {
        match size(line) {
            Some(("Rss", kib)) if in_ring => rings.rss_kib += kib,
            Some(("Pss", kib)) if in_ring => rings.pss_kib += kib,
            Some(("Private_Dirty", kib)) if in_ring => rings.private_dirty_kib += kib,
            None if is_mapping(line) => in_ring = line.contains(RING_NAME),
            _ => {}
        }
    }
    rings
}

/// `Pss:    123 kB`.
fn size(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    Some((name, rest.trim().strip_suffix(" kB")?.parse().ok()?))
}

/// `7fd1d65dd000-7fd1d7066000 rw-s 00000000 00:01 22831896   /memfd:highball-ring (deleted)`.
fn is_mapping(line: &str) -> bool {
    let addresses = line.split(' ').next().unwrap_or_default();
    addresses.split_once('-').is_some_and(|(from, to)| {
        let is_address = |text: &str| u64::from_str_radix(text, 16).is_ok();
        is_address(from) && is_address(to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLUP: &str = "\
55d0c8a00000-7ffd5e5c2000 ---p 00000000 00:00 0                          [rollup]
Rss:               16720 kB
Pss:                6171 kB
Pss_Dirty:          3000 kB
Private_Dirty:      1520 kB
Swap:                 12 kB
SwapPss:              11 kB
";
    const SMAPS: &str = "\
7f725c8bb000-7f725d344000 rw-s 00000000 00:01 22831895                   /memfd:highball-ring (deleted)
Size:              10788 kB
Rss:                  76 kB
Pss:                  38 kB
Private_Dirty:         4 kB
VmFlags: rd wr sh mr mw me ms sd
7f725d344000-7f725d345000 rw-p 00000000 00:00 0
Rss:                   4 kB
Pss:                   4 kB
Private_Dirty:         4 kB
7f725e000000-7f725e001000 rw-s 00000000 00:01 22831896                   /memfd:highball-ring (deleted)
Rss:                   8 kB
Pss:                   6 kB
";

    #[test]
    fn a_rollup_is_read() {
        let rings = RingMemory::default();
        let memory =
            ProcessMemory { private_dirty_kib: 1520, pss_kib: 6171, rss_kib: 16720, swap_kib: 12, rings };
        assert_eq!(parse_rollup(ROLLUP).unwrap(), memory);
    }

    #[test]
    fn an_empty_rollup_is_not_a_process_without_memory() {
        assert_eq!(parse_rollup("").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn rings_are_distinguished_from_other_mappings() {
        assert_eq!(parse_rings(SMAPS), RingMemory { rss_kib: 84, pss_kib: 44, private_dirty_kib: 4 });
        assert_eq!(parse_rings(""), RingMemory::default());
    }

    #[test]
    fn this_process_can_be_read_and_one_that_is_not_there_cannot() {
        let own = ProcessMemory::read(std::process::id() as i32).unwrap();
        assert!(own.private_dirty_kib > 0 && own.private_dirty_kib <= own.rss_kib, "{own:?}");
        assert_eq!(ProcessMemory::read(i32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
