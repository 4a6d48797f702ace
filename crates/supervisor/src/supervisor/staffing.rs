//! Keeping as many workers as there should be.

use super::booting::{died_while_booting, too_slow};
use super::ending::FRONT_TIME;
use super::failing::Failed;
use super::{unasked, Phase, Supervisor, BACKTRACE_LINES, SAME_SIGNAL};
use crate::checkpoint;
use crate::control_socket::ControlSocket;
use crate::diagnosis::start_failure_without_secrets;
use crate::event::{watch_worker, HeldProcess, Who};
use crate::message::{BootFailure, Booted, FromWorker};
use crate::mold::{Mold, DUMP_TIME};
use crate::reaper::Ending;
use crate::refork::{Refork, ReforkStage};
use crate::restart::{Failure, Restart, Stage};
use crate::restart_policy::{Life, Verdict};
use crate::rolling::{Move, Tally};
use crate::spawn_journey::Step;
use crate::worker_handle::{StartFailure, WorkerHandle, WorkerState};
use crate::{AppNotice, ReadyWorker};
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;
use tracing::{debug, error, info, warn};

/// Forks under way at a time: their messages and descriptors fit into the mold's control socket.
const FORKS_AT_A_TIME: usize = 8;
/// Processes beyond the usual number while one version takes the place of another.
const SURGE: usize = 1;
/// As many as can be asked for at the start.
const MOST_WORKERS: i32 = 512;

impl Supervisor {
    /// The line that workers are to be of.
    pub(super) fn staying(&self) -> u32 {
        match (&self.restart, &self.refork) {
            (Some(Restart { stage: Stage::Rolling, next, .. }), _) => next.line,
            (_, Some(Refork { stage: ReforkStage::Rolling, line, .. })) => *line,
            _ => self.current.line,
        }
    }

    pub(super) fn tally(&self) -> Tally {
        let one_is_relieved = matches!(&self.refork, Some(Refork { stage: ReforkStage::Relieving, .. }));
        let wanted = if self.asleep { 0 } else { usize::from(self.wanted) } + usize::from(one_is_relieved);
        self.workers.tally(self.staying(), wanted, SURGE)
    }

    /// Forks the workers that are missing, and retires those that are too many.
    pub(super) async fn staff(&mut self, now: Instant) {
        if self.has_failed(Failed::Current) || self.next_has_failed() {
            return; // what would be forked now would be ended in a moment
        }
        loop {
            match self.tally().next_move() {
                Move::Fork if self.may_fork(now) => self.fork(self.staying(), now).await,
                Move::RetireOther => self.retire_one(false, now).await,
                Move::RetireSurplus => self.retire_one(true, now).await,
                Move::Fork | Move::Wait => return,
            }
        }
    }

    /// Whether all that a fork takes is there.
    fn may_fork(&self, now: Instant) -> bool {
        now >= self.fork_due
            && self.mold_of(self.staying()).is_some_and(Mold::is_booted)
            && self.workers.in_state(WorkerState::Forking) < FORKS_AT_A_TIME
    }

    /// While the front finishes what is in flight one worker is enough, should all have died.
    pub(super) async fn staff_for_drain(&mut self, now: Instant) {
        if self.workers.counting() == 0 && self.may_fork(now) {
            self.fork(self.current.line, now).await;
        }
    }

    /// Whether a worker is missing.
    pub(super) fn waits_to_fork(&self) -> bool {
        match self.phase {
            Phase::Running => self.tally().next_move() == Move::Fork,
            Phase::Draining(_) => self.workers.counting() == 0,
            Phase::Finishing { .. } | Phase::Ending(..) => false,
        }
    }

    /// One worker more or fewer than before, and never none.
    pub(crate) fn want_workers(&mut self, more: i32) {
        if !matches!(self.phase, Phase::Running) || self.is_site() {
            return;
        }
        let wanted = i32::from(self.wanted).saturating_add(more).clamp(1, MOST_WORKERS);
        self.wanted = wanted as u16;
        info!(workers = wanted, "there are to be so many workers from now on");
    }

