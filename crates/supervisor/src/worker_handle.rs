//! A worker as the supervisor sees it.

use crate::control_socket::ControlSocket;
use crate::departure::{Departure, LAST_WORDS_TIME};
use crate::event::{HeldProcess, Inbox, Watch, Who};
use crate::identity;
use crate::message::{BootFailure, RubyError, RubyHeap, ThreadPlace, ToWorker};
use crate::mold::Mold;
use crate::questions::{Answer, NotAsked, Questions};
use crate::reaper::Ending;
use crate::restart_policy::Life;
use highball_config::User;
use highball_ring::FrontRing;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::BorrowedFd;
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
    /// It is the first of a new version, and has one request to answer before clients' requests go to it.
    Probing,
    /// The front gives it requests.
    Serving,
    /// The front gives it nothing more; it finishes what it has.
    Retiring,
    /// It was told to become a mold.
    Promoting,
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
            WorkerState::Probing => "probing",
            WorkerState::Serving => "serving",
            WorkerState::Retiring => "retiring",
            WorkerState::Promoting => "promoting",
            WorkerState::Draining => "draining",
            WorkerState::Halted => "halted",
        }
    }
}

/// Why a worker could not start, as it says itself.
#[derive(Debug, Clone)]
pub(crate) struct StartFailure {
    pub(crate) error: RubyError,
    /// All about it, if it could not start serving.
    pub(crate) boot: Option<Box<BootFailure>>,
}

impl StartFailure {
    /// Of a worker that was not even forked.
    pub(crate) fn of_ours(message: String) -> StartFailure {
        StartFailure { error: RubyError::of_ours(message), boot: None }
    }
}

impl From<BootFailure> for StartFailure {
    fn from(failure: BootFailure) -> Self {
        StartFailure { error: failure.account.error.clone(), boot: Some(Box::new(failure)) }
    }
}

/// The supervisor's view of one worker.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    /// The version of the application that it runs.
    pub(crate) generation: u32,
    /// Which mold's worker it is; see [`crate::restart::Generation::line`].
    pub(crate) line: u32,
    pub(crate) state: WorkerState,
    /// When the current state has to have ended.
    pub(crate) deadline: Option<Instant>,
    /// When it is retired, if it has asked for that.
    pub(crate) leaves_at: Option<Instant>,
    pub(crate) forked_at: Instant,
    ready_at: Option<Instant>,
    /// Known once it has said hello.
    pub(crate) pid: Option<Pid>,
    /// Whom it has to run as, if another than Highball's.
    user: Option<User>,
    /// Why it could not start, if it has said so.
    pub(crate) failure: Option<StartFailure>,
    /// Whether it was asked where its threads are.
    is_dumped: bool,
    process: Option<HeldProcess>,
    departure: Departure,
    control: Arc<ControlSocket>,
    /// The front's end of its ring, kept here until the worker is ready.
    ring: Option<FrontRing>,
    pub(crate) heap_questions: Questions<Option<RubyHeap>>,
    pub(crate) thread_questions: Questions<Vec<ThreadPlace>>,
    _watch: Watch,
}

impl WorkerHandle {
    pub(crate) fn forking(
        (generation, line): (u32, u32),
        control: Arc<ControlSocket>,
        watch: Watch,
        ring: FrontRing,
        now: Instant,
        start_limit: Duration,
    ) -> WorkerHandle {
        WorkerHandle {
            generation,
            line,
            state: WorkerState::Forking,
            deadline: Some(now + start_limit),
            leaves_at: None,
            forked_at: now,
            ready_at: None,
            pid: None,
            user: None,
            failure: None,
            is_dumped: false,
            process: None,
            departure: Departure::default(),
            control,
            ring: Some(ring),
            heap_questions: Questions::default(),
            thread_questions: Questions::default(),
            _watch: watch,
        }
    }

    /// The same, of an application that runs as another user than Highball, if one is given.
    pub(crate) fn of(self, user: Option<User>) -> WorkerHandle {
        WorkerHandle { user, ..self }
    }

    /// Looks whether this pidfd, with which it said hello, is that of a process that it can be.
    pub(crate) fn check_identity(&self, pidfd: BorrowedFd<'_>, pid: i32) -> io::Result<()> {
        self.user.as_ref().map_or(Ok(()), |user| identity::check(pidfd, pid, user))
    }

    /// It said hello, and has to be ready by `deadline`.
    pub(crate) fn exists(&mut self, pid: Option<Pid>, process: HeldProcess, deadline: Instant) {
        if self.state == WorkerState::Forking {
            self.state = WorkerState::Starting;
            self.departure = Departure::default(); // it was forked before its mold went
            self.deadline = Some(deadline);
            self.pid = pid;
            self.process = Some(process);
        }
    }

    /// The mold that was to fork it is gone: what it has not done by now will not be done.
    pub(crate) fn mold_gone(&mut self, now: Instant) {
        if self.state == WorkerState::Forking {
            self.departure.ended(Ending::Unknown);
            self.due_by(now + LAST_WORDS_TIME);
        }
    }

