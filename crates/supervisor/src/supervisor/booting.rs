//! Booting the mold, and booting it again.

use super::failing::Failed;
use super::planning::Version;
use super::serving_site::{no_site, REMEDY as NO_SITE_REMEDY};
use super::{unasked, Outcome, Purpose, Supervisor, BACKTRACE_LINES};
use crate::boot_plan::{NotStarted, Start};
use crate::diagnosis::Diagnosis;
use crate::event::Who;
use crate::folder_state::FolderState;
use crate::interpreter::Interpreter;
use crate::message::{BootFailure, Booted, FromMold};
use crate::mold::{Mold, MoldSource, MoldState};
use crate::reaper::Ending;
use crate::restart_policy::{Life, Verdict};
use crate::spawn_journey::Step;
use crate::worker_handle::{StartFailure, WorkerState};
use crate::AppNotice;
use highball_config::{App, Fault};
use highball_tenant::TenantFolder;
use highball_users::OutOfReach;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::{debug, error, info, warn};

const TOO_SLOW: &str = "See where it is, in the backtrace. If it really needs longer, raise --boot-timeout.";

/// Whose mold it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Of the version that is served.
    Current,
    /// Of the version that a restart brings.
    Next,
    /// A worker until a moment ago, it is to become that of the version that is served.
    Promoted,
    /// Of none any more.
    Leaving,
}

impl Supervisor {
    /// Whether the version that is served needs a mold. (Not while it is being replaced: what would boot in its folder
    /// by now may be the new version.)
    pub(super) fn needs_mold(&self) -> bool {
        let has_none = if self.is_site() { self.current.app.is_none() } else { self.current.mold.is_none() };
        let has_failed = self.has_failed(Failed::Current) || self.has_failed(Failed::Lost);
        has_none
            && !has_failed
            && self.broken.is_none()
            && !self.asleep
            && self.staying() == self.current.line
    }

    /// Boots the mold of the version that is served; first it is found out how.
    pub(super) fn boot(&mut self, now: Instant) {
        if let Some(fault) = &self.app.fault {
            let failure = not_configured(fault);
            return self.boot_failed(failure, now);
        }
        if self.planning.is_some() {
            return;
        }
        if let MoldSource::Caller(_) = self.source {
            match self.adopt_caller() {
                Ok(mold) => self.current.mold = Some(mold),
                Err(error) => self.current_not_started(&error.into(), now),
            }
            return;
        }
        self.plan(Version::Current, now);
    }

    /// Boots it where and how it was found out.
    pub(super) async fn boot_as_planned(&mut self, start: Result<Start, NotStarted>, now: Instant) {
        let folder = self.current.folder.clone();
        let started = match start {
            Ok(Start::Site(site)) => return self.serve_site(self.current.number, site, &folder).await,
            Ok(Start::Ruby(ruby, opened)) => {
                self.spawn_mold(&ruby, &opened, &folder).map_err(NotStarted::from)
            }
            Err(error) => Err(error),
        };
        match started {
            Ok(mold) => self.current.mold = Some(mold),
            Err(error) => self.current_not_started(&error, now),
        }
    }

    fn current_not_started(&mut self, error: &NotStarted, now: Instant) {
        self.boot_failed(not_started(&self.app, &self.current.folder, error), now);
    }

    fn adopt_caller(&mut self) -> io::Result<Mold> {
        self.boots += 1;
        match &self.source {
            MoldSource::Caller(socket) => Mold::adopt(socket.try_clone()?, &self.app, &self.inbox),
            MoldSource::Folder { .. } | MoldSource::Site => Err(io::Error::other("there is no caller")),
        }
    }

    pub(super) fn spawn_mold(
        &mut self,
        ruby: &Interpreter,
        opened: &TenantFolder,
        folder: &Path,
    ) -> io::Result<Mold> {
        self.boots += 1;
        match self.source.boot_file() {
            Some(boot_file) => {
                let user = self.app.runs_as.another().map(tracing::field::display);
                info!(app = %folder.display(), environment = self.app.environment, user, "booting");
                let examine = self.purpose == Purpose::Examine;
                let (boot, output) = ((self.boots, examine), &mut self.output);
                Mold::spawn(&self.app, (folder, opened), (ruby, &boot_file), boot, output, &self.inbox)
            }
            None => Err(io::Error::other("it is not Highball that starts this application's Ruby")),
        }
    }

