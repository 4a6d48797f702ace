//! The processes of this machine: their users, command lines and descent.

use crate::process::owner::parent_and_uid_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// The effective user id.
    pub(crate) uid: u32,
    /// Its command line. If the process has set a title, that is the only argument.
    pub(crate) arguments: Vec<String>,
}

impl Process {
    /// Its command line or title, in one line.
    pub(crate) fn command(&self) -> String {
        self.arguments.join(" ")
    }
}

/// All processes that could be looked at, by pid. Kernel threads and zombies, which have no command line, have no
/// memory either and are left out.
#[derive(Debug, Default)]
pub(crate) struct ProcessList {
    by_pid: BTreeMap<i32, Process>,
    children: BTreeMap<i32, Vec<i32>>,
}

impl ProcessList {
    /// Reads `/proc`. Processes that end meanwhile are left out.
    ///
    /// # Errors
    /// When `/proc` itself cannot be read.
    pub(crate) fn read() -> io::Result<ProcessList> {
        let entries = fs::read_dir("/proc")?.flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Ok(pids.filter_map(read_process).collect())
    }

    pub(crate) fn get(&self, pid: i32) -> Option<&Process> {
        self.by_pid.get(&pid)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.by_pid.values()
    }

    /// These processes and all that descend from them.
    pub(crate) fn trees(&self, roots: impl IntoIterator<Item = i32>) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        let mut next: Vec<i32> = roots.into_iter().collect();
        while let Some(pid) = next.pop() {
            if found.insert(pid) {
                next.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
        found
    }

    /// The parent, its parent, and so on.
    pub(crate) fn ancestors(&self, pid: i32) -> impl Iterator<Item = &Process> {
        let parent = |process: &&Process| self.get(process.parent);
        // Pids can be used again while /proc is read: the limit breaks circles.
        std::iter::successors(self.get(pid), parent).skip(1).take(1000)
    }
}

impl FromIterator<Process> for ProcessList {
    fn from_iter<I: IntoIterator<Item = Process>>(processes: I) -> ProcessList {
        let mut list = ProcessList::default();
        for process in processes {
            list.children.entry(process.parent).or_default().push(process.pid);
            list.by_pid.insert(process.pid, process);
        }
        list
    }
}

fn read_process(pid: i32) -> Option<Process> {
    let (parent, uid) = parent_and_uid_of(pid)?;
    let arguments = arguments(&fs::read(format!("/proc/{pid}/cmdline")).ok()?);
    (!arguments.is_empty()).then_some(Process { pid, parent, uid, arguments })
}

/// Titles are padded with NULs to the length of the command line that they replace.
fn arguments(cmdline: &[u8]) -> Vec<String> {
    let pieces =
        cmdline.split(|byte| *byte == 0).map(|piece| String::from_utf8_lossy(piece).trim().to_owned());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, uid: 0, arguments: vec!["ruby".into()] }
    }

    #[test]
    fn command_lines_and_titles_are_read() {
        assert_eq!(
            arguments(b"/usr/bin/ruby\0/usr/bin/thin\0start\0"),
            ["/usr/bin/ruby", "/usr/bin/thin", "start"]
        );
        assert_eq!(arguments(b"puma 5.6.5 (tcp://[::]:80) [a]\0\0\0\0"), ["puma 5.6.5 (tcp://[::]:80) [a]"]);
        assert!(arguments(b"").is_empty());
    }

    #[test]
    fn trees_hold_all_descendants_and_ancestors_end() {
        let list: ProcessList =
            [process(1, 0), process(2, 1), process(3, 2), process(4, 1), process(7, 7)].into_iter().collect();
        assert_eq!(list.trees([2]), BTreeSet::from([2, 3]));
        assert_eq!(list.trees([2, 4]), BTreeSet::from([2, 3, 4]));
        assert_eq!(list.ancestors(3).map(|process| process.pid).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(list.trees([7]), BTreeSet::from([7]));
        assert!(list.ancestors(7).count() <= 1000);
    }

    #[test]
    fn this_process_is_listed() {
        let list = ProcessList::read().unwrap();
        assert!(list.get(std::process::id() as i32).is_some());
    }
}
