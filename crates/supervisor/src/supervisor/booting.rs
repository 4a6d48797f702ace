//! Booting the mold, and booting it again.

use super::{unasked, Outcome, Phase, Supervisor, BACKTRACE_LINES};
use crate::event::Who;
use crate::message::{BootFailure, FromMold, RubyError};
use crate::mold::{Mold, MoldSource, MoldState};
use crate::reaper::Ending;
use crate::restart_policy::{Life, Verdict};
use crate::spawn_journey::Step;
use crate::worker_handle::WorkerState;
use crate::Notice;
use highball_config::Settings;
use rustix::process::Pid;
use std::io;
use std::time::{Duration, Instant};
use tracing::{debug, error, info, warn};

impl Supervisor {
    pub(super) async fn boot(&mut self, now: Instant) {
        self.boots += 1;
        let spawned = match &self.source {
            MoldSource::Folder { gem_lib } => {
                info!(app = %self.settings.app.display(), environment = self.settings.environment, "booting");
                Mold::spawn(&self.settings, gem_lib, self.boots, &self.events_in)
            }
            MoldSource::Caller(socket) => {
                socket.try_clone().and_then(|socket| Mold::adopt(socket, &self.settings, &self.events_in))
            }
        };
        match spawned {
            Ok(mold) => self.mold = Some(mold),
            Err(error) => self.boot_failed(no_ruby(&self.settings, &error), now),
        }
    }

    pub(super) async fn mold_said(&mut self, message: FromMold, now: Instant) {
        let Some(mold) = &mut self.mold else { return };
        match (message, &mut mold.state) {
            (FromMold::Step { step }, MoldState::Booting(journey)) => {
                let before = journey.step();
                let took = journey.enter(step, now);
                debug!(step = %before, took_ms = took.as_millis() as u64, "boot step done");
            }
            (FromMold::Booted(app), MoldState::Booting(journey)) => {
                let took_ms = journey.elapsed(now).as_millis() as u64;
                info!(framework = app.framework, ruby = app.ruby, pid = app.pid, took_ms, "booted");
                mold.state = MoldState::Booted;
                mold.deadline = None;
                mold.pid = Pid::from_raw(app.pid);
                self.mold_policy.ready();
                self.app = Some(app.clone());
                self.notify(Notice::AppBooted(app)).await;
            }
            (FromMold::Failed(failure), MoldState::Booting(_) | MoldState::Dumping(_)) => {
                mold.ends(now);
                self.boot_failed(failure, now);
            }
            (FromMold::ForkFailed { worker, message }, _) => {
                error!(worker, error = message, "the worker could not be forked");
                self.last_failure = Some(format!("a worker could not be forked: {message}"));
                self.worker_gone(worker, Ending::Unknown, now).await;
            }
            (FromMold::Stop, _) => self.drain(false, now).await,
            (FromMold::Heap { heap }, _) => {
                if !mold.heap_questions.answered(heap) {
                    let boot = mold.boot;
                    self.halt_mad(Who::Mold(boot), &unasked(), now);
                }
            }
            (message, state) => {
                warn!(state = state.name(), ?message, "the mold said this at the wrong time");
            }
        }
    }

    pub(super) fn mold_gone(&mut self, ending: Ending, now: Instant) {
        let Some(mold) = self.mold.take() else { return };
        for (_, handle) in self.workers.iter_mut() {
            handle.mold_gone(now);
        }
        if !matches!(self.phase, Phase::Running) {
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

    /// It was asked for a worker, and nothing came of it. (A caller is never killed; it may yet come round.)
    pub(super) fn mold_is_stuck(&mut self, now: Instant) {
        let stuck = |mold: &&mut Mold| matches!(mold.state, MoldState::Booted) && !mold.is_caller();
        if let Some(mold) = self.mold.as_mut().filter(stuck) {
            error!("the mold does not fork any more, and is replaced");
            mold.halt(now);
            self.postpone_boot(Life::NeverReady, now);
        }
    }

    /// The first boot has to succeed; after it, boots are repeated while the workers that there are serve.
    pub(super) fn boot_failed(&mut self, failure: BootFailure, now: Instant) {
        self.last_failure = Some(format!("{} failed: {}", failure.step, failure.error));
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        error!(
            step = %failure.step,
            error = %failure.error,
            at = failure.error.place(),
            backtrace = failure.error.calls(BACKTRACE_LINES),
            remedy = failure.remedy,
            "the application did not boot"
        );
        if self.app.is_none() {
            return self.end(Outcome::BootFailed(failure), now);
        }
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

pub(super) fn too_slow(step: Step, limit: Duration) -> BootFailure {
    let message = format!("it was not done after {} s", limit.as_secs());
    let remedy = "Look where its threads are, in the backtraces above. If it really needs longer, raise \
                  --boot-timeout.";
    BootFailure { step, error: RubyError::of_ours(message), remedy: Some(remedy.into()) }
}

fn died_while_booting(step: Step, ending: Ending) -> BootFailure {
    let message = format!("Ruby ended without saying why: {ending}");
    let remedy = "Look at what was printed above; the application may have ended the process itself.";
    BootFailure { step, error: RubyError::of_ours(message), remedy: Some(remedy.into()) }
}

fn no_ruby(settings: &Settings, error: &io::Error) -> BootFailure {
    let (ruby, app) = (settings.ruby.display(), settings.app.display());
    let remedy = match error.kind() {
        io::ErrorKind::NotFound if !settings.app.is_dir() => format!("{app} is not a folder any more."),
        io::ErrorKind::NotFound => {
            "Install Ruby (Debian: apt-get install ruby), or name one with --ruby.".to_string()
        }
        io::ErrorKind::PermissionDenied => {
            format!("Check that this user may enter {app} and run {ruby}.")
        }
        _ => "The system refused it; see the message.".to_string(),
    };
    let message = format!("cannot run {ruby} in {app}: {error}");
    BootFailure { step: Step::StartRuby, error: RubyError::of_ours(message), remedy: Some(remedy) }
}
