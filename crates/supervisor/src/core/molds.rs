//! The molds of an application, and what may happen to them. Each belongs to the line of workers that is forked from it, or
//! to none any more.

use super::action::AppAction;
use super::config::{AppConfig, Source};
use super::ids::Process;
use super::log::AppLog;
use super::mold::{Mold, MoldState};
use crate::facts::ending::Ending;
use highball_link::Step;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What it comes to that a mold has not done something in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// It is not known where and how to boot.
    NotStarted,
    /// Its last messages are not waited for any more.
    Gone(Ending),
    /// It hangs at this step, and should say where.
    Hangs(Step),
    /// It has had the time to say so.
    TooSlow(Step),
    /// It was killed, and is not gone.
    Unkillable,
    /// It has come further meanwhile.
    InTime,
}

#[derive(Debug, Default)]
pub(crate) struct Molds {
    /// In the order of their boots.
    molds: Vec<Mold>,
    /// Molds that were started or promoted.
    boots: u32,
    lines: u32,
}

impl Molds {
    // --- what there is

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mold> {
        self.molds.iter()
    }

    pub(crate) fn get(&self, boot: u32) -> Option<&Mold> {
        self.molds.iter().find(|mold| mold.boot == boot)
    }

    /// The line of workers that is forked from it.
    pub(crate) fn line_of(&self, boot: u32) -> Option<u32> {
        self.get(boot)?.line
    }

    /// The mold that workers of this line are forked from.
    pub(crate) fn of(&self, line: u32) -> Option<&Mold> {
        self.molds.iter().find(|mold| mold.line == Some(line))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.molds.is_empty()
    }

    /// Since when one boots, if one does.
    pub(crate) fn boot_since(&self) -> Option<Instant> {
        self.molds.iter().filter_map(Mold::boots_since).max()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.molds.iter().filter_map(|mold| mold.deadline).min()
    }