    fn role_of(&self, boot: u32) -> Role {
        let is_it = |mold: &Mold| mold.boot == boot;
        let next = self.restart.as_ref().and_then(|restart| restart.next.mold.as_ref());
        match (self.current.mold.as_ref().is_some_and(is_it), next.is_some_and(is_it)) {
            (true, _) => Role::Current,
            (false, true) => Role::Next,
            (false, false) if self.promoted_mold().is_some_and(is_it) => Role::Promoted,
            (false, false) => Role::Leaving,
        }
    }

    pub(super) async fn mold_said(&mut self, boot: u32, message: FromMold, now: Instant) {
        let role = self.role_of(boot);
        let Some(mold) = self.mold_mut(boot) else { return };
        let is_caller = mold.is_caller();
        match (message, &mut mold.state) {
            (FromMold::Step { step }, MoldState::Booting(journey)) => {
                let before = journey.step();
                let took = journey.enter(step, now);
                debug!(step = %before, took_ms = took.as_millis() as u64, "boot step done");
            }
            (FromMold::Found { app, because }, MoldState::Booting(_)) => info!(app, because, "found"),
            (FromMold::Warning { warning, remedy }, MoldState::Booting(_)) => warn!(remedy, "{warning}"),
            (FromMold::Booted(app), MoldState::Booting(_)) => {
                let took_ms = mold.booted(app.pid, now).map(|took| took.as_millis() as u64);
                for finding in &app.findings {
                    warn!(
                        cause = finding.cause,
                        at = finding.place(),
                        remedy = finding.remedy,
                        command = finding.command,
                        "{}",
                        finding.what
                    );
                }
                info!(
                    framework = app.framework,
                    ruby = app.ruby.as_deref(),
                    pid = app.pid,
                    took_ms,
                    "booted"
                );
                self.booted(role, Some(app)).await;
            }
            (FromMold::Bare { pid }, MoldState::Booting(_)) => {
                let took_ms = mold.booted(pid, now).map(|took| took.as_millis() as u64);
                info!(pid, took_ms, "the mold is there; each worker loads the application itself");
                self.booted(role, None).await;
            }
            (FromMold::Failed(failure), MoldState::Booting(_) | MoldState::Dumping(_)) => {
                mold.ends(now);
                self.boot_of_mold_failed(boot, *failure, now);
            }
            (FromMold::ForkFailed { worker, message }, _) => {
                error!(worker, error = message, "the worker could not be forked");
                self.last_failure = Some(format!("a worker could not be forked: {message}"));
                if let Some(handle) = self.workers.get_mut(worker) {
                    handle.failure = Some(StartFailure::of_ours(message));
                }
                self.worker_gone(worker, Ending::Unknown, now).await;
            }
            (FromMold::Stop, _) if is_caller => self.wants_the_end = true,
            (FromMold::Heap { heap }, _) => {
                if !mold.heap_questions.answered(heap) {
                    let boot = mold.boot;
                    self.halt_mad(Who::Mold(boot), &unasked(), now).await;
                }
            }
            (message, state) => {
                warn!(state = state.name(), ?message, "the mold said this at the wrong time");
            }
        }
    }

    /// A mold can be forked from; what it says of the application, if it has loaded it.
    async fn booted(&mut self, role: Role, app: Option<Booted>) {
        match role {
            Role::Current => {
                self.mold_policy.ready();
                if let Some(app) = app {
                    self.current.app = Some(app.clone());
                    self.notify(AppNotice::AppBooted(app)).await;
                }
            }
            Role::Next => self.next_booted(app).await,
            Role::Promoted | Role::Leaving => {}
        }
    }

    pub(super) fn boot_of_mold_failed(&mut self, boot: u32, failure: BootFailure, now: Instant) {
        match self.role_of(boot) {
            Role::Current => self.boot_failed(failure, now),
            Role::Next => self.next_not_booted(failure, now),
            Role::Promoted | Role::Leaving => {}
        }
    }

    pub(super) async fn mold_gone(&mut self, boot: u32, ending: Ending, now: Instant) {
        self.output.settle().await; // as above
        match self.role_of(boot) {
            Role::Current => self.current_mold_gone(ending, now).await,
            Role::Next => self.next_mold_gone(ending, now).await,
            Role::Promoted => self.promoted_mold_gone(ending, now).await,
            Role::Leaving => self.leaving_molds.retain(|mold| mold.boot != boot),
        }
    }

