//! What has to hold after every step, whatever has happened.

use super::books::{ensure, Checked};
use super::world::World;
use crate::core::app::App;
use crate::core::companions::{CompanionState, Place};
use crate::core::condition::Condition;
use crate::core::mold::{Mold, MoldState};
use crate::core::refork::ReforkStage;
use crate::core::restart::Stage;
use crate::core::rolling::Move;
use crate::core::server::upgrade::UpgradeStage;
use crate::core::server::{Server, ServerPhase, TURN};
use crate::core::sizing::Sizing;
use crate::core::step::rollout::MoveBeside;
use crate::core::worker::WorkerState;
use crate::core::{Process, Receipt, Source};
use highball_config::{AppId, RestartRule};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time that a worker is missing because others have died.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After every step.
pub(super) fn check(world: &World) -> Checked {
    let server = &world.server;
    if server.phase == ServerPhase::Ended {
        return Ok(());
    }
    let due = server.next_deadline();
    ensure(due.is_none_or(|due| due > world.now), || "a deadline has passed, and nothing came of it".into())?;
    for (id, app) in &server.apps {
        check_waiting(world, *id, app)?;
        check_changes(world, *id, app)?;
        check_staff(app)?;
        check_rollout(app)?;
        check_known(world, *id, app)?;
        check_companions(app)?;
        world.books.check_replacements(*id, app)?;
    }
    let boots = server
        .apps
        .values()
        .filter_map(|app| app.molds.boot_since())
        .filter(|began| world.now < *began + TURN);
    let boots = boots.count();
    ensure(boots <= server.config.boots_at_a_time + promised(server), || format!("{boots} boots at a time"))
}

/// Sites need no turn.
fn promised(server: &Server) -> usize {
    server.apps.values().filter(|app| app.config.source == Source::Site).count()
}

/// Nothing waits for ever: every state that waits has a deadline, or an action is under way that will be answered.
fn check_waiting(world: &World, id: AppId, app: &App) -> Checked {
    for (number, worker) in app.staff.workers().iter() {
        let waits = worker.state != WorkerState::Serving;
        ensure(!waits || worker.deadline.is_some(), || {
            format!("worker {number} is {} without a deadline", worker.state.name())
        })?;
    }
    for mold in app.molds.iter() {
        let waits = !mold.is_booted();
        ensure(!waits || mold.deadline.is_some(), || {
            format!("mold {} is {} without a deadline", mold.boot, mold.state.name())
        })?;
    }
    let explains = |receipt: Receipt| world.books.diagnoses.contains(&(id, receipt));
    if let Condition::Explaining(receipt) = app.condition {
        ensure(explains(receipt), || "a diagnosis is waited for that is not being made".into())?;
    }
    if let Some(receipt) = app.boots.explaining() {
        ensure(explains(receipt), || "a boot waits for a diagnosis that is not being made".into())?;
    }
    let failed = if let Condition::Failed(failed) = &app.condition { failed.looks() } else { None };
    if let Some(look) = failed {
        ensure(world.books.looks.contains(&(id, look)), || {
            "a look at the folder is waited for that is not under way".into()
        })?;
    }
    if let Some(upgrade) = &world.server.upgrades.going {
        let queued = upgrade.stage == UpgradeStage::Queued;
        ensure(queued || upgrade.deadline.is_some(), || "a hot restart has no deadline".into())?;
    }
    Ok(())
}

