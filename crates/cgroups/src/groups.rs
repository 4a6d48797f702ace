//! Making the cgroups, and entering them.

use crate::figures::Figures;
use crate::limits::{CpuMax, Limits};
use crate::place;
use rustix::event::{poll, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The cgroup of the server.
pub const SERVER: &str = "highball.server";
/// What the names of the applications' cgroups begin with.
const APP: &str = "highball.app-";
/// The longest name of a folder, in bytes.
const NAME_BYTES: usize = 255;
/// What the server gets of the CPUs, compared to an application (100), where they do not suffice: all requests depend on it.
const SERVER_WEIGHT: &str = "1000";
/// Other processes that an error names.
const NAMED_PROCESSES: usize = 5;

/// The time that a process may take to end after it is not listed any more.
const END_TIME: Duration = Duration::from_secs(1);
const END_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// What limits are kept by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Cpu,
    Memory,
}

impl Controller {
    const ALL: [Controller; 2] = [Controller::Cpu, Controller::Memory];

    fn name(self) -> &'static str {
        match self {
            Controller::Cpu => "cpu",
            Controller::Memory => "memory",
        }
    }

    fn is_wanted(self, limits: Limits) -> bool {
        match self {
            Controller::Cpu => limits.cpu.is_some(),
            Controller::Memory => limits.memory.is_some(),
        }
    }

    /// Whether a file such as `cgroup.controllers` lists it.
    pub(crate) fn is_in(self, list: &str) -> bool {
        list.split_whitespace().any(|name| name == self.name())
    }
}

/// Why limits cannot be kept, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(pub String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What to do where this process may not make cgroups: problems of that kind end with it.
pub const REMEDY: &str = "With systemd, write `Delegate=yes` into the [Service] of its unit, without ProtectControlGroups=yes (to try it: \
                      systemd-run -p Delegate=yes …). In a container, limit the container instead, or give it a writable \
                      and private /sys/fs/cgroup (docker run --privileged --cgroupns=private). See docs/hard-limits.md.";

/// The cgroups of a server.
#[derive(Debug)]
pub struct Cgroups {
    /// The cgroup that they are in.
    base: PathBuf,
    /// What the limits in them are kept by.
    controllers: Vec<Controller>,
    /// Controllers that this server, or its predecessor, has added.
    added: Vec<Controller>,
    /// Applications that were removed, whose processes may not have ended yet.
    leaving: Mutex<BTreeSet<PathBuf>>,
}

impl Cgroups {
    /// Makes the cgroup of the server, and moves this process there. Applications may have limits then: those `wanted`, and
    /// others later. The result has problems beside it where some cannot be kept. To be called before this process has
    /// started others.
    ///
    /// # Errors
    /// None can be kept; this process is where it was.
    pub fn set_up(wanted: &[Limits]) -> Result<(Cgroups, Option<Problem>), Problem> {
        let Plan { own, base, found, problem } = plan(wanted)?;
        let cgroups = Cgroups::begin(&own, base, found)?;
        cgroups.remove_empty();
        Ok((cgroups, problem))
    }

    /// The groups that this process is in as (part of) the server. It may lack the right to change them.
    pub fn of_server() -> Option<Cgroups> {
        let own = place::own().ok()??;
        let base = base_of(&own);
        if base == own {
            return None;
        }
        let enabled = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
        let controllers =
            Controller::ALL.into_iter().filter(|controller| controller.is_in(&enabled)).collect();
        Some(Cgroups { base, controllers, added: Vec::new(), leaving: Mutex::default() })
    }

    /// Moves this process to the cgroup of the server, and gives the cgroups beside it their controllers.
    fn begin(own: &Path, base: PathBuf, controllers: Vec<Controller>) -> Result<Cgroups, Problem> {
        let server = base.join(SERVER);
        let before = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
        let is_successor = own == server;
        if !is_successor {
            let entered = make(&server).and_then(|()| write(&server, "cgroup.procs", "0"));
            entered.map_err(|error| {
                let _ = fs::remove_dir(&server); // if it was made
                not_made(&base, &error)
            })?;
        }
        let is_added = |controller: &Controller| is_successor || !controller.is_in(&before);
        let added = controllers.iter().copied().filter(is_added).collect();
        let cgroups = Cgroups { base, controllers, added, leaving: Mutex::default() };
        for controller in &cgroups.controllers {
            if let Err(error) =
                write(&cgroups.base, "cgroup.subtree_control", &format!("+{}", controller.name()))
            {
                let problem = cgroups.not_enabled(&error);
                cgroups.end();
                return Err(problem);
            }
        }
        let _ = write(&server, "cpu.weight", SERVER_WEIGHT); // without the controller there is no weight
        Ok(cgroups)
    }

