//! The binary: parse, build, run, drain.
//!
//! In reading order: this file, `serve` (the whole life of `highball serve`), `apps` (where applications come from), `configuration`
//! (which HUP reloads), `certificates` (for HTTPS), `root` (the process that stays root, requests to it, and what the kernel denies
//! the others), `admin` (health checks, metrics, dashboard), `status` (what a server reports about itself), `control` (its control
//! socket, and asking by it), `commands` (`status`, `restart`, `refork`, `upgrade` and `stop`), `top`, `profile`, `memory`, `doctor` and `deploy`
//! (`config` and `init`), `development` (for the browsers of developers), `process` (processes as the system sees them), `log`, `output` (of
//! commands), `benchmark` (`highball bench`, which another program does).

mod admin;
mod apps;
mod benchmark;
mod certificates;
mod commands;
mod configuration;
mod control;
mod deploy;
mod development;
mod doctor;
mod log;
mod memory;
mod output;
mod process;
mod profile;
mod random;
mod root;
mod serve;
mod status;
mod top;

use apps::cgroups;
use deploy::{config, init};
use highball_config::Invocation;
use highball_spawner::{exec, Role, READER, TABLE, WATCHER};
use highball_supervisor::{become_mold, run_companion, Client, Launcher, Predecessor};
use output::{complain, print};
use root::{certificate_watch, openers, policy, reading};
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
        if let Some(code) = policy::stay_root() {
            return code;
        }
    } else {
        cgroups::join();
    }
    let predecessor = match Predecessor::from_environment() {
        Ok(predecessor) => predecessor,
        Err(error) => {
            complain(format_args!("cannot take over from the process that started this one: {error}"));
            return ExitCode::FAILURE;
        }
    };
    openers::open_files_by(&launcher);
    let asked = reading::read_configuration(&launcher);
    let done = match asked {
        Ok(Invocation::Serve(settings)) => serve::serve(*settings, predecessor, launcher),
        Ok(Invocation::Doctor { json, settings }) => doctor::doctor(*settings, json),
        Ok(Invocation::Config(deployment)) => config::config(&deployment),
        Ok(Invocation::Init { dry_run, folder, unit }) => done(init::init(&folder, &unit, dry_run)),
        Ok(Invocation::Status { form, slow: true, selector, .. }) => {
            done(commands::slow_requests(form, &selector))
        }
        Ok(Invocation::Status { form, check, selector, .. }) => {
            done(commands::status(form, check, &selector))
        }
        Ok(Invocation::Restart { selector }) => done(commands::restart(&selector)),
        Ok(Invocation::Rollout { order, selector }) => done(commands::rollout(order, &selector)),
        Ok(Invocation::Refork { selector }) => done(commands::refork(&selector)),
        Ok(Invocation::Upgrade { selector }) => done(commands::upgrade(&selector)),
        Ok(Invocation::Maintenance { switch, selector }) => done(commands::maintenance(&switch, &selector)),
        Ok(Invocation::Stop { selector }) => done(commands::stop(&selector)),
        Ok(Invocation::Bench { arguments }) => done(benchmark::run(arguments)),
        Ok(Invocation::Memory { json, gc, selector }) => done(memory::memory(json, gc, &selector)),
        Ok(Invocation::Top { display, selector }) => done(top::top(display, &selector)),
        Ok(Invocation::Profile { asked, selector }) => done(profile::profile(&asked, &selector)),
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
    if let Some(companion) = socket(Role::Companion).transpose() {
        return Some(companion.map_or(ExitCode::FAILURE, run_companion));
    }
    match (socket(Role::Mold), socket(Role::Opener), reader, table, watcher) {
        (Ok(None), Ok(None), Ok(None), Ok(None), Ok(None)) => None,
        (Ok(Some(socket)), ..) => Some(become_mold(socket)),
        (_, Ok(Some(socket)), ..) => Some(highball_tenant::serve(socket)),
        (_, _, Ok(Some(socket)), ..) => Some(reading::read_for_server(socket)),
        (.., Ok(Some(socket)), _) => Some(policy::read_for_spawner(&socket)),
        (.., Ok(Some(socket))) => Some(certificate_watch::watch_for_server(socket)),
        _ => Some(ExitCode::FAILURE),
    }
}

fn done<E: Error + 'static>(result: Result<(), E>) -> Result<ExitCode, Box<dyn Error>> {
    Ok(result.map(|()| ExitCode::SUCCESS)?)
}
