//! Where events meet the state of an application: [`App::apply`] applies one event, and then [`App::settle`] does
//! whatever the new state asks for, until it asks for nothing more.
//!
//! The parts of an application's life: [`boot`] (molds), [`site`], [`staff`] (workers), [`replace`] (one worker),
//! [`deaths`], [`size`] (their number), [`restart`], [`rollout`], [`refork`], [`auto_refork`], [`fail`] (an application that does not
//! come up), [`sleep`], [`rest`] (of a mold), [`companions`], [`change`] (of the configuration), [`end`].

mod auto_refork;
mod boot;
mod change;
mod companions;
mod deaths;
mod end;
mod fail;
mod refork;
mod replace;
mod rest;
mod restart;
pub(super) mod rollout;
mod site;
mod size;
mod sleep;
mod staff;

use super::app::App;
use super::condition::{End, Phase};
use super::event::AppEvent;
use super::AppLog;
use crate::core::server::SAME_SIGNAL;
use crate::core::worker::WorkerState;
use crate::facts::ending::Ending;
use highball_link::AppCommand;
use std::time::Instant;

/// Passes over the state in one step. A step needs two or three; more only if something is wrong.
const PASSES: usize = 64;

impl App {
    /// Lets the time be this.
    pub(crate) fn at(&mut self, now: Instant) {
        self.now = now;
    }

    /// Starts what should be started and ends what has taken too long.
    pub(crate) fn settle(&mut self, now: Instant) {
        self.now = now;
        for _ in 0..PASSES {
            self.out.take_change();
            self.advance();
            if !self.out.take_change() {
                return;
            }
        }
        self.out.log(AppLog::Unsettled);
    }

    /// Applies one event. What follows from it is [`App::settle`]'s.
    pub(crate) fn apply(&mut self, event: AppEvent) {
        match event {
            AppEvent::MoldStarted { boot, folder } => self.mold_started(boot, folder),
            AppEvent::MoldNotStarted { boot, folder, failure } => {
                self.mold_not_started(boot, Some(folder), *failure)
            }
            AppEvent::NotForked { worker, error } => self.not_forked(worker, error),
            AppEvent::Unreachable { worker } => self.unreachable(worker),
            AppEvent::SiteFound { generation, folder, site } => self.site_found(generation, folder, site),
            AppEvent::NoSite { generation, folder, failure } => self.no_site(generation, folder, *failure),
            AppEvent::Diagnosed { receipt, diagnosis, files } => self.diagnosed(receipt, diagnosis, files),
            AppEvent::FolderSeen { receipt, files, took } => self.folder_seen(receipt, files, took),
            AppEvent::MemoryMeasured { receipt, memory } => self.memory_measured(receipt, memory),
            AppEvent::CompanionStarted { number } => self.companion_started(number),
            AppEvent::CompanionNotStarted { number, why } => self.companion_not_started(number, why),
            AppEvent::CompanionOverLimit { number, bytes, limit } => self.over_limit(number, bytes, limit),

            AppEvent::MoldStep { boot, step } => {
                self.out.act_all(self.molds.step_begins(boot, step, self.now))
            }
            AppEvent::MoldWaited { boot, waited } => {
                self.molds.waited(boot, waited, self.config.boot_timeout)
            }
            AppEvent::MoldBooted { boot, app } => self.mold_booted(boot, app),
            AppEvent::MoldFailed { boot, failure } => self.mold_failed(boot, *failure),
            AppEvent::MoldAsksToStop { boot } => self.mold_asks_to_stop(boot),
            AppEvent::ForkFailed { worker, message } => self.fork_failed(worker, message),
            AppEvent::MoldLaidOut { boot, worker } => self.mold_laid_out(boot, worker),

            AppEvent::WorkerHello { worker } => self.worker_hello(worker),
            AppEvent::WorkerBooted { worker, app } => self.worker_booted(worker, app),
            AppEvent::WorkerReady { worker } => self.worker_ready(worker),
            AppEvent::WorkerFailed { worker, failure } => self.worker_failed(worker, *failure),
            AppEvent::WorkerFit { worker } => self.worker_fit(worker),
            AppEvent::WorkerUnfit { worker, why } => self.worker_unfit(worker, why),
            AppEvent::WorkerPromoted { worker } => self.worker_promoted(worker),
            // Not retired at once: a TERM to the whole group reaches the workers before it has reached us, and then they are
            // needed to answer what is in flight.
            AppEvent::WorkerLeaving { worker } => self.staff.leaves(worker, self.now + SAME_SIGNAL),

            AppEvent::Ended { process, ending } => self.process_ended(process, ending),
            AppEvent::Closed { process } => self.process_closed(process),
            AppEvent::Misbehaved { process, error } => self.misbehaved(process, &error),

            AppEvent::Wanted => self.is_wanted(),
            AppEvent::Idle => self.fall_asleep(),
            AppEvent::Drained => self.drained(),
            AppEvent::WorkerBroken { worker, why } => self.worker_broken(worker, why),
            AppEvent::RingEndsSoon { worker } => self.replace(worker, AppLog::ReplacedForRing { worker }),
            AppEvent::ReplaceWorker { worker, cause } => self.staff.replace(worker, cause),
            AppEvent::OverMemory { worker, over } => self.staff.replace_for_memory(worker, over),
            AppEvent::MemoryLimitTooSmall { over } => self.memory_limit_too_small(over),
            AppEvent::Load(load) => self.note_load(load),
            AppEvent::MemoryRoom(room) => self.staff.note_room(room),
            AppEvent::WorkerIdle { worker, is_stuck } => self.worker_idle(worker, is_stuck),
            AppEvent::WorkerKept { worker } => self.staff.serves_on(worker),
            AppEvent::CanaryAnswered { worker, answer } => self.canary_answered(worker, answer),
            AppEvent::SlowStartEnded { worker } => self.staff.slow_start_ended(worker),
            AppEvent::WorkerWarm { worker } => self.worker_warm(worker),

            AppEvent::Restart { asked, receipt } => {
                let answer = self.ask_restart(asked);
                self.out.answer(receipt, answer);
            }
            AppEvent::Rollout { order, receipt } => {
                let answer = self.ask_rollout(order);
                self.out.answer(receipt, answer);
            }
            AppEvent::Refork { cause, receipt } => {
                let answer = self.ask_refork(cause);
                self.out.answer(receipt, answer);
            }
            AppEvent::MoreWorkers(more) => self.want_workers(more),
            AppEvent::Configure { config, replaces } => self.configure(*config, replaces),
            AppEvent::ConfigurationRefused(why) => self.note_failure(why),
            AppEvent::Remove => self.remove(),
        }
    }