    /// Why cgroups in the base get no controllers.
    fn not_enabled(&self, error: &io::Error) -> Problem {
        if error.raw_os_error() != Some(Errno::BUSY.raw_os_error()) {
            let base = self.base.display();
            return Problem(format!("cgroups in {base} get no limits: {error}. {REMEDY}"));
        }
        beside_others(&self.base, &processes_in(&self.base))
    }

    /// The file by which a process enters the cgroup of the application at this path: it writes `0`. The cgroup has these limits
    /// from here on.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn entrance(&self, app: &Path, limits: Limits) -> io::Result<OwnedFd> {
        let folder = self.folder(app)?;
        self.leaving().remove(app);
        // A server that is ending may remove it in between.
        let open = || {
            make(&folder)
                .and_then(|()| self.limit(&folder, limits))
                .and_then(|()| open(&folder, "cgroup.procs"))
        };
        let file = open().or_else(|_| open());
        file.map(OwnedFd::from).map_err(|error| {
            io::Error::new(error.kind(), format!("the application's cgroup {}: {error}", folder.display()))
        })
    }

    /// Has the cgroup of the application at this path follow these limits, if there is one.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn change(&self, app: &Path, limits: Limits) -> io::Result<()> {
        let folder = self.folder(app)?;
        if folder.is_dir() {
            self.limit(&folder, limits)?;
        }
        Ok(())
    }

    /// What the kernel says of the cgroup of the application at this path.
    pub fn figures(&self, app: &Path) -> Option<Figures> {
        Figures::of(&self.folder(app).ok()?)
    }

    /// The application at this path is removed: its cgroup is, when its processes have ended.
    pub fn leave(&self, app: &Path) {
        self.leaving().insert(app.to_owned());
        self.child_ended();
    }

    /// A process has ended. It may have been the last one of an application that was removed.
    pub fn child_ended(&self) {
        let is_in_use = |app: &PathBuf| {
            let Ok(folder) = self.folder(app) else { return false };
            fs::remove_dir(folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        };
        self.leaving().retain(is_in_use);
    }

    fn leaving(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server is about to end, and its applications have: nothing stays. Where there is a successor, what it uses does.
    pub fn end(&self) {
        self.remove_empty();
        let server = self.base.join(SERVER);
        let processes = fs::read_to_string(server.join("cgroup.procs")).unwrap_or_default();
        if processes.lines().count() != 1 {
            return;
        }
        // A cgroup whose controllers are for others may have no processes: this one goes back without them.
        for controller in &self.added {
            let _ = write(&self.base, "cgroup.subtree_control", &format!("-{}", controller.name()));
        }
        if write(&self.base, "cgroup.procs", "0").is_ok() {
            remove(&server);
        }
    }

    /// Removes applications' cgroups without processes. Another server's have some, or it makes them again.
    fn remove_empty(&self) {
        let Ok(entries) = fs::read_dir(&self.base) else { return };
        let is_of_app = |name: &Path| name.as_os_str().as_bytes().starts_with(APP.as_bytes());
        for entry in entries.flatten().filter(|entry| is_of_app(Path::new(&entry.file_name()))) {
            remove(&entry.path());
        }
    }

    fn folder(&self, app: &Path) -> io::Result<PathBuf> {
        Ok(self.base.join(name(app)?))
    }

    fn limit(&self, folder: &Path, limits: Limits) -> io::Result<()> {
        if self.controllers.contains(&Controller::Cpu) {
            put(folder, "cpu.max", &CpuMax::text(limits.cpu))?;
        }
        if self.controllers.contains(&Controller::Memory) {
            let bytes = limits.memory.map_or("max".into(), |bytes| bytes.to_string());
            // First: what is beyond the limit is not swapped out without one. There is no such file where swap is not counted.
            match put(folder, "memory.swap.max", &bytes) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => put(folder, "memory.max", &bytes)?,
            }
        }
        Ok(())
    }
}

/// What is going to be made.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The cgroup of this process.
    pub(crate) own: PathBuf,
    /// The group for the other processes.
    pub(crate) base: PathBuf,
    /// What limits can be kept by.
    pub(crate) found: Vec<Controller>,
    /// Why some cannot be kept, if so.
    pub(crate) problem: Option<Problem>,
}

