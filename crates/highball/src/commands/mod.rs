//! `highball status`, `highball restart`, `highball refork`, `highball upgrade` and `highball stop`: finding the instance
//! that is selected, and asking it. `highball memory` and `highball top` find and ask by the same functions.

use crate::control::asking::{ask, look_for, running, Instance};
use crate::control::elsewhere;
use crate::control::instance::{
    Answer, AppMemoryStatus, AppStatus, CacheStatus, CrashLoopStatus, DomainStatus, MoldStatus,
    OverrunStatus, Question, ReforkStatus, RestartStatus, SizingStatus, Status, TlsStatus, UpgradeStatus,
    WorkerStatus,
};
use crate::control::places::ControlPlaces;
use crate::output::{complain, print, progress};
use crate::process::list::user_name;
use crate::status::kernel_limits::KernelLimitsStatus;
use highball_config::{did_you_mean, AppSelector, Selector};
use highball_text::json;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// How often a restart is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What an instance may take to end, beyond its own time for draining.
const STOP_SLACK: Duration = Duration::from_secs(10);
/// The longest time for draining that is waited for, whatever an instance says.
const LONGEST_DRAIN_SECONDS: u64 = 7 * 24 * 3600;

/// Why a command could not do its work.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error("no Highball runs for this user{0}{1}")]
    NoneRuns(String, String),
    #[error(
        "this was reached{0}, and gave no answer that can be used:\n    {1}\nIts log says more. Without an answer it takes \
         signals: kill -USR1 PID restarts its applications, kill -TERM PID stops it"
    )]
    NoneAnswers(String, String),
    #[error("several instances of Highball run; say which, by --port N or the application's folder:\n{0}")]
    SeveralRun(String),
    #[error("cannot look for instances in {path}: {source}", path = .0.display(), source = .1)]
    Folder(PathBuf, io::Error),
    #[error(transparent)]
    Output(#[from] io::Error),
    #[error("the instance with pid {0} does not answer: {1}")]
    Silent(i32, io::Error),
    #[error("the instance with pid {0} refuses: {1}")]
    Refused(i32, String),
    #[error("the instance with pid {0} does not refork: {1}")]
    NoRefork(i32, String),
    #[error("the refork failed, and the workers are unchanged: {0}")]
    ReforkFailed(String),
    #[error("another refork has begun since, and the result of this one is not kept; see the log")]
    ReforkForgotten,
    #[error("the restart to generation {0} failed; the previous version is still serving.\n{1}")]
    RestartFailed(u32, String),
    #[error("the hot restart failed; the process with pid {0} is still serving.\n{1}")]
    UpgradeFailed(i32, String),
    #[error("the result of the restart to generation {0} is not kept any more; see the log")]
    Forgotten(u32),
    #[error(
        "{0} is one of {1} applications of the server with pid {2}, and this command acts on the \
             whole server: choose it with --port N. (To remove \
             one application, take it out of the configuration, and send HUP.)"
    )]
    OneOfMany(String, usize, i32),
    #[error("not serving: {0}")]
    NotServing(String),
    #[error("it did not work for {0} of {1} applications; see above")]
    NotForAll(usize, usize),
    #[error("the instance with pid {0} has ended before it was done")]
    Ended(i32),
    #[error("the instance with pid {0} did not end within {1} s")]
    StillRuns(i32, u64),
}

/// Prints how the selected instance is doing. Without a selector, people are shown every
/// instance; root those of all users. With `check`, it fails unless the selected applications serve.
pub(crate) fn status(json: bool, check: bool, selector: &Selector) -> Result<(), CommandError> {
    let mut found = selected(selector)?;
    let is_meant = |app: &AppStatus| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app));
    let checked = if check { all_serve(&found, is_meant) } else { Ok(()) };
    if json {
        let one = the_only(&found)?;
        print(&(json::pretty(&one.status) + "\n"))?;
    } else {
        if *selector == Selector::default() && found.iter().all(|instance| instance.other_user.is_none()) {
            found.extend(running(&ControlPlaces::of_others(), |_| false));
        }
        let tables: Vec<String> =
            found.iter().map(|instance| table(&instance.status, &of_user(instance), is_meant)).collect();
        print(&tables.join("\n"))?;
    }
    checked
}

/// Fails unless these applications answer requests: they serve, or are asleep and their next request boots them.
fn all_serve(found: &[Instance], is_meant: impl Fn(&AppStatus) -> bool) -> Result<(), CommandError> {
    // A process that has a successor only finishes what it has.
    let current = found.iter().map(|instance| &instance.status).filter(|status| status.successor.is_none());
    let meant = current.flat_map(|status| &status.apps).filter(|app| is_meant(app));
    let others = meant.filter(|app| !matches!(&app.phase[..], "serving" | "asleep"));
    let names: Vec<String> = others.map(|app| format!("{} is {}", app.name, app.phase)).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(CommandError::NotServing(names.join(", ")))
    }
}