    async fn retire_one(&mut self, of_staying: bool, now: Instant) {
        let limit = self.settings.drain_timeout;
        let Some(worker) = self.workers.to_retire(self.staying(), of_staying) else { return };
        if self.workers.get_mut(worker).is_some_and(|handle| handle.retire(now, limit + FRONT_TIME)) {
            debug!(worker, "worker retires");
            self.notify(AppNotice::WorkerRetiring { worker }).await;
            if self.tally().is_settled() {
                self.last_retired().await;
            }
        }
    }

    /// Where one version, or what was forked from one mold, has taken every place of another.
    async fn last_retired(&self) {
        if self.restart.as_ref().is_some_and(|restart| restart.stage == Stage::Rolling) {
            checkpoint::pass("restart.last_retired").await;
        } else if self.promoted_mold().is_some() {
            checkpoint::pass("refork.last_retired").await;
        }
    }

    fn has_told_workers_to_exit(&self) -> bool {
        matches!(self.phase, Phase::Finishing { .. } | Phase::Ending(..))
    }

    fn mold_of(&self, line: u32) -> Option<&Mold> {
        if line == self.current.line {
            return self.current.mold.as_ref();
        }
        if self.refork.as_ref().is_some_and(|refork| refork.line == line) {
            return self.promoted_mold();
        }
        let restart = self.restart.as_ref().filter(|restart| restart.next.line == line)?;
        restart.next.mold.as_ref()
    }

    /// The version of the application that this line runs.
    fn generation_of(&self, line: u32) -> u32 {
        let next = self.restart.as_ref().filter(|restart| restart.next.line == line);
        next.map_or(self.current.number, |restart| restart.next.number)
    }

    pub(super) async fn fork(&mut self, line: u32, now: Instant) {
        let worker = self.workers.next_number();
        let generation = self.generation_of(line);
        match self.try_fork(worker, (generation, line), now) {
            Ok(handle) => self.workers.insert(worker, handle),
            Err(error) => {
                error!(worker, %error, "the worker could not be forked");
                self.last_failure = Some(format!("a worker could not be forked: {error}"));
                if self.is_next(generation) {
                    let remedy = "The system refused it; see the message. Make room, and restart again.";
                    self.restart_failed(
                        Failure::new(format!("forking a worker failed: {error}"), remedy),
                        now,
                    )
                    .await;
                } else if !self.is_end_of_refork(worker, line, true, &error.to_string(), now).await {
                    self.postpone_fork(Life::NeverReady, now);
                }
            }
        }
    }

    /// Asks the mold of a line for a worker of it.
    fn try_fork(
        &self,
        worker: u32,
        (generation, line): (u32, u32),
        now: Instant,
    ) -> io::Result<WorkerHandle> {
        let mold = self.mold_of(line).ok_or_else(|| io::Error::other("there is no mold"))?;
        let (ring, fds) = highball_ring::create(self.geometry).map_err(io::Error::other)?;
        let (control, theirs) = ControlSocket::pair()?;
        let descriptors =
            [fds.memory.as_fd(), fds.wake_front.as_fd(), fds.descriptors.as_fd(), theirs.as_fd()];
        mold.fork(worker, &self.app, self.settings.log.format, &descriptors)?;
        let control = Arc::new(control);
        let watch = watch_worker(Arc::clone(&control), worker, self.inbox.clone());
        let limit = self.app.process.boot_timeout;
        Ok(WorkerHandle::forking((generation, line), control, watch, ring, now, limit).of(mold.user.clone()))
    }