/// How these limits can be kept. Nothing is changed.
///
/// # Errors
/// None of them can be.
pub(crate) fn plan(wanted: &[Limits]) -> Result<Plan, Problem> {
    let own = place::own().map_err(|error| Problem(format!("cannot find its cgroup: {error}")))?;
    let own = own.ok_or_else(|| {
        Problem(format!(
            "there is no version 2 of cgroups here, or it does not show the cgroup of this process. Current \
             distributions have it; others need the kernel parameter systemd.unified_cgroup_hierarchy=1. {REMEDY}"
        ))
    })?;
    let base = base_of(&own);
    let available = fs::read_to_string(base.join("cgroup.controllers")).unwrap_or_default();
    let is_missing = |controller: &Controller| {
        !controller.is_in(&available) && wanted.iter().any(|limits| controller.is_wanted(*limits))
    };
    let missing: Vec<Controller> = Controller::ALL.into_iter().filter(is_missing).collect();
    let problem = (!missing.is_empty()).then(|| unavailable(&base, &missing, &available));
    let found: Vec<Controller> =
        Controller::ALL.into_iter().filter(|controller| controller.is_in(&available)).collect();
    let is_kept = |limits: &Limits| found.iter().any(|controller| controller.is_wanted(*limits));
    if base == own && !wanted.iter().any(is_kept) {
        return Err(problem.unwrap_or_else(|| Problem("no limit is wanted".into())));
    }
    Ok(Plan { own, base, found, problem })
}

/// The ids of the processes in this cgroup.
pub(crate) fn processes_in(folder: &Path) -> Vec<String> {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    processes.lines().map(str::to_owned).collect()
}

/// A cgroup that has processes gives those in it no controllers.
pub(crate) fn beside_others(base: &Path, processes: &[String]) -> Problem {
    let named = &processes[..processes.len().min(NAMED_PROCESSES)];
    Problem(format!(
        "other processes are in the cgroup {}, in which Highball was started ({}): start it in a separate cgroup. {REMEDY}",
        base.display(),
        named.join(", ")
    ))
}

/// This process may not do it.
pub(crate) fn not_made(base: &Path, error: &io::Error) -> Problem {
    Problem(format!("this process cannot make cgroups in {}: {error}. {REMEDY}", base.display()))
}

/// The cgroup that those of a server are in, whose process is in this one.
fn base_of(own: &Path) -> PathBuf {
    let parent = own.parent().filter(|_| own.ends_with(SERVER));
    parent.unwrap_or(own).to_owned()
}

fn unavailable(base: &Path, missing: &[Controller], available: &str) -> Problem {
    let names: Vec<&str> = missing.iter().map(|controller| controller.name()).collect();
    let has = if available.trim().is_empty() { "none" } else { available.trim() };
    let (base, names) = (base.display(), names.join(" and "));
    Problem(format!(
        "the controller {names} is not available in {base} (it has: {has}). A machine that has version 1 of cgroups beside version 2 \
         keeps its controllers there: the kernel's parameter systemd.unified_cgroup_hierarchy=1 changes that. {REMEDY}"
    ))
}

