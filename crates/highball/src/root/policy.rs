//! Where root starts the server: the process that stays root, and what it may be ordered to do.

use crate::apps::cgroups;
use crate::apps::source::is_given_as_object;
use crate::control::places::ControlPlaces;
use crate::control::socket::{InstanceSocket, MadeSocket};
use crate::output::complain;
use crate::process::environment::variable;
use crate::process::event_loop::event_loop;
use crate::process::pidfile::Pidfile;
use crate::process::{service_notification, started_path};
use crate::root::reading::{pass_at_last, passed, read_configuration};
use highball_config::{asks_to_serve, root_table, Bind, RootTable, RunsAs, Settings, TableApp, User};
use highball_front as front;
use highball_spawner::policy::{Policy, Refusal, Runner, Successor};
use highball_spawner::spawner::{table_reader, Spawner, HANDOVER, TABLE_TIME};
use highball_spawner::{exec, take_silent, ServiceState};
use highball_supervisor::{Launcher, Predecessor};
use highball_users::may_change_users;
use highball_users::trust::why_not_roots;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::process::{geteuid, getppid, kill_process, waitpid, Pid, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The user of the server, unless another one is named.
const SERVER_USER: &str = "highball";
/// And where there is none of this name: a number that owns nothing.
const NOBODY: u32 = 65534;

/// Stays root for the server, where root starts it for applications of others, until it has ended. `None`: this process
/// is itself the server, or does something else. To be called before there are threads.
pub(crate) fn stay_root() -> Option<ExitCode> {
    if !may_change_users() || is_given_as_object() {
        return None;
    }
    let failed = |error: &dyn std::fmt::Display| {
        complain(error);
        Some(ExitCode::FAILURE)
    };
    if !asks_to_serve(std::env::args_os()) {
        return None;
    }
    let (reader, table) = match read_table_apart() {
        Ok((reader, Some(table))) => (reader, table),
        // This says what is wrong with it.
        Ok((reader, None)) => match read_table(&[]) {
            Ok(table) => (reader, table?),
            Err(error) => return Some(misread(error)),
        },
        Err(error) => return failed(&format!("root's configuration cannot be read: {error}")),
    };
    let user = match server_user(&table) {
        Ok(user) => user,
        Err(why) => return failed(&why),
    };
    cgroups::set_up(table.apps.iter().map(|app| app.limits));
    let user = user?;
    let handover = match exec::take(HANDOVER) {
        Ok(handover) => handover,
        Err(error) => return failed(&error),
    };
    let policy = RootPolicy::new(table, user.uid, handover.is_some());
    match cgroups::telling_server(|| Spawner::start(policy, &user, handover)) {
        Ok(mut spawner) => {
            reader.into_iter().for_each(|process| spawner.has_table_reader(process));
            Some(ExitCode::from(spawner.run()))
        }
        Err(error) => failed(&format!("cannot start the server as the user {user}: {error}")),
    }
}

/// Why this process is root although another user is named for it: root cannot change users in every container.
pub(crate) fn cannot_become_server_user(settings: &Settings, launcher: &Launcher) -> Option<String> {
    let name = settings.server_user.as_ref()?;
    let stays_root = matches!(launcher, Launcher::Direct) && geteuid().is_root() && !may_change_users();
    let is_another = User::of(name).is_none_or(|user| user.uid != 0);
    (stays_root && is_another).then(|| {
        format!(
            "the server cannot run as {name} (server_user), as this root may not change users: start it as {name}, or set \
             server_user = \"root\""
        )
    })
}

/// Root's configuration cannot be read: the usual way of reading it has the better error message.
fn misread(error: highball_config::ConfigError) -> ExitCode {
    let (error, code) = match read_configuration(&Launcher::Direct) {
        Err(error) => (error.to_string(), error.exit_code()),
        Ok(_) => (error.to_string(), error.exit_code()),
    };
    if let Ok(Some(predecessor)) = Predecessor::from_environment() {
        predecessor.failed(&format!("the new process cannot read its configuration: {error}"));
    }
    complain(error);
    ExitCode::from(code)
}

fn read_table(known: &[PathBuf]) -> Result<Option<RootTable>, highball_config::ConfigError> {
    root_table(std::env::args_os(), &variable, known)
}

/// Has another process read the table: the file system of an application may never answer, and this one would not end then.
/// No table: something is wrong with it. Also returns that process if it still waits.
fn read_table_apart() -> io::Result<(Option<Pid>, Option<RootTable>)> {
    exec::close_all_on_exec()?;
    let (process, socket) = table_reader(&[])?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TABLE_TIME))?;
    let table = passed::<RootTable>(&socket);
    if matches!(&table, Ok(Some(table)) if table.silent.is_empty()) {
        let _ = waitpid(Some(process), WaitOptions::empty()); // it has passed the table last of all
        return Ok((None, table?));
    }
    let _ = kill_process(process, Signal::KILL); // it may end much later; the spawner or the supervisor reaps it
    Ok((Some(process), table?))
}

