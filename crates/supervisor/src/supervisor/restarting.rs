//! Rolling restarts: a new version boots beside the one that is served, its first worker has to show that it answers,
//! and then its workers take the places of the old ones, one at a time. Whatever fails on the way, the old version
//! serves on: the transaction is taken back.

use super::booting::{died_while_booting, not_started};
use super::failing::Failed;
use super::planning::Version;
use super::{HotRestart, Phase, Supervisor, BACKTRACE_LINES};
use crate::boot_plan::{NotStarted, Start};
use crate::checkpoint;
use crate::diagnosis::Diagnosis;
use crate::message::{BootFailure, Booted};
use crate::mold::{Mold, MoldState};
use crate::reaper::Ending;
use crate::report::{MoldReport, RestartReport};
use crate::restart::{Asked, Failure, Generation, Restart, Stage, Wish};
use crate::rolling::passes;
use crate::worker_handle::{StartFailure, WorkerHandle, WorkerState};
use crate::AppNotice;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

const TRY_AGAIN: &str = "Look at what its processes logged above; mend it, and restart again.";

impl Supervisor {
    /// Notes that a restart is wanted, and says the number of the generation that it will bring. Whoever asks while
    /// one waits already shares it: it will see everything that is there by now.
    pub(crate) fn ask_restart(&mut self, asked: Asked) -> Result<u32, String> {
        if self.asleep && asked != Asked::Command {
            return Err("it sleeps, and boots what is there when somebody asks for it".into());
        }
        if let Err(why) = self.may_restart(asked) {
            warn!(%asked, why, "no restart");
            return Err(why.into());
        }
        if self.broken.is_some() {
            self.try_again(Instant::now());
        }
        if self.wish.is_none() {
            self.last_generation += 1;
            if self.restart.is_some() || self.refork.is_some() || self.current.app.is_none() {
                info!(%asked, generation = self.last_generation, "a restart waits until it can begin");
            }
        }
        let wish = self.wish.get_or_insert(Wish { generation: self.last_generation, asked });
        Ok(wish.generation)
    }

