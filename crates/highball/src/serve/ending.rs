//! How a server ends: what it logs, and its exit code.

use std::process::ExitCode;

use super::waiting::Waiting;
use highball_front as front;
use highball_supervisor::Outcome;
use tokio::runtime::Runtime;
use tracing::{error, info, warn};

/// Why a process that should have taken over has ended.
pub(super) fn why_not(outcome: &Outcome) -> String {
    match outcome {
        Outcome::BootFailed(failure) => highball_supervisor::in_brief(failure),
        Outcome::BootLoop(why) => format!("the application does not come up: {why}"),
        Outcome::Drained | Outcome::Stopped | Outcome::Halted => {
            "the new process got a signal to stop".into()
        }
        Outcome::CallerGone | Outcome::HandedOver(_) => "the new process has ended".into(),
    }
}

/// Logs how many requests got no complete answer, by kind.
fn log_unanswered(unanswered: front::Unanswered) {
    let front::Unanswered { incomplete, left, cut_off, in_flight } = unanswered;
    let some = |count: usize| Some(count).filter(|count| *count > 0);
    warn!(
        name: "requests_cut_off",
        not_received_in_time = some(incomplete),
        clients_left = some(left),
        answers_cut_off = some(cut_off),
        unfinished = some(in_flight),
        "some requests got no complete answer while the server was stopping"
    );
}

/// Logs how the run ended, and returns the exit code. A process with a successor may still have to stay as the
/// service's pid.
pub(super) fn conclude(
    outcome: Outcome,
    unanswered: front::Unanswered,
    waiting: &Waiting,
    runtime: &Runtime,
) -> ExitCode {
    let is_complete = unanswered == front::Unanswered::default();
    // Ctrl-C in development waits for none.
    if !is_complete && !matches!(outcome, Outcome::Stopped) {
        log_unanswered(unanswered);
    }
    match outcome {
        Outcome::Drained if is_complete => info!(name: "stopped", "stopped; every request was answered"),
        Outcome::Stopped => match waiting.cut_off() {
            Some(cut_off) if !is_complete => info!(name: "stopped", cut_off, "stopped without waiting"),
            _ => info!(name: "stopped", "stopped"),
        },
        Outcome::Drained => info!(name: "stopped", "stopped"),
        Outcome::Halted => warn!(
            name: "stopped", "stopped; Highball killed the processes that did not end in time"
        ),
        Outcome::BootFailed(_) => {} // the supervisor has logged why
        Outcome::BootLoop(ref why) => error!(
            name: "gave_up", why, "giving up: the application does not boot"
        ),
        Outcome::CallerGone => error!(
            name: "gave_up", "giving up: the process that holds the application has ended"
        ),
        Outcome::HandedOver(_) => info!(
            name: "hot_restart_finished", "finished the remaining requests after the hot restart"
        ),
    }
    match outcome {
        Outcome::Drained | Outcome::Stopped => ExitCode::SUCCESS,
        Outcome::HandedOver(pid_proxy) => ExitCode::from(runtime.block_on(pid_proxy.stay())),
        _ => ExitCode::FAILURE,
    }
}
