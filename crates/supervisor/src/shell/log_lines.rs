//! The words for the core's log events.

use super::app::AppSupervisor;
use super::upgrading::{log_handed_over, Upgrading};
use crate::core::companions::{CompanionEnd, Next};
use crate::core::crash_loop::Crashes;
use crate::core::log::{CompanionLog, RolloutLog};
use crate::core::memory::OverMemory;
use crate::core::restart::{Failure, BACKTRACE_LINES};
use crate::core::{AppLog, Process, ServerLog};
use crate::facts::ending::Ending;
use highball_link::{Booted, Diagnosis, Finding, Tuning, DETAIL};
use std::time::Duration;
use tracing::{debug, error, info, warn};

fn ms(took: Duration) -> u64 {
    took.as_millis() as u64
}

/// About the server.
pub(super) fn of_server(log: &ServerLog, upgrading: &Upgrading) {
    match log {
        ServerLog::StoppingSoon { grace } => {
            info!(
                name: "stopping_soon",
                drain_grace = ?grace, "stopping soon: the server still accepts requests, and readiness checks fail"
            );
        }
        ServerLog::Stopping => info!(name: "stopping", "stopping"),
        ServerLog::SecondSignal => warn!(
            name: "stopping_now", "second signal: stopping now, without waiting for requests"
        ),
        ServerLog::NewApp { name } => info!(name: "application_added", app = name, "a new application"),
        ServerLog::NoHotRestart { by, why } => warn!(name: "hot_restart_refused", by, why, "no hot restart"),
        ServerLog::HotRestart { by } => {
            info!(
                name: "hot_restart_begun", by, program = upgrading.program(), "hot restart: starting the new process"
            );
        }
        ServerLog::SuccessorBoots { version } => {
            info!(name: "hot_restart_boots", version, "hot restart: the new process boots the application");
        }
        ServerLog::SuccessorOutOfTurn { message } => {
            warn!(
                name: "hot_restart_unexpected_message", sent = message, "the new process sent an unexpected message"
            );
        }
        ServerLog::HotRestartFailed { why } => {
            error!(
                name: "hot_restart_failed", error = why, "the hot restart failed; this process keeps serving"
            );
        }
        ServerLog::HandedOver { upgrade, took } => log_handed_over(upgrading.pid_of(*upgrade), *took),
        ServerLog::Unsettled => error!(
            name: "state_unsettled", "bug in Highball: the server's state does not settle"
        ),
        ServerLog::ServingProcessEnded => debug!("idle connections are closed: no other process serves"),
    }
}

/// About an application.
pub(super) fn of_app(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::StepDone { .. }
        | AppLog::Booted { .. }
        | AppLog::Bare { .. }
        | AppLog::BootFailed(_)
        | AppLog::BootsTooLong { .. }
        | AppLog::MoldDied { .. }
        | AppLog::MoldStuck
        | AppLog::MoldUnkillable => of_mold(log, app),
        AppLog::NotForked { .. }
        | AppLog::WorkerReady { .. }
        | AppLog::WorkerBooted { .. }
        | AppLog::WorkerFailed { .. }
        | AppLog::StartsTooLong { .. }
        | AppLog::Broken { .. }
        | AppLog::Retires { .. }
        | AppLog::ReplacedAfterTerm { .. }
        | AppLog::ReplacedForRing { .. }
        | AppLog::Replacing { .. }
        | AppLog::ReplacementDelayed { .. }
        | AppLog::MemoryLimitTooSmall { .. }
        | AppLog::Replaced { .. }
        | AppLog::NotReplaced { .. }
        | AppLog::WorkersWanted(_)
        | AppLog::Resized(_)
        | AppLog::NotResized(_) => of_worker(log, app),
        AppLog::Overdue { .. }
        | AppLog::ControlClosed { .. }
        | AppLog::WorkerUnkillable { .. }
        | AppLog::WorkerGone { .. }
        | AppLog::WorkerDied { .. }
        | AppLog::CrashLoop(_)
        | AppLog::CrashLoopOver => of_death(log, app),
        AppLog::Companion { label, what } => of_companion(label, what, app),
        AppLog::NoRestart { .. }
        | AppLog::RestartWaits { .. }
        | AppLog::Restarting { .. }
        | AppLog::CanaryPassed { .. }
        | AppLog::CanaryKilled { .. }
        | AppLog::Restarted { .. }
        | AppLog::RestartFailed { .. }
        | AppLog::RestartGivenUp { .. }
        | AppLog::SiteNotReopened { .. } => of_restart(log, app),
        AppLog::Rollout(log) => of_rollout(log),
        AppLog::NoRefork { .. }
        | AppLog::Reforking { .. }
        | AppLog::Promoted { .. }
        | AppLog::Reforked { .. }
        | AppLog::ReforkFailed { .. }
        | AppLog::ReforkOutcome { .. }
        | AppLog::NoRoomForRefork { .. }
        | AppLog::Unfit { .. } => of_refork(log, app),
        AppLog::Misbehaved { .. }
        | AppLog::OutOfTurn { .. }
        | AppLog::Configured { .. }
        | AppLog::Removed
        | AppLog::MoldRests
        | AppLog::FallsAsleep
        | AppLog::WakesUp
        | AppLog::GivenUp { .. }
        | AppLog::FolderChanged
        | AppLog::TriesAgain
        | AppLog::Unsettled
        | AppLog::DrainTimeOver => of_life(log, app),
    }
}