/// Reads the table for the spawner, and ends.
pub(crate) fn read_for_spawner(socket: &OwnedFd) -> ExitCode {
    // What is wrong with it, the server says, which reads it too.
    let Ok(Some(table)) = read_table(&take_silent()) else { return ExitCode::FAILURE };
    pass_at_last(socket, &table, "the table of root's")
}

/// The user that the server runs as; `None`: root.
fn server_user(table: &RootTable) -> Result<Option<User>, String> {
    let user = match table.server_user.as_deref() {
        Some(name) => User::of(name)
            .ok_or_else(|| format!("option server_user: {}", highball_config::no_such_user(name)))?,
        // Where all applications are root's, an attacker in the server is root anyway.
        None if table.apps.iter().all(|app| app.runs_as.another().is_none()) => return Ok(None),
        None => User::of(SERVER_USER).unwrap_or_else(|| User::with_uid(NOBODY, NOBODY)),
    };
    match table.apps.iter().find(|app| is_user(&app.runs_as, user.uid)) {
        Some(app) => Err(shares_user(&user.name, &app.path.display().to_string())),
        None => Ok(Some(user).filter(|user| user.uid != 0)),
    }
}

/// Whether an application runs as this user, who is not root.
pub(crate) fn is_user(runs_as: &RunsAs, uid: u32) -> bool {
    runs_as.another().is_some_and(|user| user.uid == uid)
}

/// Why an application cannot run as the user of the server: it could stop it, and take up what that user may have.
pub(crate) fn shares_user(user: &str, app: &str) -> String {
    format!(
        "{app} runs as {user}, and so does the server: this application could stop all others. Give the server its own user \
         (adduser --system --group highball-server; server_user = \"highball-server\"), or give the application another one"
    )
}

/// The table, and what was made by it.
#[derive(Debug)]
pub(crate) struct RootPolicy {
    table: RootTable,
    runners: BTreeMap<PathBuf, Runner>,
    /// The number of the server's user.
    server: u32,
    /// What is started for a hot restart: the path at the start, as the program there may be replaced, or missing for a moment.
    program: Option<PathBuf>,
    /// Why that is refused from the start: a script of root's runs this program, and others than root may change it.
    not_roots: Option<String>,
    /// Whether the server is to take over from another one.
    succeeds: bool,
    has_handed_over: bool,
    pidfile: Option<Pidfile>,
    sockets: Vec<front::SocketPath>,
    control_socket: Option<MadeSocket>,
}

impl RootPolicy {
    fn new(table: RootTable, server: u32, succeeds: bool) -> RootPolicy {
        front::close_other_activated(table.binds.iter()).iter().for_each(complain);
        RootPolicy {
            runners: runners(&table, server),
            server,
            table,
            program: started_path::started_path(),
            not_roots: changed_by_others(),
            succeeds,
            has_handed_over: false,
            pidfile: None,
            sockets: Vec::new(),
            control_socket: None,
        }
    }

    /// Runs a temporary event loop: the other side may be another server, which answers at once.
    fn make_control_socket(&self) -> io::Result<(OwnedFd, Option<MadeSocket>)> {
        let predecessor = getppid().filter(|_| self.succeeds).map(Pid::as_raw_pid);
        let made = event_loop()?.block_on(async {
            InstanceSocket::open(&ControlPlaces::of_server(), predecessor).await?.into_parts()
        })?;
        Ok(made)
    }

    fn unix_binds(&self) -> impl Iterator<Item = &Path> {
        self.table.binds.iter().filter_map(Bind::unix_path)
    }
}

/// Why a launcher of root's is not to be started again: what it leads to may be another user's, as this program is.
fn changed_by_others() -> Option<String> {
    started_path::launcher()?;
    let program = std::env::current_exe().ok()?;
    let why = why_not_roots(&program)?;
    Some(not_started(&program, &why))
}

fn not_started(program: &Path, why: &str) -> String {
    format!(
        "root does not start {}, as {why}: give it and its folders to root, and let no other user write to them",
        program.display()
    )
}

/// Who the applications run as. None that would run as the server's user is started.
fn runners(table: &RootTable, server: u32) -> BTreeMap<PathBuf, Runner> {
    let runner = |runs_as: &RunsAs| match runs_as {
        RunsAs::Starter | RunsAs::RootUnasked => Runner::Root,
        RunsAs::User(user) => Runner::User(user.clone()),
    };
    let others = table.apps.iter().filter(|app| !is_user(&app.runs_as, server));
    others.map(|app| (app.path.clone(), runner(&app.runs_as))).collect()
}

