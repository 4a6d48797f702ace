//! The binary: parse, build, run, drain.
//!
//! In reading order: this file, `serve` (the whole life of `highball serve`), `app_source` (where applications come from), `wiring` (how the front and the supervisor are
//! joined), `root_policy` (the process that stays root), `at_root` (requests to it) and `openers` (processes that open
//! files), `process_list` (other processes of the machine), `confinement` (what the kernel denies the server where root has
//! started it), `configuration` (which HUP reloads), `certificates` (for HTTPS), `certificate_watch`
//! (their files change), `acme` (they come from an authority), `authority` (which issues them in development), `puma` (which has
//! Ruby evaluate a `config/puma.rb`), `readiness` (when a server reports that it serves), `reports` (of front and supervisor),
//! `admin` (health checks and metrics), `app_cgroups` (limits that the kernel keeps), `kernel_limits` (what applications
//! use of them), `domain_check`, `thread_advice` and `limit_advice` (for `highball doctor`), `log`, `pidfile`,
//! `other_servers` (files that Highball does not read), `callers` (the connections at listeners that are not the clients'), `instance` (the control socket of a running Highball),
//! `control_places` (where those sockets are, and who may be at the other end), `asking` (finding instances, and one
//! question to one), `listening` (the ports that an instance really listens on), `elsewhere` (how to ask instances that
//! were not found), `commands` (`status`, `restart`, `refork`, `upgrade` and `stop`), `output` (of commands),
//! `developer_key` (by which a developer's browser is known), `diagnosis_page` (what a browser shows of a failed boot),
//! `doctor` (which boots without serving), `init` (which writes the files of a deployment), `memory` (the figures of
//! `highball memory`), `overview` (what the server does at this moment), `top` (which shows that in a terminal), `actions` (what operators
//! do with it), `handover` (taking over from an older process, in a hot restart), `started_path` (what the next one
//! is started from), `service_notification` (telling systemd), `benchmark` (`highball bench`, which another program does).

mod acme;
mod actions;
mod admin;
mod app_cgroups;
mod app_source;
mod asking;
mod at_root;
mod authority;
mod benchmark;
mod callers;
mod certificate_watch;
mod certificates;
mod commands;
mod configuration;
mod confinement;
mod control_places;
mod developer_key;
mod diagnosis_page;
mod doctor;
mod domain_check;
mod elsewhere;
mod event_loop;
mod handover;
mod init;
mod instance;
mod kernel_limits;
mod limit_advice;
mod listening;
mod log;
mod memory;
mod open_files;
mod openers;
mod other_servers;
mod output;
mod overview;
mod pidfile;
mod process_list;
mod puma;
mod readiness;
mod reports;
mod root_by_chance;
mod root_policy;
mod serve;
mod service_notification;
mod started_path;
mod thread_advice;
mod top;
mod wiring;

use highball_config::{Deployment, Invocation};
use highball_spawner::{exec, Role, READER, TABLE, WATCHER};
use highball_supervisor::{become_mold, Client, Launcher, Predecessor};
use output::{complain, print};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    exec::receive_signals();
    highball_config::keep_working_folder();
    highball_front::activate(exec::take_activated());
    if let Err(error) = highball_spawner::become_user() {
        complain(format_args!("cannot become the user that this process was started for: {error}"));
        return ExitCode::FAILURE;
    }
    // Before anything else: these take descriptors and variables that no other process may inherit.
    if let Some(code) = serve_the_spawner() {
        return code;
    }
    let launcher = match Client::from_environment() {
        Ok(spawner) => spawner.map_or(Launcher::Direct, |spawner| Launcher::Spawner(Arc::new(spawner))),
        Err(error) => {
            complain(&error);
            return ExitCode::FAILURE;
        }
    };
    if let Launcher::Direct = launcher {
        if let Some(code) = root_policy::stay_root() {
            return code;
        }
    } else {
        app_cgroups::join();
    }
    let predecessor = match Predecessor::from_environment() {
        Ok(predecessor) => predecessor,
        Err(error) => {
            complain(format_args!("cannot take over from the process that started this one: {error}"));
            return ExitCode::FAILURE;
        }
    };
    at_root::open_files_by(&launcher);
    let asked = at_root::read_configuration(&launcher);
    let done = match asked {
        Ok(Invocation::Serve(settings)) => serve::serve(*settings, predecessor, launcher),
        Ok(Invocation::Doctor { json, settings }) => doctor::doctor(*settings, json),
        Ok(Invocation::Config(deployment)) => print_config(&deployment),
        Ok(Invocation::Init { dry_run, folder, unit }) => done(init::init(&folder, &unit, dry_run)),
        Ok(Invocation::Status { json, check, selector }) => done(commands::status(json, check, &selector)),
        Ok(Invocation::Restart { selector }) => done(commands::restart(&selector)),
        Ok(Invocation::Refork { selector }) => done(commands::refork(&selector)),
        Ok(Invocation::Upgrade { selector }) => done(commands::upgrade(&selector)),
        Ok(Invocation::Stop { selector }) => done(commands::stop(&selector)),
        Ok(Invocation::Bench { arguments }) => done(benchmark::run(arguments)),
        Ok(Invocation::Memory { json, gc, selector }) => done(memory::memory(json, gc, &selector)),
        Ok(Invocation::Top { display, selector }) => done(top::top(display, &selector)),
        Ok(Invocation::Help(text) | Invocation::Version(text)) => {
            done(print(&format!("{}\n", text.trim_end())))
        }
        Err(error) => {
            if let Some(predecessor) = predecessor {
                predecessor.failed(&format!("the new process cannot read its configuration: {error}"));
            }
            complain(&error);
            return ExitCode::from(error.exit_code());
        }
    };
    log::finish();
    done.unwrap_or_else(|error| {
        complain(error);
        ExitCode::FAILURE
    })
}

/// What this process does where the spawner has started it as the user of an application.
fn serve_the_spawner() -> Option<ExitCode> {
    let socket = |role: Role| exec::take(role.variable());
    let [reader, table, watcher] = [READER, TABLE, WATCHER].map(exec::take);
    match (socket(Role::Mold), socket(Role::Opener), reader, table, watcher) {
        (Ok(None), Ok(None), Ok(None), Ok(None), Ok(None)) => None,
        (Ok(Some(socket)), ..) => Some(become_mold(socket)),
        (_, Ok(Some(socket)), ..) => Some(highball_tenant::serve(socket)),
        (_, _, Ok(Some(socket)), ..) => Some(at_root::read_for_server(socket)),
        (.., Ok(Some(socket)), _) => Some(root_policy::read_for_spawner(&socket)),
        (.., Ok(Some(socket))) => Some(certificate_watch::watch_for_server(socket)),
        _ => Some(ExitCode::FAILURE),
    }
}

fn done<E: Error + 'static>(result: Result<(), E>) -> Result<ExitCode, Box<dyn Error>> {
    Ok(result.map(|()| ExitCode::SUCCESS)?)
}

/// Prints the configuration of another program, which is to start this one by the path that it was started by.
fn print_config(deployment: &Deployment) -> Result<ExitCode, Box<dyn Error>> {
    let program = started_path::started_path().unwrap_or_else(|| "highball".into());
    done(print(&deployment.text(&program)?))
}
