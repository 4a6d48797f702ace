//! A worker as the supervisor sees it.

use crate::control_socket::ControlSocket;
use crate::event::{HeldProcess, Watch};
use crate::message::ToWorker;
use crate::restart_policy::Life;
use highball_ring::FrontRing;
use rustix::process::{Pid, Signal};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a worker that was sent SIGKILL, or has closed its control socket, may take to be gone.
const KILL_TIME: Duration = Duration::from_secs(5);

/// Where a worker is in its life. Each state but `Serving` has a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerState {
    /// The mold was asked to fork it; it has not said hello.
    Forking,
    /// It exists, and runs its hooks and starts its threads.
    Starting,
    /// The front gives it requests.
    Serving,
    /// The front gives it nothing more; it finishes what it has.
    Retiring,
    /// It was told to exit.
    Draining,
    /// It was sent SIGKILL.
    Halted,
}

impl WorkerState {
    /// The word for it in `highball status`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            WorkerState::Forking => "forking",
            WorkerState::Starting => "starting",
            WorkerState::Serving => "serving",
            WorkerState::Retiring => "retiring",
            WorkerState::Draining => "draining",
            WorkerState::Halted => "halted",
        }
    }
}

/// The supervisor's view of one worker.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    pub(crate) state: WorkerState,
    /// When the current state has to have ended.
    pub(crate) deadline: Option<Instant>,
    /// When it is retired, if it has asked for that.
    pub(crate) leaves_at: Option<Instant>,
    pub(crate) forked_at: Instant,
    ready_at: Option<Instant>,
    /// Known once it has said hello.
    pub(crate) pid: Option<Pid>,
    process: Option<HeldProcess>,
    control: Arc<ControlSocket>,
    /// The front's end of its ring, kept here until the worker is ready.
    ring: Option<FrontRing>,
    _watch: Watch,
}

impl WorkerHandle {
    pub(crate) fn forking(
        control: Arc<ControlSocket>,
        watch: Watch,
        ring: FrontRing,
        now: Instant,
        start_limit: Duration,
    ) -> WorkerHandle {
        WorkerHandle {
            state: WorkerState::Forking,
            deadline: Some(now + start_limit),
            leaves_at: None,
            forked_at: now,
            ready_at: None,
            pid: None,
            process: None,
            control,
            ring: Some(ring),
            _watch: watch,
        }
    }

    /// It said hello.
    pub(crate) fn exists(&mut self, pid: Option<Pid>, process: HeldProcess) {
        self.pid = pid;
        self.process = Some(process);
        if self.state == WorkerState::Forking {
            self.state = WorkerState::Starting;
        } else {
            self.halt(Instant::now()); // it was given up before it could say hello
        }
    }

    /// It said that it is ready: hands out the ring, once.
    pub(crate) fn serve(&mut self, now: Instant) -> Option<FrontRing> {
        if self.state != WorkerState::Starting {
            return None;
        }
        self.state = WorkerState::Serving;
        self.deadline = None;
        self.ready_at = Some(now);
        self.ring.take()
    }

    /// The front gives it nothing more from now on; true if it was serving.
    pub(crate) fn retire(&mut self, now: Instant, limit: Duration) -> bool {
        let serving = self.state == WorkerState::Serving;
        self.leaves_at = None;
        if serving {
            self.state = WorkerState::Retiring;
            self.deadline = Some(now + limit);
        }
        serving
    }

    /// Tells it to exit, by kind words where it has got far enough to hear them.
    pub(crate) fn drain(&mut self, until: Instant) {
        let hears = matches!(self.state, WorkerState::Serving | WorkerState::Retiring);
        if hears && self.control.send(&ToWorker::Drain, &[]).is_ok() {
            self.state = WorkerState::Draining;
            self.deadline = Some(until);
        } else if self.state != WorkerState::Draining {
            self.halt(Instant::now());
        }
    }

    /// Kills it.
    pub(crate) fn halt(&mut self, now: Instant) {
        self.state = WorkerState::Halted;
        self.deadline = Some(now + KILL_TIME);
        if let Some(process) = &self.process {
            process.signal(Signal::KILL);
        }
    }

    /// Its control socket is closed: it is about to be gone, or it will be killed.
    pub(crate) fn closed(&mut self, now: Instant) {
        let soon = now + KILL_TIME;
        self.deadline = Some(self.deadline.map_or(soon, |at| at.min(soon)));
    }

    pub(crate) fn life(&self, now: Instant) -> Life {
        self.ready_at.map_or(Life::NeverReady, |at| Life::Ready(now - at))
    }

    /// Whether the front knows it.
    pub(crate) fn was_ready(&self) -> bool {
        self.ready_at.is_some()
    }

    /// Whether it counts towards the number of workers that there should be.
    pub(crate) fn counts(&self) -> bool {
        matches!(self.state, WorkerState::Forking | WorkerState::Starting | WorkerState::Serving)
    }
}
