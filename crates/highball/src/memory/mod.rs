//! `highball memory`: what memory running instances take, and other Ruby servers on this machine.
//!
//! In reading order: this file (asking the instances, and putting it all together), `own_copy` (so that
//! looking changes nothing), `processes` (all of the machine), `ruby_servers` (those of other servers), `report`
//! (what `--json` prints), `tables` (what people are shown).

mod own_copy;
mod processes;
mod report;
mod ruby_servers;
mod tables;

use crate::commands::CommandError;
use crate::control::asking::ask;
use crate::control::finding::{running, Instance};
use crate::control::messages::{Answer, Question, RubyProcess};
use crate::control::places::ControlPlaces;
use crate::control::selection::selected;
use crate::output::print;
use crate::process::owner::user_name;
use highball_config::Selector;
use highball_link::{AppReport, CompanionProcess, ServerReport};
use highball_proc::ProcessMemory;
use highball_spawner::{Role, SERVER_TITLE};
use processes::{Process, ProcessList};
use report::{
    HeapTotal, InstanceReport, MachineReport, MeasuredApp, MemoryTotal, OtherServerReport, ProcessReport,
};
use ruby_servers::{ruby_servers, RubyServer};
use std::collections::BTreeSet;
use std::io;

/// Prints the memory of the selected instances, or of all, and of other servers. That none runs is no failure,
/// unless a certain one was asked for.
pub(crate) fn memory(json: bool, gc: bool, selector: &Selector) -> Result<(), CommandError> {
    own_copy::run_from_own_copy();
    let instances = match selector {
        Selector { port: None, app: None } => running(&ControlPlaces::of_commands(), |_| false),
        _ => selected(selector)?,
    };
    // First the heaps: what a garbage collection changes has to be seen in the processes.
    let asked: Vec<_> = instances.into_iter().map(|instance| ask_heaps(instance, gc)).collect();
    let processes = ProcessList::read().map_err(|error| CommandError::Folder("/proc".into(), error))?;
    let ours = processes.trees(asked.iter().flat_map(|(status, ruby)| pids(status, ruby)));
    let report = MachineReport {
        gc,
        highball: asked.into_iter().map(|(status, ruby)| instance_report(status, ruby, &processes)).collect(),
        others: ruby_servers(&processes, &ours)
            .into_iter()
            .filter_map(|server| server_report(&server, &processes))
            .collect(),
    };
    Ok(print(&if json { report::json(&report) } else { tables::tables(&report) })?)
}

/// An instance that does not tell heaps is shown without them.
fn ask_heaps(instance: Instance, gc: bool) -> (ServerReport, Vec<RubyProcess>) {
    let ruby = match ask(&instance.address, Question::Memory { gc }) {
        Ok(Answer::Memory { ruby }) => ruby,
        Ok(_) => without_heaps(&instance.status, "the instance answered something else"),
        Err(error) => without_heaps(&instance.status, &format!("the instance did not answer: {error}")),
    };
    (instance.status, ruby)
}

fn without_heaps(status: &ServerReport, why: &str) -> Vec<RubyProcess> {
    let of_app = |app: &AppReport| {
        let process = |worker, pid, state: &String| RubyProcess {
            app: app.processes.id.0,
            worker,
            pid,
            state: state.clone(),
            heap: Err(why.into()),
        };
        let mold = app.processes.mold.iter().map(|mold| process(None, mold.pid, &mold.state));
        let workers = app
            .workers
            .iter()
            .map(|worker| process(Some(worker.process.worker), worker.process.pid, &worker.process.state));
        mold.chain(workers).collect::<Vec<_>>()
    };
    status.apps.iter().flat_map(of_app).collect()
}

/// The processes of an instance that are known by name.
fn pids<'a>(status: &'a ServerReport, ruby: &'a [RubyProcess]) -> impl Iterator<Item = i32> + 'a {
    std::iter::once(status.pid).chain(ruby.iter().filter_map(|process| process.pid))
}