    async fn current_mold_gone(&mut self, ending: Ending, now: Instant) {
        let Some(mold) = self.current.mold.take() else { return };
        self.forks_are_lost(self.current.line, now);
        if !self.is_brought_up() {
            return;
        }
        match mold.state {
            _ if mold.is_caller() => self.end(Outcome::CallerGone, now),
            MoldState::Booting(journey) | MoldState::Dumping(journey) => {
                self.boot_failed(died_while_booting(journey.step(), ending), now);
            }
            MoldState::Booted => {
                warn!(%ending, "the mold died; the workers serve on while a new one boots");
                self.postpone_boot(Life::Ready(Duration::from_secs(1)), now);
            }
            MoldState::Halted => {}
        }
    }

    /// One that boots cannot be waited for any more: its boot has failed.
    pub(super) async fn halt_mad_mold(&mut self, boot: u32, error: &io::Error, now: Instant) {
        let Some(mold) = self.mold_mut(boot) else { return };
        let step = match &mold.state {
            MoldState::Booting(journey) | MoldState::Dumping(journey) => Some(journey.step()),
            MoldState::Booted => None,
            MoldState::Halted => return, // that was understood before
        };
        mold.halt(now);
        match step {
            Some(step) => self.boot_of_mold_failed(boot, not_understood(step, error), now),
            None if self.role_of(boot) == Role::Current => {
                self.postpone_boot(Life::Ready(Duration::from_secs(1)), now);
            }
            None => {}
        }
    }

    /// What a line's mold was asked for and has not forked will not come.
    pub(super) fn forks_are_lost(&mut self, line: u32, now: Instant) {
        for (_, handle) in self.workers.iter_mut().filter(|(_, handle)| handle.line == line) {
            handle.mold_gone(now);
        }
    }

    /// It was asked for a worker, and nothing came of it. (A caller is never killed; it may yet come round.) That of a
    /// restart or refork has been ended with it.
    pub(super) fn mold_is_stuck(&mut self, line: u32, now: Instant) {
        let stuck = |mold: &&mut Mold| mold.is_booted() && !mold.is_caller();
        if line != self.current.line {
            return;
        }
        if let Some(mold) = self.current.mold.as_mut().filter(stuck) {
            error!("the mold does not fork any more, and is replaced");
            mold.halt(now);
            self.postpone_boot(Life::NeverReady, now);
        }
    }

    /// The first boot has to succeed; after it, boots are repeated while the workers that there are serve.
    pub(super) fn boot_failed(&mut self, failure: BootFailure, now: Instant) {
        self.diagnose_failure(Failed::Current, failure, now);
    }

    /// It is known why a boot has failed, and what the files were like after that.
    pub(super) async fn boot_diagnosed(
        &mut self,
        diagnosis: Diagnosis,
        files: Option<FolderState>,
        now: Instant,
    ) {
        self.last_failure = Some(diagnosis.summary());
        if !self.is_brought_up() {
            return;
        }
        error!(
            cause = diagnosis.cause,
            step = diagnosis.step.map(tracing::field::display),
            error = %diagnosis.error,
            at = diagnosis.error.place(),
            source = diagnosis.source(),
            backtrace = diagnosis.error.calls(BACKTRACE_LINES),
            remedy = diagnosis.remedy,
            command = diagnosis.command,
            "the application did not boot"
        );
        if self.current.app.is_none() {
            return self.not_booted(diagnosis, files, now).await;
        }
        self.diagnosis = Some(diagnosis.clone());
        self.notify(AppNotice::AppFailed(Box::new(diagnosis))).await;
        self.postpone_boot(Life::NeverReady, now);
    }

    pub(super) fn postpone_boot(&mut self, life: Life, now: Instant) {
        let others_serve = self.workers.in_state(WorkerState::Serving) > 0;
        match self.mold_policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => self.mold_due = now + delay,
            Verdict::GiveUp => self.give_up("boots", self.mold_policy.boot_failures(), now),
        }
    }
}

/// Its own configuration file, or its folder, cannot be used.
fn not_configured(fault: &Fault) -> BootFailure {
    let remedy = "Correct that, and have the server read its configuration again: kill -HUP PID, as `highball status` \
                  names it; in development, reload the page.";
    let mut failure = BootFailure::of_ours(
        Step::ReadConfiguration,
        "invalid_configuration",
        fault.message.clone(),
        remedy.into(),
    );
    let error = &mut failure.account.error;
    error.file = fault.file.as_ref().map(|file| file.display().to_string());
    error.line = fault.line.and_then(|line| u32::try_from(line).ok());
    failure
}