    /// One pass. What depends on something else comes after it.
    fn advance(&mut self) {
        self.enforce_deadlines();
        if self.staff.ends_crash_loop(self.now) {
            self.out.log(AppLog::CrashLoopOver);
            self.out.notify(AppCommand::CrashLoop { is_on: false });
        }
        match self.phase {
            Phase::Running => {
                self.advance_restart();
                self.advance_refork();
                self.stand_back_if_lost();
                if self.look_due().is_some_and(|due| self.now >= due) {
                    self.look_at_folder(false);
                }
                if self.needs_mold() && self.surroundings.may_boot && self.now >= self.boots.due() {
                    self.boot();
                }
                for worker in self.staff.workers().leaving(self.now) {
                    self.replace(worker, AppLog::ReplacedAfterTerm { worker });
                }
                self.advance_replacements();
                self.advance_sizing();
                self.staff();
                self.staff_beside();
                self.rest_mold_if_due();
            }
            Phase::Draining(until) if self.now >= until => {
                self.out.log(AppLog::DrainTimeOver);
                self.end(End::Halted);
            }
            Phase::Draining(_) => {
                if self.is_brought_up() && self.needs_mold() && self.surroundings.may_boot {
                    self.boot();
                }
                self.staff();
            }
            Phase::Finishing { until, quick } => {
                let are_gone = self.staff.workers().is_empty() && self.companions.are_gone();
                match (are_gone || self.now >= until, quick) {
                    (true, true) => self.end(End::Stopped),
                    (true, false) => self.end(if are_gone { End::Drained } else { End::Halted }),
                    (false, _) => {}
                }
            }
            Phase::Ending(..) => {}
        }
        self.advance_companions();
    }

    fn enforce_deadlines(&mut self) {
        let now = self.now;
        self.staff.end_slow_starts(now);
        for worker in self.staff.workers().overdue(now) {
            self.worker_overdue(worker);
        }
        for boot in self.molds.overdue(now) {
            self.mold_overdue(boot);
        }
        self.site_overdue();
    }

    fn worker_overdue(&mut self, number: u32) {
        let Some(worker) = self.staff.get(number) else { return };
        let line = worker.line;
        match (worker.state, worker.ending()) {
            (_, Some(ending)) => self.worker_gone(number, ending),
            (WorkerState::Forking, None) => {
                self.worker_gone(number, Ending::Unknown);
                self.mold_is_stuck(line);
            }
            (WorkerState::Starting, None) => self.worker_starts_too_long(number),
            (WorkerState::Probing, None) => self.canary_is_silent(number),
            (WorkerState::Halted, None) => {
                self.out.log(AppLog::WorkerUnkillable { worker: number });
                self.worker_gone(number, Ending::Unknown);
            }
            (WorkerState::Serving, None) => {
                // No order reaches it any more.
                self.out.log(AppLog::ControlClosed { worker: number, is_usual: self.staff.is_crashing() });
                self.out.act_all(self.staff.control_is_closed(number, self.now));
            }
            (state, None) => {
                if !self.phase.is_quick() {
                    self.out.log(AppLog::Overdue { worker: number, state });
                }
                self.out.act_all(self.staff.halt(number, self.now));
            }
        }
    }

    /// When there is something to do that was not due yet at the last step.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let phase = self.phase.deadline().filter(|until| !self.phase.is_ending() || *until > self.now);
        let fork = Some(self.staff.fork_due())
            .filter(|due| *due > self.now && (self.waits_to_fork() || self.waits_to_fork_beside()));
        let always = [
            phase,
            fork,
            self.boots.site_due(),
            self.molds.next_deadline(),
            self.staff.workers().next_deadline(),
            self.replacements_due(),
            self.staff.load_due(self.pool()),
            self.rest_due(),
            self.staff.crash_loop_over(),
            self.companions.next_deadline(self.now),
        ];
        let boots = self.needs_mold() && self.surroundings.may_boot;
        let running = [
            boots.then_some(self.boots.due()),
            self.staff.workers().next_leaving(),
            self.restarts.next_deadline(self.now),
            self.reforks.next_deadline(self.now),
            self.look_due(),
        ];
        let running = running.into_iter().filter(|_| self.phase.is_running());
        always.into_iter().chain(running).flatten().min()
    }
}
