//! Rolling restarts: a new version boots beside the one that is served, its first worker has to show that it answers,
//! and then its workers take the places of the old ones, one at a time. Whatever fails on the way, the old version
//! keeps serving: the transaction is undone.

use super::super::app::{App, Condition, HotRestart, Restart, Version};
use super::super::event::Process;
use super::super::mold::Mold;
use super::super::mutation::{is_mutated, Mutation};
use super::super::worker::Worker;
use super::super::{AppAction, AppLog, FrontNews};
use super::boot::died_while_booting;
use crate::core::crash_loop::PROBATION;
use crate::core::ending::Ending;
use crate::core::restart::{Asked, Failure, Stage, Wish, BACKTRACE_LINES};
use crate::core::restart_policy::{Life, RestartPolicy};
use crate::core::worker::{StartFailure, WorkerState};
use crate::facts::boot_failure::BootFailure;
use crate::probe::Probe;
use highball_link::{Booted, Diagnosis};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether what is new has lived for long enough to be a success.
pub(super) fn is_proven(proven_at: Option<Instant>, now: Instant) -> bool {
    proven_at.is_some_and(|at| now >= at) || is_mutated(Mutation::SucceedAtOnce)
}

const TRY_AGAIN: &str = "Look at what its processes logged above; fix it, and restart again.";

impl App {
    /// Notes that a restart is wanted; the number of the generation that it will bring. A restart that waits already is
    /// shared: it will see everything that is there by now.
    pub(super) fn ask_restart(&mut self, asked: Asked) -> Result<u32, String> {
        if self.is_asleep() && asked != Asked::Command {
            return Err("it sleeps, and boots what is there when a request arrives".into());
        }
        if let Err(why) = self.may_restart(asked) {
            self.log(AppLog::NoRestart { asked, why });
            return Err(why.into());
        }
        if self.is_failed() {
            self.try_again();
        }
        if self.restarts.wish.is_none() {
            self.restarts.last_generation += 1;
            let waits = self.restarts.going.is_some() || self.reforks.going.is_some();
            if waits || self.current.app.is_none() {
                self.log(AppLog::RestartWaits { asked, generation: self.restarts.last_generation });
            }
        }
        let new = Wish { generation: self.restarts.last_generation, asked };
        let wish = self.restarts.wish.get_or_insert(new);
        Ok(wish.generation)
    }