fn not_understood(step: Step, error: &io::Error) -> BootFailure {
    let message = format!("the application's process said what cannot be understood: {error}");
    let remedy =
        "Highball's program and its Ruby code (lib/highball) may be of different versions: build or install \
                  both together.";
    BootFailure::of_ours(step, "not_understood", message, remedy.into()).with_command("bin/setup")
}

pub(super) fn too_slow(step: Step, limit: Duration) -> BootFailure {
    let message = format!("it was not done after {} s", limit.as_secs());
    BootFailure::of_ours(step, "boot_timeout", message, TOO_SLOW.into())
}

/// Nothing was found out about where and how to boot.
pub(super) fn no_answer_of_files(link: &Path, limit: Duration) -> BootFailure {
    let message = format!("its files could not be looked at within {} s", limit.as_secs());
    let place = link.display();
    let remedy = format!("The file system of {place} does not answer: look whether `ls {place}` does.");
    BootFailure::of_ours(Step::StartRuby, "boot_timeout", message, remedy)
}

pub(super) fn died_while_booting(step: Step, ending: Ending) -> BootFailure {
    let message = format!("Ruby ended without saying why: {ending}");
    match ending {
        Ending::Killed(9) => {
            let remedy =
                "Somebody killed it: most likely the kernel, because memory had run out. Look into its log, \
                          and give the machine or container more memory.";
            BootFailure::of_ours(step, "killed", message, remedy.into())
                .with_command("journalctl -k | grep -i 'killed process'")
        }
        Ending::Killed(_) => {
            let remedy =
                "It crashed, most likely in the native extension of a gem; what Ruby printed above says in \
                          which. Build the gems again for this Ruby.";
            BootFailure::of_ours(step, "crashed", message, remedy.into()).with_command("bundle pristine")
        }
        _ if step == Step::StartRuby => {
            let remedy =
                "Look at what was printed above, by Ruby or by the version manager that chooses it (--ruby \
                          names another).";
            BootFailure::of_ours(step, "ruby_did_not_start", message, remedy.into())
        }
        _ => {
            let remedy =
                "Look at what was printed above; the application may have ended the process itself (`exit!`).";
            BootFailure::of_ours(step, "exit_called", message, remedy.into())
        }
    }
}

pub(crate) fn not_started(app: &App, folder: &Path, why: &NotStarted) -> BootFailure {
    match why {
        NotStarted::OutOfReach(out) => out_of_reach(out),
        NotStarted::NoFolder(error) => no_ruby(app, folder, error, false),
        NotStarted::Refused(error) => no_ruby(app, folder, error, true),
        NotStarted::NoSite => {
            BootFailure::of_ours(Step::FindApp, "no_site", no_site(folder), NO_SITE_REMEDY.into())
        }
    }
}

/// The user of the application may not enter its folder, or may not read Highball's own code.
fn out_of_reach(out: &OutOfReach) -> BootFailure {
    let OutOfReach { user, path, barrier, .. } = out;
    let elsewhere = if path.ends_with("highball/boot.rb") {
        " (Highball is to be installed where every user may read it, for example below /opt)"
    } else {
        ""
    };
    let barrier = barrier.display();
    let remedy =
        format!("Let {user} into {barrier}, or choose another `user` for the application{elsewhere}.");
    BootFailure::of_ours(Step::StartRuby, "permission_denied", out.to_string(), remedy)
        .with_command(&format!("namei -l {}", path.display()))
}

fn no_ruby(app: &App, folder: &Path, error: &io::Error, has_folder: bool) -> BootFailure {
    let ruby = app.ruby.as_ref().map_or_else(|| "ruby".into(), |ruby| ruby.display().to_string());
    let place = folder.display();
    let user = app.runs_as.another();
    let who = user.map_or_else(|| "this user".into(), |user| format!("the user {user}"));
    let remedy = match error.kind() {
        io::ErrorKind::NotFound if !has_folder => format!("{place} is not a folder any more."),
        io::ErrorKind::NotFound => {
            format!("Install Ruby (Debian: apt-get install ruby) for {who}, or name one with --ruby.")
        }
        io::ErrorKind::PermissionDenied => format!("Check that {who} may enter {place} and run {ruby}."),
        _ => "The system refused it; see the message.".to_string(),
    };
    let whose = user.map_or_else(String::new, |user| format!(" as {user}"));
    let message = format!("cannot run {ruby} in {place}{whose}: {error}");
    BootFailure::of_ours(Step::StartRuby, "no_ruby", message, remedy)
}
