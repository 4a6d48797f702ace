//! Keeping as many workers as there should be.

use super::{unasked, Phase, Supervisor, BACKTRACE_LINES, SAME_SIGNAL};
use crate::control_socket::ControlSocket;
use crate::event::{watch_worker, HeldProcess, Who};
use crate::message::FromWorker;
use crate::mold::MoldState;
use crate::reaper::Ending;
use crate::restart_policy::{Life, Verdict};
use crate::worker_handle::{WorkerHandle, WorkerState};
use crate::Notice;
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;
use tracing::{debug, error, info, warn};

/// Forks under way at a time: their messages and descriptors fit into the mold's control socket.
const FORKS_AT_A_TIME: usize = 8;

impl Supervisor {
    /// Forks the workers that are missing.
    pub(super) async fn staff(&mut self, now: Instant) {
        while self.is_short_of_workers()
            && now >= self.fork_due
            && self.mold.as_ref().is_some_and(|mold| matches!(mold.state, MoldState::Booted))
            && self.workers.in_state(WorkerState::Forking) < FORKS_AT_A_TIME
        {
            self.fork(now).await;
        }
    }

    pub(super) fn is_short_of_workers(&self) -> bool {
        let wanted = match self.phase {
            Phase::Running => self.settings.workers.into(),
            Phase::Draining(_) => 1, // enough to answer what is in flight, should all have died
            Phase::Finishing { .. } | Phase::Ending(..) => 0,
        };
        self.workers.counting() < wanted
    }

    pub(super) async fn fork(&mut self, now: Instant) {
        let worker = self.workers.next_number();
        match self.try_fork(worker, now) {
            Ok(handle) => self.workers.insert(worker, handle),
            Err(error) => {
                error!(worker, %error, "the worker could not be forked");
                self.last_failure = Some(format!("a worker could not be forked: {error}"));
                self.postpone_fork(Life::NeverReady, now);
            }
        }
    }

    pub(super) fn try_fork(&self, worker: u32, now: Instant) -> io::Result<WorkerHandle> {
        let mold = self.mold.as_ref().ok_or_else(|| io::Error::other("there is no mold"))?;
        let (ring, fds) = highball_ring::create(self.geometry).map_err(io::Error::other)?;
        let (control, theirs) = ControlSocket::pair()?;
        let descriptors =
            [fds.memory.as_fd(), fds.wake_front.as_fd(), fds.descriptors.as_fd(), theirs.as_fd()];
        mold.fork(worker, &self.settings, &descriptors)?;
        let control = Arc::new(control);
        let watch = watch_worker(Arc::clone(&control), worker, self.events_in.clone());
        let limit = self.settings.process.boot_timeout;
        Ok(WorkerHandle::forking(control, watch, ring, now, limit))
    }

    pub(super) async fn worker_said(
        &mut self,
        worker: u32,
        message: FromWorker,
        mut descriptors: Vec<OwnedFd>,
        now: Instant,
    ) {
        let start_limit = self.settings.process.boot_timeout;
        let Some(handle) = self.workers.get_mut(worker) else { return };
        match message {
            FromWorker::Hello { pid, .. } => {
                let held = descriptors
                    .pop()
                    .ok_or_else(|| io::Error::other("no pidfd came with it"))
                    .and_then(|fd| HeldProcess::hold(fd, Who::Worker(worker), self.events_in.clone()));
                match held {
                    Ok(process) => handle.exists(Pid::from_raw(pid), process, now + start_limit),
                    Err(error) => error!(worker, %error, "the worker's hello is not usable"),
                }
            }
            FromWorker::Ready => {
                let (pid, took) = (handle.pid.map(Pid::as_raw_pid), now - handle.forked_at);
                let Some(ring) = handle.serve(now) else { return };
                info!(worker, pid, took_ms = took.as_millis() as u64, "worker ready");
                self.worker_policy.ready();
                let threads = self.settings.threads;
                self.notify(Notice::WorkerReady { worker, threads, ring }).await;
            }
            FromWorker::Failed { error } => {
                error!(
                    worker,
                    %error,
                    at = error.place(),
                    backtrace = error.calls(BACKTRACE_LINES),
                    "the worker could not start"
                );
                self.last_failure = Some(format!("a worker could not start: {error}"));
            }
            FromWorker::Leaving => {
                // Not at once: a TERM to the whole group reaches the workers before it has reached us, and then
                // they are needed to answer what is in flight.
                handle.leaves_at = Some(now + SAME_SIGNAL);
            }
            FromWorker::Heap { heap } => {
                if !handle.heap_questions.answered(heap) {
                    self.halt_mad(Who::Worker(worker), &unasked(), now);
                }
            }
        }
    }

    /// Replaces the workers that were sent TERM.
    pub(super) async fn retire_leaving(&mut self, now: Instant) {
        let limit = self.settings.process.drain_timeout;
        for worker in self.workers.leaving(now) {
            if self.workers.get_mut(worker).is_some_and(|handle| handle.retire(now, limit)) {
                info!(worker, "the worker was sent TERM and is replaced");
                self.notify(Notice::WorkerRetiring { worker }).await;
            }
        }
    }

    pub(super) async fn worker_gone(&mut self, worker: u32, ending: Ending, now: Instant) {
        let Some(handle) = self.workers.remove(worker) else { return };
        let pid = handle.pid.map(Pid::as_raw_pid);
        if handle.was_ready() {
            self.notify(Notice::WorkerGone { worker }).await;
        }
        match (handle.state, &self.phase) {
            (WorkerState::Draining | WorkerState::Halted, _) | (_, Phase::Ending(..)) => {
                debug!(worker, pid, %ending, "worker gone");
            }
            _ => warn!(worker, pid, %ending, state = handle.state.name(), "the worker died"),
        }
        let expected = handle.state == WorkerState::Draining && ending == Ending::Exited(0);
        if matches!(self.phase, Phase::Running | Phase::Draining(_)) && !expected {
            self.postpone_fork(handle.life(now), now);
        }
    }

    pub(super) fn postpone_fork(&mut self, life: Life, now: Instant) {
        let others_serve = self.workers.in_state(WorkerState::Serving) > 0;
        match self.worker_policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => self.fork_due = self.fork_due.max(now + delay),
            Verdict::GiveUp => self.give_up("workers", self.worker_policy.boot_failures(), now),
        }
    }
}
