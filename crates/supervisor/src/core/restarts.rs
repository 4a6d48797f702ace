//! The restarts of an application: each puts one version in the place of another, or leaves everything as it was. Which one is
//! wanted, how far one has come, and what came of those before.

use super::crash_loop::{is_proven, CrashLoop, PROBATION};
use super::ids::Receipt;
use super::restart::{Asked, Failure, PastRestarts, RestartOutcome, Stage, Wish};
use super::version::Version;
use super::workers::Workers;
use highball_config::VisitorShare;
use highball_link::Booted;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The restart that is under way.
#[derive(Debug)]
pub(crate) struct Restart {
    pub(crate) stage: Stage,
    pub(crate) next: Version,
    pub(crate) asked: Asked,
    /// The share of the visitors at which it holds; `None`: it does not.
    share: Option<VisitorShare>,
    /// The share that the new version has, as it has the workers for it.
    held: Option<VisitorShare>,
    /// Deaths of the new version's workers while it holds.
    pub(crate) crash_loop: CrashLoop,
    began: Instant,
    /// Once the canary has passed: when the new version has lived for long enough to be a success.
    proven_at: Option<Instant>,
    /// It has failed because the new version did not boot; the diagnosis with this receipt is being made, and then the
    /// failure is reported. Until then the stage that failed, for the report.
    pub(crate) explaining: Option<(Receipt, Stage)>,
}

impl Restart {
    pub(crate) fn took(&self, now: Instant) -> Duration {
        now - self.began
    }

    /// The share of the visitors that the new version has by now, in thousandths.
    pub(crate) fn held_thousandths(&self) -> u16 {
        self.held.map_or(0, VisitorShare::thousandths)
    }

    /// The workers that the new version should have while it holds, of this number.
    pub(crate) fn wanted_beside(&self, wanted: u16) -> usize {
        self.share.map_or(0, |share| share.of_workers(wanted).into())
    }

    /// The share that the new version is to have, if it has the workers for it since a moment ago.
    fn due_share(&self, workers: &Workers, wanted: u16) -> Option<VisitorShare> {
        let share = self.share.filter(|share| self.held != Some(*share))?;
        (workers.serving_of(self.next.line()) >= self.wanted_beside(wanted)).then_some(share)
    }

    pub(crate) fn wish(&self) -> Wish {
        Wish { generation: self.next.number(), asked: self.asked, share: self.share }
    }
}

/// The next step of a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartMove {
    /// The first worker of the new version is forked.
    ForkCanary,
    /// The new version has the workers for this share of the visitors.
    Hold(VisitorShare),
    /// Every place is taken by the new version.
    Succeed,
    /// Nothing is left of the new version.
    Undone,
}

/// A restart that has begun to be undone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Undoing {
    /// The stage that it was at.
    pub(crate) was: Stage,
    pub(crate) generation: u32,
    pub(crate) line: u32,
}

#[derive(Debug)]
pub(crate) struct Restarts {
    going: Option<Restart>,
    /// The next restart.
    wish: Option<Wish>,
    past: PastRestarts,
    last_generation: u32,
}

impl Restarts {
    pub(crate) fn new(first_generation: u32) -> Restarts {
        Restarts { going: None, wish: None, past: PastRestarts::default(), last_generation: first_generation }
    }

    // --- what there is

    pub(crate) fn going(&self) -> Option<&Restart> {
        self.going.as_ref()
    }

    pub(crate) fn is_going(&self) -> bool {
        self.going.is_some()
    }

    pub(crate) fn stage(&self) -> Option<Stage> {
        self.going.as_ref().map(|restart| restart.stage)
    }

    /// The next restart, which waits.
    pub(crate) fn wish(&self) -> Option<Wish> {
        self.wish
    }

    /// Whether a restart waits to start that was asked for by USR1.
    pub(crate) fn waits_for_signalled(&self) -> bool {
        self.wish.is_some_and(|wish| wish.asked == Asked::Signal)
    }

    pub(crate) fn past(&self) -> &PastRestarts {
        &self.past
    }

    /// Whether none is under way, and none is wanted.
    pub(crate) fn is_none(&self) -> bool {
        self.going.is_none() && self.wish.is_none()
    }

    /// The version that a restart brings, if nothing has failed so far.
    pub(crate) fn next(&self) -> Option<&Version> {
        self.going.as_ref().filter(|restart| restart.stage != Stage::Undoing).map(|restart| &restart.next)
    }

    /// The version that a restart brings or has brought, if this line is its own.
    pub(crate) fn version_of(&self, line: u32) -> Option<&Version> {
        self.going.as_ref().map(|restart| &restart.next).filter(|next| next.line() == line)
    }

