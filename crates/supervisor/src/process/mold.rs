//! The mold: the Ruby process that loads the application once and from which workers are forked.

use crate::app_output::AppOutput;
use crate::control::control_socket::ControlSocket;
use crate::control::message::{OwnMemory, ToMold};
use crate::control::questions::{Answer, NotAsked, Questions};
use crate::facts::boot_failure::BootFailure;
use crate::process::child::{Child, Errand, Output};
use crate::process::companion_process::ForkedCompanion;
use crate::process::interpreter::Interpreter;
use crate::process::launcher::Who;
use crate::process::launcher::{Becomes, Launched, Launching};
use crate::process::watcher::{HeldProcess, StartReport, Watch, Watcher};
use highball_config::{App, LogFormat, User};
use highball_link::RubyHeap;
use highball_tenant::TenantFolder;
use rustix::fs::{memfd_create, open, MemfdFlags, Mode, OFlags};
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The program of this process.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Where the mold comes from.
#[derive(Debug)]
pub enum MoldSource {
    /// Highball starts Ruby in the application's folder, with its own Ruby code from this folder.
    Folder {
        /// The folder `lib` of the gem.
        gem_lib: PathBuf,
    },
    /// There is nothing to load: the folder is a static site, and the front serves its files alone.
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
}

/// What is held of a mold: its process and its control socket. Its state is the core's.
#[derive(Debug)]
pub(crate) struct MoldHandle {
    /// `None` for a caller until it has reported its pid.
    pub(crate) pid: Option<Pid>,
    /// The user that it runs as, if another than Highball's: the configuration may have changed since.
    pub(crate) user: Option<User>,
    process: Option<HeldProcess>,
    pub(crate) heap_questions: Questions<Option<RubyHeap>>,
    pub(crate) memory_questions: Questions<Option<OwnMemory>>,
    control: Arc<ControlSocket>,
    _watch: Watch,
}

impl MoldHandle {
    /// What has to be started: this Ruby with Highball's own code. Its control socket is at this end.
    pub(crate) fn launching(
        app: &App,
        (folder, opened): (&Path, Box<TenantFolder>),
        (ruby, boot_file): (&Interpreter, &Path),
        errand: Errand,
        output: &mut AppOutput,
    ) -> io::Result<(ControlSocket, Launching)> {
        let child = Child::mold(app, folder, (ruby, boot_file), errand);
        let (control, theirs) = ControlSocket::pair()?;
        let pipe = match child.output {
            Output::Pipe => Some(output.pipe(child.user.as_ref())?),
            Output::Inherited | Output::StandardError => None,
        };
        let (app, limits) = (app.path(), app.kernel_limits());
        let becomes = Becomes::Mold { control: theirs };
        Ok((control, Launching { app, limits, child, folder: opened, pipe, becomes }))
    }

    /// It was started. From here on the mold reports by messages; `failure` words why it could not begin.
    pub(crate) fn started(
        launched: Launched,
        control: ControlSocket,
        (boot, user): (u32, Option<User>),
        failure: impl Fn(io::Error) -> BootFailure + Send + Sync + 'static,
        watcher: &Watcher,
    ) -> io::Result<MoldHandle> {
        let Launched { pid, pidfd, socket } = launched;
        let process = watcher.hold(pidfd, Who::Mold(boot))?;
        let start = socket.map(|socket| StartReport::on(socket, failure)).transpose()?;
        Ok(MoldHandle::over(Arc::new(control), boot, (Some(pid), user), Some(process), start, watcher))
    }

    /// Talks with a caller that has loaded the application already.
    pub(crate) fn adopt(socket: OwnedFd, boot: u32, watcher: &Watcher) -> io::Result<MoldHandle> {
        let control = ControlSocket::over(socket)?;
        Ok(MoldHandle::over(Arc::new(control), boot, (None, None), None, None, watcher))
    }

    /// A worker that has become a mold: over the same control socket, as the same process.
    pub(crate) fn promoted(
        control: Arc<ControlSocket>,
        process: HeldProcess,
        pid: Option<Pid>,
        user: Option<User>,
        boot: u32,
        watcher: &Watcher,
    ) -> MoldHandle {
        MoldHandle::over(control, boot, (pid, user), Some(process), None, watcher)
    }

    fn over(
        control: Arc<ControlSocket>,
        boot: u32,
        (pid, user): (Option<Pid>, Option<User>),
        process: Option<HeldProcess>,
        start: Option<StartReport>,
        watcher: &Watcher,
    ) -> MoldHandle {
        MoldHandle {
            pid,
            user,
            process,
            heap_questions: Questions::default(),
            memory_questions: Questions::default(),
            _watch: watcher.mold(Arc::clone(&control), boot, start),
            control,
        }
    }

    /// A caller reports its pid. The pids of all others are known, whatever they report.
    pub(crate) fn reports_pid(&mut self, pid: i32) {
        if self.process.is_none() {
            self.pid = Pid::from_raw(pid);
        }
    }

    /// Asks for a worker.
    pub(crate) fn fork(
        &self,
        worker: u32,
        app: &App,
        (log_format, hub): (LogFormat, Option<&str>),
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let order = ToMold::Fork {
            worker,
            log_format: log_format.into(),
            development: app.is_development(),
            early_hints: app.early_hints,
            timeout_header: app.timeout_header.as_deref(),
            client_certificates: app.client_certificates.authorities.is_some(),
            slow_request_ms: app.slow_request.map(|time| time.as_millis() as u64),
            sendfile: &app.sendfile,
            fibers: !app.fibers.is_empty(),
            fiber_scheduler: app.fiber_scheduler.as_deref(),
            hub,
            hub_file: app.runs_as.another().is_some(),
            may_refork: app.process.may_refork_by_itself(),
        };
        self.control.send(&order, descriptors)
    }

    /// Asks for a companion, and the process that watches over it, which gets this control socket and this output.
    pub(crate) fn fork_companion(
        &self,
        companion: u32,
        order: &ForkedCompanion<'_>,
        (control, output): (&OwnedFd, &OwnedFd),
    ) -> io::Result<()> {
        let mut file = File::from(memfd_create(c"highball-companion", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(order)?)?;
        file.rewind()?;
        #[allow(clippy::disallowed_methods)] // it is no application's
        let program = open(OWN_PROGRAM, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let descriptors = [file.as_fd(), control.as_fd(), output.as_fd(), program.as_fd()];
        self.control.send(&ToMold::ForkCompanion { companion }, &descriptors)
    }

    /// Asks for its Ruby heap.
    pub(crate) fn ask_heap(&mut self) -> Result<Answer<Option<RubyHeap>>, NotAsked> {
        self.heap_questions.ask(|| self.control.send(&ToMold::Heap, &[]))
    }

    /// Asks for its memory.
    pub(crate) fn ask_memory(&mut self) -> Result<Answer<Option<OwnMemory>>, NotAsked> {
        self.memory_questions.ask(|| self.control.send(&ToMold::Memory, &[]))
    }

    /// Sends a signal. A caller is never sent one: for it, the control socket closes when this is dropped.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }
}
