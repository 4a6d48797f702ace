//! The mold: the Ruby process that loads the application once and from which workers are forked.

use crate::app_output::AppOutput;
use crate::child::{Child, Output};
use crate::control_socket::ControlSocket;
use crate::departure::{Departure, LAST_WORDS_TIME};
use crate::event::{watch_mold, watch_start, HeldProcess, Inbox, Watch, Who};
use crate::interpreter::Interpreter;
use crate::launcher::Launched;
use crate::message::{RubyHeap, ToMold};
use crate::questions::{Answer, NotAsked, Questions};
use crate::reaper::Ending;
use crate::spawn_journey::Journey;
use crate::supervisor::not_started;
use highball_config::{App, LogFormat, User};
use highball_tenant::TenantFolder;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a mold may take to print its backtraces before it is killed.
pub(crate) const DUMP_TIME: Duration = Duration::from_secs(2);
/// How long a mold that was sent SIGKILL may take to be gone.
const KILL_TIME: Duration = Duration::from_secs(5);

/// Where the mold comes from.
#[derive(Debug)]
pub enum MoldSource {
    /// Highball starts Ruby in the application's folder, with its own Ruby code from this folder.
    Folder {
        /// The folder `lib` of the gem.
        gem_lib: PathBuf,
    },
    /// There is nothing to load: the folder is that of a static site, and the front serves its files alone.
    Site,
    /// The process that started Highball holds the application as an object, is the mold itself, and
    /// talks over this control socket. It cannot be started again.
    Caller(OwnedFd),
}

impl MoldSource {
    /// What Ruby is started with, if it is.
    pub(crate) fn boot_file(&self) -> Option<PathBuf> {
        match self {
            MoldSource::Folder { gem_lib } => Some(gem_lib.join("highball/boot.rb")),
            MoldSource::Site | MoldSource::Caller(_) => None,
        }
    }

    pub(crate) fn is_caller(&self) -> bool {
        matches!(self, MoldSource::Caller(_))
    }
}

/// Where a mold is in its life.
#[derive(Debug)]
pub(crate) enum MoldState {
    /// It loads the application.
    Booting(Journey),
    /// It can fork workers.
    Booted,
    /// It took too long, and was asked for the backtraces of its threads.
    Dumping(Journey),
    /// It was sent SIGKILL, or has said why it ends itself.
    Halted,
}

impl MoldState {
    /// The word for it in `highball status`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            MoldState::Booting(_) => "booting",
            MoldState::Booted => "booted",
            MoldState::Dumping(_) => "hangs",
            MoldState::Halted => "halted",
        }
    }
}

/// The supervisor's view of the mold.
#[derive(Debug)]
pub(crate) struct Mold {
    /// The how-manieth boot this is, from 1.
    pub(crate) boot: u32,
    pub(crate) state: MoldState,
    /// When the current state has to have ended.
    pub(crate) deadline: Option<Instant>,
    /// `None` for a caller until it says its pid.
    pub(crate) pid: Option<Pid>,
    /// Whom it runs as, if another than Highball's: what is configured may be somebody else by now.
    pub(crate) user: Option<User>,
    /// The number that it had as a worker.
    pub(crate) promoted_from: Option<u32>,
    process: Option<HeldProcess>,
    departure: Departure,
    pub(crate) heap_questions: Questions<Option<RubyHeap>>,
    control: Arc<ControlSocket>,
    _watch: Watch,
    /// Hears why it could not begin.
    _start: Option<Watch>,
}

impl Mold {
    /// Starts this Ruby with Highball's own code. From here on the mold reports by messages.
    pub(crate) fn spawn(
        app: &App,
        (folder, opened): (&Path, &TenantFolder),
        (ruby, boot_file): (&Interpreter, &Path),
        (boot, examine): (u32, bool),
        output: &mut AppOutput,
        inbox: &Inbox,
    ) -> io::Result<Mold> {
        let child = Child::mold(app, folder, (ruby, boot_file), examine);
        let (control, theirs) = ControlSocket::pair()?;
        let piped = child.user.as_ref().filter(|_| child.output == Output::Pipe);
        let pipe = piped.map(|user| output.pipe(user)).transpose()?;
        let Launched { pid, pidfd, trouble } =
            inbox.launcher.start_mold(app, &child, opened, theirs, pipe)?;
        let process = HeldProcess::hold(pidfd, Who::Mold(boot), inbox.clone())?;
        let start = trouble.map(|socket| {
            let (app, folder) = (app.clone(), folder.to_owned());
            watch_start(socket, boot, inbox.clone(), move |why| not_started(&app, &folder, &why.into()))
        });
        let limit = app.process.boot_timeout;
        let mold = Mold::over(Arc::new(control), boot, limit, Some(pid), Some(process), inbox);
        Ok(Mold { user: app.runs_as.another().cloned(), _start: start.transpose()?, ..mold })
    }

