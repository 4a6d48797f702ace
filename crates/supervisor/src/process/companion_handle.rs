//! What is held of a companion: the process that watches over it, and its control socket. Its state is the core's.

use crate::control::control_socket::ControlSocket;
use crate::process::child::Child;
use crate::process::companion_process::{CompanionOrder, ToCompanion};
use crate::process::launcher::{Becomes, Launched, Launching, Who};
use crate::process::watcher::{HeldProcess, Watch, Watcher};
use highball_config::{App, Companion};
use highball_tenant::TenantFolder;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct CompanionHandle {
    /// The process that watches over it.
    pub(crate) pid: Pid,
    /// Its name in the configuration.
    pub(crate) name: String,
    /// What people call it.
    pub(crate) label: String,
    /// Its own process, once that runs.
    pub(crate) program: Option<i32>,
    /// It has reported that process.
    has_reported: bool,
    process: HeldProcess,
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
        let order =
            CompanionOrder { directory: companion.directory.clone(), stop_timeout: companion.stop_timeout };
        Launching {
            app: app.path(),
            limits: app.kernel_limits(),
            child: Child::companion(app, folder, companion, copy),
            folder: opened,
            pipe: Some(pipe),
            becomes: Becomes::Companion(order),
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
        let watch = watcher.companion(Arc::clone(&control), companion);
        let (program, has_reported) = (None, false);
        Ok(CompanionHandle { pid, name, label, program, has_reported, process, control, _watch: watch })
    }

    /// Its own process has this number, if it descends from the process that watches over it. The first report counts.
    pub(crate) fn runs_as(&mut self, program: i32) {
        if std::mem::replace(&mut self.has_reported, true) {
            return;
        }
        self.program = Some(program).filter(|pid| highball_proc::family(self.pid.as_raw_pid()).contains(pid));
    }

    pub(crate) fn tell(&self, message: ToCompanion) -> io::Result<()> {
        self.control.send(&message, &[])
    }

    /// Kills the process that watches over it, and with that its own process.
    pub(crate) fn kill(&self) {
        self.process.signal(Signal::KILL);
    }
}
