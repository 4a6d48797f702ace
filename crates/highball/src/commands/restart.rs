//! `highball restart`, `highball rollout` and `highball refork`.

use crate::commands::{announce, ask, ends_within, process, unexpected, CommandError, LOOK_EVERY};
use crate::control::asking;
use crate::control::finding::Instance;
use crate::control::messages::{Answer, Question};
use crate::control::selection::{is_selected, selected, the_only};
use crate::output::{complain, progress};
use highball_config::{RolloutOrder, Selector, VisitorShare};
use highball_link::{AppReport, ReforkReport, RestartReport, WorkerReport};
use std::io;

/// Restarts the selected application, or all of the selected instance, and waits for the result.
pub(crate) fn restart(selector: &Selector) -> Result<(), CommandError> {
    for_each_app(selector, |instance, app| {
        let pid = instance.status.pid;
        let generation = match ask(instance, Question::Restart { app })? {
            Answer::Restarting { generation, .. } => generation,
            Answer::Refused { why } => return Err(CommandError::Refused(pid, why)),
            _ => return Err(unexpected(instance)),
        };
        follow(instance, app, |pid, status| report_on(generation, pid, status))
    })
}

/// Gives a share of the visitors a new version of the selected application, or of all of the selected instance; or goes back. Waits
/// for the result.
pub(crate) fn rollout(order: RolloutOrder, selector: &Selector) -> Result<(), CommandError> {
    for_each_app(selector, |instance, app| {
        let pid = instance.status.pid;
        let generation = match ask(instance, Question::Rollout { app, order })? {
            Answer::Restarting { generation, .. } => generation,
            Answer::Refused { why } => return Err(CommandError::NoRollout(pid, why)),
            _ => return Err(unexpected(instance)),
        };
        follow(instance, app, |pid, status| match order {
            RolloutOrder::Share(share) if share < VisitorShare::ALL => {
                report_on_share(generation, share, pid, status)
            }
            RolloutOrder::Share(_) => report_on(generation, pid, status),
            RolloutOrder::Undo => Ok(report_on_undo(generation, pid, status)),
        })
    })
}

/// Reforks the selected application, or all of the selected instance, and waits for the result.
pub(crate) fn refork(selector: &Selector) -> Result<(), CommandError> {
    for_each_app(selector, |instance, app| {
        let pid = instance.status.pid;
        let number = match ask(instance, Question::Refork { app })? {
            Answer::Reforking { number, .. } => number,
            Answer::Refused { why } => return Err(CommandError::NoRefork(pid, why)),
            _ => return Err(unexpected(instance)),
        };
        follow(instance, app, |pid, status| report_on_refork(number, pid, status))
    })
}