/// Restarts and reforks.
fn check_changes(world: &World, id: AppId, app: &App) -> Checked {
    let (restart, refork) = (app.restarts.going(), app.reforks.going());
    ensure(restart.is_none() || refork.is_none(), || "a restart and a refork at once".into())?;
    let running = app.phase.is_running();
    ensure(running || (restart.is_none() && refork.is_none()), || "a change goes on at the end".into())?;
    if let Some(restart) = restart {
        ensure(restart.next.number() > app.current.number(), || "a restart leads back".into())?;
        let is_awaited = match restart.stage {
            Stage::Booting => app.molds.of(restart.next.line()).is_some() || app.boots.site().is_some(),
            Stage::Probing => app.staff.workers().has_any_of(restart.next.number()),
            Stage::Holding | Stage::Rolling => app.molds.of(restart.next.line()).is_some(),
            Stage::Undoing => {
                app.staff.workers().has_any_of(restart.next.number())
                    || restart
                        .explaining
                        .is_some_and(|(receipt, _)| world.books.diagnoses.contains(&(id, receipt)))
            }
        };
        ensure(is_awaited, || format!("a restart waits for nothing, {}", restart.stage.name()))?;
        ensure(app.current.has_booted(), || "a restart goes on although nothing served".into())?;
    }
    if let Some(refork) = refork {
        let state = app.staff.get(refork.worker).map(|worker| worker.state);
        let is_awaited = match refork.stage {
            ReforkStage::Choosing | ReforkStage::Asking | ReforkStage::Relieving => refork.deadline.is_some(),
            ReforkStage::Retiring => {
                matches!(state, Some(WorkerState::Retiring | WorkerState::Draining | WorkerState::Halted))
            }
            ReforkStage::Promoting => {
                matches!(state, Some(WorkerState::Promoting | WorkerState::Draining | WorkerState::Halted))
            }
            ReforkStage::Rolling => refork.line.is_some_and(|line| app.molds.of(line).is_some()),
        };
        ensure(is_awaited, || format!("a refork waits for nothing, {}", refork.stage.name()))?;
    }
    Ok(())
}

/// Workers that are wanted are there, on their way, or there is a reason.
fn check_staff(app: &App) -> Checked {
    if let Some(range) = app.staff.sizing().map(Sizing::range).filter(|_| !app.config.is_site()) {
        ensure((range.min..=range.max).contains(&app.staff.wanted()), || {
            format!("{} workers are wanted, of {}..{}", app.staff.wanted(), range.min, range.max)
        })?;
    }
    if !app.phase.is_running() {
        return Ok(());
    }
    let serves = app.current.has_booted() && !app.condition.is_asleep();
    let is_serving = app.condition.is_serving();
    ensure(serves == is_serving, || format!("it is {:?}, and has an app: {serves}", app.condition))?;
    if app.config.source == Source::Site {
        return Ok(());
    }
    let tally = app.tally();
    match tally.next_move() {
        Move::RetireOther | Move::RetireSurplus => Err(format!("too many workers serve: {tally:?}")),
        Move::Wait => Ok(()),
        Move::Fork if !is_serving && !matches!(app.condition, Condition::Booting) => Ok(()),
        Move::Fork => {
            let backs_off = app.staff.fork_due() > app.now;
            ensure(app.staff.fork_due() <= app.now + LONGEST_PAUSE, || {
                "the next fork is too far away".into()
            })?;
            let is_busy = app.staff.workers().in_state(WorkerState::Forking) >= 8;
            let mold = app.molds.of(app.staying()).filter(|mold| mold.is_booted());
            let boots = mold.is_none() && boot_is_coming(app);
            ensure(backs_off || is_busy || boots, || format!("workers are missing: {tally:?}"))
        }
    }
}

/// While a rollout holds, both versions have workers, or there is a reason.
fn check_rollout(app: &App) -> Checked {
    let Some(restart) = app.restarts.holding() else { return Ok(()) };
    let (wanted, of_old) = (usize::from(app.staff.wanted()), app.tally().wanted);
    let of_new = restart.wanted_beside(app.staff.wanted());
    ensure(of_old >= 1 && of_new >= 1 && of_new <= wanted, || {
        format!("{of_old} old and {of_new} new workers are wanted")
    })?;
    ensure(restart.held_thousandths() < 1000, || "a rollout holds for all visitors".into())?;
    let may_fork =
        app.staff.may_fork(app.now) && app.molds.of(restart.next.line()).is_some_and(Mold::is_booted);
    match app.move_beside() {
        Some(MoveBeside::Fork) => ensure(!may_fork, || "a worker of the new version is missing".into()),
        Some(MoveBeside::Retire) => Err("too many workers of the new version serve".into()),
        None => Ok(()),
    }
}

/// Whether the version that is served has a mold that is not booted yet or is ending, or a boot is due or waits for its
/// turn.
fn boot_is_coming(app: &App) -> bool {
    let mold = app.molds.of(app.current.line());
    let is_there = mold.is_some_and(|mold| !matches!(mold.state, MoldState::Booted));
    let is_due = mold.is_none() && (app.boots.due() > app.now || !app.surroundings.may_boot);
    let is_changing = app.staying() != app.current.line();
    is_there || is_due || app.boots.explaining().is_some() || is_changing
}