    pub(super) async fn worker_said(
        &mut self,
        worker: u32,
        message: FromWorker,
        mut descriptors: Vec<OwnedFd>,
        now: Instant,
    ) {
        let start_limit = self.app.process.boot_timeout;
        let Some(handle) = self.workers.get_mut(worker) else { return };
        match message {
            FromWorker::Hello { pid, .. } => {
                let held = descriptors
                    .pop()
                    .ok_or_else(|| io::Error::other("no pidfd came with it"))
                    .and_then(|fd| handle.check_identity(fd.as_fd(), pid).map(|()| fd))
                    .and_then(|fd| HeldProcess::hold(fd, Who::Worker(worker), self.inbox.clone()));
                match held {
                    Ok(process) => handle.exists(Pid::from_raw(pid), process, now + start_limit),
                    Err(error) => error!(worker, %error, "the worker's hello is not usable"),
                }
            }
            FromWorker::Ready => self.worker_ready(worker, now).await,
            FromWorker::Booted(app) => self.worker_booted(worker, app).await,
            FromWorker::Failed { error, boot } => {
                self.worker_failed(worker, StartFailure { error, boot });
            }
            said @ (FromWorker::Fit | FromWorker::Unfit { .. } | FromWorker::Promoted) => {
                if !self.said_of_promotion(worker, said, now).await {
                    warn!(worker, "the worker spoke of its promotion at the wrong time");
                }
            }
            FromWorker::Leaving => {
                // Not at once: a TERM to the whole group reaches the workers before it has reached us, and then
                // they are needed to answer what is in flight.
                handle.leaves_at = Some(now + SAME_SIGNAL);
            }
            FromWorker::Heap { heap } => {
                if !handle.heap_questions.answered(heap) {
                    self.halt_mad(Who::Worker(worker), &unasked(), now).await;
                }
            }
            FromWorker::Threads { threads } => {
                if !handle.thread_questions.answered(threads) {
                    self.halt_mad(Who::Worker(worker), &unasked(), now).await;
                }
            }
        }
    }

    /// It could not start, or not become a mold, and says why.
    fn worker_failed(&mut self, worker: u32, failure: StartFailure) {
        let Some(handle) = self.workers.get_mut(worker) else { return };
        let remedy = failure.boot.as_ref().and_then(|boot| boot.account.remedy.as_deref());
        let (error, remedy) = start_failure_without_secrets(&failure.error, remedy, &self.app);
        let promoting = handle.state == WorkerState::Promoting;
        let what = if promoting { "a worker could not become a mold" } else { "a worker could not start" };
        error!(
            worker,
            %error,
            at = error.place(),
            backtrace = error.calls(BACKTRACE_LINES),
            remedy,
            "{what}"
        );
        self.last_failure = Some(format!("{what}: {error}"));
        handle.failure = Some(StartFailure { error, ..failure });
    }

    /// It has loaded the application, which its mold has not.
    async fn worker_booted(&mut self, worker: u32, app: Booted) {
        let handle = self.workers.get_mut(worker).filter(|handle| handle.state == WorkerState::Starting);
        let Some(handle) = handle else { return }; // it was told to end meanwhile
        let generation = handle.generation;
        if self.is_next(generation) {
            if let Some(restart) = &mut self.restart {
                restart.next.app.get_or_insert(app);
            }
        } else if generation == self.current.number && self.current.app.is_none() {
            info!(
                worker,
                framework = app.framework,
                ruby = app.ruby,
                "the application is booted by its workers"
            );
            self.current.app = Some(app.clone());
            self.notify(AppNotice::AppBooted(app)).await;
        }
    }

    /// Its time for getting ready is over: where it hangs is printed, and then it is killed.
    pub(super) fn worker_starts_too_long(&mut self, worker: u32, now: Instant) {
        let limit = self.app.process.boot_timeout;
        let Some(handle) = self.workers.get_mut(worker) else { return };
        if handle.dump(now, DUMP_TIME) {
            warn!(worker, "the worker takes too long to start; these are its threads:");
            return;
        }
        handle.halt(now);
        let step = if self.app.process.preload { Step::StartWorker } else { Step::LoadApp };
        self.worker_failed(worker, too_slow(step, limit).into());
    }

    async fn worker_ready(&mut self, worker: u32, now: Instant) {
        let probe_until = now + self.app.process.probe_timeout;
        let threads = self.app.threads;
        let Some(handle) = self.workers.get_mut(worker) else { return };
        let generation = handle.generation;
        let is_canary = matches!(&self.restart, Some(Restart { stage: Stage::Probing, next, .. }) if next.number == generation);
        let (pid, took) = (handle.pid.map(Pid::as_raw_pid), now - handle.forked_at);
        let ring = if is_canary { handle.probe(now, probe_until) } else { handle.serve(now) };
        let Some(ring) = ring else { return };
        let ready = ReadyWorker { worker, generation, threads, ring };
        info!(worker, pid, took_ms = took.as_millis() as u64, "worker ready");
        if is_canary {
            self.notify(AppNotice::CanaryReady(ready)).await;
            checkpoint::pass("restart.canary_ready").await;
        } else {
            self.worker_policy.ready();
            self.notify(AppNotice::WorkerReady(ready)).await;
            if self.is_next(generation) {
                checkpoint::pass("restart.replaced").await;
            } else if self.promoted_mold().is_some() {
                checkpoint::pass("refork.replaced").await;
            }
        }
    }