    /// Talks with a caller that has loaded the application already.
    pub(crate) fn adopt(socket: OwnedFd, app: &App, inbox: &Inbox) -> io::Result<Mold> {
        let control = ControlSocket::over(socket)?;
        Ok(Mold::over(Arc::new(control), 1, app.process.boot_timeout, None, None, inbox))
    }

    /// A worker that has become a mold: over the same control socket, as the same process.
    pub(crate) fn promoted(
        control: Arc<ControlSocket>,
        process: HeldProcess,
        pid: Option<Pid>,
        (boot, worker): (u32, u32),
        inbox: &Inbox,
    ) -> Mold {
        let mut mold = Mold::over(control, boot, Duration::ZERO, pid, Some(process), inbox);
        mold.state = MoldState::Booted;
        mold.deadline = None;
        mold.promoted_from = Some(worker);
        mold
    }

    fn over(
        control: Arc<ControlSocket>,
        boot: u32,
        limit: Duration,
        pid: Option<Pid>,
        process: Option<HeldProcess>,
        inbox: &Inbox,
    ) -> Mold {
        let now = Instant::now();
        Mold {
            boot,
            state: MoldState::Booting(Journey::begin(now)),
            deadline: Some(now + limit),
            pid,
            user: None,
            promoted_from: None,
            process,
            departure: Departure::default(),
            heap_questions: Questions::default(),
            _watch: watch_mold(Arc::clone(&control), boot, inbox.clone()),
            _start: None,
            control,
        }
    }

    /// It has loaded the application. How long it took.
    pub(crate) fn booted(&mut self, pid: i32, now: Instant) -> Option<Duration> {
        let MoldState::Booting(journey) = &self.state else { return None };
        let took = journey.elapsed(now);
        self.state = MoldState::Booted;
        self.deadline = None;
        if self.is_caller() {
            self.pid = Pid::from_raw(pid); // of all others it is known, whatever they say
        }
        Some(took)
    }

    pub(crate) fn raw_pid(&self) -> Option<i32> {
        self.pid.map(Pid::as_raw_pid)
    }

    /// Since when it boots, if it does.
    pub(crate) fn boots_since(&self) -> Option<Instant> {
        match &self.state {
            MoldState::Booting(journey) => Some(journey.began()),
            MoldState::Dumping(_) | MoldState::Booted | MoldState::Halted => None,
        }
    }

    pub(crate) fn is_booted(&self) -> bool {
        matches!(self.state, MoldState::Booted)
    }

    /// Asks for a worker.
    pub(crate) fn fork(
        &self,
        worker: u32,
        app: &App,
        log_format: LogFormat,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let order = ToMold::Fork {
            worker,
            threads: app.threads,
            log_format: log_format.into(),
            development: app.is_development(),
            early_hints: app.early_hints,
        };
        self.control.send(&order, descriptors)
    }

    /// Asks for its Ruby heap.
    pub(crate) fn ask_heap(&mut self) -> Result<Answer<Option<RubyHeap>>, NotAsked> {
        if !matches!(self.state, MoldState::Booted) {
            return Err(NotAsked::NotServing);
        }
        self.heap_questions.ask(|| self.control.send(&ToMold::Heap, &[]))
    }

    /// Asks a mold that hangs for its backtraces.
    pub(crate) fn dump(&mut self, now: Instant) {
        let journey = match std::mem::replace(&mut self.state, MoldState::Halted) {
            MoldState::Booting(journey) => journey,
            other => {
                self.state = other;
                return;
            }
        };
        self.state = MoldState::Dumping(journey);
        self.deadline = Some(now + DUMP_TIME);
        if let Some(process) = &self.process {
            process.signal(Signal::USR2);
        }
    }

    /// Kills it. A caller is never killed: for it, the control socket closes when this is dropped.
    pub(crate) fn halt(&mut self, now: Instant) {
        self.state = MoldState::Halted;
        self.deadline = Some(now + KILL_TIME);
        if let Some(process) = &self.process {
            process.signal(Signal::KILL);
        }
    }

    /// It has said that it ends by itself.
    pub(crate) fn ends(&mut self, now: Instant) {
        self.state = MoldState::Halted;
        self.deadline = Some(now + KILL_TIME);
    }

    /// Its control socket is closed. How it ended, if it has gone: a caller has, another's pidfd will tell.
    pub(crate) fn heard_out(&mut self) -> Option<Ending> {
        self.departure.heard_out();
        if self.is_caller() {
            self.departure.ended(Ending::Unknown);
        }
        self.departure.complete()
    }

    /// It has ended. How, if it has gone; else its last words are still to come.
    pub(crate) fn ended(&mut self, ending: Ending, now: Instant) -> Option<Ending> {
        self.departure.ended(ending);
        if matches!(self.state, MoldState::Booted | MoldState::Halted) {
            return self.departure.ending();
        }
        self.deadline = Some(now + LAST_WORDS_TIME);
        self.departure.complete()
    }

    /// How it ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.departure.ending()
    }

    /// Whether it is the caller, and not a child of ours.
    pub(crate) fn is_caller(&self) -> bool {
        self.process.is_none()
    }
}