/// The name of an application's cgroup. No two paths have the same, and none leads elsewhere: of `/srv/my-blog` it is
/// `highball.app-srv-my\x2dblog` (as systemd-escape(1) does it). Applications choose no part of it: their paths are given by
/// the configuration of the server.
fn name(app: &Path) -> io::Result<String> {
    let mut name = String::from(APP);
    for byte in app.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or(app.as_os_str().as_bytes()) {
        match byte {
            b'/' => name.push('-'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => name.push(char::from(*byte)),
            other => name.push_str(&format!("\\x{other:02x}")),
        }
    }
    if name.len() > NAME_BYTES {
        let why = format!("the path {} is too long for the name of a cgroup", app.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(name)
}

/// Makes a cgroup, if it is not there.
fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Removes a cgroup, unless it has processes. Waits for ending processes, which are not listed any more.
fn remove(folder: &Path) {
    let until = Instant::now() + END_TIME;
    let is_ending =
        || fs::read_to_string(folder.join("cgroup.procs")).is_ok_and(|processes| processes.is_empty());
    while fs::remove_dir(folder).is_err() && is_ending() && Instant::now() < until {
        let _ = poll(&mut [], Some(&END_PAUSE));
    }
}

/// Without waiting until memory beyond a new limit is freed, where the kernel can do that aside (Linux 6.15).
fn open(folder: &Path, file: &str) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    OpenOptions::new().write(true).custom_flags(flags).open(folder.join(file))
}

fn write(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    open(folder, file)?.write_all(text.as_bytes())
}

/// Writes what is not there already.
fn put(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    if fs::read_to_string(folder.join(file))?.trim() == text {
        return Ok(());
    }
    write(folder, file, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(path: &str) -> String {
        name(Path::new(path)).unwrap()
    }

    #[test]
    fn a_name_stands_for_one_path_and_leads_nowhere() {
        assert_eq!(name_of("/srv/blog"), "highball.app-srv-blog");
        assert_eq!(name_of("/srv/my-blog/current"), r"highball.app-srv-my\x2dblog-current");
        let alike =
            ["/srv/a-b", "/srv/a/b", "/srv/a\\x2db", "/srv/a//b", "/srv/a\nb", "/srv/a/../b", "srv/a b"];
        for (index, path) in alike.iter().enumerate() {
            let found = name_of(path);
            assert!(found.starts_with(APP) && !found.contains('/'), "{found}");
            assert!(alike[..index].iter().all(|other| name_of(other) != found), "{found}");
        }
        assert!(name(Path::new(&format!("/{}", "a".repeat(300)))).is_err());
    }

    #[test]
    fn a_server_in_its_cgroup_is_beside_its_applications() {
        let base = PathBuf::from("/sys/fs/cgroup/system.slice/highball.service");
        assert_eq!(base_of(&base), base);
        assert_eq!(base_of(&base.join(SERVER)), base);
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let Problem(text) = unavailable(Path::new("/sys/fs/cgroup/unified"), &[Controller::Cpu], "hugetlb\n");
        assert!(
            text.contains("the controller cpu is not available in /sys/fs/cgroup/unified (it has: hugetlb)")
        );
        assert!(text.contains("Delegate=yes"));
    }

    /// The folder of a cgroup as the kernel makes it, in an ordinary folder.
    fn double() -> (tempfile::TempDir, Cgroups) {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join(name_of("/srv/blog"));
        fs::create_dir(&folder).unwrap();
        for (file, text) in [
            ("cpu.max", "max 100000\n"),
            ("memory.max", "max\n"),
            ("cgroup.procs", "17\n"),
            ("memory.swap.max", "max\n"),
        ] {
            fs::write(folder.join(file), text).unwrap();
        }
        let cgroups = Cgroups {
            base: base.path().to_owned(),
            controllers: Controller::ALL.to_vec(),
            added: Vec::new(),
            leaving: Mutex::default(),
        };
        (base, cgroups)
    }

    #[test]
    fn limits_are_written_and_taken_away() {
        let (base, cgroups) = double();
        let read = |file| fs::read_to_string(base.path().join(name_of("/srv/blog")).join(file)).unwrap();
        let limits = Limits { cpu: Some(CpuMax(50)), memory: Some(1 << 30) };
        cgroups.entrance(Path::new("/srv/blog"), limits).unwrap();
        assert!(read("cpu.max").starts_with("50000 100000"));
        assert!(
            read("memory.max").starts_with("1073741824") && read("memory.swap.max").starts_with("1073741824")
        );
        cgroups.change(Path::new("/srv/blog"), Limits::default()).unwrap();
        assert!(read("cpu.max").starts_with("max 100000") && read("memory.max").starts_with("max"));
        cgroups.change(Path::new("/srv/other"), limits).unwrap(); // it has no cgroup
        assert!(!base.path().join(name_of("/srv/other")).exists());
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let (base, cgroups) = double();
        fs::remove_file(base.path().join(name_of("/srv/blog")).join("cpu.max")).unwrap();
        let limits = Limits { cpu: Some(CpuMax(50)), memory: None };
        let error = cgroups.entrance(Path::new("/srv/blog"), limits).unwrap_err();
        assert!(error.to_string().contains("highball.app-srv-blog"), "{error}");
    }

    #[test]
    fn the_cgroup_of_a_removed_application_goes_with_its_last_process() {
        let (base, cgroups) = double();
        let folder = base.path().join(name_of("/srv/other"));
        fs::create_dir_all(folder.join("in use")).unwrap();
        cgroups.leave(Path::new("/srv/other"));
        assert!(folder.exists());
        fs::remove_dir(folder.join("in use")).unwrap();
        cgroups.child_ended();
        assert!(!folder.exists() && cgroups.leaving().is_empty());
    }

    #[test]
    fn cgroups_of_applications_alone_are_removed() {
        let (base, cgroups) = double();
        for other in [SERVER, "system.slice", "highball.app-srv-stale"] {
            fs::create_dir(base.path().join(other)).unwrap();
        }
        cgroups.remove_empty(); // the double's own has files, as one in use has processes
        let mut left: Vec<String> = fs::read_dir(base.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["highball.app-srv-blog", SERVER, "system.slice"]);
    }
}
