//! Rollouts: a restart that holds once its canary has answered. Both versions then serve, each of them its visitors, until an
//! operator lets the new version take every place, or goes back to the old one.
//!
//! There are as many workers as usual, and one more: the more visitors get the new version, the more of the workers are of it.
//! A worker that dies is replaced by a worker of its version. If workers of the new version die again and again, it is undone.

use super::super::app::App;
use super::super::config::HotRestart;
use super::super::log::RolloutLog;
use super::super::worker::Worker;
use super::super::AppLog;
use super::restart::TRY_AGAIN;
use crate::core::crash_loop::Death;
use crate::core::mold::Mold;
use crate::core::restart::{Asked, Failure};
use crate::facts::ending::Ending;
use highball_config::{RolloutOrder, VisitorShare};
use highball_link::{AppCommand, Rollout};
use std::sync::Arc;

/// What is due for the workers of the new version while it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum MoveBeside {
    /// Fork one.
    Fork,
    /// Retire one: there are too many, or another serves in its place.
    Retire,
}

impl App {
    /// Begins a rollout, raises its share, or undoes it: its generation.
    pub(super) fn ask_rollout(&mut self, order: RolloutOrder) -> Result<u32, String> {
        let done = match (order, self.restarts.share()) {
            (RolloutOrder::Undo, _) => self.undo_rollout(),
            (RolloutOrder::Share(share), Some(before)) => self.raise_share(share, before),
            (RolloutOrder::Share(share), None) => self.begin_rollout(share),
        };
        done.inspect_err(|why| self.log_rollout(RolloutLog::Refused { why: why.clone() }))
    }

    fn begin_rollout(&mut self, share: VisitorShare) -> Result<u32, String> {
        self.may_restart(Asked::Rollout)?;
        let is_changing = self.restarts.next().is_some() || self.restarts.wish().is_some();
        let why = if is_changing {
            "a restart is under way: wait for its outcome (highball status)"
        } else if share == VisitorShare::ALL {
            "no rollout is under way: `highball restart` brings the new version for all visitors"
        } else if self.config.is_site() {
            "a static site has no workers: `highball restart` brings its new version for all visitors"
        } else if self.surroundings.hot_restart != HotRestart::No {
            "a hot restart is under way, and brings the new version of the application as well: wait for its outcome"
        } else if !self.condition.is_serving() {
            "the application does not serve: `highball restart` boots the new version"
        } else {
            return Ok(self.restarts.ask_rollout(share));
        };
        Err(why.into())
    }

    fn raise_share(&mut self, share: VisitorShare, before: VisitorShare) -> Result<u32, String> {
        if share < before {
            return Err(format!("the new version has {before} of the visitors: its share only grows, or `highball rollout undo` ends it"));
        }
        let held = self.restarts.holding().map(|restart| restart.held_thousandths());
        let generation = self.restarts.raise(share).ok_or("there is no rollout any more")?;
        if let Some(thousandths) = held.filter(|_| share == VisitorShare::ALL) {
            self.log_rollout(RolloutLog::Finishes { generation });
            self.staff.roll();
            if let Some(app) = self.restarts.next().and_then(|next| next.app()) {
                self.out.notify(AppCommand::Booted(Arc::clone(app))); // its static files are for all visitors
            }
            self.tell_front(thousandths, false);
        }
        self.out.go_on();
        Ok(generation)
    }

    fn undo_rollout(&mut self) -> Result<u32, String> {
        let generation = match self.restarts.may_be_undone() {
            true => {
                self.undo_restart();
                self.restarts.undone_as_asked(self.now)
            }
            false => self.restarts.forget_rollout(self.now),
        };
        let generation = generation.ok_or("no rollout is under way")?;
        self.log_rollout(RolloutLog::Undone { generation });
        Ok(generation)
    }

    /// The canary has answered: both versions serve from now on.
    pub(super) fn rollout_begins(&mut self) {
        self.tell_front(0, true);
    }

    /// The new version has the workers for this share.
    pub(super) fn rollout_holds(&mut self, share: VisitorShare) {
        self.restarts.holds(share);
        let Some(restart) = self.restarts.holding() else { return };
        let (generation, took) = (restart.next.number(), restart.took(self.now));
        self.log_rollout(RolloutLog::Holds { generation, share, took });
        self.tell_front(share.thousandths(), true);
    }

    fn log_rollout(&mut self, log: RolloutLog) {
        self.out.log(AppLog::Rollout(log));
    }