    /// It said that it is ready: hands out the ring, once.
    pub(crate) fn serve(&mut self, now: Instant) -> Option<FrontRing> {
        self.becomes(WorkerState::Serving, None, now)
    }

    /// It said that it is ready, and has to answer a request by `deadline`: hands out the ring, once.
    pub(crate) fn probe(&mut self, now: Instant, deadline: Instant) -> Option<FrontRing> {
        self.becomes(WorkerState::Probing, Some(deadline), now)
    }

    fn becomes(&mut self, state: WorkerState, deadline: Option<Instant>, now: Instant) -> Option<FrontRing> {
        if self.state != WorkerState::Starting {
            return None;
        }
        self.state = state;
        self.deadline = deadline;
        self.ready_at = Some(now);
        self.ring.take()
    }

    /// It has answered its request well.
    pub(crate) fn admit(&mut self) {
        if self.state == WorkerState::Probing {
            self.state = WorkerState::Serving;
            self.deadline = None;
        }
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

    /// Whether its main thread waits for what the supervisor says.
    fn hears(&self) -> bool {
        matches!(self.state, WorkerState::Serving | WorkerState::Retiring)
    }

    /// Asks for its Ruby heap; with `gc`, after a full garbage collection.
    pub(crate) fn ask_heap(&mut self, gc: bool) -> Result<Answer<Option<RubyHeap>>, NotAsked> {
        if !self.hears() {
            return Err(NotAsked::NotServing);
        }
        self.heap_questions.ask(|| self.control.send(&ToWorker::Heap { gc }, &[]))
    }

    /// Asks where its threads are that are at a request.
    pub(crate) fn ask_threads(&mut self) -> Result<Answer<Vec<ThreadPlace>>, NotAsked> {
        if !self.hears() {
            return Err(NotAsked::NotServing);
        }
        self.thread_questions.ask(|| self.control.send(&ToWorker::Threads, &[]))
    }

    /// Asks whether it can be forked from; true if it can be asked.
    pub(crate) fn ask_fit(&self) -> bool {
        self.state == WorkerState::Serving && self.control.send(&ToWorker::MayPromote, &[]).is_ok()
    }

    /// Tells it to become a mold within this time. Its requests have ended.
    pub(crate) fn promote(&mut self, now: Instant, limit: Duration) {
        if self.state == WorkerState::Retiring && self.control.send(&ToWorker::Promote, &[]).is_ok() {
            self.state = WorkerState::Promoting;
            self.deadline = Some(now + limit);
        } else {
            self.halt(now);
        }
    }

    /// It has become the mold of this boot; `None` if it never said hello.
    pub(crate) fn into_mold(self, boot: u32, worker: u32, inbox: &Inbox) -> Option<Mold> {
        let process = self.process?.watched_as(Who::Mold(boot), inbox.clone());
        let mut mold = Mold::promoted(self.control, process, self.pid, (boot, worker), inbox);
        mold.user = self.user;
        Some(mold)
    }

    /// Asks one that loads the application, and hangs, for its backtraces; false if it was asked before.
    pub(crate) fn dump(&mut self, now: Instant, limit: Duration) -> bool {
        let first = !std::mem::replace(&mut self.is_dumped, true);
        if let Some(process) = self.process.as_ref().filter(|_| first) {
            process.signal(Signal::USR2);
            self.deadline = Some(now + limit);
        }
        first
    }

    /// Tells it to exit, by kind words where it has got far enough to hear them.
    pub(crate) fn drain(&mut self, until: Instant) {
        let hears = self.hears() || self.state == WorkerState::Promoting;
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

    /// Its control socket is closed. How it ended, if it has gone; else it is about to, or will be killed, or its mold
    /// is to say why it was not forked.
    pub(crate) fn heard_out(&mut self, now: Instant) -> Option<Ending> {
        self.departure.heard_out();
        let complete = self.departure.complete();
        if self.state == WorkerState::Forking {
            self.departure.ended(Ending::Unknown); // it never said hello; its mold may have a word on why
            self.due_by(now + LAST_WORDS_TIME);
        } else {
            self.due_by(now + KILL_TIME);
        }
        complete
    }

    /// It has ended. How, if it has gone; else its last words are still to come.
    pub(crate) fn ended(&mut self, ending: Ending, now: Instant) -> Option<Ending> {
        self.departure.ended(ending);
        if !matches!(self.state, WorkerState::Starting | WorkerState::Promoting) {
            return self.departure.ending(); // whatever it says now changes nothing
        }
        self.due_by(now + LAST_WORDS_TIME);
        self.departure.complete()
    }

    /// How it ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.departure.ending()
    }

    fn due_by(&mut self, at: Instant) {
        self.deadline = Some(self.deadline.map_or(at, |before| before.min(at)));
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
        use WorkerState::{Forking, Probing, Serving, Starting};
        matches!(self.state, Forking | Starting | Probing | Serving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{watch_worker, Inbox, Who};
    use highball_ring::Geometry;
    use rustix::process::{getpid, pidfd_open, PidfdFlags};
    use std::os::fd::OwnedFd;

    const LIMIT: Duration = Duration::from_secs(60);

    /// A worker that was asked for, and its end of the control socket.
    fn forking(now: Instant, inbox: &Inbox) -> (WorkerHandle, OwnedFd) {
        let (control, theirs) = ControlSocket::pair().unwrap();
        let control = Arc::new(control);
        let (ring, _fds) = highball_ring::create(Geometry::new(1, 1, 4096)).unwrap();
        let watch = watch_worker(Arc::clone(&control), 1, inbox.clone());
        (WorkerHandle::forking((1, 1), control, watch, ring, now, LIMIT), theirs)
    }

    /// This process stands in for the worker; it is never killed here.
    fn us(inbox: &Inbox) -> HeldProcess {
        let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        HeldProcess::hold(pidfd, Who::Worker(1), inbox.clone()).unwrap()
    }

    #[tokio::test]
    async fn it_serves_once_and_hands_out_its_ring_once() {
        let (inbox, _) = Inbox::new(8);
        let now = Instant::now();
        let (mut handle, _theirs) = forking(now, &inbox);
        assert!(handle.serve(now).is_none(), "not before it has said hello");
        handle.exists(Some(getpid()), us(&inbox), now + LIMIT);
        assert!(handle.serve(now).is_some());
        assert!(handle.serve(now).is_none());
        assert_eq!((handle.state, handle.deadline), (WorkerState::Serving, None));
        assert_eq!(handle.life(now + LIMIT), Life::Ready(LIMIT));
    }

    #[tokio::test]
    async fn one_that_closes_before_its_hello_leaves_its_mold_time_to_say_why() {
        let (inbox, _) = Inbox::new(8);
        let now = Instant::now();
        let (mut handle, _theirs) = forking(now, &inbox);
        assert_eq!(handle.heard_out(now), None);
        assert_eq!((handle.ending(), handle.deadline), (Some(Ending::Unknown), Some(now + LAST_WORDS_TIME)));
        assert_eq!(handle.life(now), Life::NeverReady);
    }

    #[tokio::test]
    async fn one_that_dies_while_it_starts_is_heard_out_first() {
        let (inbox, _) = Inbox::new(8);
        let now = Instant::now();
        let (mut handle, _theirs) = forking(now, &inbox);
        handle.exists(Some(getpid()), us(&inbox), now + LIMIT);
        assert_eq!(handle.ended(Ending::Exited(1), now), None);
        assert_eq!(handle.deadline, Some(now + LAST_WORDS_TIME));
        assert_eq!(handle.heard_out(now), Some(Ending::Exited(1)));
    }

    #[tokio::test]
    async fn one_that_dies_while_it_becomes_a_mold_is_heard_out_first() {
        let (inbox, _) = Inbox::new(8);
        let now = Instant::now();
        let (mut handle, _theirs) = forking(now, &inbox);
        handle.exists(Some(getpid()), us(&inbox), now + LIMIT);
        handle.serve(now);
        handle.retire(now, LIMIT);
        handle.promote(now, LIMIT);
        assert_eq!((handle.state, handle.ended(Ending::Exited(1), now)), (WorkerState::Promoting, None));
        assert_eq!(handle.heard_out(now), Some(Ending::Exited(1)));
    }

    #[tokio::test]
    async fn one_that_serves_has_gone_when_the_kernel_says_so() {
        let (inbox, _) = Inbox::new(8);
        let now = Instant::now();
        let (mut handle, _theirs) = forking(now, &inbox);
        handle.exists(Some(getpid()), us(&inbox), now + LIMIT);
        handle.serve(now);
        assert_eq!(handle.ended(Ending::Killed(9), now), Some(Ending::Killed(9)));
    }

    #[tokio::test]
    async fn a_lost_mold_ends_what_it_has_not_forked_and_nothing_else() {
        let (inbox, _) = Inbox::new(8);
        let now = Instant::now();
        let (mut unborn, _theirs) = forking(now, &inbox);
        unborn.mold_gone(now);
        assert_eq!((unborn.ending(), unborn.deadline), (Some(Ending::Unknown), Some(now + LAST_WORDS_TIME)));
        unborn.exists(Some(getpid()), us(&inbox), now + LIMIT);
        assert_eq!((unborn.ending(), unborn.deadline), (None, Some(now + LIMIT)));
    }

    #[tokio::test]
    async fn only_one_that_serves_is_retired() {
        let (inbox, _) = Inbox::new(8);
        let now = Instant::now();
        let (mut handle, _theirs) = forking(now, &inbox);
        assert!(!handle.retire(now, LIMIT));
        handle.exists(Some(getpid()), us(&inbox), now + LIMIT);
        handle.serve(now);
        assert!(handle.retire(now, LIMIT));
        assert!(!handle.retire(now, LIMIT));
        assert!(!handle.counts());
        handle.drain(now + LIMIT);
        assert_eq!(handle.state, WorkerState::Draining);
    }
}
