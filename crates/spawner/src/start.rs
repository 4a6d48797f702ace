//! Starting processes: the server without any of root's rights, and processes of the applications' users. All of them run
//! this process's own program, whatever stands at its path by now: nothing that belongs to an application can hold the
//! start up.
//!
//! They run it as root, and become the user there ([`become_user`]). A process that became the user earlier could be stopped by
//! that user's others before it runs the program, and its starter waits for that.

use crate::exec;
use crate::message::Role;
use highball_users::User;
use rustix::process::{pidfd_open, setsid, Pid, PidfdFlags};
use rustix::thread::{
    capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, CapabilitySet,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The variables that name the server's ends of the two sockets.
pub const ORDERS: &str = "HIGHBALL_SPAWNER_ORDERS_FD";
/// See [`ORDERS`].
pub const NEWS: &str = "HIGHBALL_SPAWNER_NEWS_FD";
/// The variable in which the process that reads the configuration finds its socket.
pub const READER: &str = "HIGHBALL_READER_FD";
/// The variable by which a process that watches certificates finds its socket.
pub const WATCHER: &str = "HIGHBALL_WATCHER_FD";
/// The variable by which a process that reads the table finds its socket.
pub const TABLE: &str = "HIGHBALL_TABLE_FD";
/// The variable by which such processes know applications whose file systems do not answer: their paths, one in a line.
const SILENT: &str = "HIGHBALL_SILENT";
/// What the server calls itself.
pub const SERVER_TITLE: &str = "highball: server";
/// The variable with the numbers of the user that a new process becomes first of all: `uid gid group…`.
const USER: &str = "HIGHBALL_BECOMES_USER";
/// This process's own program.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// What a mold or a companion has more in `oom_score_adj` than the server.
const OOM_SCORE_OF_APPLICATIONS: i32 = 100;

impl Role {
    /// Whether such a process runs what the application says: it is in the application's cgroup, and killed before the server.
    pub(crate) fn runs_code_of_application(self) -> bool {
        match self {
            Role::Mold | Role::Companion => true,
            Role::Opener => false,
        }
    }

    /// The variable in which the new process finds its socket.
    pub fn variable(self) -> &'static str {
        match self {
            Role::Mold => "HIGHBALL_MOLD_FD",
            Role::Opener => "HIGHBALL_OPENER_FD",
            Role::Companion => "HIGHBALL_COMPANION_FD",
        }
    }

    /// What the new process calls itself at first: a mold, until it has found its application.
    pub fn title(self) -> &'static str {
        match self {
            Role::Mold => "highball: mold",
            Role::Opener => "highball: opener",
            Role::Companion => "highball: companion",
        }
    }
}

/// Starts the server: with the arguments and the environment of this process, as an unprivileged user.
pub(crate) fn server(
    user: &User,
    orders: OwnedFd,
    news: OwnedFd,
    handover: Option<(&str, OwnedFd)>,
) -> io::Result<Pid> {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg0(SERVER_TITLE).args(std::env::args_os().skip(1)).stdin(Stdio::null());
    becomes(&mut command, user);
    let inherited = [(ORDERS, orders), (NEWS, news)].into_iter().chain(handover);
    inherited.for_each(|(variable, descriptor)| exec::inherits(&mut command, variable, descriptor));
    Ok(Pid::from_child(&command.spawn()?))
}

/// Starts a process that reads the configuration, by the arguments and the environment of this one, for the server. It reads
/// what applications say too, and so is not this process.
pub(crate) fn reader(socket: OwnedFd, silent: &[PathBuf]) -> io::Result<Pid> {
    by_own_arguments("highball: configuration", READER, socket, silent)
}

/// Starts a process that reads the files of certificates when they change, in the same way.
pub(crate) fn watcher(socket: OwnedFd) -> io::Result<Pid> {
    by_own_arguments("highball: certificates", WATCHER, socket, &[])
}

/// Starts a process that reads the table for this one, in the same way: it looks where paths of applications lead, which may
/// take for ever.
pub(crate) fn table_reader(socket: OwnedFd, silent: &[PathBuf]) -> io::Result<Pid> {
    by_own_arguments("highball: table", TABLE, socket, silent)
}