/// About the life of an application as a whole, and processes that break the protocol.
fn of_life(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::Misbehaved { process, error } => {
            error!(
                name: "protocol_broken", who = ?process, %error, "killing a process that broke the protocol"
            );
        }
        AppLog::OutOfTurn { process: Process::Mold(boot), message } => {
            warn!(
                name: "mold_unexpected_message", boot, sent = message, "the mold sent an unexpected message"
            );
        }
        AppLog::OutOfTurn { process: Process::Worker(worker), message } => {
            warn!(
                name: "worker_unexpected_message",
                worker, sent = message, "the worker sent an unexpected message about its promotion"
            );
        }
        AppLog::Configured { restarts } => {
            info!(
                name: "application_configured", app = app.app.name, restarts, "the application has a new configuration"
            );
        }
        AppLog::Removed => info!(
            name: "application_removed", app = app.app.name, "the application is removed"
        ),
        AppLog::MoldRests => {
            info!(
                name: "mold_stopped",
                "single worker: stopping the idle mold to save memory; it boots again when another worker is needed"
            );
        }
        AppLog::FallsAsleep => {
            info!(
                name: "application_sleeps", "the application is idle: stopping its processes until the next request"
            )
        }
        AppLog::WakesUp => info!(
            name: "application_woken", "a request arrived: booting the sleeping application"
        ),
        AppLog::GivenUp { why } => {
            error!(
                name: "application_gave_up",
                why, "giving up: the application boots again when its folder changes or you restart it"
            );
        }
        AppLog::FolderChanged => info!(
            name: "boot_again", "the application's folder has changed: trying again"
        ),
        AppLog::TriesAgain => info!(name: "boot_again", "trying again: the cause may lie outside the folder"),
        AppLog::Unsettled => {
            error!(name: "state_unsettled", "bug in Highball: the application's state does not settle")
        }
        _ => warn!(name: "drain_timeout_over", "drain_timeout is over, and some requests have not finished"),
    }
}

fn of_mold(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::StepDone { step, took } => debug!(%step, took_ms = ms(*took), "boot step done"),
        AppLog::Booted { app: booted, took } => {
            self::booted(booted, *took);
            if app.may_offer() {
                booted.offers.iter().for_each(offer);
            }
        }
        AppLog::Bare { boot, took } => {
            info!(
                name: "mold_ready",
                pid = app.pid_of_mold(*boot),
                took_ms = ms(*took),
                "mold ready; each worker loads the application itself"
            );
        }
        AppLog::BootFailed(diagnosis) => boot_failed(diagnosis),
        AppLog::BootsTooLong { step } => {
            warn!(name: "boot_slow", %step, "the application takes too long to boot; these are its threads:");
        }
        AppLog::MoldDied { ending } => {
            warn!(
                name: "mold_died", %ending, "the mold died; the workers keep serving while a new mold boots"
            );
        }
        AppLog::MoldStuck => error!(name: "mold_stuck", "the mold no longer forks workers: replacing it"),
        _ => error!(name: "mold_unkillable", "the mold cannot be killed: leaving it behind"),
    }
}

