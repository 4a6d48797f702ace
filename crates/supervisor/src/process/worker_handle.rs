//! What is held of a worker: its process, its control socket, its ring. Its state is the core's.

use crate::asked_profile::ProfileOrder;
use crate::control::control_socket::ControlSocket;
use crate::control::message::{OwnMemory, ToWorker};
use crate::control::questions::{Answer, NotAsked, Questions};
use crate::process::launcher::Who;
use crate::process::mold::MoldHandle;
use crate::process::watcher::{HeldProcess, Watch, Watcher};
use highball_config::User;
use highball_link::{RubyHeap, ThreadPlace};
use highball_ring::FrontRing;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// What was seen of whether a worker lives.
#[derive(Debug, Default)]
pub(crate) struct SignsOfLife {
    pub(crate) asked_at: Option<Instant>,
    /// The front knows that there is something wrong.
    pub(crate) is_reported: bool,
}

#[derive(Debug)]
pub(crate) struct WorkerHandle {
    /// Known once it has sent `hello`.
    pub(crate) pid: Option<Pid>,
    /// Whom it has to run as, if another than Highball's.
    user: Option<User>,
    process: Option<HeldProcess>,
    control: Arc<ControlSocket>,
    /// The front's end of its ring, kept here until the worker is ready.
    ring: Option<FrontRing>,
    pub(crate) heap_questions: Questions<Option<RubyHeap>>,
    pub(crate) memory_questions: Questions<Option<OwnMemory>>,
    pub(crate) thread_questions: Questions<Vec<ThreadPlace>>,
    pub(crate) profile_questions: Questions<Option<String>>,
    pub(crate) life: SignsOfLife,
    _watch: Watch,
}

impl WorkerHandle {
    /// A worker that its mold was asked to fork; `user`: whom the mold runs as, if another than Highball's.
    pub(crate) fn forking(
        control: Arc<ControlSocket>,
        watch: Watch,
        ring: FrontRing,
        user: Option<User>,
    ) -> WorkerHandle {
        WorkerHandle {
            pid: None,
            user,
            process: None,
            control,
            ring: Some(ring),
            heap_questions: Questions::default(),
            memory_questions: Questions::default(),
            thread_questions: Questions::default(),
            profile_questions: Questions::default(),
            life: SignsOfLife::default(),
            _watch: watch,
        }
    }

    /// It has sent `hello`, with a pidfd that is checked first. False: it had done so before.
    ///
    /// # Errors
    /// The pidfd is missing, or belongs to a process that cannot be this worker.
    pub(crate) fn exists(
        &mut self,
        worker: u32,
        pid: i32,
        pidfd: Option<OwnedFd>,
        watcher: &Watcher,
    ) -> io::Result<bool> {
        if self.process.is_some() {
            return Ok(false);
        }
        self.process = Some(watcher.hold_forked(pidfd, pid, self.user.as_ref(), Who::Worker(worker))?);
        self.pid = Pid::from_raw(pid);
        Ok(true)
    }

    /// Hands out the ring, once.
    pub(crate) fn take_ring(&mut self) -> Option<FrontRing> {
        self.ring.take()
    }

    pub(crate) fn send(&self, message: &ToWorker) -> io::Result<()> {
        self.control.send(message, &[])
    }

    /// Asks for its Ruby heap; with `gc`, after a full garbage collection.
    pub(crate) fn ask_heap(&mut self, gc: bool) -> Result<Answer<Option<RubyHeap>>, NotAsked> {
        self.heap_questions.ask(|| self.control.send(&ToWorker::Heap { gc }, &[]))
    }

    /// Asks for its memory.
    pub(crate) fn ask_memory(&mut self) -> Result<Answer<Option<OwnMemory>>, NotAsked> {
        self.memory_questions.ask(|| self.control.send(&ToWorker::Memory, &[]))
    }

    /// Asks where its threads are, those at a request before others.
    pub(crate) fn ask_all_threads(&mut self) -> Result<Answer<Vec<ThreadPlace>>, NotAsked> {
        self.thread_questions
            .ask(|| self.control.send(&ToWorker::Threads { all: true, first: Vec::new() }, &[]))
    }

    /// Asks where its threads are that are at a request, those at the requests with these tickets first: of many, it names
    /// some.
    pub(crate) fn ask_threads(&mut self, first: &[u64]) -> Result<Answer<Vec<ThreadPlace>>, NotAsked> {
        let first = first.to_vec();
        self.thread_questions.ask(|| self.control.send(&ToWorker::Threads { all: false, first }, &[]))
    }

    /// The same, for those who look all the time.
    pub(crate) fn ask_threads_unless_silent(
        &mut self,
        first: &[u64],
    ) -> Result<Answer<Vec<ThreadPlace>>, NotAsked> {
        let first = first.to_vec();
        self.thread_questions
            .ask_unless_silent(|| self.control.send(&ToWorker::Threads { all: false, first }, &[]))
    }

    /// Asks for a profile, which it writes into this file.
    pub(crate) fn ask_profile(
        &mut self,
        order: ProfileOrder,
        file: BorrowedFd<'_>,
    ) -> Result<Answer<Option<String>>, NotAsked> {
        let ProfileOrder { mode, milliseconds, by_path } = order;
        let message = ToWorker::Profile { mode, milliseconds, by_path };
        self.profile_questions.ask(|| self.control.send(&message, &[file]))
    }

    /// It has become the mold of this boot; `None` if it never sent `hello`.
    pub(crate) fn into_mold(self, boot: u32, watcher: &Watcher) -> Option<MoldHandle> {
        let process = watcher.hold_as(self.process?, Who::Mold(boot));
        Some(MoldHandle::promoted(self.control, process, self.pid, self.user, boot, watcher))
    }

    /// Sends a signal; nothing happens where there is no process yet.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }
}