    fn may_restart(&self, asked: Asked) -> Result<(), &'static str> {
        if !matches!(self.phase, Phase::Running) {
            return Err("the server is stopping");
        }
        if self.asleep {
            return Err("the application sleeps, and boots what is there when somebody asks for it");
        }
        if asked == Asked::Command && self.hot_restart == HotRestart::Going {
            return Err("a hot restart is under way, and brings the new version of the application as well: wait for its outcome");
        }
        match &self.current.app {
            Some(app) if !app.restartable => {
                Err("the application was given as an object, and cannot be loaded anew: stop its process, and start it")
            }
            _ => Ok(()),
        }
    }

    /// Begins what was asked for, and ends what is done.
    pub(super) async fn advance_restart(&mut self, now: Instant) {
        if let Some(restart) = self.restart.as_ref().filter(|_| !self.next_has_failed()) {
            let (stage, next, line) = (restart.stage, restart.next.number, restart.next.line);
            match stage {
                Stage::Booting => {}
                Stage::Probing if self.workers.has_any_of(next) => {}
                Stage::Probing => {
                    self.fork(line, now).await;
                    checkpoint::pass("restart.canary_forked").await;
                }
                Stage::Rolling if self.workers.tally(line, self.wanted.into(), 0).is_settled() => {
                    self.restart_succeeded(now);
                }
                Stage::Rolling => {}
                Stage::Undoing if self.workers.has_any_of(next) => {}
                Stage::Undoing => self.restart = None,
            }
        }
        let idle = self.restart.is_none() && self.refork.is_none() && self.hot_restart != HotRestart::Going;
        if idle && self.may_boot && self.current.app.is_some() && self.planning.is_none() {
            if let Some(wish) = self.wish.take() {
                self.begin_restart(wish, now);
            }
        }
    }

    /// Boots the new version: from what the given path leads to now.
    fn begin_restart(&mut self, wish: Wish, now: Instant) {
        let Wish { generation: number, asked } = wish;
        info!(%asked, generation = number, "restarting");
        self.last_line += 1;
        let folder = self.app.link.clone(); // what it leads to is found out
        let next = Generation { number, line: self.last_line, folder, app: None, mold: None };
        self.restart = Some(Restart { stage: Stage::Booting, next, asked, began: now });
        self.plan(Version::Next(number), now);
    }

    /// Boots it where and how it was found out.
    pub(super) async fn restart_as_planned(
        &mut self,
        folder: PathBuf,
        start: Result<Start, NotStarted>,
        now: Instant,
    ) {
        if self.is_site() {
            return self.reopen_site(&folder, start).await;
        }
        let started = match start {
            Ok(Start::Ruby(ruby, opened)) => {
                self.spawn_mold(&ruby, &opened, &folder).map_err(NotStarted::from)
            }
            Ok(Start::Site(_)) => Err(NotStarted::NoSite), // it is none
            Err(error) => Err(error),
        };
        let failure = started.as_ref().err().map(|error| not_started(&self.app, &folder, error));
        if let Some(restart) = &mut self.restart {
            restart.next.folder = folder;
            restart.next.mold = started.ok();
        }
        if let Some(failure) = failure {
            self.next_not_booted(failure, now);
        }
    }

    /// Whether this is the generation that a restart brings, and nothing has failed so far.
    pub(super) fn is_next(&self, generation: u32) -> bool {
        let going = |restart: &&Restart| restart.stage != Stage::Undoing;
        self.restart.as_ref().filter(going).is_some_and(|restart| restart.next.number == generation)
    }

    /// The new mold can be forked from; what it says of the application, if it has loaded it.
    pub(super) async fn next_booted(&mut self, app: Option<Booted>) {
        if let Some(restart) = &mut self.restart {
            restart.next.app = app;
            restart.stage = Stage::Probing;
            checkpoint::pass("restart.booted").await;
        }
    }

    pub(super) async fn next_mold_gone(&mut self, ending: Ending, now: Instant) {
        let Some(restart) = &mut self.restart else { return };
        let Some(mold) = restart.next.mold.take() else { return };
        let line = restart.next.line;
        self.forks_are_lost(line, now);
        if self.next_has_failed() {
            return; // it is known that it has not booted, and soon why
        }
        match mold.state {
            MoldState::Booting(journey) | MoldState::Dumping(journey) => {
                self.next_not_booted(died_while_booting(journey.step(), ending), now);
            }
            MoldState::Booted | MoldState::Halted => {
                let what = format!("the new mold died after it had booted: {ending}");
                self.restart_failed(Failure::new(what, TRY_AGAIN), now).await;
            }
        }
    }

    /// The new version did not boot.
    pub(super) fn next_not_booted(&mut self, failure: BootFailure, now: Instant) {
        let going = self.restart.as_ref().filter(|restart| restart.stage != Stage::Undoing);
        let Some(generation) = going.map(|restart| restart.next.number) else { return };
        self.diagnose_failure(Failed::Next(generation), failure, now);
    }

    /// It is known why.
    pub(super) async fn next_diagnosed(&mut self, generation: u32, diagnosis: Diagnosis, now: Instant) {
        if !self.is_next(generation) {
            return; // it was given up meanwhile, or has failed in another way
        }
        let failure = Failure::of_diagnosis(&diagnosis);
        self.diagnosis = Some(diagnosis);
        self.restart_failed(failure, now).await;
    }

    /// The canary has answered its request, or cannot.
    pub(super) async fn canary_answered(&mut self, worker: u32, answer: Result<u16, String>, now: Instant) {
        let path = &self.app.process.probe_path;
        if self.workers.get_mut(worker).is_none_or(|handle| handle.state != WorkerState::Probing) {
            return; // it was halted meanwhile
        }
        match answer {
            Ok(status) if passes(status) => {
                info!(worker, status, path, "the new version answers");
                self.canary_passed(worker).await;
            }
            Ok(status) => {
                let what =
                    format!("probing the new version failed: GET {path} was answered with status {status}");
                let remedy =
                    "Look for the exception in the log above, or name another path with --probe-path.";
                self.restart_failed(Failure::new(what, remedy), now).await;
            }
            Err(why) => {
                let what = format!("probing the new version failed: GET {path} was not answered: {why}");
                self.restart_failed(Failure::new(what, TRY_AGAIN), now).await;
            }
        }
    }

    async fn canary_passed(&mut self, worker: u32) {
        if let Some(handle) = self.workers.get_mut(worker) {
            handle.admit();
        }
        let Some(restart) = &mut self.restart else { return };
        restart.stage = Stage::Rolling;
        if let Some(app) = restart.next.app.clone() {
            self.notify(AppNotice::AppBooted(app)).await; // its static files come with it
        }
        self.notify(AppNotice::CanaryAdmitted { worker }).await;
        checkpoint::pass("restart.admitted").await;
    }

    pub(super) async fn canary_is_silent(&mut self, worker: u32, now: Instant) {
        let (path, limit) = (&self.app.process.probe_path, self.app.process.probe_timeout);
        let what = format!("probing the new version failed: GET {path} was not answered within {limit:?}");
        let remedy =
            "Find out what it waits for. If it really needs longer, raise --probe-timeout, or name another \
                      path with --probe-path.";
        warn!(worker, "the canary is killed");
        self.restart_failed(Failure::new(what, remedy), now).await;
    }

    /// A worker of the new version has died, which none may before all is done.
    pub(super) async fn next_worker_gone(
        &mut self,
        worker: u32,
        handle: &WorkerHandle,
        ending: Ending,
        now: Instant,
    ) {
        let failure = match &handle.failure {
            Some(StartFailure { boot: Some(failure), .. }) => {
                return self.next_not_booted((**failure).clone(), now);
            }
            Some(StartFailure { error, .. }) => Failure {
                what: format!("starting worker {worker} of the new version failed: {error}"),
                at: error.place(),
                backtrace: error.calls(BACKTRACE_LINES),
                remedy: TRY_AGAIN.into(),
            },
            None => {
                let (state, ending) = (handle.state.name(), ending.to_string());
                Failure::new(
                    format!("worker {worker} of the new version died while {state}: {ending}"),
                    TRY_AGAIN,
                )
            }
        };
        self.restart_failed(failure, now).await;
    }

    /// Every place is taken by the new version.
    fn restart_succeeded(&mut self, now: Instant) {
        let Some(restart) = self.restart.take() else { return };
        let took = now - restart.began;
        let (generation, took_ms) = (restart.next.number, took.as_millis() as u64);
        info!(generation, workers = self.wanted, took_ms, "restarted: the new version serves");
        self.past_restarts.add(Wish { generation, asked: restart.asked }, took, None);
        let old = std::mem::replace(&mut self.current, restart.next);
        self.mold_policy.ready();
        self.schedule.restart();
        self.unfit = None;
        self.counts_requests = false; // those of the old version do not count
        self.let_go(old.line, old.mold, now);
    }

    /// Takes the restart back: ends what it has started, and tells why.
    pub(super) async fn restart_failed(&mut self, failure: Failure, now: Instant) {
        let Some(restart) = &mut self.restart else { return };
        let wish = Wish { generation: restart.next.number, asked: restart.asked };
        let was = std::mem::replace(&mut restart.stage, Stage::Undoing);
        let took = now - restart.began;
        let (line, mold) = (restart.next.line, restart.next.mold.take());
        error!(
            generation = wish.generation,
            stage = was.name(),
            error = failure.what,
            at = failure.at,
            backtrace = failure.backtrace,
            remedy = failure.remedy,
            "the restart failed; the version before serves on"
        );
        self.last_failure =
            Some(format!("the restart to generation {} failed: {}", wish.generation, failure.what));
        self.past_restarts.add(wish, took, Some(&failure));
        self.let_go(line, mold, now);
        if was == Stage::Rolling {
            self.notify(AppNotice::GenerationWithdrawn { generation: wish.generation }).await;
            if let Some(app) = self.current.app.clone() {
                self.notify(AppNotice::AppBooted(app)).await;
            }
            checkpoint::pass("restart.undoing").await;
        }
    }

    /// A restart has no sense any more. What serves already is needed for what is in flight.
    pub(super) fn abandon_restarts(&mut self, why: &Failure, now: Instant) {
        if let Some(wish) = self.wish.take() {
            self.past_restarts.add(wish, Duration::ZERO, Some(why));
        }
        let Some(restart) = self.restart.take() else { return };
        if restart.stage != Stage::Undoing {
            warn!(generation = restart.next.number, stage = restart.stage.name(), "the restart is given up");
            let wish = Wish { generation: restart.next.number, asked: restart.asked };
            self.past_restarts.add(wish, now - restart.began, Some(why));
        }
        self.let_go(restart.next.line, restart.next.mold, now);
    }

    /// Nothing new comes of this line any more.
    pub(super) fn let_go(&mut self, line: u32, mold: Option<Mold>, now: Instant) {
        self.workers.halt_coming(line, now);
        if let Some(mut mold) = mold {
            if !matches!(mold.state, MoldState::Halted) {
                mold.halt(now); // else it is ending already, and may still have something to print
            }
            self.leaving_molds.push(mold);
        }
    }

    pub(super) fn restart_reports(&self, now: Instant) -> Vec<RestartReport> {
        let report = |wish: Wish, state, took, mold| RestartReport {
            generation: wish.generation,
            asked_by: wish.asked.to_string(),
            state,
            took,
            failure: None,
            mold,
        };
        let going = self.restart.as_ref().map(|restart| {
            let wish = Wish { generation: restart.next.number, asked: restart.asked };
            let mold = restart.next.mold.as_ref().map(MoldReport::of);
            report(wish, restart.stage.name(), now - restart.began, mold)
        });
        let queued = self.wish.map(|wish| report(wish, "queued", Duration::ZERO, None));
        // One that is being undone has ended, as far as anybody who waits for it is concerned.
        let is_open = |going: &RestartReport| going.state != Stage::Undoing.name();
        self.past_restarts.iter().cloned().chain(going.filter(is_open)).chain(queued).collect()
    }
}