/// Companions of a name are of one version; a companion that waits for something has a deadline.
fn check_companions(app: &App) -> Checked {
    let mut versions = BTreeMap::new();
    for place in app.companions.places() {
        let Some(occupant) = &place.occupant else { continue };
        let waits = occupant.state != CompanionState::Running;
        ensure(!waits || occupant.deadline.is_some(), || {
            format!("companion {} is {:?} without a deadline", occupant.number, occupant.state)
        })?;
        let version = (occupant.generation, &place.companion); // the configuration may have been read twice
        let known = versions.entry(&place.companion.name).or_insert(version);
        ensure(*known == version, || format!("two versions of {} run", place.companion.name))?;
        let is_old = occupant.generation != app.current.number() && !waits;
        ensure(!is_old, || format!("companion {} of an old version runs", occupant.number))?;
        ensure(waits || app.phase.is_running(), || "a companion runs at the end".into())?;
    }
    Ok(())
}

/// The processes that exist are known.
fn check_known(world: &World, id: AppId, app: &App) -> Checked {
    for ((_, process), life) in
        world.processes.range((id, Process::Mold(0))..=(id, Process::Companion(u32::MAX)))
    {
        let is_known = match process {
            Process::Mold(boot) => {
                app.molds.iter().any(|mold| mold.boot == *boot) || world.books.spawning.contains(&(id, *boot))
            }
            Process::Worker(worker) => app.staff.get(*worker).is_some(),
            Process::Companion(number) => app.companions.get(*number).is_some(),
        };
        ensure(is_known || life.died_at.is_some() || life.is_orphan, || {
            format!("{process:?} lives, and is in no books")
        })?;
    }
    Ok(())
}

/// Once nothing goes wrong any more.
pub(super) fn check_at_rest(world: &World) -> Checked {
    for (id, number) in &world.stuck {
        let worker = world.server.apps.get(id).and_then(|app| app.staff.get(*number));
        ensure(worker.is_none(), || format!("worker {number} begins no requests, and is not replaced"))?;
    }
    for (id, app) in &world.server.apps {
        ensure(app.is_at_rest(), || format!("application {id} is not at rest: {:?}", app.condition))?;
        ensure(app.molds.iter().all(|mold| mold.line.is_some()), || "molds are still leaving".into())?;
        if app.phase.is_running() && app.condition.is_serving() {
            check_serves(app)?;
            check_companions_run(app)?;
        }
        if app.condition.is_asleep() {
            ensure(app.molds.iter().next().is_none() && app.staff.workers().is_empty(), || {
                "it sleeps, and has processes".into()
            })?;
        }
        ensure(!matches!(app.condition, Condition::Booting | Condition::Explaining(_)), || {
            "it does not come up".into()
        })?;
        let failed = app.condition.is_failed();
        ensure(!failed, || "it was not tried again, or did not come up".into())?;
    }
    let queued = world.server.upgrades.going.is_some() || world.server.upgrades.is_leaving();
    ensure(!queued, || "a hot restart does not end".into())
}

/// Each companion runs, or is not to be started again; or it is of a time before a restart that failed.
fn check_companions_run(app: &App) -> Checked {
    if app.config.source != Source::Folder {
        return Ok(());
    }
    // What starts after it may wait in vain.
    let is_never_up = |name: &String| {
        let of_name = |place: &&Place| place.companion.name == *name;
        app.companions
            .places()
            .filter(of_name)
            .any(|place| place.companion.restart == RestartRule::Never || place.state() == "ended")
    };
    for place in app.companions.places() {
        let may_wait = place.companion.start_after.iter().any(is_never_up);
        let state = place.state();
        ensure(matches!(state, "running" | "ended") || may_wait && state == "waiting", || {
            format!("companion {} is {state}", place.label())
        })?;
    }
    Ok(())
}

fn check_serves(app: &App) -> Checked {
    if app.config.source == Source::Site {
        return Ok(());
    }
    let (wanted, current) = (usize::from(app.staff.wanted()), &app.current);
    let serves = |line| {
        app.staff
            .workers()
            .iter()
            .filter(|(_, worker)| worker.state == WorkerState::Serving && worker.line == line)
            .count()
    };
    let all = app.staff.workers().iter().count();
    ensure(serves(current.line()) == wanted && all == wanted, || {
        format!("{} of {wanted} workers serve, of {all}", serves(current.line()))
    })?;
    let may_rest = app.boots.rests() && wanted == 1;
    ensure(may_rest || app.molds.of(current.line()).is_some_and(Mold::is_booted), || {
        "there is no mold".into()
    })
}
