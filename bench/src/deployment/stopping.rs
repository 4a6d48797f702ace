//! Stopping a deployment.

use super::readiness::Listener;
use super::{family, Deployment};
use crate::process_tree::Stat;
use crate::Failure;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io};

/// How often processes that end are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the kernel may take to end processes that were killed.
const KILL_TIME: Duration = Duration::from_secs(10);

/// Where the C library keeps shared memory.
const SHARED_MEMORY: &str = "/dev/shm/";

impl Deployment {
    /// What [`Deployment::stop`] promises; nothing when that was done.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        let Some(folder) = self.folder.take() else {
            return Ok(());
        };
        let mut memory = SharedMemory { since: self.made, files: BTreeSet::new() };
        let processes = self.ask_to_end(&mut memory).and_then(|()| self.kill_rest(&mut memory));
        let in_words = |what: String| Failure(format!("{} was not stopped cleanly: {what}", self.title));
        let path = folder.path().to_owned();
        let removed = memory.remove().and_then(|()| folder.close());

        processes.map_err(|Failure(what)| in_words(what))?;
        if Listener::Tcp(self.address()).is_open() {
            return Err(in_words(format!("a process still listens on {}", self.address())));
        }
        removed.map_err(|error| in_words(format!("files are left, maybe in {}: {error}", path.display())))
    }

    /// Signals its first processes, front ends before backends, and gives them the time that the scheme allows.
    fn ask_to_end(&mut self, memory: &mut SharedMemory) -> Result<(), Failure> {
        memory.look_at(&self.members());
        let of_daemons = self.processes.first().map_or(Signal::TERM, |process| process.stop_signal.into());
        let mut roots = Vec::new();
        for process in self.processes.iter().rev().filter(|process| process.ended.is_none()) {
            roots.push((process.child.id() as i32, process.stop_signal.into()));
        }
        let daemons = self.family.heads().into_iter().filter(|head| roots.iter().all(|(pid, _)| pid != head));
        let daemons: Vec<(i32, Signal)> = daemons.map(|pid| (pid, of_daemons)).collect();
        for (pid, signal) in roots.into_iter().chain(daemons) {
            // A process that cannot be signalled is killed, or else reported.
            let _ = family::signal(pid, signal);
        }
        let time = self.processes.iter().map(|process| process.stop_time).max().unwrap_or_default();
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            let living = living(&self.members());
            if living.is_empty() {
                break;
            }
            family::wait_for_end_of_any(&living, LOOK_EVERY)?;
        }
        Ok(())
    }

    /// Kills until no process is left, not even a zombie.
    fn kill_rest(&mut self, memory: &mut SharedMemory) -> Result<(), Failure> {
        let deadline = Instant::now() + KILL_TIME;
        loop {
            let members = self.members();
            if members.is_empty() {
                return Ok(());
            }
            memory.look_at(&members);
            let killed: Result<Vec<()>, _> =
                members.iter().map(|member| family::signal(member.pid, Signal::KILL)).collect();
            if Instant::now() >= deadline {
                let left = members.iter().map(|member| format!("{} ({})", member.pid, member.name));
                let left = left.collect::<Vec<_>>().join(", ");
                let why = killed.err().map_or(String::new(), |error| format!(": {error}"));
                return Err(Failure(format!("these processes could not be killed{why}: {left}")));
            }
            family::wait_for_end_of_any(&living(&members), LOOK_EVERY)?;
        }
    }

    fn members(&mut self) -> Vec<Stat> {
        self.wait_for_roots();
        self.family.members()
    }
}

fn living(members: &[Stat]) -> Vec<i32> {
    members.iter().filter(|member| !member.is_dead).map(|member| member.pid).collect()
}

/// Shared memory with a name, which outlives processes that have to be killed: Apache leaves some when it is
/// ended while it starts.
struct SharedMemory {
    /// When the deployment was made. Other programs' memory is older, or is not mapped by its processes.
    since: SystemTime,
    files: BTreeSet<PathBuf>,
}

impl SharedMemory {
    /// Notes what these processes have mapped.
    fn look_at(&mut self, members: &[Stat]) {
        for member in members {
            // A process that is gone has mapped nothing.
            let maps = fs::read_to_string(format!("/proc/{}/maps", member.pid)).unwrap_or_default();
            let named = maps.lines().filter_map(|line| Some(line.split_at(line.find(SHARED_MEMORY)?).1));
            self.files.extend(named.filter(|name| !name.ends_with(" (deleted)")).map(PathBuf::from));
        }
    }

    fn remove(self) -> io::Result<()> {
        for file in &self.files {
            let is_its_own =
                fs::metadata(file).and_then(|found| found.modified()).is_ok_and(|made| made >= self.since);
            if is_its_own {
                fs::remove_file(file)?;
            }
        }
        Ok(())
    }
}
