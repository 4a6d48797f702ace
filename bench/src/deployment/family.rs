//! The processes of a deployment, however they hide.
//!
//! This process is a subreaper: whatever daemonises below it becomes its child. So every process of a deployment
//! descends from this process, by its first processes or as such an orphan. An orphan is known by its group or
//! session, when these were seen before; by a mark in the environment that it inherited; or, when it wrote its title
//! over that, as the child of this process in a foreign session that has no other mark.

use crate::process_tree::{numbered, Stat};
use crate::Failure;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{kill_process, pidfd_open, waitpid, Pid, PidfdFlags, Signal, WaitOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The environment variable that marks processes; its value is the deployment's folder.
pub(super) const MARK: &str = "HIGHBALL_BENCH_DEPLOYMENT";

/// How often processes are listed for one look, at most: on a busy machine there is always a new one.
const LISTINGS: u32 = 10;

/// Makes this process the parent of all orphans below it.
pub(super) fn adopt_orphans() -> Result<(), Failure> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| Failure(format!("orphaned processes cannot be adopted (prctl): {error}")))
}

/// The processes of one deployment.
#[derive(Debug, Clone)]
pub(super) struct Family {
    mark: String,
    /// First processes that have not been seen to end.
    roots: Vec<i32>,
    /// Process groups and sessions that members were seen in.
    groups: BTreeSet<i32>,
}

impl Family {
    /// A family without members; its processes inherit [`MARK`] with this value.
    pub(super) fn new(mark: String) -> Family {
        Family { mark, roots: Vec::new(), groups: BTreeSet::new() }
    }

    /// A first process was started, the leader of a new group.
    pub(super) fn add_root(&mut self, pid: i32) {
        self.roots.push(pid);
        self.groups.insert(pid);
    }

    /// A first process has ended, and was waited for: its id may soon be another's.
    pub(super) fn remove_root(&mut self, pid: i32) {
        self.roots.retain(|root| *root != pid);
    }

    /// Its living members that are children of this process: first processes, and what daemonised.
    pub(super) fn heads(&mut self) -> Vec<i32> {
        let own = own_pid();
        let members = self.members().into_iter().filter(|member| !member.is_dead);
        members.filter(|member| member.parent == own).map(|member| member.pid).collect()
    }

    /// All members, including zombies. Waits for ended orphans on the way.
    pub(super) fn members(&mut self) -> Vec<Stat> {
        let mut children: BTreeMap<i32, Vec<Stat>> = BTreeMap::new();
        for entry in all_processes() {
            children.entry(entry.parent).or_default().push(entry);
        }
        let mut own_children = children.remove(&own_pid()).unwrap_or_default();
        let mut next = 0;
        // The children of an ending process are about to be this process's.
        while let Some(child) = own_children.get(next) {
            let pid = child.pid;
            if !has_memory(pid) {
                own_children.extend(children.get(&pid).into_iter().flatten().cloned());
            }
            next += 1;
        }
        let mut found: Vec<Stat> = Vec::new();
        // Twice: an orphan may be known by the group of another that is known by its mark.
        for _ in 0..2 {
            for entry in &own_children {
                if !found.iter().any(|known| known.pid == entry.pid) && self.has_head(entry) {
                    self.add_descendants(entry.clone(), &children, &mut found);
                }
            }
        }
        self.reap_orphans(&found);
        found
    }

    fn add_descendants(&mut self, head: Stat, children: &BTreeMap<i32, Vec<Stat>>, found: &mut Vec<Stat>) {
        let mut next = found.len();
        found.push(head);
        while let Some(member) = found.get(next).cloned() {
            self.groups
                .extend([member.group, member.session].into_iter().filter(|group| !is_own_group(*group)));
            for child in children.get(&member.pid).into_iter().flatten() {
                if !found.iter().any(|known| known.pid == child.pid) {
                    found.push(child.clone());
                }
            }
            next += 1;
        }
    }

    /// Whether this child of ours belongs to the family.
    fn has_head(&self, child: &Stat) -> bool {
        if self.roots.contains(&child.pid)
            || self.groups.contains(&child.group)
            || self.groups.contains(&child.session)
        {
            return true;
        }
        match mark_of(child.pid) {
            Some(mark) => mark == self.mark,
            None => has_memory(child.pid) && !is_own_group(child.session),
        }
    }