fn booted(app: &Booted, took: Duration) {
    for finding in &app.findings {
        warn!(
            name: "boot_finding",
            cause = finding.cause,
            at = finding.place(),
            remedy = finding.remedy,
            command = finding.command,
            "{}",
            finding.what
        );
    }
    let jit = app.runtime.jit.as_deref().map(Tuning::of_compiler);
    let gc = app.runtime.gc.as_deref().map(Tuning::of_collector);
    let allocator = app.runtime.allocator.as_deref().map(Tuning::of_allocator);
    let cache = app.runtime.boot_cache.as_deref().map(Tuning::of_boot_cache);
    info!(
        name: "booted",
        target: DETAIL,
        framework = app.framework,
        ruby = app.runtime.ruby.as_deref(),
        jit,
        gc,
        allocator,
        cache,
        pid = app.pid,
        took_ms = ms(took),
        "booted"
    );
}

/// Something that Highball could do.
fn offer(offer: &Finding) {
    let Finding { cause, what, remedy, command, .. } = offer;
    info!(name: "boot_offer", cause, remedy, command, "{what}");
}

fn boot_failed(diagnosis: &Diagnosis) {
    error!(
        name: "boot_failed",
        cause = diagnosis.cause,
        step = diagnosis.step.map(tracing::field::display),
        error = %diagnosis.error,
        at = diagnosis.error.place(),
        source = diagnosis.source(),
        backtrace = diagnosis.error.calls(BACKTRACE_LINES),
        remedy = diagnosis.remedy,
        command = diagnosis.command,
        "the application did not boot"
    );
}

fn of_worker(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::NotForked { worker, error } => error!(
            name: "worker_not_forked", worker, %error, "cannot fork the worker"
        ),
        AppLog::WorkerReady { worker, took, is_usual } => {
            let (pid, took_ms) = (app.pid_of_worker(*worker), ms(*took));
            match is_usual {
                true => debug!(worker, pid, took_ms, "worker ready"),
                false => info!(name: "worker_ready", target: DETAIL, worker, pid, took_ms, "worker ready"),
            }
        }
        AppLog::WorkerBooted { worker, app } => {
            let (framework, ruby) = (&app.framework, &app.runtime.ruby);
            info!(name: "workers_booted", worker, framework, ruby, "the workers have loaded the application");
        }
        AppLog::WorkerFailed { worker, promoting, failure } => {
            let what =
                if *promoting { "a worker could not become a mold" } else { "a worker could not start" };
            error!(
                name: "worker_failed",
                worker,
                error = %failure.error,
                at = failure.error.place(),
                backtrace = failure.error.calls(BACKTRACE_LINES),
                remedy = failure.boot.as_ref().and_then(|boot| boot.account.remedy.as_deref()),
                "{what}"
            );
        }
        AppLog::StartsTooLong { worker } => {
            warn!(
                name: "worker_slow_to_start", worker, "the worker takes too long to start; these are its threads:"
            );
        }
        AppLog::Broken { worker, why } => {
            error!(
                name: "worker_ring_invalid", worker, why, "killing the worker: it wrote invalid data into its ring"
            );
        }
        AppLog::Retires { worker } => debug!(worker, "worker retires"),
        _ => of_replacement(log, app),
    }
}