    fn tell_front(&mut self, thousandths: u16, is_held: bool) {
        let next = self.restarts.next().and_then(|next| Some((next.number(), Arc::clone(next.app()?))));
        if let Some((generation, app)) = next {
            self.out.notify(AppCommand::Rollout(Rollout { generation, thousandths, is_held, app }));
        }
    }

    // --- workers

    /// Workers of the served version that there should be while a rollout holds: as many as the new version leaves of all, and one
    /// more; and more if the new version lacks some.
    pub(super) fn wanted_of_old(&self, wanted: usize) -> usize {
        let Some(restart) = self.restarts.holding() else { return wanted };
        let of_new = restart.wanted_beside(self.staff.wanted());
        let serving = self.staff.workers().serving_of(restart.next.line());
        (wanted + 1).saturating_sub(of_new).max(wanted.saturating_sub(serving)).max(1)
    }

    /// What is due for the workers of the new version.
    pub(in crate::core) fn move_beside(&self) -> Option<MoveBeside> {
        let restart = self.restarts.holding()?;
        let (workers, line) = (self.staff.workers(), restart.next.line());
        let all_wanted = usize::from(self.staff.wanted());
        let wanted = restart.wanted_beside(self.staff.wanted());
        let (old, new) = (workers.serving_of(self.current.line()), workers.serving_of(line));
        if new > wanted && old + new > all_wanted {
            return Some(MoveBeside::Retire);
        }
        let replaced = workers
            .which(|worker| worker.line == line && worker.counts() && worker.replacement.is_some())
            .len();
        let coming_or_there = workers.which(|worker| worker.line == line && worker.counts()).len();
        // There is one worker more than usual; and another one while a worker is replaced that does not serve well.
        let has_room = workers.iter().count() < all_wanted + 1 + usize::from(replaced > 0);
        (coming_or_there - replaced < wanted && has_room).then_some(MoveBeside::Fork)
    }

    /// Whether a worker of the new version is missing that could be forked but for the time.
    pub(super) fn waits_to_fork_beside(&self) -> bool {
        self.phase.is_running() && self.move_beside() == Some(MoveBeside::Fork)
    }

    /// Keeps as many workers of the new version as there should be.
    pub(super) fn staff_beside(&mut self) {
        while let Some(restart) = self.restarts.holding() {
            let line = restart.next.line();
            let may_fork = self.staff.may_fork(self.now) && self.molds.of(line).is_some_and(Mold::is_booted);
            match self.move_beside() {
                Some(MoveBeside::Fork) if may_fork => self.fork(line),
                Some(MoveBeside::Retire) => self.retire_beside(line),
                Some(MoveBeside::Fork) | None => return,
            }
        }
    }

    /// That a worker hangs or has too much memory counts as a death.
    fn retire_beside(&mut self, line: u32) {
        let Some(number) = self.staff.workers().to_retire(line, true) else { return };
        let worker = self.staff.get(number);
        let life = worker.filter(|worker| worker.replacement.is_some()).map(|worker| worker.life(self.now));
        let cause = worker.and_then(|worker| worker.replacement).map(|it| it.cause.to_string());
        if self.staff.retire(number, self.config.retire_limit(), self.now) {
            self.out.log(AppLog::Retires { worker: number });
            self.out.notify(AppCommand::RetireWorker { worker: number });
        }
        if let Some(life) = life {
            let death = Death { worker: number, life, ending: Ending::Unknown, failure: cause };
            self.count_beside(death, Some(TRY_AGAIN));
        }
    }

    /// A worker of the new version has died while it holds: another one takes its place, unless that happens again and again.
    pub(super) fn died_beside(&mut self, number: u32, worker: &Worker, ending: Ending) {
        if !worker.is_retired() {
            let failure = worker.failure.as_ref().map(|failure| failure.error.to_string());
            let death = Death { worker: number, life: worker.life(self.now), ending, failure };
            self.count_beside(death, None);
        }
    }

    /// `remedy`: what to do, unless the way in which it has died says that.
    fn count_beside(&mut self, death: Death, remedy: Option<&str>) {
        let (pool, now) = (self.staff.wanted(), self.now);
        let Some(restart) = self.restarts.holding_mut() else { return };
        if let Some(crashes) = restart.crash_loop.died(death, pool, now) {
            let what = format!("crash loop of the new version: {crashes}");
            self.restart_failed(&Failure::new(what, remedy.unwrap_or(crashes.remedy())));
        }
    }
}