    /// Whether this is the generation that a restart brings, and nothing has failed so far.
    pub(crate) fn is_next(&self, generation: u32) -> bool {
        self.next().is_some_and(|next| next.number() == generation)
    }

    /// Whether a restart waits for the canary's answer, which is of this version.
    pub(crate) fn is_probing(&self, generation: u32) -> bool {
        self.is_next(generation) && self.stage() == Some(Stage::Probing)
    }

    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        self.going.as_ref()?.proven_at.filter(|at| *at > now)
    }

    // --- when one begins

    /// Asks for a restart: the generation that it will bring, and whether it is a new one. A restart that waits already is
    /// shared: it will see everything that is there by now.
    pub(crate) fn ask(&mut self, asked: Asked) -> (u32, bool) {
        if let Some(wish) = self.wish {
            return (wish.generation, false);
        }
        self.last_generation += 1;
        self.wish = Some(Wish { generation: self.last_generation, asked, share: None });
        (self.last_generation, true)
    }

    /// The next one may begin.
    pub(crate) fn take_wish(&mut self) -> Option<Wish> {
        self.wish.take()
    }

    /// It begins. The new version boots; `folder`: until its mold has started.
    pub(crate) fn begin(&mut self, wish: Wish, line: u32, folder: PathBuf, now: Instant) {
        let Wish { generation, asked, share } = wish;
        self.going = Some(Restart {
            stage: Stage::Booting,
            next: Version::new(generation, line, folder),
            asked,
            share,
            held: None,
            crash_loop: CrashLoop::new(now),
            began: now,
            proven_at: None,
            explaining: None,
        });
    }

    // --- how far it has come

    /// The new version boots, or has failed to boot, in this folder.
    pub(crate) fn found_in(&mut self, folder: PathBuf) {
        if let Some(restart) = &mut self.going {
            restart.next.found_in(folder);
        }
    }

    /// The new mold can be forked from; what it reports of the application, if it has loaded it. False: that is not
    /// waited for.
    pub(crate) fn booted(&mut self, app: Option<Arc<Booted>>) -> bool {
        let boots = |restart: &&mut Restart| restart.stage == Stage::Booting;
        let Some(restart) = self.going.as_mut().filter(boots) else { return false };
        restart.stage = Stage::Probing;
        if let Some(app) = app {
            restart.next.booted(app);
        }
        true
    }

    /// A worker has loaded the new version, which its mold has not.
    pub(crate) fn worker_booted(&mut self, app: Arc<Booted>) {
        if let Some(restart) = self.going.as_mut().filter(|restart| !restart.next.has_booted()) {
            restart.next.booted(app);
        }
    }

    /// The canary has answered with success, and has lived for this long.
    pub(crate) fn canary_passed(&mut self, lived: Duration, now: Instant) {
        if let Some(restart) = &mut self.going {
            restart.stage = if restart.share.is_some() { Stage::Holding } else { Stage::Rolling };
            restart.crash_loop = CrashLoop::new(now);
            restart.proven_at = Some(now + PROBATION.saturating_sub(lived));
        }
    }

    /// What is due, if something is.
    pub(crate) fn next_move(&self, workers: &Workers, wanted: u16, now: Instant) -> Option<RestartMove> {
        let restart = self.going.as_ref()?;
        let next = &restart.next;
        let is_settled = || workers.tally(next.line(), None, usize::from(wanted), 0).is_settled();
        match restart.stage {
            Stage::Probing if !workers.has_any_of(next.number()) => Some(RestartMove::ForkCanary),
            Stage::Holding => restart.due_share(workers, wanted).map(RestartMove::Hold),
            Stage::Rolling if is_settled() && is_proven(restart.proven_at, now) => Some(RestartMove::Succeed),
            Stage::Undoing if restart.explaining.is_some() => None,
            Stage::Undoing if !workers.has_any_of(next.number()) => Some(RestartMove::Undone),
            Stage::Booting | Stage::Probing | Stage::Rolling | Stage::Undoing => None,
        }
    }

    // --- how it ends

    /// It has failed, and is undone from now on. `None`: it is being undone already.
    pub(crate) fn undo(&mut self) -> Option<Undoing> {
        let restart = self.going.as_mut().filter(|restart| restart.stage != Stage::Undoing)?;
        let was = std::mem::replace(&mut restart.stage, Stage::Undoing);
        Some(Undoing { was, generation: restart.next.number(), line: restart.next.line() })
    }

    /// Why the new version did not boot is being found out, while it is undone.
    pub(crate) fn explains(&mut self, receipt: Receipt, was: Stage) {
        if let Some(restart) = &mut self.going {
            restart.explaining = Some((receipt, was));
        }
    }

    /// The diagnosis with this receipt has arrived. Returns the stage that has failed, if a restart has.
    pub(crate) fn explained(&mut self, receipt: Receipt) -> Option<Stage> {
        let restart = self.going.as_mut()?;
        restart.explaining.take_if(|(of, _)| *of == receipt).map(|(_, was)| was)
    }

    /// It is known why it has failed; its generation. It is still being undone.
    pub(crate) fn failed(&mut self, failure: &Failure, now: Instant) -> Option<u32> {
        let restart = self.going.as_ref()?;
        self.past.add(restart.wish(), restart.took(now), RestartOutcome::Failed(failure), now);
        Some(restart.next.number())
    }

    // --- rollouts

    /// The share of the visitors at which the restart under way holds, or the next one will. `None`: there is no rollout, or
    /// its new version takes every place.
    pub(crate) fn share(&self) -> Option<VisitorShare> {
        let going = self.going.as_ref().filter(|restart| restart.stage != Stage::Undoing);
        going.map_or_else(|| self.wish?.share, |restart| restart.share)
    }

    /// The rollout that holds, if one does.
    pub(crate) fn holding(&self) -> Option<&Restart> {
        self.going.as_ref().filter(|restart| restart.stage == Stage::Holding)
    }

    pub(crate) fn holding_mut(&mut self) -> Option<&mut Restart> {
        self.going.as_mut().filter(|restart| restart.stage == Stage::Holding)
    }

    /// Asks for a rollout: the generation that it will bring.
    pub(crate) fn ask_rollout(&mut self, share: VisitorShare) -> u32 {
        let (generation, _) = self.ask(Asked::Rollout);
        self.wish.iter_mut().for_each(|wish| wish.share = Some(share));
        generation
    }

    /// Raises the share of the rollout; of all visitors: it does not hold any more. Its generation.
    pub(crate) fn raise(&mut self, share: VisitorShare) -> Option<u32> {
        let next = Some(share).filter(|share| *share < VisitorShare::ALL);
        let going = self.going.as_mut().filter(|restart| restart.stage != Stage::Undoing);
        let Some(restart) = going.filter(|restart| restart.share.is_some()) else {
            let wish = self.wish.as_mut().filter(|wish| wish.share.is_some())?;
            wish.share = next;
            return Some(wish.generation);
        };
        restart.share = next;
        if next.is_none() && restart.stage == Stage::Holding {
            restart.stage = Stage::Rolling;
        }
        Some(restart.next.number())
    }

    /// The new version has this share of the visitors.
    pub(crate) fn holds(&mut self, share: VisitorShare) {
        self.going.iter_mut().for_each(|restart| restart.held = Some(share));
    }

    /// Whether a rollout is under way that an operator may undo.
    pub(crate) fn may_be_undone(&self) -> bool {
        self.going
            .as_ref()
            .is_some_and(|restart| restart.asked == Asked::Rollout && restart.stage != Stage::Undoing)
    }

    /// The rollout that is being undone by now has not failed: an operator has gone back to the old version. Its generation.
    pub(crate) fn undone_as_asked(&mut self, now: Instant) -> Option<u32> {
        let restart = self.going.as_ref()?;
        self.past.add(restart.wish(), restart.took(now), RestartOutcome::Undone, now);
        Some(restart.next.number())
    }

    /// The rollout that waits does not begin. Its generation.
    pub(crate) fn forget_rollout(&mut self, now: Instant) -> Option<u32> {
        let wish = self.wish.take_if(|wish| wish.asked == Asked::Rollout)?;
        self.past.add(wish, Duration::ZERO, RestartOutcome::Undone, now);
        Some(wish.generation)
    }

    /// Everything is as it was before it.
    pub(crate) fn undone(&mut self) {
        self.going = None;
    }

    /// It is done, or has failed at once.
    pub(crate) fn ended(&mut self, failure: Option<&Failure>, now: Instant) -> Option<Restart> {
        let restart = self.going.take()?;
        self.past.add(restart.wish(), restart.took(now), failure.into(), now);
        Some(restart)
    }

    /// It has lost its purpose, and is over. True: its failure had been reported before.
    pub(crate) fn abandoned(&mut self, why: &Failure, now: Instant) -> Option<(Restart, bool)> {
        let restart = self.going.take()?;
        let was_reported = restart.stage == Stage::Undoing && restart.explaining.is_none();
        if !was_reported {
            self.past.add(restart.wish(), restart.took(now), RestartOutcome::Failed(why), now);
        }
        Some((restart, was_reported))
    }

    /// The next one comes to nothing.
    pub(crate) fn refused(&mut self, why: &Failure, now: Instant) {
        if let Some(wish) = self.wish.take() {
            self.past.add(wish, Duration::ZERO, RestartOutcome::Failed(why), now);
        }
    }
}