/// A worker that another one replaces, and how many there are.
fn of_replacement(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::ReplacedAfterTerm { worker } => info!(
            name: "worker_terminated", worker, "the worker received TERM: replacing it"
        ),
        AppLog::ReplacedForRing { worker } => {
            info!(
                name: "worker_used_up", worker, "replacing the worker: it has used all request numbers of its ring"
            );
        }
        AppLog::Replacing { worker, cause, .. } if cause.is_usual() => {
            debug!(worker, %cause, "another worker takes the place of the first");
        }
        AppLog::Replacing { worker, cause, memory: None } => {
            let pid = app.pid_of_worker(*worker);
            warn!(
                name: "worker_replaced", worker, pid, %cause, "replacing the worker: a new one starts first"
            );
        }
        AppLog::Replacing { worker, memory: Some(over), .. } => of_memory(*worker, over, app),
        AppLog::MemoryLimitTooSmall { over } => limit_too_small(over),
        AppLog::ReplacementDelayed { worker, cause, wait } => {
            warn!(
                name: "worker_replacement_delayed",
                worker,
                %cause,
                wait_ms = ms(*wait),
                "replacement delayed: many workers were replaced lately, and new ones did not help"
            );
        }
        AppLog::Replaced { worker, retires_first: true, .. } => {
            debug!(worker, "the worker finishes its requests; then a new one starts");
        }
        AppLog::Replaced { worker, cause, .. } if cause.is_usual() => {
            debug!(worker, "another worker serves: the first one ends, unless it holds a connection");
        }
        AppLog::Replaced { worker, cause, .. } => {
            let pid = app.pid_of_worker(*worker);
            info!(
                name: "worker_handed_over",
                worker, pid, %cause, "a new worker has taken over; the old one finishes its requests"
            );
        }
        AppLog::NotReplaced { worker, cause } => {
            error!(
                name: "worker_not_replaced",
                worker, %cause, "the worker was not replaced: no new worker was ready within boot_timeout"
            );
        }
        AppLog::WorkersWanted(workers) => info!(name: "worker_count_set", workers, "worker count set"),
        AppLog::Resized(decision) => {
            let (before, workers) = (decision.from, decision.to);
            info!(
                name: "worker_count_changed", before, workers, because = %decision.reason, "worker count changed"
            );
        }
        AppLog::NotResized(hindrance) => {
            info!(
                name: "worker_count_limited", because = %hindrance, "the load needs more workers, but none can be added"
            );
        }
        _ => {}
    }
}

/// A worker that ends, and not in order.
fn of_death(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::WorkerGone { worker, ending } => {
            debug!(worker, pid = app.pid_of_worker(*worker), %ending, "worker gone");
        }
        AppLog::WorkerDied { worker, ending, state, is_usual } => {
            let (pid, state) = (app.pid_of_worker(*worker), state.name());
            match is_usual {
                true => debug!(worker, pid, %ending, state, "the worker died"),
                false => warn!(name: "worker_died", worker, pid, %ending, state, "the worker died"),
            }
        }
        AppLog::CrashLoop(crashes) => {
            let Crashes { deaths, within, last } = crashes;
            error!(
                name: "crash_loop",
                deaths,
                seconds = within.as_secs(),
                worker = last.worker,
                last = %last.ending,
                error = last.failure,
                remedy = crashes.remedy(),
                "crash loop: workers die soon after they start; Highball starts new ones more slowly and stops logging each death"
            );
        }
        AppLog::CrashLoopOver => info!(
            name: "crash_loop_over", "crash loop over: no worker died for a minute"
        ),
        AppLog::Overdue { worker, state } => {
            warn!(
                name: "worker_killed", worker, state = state.name(), "killing the worker: it took too long"
            );
        }
        AppLog::ControlClosed { worker, is_usual: true } => {
            debug!(worker, "killing the worker: it closed its control socket");
        }
        AppLog::ControlClosed { worker, is_usual: false } => {
            warn!(
                name: "worker_closed_control",
                worker,
                "killing the worker: it closed its control socket. Does the application call `exec`, or close file descriptors that it did not open?"
            );
        }
        AppLog::WorkerUnkillable { worker } => {
            error!(name: "worker_unkillable", worker, "the worker cannot be killed: leaving it behind");
        }
        _ => {}
    }
}

