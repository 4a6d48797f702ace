//! What is held of a companion: the process that watches over it, and its control socket. Its state is the core's.

use crate::control::control_socket::ControlSocket;
use crate::control::watched_fd::watched;
use crate::process::child::Child;
use crate::process::companion_process::{
    self, CompanionOrder, ForkedCommand, ForkedCompanion, ToCompanion, KILLED_TIME,
};
use crate::process::launcher::{Becomes, Launched, Launching, Who};
use crate::process::mold::MoldHandle;
use crate::process::watcher::{HeldProcess, Watch, Watcher};
use highball_config::{App, Companion, CompanionCommand, User};
use highball_tenant::TenantFolder;
use rustix::process::{pidfd_open, Pid, PidfdFlags, Signal};
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct CompanionHandle {
    /// The process that watches over it; known once that exists.
    pub(crate) pid: Option<Pid>,
    /// Whom it has to run as, if another than Highball's.
    user: Option<User>,
    /// Its name in the configuration.
    pub(crate) name: String,
    /// What people call it.
    pub(crate) label: String,
    /// Its own process, once that runs.
    pub(crate) program: Option<i32>,
    /// Readable once that has ended.
    program_end: Option<AsyncFd<OwnedFd>>,
    /// It has reported that process.
    has_reported: bool,
    /// The process that watches over it has ended.
    is_ending: bool,
    process: Option<HeldProcess>,
    control: Arc<ControlSocket>,
    _watch: Watch,
}

impl CompanionHandle {
    /// What has to be started; `copy` is the number of its copy.
    pub(crate) fn launching(
        app: &App,
        (folder, opened): (&Path, Box<TenantFolder>),
        (companion, copy): (&Companion, u16),
        pipe: OwnedFd,
    ) -> Launching {
        Launching {
            app: app.path(),
            limits: app.kernel_limits(),
            child: Child::companion(app, folder, companion, copy),
            folder: opened,
            pipe: Some(pipe),
            becomes: Becomes::Companion(order_for(companion)),
        }
    }

    /// Has this mold fork it, as this copy of it, in this folder; `output`: the pipe for what it prints.
    pub(crate) fn fork(
        (app, folder, mold): (&App, &Path, &MoldHandle),
        number: u32,
        (companion, copy): (&Companion, u16),
        output: &OwnedFd,
        watcher: &Watcher,
    ) -> io::Result<CompanionHandle> {
        let (ours, theirs) = highball_spawner::channel::pair()?;
        companion_process::order_of_forked(&ours, &order_for(companion))?;
        let label = companion.label(copy);
        let order = ForkedCompanion {
            label: &label,
            command: match &companion.command {
                CompanionCommand::Shell(line) => ForkedCommand::Line(line),
                CompanionCommand::Program(words) => ForkedCommand::Words(words),
            },
            directory: companion.directory.as_ref().map(|directory| directory.to_string_lossy()),
            environment: Child::beyond_mold(app, folder, companion, copy),
        };
        mold.fork_companion(number, &order, (&theirs, output))?;
        let control = Arc::new(ControlSocket::over(ours)?);
        Ok(CompanionHandle::over(
            control,
            number,
            (companion.name.clone(), label),
            mold.user.clone(),
            watcher,
        ))
    }

    fn over(
        control: Arc<ControlSocket>,
        companion: u32,
        (name, label): (String, String),
        user: Option<User>,
        watcher: &Watcher,
    ) -> CompanionHandle {
        let watch = watcher.companion(Arc::clone(&control), companion);
        CompanionHandle {
            pid: None,
            user,
            name,
            label,
            program: None,
            program_end: None,
            has_reported: false,
            is_ending: false,
            process: None,
            control,
            _watch: watch,
        }
    }

    /// It was started. From here on it reports by messages.
    pub(crate) fn started(
        launched: Launched,
        companion: u32,
        (name, label): (String, String),
        watcher: &Watcher,
    ) -> io::Result<CompanionHandle> {
        let Launched { pid, pidfd, socket } = launched;
        let process = watcher.hold(pidfd, Who::Companion(companion))?;
        let socket = socket.ok_or_else(|| io::Error::other("it has no control socket"))?;
        let control = Arc::new(ControlSocket::over(socket)?);
        let handle = CompanionHandle::over(control, companion, (name, label), None, watcher);
        Ok(CompanionHandle { pid: Some(pid), process: Some(process), ..handle })
    }

    /// The mold has forked it, and the process `pid`, which watches over it and has sent a pidfd. The first report counts.
    ///
    /// # Errors
    /// The pidfd is missing, or belongs to a process that cannot be this one.
    pub(crate) fn exists(
        &mut self,
        companion: u32,
        pid: i32,
        pidfd: Option<OwnedFd>,
        watcher: &Watcher,
    ) -> io::Result<()> {
        if self.process.is_none() {
            let who = Who::Companion(companion);
            self.process = Some(watcher.hold_forked(pidfd, pid, self.user.as_ref(), who)?);
            self.pid = Pid::from_raw(pid);
        }
        Ok(())
    }

    /// Its own process has this number, if it descends from the process that watches over it. The first report counts.
    pub(crate) fn runs_as(&mut self, program: i32) {
        if std::mem::replace(&mut self.has_reported, true) {
            return;
        }
        // Before the look at whose it is: afterwards, the number could be another's.
        let pidfd = Pid::from_raw(program).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let family = self.pid.map(|pid| highball_proc::family(pid.as_raw_pid())).unwrap_or_default();
        if family.contains(&program) {
            self.program = Some(program);
            self.program_end = pidfd.and_then(|pidfd| watched(pidfd, Interest::READABLE).ok());
        }
    }

    /// The process that watches over it has ended. Returns what resolves when its own process has gone, too, so that the
    /// next one doesn't run beside it: the kernel is killing it, if the other one was killed. What cannot be killed is left
    /// behind. `None`: this is known already.
    pub(crate) fn ends(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        if std::mem::replace(&mut self.is_ending, true) {
            return None;
        }
        let program_end = self.program_end.take();
        Some(async move {
            if let Some(program_end) = program_end {
                let _ = timeout(KILLED_TIME, program_end.readable()).await;
            }
        })
    }

    pub(crate) fn tell(&self, message: ToCompanion) -> io::Result<()> {
        self.control.send(&message, &[])
    }

    /// Kills the process that watches over it, if there is one yet, and with that its own process.
    pub(crate) fn kill(&self) {
        if let Some(process) = &self.process {
            process.signal(Signal::KILL);
        }
    }
}

fn order_for(companion: &Companion) -> CompanionOrder {
    CompanionOrder { directory: companion.directory.clone(), stop_timeout: companion.stop_timeout }
}
