//! Rolling restarts: a new version boots beside the served one, its first worker has to show that it answers,
//! and then its workers take the places of the old ones, one at a time. Whatever fails on the way, the old version
//! keeps serving: the transaction is undone.

use super::super::app::App;
use super::super::config::HotRestart;
use super::super::restarts::{RestartMove, Undoing};
use super::super::version::Version;
use super::super::worker::Worker;
use super::super::AppLog;
use crate::core::restart::{Asked, Failure, Stage, Wish, BACKTRACE_LINES, END_ROLLOUT_FIRST};
use crate::core::restart_policy::Life;
use crate::core::worker::{StartFailure, WorkerState};
use crate::facts::boot_failure::BootFailure;
use crate::facts::ending::Ending;
use highball_link::{AppCommand, LONGEST_SLOW_START};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for the end of a slow start: longer than it takes, for a front that is slow to report it.
const SLOW_START_LIMIT: Duration = LONGEST_SLOW_START.saturating_add(Duration::from_secs(3));

pub(super) const TRY_AGAIN: &str = "Look at what its processes logged above; fix it, and restart again.";

impl App {
    /// Notes that a restart is wanted; the number of the generation that it will bring. A restart that waits already is
    /// shared.
    pub(super) fn ask_restart(&mut self, asked: Asked) -> Result<u32, String> {
        if self.condition.is_asleep() && asked != Asked::Command {
            return Err("it sleeps, and boots what is there when a request arrives".into());
        }
        if let Err(why) = self.may_restart(asked) {
            self.out.log(AppLog::NoRestart { asked, why });
            return Err(why.into());
        }
        if self.condition.is_failed() {
            self.try_again();
        }
        let (generation, is_new) = self.restarts.ask(asked);
        let waits = self.restarts.is_going() || self.reforks.is_going() || !self.current.has_booted();
        if is_new && waits {
            self.out.log(AppLog::RestartWaits { asked, generation });
        }
        Ok(generation)
    }