/// Stops the selected instance and waits until it has ended.
pub(crate) fn stop(selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_whole(&found, selector)?;
    announce(instance);
    let pid = instance.status.pid;
    let process = process(pid)?;
    let answer = ask(&instance.address, Question::Stop);
    let drain_seconds = match answer.map_err(|error| CommandError::Silent(pid, error))? {
        Answer::Stopping { drain_seconds, .. } => drain_seconds.min(LONGEST_DRAIN_SECONDS),
        Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
        _ => 0,
    };
    let limit = Duration::from_secs(drain_seconds) + STOP_SLACK;
    if !ends_within(&process, limit).map_err(|error| CommandError::Silent(pid, error))? {
        return Err(CommandError::StillRuns(pid, limit.as_secs()));
    }
    progress(format_args!("highball (pid {pid}) has stopped"));
    Ok(())
}

/// Restarts the selected application, or all of the selected instance, and waits for the result.
pub(crate) fn restart(selector: &Selector) -> Result<(), CommandError> {
    for_each_app(selector, |instance, app| {
        let pid = instance.status.pid;
        let silent = |error| CommandError::Silent(pid, error);
        let generation = match ask(&instance.address, Question::Restart { app }).map_err(silent)? {
            Answer::Restarting { generation, .. } => generation,
            Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
            _ => return Err(silent(io::ErrorKind::InvalidData.into())),
        };
        follow(instance, app, |pid, status| report_on(generation, pid, status))
    })
}

/// Reforks the selected application, or all of the selected instance, and waits for the result.
pub(crate) fn refork(selector: &Selector) -> Result<(), CommandError> {
    for_each_app(selector, |instance, app| {
        let pid = instance.status.pid;
        let silent = |error| CommandError::Silent(pid, error);
        let number = match ask(&instance.address, Question::Refork { app }).map_err(silent)? {
            Answer::Reforking { number, .. } => number,
            Answer::Refused { why } => return Err(CommandError::NoRefork(pid, why)),
            _ => return Err(silent(io::ErrorKind::InvalidData.into())),
        };
        follow(instance, app, |pid, status| report_on_refork(number, pid, status))
    })
}

/// Does it for the selected application; or for each that the selected instance has, one after the other. Those that sleep
/// have nothing to be replaced.
fn for_each_app(
    selector: &Selector,
    act: impl Fn(&Instance, u32) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_only(&found)?;
    announce(instance);
    let all = &instance.status.apps;
    let is_meant = |app: &&AppStatus| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app));
    let (asleep, meant): (Vec<&AppStatus>, Vec<&AppStatus>) =
        all.iter().filter(is_meant).partition(|app| app.phase == "asleep");
    for app in asleep {
        progress(format_args!("{} is asleep; its next request boots the current code", app.name));
    }
    if let ([app], true) = (&meant[..], selector.app.is_some() || all.len() == 1) {
        return act(instance, app.id);
    }
    let mut failed = 0;
    for app in &meant {
        progress(format_args!("{}:", app.name));
        if let Err(error) = act(instance, app.id) {
            complain(format_args!("{}: {error}", app.name));
            failed += 1;
        }
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(CommandError::NotForAll(failed, meant.len()))
    }
}

/// Looks at an application until `report` says that what it was asked for is done, and says where that is meanwhile.
fn follow(
    instance: &Instance,
    app: u32,
    report: impl Fn(i32, &AppStatus) -> Result<Option<String>, CommandError>,
) -> Result<(), CommandError> {
    let pid = instance.status.pid;
    let silent = |error| CommandError::Silent(pid, error);
    let process = process(pid)?;
    let mut before = String::new();
    loop {
        let asked = ask(&instance.address, Question::Status);
        if ends_within(&process, LOOK_EVERY).map_err(silent)? {
            return Err(CommandError::Ended(pid));
        }
        let state = match asked {
            Ok(Answer::Status(status)) if status.pid != pid => return Err(CommandError::Ended(pid)),
            Ok(Answer::Status(status)) => match status.apps.iter().find(|one| one.id == app) {
                Some(app) => report(pid, app)?,
                None => return Err(CommandError::Refused(pid, "the application was removed".into())),
            },
            Ok(_) => return Err(silent(io::ErrorKind::InvalidData.into())),
            // The machine is busy booting: it lives, and will answer when it is asked again.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                continue
            }
            Err(error) => return Err(silent(error)),
        };
        match state {
            None => return Ok(()),
            Some(state) if state != before => {
                progress(stage_words(&state));
                before = state;
            }
            Some(_) => {}
        }
    }
}