/// Applications that are `silent` are left alone.
fn by_own_arguments(title: &str, variable: &str, socket: OwnedFd, silent: &[PathBuf]) -> io::Result<Pid> {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg0(title).args(std::env::args_os().skip(1));
    // One whose path has a line break is looked at, which takes its time.
    let lines = silent.iter().map(|path| path.as_os_str()).filter(|path| !path.as_bytes().contains(&b'\n'));
    command.env(SILENT, lines.collect::<Vec<_>>().join(OsStr::new("\n")));
    exec::inherits(&mut command, variable, socket);
    Ok(Pid::from_child(&command.spawn()?))
}

/// The applications that this process is to leave alone, where it was started to read something for another. To be called before
/// there are threads.
pub fn take_silent() -> Vec<PathBuf> {
    let lines = std::env::var_os(SILENT).unwrap_or_default();
    std::env::remove_var(SILENT);
    let paths = lines.as_bytes().split(|byte| *byte == b'\n').filter(|path| !path.is_empty());
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// Starts a process as this user, or as root where none is given, with an empty environment and a socket on which the
/// server tells it what to do. One of a user has nothing else of root's: no terminal, output or folder. It is in the
/// `cgroup` from the start, if there is one.
///
/// # Errors
/// The system refuses it.
pub fn as_user(
    user: Option<&User>,
    role: Role,
    socket: OwnedFd,
    cgroup: Option<OwnedFd>,
) -> io::Result<(Pid, OwnedFd)> {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg0(role.title()).env_clear();
    if let Some(cgroup) = cgroup {
        exec::enters(&mut command, cgroup);
    }
    if let Some(user) = user {
        becomes(&mut command, user);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    }
    exec::inherits(&mut command, role.variable(), socket);
    let started = held(&mut command)?;
    if role.runs_code_of_application() {
        kill_before_server(started.0);
    }
    Ok(started)
}

/// Where memory is exhausted, the kernel is to kill a process of the application before the server. What a privileged process
/// sets, the application cannot lower any more; `lib/highball/oom_score.rb` has the numbers.
fn kill_before_server(pid: Pid) {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj")
        .ok()
        .and_then(|text| text.trim().parse::<i32>().ok());
    let file = format!("/proc/{}/oom_score_adj", pid.as_raw_pid());
    let more = own.unwrap_or(0).saturating_add(OOM_SCORE_OF_APPLICATIONS).min(1000);
    let _ = std::fs::write(file, more.to_string()); // a container may forbid it
}

/// Has the new process become this user. It gets its own session, as with `login`: a process that shares a terminal
/// could type into it, as root.
fn becomes(command: &mut Command, user: &User) {
    let numbers = [user.uid, user.gid].into_iter().chain(user.groups.iter().copied());
    command.env(USER, numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" "));
    exec::before(command, || Ok(setsid().map(drop)?));
}

/// Becomes the user as whom this process was started by one of root's, if it was. To be called before there are threads,
/// and before anything is done for that user.
///
/// # Errors
/// The system refuses it: this process must not go on.
pub fn become_user() -> io::Result<()> {
    let Some(text) = std::env::var_os(USER) else { return Ok(()) };
    std::env::remove_var(USER);
    let numbers: Option<Vec<u32>> =
        text.to_str().and_then(|text| text.split(' ').map(|number| number.parse().ok()).collect());
    let Some([uid, gid, groups @ ..]) = numbers.as_deref() else {
        return Err(io::Error::other(format!("{USER} names no user")));
    };
    if std::env::var_os(ORDERS).is_some() {
        give_up_capabilities()?; // before: it needs rights that go with the user
    }
    highball_users::become_user(*uid, *gid, groups)
}

/// Runs the command, and holds its process.
pub(crate) fn held(command: &mut Command) -> io::Result<(Pid, OwnedFd)> {
    let pid = Pid::from_child(&command.spawn()?);
    Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)) // it is not reaped before
}

/// No program that this process runs can get any capability again. What goes with the user anyway is taken here too.
fn give_up_capabilities() -> io::Result<()> {
    for number in 0..64 {
        // It fails beyond the kernel's last capability, and for a root that may not do this: then the user's rights
        // and no_new_privs have to do.
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number));
    }
    let _ = clear_ambient_capability_set();
    if let Ok(mut sets) = capabilities(None) {
        sets.inheritable = CapabilitySet::empty();
        let _ = set_capabilities(None, sets);
    }
    Ok(set_no_new_privs(true)?)
}