    fn may_restart(&self, asked: Asked) -> Result<(), &'static str> {
        if !self.is_running() {
            return Err("the server is stopping");
        }
        if self.is_asleep() {
            return Err("the application sleeps, and boots what is there when a request arrives");
        }
        if asked == Asked::Command && self.surroundings.hot_restart == HotRestart::Going {
            return Err("a hot restart is under way, and brings the new version of the application as well: wait for its outcome");
        }
        match &self.current.app {
            Some(app) if !app.restartable => {
                Err("the application was given as an object, and cannot be reloaded: stop its process, and start it")
            }
            _ => Ok(()),
        }
    }

    /// Begins what was asked for, and ends what is done.
    pub(super) fn advance_restart(&mut self) {
        if let Some(restart) = &self.restarts.going {
            let (stage, next, line) = (restart.stage, restart.next.number, restart.next.line);
            let wanted = usize::from(self.staff.wanted);
            match stage {
                Stage::Booting => {}
                Stage::Probing if self.staff.workers.has_any_of(next) => {}
                Stage::Probing => {
                    self.fork(line);
                    self.checkpoint("restart.canary_forked");
                }
                Stage::Rolling
                    if self.staff.workers.tally(line, wanted, 0).is_settled()
                        && is_proven(restart.proven_at, self.now) =>
                {
                    self.restart_succeeded();
                }
                Stage::Rolling => {}
                Stage::Undoing if restart.explaining.is_some() => {}
                Stage::Undoing if self.staff.workers.has_any_of(next) => {}
                Stage::Undoing if is_mutated(Mutation::SkipUndoing) => {}
                Stage::Undoing => {
                    self.restarts.going = None;
                    self.has_changed = true;
                }
            }
        }
        let is_free = self.reforks.going.is_none() || is_mutated(Mutation::RestartDuringRefork);
        let idle =
            self.restarts.going.is_none() && is_free && self.surroundings.hot_restart != HotRestart::Going;
        if idle && self.surroundings.may_boot && matches!(self.condition, Condition::Serving) {
            if let Some(wish) = self.restarts.wish.take() {
                self.begin_restart(wish);
            }
        }
    }

    /// Boots the new version: from where the application's path leads now.
    fn begin_restart(&mut self, wish: Wish) {
        let Wish { generation: number, asked } = wish;
        self.log(AppLog::Restarting { asked, generation: number });
        if is_mutated(Mutation::DropWish) {
            return;
        }
        self.restarts.last_line += 1;
        let line = self.restarts.last_line;
        let mold = if self.is_site() {
            self.open_site(number, None);
            None
        } else {
            Some(self.spawn_mold(None))
        };
        let (folder, began) = (self.current.folder.clone(), self.now); // until the mold has started
        let next = Version { number, line, folder, follows_link: false, app: None, mold };
        self.restarts.going =
            Some(Restart { stage: Stage::Booting, next, asked, began, proven_at: None, explaining: None });
    }

    /// Whether this is the generation that a restart brings, and nothing has failed so far.
    pub(super) fn is_next(&self, generation: u32) -> bool {
        let going = |restart: &&Restart| restart.stage != Stage::Undoing;
        self.restarts.going.as_ref().filter(going).is_some_and(|restart| restart.next.number == generation)
    }

    /// The new mold can be forked from; what it reports of the application, if it has loaded it.
    pub(super) fn next_booted(&mut self, app: Option<Arc<Booted>>) {
        if let Some(restart) = self.restarts.going.as_mut().filter(|restart| restart.stage == Stage::Booting)
        {
            restart.next.app = app;
            restart.stage = Stage::Probing;
            self.checkpoint("restart.booted");
        }
    }

    pub(super) fn next_mold_gone(&mut self, mold: &Mold, ending: Ending) {
        let Some(restart) = &self.restarts.going else { return };
        self.forks_are_lost(restart.next.line);
        match mold.step() {
            Some(step) => self.next_not_booted(died_while_booting(step, ending)),
            None => {
                let what = format!("the new mold died after it had booted: {ending}");
                self.restart_failed(Failure::new(what, TRY_AGAIN));
            }
        }
    }

    /// The new version did not boot. It is undone at once; why it failed is reported when the diagnosis is there.
    pub(super) fn next_not_booted(&mut self, failure: BootFailure) {
        let going = |restart: &&Restart| restart.stage != Stage::Undoing;
        let Some(restart) = self.restarts.going.as_ref().filter(going) else { return };
        let (folder, was) = (restart.next.folder.clone(), restart.stage);
        let ticket = self.explain(folder, failure);
        if let Some(restart) = &mut self.restarts.going {
            restart.explaining = Some((ticket, was));
        }
        self.undo_restart();
    }

    pub(super) fn restart_explained(&mut self, diagnosis: Arc<Diagnosis>) {
        let Some(restart) = &mut self.restarts.going else { return };
        let Some((_, was)) = restart.explaining.take() else { return };
        let failure = Failure::of_diagnosis(&diagnosis);
        self.trouble.diagnosis = Some(diagnosis);
        self.report_failed_restart(was, failure);
    }

    /// A worker has answered the front's request, or cannot. The answer of the first one of a new version, the canary, decides about
    /// the restart; the others were asked so that clients do not wait for what a worker does at its first request only.
    pub(super) fn canary_answered(&mut self, number: u32, answer: Result<u16, String>) {
        let probed = self.staff.workers.get(number).filter(|worker| worker.state == WorkerState::Probing);
        let Some(generation) = probed.map(|worker| worker.generation) else { return }; // it was halted meanwhile
        if !self.decides(generation) {
            return self.admit_prepared(number);
        }
        match self.probe().judge(answer).map_err(Failure::of_probe) {
            Ok(status) => {
                self.log(AppLog::CanaryPassed { worker: number, status });
                self.canary_passed(number);
            }
            Err(failure) => self.restart_failed(failure),
        }
    }

    /// Whether a restart waits for the answer of this version.
    pub(super) fn decides(&self, generation: u32) -> bool {
        let probing = |restart: &Restart| restart.stage == Stage::Probing;
        self.is_next(generation) && self.restarts.going.as_ref().is_some_and(probing)
    }

    /// A worker of a version that serves is prepared, as far as its time allowed.
    fn admit_prepared(&mut self, number: u32) {
        self.staff.policy.ready();
        self.admit(number);
        if self.promoted_mold().is_some() {
            self.checkpoint("refork.replaced");
        } else if self.restarts.going.is_some() {
            self.checkpoint("restart.replaced");
        }
    }

    /// Lets a worker have clients' requests.
    fn admit(&mut self, worker: u32) {
        if let Some(worker) = self.staff.workers.get_mut(worker) {
            worker.admit();
        }
        self.notify(FrontNews::CanaryAdmitted { worker });
    }

    fn probe(&self) -> Probe<'_> {
        Probe { of: "the new version", path: &self.config.probe_path, try_again: TRY_AGAIN }
    }

    fn canary_passed(&mut self, worker: u32) {
        let (now, mut lived) = (self.now, Duration::ZERO);
        if let Some(Life::Ready(time)) = self.staff.workers.get(worker).map(|worker| worker.life(now)) {
            lived = time;
        }
        let Some(restart) = &mut self.restarts.going else { return };
        restart.stage = Stage::Rolling;
        restart.proven_at = Some(now + PROBATION.saturating_sub(lived));
        self.set_surge();
        self.staff.fork_due = now; // that workers of the old version die is no reason to wait
        let Some(restart) = &self.restarts.going else { return };
        if let Some(app) = restart.next.app.clone() {
            self.notify(FrontNews::Booted(app)); // its static files come with it
        }
        self.admit(worker);
        self.checkpoint("restart.admitted");
    }

    /// A worker has not answered the front's request in time. One that takes the place of another of its version serves all the same.
    pub(super) fn canary_is_silent(&mut self, number: u32) {
        let generation = self.staff.workers.get(number).map(|worker| worker.generation);
        if generation == Some(self.current.number) {
            return self.admit_prepared(number);
        }
        let failure = Failure::of_probe(self.probe().unanswered(self.config.probe_timeout));
        self.log(AppLog::CanaryKilled { worker: number });
        self.halt_worker(number); // the restart may be over, if fewer workers are wanted by now
        self.restart_failed(failure);
    }

    /// A worker of the new version has died, which none may before all is done.
    pub(super) fn next_worker_gone(&mut self, number: u32, worker: &Worker, ending: Ending) {
        let failure = match worker.failure.as_deref() {
            Some(StartFailure { boot: Some(failure), .. }) => {
                return self.next_not_booted((**failure).clone());
            }
            Some(StartFailure { error, .. }) => Failure {
                what: format!("starting worker {number} of the new version failed: {error}"),
                at: error.place(),
                backtrace: error.calls(BACKTRACE_LINES),
                remedy: TRY_AGAIN.into(),
            },
            None => {
                let (state, ending) = (worker.state.name(), ending.to_string());
                Failure::new(
                    format!("worker {number} of the new version died while {state}: {ending}"),
                    TRY_AGAIN,
                )
            }
        };
        self.restart_failed(failure);
    }

    /// Every place is taken by the new version.
    fn restart_succeeded(&mut self) {
        let Some(restart) = self.restarts.going.take() else { return };
        let took = self.now - restart.began;
        let generation = restart.next.number;
        self.replacements.memory.too_small = None; // the new version may need less
        self.log(AppLog::Restarted { generation, workers: self.staff.wanted, took });
        self.past_restart(Wish { generation, asked: restart.asked }, took, None);
        let old = std::mem::replace(&mut self.current, restart.next);
        self.boots.policy = RestartPolicy::new(self.config.max_boot_failures);
        self.forget_crashes();
        self.boots.explaining = None;
        self.boots.rests = false;
        self.boots.was_missed = false;
        self.reforks.schedule.restart();
        self.reforks.auto.restart(self.now);
        self.reforks.unfit = None;
        self.reforks.counts_requests = false; // those of the old version do not count
        if is_mutated(Mutation::ForgetOldMold) {
            return;
        }
        self.let_go(old.line, old.mold);
    }

    /// Undoes the restart, and reports why.
    pub(super) fn restart_failed(&mut self, failure: Failure) {
        let Some(was) = self.undo_restart() else { return };
        self.report_failed_restart(was, failure);
    }

    /// Ends what the restart has started. The stage that it was at; `None` if it is being undone already.
    fn undo_restart(&mut self) -> Option<Stage> {
        let restart = self.restarts.going.as_mut().filter(|restart| restart.stage != Stage::Undoing)?;
        let was = std::mem::replace(&mut restart.stage, Stage::Undoing);
        let (generation, line, mold) = (restart.next.number, restart.next.line, restart.next.mold.take());
        self.let_go(line, mold);
        if was == Stage::Rolling {
            self.notify(FrontNews::GenerationWithdrawn { generation });
            if let Some(app) = self.current.app.clone() {
                self.notify(FrontNews::Booted(app));
            }
            self.checkpoint("restart.undoing");
        }
        Some(was)
    }

    fn report_failed_restart(&mut self, was: Stage, failure: Failure) {
        let Some(restart) = &self.restarts.going else { return };
        let wish = Wish { generation: restart.next.number, asked: restart.asked };
        let (generation, took) = (wish.generation, self.now - restart.began);
        self.fails_with(format!("the restart to generation {generation} failed: {}", failure.what));
        self.past_restart(wish, took, Some(&failure));
        self.log(AppLog::RestartFailed { generation, stage: was.name(), failure });
    }

    /// Gives up a restart that has lost its purpose. Workers that serve already are needed for what is in flight.
    pub(super) fn abandon_restarts(&mut self, why: &Failure) {
        if let Some(wish) = self.restarts.wish.take() {
            self.past_restart(wish, Duration::ZERO, Some(why));
        }
        let Some(restart) = self.restarts.going.take() else { return };
        let was_reported = restart.stage == Stage::Undoing && restart.explaining.is_none();
        if !was_reported {
            let (generation, stage) = (restart.next.number, restart.stage.name());
            self.log(AppLog::RestartGivenUp { generation, stage });
            let wish = Wish { generation, asked: restart.asked };
            self.past_restart(wish, self.now - restart.began, Some(why));
        }
        self.let_go(restart.next.line, restart.next.mold);
    }

    /// Nothing new comes of this line any more.
    pub(super) fn let_go(&mut self, line: u32, mold: Option<Mold>) {
        self.halt_coming(line);
        let Some(mut mold) = mold else { return };
        let process = Process::Mold(mold.boot);
        if !mold.is_started {
            return self.act(AppAction::Forget { process, ending: None });
        }
        if !mold.is_halted() {
            mold.halt(self.now); // else it is ending already, and may still have something to print
            self.act(AppAction::Kill(process));
        }
        self.boots.leaving.push(mold);
    }
}