/// Replaces the selected instance by a new process, and waits for the result.
pub(crate) fn upgrade(selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_whole(&found, selector)?;
    announce(instance);
    let pid = instance.status.pid;
    let silent = |error| CommandError::Silent(pid, error);
    let process = process(pid)?;
    let number = match ask(&instance.address, Question::Upgrade).map_err(silent)? {
        Answer::Upgrading { number, .. } => number,
        Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
        _ => return Err(silent(io::ErrorKind::InvalidData.into())),
    };
    let mut before = String::new();
    loop {
        let has_ended = ends_within(&process, LOOK_EVERY).map_err(silent)?;
        let upgrade = match ask(&instance.address, Question::Status) {
            // A control socket that was named is the new process's by now.
            Ok(Answer::Status(status)) if status.pid != pid && status.predecessor == Some(pid) => {
                return print_succeeded(status.pid, &status.version);
            }
            Ok(Answer::Status(status)) => status.upgrade.filter(|upgrade| upgrade.number == number),
            Ok(_) => return Err(silent(io::ErrorKind::InvalidData.into())),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                continue
            }
            // It has finished what it had, and is not asked any more.
            Err(_) => match everywhere(|status| status.predecessor == Some(pid))
                .iter()
                .find(|one| one.status.predecessor == Some(pid))
            {
                Some(successor) => return print_succeeded(successor.status.pid, &successor.status.version),
                None if has_ended => return Err(CommandError::Ended(pid)),
                None => continue,
            },
        };
        let Some(UpgradeStatus { state, pid: new, version, failure, .. }) = upgrade else {
            return Err(silent(io::ErrorKind::InvalidData.into()));
        };
        match (state.as_str(), new) {
            ("done", Some(new)) => return print_succeeded(new, &version.unwrap_or_default()),
            ("failed", _) => return Err(CommandError::UpgradeFailed(pid, failure.unwrap_or_default())),
            (now, _) if now != before => {
                progress(upgrade_words(now));
                before = state;
            }
            _ => {}
        }
    }
}

fn print_succeeded(pid: i32, version: &str) -> Result<(), CommandError> {
    progress(format_args!("a new process serves: highball {version} (pid {pid})"));
    Ok(())
}

fn upgrade_words(state: &str) -> &str {
    match state {
        "queued" => "waiting until it can begin",
        "booting" => "starting the new process",
        "taking over" => "letting it accept connections",
        other => other,
    }
}

/// The state of the restart to this generation; `None`: it is done, and that was printed.
fn report_on(generation: u32, pid: i32, status: &AppStatus) -> Result<Option<String>, CommandError> {
    let is_it = |restart: &&RestartStatus| restart.generation == generation;
    let Some(restart) = status.restarts.iter().find(is_it) else {
        return Err(CommandError::Forgotten(generation));
    };
    match (restart.state.as_str(), &restart.failure) {
        ("done", _) => {
            let RestartStatus { generation, seconds, .. } = restart;
            progress(format_args!("generation {generation} serves, after {seconds:.1} s (pid {pid})"));
            Ok(None)
        }
        ("failed", why) => Err(CommandError::RestartFailed(generation, why.clone().unwrap_or_default())),
        (state, _) => Ok(Some(state.into())),
    }
}

/// The state of this refork; `None`: it is done, and that was printed.
fn report_on_refork(number: u32, pid: i32, status: &AppStatus) -> Result<Option<String>, CommandError> {
    let refork = status.refork.as_ref().filter(|refork| refork.number == number);
    let Some(ReforkStatus { state, seconds, failure, worker, .. }) = refork else {
        return Err(CommandError::ReforkForgotten);
    };
    match state.as_str() {
        "done" => {
            let worker = worker.unwrap_or_default();
            progress(format_args!(
                "all workers are forked from what was worker {worker}, after {seconds:.1} s (pid {pid})"
            ));
            Ok(None)
        }
        "failed" | "refused" => Err(CommandError::ReforkFailed(failure.clone().unwrap_or_default())),
        state => Ok(Some(state.into())),
    }
}

/// Holds a process, so that its end is noticed.
fn process(pid: i32) -> Result<OwnedFd, CommandError> {
    Pid::from_raw(pid)
        .ok_or(io::ErrorKind::NotFound.into())
        .and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?))
        .map_err(|error| CommandError::Silent(pid, error))
}

/// Whether the process ends within this time.
fn ends_within(process: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    Ok(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit))? > 0)
}

fn stage_words(state: &str) -> &str {
    match state {
        "queued" => "waiting until it can begin",
        "booting" => "booting the new version",
        "probing" => "asking it whether it answers",
        "rolling" => "replacing the workers",
        "choosing" | "asking" => "looking for a worker to fork from",
        "relieving" => "forking a worker that serves in its place",
        "retiring" => "letting it finish its requests",
        "promoting" => "making a mold of it",
        other => other,
    }
}

/// The instances that are meant; at least one. Root means its own, and only where there is none such those of other users.
pub(crate) fn selected(selector: &Selector) -> Result<Vec<Instance>, CommandError> {
    let is_certain = selector.port.is_some() || selector.app.is_some();
    let (mut seen, mut names, mut unanswered) = (Vec::new(), Vec::new(), Vec::new());
    let mut places =
        [ControlPlaces::of_commands as fn() -> ControlPlaces, ControlPlaces::of_others].into_iter();
    let found = places.find_map(|places| {
        let looked = look_for(&places(), |status| is_certain && matches(selector, status));
        let mut found = looked.found;
        unanswered.extend(looked.unanswered);
        seen.extend(found.iter().map(|instance| instance.status.pid));
        names.extend(found.iter().flat_map(|instance| &instance.status.apps).map(|app| app.name.clone()));
        found.retain(|instance| matches(selector, &instance.status) && may_claim(instance, selector));
        (!found.is_empty()).then_some(found)
    });
    if let Some(found) = found {
        unanswered.into_iter().for_each(complain);
        return Ok(found);
    }
    let port = selector.port.map(|port| format!(" on port {port}"));
    let app = selector.app.as_ref();
    let app = app.map(|app| format!(" with the application {}{}", app.text, meant(app, &names)));
    let wanted = port.or(app).unwrap_or_default();
    Err(match &unanswered[..] {
        [] => CommandError::NoneRuns(wanted, elsewhere::hints(&seen)),
        all => CommandError::NoneAnswers(wanted, all.join("\n    ")),
    })
}