/// A process that runs beside the workers.
fn of_companion(label: &str, what: &CompanionLog, app: &AppSupervisor) {
    match what {
        CompanionLog::Started { number } => {
            let pid = app.companions.get(number).and_then(|companion| companion.program);
            info!(name: "process_started", process = label, pid, "process started");
        }
        CompanionLog::Ended { how, next, is_usual } => {
            companion_ended(label, how, *next, *is_usual);
        }
        CompanionLog::OverMemory { bytes, limit } => {
            warn!(
                name: "process_over_memory",
                process = label,
                bytes_mib = bytes >> 20,
                limit_mib = limit >> 20,
                "ending the process, which uses more than its memory_limit"
            );
        }
        CompanionLog::Failed { waiting } => {
            let remedy =
                format!("Look at what {label} printed above. Fix it, and restart: highball restart.");
            let waiting = waiting.join(", ");
            error!(
                name: "process_waits_in_vain",
                process = label,
                waiting,
                remedy,
                "the process has failed: what starts after it does not start"
            );
        }
        CompanionLog::CrashLoop { ends } => {
            let remedy = "Look at what it printed above. Fix it, and restart: highball restart.";
            error!(
                name: "process_crash_loop",
                process = label,
                ends,
                remedy,
                "crash loop: the process ends soon after it was started; Highball starts it ever more slowly and stops logging each end"
            );
        }
        CompanionLog::Steady => {
            info!(
                name: "process_crash_loop_over", process = label, "crash loop over: the process has run for a minute"
            );
        }
        CompanionLog::Overdue { was_asked: true } => {
            warn!(
                name: "process_killed", process = label, "killing the process: it did not end within stop_timeout"
            );
        }
        CompanionLog::Overdue { was_asked: false } => {
            warn!(
                name: "process_killed", process = label, "killing the process: what watched over it does not answer"
            );
        }
        CompanionLog::Unkillable => {
            error!(
                name: "process_unkillable", process = label, "the process cannot be killed: leaving it behind"
            );
        }
    }
}

fn companion_ended(label: &str, how: &CompanionEnd, next: Next, is_usual: bool) {
    let ending = match how {
        CompanionEnd::Ended(ending) => ending.to_string(),
        CompanionEnd::NotStarted(_) | CompanionEnd::OverMemory(_) => how.to_string(),
    };
    // What a shell reports.
    let remedy = match how {
        CompanionEnd::Ended(Ending::Exited(127)) | CompanionEnd::NotStarted(_) => {
            Some("Look at its command, and at what it printed above: is there such a program?")
        }
        CompanionEnd::Ended(Ending::Exited(126)) => {
            Some("Make its command a program that the application's user may run (chmod +x).")
        }
        CompanionEnd::Ended(_) | CompanionEnd::OverMemory(_) => None,
    };
    match next {
        Next::Ordered => info!(name: "process_ended", process = label, ending, "process ended"),
        Next::After(_) if is_usual => debug!(process = label, ending, "the process ended unasked"),
        Next::After(wait) => {
            let again_in_seconds = wait.as_secs();
            warn!(
                name: "process_ended_unasked",
                process = label,
                ending, again_in_seconds, remedy, "the process ended unasked: starting it again"
            );
        }
        Next::Nothing if how.is_success() => {
            info!(
                name: "process_done",
                process = label, ending, "the process is done: it starts again with the next version"
            );
        }
        Next::Nothing => {
            warn!(
                name: "process_ended_unasked",
                process = label,
                ending, remedy, "the process ended unasked: it starts again with the next version"
            );
        }
    }
}

/// A worker is replaced for its memory.
fn of_memory(worker: u32, over: &OverMemory, app: &AppSupervisor) {
    let OverMemory { bound, worker_bytes, bytes, limit, has_room } = over;
    let how = if *has_room {
        "a new one starts first"
    } else {
        "it ends first, because there is no memory for both; requests wait meanwhile"
    };
    warn!(
        name: "worker_over_memory",
        worker,
        pid = app.pid_of_worker(worker),
        limit = %bound,
        worker_mib = worker_bytes >> 20,
        bytes_mib = bytes >> 20,
        limit_mib = limit >> 20,
        "replacing the worker, which uses too much memory: {how}"
    );
}