impl Policy for RootPolicy {
    fn listen(&mut self, address: &str) -> Result<OwnedFd, Refusal> {
        let bind = self.table.binds.iter().find(|bind| bind.to_string() == address);
        let bind = bind.ok_or_else(Refusal::not_in_table)?;
        let (socket, path) = front::bind(bind).map_err(Refusal::because)?.into_parts();
        if let Some(path) = path {
            // It replaces the earlier one.
            self.sockets.retain(|socket| socket.path() != path.path());
            self.sockets.push(path);
        }
        Ok(socket)
    }

    fn leave(&mut self, address: &str) -> Result<(), Refusal> {
        let bind = self.table.binds.iter().find(|bind| bind.to_string() == address);
        let path = bind.and_then(Bind::unix_path).ok_or_else(Refusal::not_in_table)?.to_owned();
        self.sockets.retain(|socket| socket.path() != path);
        Ok(())
    }

    fn open_log(&mut self, path: &Path) -> Result<OwnedFd, Refusal> {
        if !self.table.logs.iter().any(|log| log == path) {
            return Err(Refusal::not_in_table());
        }
        front::open_log_of_root(path).map_err(Refusal::because)
    }

    fn write_pidfile(&mut self) -> Result<(), Refusal> {
        let Some(path) = &self.table.pidfile else { return Ok(()) };
        let write = if self.succeeds { Pidfile::write } else { Pidfile::claim };
        self.pidfile = Some(write(path).map_err(Refusal::because)?);
        Ok(())
    }

    fn open_control_socket(&mut self) -> Result<OwnedFd, Refusal> {
        let (socket, made) = self.make_control_socket()?;
        self.control_socket = made;
        // From here on the server serves, and this process looks after the paths of sockets that another one has made.
        if self.succeeds {
            self.sockets.extend(self.unix_binds().map(front::SocketPath::inherited).collect::<Vec<_>>());
        }
        self.sockets.iter().for_each(|path| path.stays(false));
        Ok(socket)
    }

    fn runner(&self, app: &Path) -> Option<&Runner> {
        self.runners.get(app)
    }

    fn cgroup(&self, app: &Path) -> Result<Option<OwnedFd>, Refusal> {
        let known = self.table.apps.iter().find(|known| known.path == app);
        let limits = known.map(|known| known.limits).unwrap_or_default();
        Ok(highball_cgroups::current().map(|cgroups| cgroups.entrance(app, limits)).transpose()?)
    }

    fn successor(&self) -> Result<Successor, Refusal> {
        let program = self.program.clone().ok_or_else(|| Refusal::because("its program is not known"))?;
        if let Some(why) = &self.not_roots {
            return Err(Refusal::because(why));
        }
        program.metadata()?; // where it is missing, others may be able to put one there
        if let Some(why) = why_not_roots(&program) {
            return Err(Refusal::because(not_started(&program, &why)));
        }
        Ok(Successor { program, arguments: std::env::args_os().collect() })
    }

    fn tell(&mut self, state: ServiceState) -> Result<(), Refusal> {
        self.has_handed_over |= matches!(state, ServiceState::HandedOver(_));
        Ok(service_notification::notify(state)?)
    }

    fn read_again(&mut self, socket: &OwnedFd) {
        let Ok(Some(RootTable { logs, mut apps, silent, .. })) = passed(socket) else { return };
        let before = self.table.apps.iter().filter(|app| silent.contains(&app.path));
        apps.extend(before.cloned());
        change_limits(&self.table.apps, &apps);
        (self.table.logs, self.table.apps, self.table.silent) = (logs, apps, silent);
        self.runners = runners(&self.table, self.server);
    }

    fn silent(&self) -> &[PathBuf] {
        &self.table.silent
    }

    fn child_ended(&mut self) {
        highball_cgroups::current().inspect(|cgroups| cgroups.child_ended());
    }

    fn end(&mut self) {
        self.pidfile = None;
        self.control_socket = None;
        self.sockets.iter().for_each(|path| path.stays(self.has_handed_over));
        self.sockets.clear();
    }

    fn all_ended(&mut self) {
        highball_cgroups::current().inspect(|cgroups| cgroups.end());
    }
}

/// Root's configuration has other limits, or other applications.
fn change_limits(old: &[TableApp], new: &[TableApp]) {
    let Some(cgroups) = highball_cgroups::current() else { return };
    for app in new {
        if let Err(error) = cgroups.change(&app.path, app.limits) {
            complain(format_args!("the limits of {} stay as they were: {error}", app.path.display()));
        }
    }
    let has_left = |app: &&TableApp| !new.iter().any(|other| other.path == app.path);
    old.iter().filter(has_left).for_each(|app| cgroups.leave(&app.path));
}