/// A question whether one of the applications that run was meant, where its name is nearly the same.
fn meant(selector: &AppSelector, names: &[String]) -> String {
    let name = did_you_mean(&selector.text, names.iter().map(String::as_str));
    name.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// All instances that this user may ask: root those of all users.
fn everywhere(enough: impl Fn(&Status) -> bool) -> Vec<Instance> {
    let mut found = running(&ControlPlaces::of_commands(), &enough);
    if !found.iter().any(|instance| enough(&instance.status)) {
        found.extend(running(&ControlPlaces::of_others(), &enough));
    }
    found
}

/// Whether to believe that this is the server of a folder. Where root asks, another user may run a server only to report the
/// folder of somebody else.
fn may_claim(instance: &Instance, selector: &Selector) -> bool {
    let (Some(uid), Some(app)) = (instance.other_user, &selector.app) else { return true };
    let is_named = instance.status.apps.iter().any(|one| one.name == app.text);
    let owner = app.folder.metadata().map_or(uid, |folder| folder.uid());
    let believed = is_named || [0, uid].contains(&owner);
    if !believed {
        complain(format_args!(
            "the server of {} (pid {}) reports the application {}, which belongs to {}: name the server by --port N if you mean it",
            user_name(uid),
            instance.status.pid,
            app.text,
            user_name(owner)
        ));
    }
    believed
}

fn matches(selector: &Selector, status: &Status) -> bool {
    selector.port.is_none_or(|port| status.ports.contains(&port))
        && selector.app.as_ref().is_none_or(|app| status.apps.iter().any(|one| is_selected(app, one)))
}

pub(crate) fn is_selected(selector: &AppSelector, app: &AppStatus) -> bool {
    selector.is(&app.name, &app.app, &app.link)
}

/// The selected instance, for a command that acts on all of its applications.
fn the_whole<'a>(found: &'a [Instance], selector: &Selector) -> Result<&'a Instance, CommandError> {
    let instance = the_only(found)?;
    let (apps, pid) = (instance.status.apps.len(), instance.status.pid);
    match &selector.app {
        Some(app) if apps > 1 => Err(CommandError::OneOfMany(app.text.clone(), apps, pid)),
        _ => Ok(instance),
    }
}

/// The only one that serves. One that has been succeeded only finishes its requests, and takes no commands.
pub(crate) fn the_only(found: &[Instance]) -> Result<&Instance, CommandError> {
    let mut serving = found.iter().filter(|instance| instance.status.successor.is_none());
    if let (Some(one), None) = (serving.next(), serving.next()) {
        return Ok(one);
    }
    if let [one] = found {
        return Ok(one);
    }
    let lines = found.iter().map(|instance| {
        let status = &instance.status;
        let apps: Vec<String> = status.apps.iter().map(|app| app.app.display().to_string()).collect();
        let user = of_user(instance);
        format!("    {}  {}  (pid {}{user})", apps.join(" "), status.binds.join(" "), status.pid)
    });
    Err(CommandError::SeveralRun(lines.collect::<Vec<_>>().join("\n")))
}

/// Says whose server is asked, where root asks that of another user.
fn announce(instance: &Instance) {
    if let Some(uid) = instance.other_user {
        progress(format_args!("the server of {} (pid {}):", user_name(uid), instance.status.pid));
    }
}

/// The user of an instance, where it is another one than who asks.
fn of_user(instance: &Instance) -> String {
    instance.other_user.map(|uid| format!(", user {}", user_name(uid))).unwrap_or_default()
}