fn limit_too_small(over: &OverMemory) {
    error!(name: "limit_too_small", limit = %over.bound, "{}", over.too_small());
}

fn of_restart(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::NoRestart { asked, why } => warn!(name: "restart_refused", %asked, why, "no restart"),
        AppLog::RestartWaits { asked, generation } => {
            info!(name: "restart_queued", %asked, generation, "restart queued");
        }
        AppLog::Restarting { asked, generation } => info!(
            name: "restart_begun", %asked, generation, "restarting"
        ),
        AppLog::CanaryPassed { worker, status } => {
            info!(
                name: "new_version_answers", worker, status, path = app.app.process.probe_path, "the new version answers"
            );
        }
        AppLog::CanaryKilled { worker } => warn!(name: "canary_killed", worker, "killing the canary"),
        AppLog::Restarted { generation, workers, took } => {
            info!(
                name: "restarted", generation, workers, took_ms = ms(*took), "restarted: the new version serves"
            );
        }
        AppLog::RestartFailed { generation, stage, failure } => {
            let Failure { what, at, backtrace, remedy } = failure;
            error!(
                name: "restart_failed",
                generation,
                stage,
                error = what,
                at,
                backtrace,
                remedy,
                "the restart failed; the old version keeps serving"
            );
        }
        AppLog::RestartGivenUp { generation, stage } => {
            warn!(name: "restart_abandoned", generation, stage, "restart abandoned");
        }
        AppLog::SiteNotReopened { generation, failure } => {
            let (error, remedy) = (&failure.what, &failure.remedy);
            error!(
                name: "restart_failed", generation, error, remedy, "the restart failed; the old site stays"
            );
        }
        _ => {}
    }
}

fn of_rollout(log: &RolloutLog) {
    match log {
        RolloutLog::Refused { why } => warn!(name: "rollout_refused", why, "no rollout"),
        RolloutLog::Holds { generation, share, took } => info!(
            name: "rollout_holds", generation, %share, took_ms = ms(*took), "the new version serves its share of the visitors"
        ),
        RolloutLog::Finishes { generation } => info!(
            name: "rollout_finishing", generation, "the new version is for all visitors: replacing the workers of the old one"
        ),
        RolloutLog::Undone { generation } => info!(
            name: "rollout_undone", generation, "rollout undone: all visitors get the old version"
        ),
    }
}

fn of_refork(log: &AppLog, app: &AppSupervisor) {
    match log {
        AppLog::NoRefork { cause, why } => warn!(name: "refork_refused", asked = %cause, why, "no refork"),
        AppLog::Reforking { cause, worker } => info!(
            name: "refork_begun", asked = %cause, worker, "reforking"
        ),
        AppLog::Promoted { worker, boot } => {
            info!(
                name: "worker_promoted", worker, pid = app.pid_of_mold(*boot), "the worker was promoted to mold"
            );
        }
        AppLog::Reforked { worker, workers, took } => {
            info!(name: "reforked", worker, workers, took_ms = ms(*took), "reforked");
        }
        AppLog::ReforkFailed { why } => error!(
            name: "refork_failed", why, "the refork failed; the old mold stays"
        ),
        AppLog::Unfit { why, careful: false } => {
            warn!(name: "refork_unsupported", why, "no refork: workers of this version cannot become molds");
        }
        AppLog::Unfit { why, careful: true } => {
            info!(
                name: "refork_unprofitable", why, "no automatic reforks of this version (refork_after = auto)"
            );
        }
        AppLog::ReforkOutcome { before_kib, after_kib, is_last } => {
            let (before_mib, after_mib) = (before_kib / 1024, after_kib / 1024);
            let next =
                if *is_last { "this version will not refork again" } else { "another refork may follow" };
            info!(
                name: "refork_memory",
                before_mib, after_mib, next, "memory of the application before and after the refork"
            );
        }
        AppLog::NoRoomForRefork { expected_kib } => {
            let expected_mib = expected_kib / 1024;
            info!(
                name: "refork_delayed", expected_mib, "refork delayed: not enough free memory for a second mold"
            );
        }
        _ => {}
    }
}