    /// Replaces the workers that were sent TERM.
    pub(super) async fn retire_leaving(&mut self, now: Instant) {
        let limit = self.settings.drain_timeout;
        for worker in self.workers.leaving(now) {
            if self.workers.get_mut(worker).is_some_and(|handle| handle.retire(now, limit + FRONT_TIME)) {
                info!(worker, "the worker was sent TERM and is replaced");
                self.notify(AppNotice::WorkerRetiring { worker }).await;
            }
        }
    }

    pub(super) async fn worker_gone(&mut self, worker: u32, ending: Ending, now: Instant) {
        let Some(handle) = self.workers.remove(worker) else { return };
        let pid = handle.pid.map(Pid::as_raw_pid);
        self.deaths.ended(worker, pid, ending);
        if handle.was_ready() {
            let killed = handle.state == WorkerState::Halted;
            self.notify(AppNotice::WorkerGone { worker, killed }).await;
        }
        match (handle.state, &self.phase) {
            (WorkerState::Draining | WorkerState::Halted, _) | (_, Phase::Ending(..)) => {
                debug!(worker, pid, %ending, "worker gone");
            }
            _ => {
                warn!(worker, pid, %ending, state = handle.state.name(), "the worker died");
                // Where it has said why, that is what there is to say.
                if handle.failure.is_none() {
                    self.last_failure = Some(format!("worker {worker} died: {ending}"));
                }
            }
        }
        let expected = handle.state == WorkerState::Draining && ending == Ending::Exited(0);
        let running = self.is_brought_up();
        if running && handle.line != self.current.line && self.restart.is_none() && self.refork.is_none() {
            return; // it is of a time before the application fell asleep, or did not boot
        }
        if running && !expected && self.is_failed_boot(&handle) {
            return self.not_staffed(handle.failure, ending, now).await;
        }
        let why = handle.failure.as_ref().map_or(ending.to_string(), |failure| failure.error.to_string());
        let is_unborn = !handle.was_ready() && !expected;
        if running && self.is_end_of_refork(worker, handle.line, is_unborn, &why, now).await {
            return;
        }
        if running && self.is_next(handle.generation) && !expected {
            self.next_worker_gone(worker, &handle, ending, now).await;
        } else if handle.generation == self.current.number && !self.has_told_workers_to_exit() && !expected {
            self.postpone_fork(handle.life(now), now);
        }
    }

    /// Whether the death of this worker means that the application does not boot: when no worker has ever loaded it, which
    /// is as if its mold could not; and where people mend it, when none gets ready and nobody else serves.
    fn is_failed_boot(&self, handle: &WorkerHandle) -> bool {
        let is_alone = self.restart.is_none() && self.refork.is_none();
        let can_fork = self.current.mold.as_ref().is_some_and(Mold::is_booted);
        let nobody_serves = self.workers.in_state(WorkerState::Serving) == 0;
        let is_final = is_alone && can_fork && nobody_serves && !self.is_repeated();
        self.current.app.is_none() || (is_final && !handle.was_ready())
    }

    /// No worker gets ready. Those that are on the way would not either.
    async fn not_staffed(&mut self, failure: Option<StartFailure>, ending: Ending, now: Instant) {
        let step = if self.current.app.is_none() { Step::LoadApp } else { Step::StartWorker };
        let failure = match failure {
            Some(StartFailure { boot: Some(failure), .. }) => *failure,
            Some(StartFailure { error, boot: None }) => {
                let remedy = "The system refused it; see the message. Make room, and try again.";
                BootFailure::of_ours(step, "fork_failed", error.message, remedy.into())
            }
            None => died_while_booting(step, ending),
        };
        self.workers.halt_coming(self.current.line, now);
        self.current.app = None;
        self.boot_failed(failure, now);
    }

    pub(super) fn postpone_fork(&mut self, life: Life, now: Instant) {
        let others_serve = self.workers.in_state(WorkerState::Serving) > 0;
        match self.worker_policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => self.fork_due = self.fork_due.max(now + delay),
            Verdict::GiveUp => self.give_up("workers", self.worker_policy.boot_failures(), now),
        }
    }
}