/// One instance, for people, and those of its applications that are meant.
fn table(status: &Status, user: &str, is_meant: impl Fn(&AppStatus) -> bool) -> String {
    let mut text = String::new();
    let (version, pid, up) = (&status.version, status.pid, duration(status.uptime_seconds));
    fact(&mut text, "highball", &format!("{version} (pid {pid}{user}), {}, up {up}", status.phase));
    fact(&mut text, "listens on", &status.binds.join(" "));
    let connections = format!("{}, {} of them hijacked", status.connections, status.hijacked);
    fact(&mut text, "connections", &connections);
    if status.spool_bytes > 0 {
        let (used, most) = (mib(status.spool_bytes), mib(status.max_spool_bytes));
        fact(&mut text, "spool files", &format!("{used} of at most {most}"));
    }
    if let Some(problem) = &status.spool_problem {
        fact(&mut text, "spool folder", problem);
    }
    if status.buffer_bytes > 1 << 20 {
        let (used, most) = (mib(status.buffer_bytes), mib(status.max_buffer_bytes));
        fact(&mut text, "buffers", &format!("{used} of at most {most}"));
    }
    if let Some(memory) = &status.memory {
        let (used, usable) = (mib(memory.used_bytes), mib(memory.usable_bytes));
        fact(&mut text, "memory", &format!("{used} of {usable} that applications may have"));
    }
    if let Some(problem) = &status.log_problem {
        fact(&mut text, "access log", problem);
    }
    if let Some(tls) = &status.tls {
        tls_facts(&mut text, tls);
    }
    if let Some(upgrade) = &status.upgrade {
        fact(&mut text, "hot restart", &upgrade_line(upgrade));
        if let Some(failure) = &upgrade.failure {
            fact(&mut text, "", failure);
        }
    }
    if let Some(successor) = status.successor {
        fact(&mut text, "succeeded", &format!("pid {successor} serves; this process finishes what it has"));
    }
    for app in status.apps.iter().filter(|app| is_meant(app)) {
        if status.apps.len() > 1 {
            text.push('\n');
            fact(&mut text, &app.name, &format!("{} at {}", app.phase, app.url));
        }
        text.push_str(&app_table(app));
    }
    text
}

fn tls_facts(text: &mut String, tls: &TlsStatus) {
    let TlsStatus { handshakes, failed_handshakes, slow_handshakes, refused_handshakes, .. } = tls;
    let figures = format!(
        "{handshakes} handshakes; {failed_handshakes} failed, {slow_handshakes} timed out, {refused_handshakes} turned away"
    );
    fact(text, "TLS", &figures);
    for certificate in &tls.certificates {
        let hosts = if certificate.hosts.is_empty() { "no host".into() } else { certificate.hosts.join(" ") };
        let expiry = expiry(certificate.expires_at, SystemTime::now());
        fact(text, "certificate", &format!("{}, for {hosts}, {expiry}", certificate.file));
    }
    if let Some(problem) = &tls.problem {
        fact(text, "", &format!("newer files are not used: {problem}"));
    }
    for domain in &tls.domains {
        domain_facts(text, domain);
    }
}

fn domain_facts(text: &mut String, domain: &DomainStatus) {
    let DomainStatus { name, expires_at, failures, problem, remedy, .. } = domain;
    let has = if expires_at.is_some() { "its certificate is kept" } else { "it has no certificate" };
    match problem {
        None => fact(text, "domain", &format!("{name}: {has}")),
        Some(problem) => {
            fact(text, "domain", &format!("{name}: {has}, and {problem} (failures in a row: {failures})"));
            fact(text, "", remedy.as_deref().unwrap_or_default());
        }
    }
}

/// When a certificate expires, for people.
fn expiry(at: u64, now: SystemTime) -> String {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    match at.checked_sub(now) {
        Some(left) if left >= 2 * 86400 => format!("expires in {} days", left / 86400),
        Some(left) => format!("expires in {} h", left / 3600),
        None => "has expired: renew it".into(),
    }
}

/// One application.
fn app_table(app: &AppStatus) -> String {
    let mut text = String::new();
    let restarts = match app.restartable {
        Some(false) => "not available: the application was given as an object",
        _ => "available",
    };
    let user = if app.user.is_empty() { String::new() } else { format!(", as {}", app.user) };
    fact(&mut text, "app", &format!("{} ({}{user})", app.app.display(), app.environment));
    if let Some(link) = &app.browser_link {
        fact(&mut text, "browser", link);
    }
    ruby_facts(&mut text, app);
    fact(&mut text, "version", &format!("generation {}; restarts {restarts}", app.generation));
    let no_mold = if app.mold_rests { "none: it boots when another worker is needed" } else { "none" };
    fact(&mut text, "mold", &app.mold.as_ref().map_or(no_mold.into(), mold_line));
    workers_facts(&mut text, app);
    let spooled = if app.spool_bytes > 0 {
        format!(", {} in spool files", mib(app.spool_bytes))
    } else {
        String::new()
    };
    fact(&mut text, "requests", &format!("{} in the queue{spooled}", app.queue));
    memory_facts(&mut text, &app.memory);
    if let Some(limits) = &app.kernel_limits {
        limits_facts(&mut text, limits);
    }
    if let Some(cache) = &app.cache {
        fact(&mut text, "cache", &cache_line(cache));
    }
    change_facts(&mut text, app);
    failure_facts(&mut text, app);
    if app.phase == "asleep" {
        return text;
    }
    let _ = writeln!(
        text,
        "\n  {:>6}  {:>10}  {:>8}  {:<9}  {:>7}  {:>9}  {:>10}  {:>10}  {:>8}",
        "worker", "generation", "pid", "state", "threads", "in flight", "served", "memory", "up"
    );
    for worker in &app.workers {
        let _ = writeln!(text, "{}", row(worker));
    }
    text
}