    pub(super) fn may_restart(&self, asked: Asked) -> Result<(), &'static str> {
        if !self.phase.is_running() {
            return Err("the server is stopping");
        }
        if self.condition.is_asleep() {
            return Err("the application sleeps, and boots what is there when a request arrives");
        }
        // What a configuration asks for has to happen, and waits.
        if self.restarts.share().is_some() && asked != Asked::Configuration {
            return Err(END_ROLLOUT_FIRST);
        }
        if asked == Asked::Command && self.surroundings.hot_restart == HotRestart::Going {
            return Err("a hot restart is under way, and brings the new version of the application as well: wait for its outcome");
        }
        match self.current.app() {
            Some(app) if !app.restartable => {
                Err("the application was given as an object, and cannot be reloaded: stop its process, and start it")
            }
            _ => Ok(()),
        }
    }

    /// Begins what was asked for, and ends what is done.
    pub(super) fn advance_restart(&mut self) {
        match self.restarts.next_move(self.staff.workers(), self.staff.wanted(), self.now) {
            Some(RestartMove::ForkCanary) => {
                if let Some(line) = self.restarts.next().map(Version::line) {
                    self.fork(line);
                }
                self.out.checkpoint("restart.canary_forked");
            }
            Some(RestartMove::Hold(share)) => self.rollout_holds(share),
            Some(RestartMove::Succeed) => self.restart_succeeded(),
            Some(RestartMove::Undone) => {
                self.restarts.undone();
                self.out.go_on();
            }
            None => {}
        }
        let is_free = !self.restarts.is_going() && !self.reforks.is_going();
        let idle = is_free && self.surroundings.hot_restart != HotRestart::Going;
        if idle && self.surroundings.may_boot && self.condition.is_serving() {
            if let Some(wish) = self.restarts.take_wish() {
                self.begin_restart(wish);
            }
        }
    }

    /// Boots the new version: from where the application's path leads now.
    fn begin_restart(&mut self, wish: Wish) {
        let Wish { generation, asked, .. } = wish;
        self.out.log(AppLog::Restarting { asked, generation });
        let line = self.molds.begin_line();
        self.restarts.begin(wish, line, self.current.folder().into(), self.now);
        if self.config.is_site() {
            let until = self.now + self.config.boot_timeout;
            self.out.act(self.boots.open_site(generation, None, until));
        } else {
            self.out.act(self.molds.boot(line, None, &self.config, self.now));
        }
    }

    /// The new version did not boot. It is undone at once; why it failed is reported when the diagnosis is there.
    pub(super) fn next_not_booted(&mut self, failure: BootFailure) {
        let Some(folder) = self.restarts.next().map(|next| next.folder().to_owned()) else { return };
        let receipt = self.out.diagnose(folder, failure);
        if let Some(was) = self.undo_restart() {
            self.restarts.explains(receipt, was);
        }
    }

    /// A worker has answered the front's request, or cannot. The answer of the first one of a new version, the canary, decides about
    /// the restart; the others were asked so that clients do not wait for what a worker does at its first request only.
    pub(super) fn canary_answered(&mut self, number: u32, answer: Result<u16, String>) {
        let probed = self.staff.get(number).filter(|worker| worker.state == WorkerState::Probing);
        let Some(generation) = probed.map(|worker| worker.generation) else { return }; // it was halted meanwhile
        if !self.restarts.is_probing(generation) {
            return self.admit_prepared(number);
        }
        match self.config.probe(TRY_AGAIN).judge(answer).map_err(Failure::of_probe) {
            Ok(status) => {
                self.out.log(AppLog::CanaryPassed { worker: number, status });
                self.canary_passed(number);
            }
            Err(failure) => self.restart_failed(&failure),
        }
    }

    /// A worker of a version that serves is prepared, as far as its time allowed.
    fn admit_prepared(&mut self, number: u32) {
        self.staff.admit_prepared(number, self.slow_start_until());
        self.out.notify(AppCommand::AdmitCanary { worker: number });
        if self.reforks.line().is_some() {
            self.out.checkpoint("refork.replaced");
        } else if self.restarts.is_going() {
            self.out.checkpoint("restart.replaced");
        }
    }

    /// In a rolling restart, the front gives a new worker few requests at first: no old one is retired for it until then.
    fn slow_start_until(&self) -> Option<Instant> {
        (self.restarts.stage() == Some(Stage::Rolling)).then(|| self.now + SLOW_START_LIMIT)
    }

    fn canary_passed(&mut self, worker: u32) {
        let (now, mut lived) = (self.now, Duration::ZERO);
        if let Some(Life::Ready(time)) = self.staff.get(worker).map(|worker| worker.life(now)) {
            lived = time;
        }
        self.restarts.canary_passed(lived, now);
        self.staff.fork_at_once(now); // that workers of the old version die is no reason to wait
        if self.restarts.holding().is_some() {
            self.rollout_begins();
        } else {
            self.canary_rolls();
        }
        self.staff.admit(worker, self.slow_start_until());
        self.out.notify(AppCommand::AdmitCanary { worker });
        self.out.checkpoint("restart.admitted");
    }

    /// Its workers take the places of the old ones.
    fn canary_rolls(&mut self) {
        self.staff.roll();
        if let Some(app) = self.restarts.next().and_then(Version::app) {
            self.out.notify(AppCommand::Booted(Arc::clone(app))); // its static files come with it
        }
    }

    /// A worker has not answered the front's request in time. If it replaces a worker of the same version, it serves all the same.
    pub(super) fn canary_is_silent(&mut self, number: u32) {
        let generation = self.staff.get(number).map(|worker| worker.generation);
        if generation == Some(self.current.number()) {
            return self.admit_prepared(number);
        }
        let failure = Failure::of_probe(self.config.probe(TRY_AGAIN).unanswered(self.config.probe_timeout));
        self.out.log(AppLog::CanaryKilled { worker: number });
        self.out.act_all(self.staff.halt(number, self.now)); // the restart may be over, if fewer workers are wanted by now
        self.restart_failed(&failure);
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
        self.restart_failed(&failure);
    }

    /// Every place is taken by the new version.
    fn restart_succeeded(&mut self) {
        let Some(restart) = self.restarts.ended(None, self.now) else { return };
        let (generation, took) = (restart.next.number(), restart.took(self.now));
        if restart.asked == Asked::Rollout {
            self.out.notify(AppCommand::EndRollout);
        }
        self.out.log(AppLog::Restarted { generation, workers: self.staff.wanted(), took });
        let old_line = self.current.line();
        self.current = restart.next;
        self.boots.new_version();
        if self.staff.new_version(self.now) {
            self.out.notify(AppCommand::CrashLoop { is_on: false });
        }
        self.reforks.new_version(self.now);
        self.adopt_companions();
        self.let_go(old_line);
    }

    /// Undoes the restart, and reports why.
    pub(super) fn restart_failed(&mut self, failure: &Failure) {
        if let Some(was) = self.undo_restart() {
            self.report_failed_restart(was, failure);
        }
    }

    /// Ends what the restart has started. The stage that it was at; `None` if it is being undone already.
    pub(super) fn undo_restart(&mut self) -> Option<Stage> {
        let Undoing { was, generation, line } = self.restarts.undo()?;
        self.let_go(line);
        if matches!(was, Stage::Holding | Stage::Rolling) {
            self.out.notify(AppCommand::WithdrawGeneration { generation });
            if let Some(app) = self.current.app().filter(|_| was == Stage::Rolling) {
                self.out.notify(AppCommand::Booted(Arc::clone(app)));
            }
            self.out.checkpoint("restart.undoing");
        }
        Some(was)
    }

    /// It is known why a restart has failed at this stage.
    pub(super) fn report_failed_restart(&mut self, was: Stage, failure: &Failure) {
        let Some(generation) = self.restarts.failed(failure, self.now) else { return };
        self.note_failure(format!("the restart to generation {generation} failed: {}", failure.what));
        self.out.log(AppLog::RestartFailed { generation, stage: was.name(), failure: failure.clone() });
    }

    /// Gives up a restart that has lost its purpose. Workers that serve already are needed for what is in flight.
    pub(super) fn abandon_restarts(&mut self, why: &Failure) {
        self.restarts.refused(why, self.now);
        let Some((restart, was_reported)) = self.restarts.abandoned(why, self.now) else { return };
        if !was_reported {
            let (generation, stage) = (restart.next.number(), restart.stage.name());
            self.out.log(AppLog::RestartGivenUp { generation, stage });
        }
        if restart.asked == Asked::Rollout {
            self.out.notify(AppCommand::EndRollout); // workers of either version answer
        }
        self.let_go(restart.next.line());
    }

    /// Nothing new comes of this line any more.
    pub(super) fn let_go(&mut self, line: u32) {
        self.out.act_all(self.staff.halt_coming(line, self.now));
        self.out.act_all(self.molds.let_go(line, self.now));
    }
}