fn instance_report(status: ServerReport, ruby: Vec<RubyProcess>, processes: &ProcessList) -> InstanceReport {
    let mut known: BTreeSet<i32> = pids(&status, &ruby).collect();
    let mut total = MemoryTotal::default();
    let mut reports = vec![process_report("highball", Some(status.pid), processes, &mut total)];
    for (role, pid) in own_processes(&status, &known, processes) {
        known.insert(pid);
        reports.push(process_report(role, Some(pid), processes, &mut total));
    }
    for RubyProcess { app, worker, pid, state, heap } in ruby {
        let role = if worker.is_some() { "worker" } else { "mold" };
        let mut report = process_report(role, pid, processes, &mut total);
        (report.worker, report.state) = (worker, Some(state));
        // A single one needs no name.
        let one = status.apps.iter().find(|one| one.processes.id.0 == app).filter(|_| status.apps.len() > 1);
        report.app = one.map(|app| app.name.clone());
        match heap {
            Ok(heap) => report.heap = Some(heap.into()),
            Err(why) => report.heap_missing = Some(why),
        }
        reports.push(report);
    }
    for (app, companion, role, pid) in companions(&status, processes) {
        known.insert(pid);
        let mut report = process_report(role, Some(pid), processes, &mut total);
        (report.process, report.state) = (Some(companion.name.clone()), Some(companion.state.clone()));
        report.app = Some(app.name.clone()).filter(|_| status.apps.len() > 1);
        reports.push(report);
    }
    // What the application has started.
    for pid in processes.trees(known.iter().copied()).difference(&known) {
        reports.push(process_report("child", Some(*pid), processes, &mut total));
    }
    InstanceReport {
        pid: status.pid,
        version: status.version,
        apps: status.apps.into_iter().map(app_report).collect(),
        binds: status.binds,
        heap_total: HeapTotal::of(reports.iter().filter_map(|process| process.heap.as_ref())),
        processes: reports,
        total,
    }
}

/// The server and its openers, in this order, where root has started it for others: children of the process whose pid
/// is public.
fn own_processes(
    status: &ServerReport,
    known: &BTreeSet<i32>,
    processes: &ProcessList,
) -> Vec<(&'static str, i32)> {
    let role = |process: &Process| match process.arguments.first()?.as_str() {
        SERVER_TITLE => Some(("server", process.pid)),
        title if title == Role::Opener.title() => Some(("opener", process.pid)),
        _ => None,
    };
    let children =
        processes.iter().filter(|process| process.parent == status.pid && !known.contains(&process.pid));
    let mut own: Vec<_> = children.filter_map(role).collect();
    own.sort_by_key(|(role, pid)| (*role != "server", *pid));
    own
}

/// The processes beside workers, each behind its guardian.
fn companions<'a>(
    status: &'a ServerReport,
    processes: &ProcessList,
) -> Vec<(&'a AppReport, &'a CompanionProcess, &'static str, i32)> {
    let guardian = |pid: i32| {
        let parent = processes.get(processes.get(pid)?.parent)?;
        (parent.arguments.first()? == Role::Companion.title()).then_some(parent.pid)
    };
    let of_app = |app: &'a AppReport| {
        let pids = app.processes.companions.iter().filter_map(|one| Some((one, one.pid?)));
        pids.flat_map(move |(one, pid)| {
            let guardian = guardian(pid).map(|guardian| (app, one, "guardian", guardian));
            guardian.into_iter().chain([(app, one, "process", pid)])
        })
    };
    status.apps.iter().flat_map(of_app).collect()
}

fn app_report(app: AppReport) -> MeasuredApp {
    MeasuredApp {
        name: app.name,
        app: app.processes.folder,
        environment: app.environment,
        framework: app.processes.framework,
        ruby: app.processes.runtime.ruby,
    }
}

fn server_report(server: &RubyServer, processes: &ProcessList) -> Option<OtherServerReport> {
    let first = processes.get(server.members.first()?.pid)?;
    let mut total = MemoryTotal::default();
    let report =
        |member: &ruby_servers::Member| process_report(member.role, Some(member.pid), processes, &mut total);
    Some(OtherServerReport {
        server: server.name.into(),
        pid: first.pid,
        user: user_name(first.uid),
        command: first.command(),
        processes: server.members.iter().map(report).collect(),
        total,
    })
}

/// Reads a process and adds it to the total.
fn process_report(
    role: &str,
    pid: Option<i32>,
    processes: &ProcessList,
    total: &mut MemoryTotal,
) -> ProcessReport {
    let process = pid.and_then(|pid| processes.get(pid));
    let user = process.map(|process| user_name(process.uid)).unwrap_or_default();
    let memory = pid.map_or(Err(io::ErrorKind::NotFound.into()), ProcessMemory::read);
    total.add(memory.as_ref().ok().copied());
    ProcessReport {
        role: role.into(),
        app: None,
        worker: None,
        process: None,
        state: None,
        pid,
        command: process.map(|process| process.command()).unwrap_or_default(),
        memory_missing: memory.as_ref().err().map(|error| unreadable(error, &user)),
        memory: memory.ok().map(Into::into),
        user,
        heap: None,
        heap_missing: None,
    }
}

fn unreadable(error: &io::Error, user: &str) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("belongs to {user}, and cannot be read by this user"),
        io::ErrorKind::NotFound => "has ended".into(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => "has ended".into(),
        _ => format!("cannot be read: {error}"),
    }
}