/// Does it for the selected application; or for each that the selected instance has, one after the other. Sleeping
/// applications have nothing to be replaced.
fn for_each_app(
    selector: &Selector,
    act: impl Fn(&Instance, u32) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_only(&found)?;
    announce(instance);
    let all = &instance.status.apps;
    let is_meant = |app: &&AppReport| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app));
    let (asleep, meant): (Vec<&AppReport>, Vec<&AppReport>) =
        all.iter().filter(is_meant).partition(|app| app.processes.phase == "asleep");
    for app in asleep {
        progress(format_args!("{} is asleep; its next request boots the current code", app.name));
    }
    if let ([app], true) = (&meant[..], selector.app.is_some() || all.len() == 1) {
        return act(instance, app.processes.id.0);
    }
    let mut failed = 0;
    for app in &meant {
        progress(format_args!("{}:", app.name));
        if let Err(error) = act(instance, app.processes.id.0) {
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
    report: impl Fn(i32, &AppReport) -> Result<Option<String>, CommandError>,
) -> Result<(), CommandError> {
    let pid = instance.status.pid;
    let silent = |error| CommandError::Silent(pid, error);
    let process = process(pid)?;
    let mut before = String::new();
    loop {
        let asked = asking::ask(&instance.address, Question::Status);
        if ends_within(&process, LOOK_EVERY).map_err(silent)? {
            return Err(CommandError::Ended(pid));
        }
        let state = match asked {
            Ok(Answer::Status(status)) if status.pid != pid => return Err(CommandError::Ended(pid)),
            Ok(Answer::Status(status)) => match status.apps.iter().find(|one| one.processes.id.0 == app) {
                Some(app) => report(pid, app)?,
                None => return Err(CommandError::Refused(pid, "the application was removed".into())),
            },
            Ok(_) => return Err(unexpected(instance)),
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

/// The state of the restart to this generation; `None`: it is done, and that was printed.
fn report_on(generation: u32, pid: i32, status: &AppReport) -> Result<Option<String>, CommandError> {
    let is_it = |restart: &&RestartReport| restart.generation == generation;
    let Some(restart) = status.processes.restarts.iter().find(is_it) else {
        return Err(CommandError::Forgotten(generation));
    };
    match (restart.state.as_str(), &restart.failure) {
        ("done", _) => {
            let RestartReport { generation, seconds, .. } = restart;
            progress(format_args!("generation {generation} serves, after {seconds:.1} s (pid {pid})"));
            Ok(None)
        }
        ("undone", _) => Err(CommandError::RolloutUndone(generation)),
        ("failed", why) => Err(CommandError::RestartFailed(generation, why.clone().unwrap_or_default())),
        (state, _) => Ok(Some(state.into())),
    }
}

/// How far the rollout of this generation has come; `None`: it has this share of the visitors, or a larger one, and that was printed.
fn report_on_share(
    generation: u32,
    share: VisitorShare,
    pid: i32,
    status: &AppReport,
) -> Result<Option<String>, CommandError> {
    let rollout = status.requests.rollout.as_ref().filter(|rollout| rollout.generation == generation);
    let has_share = rollout.is_some_and(|rollout| rollout.share_percent >= share.percent());
    let restart = status.processes.restarts.iter().find(|restart| restart.generation == generation);
    match restart.filter(|restart| restart.state == "holding" && has_share) {
        Some(restart) => {
            let seconds = restart.seconds;
            progress(format_args!(
                "generation {generation} serves {share} of the visitors, after {seconds:.1} s (pid {pid})"
            ));
            Ok(None)
        }
        None => report_on(generation, pid, status),
    }
}

/// How far the end of a rollout has come; `None`: nothing is left of it, and that was printed.
fn report_on_undo(generation: u32, pid: i32, status: &AppReport) -> Option<String> {
    let serves =
        |worker: &WorkerReport| worker.process.generation == generation && worker.process.state == "serving";
    if status.requests.rollout.is_some() || status.workers.iter().any(serves) {
        return Some("undoing".into());
    }
    progress(format_args!(
        "generation {} serves all visitors again (pid {pid})",
        status.processes.generation
    ));
    None
}

/// The state of this refork; `None`: it is done, and that was printed.
fn report_on_refork(number: u32, pid: i32, status: &AppReport) -> Result<Option<String>, CommandError> {
    let refork = status.processes.refork.as_ref().filter(|refork| refork.number == number);
    let Some(ReforkReport { state, seconds, failure, worker, .. }) = refork else {
        return Err(CommandError::ReforkForgotten);
    };
    match state.as_str() {
        "done" => {
            let worker = worker.unwrap_or_default();
            progress(format_args!(
                "all workers are forked from former worker {worker}, after {seconds:.1} s (pid {pid})"
            ));
            Ok(None)
        }
        "failed" | "refused" => Err(CommandError::ReforkFailed(failure.clone().unwrap_or_default())),
        state => Ok(Some(state.into())),
    }
}

fn stage_words(state: &str) -> &str {
    match state {
        "queued" => "waiting until it can begin",
        "booting" => "booting the new version",
        "probing" => "checking that it answers",
        "holding" => "starting workers of the new version",
        "rolling" => "replacing the workers",
        "undoing" => "going back to the old version",
        "choosing" | "asking" => "looking for a worker to fork from",
        "relieving" => "forking a worker that serves in its place",
        "retiring" => "letting it finish its requests",
        "promoting" => "turning it into a mold",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::test_status::an_app;
    use highball_link::RolloutReport;

    #[test]
    fn a_restart_is_done_or_failed_or_somewhere() {
        let mut status = an_app();
        let in_state =
            |status: &mut AppReport, state: &str| status.processes.restarts[0].state = state.into();
        assert!(matches!(report_on(2, 42, &status), Ok(None)));
        assert!(matches!(report_on(3, 42, &status), Err(CommandError::Forgotten(3))));
        in_state(&mut status, "probing");
        assert!(matches!(report_on(2, 42, &status), Ok(Some(state)) if state == "probing"));
        in_state(&mut status, "failed");
        status.processes.restarts[0].failure = Some("no luck\nat: a.rb:1".into());
        let error = report_on(2, 42, &status).unwrap_err().to_string();
        assert!(error.ends_with("is still serving.\nno luck\nat: a.rb:1"), "{error}");
    }

    #[test]
    fn a_rollout_has_its_share_when_the_front_gives_it() {
        let share: VisitorShare = "20%".parse().unwrap();
        let mut status = an_app();
        let rollout =
            |share_percent| RolloutReport { generation: 2, share_percent, ..RolloutReport::default() };
        status.processes.restarts[0].state = "holding".into();
        for (at, is_done) in [(None, false), (Some(5.0), false), (Some(20.0), true), (Some(30.0), true)] {
            status.requests.rollout = at.map(rollout);
            let state = report_on_share(2, share, 42, &status).unwrap();
            assert_eq!(state.is_none(), is_done, "{at:?}");
        }
        assert!(matches!(report_on_share(3, share, 42, &status), Err(CommandError::Forgotten(3))));
        status.processes.restarts[0].state = "undone".into();
        assert!(matches!(report_on_share(2, share, 42, &status), Err(CommandError::RolloutUndone(2))));
    }

    #[test]
    fn a_rollout_is_undone_when_nothing_of_it_serves() {
        let mut status = an_app();
        let (generation, state) = (status.workers[0].process.generation, "serving".to_owned());
        status.workers[0].process.state = state;
        assert_eq!(report_on_undo(generation, 42, &status).as_deref(), Some("undoing"));
        assert_eq!(report_on_undo(generation + 1, 42, &status), None);
        status.requests.rollout = Some(RolloutReport::default());
        assert_eq!(report_on_undo(generation + 1, 42, &status).as_deref(), Some("undoing"));
    }
}