/// What the application runs on, and how Highball has it work.
fn ruby_facts(text: &mut String, app: &AppStatus) {
    let framework = app.framework.as_deref().unwrap_or("not booted yet");
    let ruby = app.ruby.as_ref().map(|ruby| format!(", Ruby {ruby}")).unwrap_or_default();
    let jit = app.jit.as_ref().map(|jit| format!(", {}", jit.of_compiler())).unwrap_or_default();
    fact(text, "runs on", &format!("{framework}{ruby}{jit}"));
    if let Some(gc) = &app.gc {
        fact(text, "collector", &gc.of_collector());
    }
    if let Some(allocator) = &app.allocator {
        fact(text, "allocator", &allocator.of_allocator());
    }
    if let Some(cache) = &app.boot_cache {
        fact(text, "boot cache", &cache.of_boot_cache());
    }
}

/// The last restart and refork.
fn change_facts(text: &mut String, app: &AppStatus) {
    if let Some(restart) = app.restarts.last() {
        fact(text, "restart", &restart_line(restart));
    }
    if let Some(refork) = &app.refork {
        fact(text, "refork", &refork_line(refork));
    }
    if let Some(why) = &app.no_refork {
        fact(text, "reforks", &format!("none of this version: {why}"));
    }
}

/// What is wrong with the application, and what was.
fn failure_facts(text: &mut String, app: &AppStatus) {
    if let Some(problem) = &app.log_problem {
        fact(text, "access log", problem);
    }
    if let Some(CrashLoopStatus { what, remedy, .. }) = &app.crash_loop {
        fact(text, "crash loop", &format!("{what}\n{remedy}"));
    }
    for overrun in &app.overruns {
        fact(text, "timed out", &overrun_lines(overrun));
    }
    if let Some(failure) = &app.last_failure {
        fact(text, "last failure", failure);
    }
    if let Some(diagnosis) = app.diagnosis.as_ref().filter(|_| app.phase != "serving") {
        let _ = writeln!(text, "\n{diagnosis}");
    }
}

/// A request that exceeded its time limit: where it was, as far as that is known.
fn overrun_lines(overrun: &OverrunStatus) -> String {
    let OverrunStatus { worker, request, doing, backtrace, seconds_ago } = overrun;
    let mut text = format!("{request}, {seconds_ago} s ago, worker {worker}: {doing}");
    for line in backtrace.iter().flat_map(|backtrace| backtrace.lines()) {
        let _ = write!(text, "\n  {line}");
    }
    text
}

fn fact(text: &mut String, name: &str, fact: &str) {
    let _ = writeln!(text, "{name:<12} {}", fact.replace('\n', "\n             "));
}

/// How many workers there should be, and why.
fn workers_facts(text: &mut String, app: &AppStatus) {
    let wanted = app.workers_wanted;
    let Some(sizing) = &app.sizing else { return fact(text, "workers", &format!("{wanted} wanted")) };
    let SizingStatus { min, max, cpus, memory_bytes, decided, decided_seconds_ago, hindered } = sizing;
    let memory = memory_bytes.map(|bytes| format!(", {}", gib(bytes))).unwrap_or_default();
    fact(text, "workers", &format!("{wanted} of {min}..{max}: {cpus}{memory}"));
    if let Some(decided) = decided {
        fact(text, "", &format!("{decided} ({} ago)", duration(decided_seconds_ago.unwrap_or(0))));
    }
    if let Some(hindered) = hindered {
        fact(text, "", &format!("no more, as {hindered}"));
    }
}