    /// Waits for ended processes that no other part waits for: this process would keep them as zombies.
    fn reap_orphans(&self, found: &[Stat]) {
        let own = own_pid();
        let orphans = found.iter().filter(|entry| entry.parent == own && !self.roots.contains(&entry.pid));
        for pid in orphans.filter(|entry| entry.is_dead).filter_map(|entry| Pid::from_raw(entry.pid)) {
            // An error can only mean that another part has waited for it.
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// The value of [`MARK`] in a process's environment, where it has kept that.
fn mark_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let mark = variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(mark).into_owned())
}

/// Whether a process has memory. An ending process has none, and so no environment, whichever deployment it is of.
fn has_memory(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// All processes. They are listed again until a list holds nothing new: a daemon may have passed itself on to a
/// child between being listed and being read.
fn all_processes() -> impl Iterator<Item = Stat> {
    let mut read: BTreeMap<i32, Option<Stat>> = BTreeMap::new();
    for _ in 0..LISTINGS {
        let unread: Vec<i32> = numbered("/proc").into_iter().filter(|pid| !read.contains_key(pid)).collect();
        if unread.is_empty() {
            break;
        }
        read.extend(unread.into_iter().map(|pid| (pid, Stat::of(pid))));
    }
    read.into_values().flatten()
}

/// Whether this is the group or the session of this process. Read from /proc, as those of the others are: where their
/// leader is outside this process's PID namespace, as in a container, both numbers are 0, which is no `Pid`.
fn is_own_group(id: i32) -> bool {
    Stat::of(own_pid()).is_some_and(|own| own.group == id || own.session == id)
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Sends a signal. A process that has ended meanwhile needs none.
pub(super) fn signal(pid: i32, signal: Signal) -> Result<(), Errno> {
    match Pid::from_raw(pid).map(|pid| kill_process(pid, signal)) {
        None | Some(Ok(()) | Err(Errno::SRCH)) => Ok(()),
        Some(Err(error)) => Err(error),
    }
}

/// Waits until one of these processes ends, but no longer than this time.
pub(super) fn wait_for_end_of_any(pids: &[i32], time: Duration) -> Result<(), Failure> {
    let open = |pid: &i32| pidfd_open(Pid::from_raw(*pid)?, PidfdFlags::empty()).ok();
    let opened: Vec<OwnedFd> = pids.iter().filter_map(open).collect();
    let mut watched: Vec<PollFd<'_>> = opened.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    match poll(&mut watched, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(Failure(format!("waiting for processes to end (poll): {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    /// What daemonises leaves a dead process behind, in the session of the daemon. Beside another deployment, the
    /// daemon was that one's, and ended with it.
    #[test]
    fn a_daemon_is_of_its_own_deployment_alone() {
        adopt_orphans().expect("a subreaper");
        let mut family = Family::new("mine".to_owned());
        let command = Command::new("setsid")
            .args(["sh", "-c", "sleep 60 >/dev/null & echo $!"])
            .env(MARK, "mine")
            .stdout(Stdio::piped())
            .spawn();
        let mut parent = command.expect("setsid");
        let mut line = String::new();
        let mut output = BufReader::new(parent.stdout.take().expect("its output"));
        while output.read_line(&mut line).expect("its output") > 0 {}
        let daemon: i32 = line.trim().parse().expect("a process id");
        let pids = [parent.id() as i32, daemon];
        let known = |family: &mut Family| -> Vec<i32> {
            let members = family.members().into_iter().map(|member| member.pid);
            members.filter(|pid| pids.contains(pid)).collect()
        };
        let of_another = known(&mut Family::new("another".to_owned()));
        let of_its_own = known(&mut family);
        kill_process(Pid::from_raw(daemon).expect("a process id"), Signal::KILL).expect("killed");
        let _ = parent.wait(); // the family may have waited for it
        assert_eq!(of_another, Vec::<i32>::new());
        assert!(of_its_own.contains(&daemon), "{of_its_own:?}");
    }
}