    /// Boots of molds whose deadline has passed.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<u32> {
        let overdue = self.molds.iter().filter(|mold| mold.deadline.is_some_and(|at| at <= now));
        overdue.map(|mold| mold.boot).collect()
    }

    /// Molds that are booting.
    pub(crate) fn booting_too_long(&self, now: Instant) -> Vec<u32> {
        let boots = |boot: &u32| self.get(*boot).is_some_and(|mold| mold.boots_since().is_some());
        self.overdue(now).into_iter().filter(boots).collect()
    }

    // --- beginnings

    /// The number of a new line.
    pub(crate) fn begin_line(&mut self) -> u32 {
        self.lines += 1;
        self.lines
    }

    /// Boots one for this line.
    pub(crate) fn boot(
        &mut self,
        line: u32,
        folder: Option<PathBuf>,
        config: &AppConfig,
        now: Instant,
    ) -> AppAction {
        self.boots += 1;
        let is_caller = config.source == Source::Caller;
        let mold = Mold::booting(self.boots, line, is_caller, now, config.boot_timeout);
        self.molds.push(mold);
        AppAction::SpawnMold { boot: self.boots, folder }
    }

    /// The worker has become the mold of this line; the number of its boot.
    pub(crate) fn promoted(&mut self, worker: u32, line: u32, now: Instant) -> u32 {
        self.boots += 1;
        self.molds.push(Mold::promoted(self.boots, line, worker, now));
        self.boots
    }

    /// What is forked from the mold of a line is of another line from now on.
    pub(crate) fn change_line(&mut self, line: u32, to: u32) {
        for mold in self.molds.iter_mut().filter(|mold| mold.line == Some(line)) {
            mold.line = Some(to);
        }
    }

    /// The process exists. False: it has been given up meanwhile.
    pub(crate) fn started(&mut self, boot: u32) -> bool {
        let mold = self.get_mut(boot).filter(|mold| !mold.is_halted());
        mold.map(|mold| mold.is_started = true).is_some()
    }

    // --- messages

    /// A step of its journey begins: what there is to report of the one before.
    pub(crate) fn step_begins(&mut self, boot: u32, step: Step, now: Instant) -> Option<AppAction> {
        let MoldState::Booting(journey) = &mut self.get_mut(boot)?.state else {
            return Some(out_of_turn(boot, "step"));
        };
        let (step, took) = (journey.step(), journey.enter(step, now));
        Some(AppAction::Log(AppLog::StepDone { step, took }))
    }

    /// Its boot has waited for a processor for this time, which does not count.
    pub(crate) fn waited(&mut self, boot: u32, waited: Duration, limit: Duration) {
        if let Some(mold) = self.get_mut(boot) {
            mold.waited(waited, limit);
        }
    }

    /// It can be forked from. How long its boot took; or else what follows from a message that was not expected.
    pub(crate) fn booted(&mut self, boot: u32, now: Instant) -> Result<Duration, Option<AppAction>> {
        let mold = self.get_mut(boot).ok_or(None)?;
        mold.booted(now).ok_or_else(|| Some(out_of_turn(boot, "booted")))
    }

    /// It has laid out its heap after its first fork: the line of what it forks, if that is forked on; or else the same.
    pub(crate) fn laid_out(&mut self, boot: u32) -> Result<Option<u32>, Option<AppAction>> {
        let mold = self.get_mut(boot).ok_or(None)?;
        mold.laid_out().then_some(mold.line).ok_or_else(|| Some(out_of_turn(boot, "laid_out")))
    }

    /// It does not boot, and ends; or else the same.
    pub(crate) fn failed(&mut self, boot: u32, now: Instant) -> Result<(), Option<AppAction>> {
        let mold = self.get_mut(boot).ok_or(None)?;
        mold.step().ok_or_else(|| Some(out_of_turn(boot, "failed")))?;
        mold.halt(now);
        Ok(())
    }

    /// It asks to end everything, which only a caller may; or else the same.
    pub(crate) fn asks_to_stop(&self, boot: u32) -> Result<(), Option<AppAction>> {
        let mold = self.get(boot).ok_or(None)?;
        mold.is_caller.then_some(()).ok_or_else(|| Some(out_of_turn(boot, "stop")))
    }

    // --- ends

    /// Its deadline has passed.
    pub(crate) fn is_late(&mut self, boot: u32, now: Instant) -> Late {
        let Some(mold) = self.get_mut(boot) else { return Late::InTime };
        if !mold.is_started {
            return Late::NotStarted;
        }
        if let Some(ending) = mold.ending() {
            return Late::Gone(ending);
        }
        match (&mold.state, mold.step()) {
            (MoldState::Booting(_), Some(step)) => {
                mold.dump(now);
                Late::Hangs(step)
            }
            (MoldState::Dumping(_), Some(step)) => Late::TooSlow(step),
            (MoldState::Halted, _) => Late::Unkillable,
            (MoldState::Booted | MoldState::Booting(_) | MoldState::Dumping(_), _) => {
                mold.deadline = None;
                Late::InTime
            }
        }
    }

    /// Kills it.
    pub(crate) fn halt(&mut self, boot: u32, now: Instant) -> Option<AppAction> {
        self.get_mut(boot)?.halt(now);
        Some(AppAction::Kill(Process::Mold(boot)))
    }

    /// Nothing is forked for this line any more: its mold ends.
    pub(crate) fn let_go(&mut self, line: u32, now: Instant) -> Option<AppAction> {
        let mold = self.molds.iter_mut().find(|mold| mold.line == Some(line))?;
        let boot = mold.boot;
        if !mold.is_started {
            return self.forget(boot);
        }
        mold.line = None;
        if mold.is_halted() {
            return None; // it is ending already, and may still have something to print
        }
        self.halt(boot, now)
    }

    /// Everything ends: the mold of this line is killed, but for a caller, which is left to itself.
    pub(crate) fn end(&mut self, line: u32, now: Instant) -> Option<AppAction> {
        let mold = self.of(line)?;
        let boot = mold.boot;
        if mold.is_caller || !mold.is_started {
            self.forget(boot)
        } else {
            self.halt(boot, now)
        }
    }

    fn forget(&mut self, boot: u32) -> Option<AppAction> {
        self.gone(boot)?;
        Some(AppAction::Forget { process: Process::Mold(boot), ending: None })
    }

    /// The kernel reports its end. How it ended, if it has gone.
    pub(crate) fn ended(&mut self, boot: u32, ending: Ending, now: Instant) -> Option<Ending> {
        self.get_mut(boot)?.ended(ending, now)
    }

    /// It could not be started. `None`: it has been.
    pub(crate) fn not_started(&mut self, boot: u32) -> Option<Mold> {
        self.get(boot).filter(|mold| !mold.is_started)?;
        self.gone(boot)
    }

    /// Its control socket is closed. How it ended, if it has gone.
    pub(crate) fn heard_out(&mut self, boot: u32) -> Option<Ending> {
        self.get_mut(boot)?.heard_out()
    }

    /// It does not exist, or not any more.
    pub(crate) fn gone(&mut self, boot: u32) -> Option<Mold> {
        let place = self.molds.iter().position(|mold| mold.boot == boot)?;
        Some(self.molds.remove(place))
    }

    fn get_mut(&mut self, boot: u32) -> Option<&mut Mold> {
        self.molds.iter_mut().find(|mold| mold.boot == boot)
    }
}

/// It has sent a message that it may not send now.
fn out_of_turn(boot: u32, message: &'static str) -> AppAction {
    AppAction::Log(AppLog::OutOfTurn { process: Process::Mold(boot), message })
}