/// `4 GiB`, `3.8 GiB`, `512 MiB`.
fn gib(bytes: u64) -> String {
    let (mib, gib) = (bytes >> 20, bytes as f64 / f64::from(1 << 30));
    match mib {
        0..1024 => format!("{mib} MiB"),
        _ if mib % 1024 == 0 => format!("{} GiB", mib / 1024),
        _ => format!("{gib:.1} GiB"),
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn memory_facts(text: &mut String, memory: &AppMemoryStatus) {
    let AppMemoryStatus { bytes, worker_limit_bytes, budget_bytes, problem, replaced, oom_kills } = memory;
    let mut line = mib(*bytes);
    if let Some(budget) = budget_bytes {
        let _ = write!(line, " of {}", mib(*budget));
    }
    if let Some(limit) = worker_limit_bytes {
        let _ = write!(line, "; each worker at most {}", mib(*limit));
    }
    if *replaced > 0 {
        let _ = write!(line, "; {replaced} workers replaced for their memory");
    }
    if *oom_kills > 0 {
        let _ = write!(line, "; {oom_kills} workers killed by the kernel, out of memory");
    }
    fact(text, "memory", &line);
    if let Some(problem) = problem {
        fact(text, "", problem);
    }
}

/// What the kernel keeps the application within.
fn limits_facts(text: &mut String, limits: &KernelLimitsStatus) {
    let KernelLimitsStatus {
        cpu_max, throttled_ms, memory_max_bytes, memory_bytes, oom_kills, problem, ..
    } = limits;
    let mut parts = Vec::new();
    if let Some(cpus) = cpu_max {
        let share = limits.throttled_percent(&KernelLimitsStatus::default());
        let share = share.map(|share| format!(" ({share:.0}% of the time)")).unwrap_or_default();
        parts.push(format!("cpu_max {cpus}, waited for it {:.1} s{share}", *throttled_ms as f64 / 1000.0));
    }
    if let Some(bytes) = memory_max_bytes {
        let used =
            memory_bytes.map(|bytes| format!(", {} in use with files", mib(bytes))).unwrap_or_default();
        parts.push(format!("memory_max {}{used}, {oom_kills} processes killed", gib(*bytes)));
    }
    fact(text, "limits", &parts.join("; "));
    if let Some(problem) = problem {
        fact(text, "", &format!("not all are kept: {problem}"));
    }
}

fn cache_line(cache: &CacheStatus) -> String {
    let CacheStatus { hits, misses, responses, bytes, max_bytes } = cache;
    let (used, most) = (mib(*bytes), mib(*max_bytes));
    format!("{hits} hits, {misses} misses; {responses} responses stored, {used} of {most}")
}

fn mold_line(mold: &MoldStatus) -> String {
    let pid = mold.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let origin =
        mold.promoted_from.map(|worker| format!(", promoted from worker {worker}")).unwrap_or_default();
    format!("{}{pid}{origin}", mold.state)
}

fn refork_line(refork: &ReforkStatus) -> String {
    let ReforkStatus { number, asked_by, state, seconds, .. } = refork;
    format!("number {number}, by {asked_by}: {state}, {seconds:.1} s")
}

fn restart_line(restart: &RestartStatus) -> String {
    let RestartStatus { generation, asked_by, state, seconds, .. } = restart;
    format!("to generation {generation} by {asked_by}: {state}, {seconds:.1} s")
}

fn upgrade_line(upgrade: &UpgradeStatus) -> String {
    let UpgradeStatus { asked_by, state, seconds, pid, .. } = upgrade;
    let new = pid.map(|pid| format!(" (new process: pid {pid})")).unwrap_or_default();
    format!("by {asked_by}: {state}, {seconds:.1} s{new}")
}

fn row(worker: &WorkerStatus) -> String {
    let pid = worker.pid.map_or("-".into(), |pid| pid.to_string());
    format!(
        "  {:>6}  {:>10}  {:>8}  {:<9}  {:>7}  {:>9}  {:>10}  {:>10}  {:>8}",
        worker.worker,
        worker.generation,
        pid,
        worker.state,
        worker.threads,
        worker.in_flight,
        worker.served,
        worker.memory_bytes.map_or("-".into(), mib),
        duration(worker.uptime_seconds)
    )
}

/// `42s`, `5m 12s`, `3h 20m`, `2d 4h`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::instance::{MachineMemoryStatus, RequestTimesStatus};

    fn a_status() -> Status {
        Status {
            pid: 42,
            version: "0.1.0".into(),
            phase: "serving".into(),
            uptime_seconds: 3700,
            binds: vec!["http://127.0.0.1:3000".into()],
            ports: vec![3000],
            admin: Vec::new(),
            agent_check: Vec::new(),
            connections: 10,
            hijacked: 1,
            spool_bytes: 3 << 20,
            max_spool_bytes: 1 << 30,
            spool_problem: None,
            buffer_bytes: 0,
            max_buffer_bytes: 1 << 30,
            log_problem: None,
            tls: None,
            memory: Some(MachineMemoryStatus { usable_bytes: 870 << 20, used_bytes: 200 << 20 }),
            upgrade: None,
            predecessor: None,
            successor: None,
            apps: vec![an_app()],
        }
    }

    fn a_restart() -> RestartStatus {
        RestartStatus {
            generation: 2,
            asked_by: "USR1".into(),
            state: "done".into(),
            seconds: 3.25,
            failure: None,
            mold: None,
        }
    }

    fn a_refork() -> ReforkStatus {
        ReforkStatus {
            number: 4,
            asked_by: "100 requests".into(),
            worker: Some(7),
            state: "done".into(),
            seconds: 0.5,
            failure: None,
            mold: None,
        }
    }

    fn a_worker() -> WorkerStatus {
        WorkerStatus {
            worker: 1,
            generation: 2,
            pid: Some(44),
            state: "serving".into(),
            threads: 3,
            uptime_seconds: 59,
            in_flight: 2,
            served: 1000,
            memory_bytes: Some(70 << 20),
        }
    }

    fn some_limits() -> KernelLimitsStatus {
        KernelLimitsStatus {
            cpu_max: Some(1.5),
            periods: 100,
            throttled_periods: 25,
            throttled_ms: 2500,
            memory_max_bytes: Some(2 << 30),
            memory_bytes: Some(200 << 20),
            oom_kills: 1,
            ..KernelLimitsStatus::default()
        }
    }

    fn an_app() -> AppStatus {
        AppStatus {
            id: 1,
            name: "blog".into(),
            phase: "serving".into(),
            hosts: vec![],
            prefix: String::new(),
            url: "http://127.0.0.1:3000/".into(),
            browser_link: Some("http://127.0.0.1:3000/?highball=4711".into()),
            app: "/srv/blog".into(),
            link: "/srv/blog/current".into(),
            environment: "production".into(),
            user: "deploy".into(),
            framework: Some("Rails 6.1.7".into()),
            ruby: Some("3.1.2".into()),
            jit: Some(Box::new(highball_link::Tuning {
                name: Some("YJIT".into()),
                off: None,
                is_missing: false,
            })),
            gc: None,
            allocator: None,
            boot_cache: None,
            generation: 2,
            restartable: Some(false),
            mold: Some(MoldStatus { pid: Some(43), state: "booted".into(), promoted_from: Some(7) }),
            mold_rests: false,
            workers_wanted: 1,
            sizing: None,
            workers: vec![a_worker()],
            request_times: RequestTimesStatus::default(),
            crash_loop: Some(CrashLoopStatus {
                deaths: 32,
                seconds: 25,
                what: "32 workers died in 25 s; the last one, worker 33, exited with code 1".into(),
                remedy: "Fix it.".into(),
            }),
            queue: 5,
            spool_bytes: 3 << 20,
            cache: Some(CacheStatus {
                hits: 30,
                misses: 4,
                responses: 3,
                bytes: 1 << 20,
                max_bytes: 64 << 20,
            }),
            restarts: vec![a_restart()],
            refork: Some(a_refork()),
            no_refork: None,
            log_problem: Some("/srv/blog/log/access.log cannot be opened: it is a pipe".into()),
            memory: AppMemoryStatus {
                bytes: 150 << 20,
                worker_limit_bytes: Some(256 << 20),
                budget_bytes: None,
                problem: None,
                replaced: 3,
                oom_kills: 0,
            },
            kernel_limits: Some(some_limits()),
            overruns: vec![OverrunStatus {
                worker: 3,
                request: "GET /report".into(),
                doing: "it sleeps".into(),
                backtrace: Some("app.rb:7:in `sleep'\napp.rb:7:in `call'".into()),
                seconds_ago: 5,
            }],
            last_failure: None,
            diagnosis: None,
        }
    }

    #[test]
    fn the_table_says_what_matters() {
        let text = table(&a_status(), ", user deploy", |_| true);
        for part in [
            "(pid 42, user deploy)",
            "up 1h 1m",
            "/srv/blog (production, as deploy)",
            "Rails 6.1.7, Ruby 3.1.2",
            "GET /report, 5 s ago, worker 3: it sleeps",
            "app.rb:7:in `sleep'",
            "http://127.0.0.1:3000",
            "http://127.0.0.1:3000/?highball=4711",
            "given as an object",
            "to generation 2 by USR1: done, 3.2 s",
            "promoted from worker 7",
            "access log   /srv/blog/log/access.log cannot be opened: it is a pipe",
            "number 4, by 100 requests: done, 0.5 s",
            "5 in the queue, 3.0 MiB in spool files",
            "200.0 MiB of 870.0 MiB that applications may have",
            "150.0 MiB; each worker at most 256.0 MiB; 3 workers replaced for their memory",
            "70.0 MiB",
            "30 hits, 4 misses; 3 responses stored, 1.0 MiB of 64.0 MiB",
            "1000",
            "59s",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn a_restart_is_done_or_failed_or_somewhere() {
        let mut status = an_app();
        let in_state = |status: &mut AppStatus, state: &str| status.restarts[0].state = state.into();
        assert!(matches!(report_on(2, 42, &status), Ok(None)));
        assert!(matches!(report_on(3, 42, &status), Err(CommandError::Forgotten(3))));
        in_state(&mut status, "probing");
        assert!(matches!(report_on(2, 42, &status), Ok(Some(state)) if state == "probing"));
        in_state(&mut status, "failed");
        status.restarts[0].failure = Some("no luck\nat: a.rb:1".into());
        let error = report_on(2, 42, &status).unwrap_err().to_string();
        assert!(error.ends_with("is still serving.\nno luck\nat: a.rb:1"), "{error}");
    }

    #[test]
    fn instances_are_distinguished_by_port_and_app() {
        let app = |text: &str| AppSelector { text: text.into(), folder: text.into(), links: vec![] };
        let by = |port, text: Option<&str>| Selector { port, app: text.map(app) };
        assert!(matches(&by(None, None), &a_status()));
        assert!(matches(&by(Some(3000), Some("/srv/blog")), &a_status()));
        assert!(matches(&by(None, Some("/srv/blog/current")), &a_status()));
        assert!(matches(&by(None, Some("blog")), &a_status()));
        assert!(!matches(&by(Some(3001), None), &a_status()));
        assert!(!matches(&by(None, Some("/srv/shop")), &a_status()));
    }

    #[test]
    fn each_of_several_applications_has_its_table() {
        let shop = AppStatus { id: 2, name: "shop".into(), phase: "asleep".into(), ..an_app() };
        let status = Status { apps: vec![an_app(), shop], ..a_status() };
        let text = table(&status, "", |_| true);
        assert!(text.contains("blog         serving at http://127.0.0.1:3000/\n"), "{text}");
        assert!(text.contains("shop         asleep at "), "{text}");
        assert!(!table(&status, "", |app| app.name == "shop").contains("blog         serving"));
    }
}
